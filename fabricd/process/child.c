/*
 * child.c - start a child, read its output and handle its end. Also has the functions that all probe
 * children share.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "fabricd/process/child.h"
#include "fabricd/process/process.h"

#define PIPE_FD 3

extern char **environ;

struct child {
    char what[64];
    pid_t pid;
    int data_fd, text_fd, input_fd; /* -1: none */
    struct watch *data_watch, *text_watch, *input_watch, *child_watch;
    struct timer *deadline;
    struct child_order order; /* its input is the part that the child has not read; argv and env are unset */
    int64_t start, left;      /* microseconds; left: when child_leave() was called */
    unsigned lines; /* logged lines of a foreign program; of a child with `logs`, the lines of this second: */
    int64_t second;

    unsigned char *bytes; /* read from the pipe */
    size_t size, cap;
    bool ended;  /* the pipe is at its end */
    bool reaped; /* the child was waited for */
    bool leaves; /* child_leave() was called */
    bool timed_out;
    bool oversize;
    int status;
    char line[400]; /* the line of standard error that is being read */
    size_t line_len;
    char reason[400];  /* the last error note of the child */
    char chatter[200]; /* the last line that a library printed */
};

static void child_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void end_watch(struct watch **watch)
{
    watch_free(*watch);
    *watch = NULL;
}

static void close_pipes(struct child *child)
{
    end_watch(&child->data_watch);
    end_watch(&child->text_watch);
    end_watch(&child->input_watch);
    child_close(&child->data_fd);
    child_close(&child->text_fd);
    child_close(&child->input_fd);
}

static void child_free(struct child *child)
{
    close_pipes(child);
    timer_free(child->deadline);
    end_watch(&child->child_watch);
    free(child->bytes);
    free(child);
}

static double milliseconds_since(int64_t start)
{
    return (double)(clock_now(CLOCK_MONOTONIC) - start) / 1e3;
}

/* Wait until the child has ended, without reaping it, or until its time is over. */
static void let_end(const struct child *child)
{
    siginfo_t info = {0};
    while (milliseconds_since(child->left) < CHILD_LEAVE) {
        if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ? errno != EINTR
                                                                                     : info.si_pid != 0)
            return;
        clock_sleep(1000);
    }
    log_debug("%s: did not end in time: killed", child->what);
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

/* Kill the child's group, and the child itself, which may have left the group. It was not reaped, so its
 * number was not reused. */
static void child_kill(const struct child *child)
{
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);
}

