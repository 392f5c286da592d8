/*
 * geometry.c - kinds of planes, and the coordinates that follow from them.
 */
#include "topo/plane/geometry.h"

#include <string.h>

#include "topo/plane/layout.h"

/* The order matters where a small network is of two kinds; see docs/design/geometry.md. */
static int geometry_detect(const struct fab_plane *plane, struct fab_layout *layout, uint8_t *level)
{
    static int (*const recognisers[])(const struct fab_plane *, struct fab_layout *) = {
        fab_layout_plain_tree, fab_layout_grid, fab_layout_tree, fab_layout_dragonfly};
    const bool had_two = layout->past != NULL && layout->past->kind == FAB_KIND_FATTREE_2;
    if (plane->n_switches > 1) {
        for (size_t i = 0; i < sizeof recognisers / sizeof recognisers[0]; i++) {
            int rc = recognisers[i](plane, layout);
            if (rc > 0 && layout->kind == FAB_KIND_FATTREE_2 && !had_two)
                rc = fab_layout_upper(plane, layout, level);
            if (rc != 0)
                return rc < 0 ? rc : 0;
        }
        int rc = fab_layout_upper(plane, layout, level);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    layout->kind = plane->unattached        ? FAB_KIND_UNATTACHED
                   : plane->n_switches == 0 ? FAB_KIND_SWITCHLESS
                   : plane->n_switches == 1 ? FAB_KIND_SINGLE
                                            : FAB_KIND_OTHER;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        layout->pod[s] = 0;
        layout->ranked[s] = plane->switches[s].n_devices > 0;
    }
    return 0;
}

struct placed_switch {
    const struct fab_node *node;
    uint32_t sw;
    uint8_t ranked;
};

/* By chassis, leaves first, then by where the chassis holds it, then by GUID. */
static int compare_slots(const void *x, const void *y)
{
    const struct placed_switch *one = x, *other = y;
    const struct fab_node *a = one->node, *b = other->node;
    if (a->chassis != b->chassis)
        return a->chassis < b->chassis ? -1 : 1;
    if (one->ranked != other->ranked)
        return one->ranked < other->ranked ? -1 : 1;
    if (a->chassis != 0) {
        if (a->slot_type != b->slot_type)
            return a->slot_type < b->slot_type ? -1 : 1;
        if (a->slot != b->slot)
            return a->slot < b->slot ? -1 : 1;
        if (a->chip != b->chip)
            return a->chip < b->chip ? -1 : 1;
    }
    return a->guid < b->guid ? -1 : a->guid > b->guid;
}

/* Number the ranked switches within their chassis. Spines are left out, so that losing one moves nobody. */
static int rank_by_slot(const struct fab_plane *plane, const struct fab_layout *layout, uint32_t *rank)
{
    uint32_t n = 0;
    struct placed_switch *order = fab_array(plane->n_switches, sizeof *order);
    if (order == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (layout->ranked[s])
            order[n++] =
                (struct placed_switch){&plane->inv->nodes[plane->switches[s].node], s, layout->ranked[s]};
    qsort(order, n, sizeof *order, compare_slots);
    for (uint32_t i = 0; i < n; i++) {
        bool same = i > 0 && order[i].node->chassis == order[i - 1].node->chassis;
        rank[order[i].sw] = same ? rank[order[i - 1].sw] + 1 : 0;
    }
    free(order);
    return 0;
}

/* The switch port that a device is cabled to; its own port where there is no switch. 1..254. */
static uint32_t geometry_port_number(const struct fab_plane *plane, const struct fab_device *device)
{
    const struct fab_port *port = &plane->inv->ports[device->port];
    const uint32_t far = fab_port_far(plane->inv, port);
    if (device->sw != FAB_NONE && far != FAB_NONE)
        port = &plane->inv->ports[far];
    return port->num;
}

/* Write coordinates; devices without a switch stand behind the last switch, each on its own. */
static void fill_logical(const struct fab_plane *plane, const struct fab_layout *layout, const uint32_t *rank,
                         struct fab_geometry *out)
{
    bool grid = layout->dims > 0, with_port = !grid || out->dims > layout->dims;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        const struct fab_device *device = &plane->devices[i];
        uint32_t *at = out->logical + (size_t)i * out->dims, sw = device->sw, d = 0;
        if (grid && sw != FAB_NONE) {
            for (; d < layout->dims; d++)
                at[d] = layout->pos[sw * FAB_GRID_DIMS + d];
        } else {
            at[d++] = sw != FAB_NONE ? out->pod[sw] : 0;
            at[d++] = sw != FAB_NONE ? rank[sw] : plane->n_switches + i;
        }
        if (with_port)
            at[d] = geometry_port_number(plane, device) - 1;
    }
}

