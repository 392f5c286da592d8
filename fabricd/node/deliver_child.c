#include "fabricd/node/deliver_child.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uthash.h>

#include "fabricd/base/base64.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/node/node_deliver.h"
#include "topo/base/backoff.h"
#include "topo/model/delivery.h"

#define MAX_HOSTS      65536
#define MAX_BYTES      ((size_t)128 << 20)
#define MAX_LINE       65536 /* bytes of an answer */
#define FIRST_PAUSE_MS 100
#define MAX_PAUSE_MS   5000
#define ANSWER_SECONDS 30     /* fabricd stores the report before it answers */
#define LAST_US        800000 /* for waiting inventories at the end, if fabricd answers */

/* An inventory of a host, waiting for delivery. */
struct waiting {
    UT_hash_handle hh;
    size_t size;
    void *bytes;
    char host[FAB_HOST_MAX + 1];
};

struct deliverer {
    struct event_base *base;
    struct bufferevent *in, *out; /* out: NULL: not connected */
    struct timer *again;
    struct sockaddr_un address;
    unsigned max_hosts;
    size_t max_bytes, bytes;
    struct waiting *hosts; /* in order of arrival */
    struct waiting *asked; /* the delivery that waits for fabricd's answer; NULL: none */
    bool newer;            /* a newer inventory of that host has arrived meanwhile */
    struct backoff pause;  /* milliseconds */
    bool told;             /* the log has a line that fabricd is not reachable */
    bool ending;           /* the input is at its end */
};

enum outcome { TAKEN, REFUSED, LATER };

static void deliver_next(struct deliverer *d);

/* ---- waiting inventories ------------------------------------------------------------------------ */

static void drop_waiting(struct deliverer *d, struct waiting *waiting)
{
    HASH_DEL(d->hosts, waiting); /* NOLINT(clang-analyzer-unix.Malloc): no link to the freed entry is left */
    d->bytes -= waiting->size;
    free(waiting->bytes);
    free(waiting);
}

