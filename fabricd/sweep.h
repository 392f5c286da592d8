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
#include "topo/inventory.h"

struct sweep_result {
    int code; /* 0, or why there is no inventory */
    struct fab_err err;
    struct fab_inventory inv; /* finished, not named; whose owner may take it (and init it again) */
    double milliseconds;
};

struct sweep;

/* Called once, on the event loop. */
typedef void (*sweep_done_fn)(struct sweep_result *result, void *cbdata);

/* Start the child. On error `done` is not called. */
int sweep_start(struct event_base *base, const struct config *config, sweep_done_fn done, void *cbdata,
                struct sweep **out, struct fab_err *err);

/* Kill the child and forget it; `done` is not called any more. NULL is allowed. */
void sweep_cancel(struct sweep *sweep);

/* The child: runs the probes named by argv, writes to descriptor 3, returns its exit status. */
int sweep_child(int argc, char **argv);

/* argv[1] that makes the program a sweeping child. */
#define SWEEP_CHILD_OPTION "--sweep-child"

#endif
