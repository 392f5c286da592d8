/*
 * snapshots.h - the planes of the run directory, as they are now; looked at again whenever they are asked
 * for. Any thread; what was handed out stays until it is given back.
 */
#ifndef FAB_MCA_PMDL_SNAPSHOTS_H
#define FAB_MCA_PMDL_SNAPSHOTS_H

#include "mca/rundir/published.h"

struct pmdl_snapshots;

/* PMIXFAB_ERR_NOMEM, _INVAL. */
int pmdl_snapshots_new(const char *rundir, struct pmdl_snapshots **out);
void pmdl_snapshots_free(struct pmdl_snapshots *snapshots); /* NULL allowed */

/* Planes that are readable, the default one first, then by index. */
struct pmdl_planes {
    struct pmdl_snapshots *of;
    const struct pmixfab **planes;
    const char **paths; /* of their files */
    uint32_t n;
};

/* Looks, and locks until pmdl_planes_put(). n may be 0: err says why. */
void pmdl_planes_get(struct pmdl_snapshots *snapshots, struct pmdl_planes *out, struct fab_err *err);
void pmdl_planes_put(struct pmdl_planes *planes);

/* planes[i] stays as it is, also when it was put back and something else is published. */
struct pnet_content *pmdl_planes_pin(const struct pmdl_planes *planes, uint32_t i);
void pmdl_snapshots_unpin(struct pmdl_snapshots *snapshots, struct pnet_content *content);

/* A plane that is published anew, or is gone. */
struct pmdl_change {
    char name[64];
    size_t index;
    uint64_t generation;
};

/*
 * Looks, and lists the changes since the last call of this function; the first one lists none, and all after
 * it what has happened since. *changes is to be free()d; NULL where there are none.
 */
void pmdl_snapshots_news(struct pmdl_snapshots *snapshots, struct pmdl_change **changes, size_t *n);

#endif
