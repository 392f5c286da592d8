#include "fabricd/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd/log.h"
#include "topo/wire.h"

extern char **environ;

struct sweep {
    pid_t pid;
    int data_fd, text_fd;
    struct event *data_event, *text_event, *deadline_event, *child_event;
    sweep_done_fn done;
    void *cbdata;
    struct timespec start;
    unsigned deadline;

    unsigned char *bytes; /* what came through the pipe */
    size_t size, cap;
    bool ended;  /* the pipe is at its end */
    bool reaped; /* the child was waited for */
    bool timed_out;
    bool oversize;
    int status;
    char line[400]; /* the line of standard error that is being read */
    size_t line_len;
    char reason[400];  /* the last error that the child gave */
    char chatter[200]; /* the last line of a library's */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void free_event(struct event **event)
{
    if (*event != NULL)
        event_free(*event);
    *event = NULL;
}

static void sweep_free(struct sweep *sweep)
{
    free_event(&sweep->data_event);
    free_event(&sweep->text_event);
    free_event(&sweep->deadline_event);
    free_event(&sweep->child_event);
    close_fd(&sweep->data_fd);
    close_fd(&sweep->text_fd);
    free(sweep->bytes);
    free(sweep);
}

void sweep_cancel(struct sweep *sweep)
{
    if (sweep == NULL)
        return;
    if (!sweep->reaped) {
        kill(-sweep->pid, SIGKILL);
        while (waitpid(sweep->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    sweep_free(sweep);
}

/* ---- what the child says ------------------------------------------------------------------------ */

/* A line of the child's standard error: a note of a probe begins with its level, the rest is chatter of
 * libraries, of interest only to somebody who looks for a fault. */
static void child_line(struct sweep *sweep, const char *line)
{
    if (line[0] == '<' && line[1] >= '0' && line[1] <= '3' && line[2] == '>') {
        enum pmixfab_level level = (enum pmixfab_level)(line[1] - '0');
        if (level == PMIXFAB_LOG_ERROR)
            snprintf(sweep->reason, sizeof(sweep->reason), "%s", line + 3);
        else
            log_line(level, "sweep: %s", line + 3);
    } else if (line[0] != '\0') {
        snprintf(sweep->chatter, sizeof(sweep->chatter), "%.199s", line);
        log_debug("sweep: %s", line);
    }
}

static void on_text(evutil_socket_t fd, short what, void *arg)
{
    struct sweep *sweep = arg;
    char buffer[4096];
    (void)what;
    ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        free_event(&sweep->text_event);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (buffer[i] == '\n') {
            sweep->line[sweep->line_len] = '\0';
            child_line(sweep, sweep->line);
            sweep->line_len = 0;
        } else if (sweep->line_len < sizeof(sweep->line) - 1) {
            sweep->line[sweep->line_len++] = buffer[i];
        }
    }
}

/* ---- the end ------------------------------------------------------------------------------------ */

static double milliseconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) * 1e3 + (double)(now.tv_nsec - start->tv_nsec) / 1e6;
}

/* Why there is no inventory, in one line. */
static int explain(const struct sweep *sweep, struct fab_err *err)
{
    if (sweep->timed_out)
        return fab_fail(err, PMIXFAB_ERR_TIMEOUT, "sweep: not done after %u s, killed", sweep->deadline);
    if (sweep->oversize)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "sweep: what came through the pipe is no inventory");
    if (WIFSIGNALED(sweep->status))
        return fab_fail(err, PMIXFAB_ERR_IO, "sweep: the child died of signal %d (%s)%s%.200s",
                        WTERMSIG(sweep->status), strsignal(WTERMSIG(sweep->status)),
                        sweep->reason[0] != '\0' ? ": " : "", sweep->reason);
    if (WEXITSTATUS(sweep->status) == 0)
        return PMIXFAB_OK;
    if (sweep->reason[0] != '\0')
        return fab_fail(err, PMIXFAB_ERR_IO, "sweep: %s", sweep->reason);
    /* A library has ended the process; what it printed last is the nearest thing to a reason. */
    return fab_fail(err, PMIXFAB_ERR_IO, "sweep: the child ended with status %d; its last words were: %s",
                    WEXITSTATUS(sweep->status), sweep->chatter[0] != '\0' ? sweep->chatter : "none");
}

