#include "mca/pnet/inventory_look.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "topo/base/log.h"
#include "topo/report/delivery.h"

extern char **environ;

#define OPTION     "--inventory-child" /* fabricd/discovery/host_scan_inventory.c */
#define NOTHING    3                   /* its status when the host has no devices */
#define MAX_PROBES 32
#define SLICE_MS   20   /* how often it is looked whether the child has ended and left its pipe to others */
#define DEATH_MS   1000 /* how long a killed child is waited for */

struct child {
    pid_t pid;
    int data, text; /* what is read; -1: at its end */
    bool over;      /* it has ended and was waited for */
    bool known;     /* ... by us, so that there is a status */
    int status;
    unsigned char *bytes;
    size_t size, room;
    char line[300];
    size_t n_line;
    char reason[300];
};

static int64_t inspect_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- children that stay ------------------------------------------------------------------------- */

/* One that hangs in the kernel goes when that lets it; until then the library's thread has other work. */
static pid_t left[16];

static void inspect_abandon(pid_t pid)
{
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        if (left[i] == 0) {
            left[i] = pid;
            return;
        }
    }
}

void pnet_inspect_reap(void)
{
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        if (left[i] != 0 && waitpid(left[i], NULL, WNOHANG) != 0)
            left[i] = 0;
}

/* ---- the start ---------------------------------------------------------------------------------- */

static int inspect_spawn(struct child *c, const char *program, char *const *argv, int data, int text)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all); /* the host may ignore some, SIGCHLD among them */
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    int rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, text, STDERR_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, data, 3);
    if (rc == 0)
        rc = posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    if (rc == 0)
        rc = posix_spawn(&c->pid, program, &actions, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static int inspect_start(struct child *c, const char *program, char *const *argv, struct fab_err *err)
{
    int data[2] = {-1, -1}, text[2] = {-1, -1}, high[2] = {-1, -1}, failed = 0;
    if (pipe2(data, O_CLOEXEC) != 0 || pipe2(text, O_CLOEXEC) != 0)
        failed = errno;
    /* High numbers, so that moving one of them to descriptor 3 does not overwrite another. */
    if (failed == 0) {
        high[0] = fcntl(data[1], F_DUPFD_CLOEXEC, 16);
        high[1] = high[0] < 0 ? -1 : fcntl(text[1], F_DUPFD_CLOEXEC, 16);
        failed = high[1] < 0 ? errno : 0;
    }
    if (failed == 0)
        failed = inspect_spawn(c, program, argv, high[0], high[1]);
    close_fd(&data[1]);
    close_fd(&text[1]);
    close_fd(&high[0]);
    close_fd(&high[1]);
    c->data = data[0];
    c->text = text[0];
    if (failed != 0) {
        close_fd(&c->data);
        close_fd(&c->text);
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be started: %s", program, strerror(failed));
    }
    fcntl(c->data, F_SETFL, O_NONBLOCK);
    fcntl(c->text, F_SETFL, O_NONBLOCK);
    return PMIXFAB_OK;
}

/* ---- what it writes ----------------------------------------------------------------------------- */

/* An error that the child gives ("<0>...") is the reason for its end; all other lines are remarks. */
static void end_line(struct child *c)
{
    c->line[c->n_line] = '\0';
    c->n_line = 0;
    if (strncmp(c->line, "<0>", 3) == 0)
        snprintf(c->reason, sizeof(c->reason), "%.*s", (int)sizeof(c->reason) - 1, c->line + 3);
    else if (c->line[0] != '\0')
        fab_log(PMIXFAB_LOG_DEBUG, "%s", c->line);
}

static void inspect_read_text(struct child *c)
{
    char buffer[1024];
    ssize_t n = read(c->text, buffer, sizeof(buffer));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        close_fd(&c->text);
    for (ssize_t i = 0; i < n; i++) {
        if (buffer[i] == '\n')
            end_line(c);
        else if (c->n_line < sizeof(c->line) - 1)
            c->line[c->n_line++] = buffer[i];
    }
}

static int read_data(struct child *c)
{
    if (c->size == c->room) {
        size_t room = c->room == 0 ? 32768 : c->room * 2;
        unsigned char *bytes = c->size > FAB_DELIVERY_MAX ? NULL : realloc(c->bytes, room);
        if (bytes == NULL)
            return c->size > FAB_DELIVERY_MAX ? PMIXFAB_ERR_CORRUPT : PMIXFAB_ERR_NOMEM;
        c->bytes = bytes;
        c->room = room;
    }
    ssize_t n = read(c->data, c->bytes + c->size, c->room - c->size);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return PMIXFAB_OK;
    if (n <= 0)
        close_fd(&c->data);
    else
        c->size += (size_t)n;
    return PMIXFAB_OK;
}

/* ---- the end ------------------------------------------------------------------------------------ */

static void look_whether_over(struct child *c)
{
    pid_t pid = c->over ? 0 : waitpid(c->pid, &c->status, WNOHANG);
    if (pid == c->pid)
        c->over = c->known = true;
    else if (pid < 0 && errno == ECHILD) /* somebody else's waiting has got it, or SIGCHLD is ignored */
        c->over = true;
}

/* Kill what is left of it. Its probes have groups of their own, and die with it. */
static void inspect_kill(struct child *c)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    int64_t end = inspect_now_ms() + DEATH_MS;
    look_whether_over(c);
    if (!c->over) /* else its number may be another's by now */
        kill(-c->pid, SIGKILL);
    for (look_whether_over(c); !c->over && inspect_now_ms() < end; look_whether_over(c))
        nanosleep(&moment, NULL);
    if (!c->over)
        inspect_abandon(c->pid);
}