static void fill_physical(const struct fab_plane *plane, const uint32_t *chassis, const uint32_t *rank,
                          struct fab_geometry *out)
{
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        const struct fab_device *device = &plane->devices[i];
        uint32_t *at = out->physical + (size_t)i * out->physical_dims, sw = device->sw;
        at[0] = sw != FAB_NONE ? chassis[sw] : 0;
        at[1] = sw != FAB_NONE ? rank[sw] : plane->n_switches + i;
        at[2] = geometry_port_number(plane, device);
    }
}

/* One more than the largest value of each dimension. */
static void find_shape(const uint32_t *coords, uint32_t n, uint32_t dims, uint32_t *shape)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t d = 0; d < dims; d++)
            if (coords[(size_t)i * dims + d] >= shape[d])
                shape[d] = coords[(size_t)i * dims + d] + 1;
}

static bool shared_switches(const struct fab_plane *plane)
{
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (plane->switches[s].n_devices > 1)
            return true;
    return false;
}

static int number_logical(const struct fab_plane *plane, struct fab_layout *layout, uint32_t *rank)
{
    const struct fab_stable *past = layout->past;
    int rc = fab_rank_by_name(plane, layout->ranked, layout->pod, rank);
    if (rc == 0 && past != NULL && past->kind == layout->kind && layout->dims == 0)
        rc = fab_stable_number(plane, layout->ranked, past->logical, FAB_GRID_DIMS, false, layout->pod, rank);
    return rc;
}

static int number_physical(const struct fab_plane *plane, const struct fab_layout *layout, uint32_t *chassis,
                           uint32_t *rank)
{
    for (uint32_t s = 0; s < plane->n_switches; s++)
        chassis[s] = plane->inv->nodes[plane->switches[s].node].chassis;
    int rc = rank_by_slot(plane, layout, rank);
    if (rc == 0 && layout->past != NULL)
        rc = fab_stable_number(plane, layout->ranked, layout->past->physical, 2, true, chassis, rank);
    return rc;
}

/* rank and chassis: room for a number a switch. */
static int geometry_fill(const struct fab_plane *plane, struct fab_layout *layout, uint32_t *rank,
                         uint32_t *chassis, struct fab_geometry *out)
{
    const struct fab_stable *past = layout->past;
    out->kind = layout->kind;
    out->dims = 3;
    if (layout->dims > 0) {
        bool had_port = past != NULL && past->kind == layout->kind && past->dims > layout->dims;
        out->dims = layout->dims + (had_port || shared_switches(plane));
    }
    out->physical_dims = 3;
    out->logical = fab_array((size_t)plane->n_devices * out->dims, sizeof *out->logical);
    out->physical = fab_array((size_t)plane->n_devices * out->physical_dims, sizeof *out->physical);
    if (out->logical == NULL || out->physical == NULL)
        return PMIXFAB_ERR_NOMEM;

    int rc = number_logical(plane, layout, rank);
    if (rc != 0)
        return rc;
    fill_logical(plane, layout, rank, out);
    rc = number_physical(plane, layout, chassis, rank);
    if (rc != 0)
        return rc;
    fill_physical(plane, chassis, rank, out);

    find_shape(out->logical, plane->n_devices, out->dims, out->shape);
    find_shape(out->physical, plane->n_devices, out->physical_dims, out->physical_shape);
    /* A ring's length counts for distances, even where its last switches carry no device. */
    for (uint32_t d = 0; d < layout->dims && plane->n_devices > 0; d++)
        out->shape[d] = layout->size[d];
    return 0;
}