static void finish_if_over(struct sweep *sweep)
{
    if (!sweep->ended || !sweep->reaped)
        return;
    for (int i = 0; i < 16 && sweep->text_event != NULL; i++) /* its last words may still be in the pipe */
        on_text(sweep->text_fd, EV_READ, sweep);
    struct sweep_result result = {.milliseconds = milliseconds_since(&sweep->start)};
    fab_inventory_init(&result.inv);
    result.code = explain(sweep, &result.err);
    if (result.code == PMIXFAB_OK)
        result.code = fab_wire_decode(sweep->bytes, sweep->size, &result.inv, &result.err);
    sweep_done_fn done = sweep->done;
    void *cbdata = sweep->cbdata;
    sweep_free(sweep);
    done(&result, cbdata);
    fab_inventory_destroy(&result.inv);
}

static void stop_reading(struct sweep *sweep)
{
    free_event(&sweep->data_event);
    sweep->ended = true;
}

/* Room for what the head announces, so that a subnet of any size is read without growing bit by bit. */
static int make_room(struct sweep *sweep)
{
    size_t want = sweep->cap;
    if (sweep->cap == 0)
        want = 65536;
    else if (sweep->size >= FAB_WIRE_HEAD && sweep->size == sweep->cap) {
        uint64_t total = fab_wire_total(sweep->bytes);
        if (total == 0 || total > FAB_WIRE_MAX || total < sweep->size)
            return PMIXFAB_ERR_CORRUPT;
        want = (size_t)total + 1; /* one more, to notice what is too much */
        if (want <= sweep->cap)
            return PMIXFAB_ERR_CORRUPT;
    }
    if (want == sweep->cap)
        return PMIXFAB_OK;
    unsigned char *bytes = realloc(sweep->bytes, want);
    if (bytes == NULL)
        return PMIXFAB_ERR_NOMEM;
    sweep->bytes = bytes;
    sweep->cap = want;
    return PMIXFAB_OK;
}

static void on_data(evutil_socket_t fd, short what, void *arg)
{
    struct sweep *sweep = arg;
    (void)what;
    if (sweep->size == sweep->cap && make_room(sweep) != PMIXFAB_OK) {
        sweep->oversize = true;
        kill(-sweep->pid, SIGKILL);
        stop_reading(sweep);
        finish_if_over(sweep);
        return;
    }
    ssize_t n = read(fd, sweep->bytes + sweep->size, sweep->cap - sweep->size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        sweep->size += (size_t)n;
        return;
    }
    stop_reading(sweep);
    finish_if_over(sweep);
}

static void on_child(evutil_socket_t signo, short what, void *arg)
{
    struct sweep *sweep = arg;
    (void)signo;
    (void)what;
    pid_t pid = waitpid(sweep->pid, &sweep->status, WNOHANG);
    if (pid != sweep->pid)
        return;
    sweep->reaped = true;
    kill(-sweep->pid, SIGKILL); /* and whatever it started, which could hold the pipe open */
    finish_if_over(sweep);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct sweep *sweep = arg;
    (void)fd;
    (void)what;
    sweep->timed_out = true;
    kill(-sweep->pid, SIGKILL); /* the rest follows from SIGCHLD and the end of the pipe */
}

/* ---- the start ---------------------------------------------------------------------------------- */

/* The daemon's environment with the configured additions; an addition replaces what has its name. */
static char **child_environment(const struct config_list *extra)
{
    size_t n = 0;
    while (environ[n] != NULL)
        n++;
    char **env = calloc(n + extra->n + 1, sizeof(*env));
    if (env == NULL)
        return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (unsigned k = 0; k < extra->n; k++) {
            size_t len = strcspn(extra->items[k], "=") + 1;
            replaced |= strncmp(environ[i], extra->items[k], len) == 0;
        }
        if (!replaced)
            env[kept++] = environ[i];
    }
    for (unsigned k = 0; k < extra->n; k++)
        env[kept++] = extra->items[k];
    return env;
}

