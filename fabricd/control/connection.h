/* connection.h - a connection of the control socket, and what an operation answers it with. */
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
#define CONTROL_MAX_DELIVERY    (BASE64_LENGTH(FAB_DELIVERY_MAX) + 256) /* a line of those who may deliver */
#define CONTROL_MAX_CONNECTIONS 320
#define CONTROL_KEPT            32         /* of them, for root and the daemon's own user */
#define CONTROL_KEPT_NAMED      64         /* of them, for the configured administrators and deliverers */
#define CONTROL_MAX_OF_UID      32         /* of any other user */
#define CONTROL_TELL_S          60         /* the log says that there is no place once in this time */
#define CONTROL_MAX_UNREAD      65536      /* bytes of answers that a caller may leave unread and ask on */
#define CONTROL_MAX_PENDING     (4u << 20) /* bytes that a follower may leave unread */
#define CONTROL_MAX_UNREAD_ALL  (8u << 20) /* of all users but root and the daemon's own, together */
#define CONTROL_EVENTS          128        /* events that are remembered */
#define CONTROL_IDLE_S          300        /* after which an ordinary user's idle connection is closed */
#define CONTROL_IDLE_FULL_S     10         /* the same, where another caller needs its place */
#define CONTROL_SLICE_US        10000      /* of a turn of the loop, for the requests of ordinary users */
#define CONTROL_MEND_S          1          /* at most so often the run directory is looked at for callers */
#define CONTROL_MEND_SHARE      50         /* and a look costs at most one part in so many of the time */
#define CONTROL_NAMES_S         10         /* at most so often the names of the configuration are looked up */

/*
 * Rows of an answer. An operation that has more says in `next` where it goes on, and is asked again with
 * that: so no question takes long, and none has a long answer.
 */
#define CONTROL_PAGE 1000

/*
 * The operation `await` of both roles (docs/control.md): answer when the daemon is idle, serves a generation,
 * or counts one more event of a kind. The role gives facts, and calls control_turn() after each turn of its
 * loop. So nothing that ends has to report that it ended, and no condition is missed. Nothing is computed
 * while nobody waits.
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

#define AWAIT_SECONDS     60 /* the deadline of a request that has none */
#define AWAIT_SECONDS_MAX 600

/* The state of the role. The role sets what it has; the rest is 0. */
struct await_facts {
    uint64_t generation;           /* in place and announced; 0: none */
    const char *busy;              /* what is under way, as "a sweep"; NULL: nothing is */
    uint64_t counts[AWAIT_EVENTS]; /* since the start */
};
typedef void (*await_facts_fn)(const void *owner, struct await_facts *out);

struct connection {
    struct connection *prev, *next; /* utlist */
    struct control *control;
    struct bufferevent *bev;
    uid_t uid;
    pid_t pid;        /* that connected; 0: it is in another PID namespace */
    bool follows;     /* gets events */
    bool watches;     /* gets the number of each generation */
    bool ended;       /* nothing more comes from it; it goes when all is answered */
    bool closing;     /* goes when its output is written */
    bool ready;       /* a line, or its end, is to be looked at */
    bool full;        /* nothing more is read until lines were answered */
    uint64_t served;  /* when a line of it was answered last, in lines of all; 0: never */
    int64_t used;     /* when it came or was sent something last, CLOCK_MONOTONIC */
    uint64_t waits;   /* for the sweep (or the scan) of this number; 0: for none */
    unsigned n_waits; /* requests that wait for it */
    struct pending *pendings;
    size_t max_line; /* bytes */
    json_t *kept;    /* where bev is NULL, the answer */
};

/*
 * A request that is answered later, and not by a number. When its connection goes before, connection becomes
 * NULL and gone() is called (where there is one), which may free it.
 */
struct pending {
    struct pending *prev_pending, *next_pending;
    struct connection *connection;
    void (*gone)(struct pending *pending);
};

/* One thing that can be asked. */
struct control_op {
    const char *name;
    void (*fn)(struct connection *connection, json_t *request);
};

struct control {
    struct event_base *base;
    struct config *config;
    struct counts *counts;
    const struct control_op *ops;
    void *owner; /* what the ops work on */
    void (*on_reload)(void *owner, const struct config_reload *reload);
    struct evconnlistener *listener;
    struct timer *resume; /* goes on listening after a pause */
    struct timer *shed;   /* much is unread: looks whether it is too much in all */
    uint32_t (*on_mend)(void *owner);
    int64_t mended;      /* when it was called last, CLOCK_MONOTONIC */
    int64_t mend_pause;  /* microseconds until it may be called again */
    struct timer *serve; /* answers those that are ready */
    struct timer *idle;  /* closes ordinary users' idle connections */
    uint64_t served;     /* lines that were answered */
    struct callers *callers;
    struct connection *connections;
    unsigned n_connections;
    uid_t refused;     /* (uid_t)-1: nobody */
    int64_t told_full; /* when the log said last that there is no place; 0: never */
    int64_t told_shed; /* likewise, that somebody does not read */
    json_t *events;    /* array of the latest */
    await_facts_fn await_facts;
    struct timer *await;                   /* answers those whose condition holds */
    struct awaiting *awaiting;             /* callers that wait by `await` */
    uint64_t announced[AWAIT_UPDATED + 1]; /* events, by AWAIT_PENDING and AWAIT_UPDATED */
    char path[108];
};

