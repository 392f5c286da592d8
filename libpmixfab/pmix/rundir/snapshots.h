/*
 * snapshots.h - the planes of the run directory, as they are now; looked at again whenever they are asked
 * for. Any thread; what was handed out stays until it is given back.
 */
#ifndef FAB_PMIX_RUNDIR_SNAPSHOTS_H
#define FAB_PMIX_RUNDIR_SNAPSHOTS_H

#include "pmix/rundir/published.h"

struct rundir_snapshots;

/* PMIXFAB_ERR_NOMEM, _INVAL. */
int rundir_snapshots_new(const char *rundir, struct rundir_snapshots **out);
void rundir_snapshots_free(struct rundir_snapshots *snapshots); /* NULL allowed */

/* Planes that are readable, the default one first, then by index. */
struct rundir_planes {
    struct rundir_snapshots *of;
    const struct pmixfab **planes;
    const char **paths; /* of their files */
    uint32_t n;
};

/* Looks, and locks until rundir_planes_put(). n may be 0: err says why. */
void rundir_planes_get(struct rundir_snapshots *snapshots, struct rundir_planes *out, struct fab_err *err);
void rundir_planes_put(struct rundir_planes *planes);

/* planes[i] stays as it is, also when it was put back and something else is published. */
struct pnet_content *rundir_planes_pin(const struct rundir_planes *planes, uint32_t i);
void rundir_snapshots_unpin(struct rundir_snapshots *snapshots, struct pnet_content *content);

/*
 * Changes, for one thread: look, then take the steps that are due (event_order.h) until there is none. What
 * the first look finds is known. Returns whether to look again in a while, whatever happens.
 */
bool rundir_snapshots_look(struct rundir_snapshots *snapshots);
bool rundir_snapshots_next(struct rundir_snapshots *snapshots, struct order_step *step);

/* Take all steps: has any plane been updated? */
bool rundir_snapshots_changed(struct rundir_snapshots *snapshots);

#endif
