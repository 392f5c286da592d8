/*
 * content.h - one generation of one plane, as registered objects show it; counted.
 *
 * Not locked: the reader's lock covers it (snapshots.h).
 */
#ifndef FAB_PMIX_RUNDIR_CONTENT_H
#define FAB_PMIX_RUNDIR_CONTENT_H

#include <pmix_common.h>
#include <stdbool.h>

#include "topo/base/error.h"

struct rundir_content {
    struct pmixfab *fab;
    struct pmixfab_plane plane; /* strings point into fab */
    char *path;
    uint16_t *matrix; /* these three while there are users; matrix NULL on an empty plane */
    pmix_info_t *info;
    size_t ninfo;
    unsigned users;
    unsigned pins; /* who only need the snapshot to stay */
    bool listed;   /* it is what is published now */
};

/* Take over an opened snapshot (also on error). Listed, without users. NULL: no memory. */
struct rundir_content *rundir_content_new(struct pmixfab *fab, const char *path);

/* One user more; the first has matrix and info array made. PMIXFAB_ERR_NOMEM. */
int rundir_content_use(struct rundir_content *content);

/*
 * The same, with the matrix of `before` changed in its place, which is much faster after a small change,
 * where it is nobody's but the caller's, who counts as `users` of `before`, lets go of all of them if this
 * succeeds, and looks at its matrix no more. Else, or where that cannot be done, as above.
 */
int rundir_content_use_instead(struct rundir_content *content, struct rundir_content *before, unsigned users);

/* One user less; the last takes the matrix along. NULL allowed. */
void rundir_content_release(struct rundir_content *content);

/* The snapshot stays mapped, with or without users. */
void rundir_content_pin(struct rundir_content *content);
void rundir_content_unpin(struct rundir_content *content);

/* It is no longer what is published. NULL allowed. */
void rundir_content_unlist(struct rundir_content *content);

/* Do both tell their readers the same, as the same publication? */
bool rundir_content_same(const struct rundir_content *a, const struct rundir_content *b);

/* Matrices in memory in this process. */
size_t rundir_content_matrices(void);

#endif
