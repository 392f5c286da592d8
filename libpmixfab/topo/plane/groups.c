/* groups.c - collect hosts by switch, unit or pod, and sort the groups. */
#include "topo/plane/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/base/radix.h"

#define NAME_ROOM 20 /* "group4294967295" */

/* A group under construction: hosts[0..n-1]. */
struct bucket {
    uint32_t *hosts;
    uint32_t n;
    uint32_t of; /* number of the bucket */
};

/* Return the lowest device without a switch on the same cable as device i, which has no switch itself. */
static uint32_t first_on_cable(const struct fab_plane *plane, uint32_t i)
{
    uint32_t peer = plane->inv->ports[plane->devices[i].port].peer;
    if (peer != FAB_NONE)
        for (uint32_t j = 0; j < i; j++)
            if (plane->devices[j].port == peer)
                return j;
    return i;
}

/* Return the effective grouping for this kind of plane. */
static enum fab_group_by groups_by(const struct fab_geometry *geometry, enum fab_group_by by)
{
    switch (geometry->kind) {
    case FAB_KIND_DRAGONFLY:
    case FAB_KIND_MESH_2D:
    case FAB_KIND_MESH_3D:
    case FAB_KIND_TORUS_2D:
    case FAB_KIND_TORUS_3D:
        return by == FAB_GROUP_AUTO ? FAB_GROUP_LEAF : by;
    default:
        return by == FAB_GROUP_AUTO ? FAB_GROUP_UNIT : by;
    }
}

/* For each switch find the first one of its pod or unit, which represents it: stable numbers can be any. */
static int groups_find_leaders(const struct fab_plane *plane, const struct fab_geometry *geometry,
                               enum fab_group_by by, uint32_t *leader)
{
    const uint32_t *number = by == FAB_GROUP_POD ? geometry->pod : geometry->units.unit;
    uint32_t n = plane->n_switches;
    for (uint32_t s = 0; s < n; s++)
        leader[s] = s;
    if (by == FAB_GROUP_LEAF || (by == FAB_GROUP_UNIT && geometry->units.n == 0))
        return 0;
    struct fab_key *keys = calloc(2 * (size_t)n + 1, sizeof *keys);
    if (keys == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < n; s++)
        keys[s] = (struct fab_key){number[s], s};
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t i = 1; i < n; i++)
        if (keys[i].value == keys[i - 1].value && keys[i].value != FAB_NONE)
            leader[keys[i].index] = leader[keys[i - 1].index];
    free(keys);
    return 0;
}

/* Return whether a host has a device that jobs use. */
static bool groups_host_computes(const struct fab_plane *plane, const struct fab_host *host)
{
    bool computes = false;
    for (uint32_t i = host->first; i < host->first + host->n; i++)
        computes |= plane->devices[i].compute;
    return computes;
}

/*
 * Find the bucket of each device. It is the bucket of its leaf's representative. Each device without a switch
 * has a bucket after those. FAB_NONE: none.
 */
static void groups_sort_devices(const struct fab_plane *plane, const uint32_t *leader, uint32_t *bucket)
{
    bool computes = false;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        const struct fab_host *host = &plane->hosts[plane->devices[i].host];
        uint32_t sw = plane->devices[i].sw;
        if (i == host->first)
            computes = groups_host_computes(plane, host);
        if (computes && !plane->devices[i].compute)
            bucket[i] = FAB_NONE;
        else if (plane->unattached)
            bucket[i] = plane->hosts[plane->devices[i].host].first;
        else if (sw == FAB_NONE)
            bucket[i] = plane->n_switches + first_on_cable(plane, i);
        else
            bucket[i] = leader[sw];
    }
}

/* Compare lexicographically; a group that is the beginning of another one comes first. */
static int compare_buckets(const void *x, const void *y)
{
    const struct bucket *a = x, *b = y;
    for (uint32_t i = 0; i < a->n && i < b->n; i++)
        if (a->hosts[i] != b->hosts[i])
            return FAB_ORDER(a->hosts[i], b->hosts[i]);
    return FAB_ORDER(a->n, b->n);
}

/*
 * Collect each bucket's hosts in pool. Devices are in the order of their hosts, so hosts come in ascending
 * order, and a repeated host comes twice in a row.
 */
static void groups_collect_hosts(const struct fab_plane *plane, const uint32_t *bucket,
                                 struct bucket *buckets, size_t n_buckets, uint32_t *pool)
{
    for (uint32_t i = 0; i < plane->n_devices; i++)
        if (bucket[i] != FAB_NONE)
            buckets[bucket[i]].n++; /* at most: some devices may share a host */
    for (size_t b = 0; b < n_buckets; b++) {
        buckets[b].hosts = pool;
        buckets[b].of = (uint32_t)b;
        pool += buckets[b].n;
        buckets[b].n = 0;
    }
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        if (bucket[i] == FAB_NONE)
            continue;
        struct bucket *b = &buckets[bucket[i]];
        uint32_t host = plane->devices[i].host;
        if (b->n == 0 || b->hosts[b->n - 1] != host)
            b->hosts[b->n++] = host;
    }
}

