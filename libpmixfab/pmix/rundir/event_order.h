/*
 * event_order.h - the order of the two events around each change of a run directory.
 *
 * A state machine without threads, clocks and files. Input: the results of looks at a run directory. Output:
 * steps, PMIX_FABRIC_UPDATE_PENDING of some planes, then PMIX_FABRIC_UPDATED of the same planes. For each
 * plane the two alternate, and each pair is for one generation; a generation that no look saw has no pair. No
 * locks.
 */
#ifndef FAB_PMIX_RUNDIR_EVENT_ORDER_H
#define FAB_PMIX_RUNDIR_EVENT_ORDER_H

#include <stdbool.h>

#include "topo/snapshot/pending.h"

/* After this time a `pending` counts as left behind, and the pair is completed without it. */
#define ORDER_PATIENCE_MS 5000

/* A plane in the result of a look. */
struct order_plane {
    const char *name;
    uint32_t index;
    uint64_t generation; /* of the last snapshot */
    int64_t published;
    bool gone; /* the plane was removed */
};

/* A change of a plane. */
struct order_change {
    char name[SNAP_NAME_MAX + 1];
    size_t index;
    uint64_t generation;
};

/* Raise the event of each change, then call for the next step. */
struct order_step {
    bool pending;                       /* PENDING; else UPDATED: show the new data before raising it */
    const struct order_change *changes; /* valid until the next call */
    uint32_t n;
};

struct event_order;

/* NULL without memory. */
struct event_order *event_order_new(void);
void event_order_free(struct event_order *order); /* NULL is allowed */

/* Mark the state as known: no event is due for it, nor the second one of a pair. */
void event_order_know(struct event_order *order, const struct order_plane *plane);

/*
 * Add these planes and the generation in `pending` (0: no such file), as read from the run directory. Planes
 * that are not listed are unchanged. now: milliseconds of any clock. PMIXFAB_ERR_NOMEM: read the run
 * directory again.
 */
int event_order_look(struct event_order *order, const struct order_plane *planes, uint32_t n,
                     const struct fab_pending *pending, int64_t now);

/* Return false if no step is due until the next look. */
bool event_order_next(struct event_order *order, struct order_step *step);

/*
 * Return whether a `pending` is waited for: look again within ORDER_PATIENCE_MS, whatever the directory's
 * watch reports.
 */
bool event_order_waits(const struct event_order *order);

#endif