/* Units, with the numbers that they and their rails had. rank, room: room for a number a switch. */
static int geometry_find_units(const struct fab_plane *plane, const struct fab_stable *past, uint32_t *rank,
                               uint32_t *room, struct fab_units *units)
{
    uint32_t n = plane->n_switches;
    int rc = fab_units_find(plane, units);
    if (rc != 0 || units->n == 0 || past == NULL)
        return rc;
    uint8_t *ranked = fab_array(n, sizeof *ranked);
    if (ranked == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < n; s++)
        ranked[s] = units->unit[s] != FAB_NONE;
    memcpy(room, units->unit, n * sizeof *room);
    memset(rank, 0, n * sizeof *rank);
    rc = fab_stable_number(plane, ranked, past->unit, FAB_UNIT_PLACES, false, room, rank);
    for (uint32_t s = 0; rc == 0 && s < n; s++)
        if (ranked[s])
            units->label[units->unit[s]] = room[s];
    memset(rank, 0, n * sizeof *rank);
    if (rc == 0)
        rc = fab_stable_number(plane, ranked, past->unit + 1, FAB_UNIT_PLACES, false, units->rail, rank);
    free(ranked);
    return rc;
}

int fab_geometry_settle(const struct fab_plane *plane, const struct pmixfab *before, struct fab_geometry *out)
{
    struct fab_layout layout = {.kind = FAB_KIND_OTHER};
    struct fab_stable past = {.kind = FAB_KIND_OTHER};
    uint32_t n = plane->n_switches;
    int rc = PMIXFAB_ERR_NOMEM;

    memset(out, 0, sizeof *out);
    out->level = fab_array(n, sizeof *out->level);
    out->pod = fab_array(n, sizeof *out->pod);
    layout.pos = fab_array((size_t)n * (FAB_GRID_DIMS + 2), sizeof *layout.pos);
    layout.ranked = fab_array(n, sizeof *layout.ranked);
    if (out->level == NULL || out->pod == NULL || layout.pos == NULL || layout.ranked == NULL)
        goto cleanup;
    uint32_t *rank = layout.pos + (size_t)n * FAB_GRID_DIMS, *chassis = rank + n;
    layout.pod = out->pod;
    layout.level = out->level;

    rc = before != NULL ? fab_stable_find(plane, before, &past) : 0;
    layout.past = before != NULL && rc == 0 ? &past : NULL;
    if (rc == 0)
        rc = fab_levels_find(plane, NULL, out->level);
    if (rc == 0)
        rc = geometry_detect(plane, &layout, out->level);
    if (rc == 0)
        rc = geometry_fill(plane, &layout, rank, chassis, out);
    if (rc == 0)
        rc = geometry_find_units(plane, layout.past, rank, chassis, &out->units);

cleanup:
    fab_stable_destroy(&past);
    free(layout.pos);
    free(layout.ranked);
    if (rc != 0)
        fab_geometry_destroy(out);
    return rc;
}

int fab_geometry_levels(const struct fab_plane *plane, uint8_t *level)
{
    struct fab_layout layout = {.kind = FAB_KIND_OTHER, .level = level};
    const uint32_t n = plane->n_switches;
    layout.pos = fab_array((size_t)n * (FAB_GRID_DIMS + 1), sizeof *layout.pos);
    layout.ranked = fab_array(n, sizeof *layout.ranked);
    int rc =
        layout.pos == NULL || layout.ranked == NULL ? PMIXFAB_ERR_NOMEM : fab_levels_find(plane, NULL, level);
    layout.pod = layout.pos == NULL ? NULL : layout.pos + (size_t)n * FAB_GRID_DIMS;
    if (rc == 0)
        rc = geometry_detect(plane, &layout, level);
    free(layout.pos);
    free(layout.ranked);
    return rc;
}

void fab_geometry_destroy(struct fab_geometry *geometry)
{
    if (geometry == NULL)
        return;
    free(geometry->logical);
    free(geometry->physical);
    free(geometry->level);
    free(geometry->pod);
    fab_units_destroy(&geometry->units);
    memset(geometry, 0, sizeof *geometry);
}
