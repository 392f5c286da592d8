/*
 * geometry.h - what kind of network a plane is, and where each device stands in it.
 *
 * A kind is claimed only where the wiring is exactly of that kind (every cable explained); everything else is
 * "other". So a broken cable may change the kind, and the documented fallback applies.
 *
 * Logical coordinates, unique per device in a plane:
 *   single switch, trees, dragonfly, other: (group, switch, port). Trees: pod, leaf within the pod, switch port
 *   - 1; a two-level tree is one pod. Dragonfly: group, router within the group, switch port - 1. Single: (0, 0,
 *   port - 1). Other: connected leaf-neighbourhood 0, edge switch by natural order of its name, port - 1.
 *   meshes and tori: position along each dimension, and one number more (the switch port - 1) when any switch
 *   carries more than one device.
 * Physical: (chassis, switch within the chassis, port), always three. Switches without a chassis: chassis 0,
 * numbered by GUID.
 * shape[d] is the largest value in dimension d plus one (an empty plane: 0).
 */
#ifndef FAB_TOPO_GEOMETRY_H
#define FAB_TOPO_GEOMETRY_H

#include "topo/graph.h"

enum fab_kind {
    FAB_KIND_OTHER = 0,
    FAB_KIND_SINGLE,     /* at most one switch */
    FAB_KIND_FATTREE_2,  /* leaves and spines */
    FAB_KIND_FATTREE_3,  /* pods of leaves and middle switches, and a core */
    FAB_KIND_DRAGONFLY,  /* fully connected groups, cables between the groups */
    FAB_KIND_MESH_2D,
    FAB_KIND_MESH_3D,
    FAB_KIND_TORUS_2D,
    FAB_KIND_TORUS_3D
};

/* "other", "single-switch", "fat-tree-2", "fat-tree-3", "dragonfly", "mesh-2d", "torus-3d", ... */
const char *fab_kind_name(enum fab_kind kind);

struct fab_geometry {
    enum fab_kind kind;
    uint32_t dims, shape[PMIXFAB_MAX_DIMS];
    uint32_t physical_dims, physical_shape[PMIXFAB_MAX_DIMS];
    uint32_t *logical;  /* n_devices x dims */
    uint32_t *physical; /* n_devices x physical_dims */
    uint8_t *level;     /* per switch: cables to the nearest switch with devices; 0 for those themselves */
    uint32_t *pod;      /* per switch: pod or dragonfly group, 0 where there is only one */
};

int fab_geometry_compute(const struct fab_plane *plane, struct fab_geometry *out);
void fab_geometry_destroy(struct fab_geometry *geometry);

#endif
