/* rank_output.c - output of processes, line by line. */
#include <errno.h>
#include <limits.h>
#include <pmix.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fabric-host/job/jobs.h"
#include "fabricd/base/log.h"
#include "fabricd/base/watch.h"
#include "pmix/relay/thread.h"

#define MOST_LINE       65536             /* a longer line is sent in pieces */
#define PATIENCE_TENTHS 20                /* tenths of a second that a slow reader is waited for */
#define MOST_GIVEN      ((size_t)1 << 20) /* bytes that may be queued for the library's thread */

/* ---- output to other processes ------------------------------------------------------------------ */

struct delivery {
    pmix_proc_t source;
    pmix_byte_object_t bytes;
    char text[];
};

static void delivery_free(pmix_status_t status, void *cbdata)
{
    (void)status;
    free(cbdata);
}

static void output_deliver(const struct host_stream *stream, const char *text, size_t size)
{
    static size_t given; /* since the last wait for the library's thread */
    struct delivery *delivery = malloc(sizeof(*delivery) + size);
    if (delivery == NULL) {
        log_error("out of memory: output is lost");
        return;
    }
    memcpy(delivery->text, text, size);
    PMIX_LOAD_PROCID(&delivery->source, stream->proc->job->nspace, stream->proc->rank);
    delivery->bytes = (pmix_byte_object_t){.bytes = delivery->text, .size = size};
    if (PMIx_server_IOF_deliver(&delivery->source, stream->channel, &delivery->bytes, NULL, 0, delivery_free,
                                delivery) != PMIX_SUCCESS)
        free(delivery);
    given += size;
    if (given < MOST_GIVEN)
        return;
    fab_wait_for_pmix_thread();
    given = 0;
}

/* ---- our own output ----------------------------------------------------------------------------- */

static volatile sig_atomic_t output_ends;

void output_will_end(void)
{
    output_ends = 1;
}

/* Wait until output can be written: a slow reader blocks the loop. False: the host ends, and nothing is read.
 */
static bool output_wait(int fd)
{
    static bool unread;
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    int n = poll(&writable, 1, 0), left = PATIENCE_TENTHS;
    while (n <= 0 && !unread) {
        n = poll(&writable, 1, 100);
        unread = n <= 0 && output_ends != 0 && left-- == 0;
    }
    return n > 0;
}

static void output_write(int fd, const char *text, size_t size)
{
    while (size > 0 && output_wait(fd)) {
        /* If any byte can be written, so many can; a larger write would block. */
        const ssize_t n = write(fd, text, size < PIPE_BUF ? size : PIPE_BUF);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return; /* the reader has closed it */
        else if (n > 0)
            text += n, size -= (size_t)n;
    }
}

static void output_show(const struct host_stream *stream, const char *text, size_t size)
{
    const struct host_job *job = stream->proc->job;
    const bool err = stream->channel == PMIX_FWD_STDERR_CHANNEL;
    char tag[PMIX_MAX_NSLEN + 32];
    if (job->tagged) {
        const int len = snprintf(tag, sizeof(tag), "[%s,%u]<%s>: ", job->nspace, stream->proc->rank,
                                 err ? "stderr" : "stdout");
        output_write(err ? STDERR_FILENO : STDOUT_FILENO, tag, (size_t)len);
    }
    output_write(err ? STDERR_FILENO : STDOUT_FILENO, text, size);
}

/* ---- lines -------------------------------------------------------------------------------------- */

/* Write each line, with its tag if configured. */
static void output_show_lines(const struct host_stream *stream, const char *text, size_t size)
{
    while (stream->proc->job->tagged && size > 0) {
        const char *end = memchr(text, '\n', size);
        const size_t line = end == NULL ? size : (size_t)(end - text) + 1;
        output_show(stream, text, line);
        text += line, size -= line;
    }
    if (size > 0)
        output_show(stream, text, size);
}

static void output_pass(const struct host_stream *stream, const char *text, size_t size)
{
    const struct host_job *job = stream->proc->job;
    if (((job->away | job->pulled) & stream->channel) != 0)
        output_deliver(stream, text, size);
    if ((job->away & stream->channel) == 0)
        output_show_lines(stream, text, size);
}

/* Forward the first bytes of the input: whole lines, or the part of a line that is there. */
static void output_give(struct host_stream *stream, size_t size)
{
    const char *text = (const char *)evbuffer_pullup(stream->line, (ev_ssize_t)size);
    if (text != NULL)
        output_pass(stream, text, size);
    evbuffer_drain(stream->line, size);
}

void output_text(const struct host_proc *proc, pmix_iof_channel_t channel, const char *text, size_t size)
{
    const bool err = channel == PMIX_FWD_STDERR_CHANNEL;
    if (proc != NULL)
        output_pass(&proc->out[err], text, size);
    else
        output_write(err ? STDERR_FILENO : STDOUT_FILENO, text, size);
}

static void output_lines(struct host_stream *stream)
{
    const size_t size = evbuffer_get_length(stream->line);
    const char *text = (const char *)evbuffer_pullup(stream->line, -1);
    const char *end = text == NULL ? NULL : memrchr(text, '\n', size);
    if (end != NULL)
        output_give(stream, (size_t)(end - text) + 1);
    if (evbuffer_get_length(stream->line) >= MOST_LINE)
        output_give(stream, evbuffer_get_length(stream->line));
}

/* Return how much was read; 0 or less: the end, or nothing now. */
static int output_read(struct host_stream *stream, bool *ended)
{
    const int n = evbuffer_read(stream->line, watch_fd(stream->readable), MOST_LINE);
    *ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n > 0)
        output_lines(stream);
    return n;
}

static void output_end(struct host_stream *stream)
{
    if (evbuffer_get_length(stream->line) > 0)
        output_give(stream, evbuffer_get_length(stream->line));
    output_close(stream);
}

static void output_on_readable(int fd, void *arg)
{
    struct host_stream *stream = arg;
    bool ended;
    (void)fd;
    if (output_read(stream, &ended) <= 0 && ended)
        output_end(stream);
}

void output_drain(struct host_stream *stream)
{
    bool ended;
    int there = 0, n = 1;
    if (stream->readable == NULL)
        return;
    /* Other processes may have the same pipe open and still write to it. */
    ioctl(watch_fd(stream->readable), FIONREAD, &there);
    for (; there > 0 && n > 0; there -= n)
        n = output_read(stream, &ended);
    output_end(stream);
}

bool output_open(struct event_base *base, struct host_stream *stream, struct host_proc *proc,
                 pmix_iof_channel_t channel, int fd)
{
    *stream = (struct host_stream){.proc = proc, .channel = channel, .line = evbuffer_new()};
    stream->readable = watch_new(base, fd, WATCH_READ, output_on_readable, stream);
    if (stream->readable == NULL)
        close(fd);
    if (stream->line != NULL && stream->readable != NULL)
        return true;
    output_close(stream);
    return false;
}

void output_close(struct host_stream *stream)
{
    if (stream->readable != NULL) {
        const int fd = watch_fd(stream->readable);
        watch_free(stream->readable);
        close(fd);
    }
    stream->readable = NULL;
    if (stream->line != NULL)
        evbuffer_free(stream->line);
    stream->line = NULL;
}
