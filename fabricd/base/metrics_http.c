/*
 * metrics_http.c - GET /metrics, and nothing else, by libevent's HTTP server. A connection answers one
 * request, and is cut after a while; beyond MAX_CONNECTIONS the next ones wait in the kernel.
 */
#include "fabricd/base/metrics_http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "fabricd/base/address.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"

#define MAX_CONNECTIONS 16
#define LIFE_S          5 /* however slowly the other end talks */
#define MAX_HEADERS     8192
#define TEXT_US         1000000 /* for so long a text is told again: callers cannot keep the loop busy */

/* A connection, until libevent says that it has ended, which it does of one with a request; else for LIFE_S.
 */
struct guest {
    struct metrics_http *http;
    struct bufferevent *bev; /* a reference of ours: it outlives the connection */
    struct timer *timer;
    LIST_ENTRY(guest) entry;
};

struct metrics_http {
    struct evhttp *server;
    struct evconnlistener *listener;
    metrics_fn tell;
    const void *owner;
    char *text[2];   /* what was told last: plain, and in OpenMetrics' format */
    int64_t made[2]; /* when, CLOCK_MONOTONIC */
    unsigned n;
    LIST_HEAD(, guest) guests;
};

/* ---- connections ---------------------------------------------------------------------------------- */

static void guest_leave(struct guest *guest)
{
    struct metrics_http *http = guest->http;
    LIST_REMOVE(guest, entry);
    timer_free(guest->timer);
    bufferevent_decref(guest->bev);
    free(guest);
    http->n--;
    if (http->listener != NULL)
        evconnlistener_enable(http->listener);
}

static void guest_has_ended(struct evhttp_connection *connection, void *arg)
{
    struct metrics_http *http = arg;
    struct guest *guest;
    LIST_FOREACH(guest, &http->guests, entry)
    if (guest->bev == evhttp_connection_get_bufferevent(connection))
        break;
    if (guest != NULL)
        guest_leave(guest);
}

/* Is it there still, its server sees its end. */
static void guest_is_late(void *arg)
{
    struct guest *guest = arg;
    bufferevent_data_cb reads, writes;
    bufferevent_event_cb tells;
    void *cbdata;
    bufferevent_getcb(guest->bev, &reads, &writes, &tells, &cbdata); /* all NULL: it was freed */
    if (reads != NULL || writes != NULL || tells != NULL)
        shutdown(bufferevent_getfd(guest->bev), SHUT_RDWR);
    guest_leave(guest);
}

/* libevent 2.1 has no bound on connections of its own. */
static struct bufferevent *guest_comes(struct event_base *base, void *arg)
{
    struct metrics_http *http = arg;
    struct guest *guest = calloc(1, sizeof(*guest));
    struct bufferevent *bev = bufferevent_socket_new(base, -1, 0); /* the server closes the descriptor */
    if (guest == NULL || bev == NULL || (guest->timer = timer_new(base, guest_is_late, guest)) == NULL) {
        free(guest);
        return bev; /* NULL: libevent makes one itself */
    }
    guest->http = http;
    guest->bev = bev;
    bufferevent_incref(bev);
    LIST_INSERT_HEAD(&http->guests, guest, entry);
    timer_after(guest->timer, LIFE_S * 1000);
    if (++http->n == MAX_CONNECTIONS)
        evconnlistener_disable(http->listener);
    return bev;
}

/* ---- answers -------------------------------------------------------------------------------------- */

static const char *http_text(struct metrics_http *http, bool open)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    if (http->text[open] == NULL || now - http->made[open] >= TEXT_US) {
        free(http->text[open]);
        http->text[open] =
            open ? metrics_open_text(http->tell, http->owner) : metrics_text(http->tell, http->owner);
        http->made[open] = now;
    }
    return http->text[open];
}

static void http_refuse(struct evhttp_request *request, void *arg)
{
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), guest_has_ended, arg);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

static void metrics_http_answer(struct evhttp_request *request, void *arg)
{
    struct metrics_http *http = arg;
    const char *accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
    const bool open = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    const char *text = http_text(http, open);
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), guest_has_ended, http);
    evhttp_add_header(headers, "Connection", "close");
    if (text == NULL || evbuffer_add(evhttp_request_get_output_buffer(request), text, strlen(text)) != 0) {
        evhttp_send_error(request, HTTP_INTERNAL, NULL);
        return;
    }
    evhttp_add_header(headers, "Content-Type",
                      open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                           : "text/plain; version=0.0.4; charset=utf-8");
    evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

/* ---- the server ----------------------------------------------------------------------------------- */

int metrics_http_new(struct event_base *base, const char *listen, metrics_fn tell, const void *owner,
                     struct metrics_http **out, struct fab_err *err)
{
    char host[INET6_ADDRSTRLEN];
    uint16_t port;
    *out = NULL;
    int rc = address_parse(listen, host, &port, err);
    if (rc != PMIXFAB_OK)
        return rc;
    struct metrics_http *http = calloc(1, sizeof(*http));
    if (http == NULL || (http->server = evhttp_new(base)) == NULL) {
        free(http);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    http->tell = tell;
    http->owner = owner;
    LIST_INIT(&http->guests);
    evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET);
    evhttp_set_max_headers_size(http->server, MAX_HEADERS);
    evhttp_set_max_body_size(http->server, 0);
    evhttp_set_timeout(http->server, LIFE_S);
    evhttp_set_bevcb(http->server, guest_comes, http);
    evhttp_set_gencb(http->server, http_refuse, http);
    errno = 0;
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http->server, host, port);
    if (bound == NULL || evhttp_set_cb(http->server, "/metrics", metrics_http_answer, http) != 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO,
                      "%.80s: %s: is another program there, or is the address another host's?", listen,
                      strerror(errno));
        metrics_http_free(http);
        return rc;
    }
    http->listener = evhttp_bound_socket_get_listener(bound);
    *out = http;
    return PMIXFAB_OK;
}

void metrics_http_free(struct metrics_http *http)
{
    if (http == NULL)
        return;
    http->listener = NULL;
    evhttp_free(http->server);
    while (!LIST_EMPTY(&http->guests))
        guest_leave(LIST_FIRST(&http->guests));
    free(http->text[0]);
    free(http->text[1]);
    free(http);
}
