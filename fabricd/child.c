#include "fabricd/child.h"

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

extern char **environ;

struct child {
    char what[64];
    pid_t pid;
    int data_fd, text_fd;
    struct event *data_event, *text_event, *deadline_event, *child_event;
    void (*done)(struct child_result *result, void *cbdata);
    void *cbdata;
    size_t (*total)(const void *head, size_t n);
    size_t limit;
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

static void child_free(struct child *child)
{
    free_event(&child->data_event);
    free_event(&child->text_event);
    free_event(&child->deadline_event);
    free_event(&child->child_event);
    close_fd(&child->data_fd);
    close_fd(&child->text_fd);
    free(child->bytes);
    free(child);
}

void child_cancel(struct child *child)
{
    if (child == NULL)
        return;
    if (!child->reaped) {
        kill(-child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    child_free(child);
}

/* ---- what the child says ------------------------------------------------------------------------ */

/* A line of the child's standard error: a note of a probe begins with its level, the rest is chatter of
 * libraries, of interest only to somebody who looks for a fault. */
static void child_line(struct child *child, const char *line)
{
    if (line[0] == '<' && line[1] >= '0' && line[1] <= '3' && line[2] == '>') {
        enum pmixfab_level level = (enum pmixfab_level)(line[1] - '0');
        if (level == PMIXFAB_LOG_ERROR)
            snprintf(child->reason, sizeof(child->reason), "%s", line + 3);
        else
            log_line(level, "%s: %s", child->what, line + 3);
    } else if (line[0] != '\0') {
        snprintf(child->chatter, sizeof(child->chatter), "%.199s", line);
        log_debug("%s: %s", child->what, line);
    }
}

static void on_text(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;
    char buffer[4096];
    (void)what;
    ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        free_event(&child->text_event);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (buffer[i] == '\n') {
            child->line[child->line_len] = '\0';
            child_line(child, child->line);
            child->line_len = 0;
        } else if (child->line_len < sizeof(child->line) - 1) {
            child->line[child->line_len++] = buffer[i];
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

/* How it ended, in one line where it is no good end. */
static int explain(const struct child *child, struct fab_err *err)
{
    const char *what = child->what;
    if (child->timed_out)
        return fab_fail(err, PMIXFAB_ERR_TIMEOUT, "%s: not done after %u s, killed", what, child->deadline);
    if (child->oversize)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "%s: what came through the pipe is too much, or not what it began with", what);
    if (WIFSIGNALED(child->status))
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: the child died of signal %d (%s)%s%.200s", what,
                        WTERMSIG(child->status), strsignal(WTERMSIG(child->status)),
                        child->reason[0] != '\0' ? ": " : "", child->reason);
    if (WEXITSTATUS(child->status) == 0)
        return PMIXFAB_OK;
    int code = WEXITSTATUS(child->status) == CHILD_NOTHING ? PMIXFAB_ERR_UNSUPPORTED : PMIXFAB_ERR_IO;
    if (child->reason[0] != '\0')
        return fab_fail(err, code, "%s: %s", what, child->reason);
    /* A library has ended the process; what it printed last is the nearest thing to a reason. */
    return fab_fail(err, PMIXFAB_ERR_IO, "%s: the child ended with status %d; its last words were: %s", what,
                    WEXITSTATUS(child->status), child->chatter[0] != '\0' ? child->chatter : "none");
}

static void finish_if_over(struct child *child)
{
    if (!child->ended || !child->reaped)
        return;
    for (int i = 0; i < 16 && child->text_event != NULL; i++) /* its last words may still be in the pipe */
        on_text(child->text_fd, EV_READ, child);
    struct child_result result = {
        .bytes = child->bytes, .size = child->size, .milliseconds = milliseconds_since(&child->start)};
    result.code = explain(child, &result.err);
    child->done(&result, child->cbdata);
    child_free(child);
}

static void stop_reading(struct child *child)
{
    free_event(&child->data_event);
    child->ended = true;
}

/* Room for what the beginning announces, so that a subnet of any size is read without growing bit by bit. */
static int make_room(struct child *child)
{
    size_t want = 65536, total = 0;
    if (child->cap > 0) {
        if (child->total != NULL)
            total = child->total(child->bytes, child->size);
        if (total > child->limit || (total > 0 && total < child->size))
            return PMIXFAB_ERR_CORRUPT;
        want = total > 0 ? total : child->cap * 2;
    }
    if (want > child->limit)
        want = child->limit;
    want++; /* one more, to notice what is too much */
    if (want <= child->cap)
        return PMIXFAB_ERR_CORRUPT;
    unsigned char *bytes = realloc(child->bytes, want);
    if (bytes == NULL)
        return PMIXFAB_ERR_NOMEM;
    child->bytes = bytes;
    child->cap = want;
    return PMIXFAB_OK;
}

static void on_data(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;
    (void)what;
    if (child->size == child->cap && make_room(child) != PMIXFAB_OK) {
        child->oversize = true;
        kill(-child->pid, SIGKILL);
        stop_reading(child);
        finish_if_over(child);
        return;
    }
    ssize_t n = read(fd, child->bytes + child->size, child->cap - child->size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        child->size += (size_t)n;
        return;
    }
    stop_reading(child);
    finish_if_over(child);
}

static void on_child(evutil_socket_t signo, short what, void *arg)
{
    struct child *child = arg;
    (void)signo;
    (void)what;
    pid_t pid = waitpid(child->pid, &child->status, WNOHANG);
    if (pid != child->pid)
        return;
    child->reaped = true;
    kill(-child->pid, SIGKILL); /* and whatever it started, which could hold the pipe open */
    if (child->timed_out)
        stop_reading(child);
    finish_if_over(child);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;
    (void)fd;
    (void)what;
    child->timed_out = true;
    if (!child->reaped) {
        kill(-child->pid, SIGKILL); /* the rest follows from SIGCHLD */
        return;
    }
    stop_reading(child); /* something that left its group holds the pipe open */
    finish_if_over(child);
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
static int spawn_child(struct child *child, char *const *argv, char **env, int data_write, int text_write)
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
    int rc = posix_spawn(&child->pid, "/proc/self/exe", &actions, &attr, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static int start_child(struct child *child, const struct child_order *order, struct fab_err *err)
{
    int data[2] = {-1, -1}, text[2] = {-1, -1}, rc = PMIXFAB_OK;
    char **env = child_environment(order->env);
    if (env == NULL) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", child->what);
        goto cleanup;
    }
    if (pipe2(data, O_CLOEXEC) != 0 || pipe2(text, O_CLOEXEC) != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: no pipe: %s", child->what, strerror(errno));
        goto cleanup;
    }
    /* High numbers, so that moving one of them to descriptor 3 does not overwrite another. */
    int data_write = fcntl(data[1], F_DUPFD_CLOEXEC, 16), text_write = fcntl(text[1], F_DUPFD_CLOEXEC, 16);
    int failed = data_write < 0 || text_write < 0
                     ? errno
                     : spawn_child(child, order->argv, env, data_write, text_write);
    close_fd(&data_write);
    close_fd(&text_write);
    if (failed != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: the child cannot be started: %s", child->what,
                      strerror(failed));
        goto cleanup;
    }
    child->data_fd = data[0];
    child->text_fd = text[0];
    data[0] = text[0] = -1;
    evutil_make_socket_nonblocking(child->data_fd);
    evutil_make_socket_nonblocking(child->text_fd);
cleanup:
    close_fd(&data[0]);
    close_fd(&data[1]);
    close_fd(&text[0]);
    close_fd(&text[1]);
    free(env);
    return rc;
}

static int listen_to_child(struct child *child, struct event_base *base)
{
    const struct timeval deadline = {.tv_sec = child->deadline};
    child->data_event = event_new(base, child->data_fd, EV_READ | EV_PERSIST, on_data, child);
    child->text_event = event_new(base, child->text_fd, EV_READ | EV_PERSIST, on_text, child);
    child->deadline_event = evtimer_new(base, on_deadline, child);
    if (child->data_event == NULL || child->text_event == NULL || child->deadline_event == NULL ||
        event_add(child->data_event, NULL) != 0 || event_add(child->text_event, NULL) != 0 ||
        event_add(child->deadline_event, &deadline) != 0)
        return PMIXFAB_ERR_NOMEM;
    return PMIXFAB_OK;
}

int child_start(struct event_base *base, const struct child_order *order, struct child **out,
                struct fab_err *err)
{
    *out = NULL;
    struct child *child = calloc(1, sizeof(*child));
    if (child == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", order->what);
    snprintf(child->what, sizeof(child->what), "%s", order->what);
    child->data_fd = child->text_fd = -1;
    child->done = order->done;
    child->cbdata = order->cbdata;
    child->total = order->total;
    child->limit = order->limit;
    child->deadline = order->deadline;
    clock_gettime(CLOCK_MONOTONIC, &child->start);
    /* The handler for SIGCHLD stands before there is a child that could end. */
    child->child_event = evsignal_new(base, SIGCHLD, on_child, child);
    if (child->child_event == NULL || event_add(child->child_event, NULL) != 0) {
        child_free(child);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: no event", order->what);
    }
    int rc = start_child(child, order, err);
    if (rc != PMIXFAB_OK) {
        child_free(child);
        return rc;
    }
    if (listen_to_child(child, base) != PMIXFAB_OK) {
        child_cancel(child);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: no event", order->what);
    }
    *out = child;
    return PMIXFAB_OK;
}