/* Write the groups in order, without empty buckets. */
static int write_groups(struct bucket *buckets, size_t n_buckets, struct fab_groups *out)
{
    uint32_t n = 0;
    for (size_t b = 0; b < n_buckets; b++) {
        if (buckets[b].n == 0)
            continue;
        buckets[n++] = buckets[b];
        out->n_members += buckets[b].n;
    }
    out->n = n;
    qsort(buckets, n, sizeof *buckets, compare_buckets);

    out->start = calloc((size_t)n + 1, sizeof *out->start);
    out->members = calloc((size_t)out->n_members + 1, sizeof *out->members);
    if (out->start == NULL || out->members == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t g = 0; g < n; g++) {
        memcpy(out->members + out->start[g], buckets[g].hosts, buckets[g].n * sizeof *out->members);
        out->start[g + 1] = out->start[g] + buckets[g].n;
    }
    return 0;
}

/*
 * Return a group's name, made in room if it is not a switch's or host's name. *leaf: the switch whose name it
 * is.
 */
static const char *groups_name(const struct fab_plane *plane, const struct fab_geometry *geometry,
                               enum fab_group_by by, uint32_t bucket, char room[NAME_ROOM], uint32_t *leaf)
{
    *leaf = FAB_NONE;
    if (plane->unattached || bucket >= plane->n_switches) {
        uint32_t device = plane->unattached ? bucket : bucket - plane->n_switches;
        return plane->hosts[plane->devices[device].host].name;
    }
    uint32_t unit = by == FAB_GROUP_UNIT ? geometry->units.unit[bucket] : FAB_NONE;
    if (by == FAB_GROUP_POD)
        snprintf(room, NAME_ROOM, geometry->kind == FAB_KIND_DRAGONFLY ? "group%u" : "pod%u",
                 geometry->pod[bucket]);
    if (unit != FAB_NONE)
        snprintf(room, NAME_ROOM, "unit%u", geometry->units.label[unit] + 1);
    if (by == FAB_GROUP_POD || unit != FAB_NONE)
        return room;
    *leaf = bucket;
    return fab_str(plane->inv, plane->inv->nodes[plane->switches[bucket].node].name);
}

static int groups_write_names(const struct fab_plane *plane, const struct fab_geometry *geometry,
                              enum fab_group_by by, const struct bucket *buckets, struct fab_groups *out)
{
    out->names = calloc((size_t)out->n + 1, sizeof(const char *));
    out->leaf = calloc((size_t)out->n + 1, sizeof *out->leaf);
    out->made = calloc((size_t)out->n + 1, NAME_ROOM);
    if (out->names == NULL || out->leaf == NULL || out->made == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t g = 0; g < out->n; g++)
        out->names[g] =
            groups_name(plane, geometry, by, buckets[g].of, out->made + (size_t)g * NAME_ROOM, &out->leaf[g]);
    return 0;
}

int fab_groups_compute(const struct fab_plane *plane, const struct fab_geometry *geometry,
                       enum fab_group_by by, struct fab_groups *out)
{
    size_t n_buckets = (size_t)plane->n_switches + plane->n_devices;
    struct bucket *buckets = calloc(n_buckets + 1, sizeof *buckets);
    uint32_t *bucket = calloc((size_t)plane->n_devices + 1, sizeof *bucket);
    uint32_t *pool = calloc(n_buckets + 1, sizeof *pool);
    int rc = PMIXFAB_ERR_NOMEM;

    memset(out, 0, sizeof *out);
    if (buckets == NULL || bucket == NULL || pool == NULL)
        goto cleanup;
    uint32_t *leader = pool + plane->n_devices;
    by = groups_by(geometry, by);
    rc = groups_find_leaders(plane, geometry, by, leader);
    if (rc != 0)
        goto cleanup;
    groups_sort_devices(plane, leader, bucket);
    groups_collect_hosts(plane, bucket, buckets, n_buckets, pool);
    rc = write_groups(buckets, n_buckets, out) ?: groups_write_names(plane, geometry, by, buckets, out);
cleanup:
    free(buckets);
    free(bucket);
    free(pool);
    if (rc != 0)
        fab_groups_destroy(out);
    return rc;
}

void fab_groups_destroy(struct fab_groups *groups)
{
    if (groups == NULL)
        return;
    free(groups->start);
    free(groups->members);
    free(groups->names);
    free(groups->leaf);
    free(groups->made);
    memset(groups, 0, sizeof *groups);
}
