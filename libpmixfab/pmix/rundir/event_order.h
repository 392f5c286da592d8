/*
 * event_order.h - the order of the two events around each change of a run directory.
 *
 * A state machine without threads, clocks and files. It is given what looks at a run directory found, and
 * yields steps: PMIX_FABRIC_UPDATE_PENDING of some planes, then PMIX_FABRIC_UPDATED of the same planes. Of
 * each plane the two alternate, and each pair is of one generation; a look that came too late for a
 * generation leaves its pair out. Not locked.
 */
#ifndef FAB_PMIX_RUNDIR_EVENT_ORDER_H
#define FAB_PMIX_RUNDIR_EVENT_ORDER_H

#include <stdbool.h>

#include "topo/snapshot/pending.h"

/* A `pending` that stands there for so long was left behind: the pair is completed without it. */
#define ORDER_PATIENCE_MS 5000

/* A plane as a look found it. */
struct order_plane {
    const char *name;
    uint32_t index;
    uint64_t generation; /* of the snapshot that was there last */
    int64_t published;
    bool gone; /* the plane is no more */
};

/* What happens to a plane. */
struct order_change {
    char name[SNAP_NAME_MAX + 1];
    size_t index;
    uint64_t generation;
};

/* Raise the event of each change, then ask for the next step. */
struct order_step {
    bool pending; /* PENDING; else UPDATED: show what is there now before it is raised */
    const struct order_change *changes; /* valid until the next call */
    uint32_t n;
};

struct event_order;

/* NULL: no memory. */
struct event_order *event_order_new(void);
void event_order_free(struct event_order *order); /* NULL allowed */

/* Take it as known: no event is due for it, nor the second one of a pair. */
void event_order_know(struct event_order *order, const struct order_plane *plane);

/*
 * A look found these planes, and this in `pending` (generation 0: no such file). Planes that are not listed
 * are as they were before. now: milliseconds of any clock. PMIXFAB_ERR_NOMEM: look again.
 */
int event_order_look(struct event_order *order, const struct order_plane *planes, uint32_t n,
                     const struct fab_pending *pending, int64_t now);

/* False: no step is due until the next look. */
bool event_order_next(struct event_order *order, struct order_step *step);

/* A `pending` is waited for: look again within ORDER_PATIENCE_MS, whatever the directory's watch says. */
bool event_order_waits(const struct event_order *order);

#endif
