/* served_small.h - two small planes as fabricd serves them, for tests of answers. */
#ifndef FAB_TEST_SERVED_SMALL_H
#define FAB_TEST_SERVED_SMALL_H

#include <stdlib.h>
#include <string.h>

#include "fabricd/serving/served.h"
#include "test/fabrics/fabrics.h"
#include "topo/compile/compile.h"
#include "topo/snapshot/snapshot.h"

/* One plane's snapshot; NULL when it cannot be built. */
static inline struct served_plane *small_plane(const char *spec, const char *name, uint32_t index,
                                               bool is_default)
{
    const struct fab_snapshot_meta meta = {.generation = 7,
                                           .published = 1700000000123456,
                                           .index = index,
                                           .is_default = is_default,
                                           .name = name,
                                           .vendor = "Mellanox",
                                           .identifier = "fe80000000000000"};
    struct fab_inventory inv;
    struct fab_planes planes = {0};
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    struct served_plane *out = NULL;
    void *bytes = NULL;
    size_t size = 0;
    fab_inventory_init(&inv);
    if (fabric_parse(spec, &inv) == 0 && fab_planes_build(&inv, FAB_COST_RATE, &planes, NULL) == 0 &&
        planes.n == 1 && fab_costs_compute(planes.planes, 1, &costs) == 0 &&
        fab_geometry_settle(planes.planes, NULL, &geometry) == 0 &&
        fab_groups_compute(planes.planes, &geometry, FAB_GROUP_LEAF, &groups) == 0 &&
        fab_snapshot_build(planes.planes, &costs, &geometry, &groups, NULL, &meta, &bytes, &size) == 0)
        served_plane_new(bytes, size, "/nowhere", &out, NULL);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);
    return out;
}

/* Serve "ib1", index 1, the default one (2 leaves, 1 spine, 2 hosts a leaf), and "ib2", index 2 (a torus of 3
 * by 3, a host each). No plane has the index 0. */
static inline bool small_serve(void)
{
    struct served_plane *planes[] = {small_plane("fattree2:2,1,2", "ib1", 1, true),
                                     small_plane("torus:3,3:1", "ib2", 2, false)};
    if (planes[0] == NULL || planes[1] == NULL)
        return false;
    struct served_set *set = served_set_new(planes, 2, 7, 1700000000123456);
    if (set == NULL)
        return false;
    served_swap(set);
    return true;
}

#endif