void child_cancel(struct child *child)
{
    if (child == NULL)
        return;
    if (!child->reaped) {
        if (child->leaves)
            let_end(child);
        child_kill(child);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    child_free(child);
}

void child_ask_to_end(struct child *child)
{
    if (!child->reaped)
        kill(-child->pid, SIGTERM);
}

void child_leave(struct child *child, bool ask)
{
    if (child == NULL || child->leaves)
        return;
    close_pipes(child); /* the child cannot block on us: its next read or write fails */
    child->leaves = true;
    child->left = clock_now(CLOCK_MONOTONIC);
    if (ask)
        child_ask_to_end(child);
}

/* ---- the child's output ------------------------------------------------------------------------ */

/* A program of the site may print anything, but must not fill the log. */
static void foreign_line(struct child *child, const char *line)
{
    if (line[0] == '\0')
        return;
    snprintf(child->chatter, sizeof(child->chatter), "%.199s", line);
    if (child->lines++ < CHILD_LINES)
        log_info("%s: %s", child->what, line);
    else if (child->lines == CHILD_LINES + 1)
        log_warning("%s: more than %d lines of output: the rest is not logged", child->what, CHILD_LINES);
}

/* Process a line of the child's standard error. A note of a probe begins with its level. Other lines come
 * from libraries and are logged for debugging only. */
static void child_line(struct child *child, const char *line)
{
    if (child->order.program != NULL && !child->order.ours) { /* a foreign program has no notes */
        foreign_line(child, line);
    } else if (line[0] == '<' && line[1] >= '0' && line[1] <= '3' && line[2] == '>') {
        enum pmixfab_level level = (enum pmixfab_level)(line[1] - '0');
        const int64_t second = clock_now(CLOCK_MONOTONIC) / 1000000;
        if (second != child->second)
            child->lines = 0;
        child->second = second;
        if (child->order.logs && child->lines++ >= CHILD_LINES)
            return;
        if (level == PMIXFAB_LOG_ERROR && !child->order.logs)
            snprintf(child->reason, sizeof(child->reason), "%s", line + 3);
        else
            log_line(level, "%s: %s", child->what, line + 3);
    } else if (line[0] != '\0') {
        snprintf(child->chatter, sizeof(child->chatter), "%.199s", line);
        log_debug("%s: %s", child->what, line);
    }
}

static void on_text(int fd, void *arg)
{
    struct child *child = arg;
    char buffer[4096];
    ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        end_watch(&child->text_watch);
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

/* ---- the child's input -------------------------------------------------------------------------- */

static void on_input(int fd, void *arg)
{
    struct child *child = arg;
    ssize_t n = write(fd, child->order.input, child->order.input_size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        child->order.input += n;
        child->order.input_size -= (size_t)n;
    }
    if (n > 0 && child->order.input_size > 0)
        return;
    end_watch(&child->input_watch); /* all is written, or the child has stopped reading, which is no error */
    child_close(&child->input_fd);
}

/* ---- the end ------------------------------------------------------------------------------------ */

/* Return how the child ended; for an error, a message in err. */
static int child_explain(const struct child *child, struct fab_err *err)
{
    const char *what = child->what;
    if (child->timed_out)
        return fab_fail(err, PMIXFAB_ERR_TIMEOUT, "%s: timed out after %u s: killed", what,
                        child->order.deadline);
    if (child->oversize)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s: its output is too long, or does not match its head",
                        what);
    if (WIFSIGNALED(child->status))
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: the child was killed by signal %d (%s)%s%.200s", what,
                        WTERMSIG(child->status), strsignal(WTERMSIG(child->status)),
                        child->reason[0] != '\0' ? ": " : "", child->reason);
    if (WEXITSTATUS(child->status) == 0)
        return PMIXFAB_OK;
    int code = WEXITSTATUS(child->status) == CHILD_NOTHING ? PMIXFAB_ERR_UNSUPPORTED : PMIXFAB_ERR_IO;
    if (child->reason[0] != '\0')
        return fab_fail(err, code, "%s: %s", what, child->reason);
    /* A library has ended the process: the last line that it printed is the best hint. */
    return fab_fail(err, PMIXFAB_ERR_IO, "%s: the child ended with status %d; its last output was: %s", what,
                    WEXITSTATUS(child->status), child->chatter[0] != '\0' ? child->chatter : "none");
}

static void finish_if_over(struct child *child)
{
    if (!child->ended || !child->reaped)
        return;
    for (int i = 0; i < 16 && child->text_watch != NULL; i++) /* its last lines may still be in the pipe */
        on_text(child->text_fd, child);
    if (child->line_len > 0) {
        child->line[child->line_len] = '\0';
        child_line(child, child->line);
    }
    struct child_result result = {
        .bytes = child->bytes, .size = child->size, .milliseconds = milliseconds_since(child->start)};
    result.code = child_explain(child, &result.err);
    result.exit_status = !child->timed_out && WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;
    child->order.done(&result, child->order.cbdata);
    child->bytes = result.bytes; /* NULL: taken */
    child_free(child);
}

static void stop_reading(struct child *child)
{
    end_watch(&child->data_watch);
    child->ended = true;
}

/* Reserve the size that the header announces, so that a large answer is read without repeated growth. */
static int child_reserve(struct child *child)
{
    size_t want = 65536, total = 0;
    if (child->cap > 0) {
        if (child->order.total != NULL)
            total = child->order.total(child->bytes, child->size);
        if (total > child->order.limit || (total > 0 && total < child->size))
            return PMIXFAB_ERR_CORRUPT;
        want = total > 0 ? total : child->cap * 2;
    }
    if (want > child->order.limit)
        want = child->order.limit;
    want++; /* one byte more, to notice an oversized answer */
    if (want <= child->cap)
        return PMIXFAB_ERR_CORRUPT;
    unsigned char *bytes = realloc(child->bytes, want);
    if (bytes == NULL)
        return PMIXFAB_ERR_NOMEM;
    child->bytes = bytes;
    child->cap = want;
    return PMIXFAB_OK;
}