/* Until all is read and it has ended, or it is time. */
static int inspect_wait(struct child *c, int64_t end)
{
    while (!c->over || c->data >= 0) {
        struct pollfd fds[] = {{.fd = c->data, .events = POLLIN}, {.fd = c->text, .events = POLLIN}};
        int64_t time_left = end - inspect_now_ms();
        if (time_left <= 0)
            return PMIXFAB_ERR_TIMEOUT;
        /* Its end closes the pipes, but another process of the host's may hold them open a while. */
        int slice = c->data < 0 && c->text < 0 ? 1 : SLICE_MS;
        int n = poll(fds, 2, time_left < slice ? (int)time_left : slice);
        if (n < 0 && errno != EINTR)
            return PMIXFAB_ERR_IO;
        if (n > 0 && fds[1].revents != 0)
            inspect_read_text(c);
        int rc = n > 0 && fds[0].revents != 0 ? read_data(c) : PMIXFAB_OK;
        if (rc != PMIXFAB_OK)
            return rc;
        if (n == 0 && c->over)
            break; /* all that it wrote was read */
        if (n == 0 || c->data < 0)
            look_whether_over(c);
    }
    for (int i = 0; i < 16 && c->text >= 0; i++) /* its last words may still be in the pipe */
        inspect_read_text(c);
    return PMIXFAB_OK;
}

static int inspect_explain(const struct child *c, const struct pnet_inspection *wanted, int rc,
                           struct fab_err *err)
{
    if (rc == PMIXFAB_ERR_TIMEOUT)
        return fab_fail(err, rc, "inventory: not done after %u s, killed", wanted->seconds);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "inventory: %s", pmixfab_strerror(rc));
    if (c->known && WIFEXITED(c->status) && WEXITSTATUS(c->status) == NOTHING)
        rc = PMIXFAB_ERR_UNSUPPORTED;
    else if ((c->known && c->status != 0) || c->size == 0)
        rc = PMIXFAB_ERR_IO;
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "inventory: %s",
                        c->reason[0] != '\0' ? c->reason : "fabricd ended without a word");
    return PMIXFAB_OK;
}

/* Is it what was asked for? Damaged bytes are not for others to find. */
static int inspect_check(const struct child *c, const char *host, struct fab_err *err)
{
    struct fab_delivery delivery;
    struct fab_report report;
    int rc = fab_delivery_decode(c->bytes, c->size, &delivery, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_delivery_open(&delivery, NULL, &report, err);
    if (rc == PMIXFAB_OK && strcmp(report.host, host) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "inventory: of %s, but %s was asked for", report.host, host);
    fab_report_destroy(&report);
    return rc;
}

/* The list behind the four fixed arguments; `text` is cut up. */
static int add_probes(char **argv, size_t n, char *text, struct fab_err *err)
{
    char *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        if (n == 5 + MAX_PROBES)
            return fab_fail(err, PMIXFAB_ERR_INVAL, "inventory: more than %d probes", MAX_PROBES);
        argv[n++] = one;
    }
    return PMIXFAB_OK;
}

int pnet_inspect(const struct pnet_inspection *wanted, void **bytes, size_t *size, struct fab_err *err)
{
    char pid[16], seconds[16],
        *argv[5 + MAX_PROBES + 1] = {"fabricd", OPTION, pid, (char *)wanted->host, seconds};
    struct child c = {.data = -1, .text = -1};
    int64_t end = inspect_now_ms() + (int64_t)wanted->seconds * 1000;
    *bytes = NULL;
    *size = 0;
    pnet_inspect_reap();
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    /* A probe that hangs is ended by its own deadline, a second before all is. */
    snprintf(seconds, sizeof(seconds), "%u", wanted->seconds > 1 ? wanted->seconds - 1 : 1);
    char *probes = strdup(wanted->probes != NULL ? wanted->probes : "");
    if (probes == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "inventory: out of memory");
    int rc = add_probes(argv, 5, probes, err);
    if (rc == PMIXFAB_OK)
        rc = inspect_start(&c, wanted->program, argv, err);
    if (rc == PMIXFAB_OK) {
        rc = inspect_explain(&c, wanted, inspect_wait(&c, end), err);
        inspect_kill(&c);
    }
    if (rc == PMIXFAB_OK)
        rc = inspect_check(&c, wanted->host, err);
    close_fd(&c.data);
    close_fd(&c.text);
    free(probes);
    if (rc != PMIXFAB_OK) {
        free(c.bytes);
        return rc;
    }
    *bytes = c.bytes;
    *size = c.size;
    return PMIXFAB_OK;
}
