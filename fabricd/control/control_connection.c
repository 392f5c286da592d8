/* control_connection.c - an operation's use of its connection: the caller's permissions, the answer, and an
 * open file of the caller. */
#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "fabricd/control/connection.h"
#include "topo/base/text.h"

void connection_free(struct connection *connection)
{
    struct pending *pending;
    while ((pending = connection->pendings) != NULL) {
        DL_DELETE2(connection->pendings, pending, prev_pending, next_pending);
        pending->connection = NULL;
        if (pending->gone != NULL)
            pending->gone(pending);
    }
    DL_DELETE(connection->control->connections, connection);
    connection->control->n_connections--;
    bufferevent_free(connection->bev);
    free(connection);
}

size_t connection_unread(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->bev));
}

char *connection_text(const json_t *object)
{
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    const size_t len = text == NULL ? 0 : strlen(text);
    char *line = text == NULL ? NULL : realloc(text, len + 2);
    if (line == NULL)
        free(text);
    else
        memcpy(line + len, "\n", 2);
    return line;
}

void connection_send(struct connection *connection, json_t *object)
{
    if (connection->bev == NULL) {
        json_decref(connection->kept);
        connection->kept = object;
        return;
    }
    char *text = connection_text(object);
    json_decref(object);
    if (text == NULL) {
        connection->closing = true;
        return;
    }
    evbuffer_add(bufferevent_get_output(connection->bev), text, strlen(text)); /* may be megabytes */
    free(text);
    connection->used = clock_now(CLOCK_MONOTONIC);
    if (connection_unread(connection) > CONTROL_MAX_UNREAD)
        timer_fire(connection->control->shed);
}

void connection_fail(struct connection *connection, int code, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    fab_text_clean(message, sizeof(message), message, strlen(message), NULL); /* JSON is UTF-8 */
    connection_send(connection, json_pack("{s:b, s:i, s:s}", "ok", 0, "error", code, "message", message));
}

bool connection_failed(struct connection *connection, int rc, const struct fab_err *err)
{
    if (rc != PMIXFAB_OK)
        connection_fail(connection, rc, "%s", err->text);
    return rc != PMIXFAB_OK;
}

void connection_progress(struct connection *connection, const char *text)
{
    connection_send(connection, json_pack("{s:s}", "progress", text));
}

void connection_bad_next(struct connection *connection)
{
    connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: next belongs to no answer to this request");
}

bool connection_next(struct connection *connection, json_t *request, const char **next)
{
    json_t *value = json_object_get(request, "next");
    *next = json_string_value(value);
    if (value == NULL || json_is_null(value) || *next != NULL)
        return true;
    connection_bad_next(connection);
    return false;
}

void connection_send_metrics(struct connection *connection, metrics_fn tell)
{
    char *text = metrics_text(tell, connection->control->owner);
    if (text == NULL)
        connection_fail(connection, PMIXFAB_ERR_NOMEM, "metrics: out of memory");
    else
        connection_send(connection, json_pack("{s:b, s:s}", "ok", 1, "text", text));
    free(text);
}

json_t *control_time(int64_t microseconds)
{
    char text[40];
    struct tm tm;
    time_t seconds = (time_t)(microseconds / 1000000);
    if (microseconds <= 0 || gmtime_r(&seconds, &tm) == NULL)
        return json_null();
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, sizeof(text) - len, ".%06dZ", (int)(microseconds % 1000000));
    return json_string(text);
}

json_t *control_digest(uint64_t digest)
{
    char text[24];
    if (digest == 0)
        return json_null();
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)digest);
    return json_string(text);
}

bool connection_allowed(struct connection *connection, const char *op)
{
    if (callers_may_change(connection->control->callers, connection->uid))
        return true;
    connection_fail(connection, PMIXFAB_ERR_PERM,
                    "%s: uid %u may not do that: only root, the daemon's user and the configured admins may",
                    op, (unsigned)connection->uid);
    return false;
}

bool connection_may_deliver(const struct connection *connection)
{
    return callers_may_deliver(connection->control->callers, connection->uid);
}

/* ---- an open file of the caller, since the daemon may not be able to open it itself ---- */

struct receiving {
    struct connection *connection;
    struct watch *arrival;
    received_fn got;
    void *cbdata;
};

static int receive_descriptor(int from)
{
    char byte;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } room = {.bytes = {0}};
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof(room.bytes)};
    int fd = -1;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
        return -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

static void on_arrival(int from, void *arg)
{
    struct receiving *receiving = arg;
    int fd = receive_descriptor(from);
    watch_pause(receiving->arrival);
    bufferevent_enable(receiving->connection->bev, EV_READ);
    receiving->got(fd, receiving->cbdata);
}

struct receiving *connection_receive(struct connection *connection, received_fn got, void *cbdata)
{
    struct receiving *receiving = malloc(sizeof(*receiving));
    if (receiving == NULL)
        return NULL;
    *receiving = (struct receiving){.connection = connection, .got = got, .cbdata = cbdata};
    receiving->arrival = watch_new(connection->control->base, bufferevent_getfd(connection->bev), WATCH_READ,
                                   on_arrival, receiving);
    if (receiving->arrival == NULL) {
        connection_receive_end(receiving);
        return NULL;
    }
    bufferevent_disable(connection->bev, EV_READ); /* reading would discard the descriptor */
    connection_send(connection, json_pack("{s:b}", "descriptor", 1));
    return receiving;
}

void connection_receive_end(struct receiving *receiving)
{
    if (receiving == NULL)
        return;
    watch_free(receiving->arrival);
    free(receiving);
}
