#include "fabricd/host/output.h"

#include <errno.h>
#include <pmix.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/util/log.h"

#define MOST_LINE 65536 /* a longer one goes out in pieces */

/* ---- to those who ask --------------------------------------------------------------------------- */

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
}

/* ---- to us -------------------------------------------------------------------------------------- */

static void output_write(int fd, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return; /* nobody reads it any more */
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

/* The first bytes of what has come: a line, or what there is of one. */
static void output_give(struct host_stream *stream, size_t size)
{
    const char *text = (const char *)evbuffer_pullup(stream->line, (ev_ssize_t)size);
    if (text != NULL && stream->proc->job->forward)
        output_deliver(stream, text, size);
    else if (text != NULL)
        output_show(stream, text, size);
    evbuffer_drain(stream->line, size);
}

static void output_lines(struct host_stream *stream)
{
    struct evbuffer_ptr end;
    while ((end = evbuffer_search(stream->line, "\n", 1, NULL)).pos >= 0)
        output_give(stream, (size_t)end.pos + 1);
    if (evbuffer_get_length(stream->line) >= MOST_LINE)
        output_give(stream, evbuffer_get_length(stream->line));
}

/* False: no more comes, or not now. */
static bool output_read(struct host_stream *stream, bool *ended)
{
    const int n = evbuffer_read(stream->line, event_get_fd(stream->readable), MOST_LINE);
    *ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n > 0)
        output_lines(stream);
    return n > 0;
}

static void output_end(struct host_stream *stream)
{
    if (evbuffer_get_length(stream->line) > 0)
        output_give(stream, evbuffer_get_length(stream->line));
    output_close(stream);
}

static void output_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct host_stream *stream = arg;
    bool ended;
    (void)fd, (void)what;
    if (!output_read(stream, &ended) && ended)
        output_end(stream);
}

void output_drain(struct host_stream *stream)
{
    bool ended;
    if (stream->readable == NULL)
        return;
    while (output_read(stream, &ended))
        ;
    output_end(stream);
}

bool output_open(struct event_base *base, struct host_stream *stream, struct host_proc *proc,
                 pmix_iof_channel_t channel, int fd)
{
    *stream = (struct host_stream){.proc = proc, .channel = channel, .line = evbuffer_new()};
    stream->readable = event_new(base, fd, EV_READ | EV_PERSIST, output_on_readable, stream);
    if (stream->readable == NULL)
        close(fd);
    if (stream->line != NULL && stream->readable != NULL && event_add(stream->readable, NULL) == 0)
        return true;
    output_close(stream);
    return false;
}

void output_close(struct host_stream *stream)
{
    if (stream->readable != NULL) {
        const int fd = event_get_fd(stream->readable);
        event_free(stream->readable);
        close(fd);
    }
    stream->readable = NULL;
    if (stream->line != NULL)
        evbuffer_free(stream->line);
    stream->line = NULL;
}
