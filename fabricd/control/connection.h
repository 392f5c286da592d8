/* connection.h - a connection of the control socket, and the functions with which an operation answers. */
#ifndef FABRICD_CONTROL_CONNECTION_H
#define FABRICD_CONTROL_CONNECTION_H

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <jansson.h>
#include <sys/types.h>

#include "fabricd/base/base64.h"
#include "fabricd/base/metrics.h"
#include "fabricd/base/timer.h"
#include "fabricd/control/control.h"
#include "topo/model/delivery.h"

#define CONTROL_MAX_LINE        65536
#define CONTROL_MAX_DELIVERY    (BASE64_LENGTH(FAB_DELIVERY_MAX) + 256) /* a line of a deliverer */
#define CONTROL_MAX_CONNECTIONS 320
#define CONTROL_KEPT            32         /* connections reserved for root and the daemon's user */
#define CONTROL_KEPT_NAMED      64         /* reserved for configured administrators and deliverers */
#define CONTROL_MAX_OF_UID      32         /* connections of any other user */
#define CONTROL_TELL_S          60         /* seconds between log lines about refused connections */
#define CONTROL_MAX_UNREAD      65536      /* bytes of unread answers up to which requests are read */
#define CONTROL_MAX_PENDING     (4u << 20) /* bytes of unread lines of a follower */
#define CONTROL_MAX_UNREAD_ALL  (8u << 20) /* of all users except root and the daemon's own, together */
#define CONTROL_EVENTS          128        /* stored events */
#define CONTROL_IDLE_S          300   /* seconds after which an ordinary user's idle connection is closed */
#define CONTROL_IDLE_FULL_S     10    /* the same, if another caller needs its place */
#define CONTROL_SLICE_US        10000 /* of a turn of the loop, for the requests of ordinary users */
#define CONTROL_MEND_S          1     /* least seconds between repairs of the run directory for callers */
#define CONTROL_MEND_SHARE      50    /* a repair takes at most 1 in so many parts of the time */
#define CONTROL_NAMES_S         10    /* least seconds between look-ups of the configured names */

/*
 * Rows of an answer. An operation with more rows sets `next`, and the caller repeats the request with that
 * value. So no request takes long, and no answer is long.
 */
#define CONTROL_PAGE 1000

/*
 * The operation `await` of both roles (docs/control.md): answer when the daemon is idle, serves a generation,
 * or counts one more event of a kind. The role provides facts, and calls control_turn() after each turn of
 * its loop. So no part has to report its end, and no condition is missed. Nothing is computed while no caller
 * waits.
 */

/* Kinds of events, in the order of their names in await.c. */
enum await_event {
    AWAIT_PENDING, /* counted by control_event(), as the next one */
    AWAIT_UPDATED,
    AWAIT_SWEEP,
    AWAIT_LIGHT_SWEEP,
    AWAIT_SCAN,
    AWAIT_DELIVERY,
    AWAIT_EXPORT,
    AWAIT_HOOK,
    AWAIT_PMIX,
    AWAIT_EVENTS
};

#define AWAIT_SECONDS     60 /* the deadline of a request without one */
#define AWAIT_SECONDS_MAX 600

/* The state of the role. The role sets the fields that it has; the others are 0. */
struct await_facts {
    uint64_t generation;           /* in place and announced; 0: none */
    const char *busy;              /* the running activity, such as "a sweep"; NULL: none */
    uint64_t counts[AWAIT_EVENTS]; /* since the start */
};
typedef void (*await_facts_fn)(const void *owner, struct await_facts *out);

struct connection {
    struct connection *prev, *next; /* utlist */
    struct control *control;
    struct bufferevent *bev;
    uid_t uid;
    pid_t pid;        /* of the caller; 0: it is in another PID namespace */
    bool follows;     /* gets events */
    bool watches;     /* gets each new generation's number */
    bool ended;       /* no more input; it is closed when all requests are answered */
    bool closing;     /* it is closed when its output is written */
    bool ready;       /* a complete line, or the end, has arrived */
    bool full;        /* reading is stopped until lines were answered */
    uint64_t served;  /* when its last line was answered, in lines of all connections; 0: never */
    int64_t used;     /* time of its last input or output, CLOCK_MONOTONIC */
    uint64_t waits;   /* for the sweep (or the scan) of this number; 0: none */
    unsigned n_waits; /* requests that wait for it */
    struct pending *pendings;
    size_t max_line; /* bytes */
    json_t *kept;    /* the answer, if bev is NULL */
};

/*
 * A request that is answered later, and not by a number. When its connection ends first, connection becomes
 * NULL and gone() is called, if set, which may free it.
 */
struct pending {
    struct pending *prev_pending, *next_pending;
    struct connection *connection;
    void (*gone)(struct pending *pending);
};

/* An operation. */
struct control_op {
    const char *name;
    void (*fn)(struct connection *connection, json_t *request);
};