/* The child has the pipe as descriptor 3, the text pipe as standard error, and nothing else open: the
 * simulator's library, for one, crashes a process that has many descriptors. */
static int spawn_child(struct sweep *sweep, char **argv, char **env, int data_write, int text_write)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, text_write, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, data_write, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    int rc = posix_spawn(&sweep->pid, "/proc/self/exe", &actions, &attr, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static int start_child(struct sweep *sweep, const struct config *config, struct fab_err *err)
{
    int data[2] = {-1, -1}, text[2] = {-1, -1}, rc = PMIXFAB_OK;
    char daemon[16], smps[16], timeout[16], retries[16];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(smps, sizeof(smps), "%u", config->max_smps);
    snprintf(timeout, sizeof(timeout), "%u", config->timeout_ms);
    snprintf(retries, sizeof(retries), "%u", config->retries);
    char *argv[CONFIG_MAX_LIST + 7] = {"fabricd", SWEEP_CHILD_OPTION, daemon, smps, timeout, retries};
    for (unsigned i = 0; i < config->probes.n; i++)
        argv[6 + i] = config->probes.items[i];
    char **env = child_environment(&config->sweep_env);
    if (env == NULL) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "sweep: out of memory");
        goto cleanup;
    }
    /* High numbers, so that moving one of them to descriptor 3 does not overwrite another. */
    if (pipe2(data, O_CLOEXEC) != 0 || pipe2(text, O_CLOEXEC) != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "sweep: no pipe: %s", strerror(errno));
        goto cleanup;
    }
    int data_write = fcntl(data[1], F_DUPFD_CLOEXEC, 16), text_write = fcntl(text[1], F_DUPFD_CLOEXEC, 16);
    int failed =
        data_write < 0 || text_write < 0 ? errno : spawn_child(sweep, argv, env, data_write, text_write);
    close_fd(&data_write);
    close_fd(&text_write);
    if (failed != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "sweep: the child cannot be started: %s", strerror(failed));
        goto cleanup;
    }
    sweep->data_fd = data[0];
    sweep->text_fd = text[0];
    data[0] = text[0] = -1;
    evutil_make_socket_nonblocking(sweep->data_fd);
    evutil_make_socket_nonblocking(sweep->text_fd);
cleanup:
    close_fd(&data[0]);
    close_fd(&data[1]);
    close_fd(&text[0]);
    close_fd(&text[1]);
    free(env);
    return rc;
}

int sweep_start(struct event_base *base, const struct config *config, sweep_done_fn done, void *cbdata,
                struct sweep **out, struct fab_err *err)
{
    *out = NULL;
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    if (sweep == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "sweep: out of memory");
    sweep->data_fd = sweep->text_fd = -1;
    sweep->done = done;
    sweep->cbdata = cbdata;
    sweep->deadline = config->deadline;
    clock_gettime(CLOCK_MONOTONIC, &sweep->start);
    /* The handler for SIGCHLD stands before there is a child that could end. */
    sweep->child_event = evsignal_new(base, SIGCHLD, on_child, sweep);
    if (sweep->child_event == NULL || event_add(sweep->child_event, NULL) != 0) {
        sweep_free(sweep);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "sweep: no event");
    }
    int rc = start_child(sweep, config, err);
    if (rc != PMIXFAB_OK) {
        sweep_free(sweep);
        return rc;
    }
    const struct timeval deadline = {.tv_sec = config->deadline};
    sweep->data_event = event_new(base, sweep->data_fd, EV_READ | EV_PERSIST, on_data, sweep);
    sweep->text_event = event_new(base, sweep->text_fd, EV_READ | EV_PERSIST, on_text, sweep);
    sweep->deadline_event = evtimer_new(base, on_deadline, sweep);
    if (sweep->data_event == NULL || sweep->text_event == NULL || sweep->deadline_event == NULL ||
        event_add(sweep->data_event, NULL) != 0 || event_add(sweep->text_event, NULL) != 0 ||
        event_add(sweep->deadline_event, &deadline) != 0) {
        sweep_cancel(sweep);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "sweep: no event");
    }
    *out = sweep;
    return PMIXFAB_OK;
}
