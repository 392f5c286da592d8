#include "fabricd/control/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/control/connection.h"
#include "topo/base/text.h"

/* ---- one connection ----------------------------------------------------------------------------- */

/* Note that a connection has input; it is served in its turn. */
static void connection_ready(struct connection *connection);

static void on_written(struct bufferevent *bev, void *arg)
{
    struct connection *connection = arg;
    (void)bev;
    if (connection_unread(connection) > 0)
        return;
    if (connection->closing)
        connection_free(connection);
    else
        connection_ready(connection); /* with the input that waited until our answers were read */
}

static void close_when_written(struct connection *connection)
{
    connection->closing = true;
    bufferevent_disable(connection->bev, EV_READ);
    on_written(connection->bev, connection);
}

/* Answers are longer than requests: without a reader no more are made. */
static bool reads_answers(const struct connection *connection)
{
    return connection_unread(connection) <= CONTROL_MAX_UNREAD;
}

/* Run the operation of a line. */
static void answer_line(struct connection *connection, const char *line, size_t len)
{
    const struct control_op *op = connection->control->ops;
    json_error_t error;
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    const char *name = json_string_value(json_object_get(request, "op"));
    if (name == NULL) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX,
                        "control: a request is a JSON object with a string op%s%s",
                        request == NULL ? ": " : "", request == NULL ? error.text : "");
        connection->closing = true;
        json_decref(request);
        return;
    }
    while (op->name != NULL && strcmp(name, op->name) != 0)
        op++;
    if (op->name != NULL)
        op->fn(connection, request);
    else
        connection_fail(connection, PMIXFAB_ERR_UNSUPPORTED, "control: there is no op \"%.40s\"", name);
    json_decref(request);
}

static void refuse_line(struct connection *connection)
{
    connection_fail(connection, PMIXFAB_ERR_RANGE, "control: the line is longer than %zu bytes",
                    connection->max_line);
    connection->closing = true;
}

/* Return whether the line is too long. Callers who may deliver get a longer limit on demand. */
static bool too_long(struct connection *connection, size_t len)
{
    if (len > connection->max_line && connection->max_line == CONTROL_MAX_LINE &&
        connection_may_deliver(connection)) {
        connection->max_line = CONTROL_MAX_DELIVERY;
        bufferevent_setwatermark(connection->bev, EV_READ, 0, 2 * CONTROL_MAX_DELIVERY);
    }
    return len > connection->max_line;
}

/* Stop reading while the input is above the watermark: libevent would call connection_on_read() all the time.
 */
static void connection_hold(struct connection *connection)
{
    const bool full = evbuffer_get_length(bufferevent_get_input(connection->bev)) >= 2 * connection->max_line;
    if (full == connection->full || connection->closing)
        return;
    connection->full = full;
    if (full)
        bufferevent_disable(connection->bev, EV_READ);
    else
        bufferevent_enable(connection->bev, EV_READ);
}

/* Answer one line, if the caller reads the answers. */
static void connection_serve(struct connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->bev);
    size_t len;
    char *line = NULL;
    connection->ready = false;
    connection->served = ++connection->control->served;
    if (!connection->closing && reads_answers(connection) &&
        (line = evbuffer_readln(input, &len, EVBUFFER_EOL_LF)) != NULL) {
        connection_hold(connection);
        if (too_long(connection, len))
            refuse_line(connection);
        else
            answer_line(connection, line, len);
        free(line);
    }
    if (!connection->closing && reads_answers(connection)) {
        if (evbuffer_search_eol(input, NULL, NULL, EVBUFFER_EOL_LF).pos >= 0)
            connection_ready(connection);
        else if (too_long(connection, evbuffer_get_length(input)))
            refuse_line(connection);
        else if (connection->ended && connection->waits == 0 && connection->pendings == NULL)
            connection->closing = true;
        else
            connection_hold(connection); /* make room for a longer line */
    }
    if (connection->closing)
        close_when_written(connection);
}

/*
 * One turn: each connection gets at most one line. Connections of root and configured users come first, then
 * the others until their slice of time is over. If it is used up, the daemon's own work gets the same time
 * before the next turn.
 */
static void control_on_serve(void *arg)
{
    struct control *control = arg;
    const uint64_t turn = control->served;
    const int64_t end = clock_now(CLOCK_MONOTONIC) + CONTROL_SLICE_US;
    struct connection *connection;
    bool over = false;
    while ((connection = control_next_ready(control, turn, true)) != NULL)
        connection_serve(connection);
    while (!over && (connection = control_next_ready(control, turn, false)) != NULL) {
        connection_serve(connection);
        over = clock_now(CLOCK_MONOTONIC) >= end;
    }
    if (control_next_ready(control, UINT64_MAX, true) != NULL)
        timer_after(control->serve, 0);
    else if (control_next_ready(control, UINT64_MAX, false) != NULL)
        timer_after_us(control->serve, over ? CONTROL_SLICE_US : 0);
}