static void on_data(int fd, void *arg)
{
    struct child *child = arg;
    if (child->size == child->cap && child_reserve(child) != PMIXFAB_OK) {
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
        const size_t gone =
            child->order.said == NULL ? 0 : child->order.said(child->bytes, child->size, child->order.cbdata);
        memmove(child->bytes, child->bytes + gone, child->size - gone);
        child->size -= gone;
        return;
    }
    stop_reading(child);
    finish_if_over(child);
}

static void child_on_sigchld(int signo, void *arg)
{
    struct child *child = arg;
    (void)signo;
    pid_t pid = waitpid(child->pid, &child->status, WNOHANG);
    if (pid != child->pid)
        return;
    child->reaped = true;
    kill(-child->pid, SIGKILL); /* and its descendants, which could keep the pipe open */
    if (child->timed_out)
        stop_reading(child);
    finish_if_over(child);
}

static void on_deadline(void *arg)
{
    struct child *child = arg;
    child->timed_out = true;
    if (!child->reaped) {
        child_kill(child); /* SIGCHLD triggers the rest */
        return;
    }
    stop_reading(child); /* a descendant outside the group keeps the pipe open */
    finish_if_over(child);
}

/* ---- on the loop -------------------------------------------------------------------------------- */

static int child_watch(struct child *child, struct event_base *base)
{
    child->child_watch = watch_signal(base, SIGCHLD, child_on_sigchld, child);
    return child->child_watch == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

static int child_listen(struct child *child, struct event_base *base)
{
    const bool reads = child->data_fd >= 0, writes = child->input_fd >= 0;
    if (reads)
        child->data_watch = watch_new(base, child->data_fd, WATCH_READ, on_data, child);
    if (writes)
        child->input_watch = watch_new(base, child->input_fd, WATCH_WRITE, on_input, child);
    child->text_watch = watch_new(base, child->text_fd, WATCH_READ, on_text, child);
    child->deadline = timer_new(base, on_deadline, child);
    if ((reads && child->data_watch == NULL) || (writes && child->input_watch == NULL) ||
        child->text_watch == NULL || child->deadline == NULL)
        return PMIXFAB_ERR_NOMEM;
    if (child->order.deadline > 0)
        timer_after(child->deadline, child->order.deadline * 1000ll);
    return PMIXFAB_OK;
}

/* ---- the start: pipes, environment, descriptors ---- */

/* Return the daemon's environment with the configured additions, which replace variables of the same name. */
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

/* The child's ends of the pipes; -1: no such pipe. */
struct ends {
    int input, data, text;
};

/* The child has the pipe as descriptor 3, the text pipe as standard error, and no other descriptor. The
 * simulator's library, for example, crashes in a process with many descriptors. */
static int spawn_child(struct child *child, const struct child_order *order, char **env, struct ends ends)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    if (ends.input >= 0)
        posix_spawn_file_actions_adddup2(&actions, ends.input, STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends.text, STDERR_FILENO);
    if (ends.data >= 0)
        posix_spawn_file_actions_adddup2(&actions, ends.data, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions, ends.data >= 0 ? 4 : 3);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setpgroup(&attr, 0);
    if (order->program != NULL && !order->ours) { /* pipelines in it need the default signals */
        signals_ignored(&defaults);
        posix_spawnattr_setsigdefault(&attr, &defaults);
        flags |= POSIX_SPAWN_SETSIGDEF;
    }
    posix_spawnattr_setflags(&attr, flags);
    const char *program = order->program != NULL ? order->program : "/proc/self/exe";
    int rc = posix_spawn(&child->pid, program, &actions, &attr, order->argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (rc == 0 && !order->many)
        process_descriptors_of_child(child->pid);
    return rc;
}

/* Make a pipe. The child's end gets a high number, so that moving one end to descriptor 3 does not overwrite
 * another. */
static int make_pipe(bool child_reads, int *ours, int *childs)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    int theirs = child_reads ? fds[0] : fds[1];
    *ours = child_reads ? fds[1] : fds[0];
    *childs = fcntl(theirs, F_DUPFD_CLOEXEC, 16);
    close(theirs);
    evutil_make_socket_nonblocking(*ours);
    return *childs < 0 ? -1 : 0;
}

