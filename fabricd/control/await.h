/*
 * await.h - the operation `await` of both roles (docs/control.md): answer when the daemon is idle, serves a
 * generation, or counts one more event of a kind.
 *
 * The role gives facts, and calls control_turn() after each turn of its loop. So nothing that ends has to
 * report that it ended, and no condition is missed. Nothing is computed while nobody waits. On the loop.
 */
#ifndef FABRICD_CONTROL_AWAIT_H
#define FABRICD_CONTROL_AWAIT_H

#include <jansson.h>
#include <stdint.h>

struct control;
struct connection;

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

/* To be called before the first request. */
void control_on_await(struct control *control, await_facts_fn facts);

/* Answer the callers whose condition holds, from the loop. */
void control_turn(struct control *control);

/* The operation. */
void control_op_await(struct connection *connection, json_t *request);

#endif
