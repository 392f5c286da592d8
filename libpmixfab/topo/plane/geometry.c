/* geometry.c - kinds of planes, their coordinates, and numbers that stay the same over changes. */
#include "topo/plane/geometry.h"

#include <string.h>

#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/plane/layout.h"
#include "topo/snapshot/reader.h"

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

/* No number of a switch, pod or chassis is this large: a larger one was not written by fabricd. */
#define MOST_NUMBER (1u << 24)

/* ---- former positions ------------------------------------------------------------------------------ */

static enum fab_kind snapshot_kind(const struct pmixfab *before)
{
    const char *name = fab_reader_string(before, before->meta->kind);
    for (int kind = FAB_KIND_OTHER; kind <= FAB_KIND_UNATTACHED; kind++)
        if (strcmp(fab_kind_name((enum fab_kind)kind), name) == 0)
            return (enum fab_kind)kind;
    return FAB_KIND_UNATTACHED; /* of a newer writer: nothing is taken over from it */
}

/* Find the former position of old switch o from its first device. */
static void stable_set_position(struct fab_stable *past, uint32_t s, const struct pmixfab *before,
                                uint32_t device)
{
    const uint32_t *logical = before->logical + (size_t)device * before->meta->dims;
    const uint32_t *physical = before->physical + (size_t)device * before->meta->physical_dims;
    uint32_t *to = past->logical + (size_t)s * FAB_GRID_DIMS;
    bool known = true;
    for (uint32_t d = 0; d < FAB_GRID_DIMS && d < before->meta->dims; d++)
        known = known && logical[d] < MOST_NUMBER;
    for (uint32_t d = 0; known && d < FAB_GRID_DIMS; d++)
        to[d] = d < before->meta->dims ? logical[d] : 0;
    if (before->meta->physical_dims >= 2 && physical[0] < MOST_NUMBER && physical[1] < MOST_NUMBER)
        memcpy(past->physical + (size_t)s * 2, physical, 2 * sizeof(*physical));
    const struct snap_rail *rail = before->rails != NULL ? &before->rails[before->devices[device].sw] : NULL;
    if (rail != NULL && rail->unit < MOST_NUMBER && rail->rail < MOST_NUMBER) {
        past->unit[(size_t)s * FAB_UNIT_PLACES] = rail->unit;
        past->unit[(size_t)s * FAB_UNIT_PLACES + 1] = rail->rail;
    }
}

/*
 * Match new switches with removed ones: by most of the devices that they carry. If two share the devices of
 * one, the first by GUID has its place. gone: per old switch.
 */
static int find_successors(const struct fab_plane *plane, const struct pmixfab *before,
                           struct fab_stable *past, const uint32_t *first, const uint8_t *known,
                           uint8_t *gone)
{
    uint32_t n = plane->n_switches, *best = fab_array((size_t)2 * n, sizeof *best);
    if (best == NULL)
        return PMIXFAB_ERR_NOMEM;
    uint32_t *votes = best + n;
    /* Majority by cancelling out: the last candidate stays. */
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint32_t s = plane->devices[i].sw;
        if (s == FAB_NONE || known[s])
            continue;
        uint32_t old = fab_reader_port(before, plane->inv->ports[plane->devices[i].port].guid);
        uint32_t o = old == FAB_NONE ? FAB_NONE : before->devices[old].sw;
        if (o == FAB_NONE || !gone[o])
            continue;
        if (votes[s] == 0)
            best[s] = o;
        votes[s] += best[s] == o ? 1 : -1u;
    }
    for (uint32_t s = 0; s < n; s++) {
        if (votes[s] == 0 || !gone[best[s]])
            continue;
        gone[best[s]] = 0;
        stable_set_position(past, s, before, first[best[s]]);
    }
    free(best);
    return 0;
}

static void stable_destroy(struct fab_stable *past)
{
    free(past->logical);
    *past = (struct fab_stable){0};
}

