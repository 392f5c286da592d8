/*
 * geometry.h - the kind of network of a plane, and the position of each device in it.
 *
 * docs/design/geometry.md defines each kind and the numbering of its devices without history. It also lists
 * the numbers that stay. If a cable of a plane does not fit, the plane has no kind.
 */
#ifndef FAB_TOPO_PLANE_GEOMETRY_H
#define FAB_TOPO_PLANE_GEOMETRY_H

#include "topo/plane/graph.h"
#include "topo/plane/units.h"

/* Defined in docs/design/geometry.md. */
enum fab_kind {
    FAB_KIND_OTHER = 0,
    FAB_KIND_SINGLE,    /* one switch */
    FAB_KIND_FATTREE_2, /* leaves and spines */
    FAB_KIND_FATTREE_3, /* pods of leaves and middle switches, and a core */
    FAB_KIND_DRAGONFLY, /* fully connected groups, cables between the groups */
    FAB_KIND_MESH_2D,
    FAB_KIND_MESH_3D,
    FAB_KIND_TORUS_2D,
    FAB_KIND_TORUS_3D,
    FAB_KIND_SWITCHLESS, /* no switch: an HCA without a cable, or two cabled to each other */
    FAB_KIND_UNATTACHED  /* no network at all */
};

/* Return "other", "single-switch", "fat-tree-2", "fat-tree-3", "dragonfly", "mesh-2d", "torus-3d", ... */
const char *fab_kind_name(enum fab_kind kind);

struct fab_geometry {
    enum fab_kind kind;
    uint32_t dims, shape[PMIXFAB_MAX_DIMS];
    uint32_t physical_dims, physical_shape[PMIXFAB_MAX_DIMS];
    uint32_t *logical;  /* n_devices x dims */
    uint32_t *physical; /* n_devices x physical_dims */
    /*
     * per switch: number of cables to the nearest switch with devices; 0 for a switch with devices. A few
     * devices above the leaves of a tree do not count
     */
    uint8_t *level;
    uint32_t *pod; /* per switch: pod or dragonfly group; FAB_NONE: a tree's core, in no pod */
    struct fab_units units;
};

/* Compute the geometry with the numbers of the former plane; NULL: without history. */
int fab_geometry_settle(const struct fab_plane *plane, const struct pmixfab *before,
                        struct fab_geometry *out);
/* Compute the levels only. PMIXFAB_ERR_NOMEM. */
int fab_geometry_levels(const struct fab_plane *plane, uint8_t *level);
void fab_geometry_destroy(struct fab_geometry *geometry);

#endif
