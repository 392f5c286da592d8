/*
 * layout.h - between geometry.c and the recognisers, one file a family of networks.
 *
 * A recogniser looks at the switch graph alone, never at names, and returns 1 where the plane is of its kind
 * (and has filled in the layout), 0 where it is not (the layout is as before), or a negative code.
 */
#ifndef FAB_TOPO_PLANE_LAYOUT_H
#define FAB_TOPO_PLANE_LAYOUT_H

#include <stdbool.h>
#include <stdlib.h>

#include "topo/base/disjoint.h"
#include "topo/plane/geometry.h"

#define FAB_GRID_DIMS   3
#define FAB_UNIT_PLACES 3

/* Where the plane's switches stood before. */
struct fab_stable {
    enum fab_kind kind;
    uint32_t dims;      /* of the logical coordinates */
    uint32_t *logical;  /* per switch: FAB_GRID_DIMS numbers; FAB_NONE: it carried no device */
    uint32_t *physical; /* per switch: chassis, and place in it; FAB_NONE as above */
    uint32_t *unit;     /* per switch: unit and rail, FAB_NONE: it had none; and FAB_NONE */
};

struct fab_layout {
    enum fab_kind kind;
    uint32_t dims;                /* meshes and tori: 2 or 3; others: 0 */
    uint32_t size[FAB_GRID_DIMS]; /* meshes and tori */
    uint32_t *pos;                /* meshes and tori: FAB_GRID_DIMS numbers a switch */
    uint32_t *pod;                /* per switch; any distinct numbers below n_switches, FAB_NONE: in no pod */
    /* per switch: 1 where it is numbered, in its pod and in its chassis; 2: behind those, as what carries
     * devices above the leaves of a tree */
    uint8_t *ranked;
    const uint8_t *level;          /* per switch, as in struct fab_geometry */
    const struct fab_stable *past; /* NULL: nothing is known */
};

/* Plain trees are those that are no grid by accident: two levels, and leaves without a device fully cabled.
 * The second one takes what else is a tree. */
int fab_layout_plain_tree(const struct fab_plane *plane, struct fab_layout *layout);
int fab_layout_tree(const struct fab_plane *plane, struct fab_layout *layout);
int fab_layout_dragonfly(const struct fab_plane *plane, struct fab_layout *layout);
int fab_layout_grid(const struct fab_plane *plane, struct fab_layout *layout);

/* What would be a tree, or one of three levels instead of two, without the few devices above its leaves:
 * level becomes what it is without them. */
int fab_layout_upper(const struct fab_plane *plane, struct fab_layout *layout, uint8_t *level);

/* Cables from each switch to the nearest one with devices that is not one of `upper` (NULL: none), at most
 * 255. */
int fab_levels_find(const struct fab_plane *plane, const uint8_t *upper, uint8_t *level);

/*
 * Number the ranked switches within their pods by name, and the pods by their first switch, as people read
 * names: rank[s] and pods[s]. Pods get dense numbers.
 */
int fab_rank_by_name(const struct fab_plane *plane, const uint8_t *ranked, uint32_t *pods, uint32_t *rank);

/* calloc() that gives memory for an array of none, too, so that NULL always means out of memory. */
static inline void *fab_array(size_t n, size_t size)
{
    return calloc(n > 0 ? n : 1, size);
}

/* The neighbours of switch s: for (e = first; e < end; e++) plane->adj[e].to */
static inline uint32_t fab_adj_end(const struct fab_plane *plane, uint32_t s)
{
    return plane->switches[s].adj_first + plane->switches[s].n_adj;
}

#endif