static int stable_find(const struct fab_plane *plane, const struct pmixfab *before, struct fab_stable *past)
{
    uint32_t n = plane->n_switches, n_old = before->meta->n_switches;
    uint32_t *first = fab_array(n_old, sizeof *first); /* device on each old switch */
    uint8_t *known = fab_array((size_t)n + n_old, 1);
    int rc = PMIXFAB_ERR_NOMEM;

    *past = (struct fab_stable){.kind = snapshot_kind(before), .dims = before->meta->dims};
    size_t places = FAB_GRID_DIMS + 2 + FAB_UNIT_PLACES;
    past->logical = fab_array(n * places, sizeof *past->logical);
    if (first == NULL || known == NULL || past->logical == NULL)
        goto cleanup;
    past->physical = past->logical + (size_t)n * FAB_GRID_DIMS;
    past->unit = past->physical + (size_t)n * 2;
    memset(past->logical, 0xff, n * places * sizeof *past->logical);
    uint8_t *gone = known + n;
    memset(first, 0xff, n_old * sizeof *first);
    for (uint32_t i = before->meta->n_devices; i-- > 0;)
        if (before->devices[i].sw != FAB_NONE)
            first[before->devices[i].sw] = i;
    for (uint32_t s = 0, o = 0; o < n_old; o++) { /* both in order of GUID */
        while (s < n && plane->inv->nodes[plane->switches[s].node].guid < before->switches[o].guid)
            s++;
        bool here = s < n && plane->inv->nodes[plane->switches[s].node].guid == before->switches[o].guid;
        gone[o] = !here && first[o] != FAB_NONE;
        if (here)
            known[s] = 1;
        if (here && first[o] != FAB_NONE)
            stable_set_position(past, s, before, first[o]);
    }
    rc = find_successors(plane, before, past, first, known, gone);

cleanup:
    free(first);
    free(known);
    if (rc != 0)
        stable_destroy(past);
    return rc;
}

/* ---- stable numbers -------------------------------------------------------------------------------- */

/* A ranked switch: its position as computed, and its former position. */
struct item {
    uint32_t sw, group, rank, was_group, was_rank;
};

/* A pod, group or chassis: items[first .. first+n-1]. */
struct bundle {
    uint32_t id, first, n;
    uint32_t number; /* FAB_NONE: none yet */
};

/* The number of a bundle's switches that were in number `was`. */
struct match {
    uint32_t bundle, was, votes;
};

static int bundle_compare_place(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    return FAB_ORDER(a->group, b->group) ?: FAB_ORDER(a->rank, b->rank);
}

static int by_past(const void *x, const void *y)
{
    const struct match *a = x, *b = y;
    return FAB_ORDER(a->bundle, b->bundle) ?: FAB_ORDER(a->was, b->was);
}

static int bundle_compare_majority(const void *x, const void *y)
{
    const struct match *a = x, *b = y;
    return FAB_ORDER(b->votes, a->votes) ?: by_past(x, y);
}

static bool is_taken(const struct bundle *bundles, uint32_t n, uint32_t number)
{
    for (uint32_t i = 0; i < n; i++)
        if (bundles[i].number == number)
            return true;
    return false;
}

/* Give bundles the numbers of those with which they share the most switches, largest share first. */
static int match_bundles(const struct item *items, struct bundle *bundles, uint32_t n_bundles,
                         uint32_t n_items, bool chassis)
{
    struct match *matches = fab_array(n_items, sizeof *matches);
    uint32_t n = 0, merged = 0;
    if (matches == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t b = 0; b < n_bundles; b++)
        for (uint32_t i = bundles[b].first; i < bundles[b].first + bundles[b].n; i++)
            if (items[i].was_group != FAB_NONE)
                matches[n++] = (struct match){b, items[i].was_group, 1};
    qsort(matches, n, sizeof *matches, by_past);
    for (uint32_t i = 0; i < n; i++) {
        if (merged > 0 && by_past(&matches[merged - 1], &matches[i]) == 0)
            matches[merged - 1].votes++;
        else
            matches[merged++] = matches[i];
    }
    qsort(matches, merged, sizeof *matches, bundle_compare_majority);
    for (uint32_t i = 0; i < merged; i++) {
        struct bundle *bundle = &bundles[matches[i].bundle];
        if (bundle->number == FAB_NONE && !(chassis && matches[i].was == 0) &&
            !is_taken(bundles, n_bundles, matches[i].was))
            bundle->number = matches[i].was;
    }
    free(matches);
    return 0;
}