struct control {
    struct event_base *base;
    struct config *config;
    struct counts *counts;
    const struct control_op *ops;
    void *owner; /* passed to the operations */
    void (*on_reload)(void *owner, const struct config_reload *reload);
    struct evconnlistener *listener;
    struct timer *resume; /* starts listening again after a pause */
    struct timer *shed;   /* much output is unread: checks the total */
    uint32_t (*on_mend)(void *owner);
    int64_t mended;      /* time of the last call, CLOCK_MONOTONIC */
    int64_t mend_pause;  /* microseconds until the next call is allowed */
    struct timer *serve; /* answers ready connections */
    struct timer *idle;  /* closes ordinary users' idle connections */
    uint64_t served;     /* number of answered lines */
    struct callers *callers;
    struct connection *connections;
    unsigned n_connections;
    uid_t refused;     /* (uid_t)-1: none */
    int64_t told_full; /* time of the last log line about refused connections; 0: none */
    int64_t told_shed; /* the same, about unread answers */
    json_t *events;    /* array of the last ones */
    await_facts_fn await_facts;
    struct timer *await;                   /* answers callers whose condition holds */
    struct awaiting *awaiting;             /* callers of `await` */
    uint64_t announced[AWAIT_UPDATED + 1]; /* events, by AWAIT_PENDING and AWAIT_UPDATED */
    char path[108];
};

/* Close the connection, and drop its waiting requests. */
void connection_free(struct connection *connection);

/* Add a caller's socket. Takes it over. */
void control_accepted(struct control *control, int fd);

/* Return the bytes of answers that the kernel has not taken yet. */
size_t connection_unread(const struct connection *connection);

/* ---- control_bounds.c ---- */

/* Make place for one more connection of this user, by closing an idle one if necessary. False: none. */
bool control_has_place(struct control *control, uid_t uid);
/* Return whether there is place without closing a connection. `more` connections were accepted that `control`
 * does not have yet, `more_of_uid` of them by this user. */
bool control_has_free_place(const struct control *control, uid_t uid, unsigned more, unsigned more_of_uid);
/*
 * Return the next connection to serve, each at most once a turn. NULL: all ready connections were served
 * since `turn` (a value of control->served). named: consider only connections of root and of configured
 * users. Otherwise consider only the other connections, and the user who has waited longest comes first.
 */
struct connection *control_next_ready(const struct control *control, uint64_t turn, bool named);
void control_on_idle(void *control); /* a timer_fn */
/* Close connections with unread answers until the total is within its bound. (a timer_fn) */
void control_on_shed(void *control);

/* ---- control_callers.c ---- */

/* The users of the configuration, by name. A thread resolves the names, since a name service may be slow. */
int callers_new(struct control *control);
void callers_free(struct callers *callers); /* NULL allowed */
/*
 * Resolve the names. anew: the configuration may have changed. Without it, resolve the names only if the
 * last look-up is old.
 */
void callers_look(struct callers *callers, bool anew);
bool callers_may_change(struct callers *callers, uid_t uid);
bool callers_may_deliver(struct callers *callers, uid_t uid);
/* Return whether the user is one of these, by the last look-up. */
bool callers_are_named(const struct callers *callers, uid_t uid);

/* Return the line of an answer, to be freed with free(); NULL: out of memory. */
char *connection_text(const json_t *object);
/* Send one line; takes the reference over. */
void connection_send(struct connection *connection, json_t *object);
void connection_fail(struct connection *connection, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* If rc is an error, send it and return true. */
bool connection_failed(struct connection *connection, int rc, const struct fab_err *err);
/* Send a line before the answer. */
void connection_progress(struct connection *connection, const char *text);

/*
 * Return the value of `next` in the request, the place where its rows begin; NULL: at the first row. False:
 * an error was sent.
 */
bool connection_next(struct connection *connection, json_t *request, const char **next);
void connection_bad_next(struct connection *connection);

/* Answer `metrics` for the socket's owner. */
void connection_send_metrics(struct connection *connection, metrics_fn tell);

/* Return whether the caller may change things: root, the daemon's own user, or a configured administrator.
 * The kernel provides the caller's uid. Otherwise an error is sent. */
bool connection_allowed(struct connection *connection, const char *op);

/*
 * Receive an open file from the caller (SCM_RIGHTS), with one byte, and call got() with its descriptor, or
 * with -1 if none came. Meanwhile no other input is read. connection_receive_end() frees the returned value,
 * before or after the call of got(). NULL: out of memory.
 */
struct receiving;
typedef void (*received_fn)(int fd, void *cbdata);
struct receiving *connection_receive(struct connection *connection, received_fn got, void *cbdata);
void connection_receive_end(struct receiving *receiving);

/* Return whether the caller may deliver reports: those who may change things, and the user of the nodes. */
bool connection_may_deliver(const struct connection *connection);

/* Answer a request later. connection_answered(): it was answered, if its connection still exists (which may
 * end here). */
void connection_later(struct connection *connection, struct pending *pending);
void connection_answered(struct pending *pending);

/* Wait for this number: control_finished() answers. */
void connection_wait(struct connection *connection, uint64_t number);

/*
 * Answer the requests that wait for this number or an earlier one. They get a copy of `answer` (the function
 * takes the reference), or the error and its message.
 */
void control_finished(struct control *control, uint64_t number, int code, const char *message,
                      json_t *answer);

/* Set the function for `await`, before the first request. */
void control_on_await(struct control *control, await_facts_fn facts);

/* Answer callers whose condition holds. On the loop. */
void control_turn(struct control *control);

/* Operations of both roles: stored events, stored and future events, the configuration. */
void control_op_events(struct connection *connection, json_t *request);
void control_op_config(struct connection *connection, json_t *request);
void control_op_log(struct connection *connection, json_t *request);
void control_op_reload(struct connection *connection, json_t *request);
void control_op_await(struct connection *connection, json_t *request);
void control_op_mend(struct connection *connection, json_t *request);

/* Return the digest as text, null for 0: many JSON readers cannot keep 64 bits in a number. */
json_t *control_digest(uint64_t digest);

/* Return a time as ISO 8601 in UTC; null for 0. */
json_t *control_time(int64_t microseconds);

#endif
