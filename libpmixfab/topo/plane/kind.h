/* kind.h - kinds of planes; what they are says docs/design/geometry.md. */
#ifndef FAB_TOPO_PLANE_KIND_H
#define FAB_TOPO_PLANE_KIND_H

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
    FAB_KIND_SWITCHLESS, /* no switch: an HCA that is cabled to nothing, or two to each other */
    FAB_KIND_UNATTACHED  /* no network at all */
};

/* "other", "single-switch", "fat-tree-2", "fat-tree-3", "dragonfly", "mesh-2d", "torus-3d", ... */
const char *fab_kind_name(enum fab_kind kind);

#endif