/* Replace the waiting inventory of this host. Takes the bytes, except on an error. */
static int keep_newest(struct deliverer *d, const char *host, void *bytes, size_t size, struct fab_err *err)
{
    struct waiting *waiting;
    HASH_FIND_STR(d->hosts, host, waiting);
    size_t others = d->bytes - (waiting == NULL ? 0 : waiting->size);
    if ((waiting == NULL && HASH_COUNT(d->hosts) >= d->max_hosts) || size > d->max_bytes - others)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: too many inventories are waiting for fabricd", host);
    if (waiting == NULL) {
        waiting = calloc(1, sizeof(*waiting));
        if (waiting == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", host);
        snprintf(waiting->host, sizeof(waiting->host), "%s", host);
        HASH_ADD_STR(d->hosts, host, waiting);
    }
    d->newer |= waiting == d->asked;
    free(waiting->bytes);
    waiting->bytes = bytes;
    waiting->size = size;
    d->bytes = others + size;
    return PMIXFAB_OK;
}

static void take_inventory(struct deliverer *d, struct evbuffer *in, size_t size)
{
    struct fab_err err = {"out of memory"};
    struct fab_delivery delivery;
    void *bytes = malloc(size + 1);
    int rc = PMIXFAB_ERR_NOMEM;
    if (bytes == NULL) {
        evbuffer_drain(in, size);
    } else {
        evbuffer_remove(in, bytes, size);
        rc = fab_delivery_decode(bytes, size, &delivery, &err);
    }
    if (rc == PMIXFAB_OK && delivery.base != 0)
        rc = fab_fail(&err, PMIXFAB_ERR_CONFLICT, "%s: a delta, not a full inventory", delivery.host);
    if (rc == PMIXFAB_OK)
        rc = keep_newest(d, delivery.host, bytes, size, &err);
    if (rc == PMIXFAB_OK)
        return;
    log_warning("inventory refused: %s", err.text);
    free(bytes);
}

/* ---- the answer --------------------------------------------------------------------------------- */

static void hang_up_out(struct deliverer *d)
{
    if (d->out != NULL)
        bufferevent_free(d->out);
    d->out = NULL;
}

static void tell_outcome(struct deliverer *d, enum outcome outcome, const char *why)
{
    const char *host = d->asked->host;
    if (outcome == REFUSED)
        log_warning("inventory of %s refused: %s", host, why);
    else if (outcome == LATER && !d->told)
        log_info("inventory of %s waits: %s", host, why);
    else if (outcome == TAKEN && d->told)
        log_info("inventory of %s accepted by fabricd", host);
    d->told = outcome == LATER;
}

static void end_attempt(struct deliverer *d, enum outcome outcome, const char *why)
{
    struct waiting *asked = d->asked;
    tell_outcome(d, outcome, why);
    d->asked = NULL;
    if (outcome != LATER) {
        if (!d->newer)
            drop_waiting(d, asked);
        backoff_reset(&d->pause);
        deliver_next(d);
        return;
    }
    HASH_DEL(d->hosts, asked); /* moves to the end of the queue */
    HASH_ADD_STR(d->hosts, host, asked);
    timer_after(d->again, backoff_next(&d->pause));
    if (d->ending)
        event_base_loopbreak(d->base);
}

/* Close the connection, so that a late answer is not read as that of the next inventory. */
static void fail_attempt(struct deliverer *d, const char *what)
{
    char why[300];
    snprintf(why, sizeof(why), "%s: %s", d->address.sun_path, what);
    hang_up_out(d);
    if (d->asked != NULL) /* otherwise an idle connection has ended */
        end_attempt(d, LATER, why);
}

static void read_answer(struct deliverer *d, const char *line, size_t len)
{
    json_t *answer = json_loadb(line, len, 0, NULL);
    const json_t *ok = json_object_get(answer, "ok"), *error = json_object_get(answer, "error"),
                 *message = json_object_get(answer, "message");
    int code = error == NULL ? PMIXFAB_ERR_IO : (int)json_integer_value(error);
    if (!json_is_object(answer) || (ok != NULL && !json_is_boolean(ok)) ||
        (error != NULL && !json_is_integer(error)) || (message != NULL && !json_is_string(message)))
        fail_attempt(d, "its answer is invalid");
    else if (json_is_true(ok))
        end_attempt(d, TAKEN, "");
    else if (ok != NULL) /* otherwise it is a progress message */
        end_attempt(d, deliver_may_pass(code) ? LATER : REFUSED,
                    message != NULL ? json_string_value(message) : pmixfab_strerror(code));
    json_decref(answer);
}

static void on_line(struct bufferevent *out, void *arg)
{
    struct deliverer *d = arg;
    char *line;
    size_t len;
    while (d->out == out && (line = evbuffer_readln(bufferevent_get_input(out), &len, EVBUFFER_EOL_LF))) {
        if (d->asked != NULL)
            read_answer(d, line, len);
        free(line);
    }
    if (d->out == out && evbuffer_get_length(bufferevent_get_input(out)) >= MAX_LINE)
        fail_attempt(d, "a line of its answer is too long");
}

static void on_lost(struct bufferevent *out, short what, void *arg)
{
    (void)out;
    if ((what & BEV_EVENT_TIMEOUT) != 0)
        fail_attempt(arg, (what & BEV_EVENT_WRITING) != 0 ? "it does not read" : "no answer");
    else if ((what & BEV_EVENT_READING) != 0) /* a reason sent before the close is read first */
        fail_attempt(arg, "it closed the connection before it answered");
}

/* ---- an attempt --------------------------------------------------------------------------------- */

static int connect_out(struct deliverer *d, struct fab_err *err)
{
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* On a UNIX socket, connect() succeeds or fails at once (EAGAIN: too many connections wait there). */
    if (fd < 0 || connect(fd, (struct sockaddr *)&d->address, sizeof(d->address)) != 0)
        fab_fail(err, PMIXFAB_ERR_UNREACH, "%s: %s: check that fabricd is running", d->address.sun_path,
                 strerror(errno));
    else if ((d->out = bufferevent_socket_new(d->base, fd, BEV_OPT_CLOSE_ON_FREE)) == NULL)
        fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (d->out == NULL) {
        if (fd >= 0)
            close(fd);
        return PMIXFAB_ERR_UNREACH;
    }
    bufferevent_setcb(d->out, on_line, NULL, on_lost, d);
    bufferevent_set_timeouts(d->out, &limit, &limit);
    bufferevent_enable(d->out, EV_READ | EV_WRITE);
    return PMIXFAB_OK;
}

static int send_out(struct deliverer *d, struct fab_err *err)
{
    int rc = d->out != NULL ? PMIXFAB_OK : connect_out(d, err);
    if (rc != PMIXFAB_OK)
        return rc;
    char *text = base64_encode(d->asked->bytes, d->asked->size);
    if (text == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    evbuffer_add_printf(bufferevent_get_output(d->out), "{\"op\":\"deliver\",\"bytes\":\"%s\"}\n", text);
    free(text);
    return PMIXFAB_OK;
}

/* Deliver the first waiting inventory, unless a delivery is running or a pause lasts. */
static void deliver_next(struct deliverer *d)
{
    struct fab_err err = {""};
    if (d->asked != NULL || timer_pending(d->again))
        return;
    if (d->hosts == NULL) {
        hang_up_out(d); /* an idle connection is not kept */
        if (d->ending)
            event_base_loopbreak(d->base);
        return;
    }
    d->asked = d->hosts;
    d->newer = false;
    if (send_out(d, &err) != PMIXFAB_OK)
        end_attempt(d, LATER, err.text);
}

static void on_pause_over(void *arg)
{
    deliver_next(arg);
}

/* ---- input -------------------------------------------------------------------------------------- */

static void on_in(struct bufferevent *bev, void *arg)
{
    struct deliverer *d = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    uint32_t size;
    while (evbuffer_copyout(in, &size, sizeof(size)) == sizeof(size) &&
           evbuffer_get_length(in) >= sizeof(size) + size) {
        evbuffer_drain(in, sizeof(size));
        take_inventory(d, in, size);
        deliver_next(d);
    }
}

static void on_in_over(struct bufferevent *bev, short what, void *arg)
{
    const struct timeval last = {.tv_usec = LAST_US};
    struct deliverer *d = arg;
    (void)bev, (void)what;
    d->ending = true;
    if (d->asked == NULL) /* nothing waits, or fabricd cannot be reached */
        event_base_loopbreak(d->base);
    else
        event_base_loopexit(d->base, &last);
}

/* ---- start and end ------------------------------------------------------------------------------ */

static bool set_up(struct deliverer *d, int fd)
{
    d->base = event_base_new();
    if (d->base == NULL)
        return false;
    d->again = timer_new(d->base, on_pause_over, d);
    evutil_make_socket_nonblocking(fd);
    d->in = bufferevent_socket_new(d->base, fd, 0);
    if (d->again == NULL || d->in == NULL)
        return false;
    bufferevent_setcb(d->in, on_in, NULL, on_in_over, d);
    return bufferevent_enable(d->in, EV_READ) == 0;
}

static void tear_down(struct deliverer *d)
{
    while (d->hosts != NULL)
        drop_waiting(d, d->hosts); /* NOLINT(clang-analyzer-unix.Malloc): uthash moves on */
    hang_up_out(d);
    if (d->in != NULL)
        bufferevent_free(d->in);
    timer_free(d->again);
    if (d->base != NULL)
        event_base_free(d->base);
}

int deliver_from(int fd, const char *rundir, unsigned max_hosts, size_t max_bytes)
{
    struct deliverer d = {.address = {.sun_family = AF_UNIX},
                          .max_hosts = max_hosts,
                          .max_bytes = max_bytes,
                          .pause = {.first = FIRST_PAUSE_MS, .most = MAX_PAUSE_MS}};
    const size_t room = sizeof(d.address.sun_path);
    int len = snprintf(d.address.sun_path, room, "%s/control.sock", rundir);
    if (len < 0 || (size_t)len >= room) {
        log_error("inventories refused: %s/control.sock: too long for a socket's name", rundir);
        return 1;
    }
    bool ready = set_up(&d, fd);
    if (ready)
        event_base_dispatch(d.base);
    else
        log_error("inventories refused: out of memory");
    if (d.hosts != NULL)
        log_warning("inventories dropped, not accepted by fabricd: %u", HASH_COUNT(d.hosts));
    tear_down(&d);
    return ready ? 0 : 1;
}

int deliver_child(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    log_open(PMIXFAB_LOG_INFO, 0);
    log_as("pnet:fabricd");
    return deliver_from(STDIN_FILENO, argv[2], MAX_HOSTS, MAX_BYTES);
}
