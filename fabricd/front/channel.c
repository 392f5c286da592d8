#include "fabricd/front/channel.h"

#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topo/base/frame.h"

/* What is received may take its time, and other threads send meanwhile: not under the stream's lock. */
#define OPTIONS                                                                                              \
    (BEV_OPT_CLOSE_ON_FREE | BEV_OPT_THREADSAFE | BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS)

struct channel {
    struct bufferevent *stream;
    size_t max;
    struct channel_fns fns;
};

static void channel_end(struct channel *channel, const char *why)
{
    bufferevent_disable(channel->stream, EV_READ | EV_WRITE);
    channel->fns.closed(why, channel->fns.cbdata);
}

/* The length of the message that begins the buffer; 0: it is not there yet. */
static size_t next_length(struct evbuffer *in)
{
    uint8_t head[FRONT_HEAD];
    if (evbuffer_copyout(in, head, sizeof(head)) < (ev_ssize_t)sizeof(head))
        return 0;
    struct frame frame = {.at = head, .end = head + sizeof(head)};
    return (size_t)frame_get(&frame, FRONT_HEAD);
}

static bool channel_take(struct channel *channel, struct evbuffer *in, size_t length, const char **why)
{
    struct front_received received;
    const uint8_t *bytes = evbuffer_pullup(in, (ev_ssize_t)(FRONT_HEAD + length));
    int rc = bytes == NULL ? PMIXFAB_ERR_NOMEM : front_message_read(bytes + FRONT_HEAD, length, &received);
    if (rc != PMIXFAB_OK) {
        *why = rc == PMIXFAB_ERR_NOMEM ? "out of memory" : "what it says is no message";
        return false;
    }
    const bool good = channel->fns.received(&received.message, channel->fns.cbdata);
    front_message_free(&received);
    evbuffer_drain(in, FRONT_HEAD + length);
    *why = "it says what is not its to say";
    return good;
}

static void channel_on_read(struct bufferevent *stream, void *arg)
{
    struct channel *channel = arg;
    struct evbuffer *in = bufferevent_get_input(stream);
    const char *why = NULL;
    while (evbuffer_get_length(in) >= FRONT_HEAD) {
        const size_t length = next_length(in);
        if (length == 0 || length > channel->max) {
            channel_end(channel, "it announces a message of a size that none has");
            return;
        }
        if (evbuffer_get_length(in) < FRONT_HEAD + length)
            return;
        if (!channel_take(channel, in, length, &why)) {
            channel_end(channel, why);
            return;
        }
    }
}

static void channel_on_event(struct bufferevent *stream, short what, void *arg)
{
    (void)stream, (void)what;
    channel_end(arg, "it closed the connection");
}

int channel_new(struct event_base *base, int fd, size_t max, const struct channel_fns *fns,
                struct channel **out)
{
    struct channel *channel = calloc(1, sizeof(*channel));
    *out = channel;
    evutil_make_socket_nonblocking(fd);
    if (channel != NULL)
        channel->stream = bufferevent_socket_new(base, fd, OPTIONS);
    if (channel == NULL || channel->stream == NULL) {
        close(fd);
        free(channel);
        *out = NULL;
        return PMIXFAB_ERR_NOMEM;
    }
    channel->max = max;
    channel->fns = *fns;
    bufferevent_setcb(channel->stream, channel_on_read, NULL, channel_on_event, channel);
    bufferevent_enable(channel->stream, EV_READ | EV_WRITE);
    return PMIXFAB_OK;
}

void channel_free(struct channel *channel)
{
    if (channel == NULL)
        return;
    shutdown(bufferevent_getfd(channel->stream), SHUT_RDWR); /* it is closed when the loop runs next */
    bufferevent_free(channel->stream);
    free(channel);
}

void channel_send(struct channel *channel, const struct front_message *message)
{
    struct evbuffer *bytes = channel == NULL ? NULL : evbuffer_new();
    if (bytes == NULL)
        return;
    if (front_message_put(bytes, message) == PMIXFAB_OK)
        bufferevent_write_buffer(channel->stream, bytes);
    evbuffer_free(bytes);
}

size_t channel_waiting(struct channel *channel)
{
    return evbuffer_get_length(bufferevent_get_output(channel->stream));
}