/* Give the others the lowest free numbers; a chassis keeps its own one if it is free. */
static void bundle_number_remaining(struct bundle *bundles, uint32_t n, bool chassis)
{
    uint32_t next = chassis;
    for (uint32_t b = 0; b < n; b++) {
        if (bundles[b].number != FAB_NONE)
            continue;
        if (chassis && !is_taken(bundles, n, bundles[b].id)) {
            bundles[b].number = bundles[b].id;
            continue;
        }
        while (is_taken(bundles, n, next))
            next++;
        bundles[b].number = next++;
    }
}

/* Compare two switches. Switches with a former rank come first, by rank. New switches keep their order. */
static int by_rank(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    return FAB_ORDER(a->was_rank, b->was_rank) ?: FAB_ORDER(a->rank, b->rank);
}

/* Give a switch of this bundle its former rank; new ones get the lowest free ranks. */
static void number_items(struct item *items, uint32_t n, uint32_t number)
{
    uint32_t stay = 0, next = 0, used = 0;
    for (uint32_t i = 0; i < n; i++)
        if (items[i].was_group != number)
            items[i].was_rank = FAB_NONE;
    qsort(items, n, sizeof *items, by_rank);
    for (uint32_t i = 1; i < n; i++) /* a snapshot is not trusted that far */
        if (items[i].was_rank == items[i - 1].was_rank)
            items[i].was_rank = FAB_NONE;
    qsort(items, n, sizeof *items, by_rank);
    while (stay < n && items[stay].was_rank != FAB_NONE) {
        items[stay].rank = items[stay].was_rank;
        stay++;
    }
    for (uint32_t i = stay; i < n; i++) {
        for (; used < stay && items[used].rank == next; used++)
            next++;
        items[i].rank = next++;
    }
}

/*
 * Make numbers stable. group and rank have for each switch a pod or chassis and a place in it, as computed
 * without history. The stable numbers replace them. was: former group and place, `stride` numbers for each
 * switch. chassis: 0 means no chassis and stays 0.
 */
static int stable_number(const struct fab_plane *plane, const uint8_t *ranked, const uint32_t *was,
                         unsigned stride, bool chassis, uint32_t *group, uint32_t *rank)
{
    uint32_t n = 0, n_bundles = 0;
    struct item *items = fab_array(plane->n_switches, sizeof *items);
    struct bundle *bundles = fab_array(plane->n_switches, sizeof *bundles);
    int rc = PMIXFAB_ERR_NOMEM;

    if (items == NULL || bundles == NULL)
        goto cleanup;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (ranked[s])
            items[n++] = (struct item){s, group[s], rank[s], was[s * stride], was[s * stride + 1]};
    qsort(items, n, sizeof *items, bundle_compare_place);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || items[i].group != items[i - 1].group)
            bundles[n_bundles++] =
                (struct bundle){items[i].group, i, 0, chassis && items[i].group == 0 ? 0 : FAB_NONE};
        bundles[n_bundles - 1].n++;
    }
    rc = match_bundles(items, bundles, n_bundles, n, chassis);
    if (rc != 0)
        goto cleanup;
    bundle_number_remaining(bundles, n_bundles, chassis);
    for (uint32_t b = 0; b < n_bundles; b++)
        number_items(items + bundles[b].first, bundles[b].n, bundles[b].number);
    for (uint32_t i = 0; i < n; i++)
        rank[items[i].sw] = items[i].rank;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        uint32_t at = FAB_LOWER_BOUND(0, n_bundles, i, bundles[i].id < group[s]);
        if (at < n_bundles && bundles[at].id == group[s])
            group[s] = bundles[at].number;
    }
    rc = 0;

