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

/* A plane that is published anew, or is gone. */
struct rundir_change {
    char name[64];
    size_t index;
    uint64_t generation;
};

/*
 * Looks, and lists the changes since the last call of this function; the first one lists none, and all after
 * it what has happened since. *changes is to be free()d; NULL where there are none.
 */
void rundir_snapshots_news(struct rundir_snapshots *snapshots, struct rundir_change **changes, size_t *n);

#endif
