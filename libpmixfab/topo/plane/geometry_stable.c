/*
 * geometry_stable.c - where a plane's switches stood before, and numbers that follow from it.
 */
#include <string.h>

#include "topo/base/search.h"
#include "topo/plane/layout.h"
#include "topo/snapshot/reader.h"

/* No number of a switch, pod or chassis is as large: one that is was not written by us. */
#define MOST_NUMBER (1u << 24)

/* ---- where they stood --------------------------------------------------------------------------- */

static enum fab_kind snapshot_kind(const struct pmixfab *before)
{
    const char *name = fab_reader_string(before, before->meta->kind);
    for (int kind = FAB_KIND_OTHER; kind <= FAB_KIND_UNATTACHED; kind++)
        if (strcmp(fab_kind_name((enum fab_kind)kind), name) == 0)
            return (enum fab_kind)kind;
    return FAB_KIND_UNATTACHED; /* of a newer writer: nothing is taken over from it */
}

/* Where old switch o stood, by its first device. */
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
 * Switches that are new, in the places of those that are gone: by most of the devices that they carry. Two
 * that share what one carried: the first by GUID has its place. gone: per old switch.
 */
static int find_successors(const struct fab_plane *plane, const struct pmixfab *before,
                           struct fab_stable *past, const uint32_t *first, const uint8_t *known,
                           uint8_t *gone)
{
    uint32_t n = plane->n_switches, *best = fab_array((size_t)2 * n, sizeof *best);
    if (best == NULL)
        return PMIXFAB_ERR_NOMEM;
    uint32_t *votes = best + n;
    /* Majority by cancelling out: the last candidate stands. */
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

int fab_stable_find(const struct fab_plane *plane, const struct pmixfab *before, struct fab_stable *past)
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
    for (uint32_t s = 0, o = 0; o < n_old; o++) { /* both by GUID */
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
        fab_stable_destroy(past);
    return rc;
}

void fab_stable_destroy(struct fab_stable *past)
{
    free(past->logical);
    *past = (struct fab_stable){0};
}

/* ---- numbers that stay -------------------------------------------------------------------------- */

/* A ranked switch: where it would stand, and where it stood. */
struct item {
    uint32_t sw, group, rank, was_group, was_rank;
};

/* A pod, group or chassis: items[first .. first+n-1]. */
struct bundle {
    uint32_t id, first, n;
    uint32_t number; /* FAB_NONE: it has none yet */
};

/* How many of a bundle's switches stood in number `was`. */
struct match {
    uint32_t bundle, was, votes;
};

static int bundle_compare_place(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int by_past(const void *x, const void *y)
{
    const struct match *a = x, *b = y;
    if (a->bundle != b->bundle)
        return a->bundle < b->bundle ? -1 : 1;
    return a->was < b->was ? -1 : a->was > b->was;
}

static int bundle_compare_majority(const void *x, const void *y)
{
    const struct match *a = x, *b = y;
    if (a->votes != b->votes)
        return a->votes > b->votes ? -1 : 1;
    return by_past(x, y);
}

static bool is_taken(const struct bundle *bundles, uint32_t n, uint32_t number)
{
    for (uint32_t i = 0; i < n; i++)
        if (bundles[i].number == number)
            return true;
    return false;
}

/* Bundles have the numbers of those with which they share the most switches, most first. */
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

/* The others have the lowest free numbers; a chassis its own one where that is free. */
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

/* Those that stay first, by their ranks; newcomers keep their order. */
static int by_rank(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    if (a->was_rank != b->was_rank)
        return a->was_rank < b->was_rank ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* A switch that stood in this bundle has its rank again; newcomers have the lowest free ones. */
static void number_items(struct item *items, uint32_t n, uint32_t number)
{
    uint32_t stay = 0, next = 0, used = 0;
    for (uint32_t i = 0; i < n; i++)
        if (items[i].was_group != number)
            items[i].was_rank = FAB_NONE;
    qsort(items, n, sizeof *items, by_rank);
    for (uint32_t i = 1; i < n; i++) /* a snapshot is not to be believed that far */
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

int fab_stable_number(const struct fab_plane *plane, const uint8_t *ranked, const uint32_t *was,
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