/* End it, with all that it waits for. */
void connection_free(struct connection *connection);

/* A caller's socket. Takes it over. */
void control_accepted(struct control *control, int fd);

/* Bytes of answers that the kernel has not taken yet. */
size_t connection_unread(const struct connection *connection);

/* ---- control_bounds.c ---- */

/* For one more connection of this user; what is idle gives its place up. */
bool control_has_place(struct control *control, uid_t uid);
/* The same, but nothing gives up its place. So many were taken that `control` does not have yet, and of them
 * so many of this user. */
bool control_has_free_place(const struct control *control, uid_t uid, unsigned more, unsigned more_of_uid);
/* A connection's place in the order of answers: it gets one line a turn. NULL: nobody is ready who has not
 * had one since `turn` (a value of control->served). named: only root and those of the configuration; else
 * the others, the user first who has waited longest. */
struct connection *control_next_ready(const struct control *control, uint64_t turn, bool named);
void control_on_idle(void *control); /* a timer_fn */
/* Let go of those who do not read, until what is unread is within its bound. (a timer_fn) */
void control_on_shed(void *control);

/* ---- control_callers.c ---- */

/* The users of the configuration by their names, which a thread looks up: a name service may take long. */
int callers_new(struct control *control);
void callers_free(struct callers *callers); /* NULL allowed */
/* Look them up. anew: the configuration may have changed; else where that was not done a moment ago. */
void callers_look(struct callers *callers, bool anew);
bool callers_may_change(struct callers *callers, uid_t uid);
bool callers_may_deliver(struct callers *callers, uid_t uid);
/* One of these two, without asking anybody. */
bool callers_are_named(const struct callers *callers, uid_t uid);

/* The line of an answer; NULL: out of memory. To be freed. */
char *connection_text(const json_t *object);
/* Send one line; takes the reference over. */
void connection_send(struct connection *connection, json_t *object);
void connection_fail(struct connection *connection, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Where rc is an error it is the answer, and this is true. */
bool connection_failed(struct connection *connection, int rc, const struct fab_err *err);
/* A line before the answer. */
void connection_progress(struct connection *connection, const char *text);

/* Where the last answer said that it goes on; NULL: at the beginning. False: that is told to be no such text.
 */
bool connection_next(struct connection *connection, json_t *request, const char **next);
void connection_bad_next(struct connection *connection);

/* The answer to `metrics`, of the socket's owner. */
void connection_send_metrics(struct connection *connection, metrics_fn tell);

/* True where the caller may change things: root, the daemon's own user, and the configured administrators.
 * The kernel named the caller. Else that is answered. */
bool connection_allowed(struct connection *connection, const char *op);

/*
 * Have the caller hand an open file over (SCM_RIGHTS), with one byte, and call got() with its descriptor, or
 * with -1 where none came. Meanwhile nothing else of it is read. connection_receive_end() frees what is
 * returned, before that or after; NULL: out of memory.
 */
struct receiving;
typedef void (*received_fn)(int fd, void *cbdata);
struct receiving *connection_receive(struct connection *connection, received_fn got, void *cbdata);
void connection_receive_end(struct receiving *receiving);

/* These, and the user of the nodes. */
bool connection_may_deliver(const struct connection *connection);

/* The request is answered later; and now it has been, as far as its connection is still there (which may end
 * here). */
void connection_later(struct connection *connection, struct pending *pending);
void connection_answered(struct pending *pending);

/* Wait for the end of this number: control_finished() answers. */
void connection_wait(struct connection *connection, uint64_t number);

/*
 * Answer those who wait for this number or an earlier one: with a copy of `answer` (takes the reference
 * over), or with the error and its message.
 */
void control_finished(struct control *control, uint64_t number, int code, const char *message,
                      json_t *answer);

/* For `await`, before the first request. */
void control_on_await(struct control *control, await_facts_fn facts);

/* Answer the callers whose condition holds, from the loop. */
void control_turn(struct control *control);

/* The same for both roles: remembered events, or these and those to come; the configuration. */
void control_op_events(struct connection *connection, json_t *request);
void control_op_config(struct connection *connection, json_t *request);
void control_op_log(struct connection *connection, json_t *request);
void control_op_reload(struct connection *connection, json_t *request);
void control_op_await(struct connection *connection, json_t *request);
void control_op_mend(struct connection *connection, json_t *request);

/* As text, null for 0: it is 64 bits, which many readers of JSON do not keep in a number. */
json_t *control_digest(uint64_t digest);

/* A time as ISO 8601 in UTC; null for 0. */
json_t *control_time(int64_t microseconds);

#endif
