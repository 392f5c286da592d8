/*
 * tree_levels.h - which edge switches of a plane stand together below which others, by how near they are: the
 * inner vertices of a tree.
 */
#ifndef FABRICCTL_EXPORT_TREE_LEVELS_H
#define FABRICCTL_EXPORT_TREE_LEVELS_H

#include <stdbool.h>

#include "pmixfab.h"

/* A plane's switches by the leaf of the tree that they are. */
struct ctl_leaves {
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    const uint32_t *leaf_of; /* of each switch; UINT32_MAX: of none */
    const uint32_t
        *group; /* of each leaf: leaves of one number stand together, then all; NULL: by distance */
    uint32_t n;
};

/*
 * parent[v] of the vertices: leaves are 0..n-1, *n_vertices in all; UINT32_MAX: a root. Room for 2 * n. Each
 * inner vertex has two children at least, and comes behind them. *irregular: more than half of the leaves lie
 * on the ways between others, so that the levels are no more than distances. PMIXFAB_ERR_NOMEM.
 */
int ctl_levels(const struct ctl_leaves *leaves, uint32_t *parent, uint32_t *n_vertices, bool *irregular);

#endif
