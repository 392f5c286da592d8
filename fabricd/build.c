#include "fabricd/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/numbers.h"
#include "topo/snapshot.h"

/* Vendors by the IEEE number in node records; only those that made InfiniBand switches or HCAs. */
static const struct {
    uint32_t id;
    const char *name;
} vendors[] = {
    {0x0002c9, "Mellanox"}, {0x001175, "QLogic"}, {0x00066a, "QLogic"}, {0x0008f1, "Voltaire"},
    {0x0005ad, "Cisco"},    {0x000677, "IBM"},    {0x005c4c, "Huawei"}, {0x000e80, "Intel"},
};

static const char *vendor_name(uint32_t id)
{
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
        if (vendors[i].id == id)
            return vendors[i].name;
    return "unknown";
}

/* The vendor of most of a plane's switches; of its first device where it has none. */
static const char *plane_vendor(const struct fab_plane *plane)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t id = 0, votes = 0; /* majority by cancelling out, then the last candidate stands */
    for (uint32_t i = 0; i < plane->n_switches; i++) {
        uint32_t one = inv->nodes[plane->switches[i].node].vendor_id;
        if (votes == 0)
            id = one;
        votes = one == id ? votes + 1 : votes - 1;
    }
    if (plane->n_switches == 0 && plane->n_devices > 0)
        id = inv->nodes[inv->ports[plane->devices[0].port].node].vendor_id;
    return vendor_name(id);
}

static int build_one(const struct fab_plane *plane, const struct config *config, bool is_default,
                     struct built_plane *out)
{
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    char identifier[40];
    uint64_t prefix = plane->inv->n_subnets > plane->subnet ? plane->inv->subnets[plane->subnet].prefix
                                                            : FAB_DEFAULT_PREFIX;
    snprintf(identifier, sizeof(identifier), "InfiniBand-%016llx", (unsigned long long)prefix);
    struct fab_snapshot_meta meta = {.index = out->index,
                                     .is_default = is_default,
                                     .name = out->name,
                                     .vendor = config->vendor != NULL ? config->vendor : plane_vendor(plane),
                                     .identifier = identifier};
    int rc = fab_costs_compute(plane, 0, &costs);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_compute(plane, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(plane, &geometry, config->groups, &groups);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(plane, &costs, &geometry, &groups, NULL, &meta, &out->bytes, &out->size);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    return rc;
}

/* Which of the planes is the default: the configured one, else the first (planes come largest first). */
static uint32_t default_of(const struct built *built, const struct config *config)
{
    for (uint32_t i = 0; config->default_plane != NULL && i < built->n; i++)
        if (strcmp(built->planes[i].name, config->default_plane) == 0)
            return i;
    return 0;
}

int build_planes(const struct fab_inventory *inv, const struct config *config,
                 const struct store_plane *known, uint32_t n_known, struct built *out, struct fab_err *err)
{
    struct fab_planes planes = {0};
    *out = (struct built){0};
    int rc = fab_planes_build(inv, config->cost_model, &planes, err);
    if (rc != PMIXFAB_OK)
        return rc;
    out->planes = calloc(planes.n > 0 ? planes.n : 1, sizeof(*out->planes));
    if (out->planes == NULL) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        goto cleanup;
    }
    out->n = planes.n;
    rc = number_planes(&planes, known, n_known, out->planes, err);
    uint32_t first = default_of(out, config);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < planes.n; i++) {
        rc = build_one(&planes.planes[i], config, i == first, &out->planes[i]);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "plane %s cannot be computed: %s", out->planes[i].name, pmixfab_strerror(rc));
    }
cleanup:
    fab_planes_destroy(&planes);
    if (rc != PMIXFAB_OK)
        built_destroy(out);
    return rc;
}

void built_destroy(struct built *built)
{
    for (uint32_t i = 0; built->planes != NULL && i < built->n; i++)
        free(built->planes[i].bytes);
    free(built->planes);
    *built = (struct built){0};
}
