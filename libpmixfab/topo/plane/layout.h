/*
 * layout.h - between geometry.c and the recognisers, one file for each family of networks.
 *
 * A recogniser uses the switch graph only, never names. It returns 1 if the plane is of its kind (and fills
 * in the layout), 0 if it is not (the layout is unchanged), or a negative code.
 */
#ifndef FAB_TOPO_PLANE_LAYOUT_H
#define FAB_TOPO_PLANE_LAYOUT_H

#include <stdbool.h>
#include <stdlib.h>

#include "topo/base/disjoint.h"
#include "topo/plane/geometry.h"

#define FAB_GRID_DIMS   3
#define FAB_UNIT_PLACES 3

/* Former positions of the plane's switches. */
struct fab_stable {
    enum fab_kind kind;
    uint32_t dims;      /* of the logical coordinates */
    uint32_t *logical;  /* per switch: FAB_GRID_DIMS numbers; FAB_NONE: the switch carried no device */
    uint32_t *physical; /* per switch: chassis, and place in it; FAB_NONE as above */
    uint32_t *unit;     /* per switch: unit and rail, FAB_NONE: none; and FAB_NONE */
};

struct fab_layout {
    enum fab_kind kind;
    uint32_t dims;                /* meshes and tori: 2 or 3; others: 0 */
    uint32_t size[FAB_GRID_DIMS]; /* meshes and tori */
    uint32_t *pos;                /* meshes and tori: FAB_GRID_DIMS numbers for each switch */
    uint32_t *pod;                /* per switch; any distinct numbers below n_switches, FAB_NONE: in no pod */
    /*
     * per switch: 1 if it is numbered in its pod and in its chassis; 2 if it is numbered after such
     * switches, because it carries devices above the leaves of a tree
     */
    uint8_t *ranked;
    const uint8_t *level;          /* NULL: no history */
    const struct fab_stable *past; /* NULL: no history */
};

/*
 * Plain trees are those that cannot be grids by accident: two levels, and leaves without a device fully
 * cabled. The second recogniser accepts the remaining trees.
 */
int fab_layout_plain_tree(const struct fab_plane *plane, struct fab_layout *layout);
int fab_layout_tree(const struct fab_plane *plane, struct fab_layout *layout);
int fab_layout_dragonfly(const struct fab_plane *plane, struct fab_layout *layout);
int fab_layout_grid(const struct fab_plane *plane, struct fab_layout *layout);

/*
 * Recognise a plane that is a tree only without the few devices above its leaves, or has three levels instead
 * of two without them. The levels are then computed without these devices.
 */
int fab_layout_upper(const struct fab_plane *plane, struct fab_layout *layout, uint8_t *level);

/*
 * Compute the number of cables from each switch to the nearest one with devices that is not one of `upper`
 * (NULL: none), at most 255.
 */
int fab_levels_find(const struct fab_plane *plane, const uint8_t *upper, uint8_t *level);

/*
 * Number the ranked switches within their pods by name, and the pods by their first switch, in natural order:
 * rank[s] and pods[s]. Pods get dense numbers.
 */
int fab_rank_by_name(const struct fab_plane *plane, const uint8_t *ranked, uint32_t *pods, uint32_t *rank);

/* calloc() that returns memory also for an empty array, so that NULL always means out of memory. */
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