static int child_spawn(struct child *child, const struct child_order *order, struct fab_err *err)
{
    static const struct config_list nothing = {.n = 0};
    struct ends ends = {order->channel > 0 ? order->channel : -1, -1, -1};
    int rc = PMIXFAB_OK, failed;
    char **env = child_environment(order->env != NULL ? order->env : &nothing);
    if (env == NULL) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", child->what);
    } else if (((order->program == NULL || order->ours) &&
                make_pipe(false, &child->data_fd, &ends.data) != 0) ||
               make_pipe(false, &child->text_fd, &ends.text) != 0 ||
               (order->input != NULL && make_pipe(true, &child->input_fd, &ends.input) != 0)) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: no pipe: %s", child->what, strerror(errno));
    } else if ((failed = spawn_child(child, order, env, ends)) != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot start the child: %s", child->what, strerror(failed));
    }
    if (order->channel == 0)
        child_close(&ends.input);
    child_close(&ends.data);
    child_close(&ends.text);
    free(env);
    return rc;
}

int child_start(struct event_base *base, const struct child_order *order, struct child **out,
                struct fab_err *err)
{
    *out = NULL;
    struct child *child = calloc(1, sizeof(*child));
    if (child == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", order->what);
    snprintf(child->what, sizeof(child->what), "%s", order->what);
    child->data_fd = child->text_fd = child->input_fd = -1;
    child->order = *order;
    child->order.what = child->what;
    child->ended = order->program != NULL && !order->ours; /* a foreign program returns nothing */
    child->start = clock_now(CLOCK_MONOTONIC);
    /* Install the handler for SIGCHLD before a child exists. */
    if (child_watch(child, base) != PMIXFAB_OK) {
        child_free(child);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: no event", order->what);
    }
    int rc = child_spawn(child, order, err);
    if (rc != PMIXFAB_OK) {
        child_free(child);
        return rc;
    }
    if (child_listen(child, base) != PMIXFAB_OK) {
        child_cancel(child);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: no event", order->what);
    }
    *out = child;
    return PMIXFAB_OK;
}

/* ---- the child's side ---- */

bool child_begin(const char *daemon)
{
    const struct rlimit no_core = {0, 0};
    /* Do not outlive the daemon; it may have died before this call. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(daemon, NULL, 10))
        return false;
    setrlimit(RLIMIT_CORE, &no_core);
    setvbuf(stderr, NULL, _IOLBF, 0);
    return true;
}

/* The parent reads standard error line by line; the prefix of a line is its level. */
void child_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    fprintf(stderr, "<%d>%s\n", (int)level, line);
}

int child_read(void **bytes, size_t *size, size_t limit)
{
    size_t room = 1u << 16;
    char *buffer = malloc(room);
    *bytes = NULL;
    *size = 0;
    for (;;) {
        if (buffer != NULL && *size == room) {
            char *bigger = room > limit ? NULL : realloc(buffer, room * 2);
            if (bigger == NULL)
                free(buffer);
            buffer = bigger;
            room *= 2;
        }
        if (buffer == NULL)
            return *size > limit ? PMIXFAB_ERR_RANGE : PMIXFAB_ERR_NOMEM;
        const ssize_t n = read(STDIN_FILENO, buffer + *size, room - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            *bytes = buffer;
            if (n < 0)
                free(buffer);
            return n < 0 ? PMIXFAB_ERR_IO : PMIXFAB_OK;
        }
        *size += (size_t)n;
    }
}

int child_write(const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(PIPE_FD, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return PMIXFAB_ERR_IO;
        at += n;
        size -= (size_t)n;
    }
    return PMIXFAB_OK;
}
