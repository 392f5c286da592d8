#include "test/fabrics/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fabrics/details.h"
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

/* One offset for all, so the order that they are in stays. */
static void shift_guids(struct fab_inventory *inv, uint64_t by)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        inv->nodes[i].guid += by;
        inv->nodes[i].system_guid += by;
    }
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (inv->ports[i].guid != 0)
            inv->ports[i].guid += by;
}

static int write_snapshot(const char *dir, const char *name, const void *bytes, size_t size,
                          struct fab_err *err)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.snap", dir, name);
    FILE *out = fopen(path, "wb");
    if (out == NULL)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: %s", path, strerror(errno));
    const bool failed = fwrite(bytes, 1, size, out) != size;
    if (fclose(out) != 0 || failed)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: %s", path, strerror(errno));
    return PMIXFAB_OK;
}

int fabric_snapshot_file(const char *kind, bool facts, const char *dir, const char *name, uint32_t index,
                         uint64_t generation, struct fab_err *err)
{
    const struct fab_snapshot_meta meta = {.index = name == NULL ? 1 : index,
                                           .generation = name == NULL ? 3 : generation,
                                           .published = 1700000000123456,
                                           .is_default = name == NULL,
                                           .name = name == NULL ? "ib0" : name,
                                           .vendor = "test",
                                           .identifier = "test"};
    struct fab_inventory inv;
    struct fab_planes planes = {0};
    struct fab_details details = {0};
    void *bytes = NULL;
    size_t size = 0;
    fab_inventory_init(&inv);
    int rc = fabric_parse(kind, &inv);
    if (rc == PMIXFAB_OK) {
        shift_guids(&inv, (uint64_t)(meta.index - 1) << 32);
        rc = fab_planes_build(&inv, FAB_COST_RATE, &planes, err);
    }
    if (rc == PMIXFAB_OK && planes.n == 0)
        rc = PMIXFAB_ERR_NOTFOUND;
    if (rc == PMIXFAB_OK && facts)
        rc = fabric_details(&inv, 0, &details);
    if (rc == PMIXFAB_OK)
        rc = fabric_plane_snapshot(&planes.planes[0], facts ? &details : NULL, &meta, &bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = write_snapshot(dir, meta.name, bytes, size, err);
    free(bytes);
    fabric_details_destroy(&details);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);
    return rc;
}
