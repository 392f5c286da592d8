/*
 * tcp.c - connections of nodes to the scheduler, played: bytes go from one end to the other without time, and
 * a connection is made when the way is whole and the scheduler listens. Stands in for
 * fabricd/channel/channel_stream.c.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/timer.h"
#include "fabricd/channel/channel_priv.h"
#include "test/sim/nodes.h"

#define CONNECTS (100 * SIM_MS) /* so long does it take */

struct stream {
    struct stream *prev, *next;
    struct stream *other;  /* NULL: it is not connected, or the other end is closed */
    struct sim_node *node; /* of a node's end */
    struct stream_calls calls;
    void *cbdata;
    struct evbuffer *in, *out;
    struct timer *step, *connects;
    bool connected, lost; /* there is this to tell */
};

struct stream_listener {
    stream_accept_fn accept;
    void *cbdata;
    struct event_base *base;
};

static struct {
    struct stream_listener *listener;
    struct stream *streams;
} tcp;

void tcp_begin(void)
{
    tcp.listener = NULL;
    tcp.streams = NULL;
}

/* ---- an end --------------------------------------------------------------------------------------- */

void stream_close(struct stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->other != NULL) {
        stream->other->other = NULL;
        stream->other->lost = true;
        timer_fire(stream->other->step);
    }
    DL_DELETE(tcp.streams, stream);
    timer_free(stream->step);
    timer_free(stream->connects);
    evbuffer_free(stream->in);
    evbuffer_free(stream->out);
    free(stream);
}

/* One thing at a time: whoever is called may close it. */
static void stream_on_step(void *arg)
{
    struct stream *stream = arg;
    if (stream->connected) {
        stream->connected = false;
        timer_fire(stream->step);
        stream->calls.connected(stream->cbdata);
    } else if (stream->other != NULL && evbuffer_get_length(stream->out) > 0) {
        evbuffer_add_buffer(stream->other->in, stream->out);
        timer_fire(stream->other->step);
        timer_fire(stream->step);
        if (stream->calls.sent != NULL)
            stream->calls.sent(stream->cbdata);
    } else if (evbuffer_get_length(stream->in) > 0) {
        if (stream->lost)
            timer_fire(stream->step);
        stream->calls.bytes(stream->in, stream->cbdata);
    } else if (stream->lost) {
        stream->lost = false;
        stream->calls.lost("it hung up", stream->cbdata);
    }
}

static void stream_on_out(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
    struct stream *stream = arg;
    (void)out;
    if (info->n_added > 0)
        timer_fire(stream->step);
}

static struct stream *stream_new(struct event_base *base)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL)
        sim_fail("out of memory");
    stream->in = evbuffer_new();
    stream->out = evbuffer_new();
    stream->step = timer_new(base, stream_on_step, stream);
    evbuffer_add_cb(stream->out, stream_on_out, stream);
    DL_APPEND(tcp.streams, stream);
    return stream;
}

void stream_use(struct stream *stream, const struct stream_calls *calls, void *cbdata)
{
    stream->calls = *calls;
    stream->cbdata = cbdata;
}

struct evbuffer *stream_out(struct stream *stream)
{
    return stream->out;
}

/* ---- a connection is made ------------------------------------------------------------------------- */

static void stream_on_connects(void *arg)
{
    struct stream *stream = arg;
    struct stream *other = stream_new(tcp.listener->base);
    struct in_addr from;
    sim_address(node_host(stream->node), &from);
    stream->other = other;
    other->other = stream;
    stream->connected = true;
    timer_fire(stream->step);
    tcp.listener->accept(other, credential_address_text(from).text, tcp.listener->cbdata);
}

static void stream_check(struct stream *stream)
{
    const bool can = tcp.listener != NULL && !node_is_cut(stream->node);
    if (can && stream->other == NULL && !stream->lost)
        timer_after_us(stream->connects, CONNECTS);
    else if (!can)
        timer_cancel(stream->connects);
    if (can || stream->other == NULL)
        return;
    stream->other->lost = stream->lost = true;
    timer_fire(stream->step);
    timer_fire(stream->other->step);
    stream->other->other = NULL;
    stream->other = NULL;
}

struct stream *stream_connect(struct event_base *base, const union credential_address *to,
                              const struct stream_calls *calls, void *cbdata)
{
    struct stream *stream = stream_new(base);
    (void)to;
    stream->node = node_running();
    stream->connects = timer_new(NULL, stream_on_connects, stream);
    stream_use(stream, calls, cbdata);
    stream_check(stream);
    return stream;
}

void tcp_check(void)
{
    struct stream *stream;
    DL_FOREACH(tcp.streams, stream)
    {
        if (stream->node != NULL)
            stream_check(stream);
    }
}

int stream_listen(struct event_base *base, const char *address, uint16_t port, stream_accept_fn accept,
                  void *cbdata, struct stream_listener **out, struct fab_err *err)
{
    struct stream_listener *listener = *out = calloc(1, sizeof(*listener));
    (void)address, (void)port, (void)err;
    if (listener == NULL)
        sim_fail("out of memory");
    *listener = (struct stream_listener){accept, cbdata, base};
    tcp.listener = listener;
    tcp_check();
    return PMIXFAB_OK;
}

uint16_t stream_port(const struct stream_listener *listener)
{
    (void)listener;
    return 7135;
}

void stream_listener_free(struct stream_listener *listener)
{
    if (listener == NULL)
        return;
    tcp.listener = NULL;
    free(listener);
    tcp_check();
}
