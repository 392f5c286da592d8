/*
 * sweep.h - probes run in a child process, with a deadline, and hand over through a pipe.
 *
 * libibnetdisc can abort or hang its process; so can a driver below it. The child is this program again,
 * started with --sweep-child; whatever becomes of it costs one sweep and nothing else.
 */
#ifndef FABRICD_SWEEP_H
#define FABRICD_SWEEP_H

#include <event2/event.h>

#include "fabricd/config.h"
#include "probes/probe.h"
#include "topo/inventory.h"

struct sweep_result {
    int code; /* 0, or why there is no inventory */
    struct fab_err err;
    struct fab_inventory inv; /* finished, not named; whose owner may take it (and init it again) */
    void *bytes;              /* the same as topo/wire.h writes it; likewise (and set to NULL) */
    size_t size;
    double milliseconds;
};

struct sweep;

/* Called once, on the event loop. */
typedef void (*sweep_done_fn)(struct sweep_result *result, void *cbdata);

/* A sweep of what changed only; where that cannot be told from the last inventory, the child sweeps all. */
struct sweep_again {
    const struct probe_noticed *noticed;
    const void *inventory; /* the last one, as in struct sweep_result */
    size_t size;
};

/* Start the child. again: NULL for a full sweep; not needed after the call. On error `done` is not called. */
int sweep_start(struct event_base *base, const struct config *config, const struct sweep_again *again,
                sweep_done_fn done, void *cbdata, struct sweep **out, struct fab_err *err);

/* Kill the child and forget it; `done` is not called any more. NULL is allowed. */
void sweep_cancel(struct sweep *sweep);

/* The loop does not run any more: let the child come to its end, for which sweep_cancel() is going to wait, a
 * second at most. NULL is allowed. */
void sweep_leave(struct sweep *sweep);

/* The child: runs the probes named by argv, writes to descriptor 3, returns its exit status. What it finds on
 * its standard input, if anything, is a sweep_again as sweep_order_encode() writes it. */
int sweep_child(int argc, char **argv);

/* "again" as bytes; free(*bytes). PMIXFAB_ERR_NOMEM. And back: *noticed (free it) and *inv are initialised
 * here. PMIXFAB_ERR_CORRUPT, or what fab_wire_decode() says. */
int sweep_order_encode(const struct sweep_again *again, void **bytes, size_t *size);
int sweep_order_decode(const void *bytes, size_t size, struct probe_noticed *noticed,
                       struct fab_inventory *inv, struct fab_err *err);

/* argv[1] that makes the program a sweeping child. */
#define SWEEP_CHILD_OPTION "--sweep-child"

#endif
