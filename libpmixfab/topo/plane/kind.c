/* kind.c - the names of kinds of planes. */
#include "topo/plane/kind.h"

static const char *const kind_names[] = {
    [FAB_KIND_OTHER] = "other",           [FAB_KIND_SINGLE] = "single-switch",
    [FAB_KIND_FATTREE_2] = "fat-tree-2",  [FAB_KIND_FATTREE_3] = "fat-tree-3",
    [FAB_KIND_DRAGONFLY] = "dragonfly",   [FAB_KIND_MESH_2D] = "mesh-2d",
    [FAB_KIND_MESH_3D] = "mesh-3d",       [FAB_KIND_TORUS_2D] = "torus-2d",
    [FAB_KIND_TORUS_3D] = "torus-3d",     [FAB_KIND_UNATTACHED] = "unattached",
    [FAB_KIND_SWITCHLESS] = "switchless",
};

const char *fab_kind_name(enum fab_kind kind)
{
    return kind_names[kind <= FAB_KIND_UNATTACHED ? kind : FAB_KIND_OTHER];
}