static void connection_ready(struct connection *connection)
{
    struct control *control = connection->control;
    connection->ready = true;
    /* The pause of the others must not delay configured users. */
    if (!timer_pending(control->serve) || callers_are_named(control->callers, connection->uid))
        timer_after(control->serve, 0);
}

static void connection_on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    connection_hold(arg);
    connection_ready(arg);
}

/* A caller that has ended its input still gets the answers to its requests. */
static void on_closed(struct bufferevent *bev, short what, void *arg)
{
    struct connection *connection = arg;
    (void)bev;
    if ((what & BEV_EVENT_EOF) != 0 && (what & BEV_EVENT_READING) != 0) {
        connection->ended = true;
        connection_ready(connection);
    } else {
        connection_free(connection);
    }
}

void control_accepted(struct control *control, int fd)
{
    struct ucred caller;
    socklen_t size = sizeof(caller);
    struct connection *connection = NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &size) != 0 || caller.uid == control->refused ||
        !control_has_place(control, caller.uid) || (connection = calloc(1, sizeof(*connection))) == NULL ||
        (connection->bev = bufferevent_socket_new(control->base, fd, BEV_OPT_CLOSE_ON_FREE)) == NULL) {
        free(connection);
        close(fd);
        return;
    }
    connection->control = control;
    connection->uid = caller.uid;
    connection->pid = caller.pid;
    connection->max_line = CONTROL_MAX_LINE;
    connection->used = clock_now(CLOCK_MONOTONIC);
    DL_APPEND(control->connections, connection);
    control->n_connections++;
    count(control->counts, COUNT_CONNECTIONS);
    bufferevent_setwatermark(connection->bev, EV_READ, 0, 2 * CONTROL_MAX_LINE);
    bufferevent_setcb(connection->bev, connection_on_read, on_written, on_closed, connection);
    bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
    if (!timer_pending(control->idle))
        timer_after(control->idle, CONTROL_IDLE_S * 1000);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len,
                      void *arg)
{
    (void)listener, (void)address, (void)len;
    control_accepted(arg, fd);
}

/* ---- all connections ---------------------------------------------------------------------------- */

void connection_later(struct connection *connection, struct pending *pending)
{
    pending->connection = connection;
    DL_APPEND2(connection->pendings, pending, prev_pending, next_pending);
}

void connection_answered(struct pending *pending)
{
    struct connection *connection = pending->connection;
    if (connection == NULL)
        return;
    DL_DELETE2(connection->pendings, pending, prev_pending, next_pending);
    pending->connection = NULL;
    if (connection->ended)
        connection_ready(connection);
}

void connection_wait(struct connection *connection, uint64_t number)
{
    connection->waits = number;
    connection->n_waits++;
}

void control_finished(struct control *control, uint64_t number, int code, const char *message, json_t *answer)
{
    struct connection *connection, *next;
    DL_FOREACH_SAFE(control->connections, connection, next)
    {
        if (connection->waits == 0 || connection->waits > number)
            continue;
        connection->waits = 0;
        for (; connection->n_waits > 0; connection->n_waits--) { /* one answer for each request */
            if (code != PMIXFAB_OK)
                connection_fail(connection, code, "%s", message);
            else
                connection_send(connection, json_incref(answer));
        }
    }
    json_decref(answer);
}

void control_swept(struct control *control, const struct swept *swept)
{
    char why[sizeof(((struct fab_err *)NULL)->text)];
    fab_text_clean(why, sizeof(why), swept->why_full, strlen(swept->why_full), NULL);
    json_t *answer = json_pack("{s:b, s:I, s:b, s:b, s:s, s:s?, s:I, s:I}", "ok", 1, "generation",
                               (json_int_t)swept->generation, "changed", swept->changed, "partial",
                               swept->partial, "scope", swept->part ? "switch" : "fabric", "scope_reason",
                               why[0] != '\0' ? why : NULL, "suppressed", (json_int_t)swept->suppressed,
                               "suppressed_switches", (json_int_t)swept->suppressed_switches);
    control_finished(control, swept->number, swept->code, swept->message, answer);
}

void control_progress(struct control *control, const char *what)
{
    struct connection *connection, *next;
    DL_FOREACH_SAFE(control->connections, connection, next)
    {
        if (connection->waits != 0)
            connection_send(connection, json_pack("{s:s}", "progress", what));
    }
}

/* Send a line to a follower; close the connection if too much is unread. */
static void connection_follow(struct connection *connection, json_t *line)
{
    if (connection_unread(connection) > CONTROL_MAX_PENDING)
        connection_free(connection);
    else
        connection_send(connection, json_incref(line));
}