cleanup:
    free(items);
    free(bundles);
    return rc;
}

/* The order matters for a small network that fits two kinds; see docs/design/geometry.md. */
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

/* Compare by chassis, leaves first, then by slot, then by GUID. */
static int compare_slots(const void *x, const void *y)
{
    const struct placed_switch *one = x, *other = y;
    const struct fab_node *a = one->node, *b = other->node;
    int order = FAB_ORDER(a->chassis, b->chassis) ?: FAB_ORDER(one->ranked, other->ranked);
    if (order == 0 && a->chassis != 0)
        order = FAB_ORDER(a->slot_type, b->slot_type) ?: FAB_ORDER(a->slot, b->slot)
                ?: FAB_ORDER(a->chip, b->chip);
    return order ?: FAB_ORDER(a->guid, b->guid);
}

/*
 * Number the ranked switches within their chassis. Spines are left out, so that the loss of one changes no
 * number.
 */
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

/* Return the switch port that a device is cabled to, or its own port without a switch. 1..254. */
static uint32_t geometry_port_number(const struct fab_plane *plane, const struct fab_device *device)
{
    const struct fab_port *port = &plane->inv->ports[device->port];
    const uint32_t far = fab_port_far(plane->inv, port);
    if (device->sw != FAB_NONE && far != FAB_NONE)
        port = &plane->inv->ports[far];
    return port->num;
}

/* Write coordinates; devices without a switch come after the last switch, each on its own. */
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

/* Find the largest value of each dimension, + 1. */
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
        rc = stable_number(plane, layout->ranked, past->logical, FAB_GRID_DIMS, false, layout->pod, rank);
    return rc;
}

static int number_physical(const struct fab_plane *plane, const struct fab_layout *layout, uint32_t *chassis,
                           uint32_t *rank)
{
    for (uint32_t s = 0; s < plane->n_switches; s++)
        chassis[s] = plane->inv->nodes[plane->switches[s].node].chassis;
    int rc = rank_by_slot(plane, layout, rank);
    if (rc == 0 && layout->past != NULL)
        rc = stable_number(plane, layout->ranked, layout->past->physical, 2, true, chassis, rank);
    return rc;
}

/* rank and chassis: room for one number for each switch. */
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
    /* A ring's length counts for distances, even if its last switches carry no device. */
    for (uint32_t d = 0; d < layout->dims && plane->n_devices > 0; d++)
        out->shape[d] = layout->size[d];
    return 0;
}

/*
 * Find units, with their former numbers and the former numbers of their rails. rank and room have space for
 * one number for each switch.
 */
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
    rc = stable_number(plane, ranked, past->unit, FAB_UNIT_PLACES, false, room, rank);
    for (uint32_t s = 0; rc == 0 && s < n; s++)
        if (ranked[s])
            units->label[units->unit[s]] = room[s];
    memset(rank, 0, n * sizeof *rank);
    if (rc == 0)
        rc = stable_number(plane, ranked, past->unit + 1, FAB_UNIT_PLACES, false, units->rail, rank);
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

    layout.past = before != NULL ? &past : NULL;
    rc = (before != NULL ? stable_find(plane, before, &past) : 0) ?: fab_levels_find(plane, NULL, out->level)
         ?: geometry_detect(plane, &layout, out->level) ?: geometry_fill(plane, &layout, rank, chassis, out)
         ?: geometry_find_units(plane, layout.past, rank, chassis, &out->units);

cleanup:
    stable_destroy(&past);
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
