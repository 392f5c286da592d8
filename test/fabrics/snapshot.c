#include "test/fabrics/snapshot.h"

#include "test/fabrics/fabrics.h"

int fabric_plane_snapshot(const struct fab_plane *plane, const struct fab_details *details,
                          const struct fab_snapshot_meta *meta, void **bytes, size_t *size)
{
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    int rc = fab_costs_compute(plane, 1, &costs);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_settle(plane, NULL, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(plane, &geometry, FAB_GROUP_LEAF, &groups);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(plane, &costs, &geometry, &groups, details, meta, bytes, size);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    return rc;
}

int fabric_snapshot(const char *kind, const struct fab_snapshot_meta *meta, void **bytes, size_t *size)
{
    struct fab_inventory inv;
    struct fab_planes planes = {NULL, 0};
    fab_inventory_init(&inv);
    int rc = fabric_parse(kind, &inv);
    if (rc == PMIXFAB_OK)
        rc = fab_planes_build(&inv, FAB_COST_RATE, &planes, NULL);
    if (rc == PMIXFAB_OK && planes.n == 0)
        rc = PMIXFAB_ERR_NOTFOUND;
    if (rc == PMIXFAB_OK)
        rc = fabric_plane_snapshot(&planes.planes[0], NULL, meta, bytes, size);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);
    return rc;
}