void control_published(struct control *control, uint64_t generation)
{
    json_t *line = json_pack("{s:I}", "published", (json_int_t)generation);
    struct connection *connection, *next;
    DL_FOREACH_SAFE(control->connections, connection, next)
    {
        if (line != NULL && connection->watches)
            connection_follow(connection, line);
    }
    json_decref(line);
}

void control_event(struct control *control, bool pending, const struct event_plane *plane,
                   uint64_t generation)
{
    json_t *event = json_pack("{s:s, s:s, s:I, s:I, s:o}", "event",
                              pending ? "PMIX_FABRIC_UPDATE_PENDING" : "PMIX_FABRIC_UPDATED", "plane",
                              plane->name, "index", (json_int_t)plane->index, "generation",
                              (json_int_t)generation, "time", control_time(clock_now(CLOCK_REALTIME)));
    control->announced[pending ? AWAIT_PENDING : AWAIT_UPDATED]++;
    if (event == NULL)
        return;
    if (plane->reason[0] != '\0')
        json_object_set_new(event, "reason", json_string(plane->reason));
    if (json_array_size(control->events) >= CONTROL_EVENTS)
        json_array_remove(control->events, 0);
    json_array_append(control->events, event);
    struct connection *connection, *next;
    DL_FOREACH_SAFE(control->connections, connection, next)
    {
        if (connection->follows)
            connection_follow(connection, event);
    }
    json_decref(event);
}

void control_op_events(struct connection *connection, json_t *request)
{
    if (json_is_true(json_object_get(request, "follow"))) {
        connection->follows = true;
        connection_send(connection, json_pack("{s:b}", "ok", 1));
    } else {
        connection_send(connection, json_pack("{s:b, s:O}", "ok", 1, "events", connection->control->events));
    }
}

/* No descriptor is left: without a pause the loop would spin. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    struct control *control = arg;
    log_error("control: a connection cannot be accepted: %s", strerror(errno));
    evconnlistener_disable(listener);
    timer_after(control->resume, 1000);
}

static void on_resume(void *arg)
{
    struct control *control = arg;
    if (control->listener != NULL)
        evconnlistener_enable(control->listener);
}

int control_listen(struct control *control, struct fab_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, control->path, strlen(control->path) + 1);
    unlink(control->path); /* the lock of the run directory is held: no other process listens there */
    struct evconnlistener *listener = evconnlistener_new_bind(
        control->base, on_accept, control, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 64,
        (struct sockaddr *)&address, sizeof(address));
    if (listener == NULL || chmod(control->path, 0666) != 0) { /* all users may read */
        int rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot listen: %s", control->path, strerror(errno));
        if (listener != NULL)
            evconnlistener_free(listener);
        return rc;
    }
    evconnlistener_set_error_cb(listener, on_accept_error);
    if (control->listener != NULL)
        evconnlistener_free(control->listener);
    control->listener = listener;
    return PMIXFAB_OK;
}

void control_refuse(struct control *control, uid_t uid)
{
    control->refused = uid;
}

int control_new(struct event_base *base, struct config *config, struct counts *counts,
                const struct control_op *ops, void *owner, struct control **out, struct fab_err *err)
{
    const char *rundir = config->rundir;
    *out = NULL;
    struct control *control = calloc(1, sizeof(*control));
    if (control == NULL || (control->events = json_array()) == NULL ||
        (control->resume = timer_new(base, on_resume, control)) == NULL ||
        (control->shed = timer_new(base, control_on_shed, control)) == NULL ||
        (control->serve = timer_new(base, control_on_serve, control)) == NULL ||
        (control->idle = timer_new(base, control_on_idle, control)) == NULL) {
        control_free(control);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    control->base = base;
    control->config = config;
    control->counts = counts;
    control->ops = ops;
    control->owner = owner;
    control->refused = (uid_t)-1;
    int len = snprintf(control->path, sizeof(control->path), "%s/control.sock", rundir);
    int rc = PMIXFAB_OK;
    if (len >= (int)sizeof(control->path))
        rc = fab_fail(err, PMIXFAB_ERR_RANGE,
                      "%s/control.sock: the path is too long for a socket: choose a shorter rundir", rundir);
    if (rc == PMIXFAB_OK && callers_new(control) != PMIXFAB_OK)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (rc == PMIXFAB_OK)
        rc = control_listen(control, err);
    if (rc != PMIXFAB_OK) {
        control_free(control);
        return rc;
    }
    *out = control;
    return PMIXFAB_OK;
}

void control_free(struct control *control)
{
    if (control == NULL)
        return;
    struct connection *connection, *next;
    DL_FOREACH_SAFE(control->connections, connection, next)
    {
        connection_free(connection);
    }
    if (control->listener != NULL) {
        evconnlistener_free(control->listener);
        unlink(control->path);
    }
    timer_free(control->resume);
    timer_free(control->await);
    timer_free(control->shed);
    timer_free(control->serve);
    timer_free(control->idle);
    callers_free(control->callers);
    json_decref(control->events);
    free(control);
}
