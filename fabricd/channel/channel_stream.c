/* channel_stream.c - TCP connections of the nodes' channel, on the loop. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/timer.h"
#include "fabricd/channel/channel_priv.h"

#define NO_ROOM_MS   200 /* pause of accepting connections when no descriptor is left */
#define BACKLOG      4096
#define READ_AT_MOST 65536 /* bytes of a connection in one turn of the loop, so that others get a turn */

struct stream {
    struct bufferevent *bev;
    struct stream_calls calls;
    void *cbdata;
};

/* ---- a connection --------------------------------------------------------------------------------- */

static void stream_on_bytes(struct bufferevent *bev, void *arg)
{
    struct stream *stream = arg;
    stream->calls.bytes(bufferevent_get_input(bev), stream->cbdata);
}

static void stream_on_sent(struct bufferevent *bev, void *arg)
{
    struct stream *stream = arg;
    (void)bev;
    if (stream->calls.sent != NULL)
        stream->calls.sent(stream->cbdata);
}

static void stream_on_event(struct bufferevent *bev, short what, void *arg)
{
    struct stream *stream = arg;
    const int code = EVUTIL_SOCKET_ERROR();
    const int on = 1;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        stream->calls.connected(stream->cbdata);
        return;
    }
    const bool ended = (what & BEV_EVENT_EOF) != 0 || code == 0;
    stream->calls.lost(ended ? "it closed the connection" : evutil_socket_error_to_string(code),
                       stream->cbdata);
}

static struct stream *stream_new(struct event_base *base, evutil_socket_t fd)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    const int options = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS;
    if (stream == NULL || (stream->bev = bufferevent_socket_new(base, fd, options)) == NULL) {
        free(stream);
        return NULL;
    }
    bufferevent_set_max_single_read(stream->bev, READ_AT_MOST);
    return stream;
}

void stream_use(struct stream *stream, const struct stream_calls *calls, void *cbdata)
{
    stream->calls = *calls;
    stream->cbdata = cbdata;
    bufferevent_setcb(stream->bev, stream_on_bytes, stream_on_sent, stream_on_event, stream);
    bufferevent_enable(stream->bev, EV_READ | EV_WRITE);
}

struct stream *stream_connect(struct event_base *base, const union credential_address *to,
                              const struct stream_calls *calls, void *cbdata)
{
    struct stream *stream = stream_new(base, -1);
    const int size = to->any.sa_family == AF_INET6 ? sizeof(to->v6) : sizeof(to->v4);
    if (stream == NULL)
        return NULL;
    stream_use(stream, calls, cbdata);
    if (bufferevent_socket_connect(stream->bev, &to->any, size) == 0)
        return stream;
    stream_close(stream);
    return NULL;
}

struct evbuffer *stream_out(struct stream *stream)
{
    return bufferevent_get_output(stream->bev);
}

void stream_close(struct stream *stream)
{
    if (stream == NULL)
        return;
    bufferevent_free(stream->bev);
    free(stream);
}

/* ---- listening ------------------------------------------------------------------------------------ */

struct stream_listener {
    struct event_base *base;
    struct evconnlistener *listener;
    struct timer *again;
    stream_accept_fn accept;
    void *cbdata;
};

static void listener_on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
                               int size, void *arg)
{
    const struct stream_listener *l = arg;
    struct stream *stream = stream_new(l->base, fd);
    const char *mapped = "::ffff:"; /* prefix of an IPv4 address in an IPv6 socket */
    char text[CHANNEL_ADDRESS] = "?";
    const int on = 1;
    (void)listener;
    if (stream == NULL) {
        evutil_closesocket(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    getnameinfo(from, (socklen_t)size, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
    const bool is_mapped = strncmp(text, mapped, strlen(mapped)) == 0 && strchr(text, '.') != NULL;
    l->accept(stream, is_mapped ? text + strlen(mapped) : text, l->cbdata);
}

static void listener_on_error(struct evconnlistener *listener, void *arg)
{
    struct stream_listener *l = arg;
    evconnlistener_disable(listener);
    timer_after(l->again, NO_ROOM_MS);
}

static void listener_on_again(void *arg)
{
    struct stream_listener *l = arg;
    evconnlistener_enable(l->listener);
}

/* Listen at all addresses. One IPv6 socket also covers IPv4. Without IPv6, use an IPv4 socket. */
static int listener_bind(struct stream_listener *l, const char *address, uint16_t port)
{
    const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (address == NULL)
        l->listener = evconnlistener_new_bind(l->base, listener_on_accept, l, flags, BACKLOG,
                                              (struct sockaddr *)&six, sizeof(six));
    if (l->listener == NULL && (address == NULL || inet_pton(AF_INET, address, &four.sin_addr) == 1))
        l->listener = evconnlistener_new_bind(l->base, listener_on_accept, l, flags, BACKLOG,
                                              (struct sockaddr *)&four, sizeof(four));
    return l->listener == NULL ? errno : 0;
}

int stream_listen(struct event_base *base, const char *address, uint16_t port, stream_accept_fn accept,
                  void *cbdata, struct stream_listener **out, struct fab_err *err)
{
    struct stream_listener *l = *out = calloc(1, sizeof(*l));
    if (l == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    *l = (struct stream_listener){.base = base, .accept = accept, .cbdata = cbdata};
    int code = ENOMEM;
    if ((l->again = timer_new(base, listener_on_again, l)) != NULL)
        code = listener_bind(l, address, port);
    if (code == 0) {
        evconnlistener_set_error_cb(l->listener, listener_on_error);
        return PMIXFAB_OK;
    }
    stream_listener_free(l);
    *out = NULL;
    return fab_fail(err, PMIXFAB_ERR_IO, "[nodes] listen: cannot listen at %s port %u for nodes: %s%s",
                    address == NULL ? "any address," : address, (unsigned)port, strerror(code),
                    code == EADDRINUSE ? ": choose another port" : "");
}

uint16_t stream_port(const struct stream_listener *listener)
{
    union credential_address own = {.v6 = {.sin6_family = AF_UNSPEC}};
    socklen_t size = sizeof(own);
    if (getsockname(evconnlistener_get_fd(listener->listener), &own.any, &size) != 0)
        return 0;
    return ntohs(own.any.sa_family == AF_INET6 ? own.v6.sin6_port : own.v4.sin_port);
}

void stream_listener_free(struct stream_listener *listener)
{
    if (listener == NULL)
        return;
    if (listener->listener != NULL)
        evconnlistener_free(listener->listener);
    timer_free(listener->again);
    free(listener);
}
