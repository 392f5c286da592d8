/* child.c - what a child says, and its end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "fabricd/process/child_state.h"

void child_close(int *fd)
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

void child_free(struct child *child)
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

/* Until it has ended, which is left to be waited for, or has had its time. */
static void let_end(const struct child *child)
{
    siginfo_t info = {0};
    while (milliseconds_since(child->left) < CHILD_LEAVE) {
        if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ? errno != EINTR
                                                                                     : info.si_pid != 0)
            return;
        clock_sleep(1000);
    }
    log_debug("%s: it does not end by itself, and is killed", child->what);
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

/* Its group, and itself: it may have left that. It was not waited for, so the number is still its own. */
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
    close_pipes(child); /* nor can it wait for us: what it writes or reads is an error from here on */
    child->leaves = true;
    child->left = clock_now(CLOCK_MONOTONIC);
    if (ask)
        child_ask_to_end(child);
}

/* ---- what the child says ------------------------------------------------------------------------ */

/* A program of the site's may say what it likes, but not fill the log. */
static void foreign_line(struct child *child, const char *line)
{
    if (line[0] == '\0')
        return;
    snprintf(child->chatter, sizeof(child->chatter), "%.199s", line);
    if (child->lines++ < CHILD_LINES)
        log_info("%s: %s", child->what, line);
    else if (child->lines == CHILD_LINES + 1)
        log_warning("%s: it says more than %d lines: the rest is left out", child->what, CHILD_LINES);
}

/* A line of the child's standard error: a note of a probe begins with its level, the rest is chatter of
 * libraries, of interest only to somebody who looks for a fault. */
static void child_line(struct child *child, const char *line)
{
    if (child->order.program != NULL && !child->order.ours) { /* its lines are its own */
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

/* ---- what it is told ---------------------------------------------------------------------------- */

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
    end_watch(&child->input_watch); /* it has read all, or reads no more, which is its own affair */
    child_close(&child->input_fd);
}

/* ---- the end ------------------------------------------------------------------------------------ */

/* How it ended, in one line where it is no good end. */
static int child_explain(const struct child *child, struct fab_err *err)
{
    const char *what = child->what;
    if (child->timed_out)
        return fab_fail(err, PMIXFAB_ERR_TIMEOUT, "%s: not done after %u s, killed", what,
                        child->order.deadline);
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
    for (int i = 0; i < 16 && child->text_watch != NULL; i++) /* its last words may still be in the pipe */
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

/* Room for what the beginning announces, so that a subnet of any size is read without growing bit by bit. */
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
    kill(-child->pid, SIGKILL); /* and whatever it started, which could hold the pipe open */
    if (child->timed_out)
        stop_reading(child);
    finish_if_over(child);
}

static void on_deadline(void *arg)
{
    struct child *child = arg;
    child->timed_out = true;
    if (!child->reaped) {
        child_kill(child); /* the rest follows from SIGCHLD */
        return;
    }
    stop_reading(child); /* something that left its group holds the pipe open */
    finish_if_over(child);
}

/* ---- on the loop -------------------------------------------------------------------------------- */

int child_watch(struct child *child, struct event_base *base)
{
    child->child_watch = watch_signal(base, SIGCHLD, child_on_sigchld, child);
    return child->child_watch == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

int child_listen(struct child *child, struct event_base *base)
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
