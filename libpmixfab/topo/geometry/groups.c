/*
 * groups.c - collects hosts by switch or by pod, and puts the groups in order.
 */
#include "topo/geometry/groups.h"

#include <stdlib.h>
#include <string.h>

/* A group while it is being collected: hosts[0..n-1]. */
struct bucket {
    uint32_t *hosts;
    uint32_t n;
};

/* The lowest device without a switch on the same cable as device i, itself without one. */
static uint32_t first_on_cable(const struct fab_plane *plane, uint32_t i)
{
    uint32_t peer = plane->inv->ports[plane->devices[i].port].peer;
    if (peer != FAB_NONE)
        for (uint32_t j = 0; j < i; j++)
            if (plane->devices[j].port == peer)
                return j;
    return i;
}

/* Which bucket each device falls into: one for each switch or pod, then one for each device without a switch.
 */
static void groups_sort_devices(const struct fab_plane *plane, const struct fab_geometry *geometry,
                                enum fab_group_by by, uint32_t *bucket)
{
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint32_t sw = plane->devices[i].sw;
        if (plane->unattached)
            bucket[i] = plane->hosts[plane->devices[i].host].first;
        else if (sw == FAB_NONE)
            bucket[i] = plane->n_switches + first_on_cable(plane, i);
        else
            bucket[i] = by == FAB_GROUP_POD ? geometry->pod[sw] : sw;
    }
}

/* Lexicographic; a group that another one begins with comes first. */
static int compare_buckets(const void *x, const void *y)
{
    const struct bucket *a = x, *b = y;
    for (uint32_t i = 0; i < a->n && i < b->n; i++)
        if (a->hosts[i] != b->hosts[i])
            return a->hosts[i] < b->hosts[i] ? -1 : 1;
    return a->n < b->n ? -1 : a->n > b->n;
}

/*
 * Collect each bucket's hosts in pool. Devices stand in the order of their hosts, so hosts come in ascending
 * order, and one that comes twice comes twice in a row.
 */
static void groups_collect_hosts(const struct fab_plane *plane, const uint32_t *bucket,
                                 struct bucket *buckets, size_t n_buckets, uint32_t *pool)
{
    for (uint32_t i = 0; i < plane->n_devices; i++)
        buckets[bucket[i]].n++; /* at most: some may share a host */
    for (size_t b = 0; b < n_buckets; b++) {
        buckets[b].hosts = pool;
        pool += buckets[b].n;
        buckets[b].n = 0;
    }
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct bucket *b = &buckets[bucket[i]];
        uint32_t host = plane->devices[i].host;
        if (b->n == 0 || b->hosts[b->n - 1] != host)
            b->hosts[b->n++] = host;
    }
}

/* Write what was collected out, in order and without empty buckets. */
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

int fab_groups_compute(const struct fab_plane *plane, const struct fab_geometry *geometry,
                       enum fab_group_by by, struct fab_groups *out)
{
    size_t n_buckets = (size_t)plane->n_switches + plane->n_devices;
    struct bucket *buckets = calloc(n_buckets + 1, sizeof *buckets);
    uint32_t *bucket = calloc((size_t)plane->n_devices + 1, sizeof *bucket);
    uint32_t *pool = calloc((size_t)plane->n_devices + 1, sizeof *pool);
    int rc = PMIXFAB_ERR_NOMEM;

    memset(out, 0, sizeof *out);
    if (buckets != NULL && bucket != NULL && pool != NULL) {
        groups_sort_devices(plane, geometry, by, bucket);
        groups_collect_hosts(plane, bucket, buckets, n_buckets, pool);
        rc = write_groups(buckets, n_buckets, out);
    }
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
    memset(groups, 0, sizeof *groups);
}
