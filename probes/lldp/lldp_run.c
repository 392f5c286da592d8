/* lldp_run.c - running lldpctl: with a deadline, and no more of its output than is bearable. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probes/lldp/lldp.h"

extern char **environ;

#define NAME        "lldpctl"
#define SYSTEM_PATH "/usr/sbin:/usr/bin:/sbin:/bin"

struct run {
    pid_t pid;
    int out, err; /* what is read; -1: at its end */
    int64_t end;  /* of its time */
    struct lldp_output *output;
    size_t room;
    char said[256]; /* beginning of what it says on standard error */
    size_t n_said;
};

static int64_t lldp_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The program in a list of folders; those that are not absolute do not count. */
static bool find_in(const char *folders, char *path, size_t size)
{
    for (const char *at = folders; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ":");
        if (at[0] == '/' && (size_t)snprintf(path, size, "%.*s/" NAME, (int)len, at) < size &&
            access(path, X_OK) == 0)
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static int lldp_start(struct run *r, const char *path, const char *socket)
{
    char *argv[] = {NAME, "-f", "json0", NULL, NULL, NULL};
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    if (socket != NULL) {
        argv[3] = "-u";
        argv[4] = (char *)socket;
    }
    if (pipe2(out, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(err, O_CLOEXEC) != 0) {
        int rc = errno;
        close(out[0]);
        close(out[1]);
        return rc;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    int rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    if (rc == 0) /* above all the descriptor that the report goes to */
        rc = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (rc == 0)
        rc = posix_spawn(&r->pid, path, &actions, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    close(out[1]);
    close(err[1]);
    r->out = out[0];
    r->err = err[0];
    return rc;
}

static int read_output(struct run *r)
{
    struct lldp_output *o = r->output;
    if (o->size == r->room) {
        r->room = r->room == 0 ? 65536 : 2 * r->room;
        char *text = realloc(o->text, r->room);
        if (text == NULL)
            return PMIXFAB_ERR_NOMEM;
        o->text = text;
    }
    ssize_t n = read(r->out, o->text + o->size, r->room - o->size);
    if (n < 0 && errno == EINTR)
        return PMIXFAB_OK;
    if (n <= 0) {
        close(r->out);
        r->out = -1;
        return PMIXFAB_OK;
    }
    o->size += (size_t)n;
    return o->size > LLDP_MAX_OUTPUT ? PMIXFAB_ERR_RANGE : PMIXFAB_OK;
}

/* Only its beginning is kept. */
static void read_errors(struct run *r)
{
    char waste[512];
    ssize_t n = read(r->err, waste, sizeof(waste));
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(r->err);
        r->err = -1;
        return;
    }
    for (ssize_t i = 0; i < n && r->n_said + 1 < sizeof(r->said); i++)
        r->said[r->n_said++] = waste[i];
}

static int lldp_read_all(struct run *r)
{
    int rc = PMIXFAB_OK;
    while (rc == PMIXFAB_OK && (r->out >= 0 || r->err >= 0)) {
        struct pollfd fds[2] = {{r->out, POLLIN, 0}, {r->err, POLLIN, 0}};
        int64_t left = r->end - lldp_now_ms();
        int n = left <= 0 ? 0 : poll(fds, 2, (int)left);
        if (n == 0)
            return PMIXFAB_ERR_TIMEOUT;
        if (n < 0 && errno != EINTR)
            return PMIXFAB_ERR_IO;
        if (n > 0 && fds[0].revents != 0)
            rc = read_output(r);
        if (n > 0 && fds[1].revents != 0)
            read_errors(r);
    }
    return rc;
}

/* Its end; what has closed its output ends at once. */
static int lldp_reap(struct run *r, bool kill_it, int *status)
{
    if (kill_it)
        kill(r->pid, SIGKILL);
    for (;;) {
        const struct timespec pause = {0, 1000000};
        pid_t pid = waitpid(r->pid, status, kill_it ? 0 : WNOHANG);
        if (pid == r->pid)
            return PMIXFAB_OK;
        if (pid < 0 && errno != EINTR)
            return PMIXFAB_ERR_IO;
        if (pid == 0 && lldp_now_ms() >= r->end)
            return PMIXFAB_ERR_TIMEOUT;
        if (pid == 0)
            nanosleep(&pause, NULL);
    }
}

/* Its first line without the time and the place in the program: "2026-... [WARN/control] unable to ...". */
static const char *lldp_complaint(struct run *r)
{
    r->said[r->n_said] = '\0';
    r->said[strcspn(r->said, "\n")] = '\0';
    const char *bracket = strstr(r->said, "] ");
    return bracket != NULL ? bracket + 2 : r->said;
}

static int lldp_explain(struct run *r, int rc, int status, const char *path, struct fab_err *err)
{
    switch (rc) {
    case PMIXFAB_ERR_TIMEOUT:
        return fab_fail(err, rc, "lldp: %s gives no answer in time; is lldpd stuck?", path);
    case PMIXFAB_ERR_RANGE:
        return fab_fail(err, rc, "lldp: %s says more than %u MiB; that is no list of neighbours", path,
                        LLDP_MAX_OUTPUT >> 20);
    case PMIXFAB_OK:
        break;
    default:
        return fab_fail(err, rc, "lldp: %s: %s", path, pmixfab_strerror(rc));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                    "lldp: lldpd does not answer: %s; start it, and let this user use its socket",
                    r->n_said > 0 ? lldp_complaint(r) : "lldpctl failed and does not say why");
}

int lldp_ask(const char *socket, unsigned deadline_ms, struct lldp_output *out, struct fab_err *err)
{
    struct run r = {.output = out, .out = -1, .err = -1, .end = lldp_now_ms() + deadline_ms};
    char path[4096];
    int status = 0, rc;
    *out = (struct lldp_output){0};
    if (!find_in(getenv("PATH"), path, sizeof(path)) && !find_in(SYSTEM_PATH, path, sizeof(path)))
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                        "lldp: there is no lldpctl on this host; install lldpd or leave this probe out");
    int failed = lldp_start(&r, path, socket);
    if (failed != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "lldp: %s cannot be started: %s", path, strerror(failed));
    } else {
        rc = lldp_read_all(&r);
        int ended = lldp_reap(&r, rc != PMIXFAB_OK, &status);
        if (rc == PMIXFAB_OK && ended != PMIXFAB_OK) {
            rc = ended;
            if (ended == PMIXFAB_ERR_TIMEOUT)
                lldp_reap(&r, true, &status);
        }
        rc = lldp_explain(&r, rc, status, path, err);
    }
    if (r.out >= 0)
        close(r.out);
    if (r.err >= 0)
        close(r.err);
    if (rc != PMIXFAB_OK) {
        free(out->text);
        *out = (struct lldp_output){0};
    }
    return rc;
}
