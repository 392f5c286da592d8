/*
 * rail_planes.c - planes that are one rail each.
 *
 * Where rails are wired apart, each is a plane: planes that serve the same hosts. Two do where more than half
 * of the hosts of each, and at least two, are in the other one.
 */
#include "fabricd/engine/rail_planes.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "topo/base/radix.h"

#define MOST_PLANES 64 /* a fabric in more parts than that is not wired by rails, it is broken */

static bool rail_host_counts(const struct fab_plane *plane, const struct fab_host *host)
{
    const struct fab_inventory *inv = plane->inv;
    return !plane->unattached && !inv->nodes[inv->ports[plane->devices[host->first].port].node].unnamed;
}

/* The hosts that count, by name; the index is that of their plane. hosts[p]: how many. */
static uint32_t rail_sort_hosts(const struct fab_planes *planes, struct fab_key *keys, uint32_t room,
                                uint32_t *hosts)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < planes->n; p++) {
        const struct fab_plane *plane = &planes->planes[p];
        for (uint32_t h = 0; h < plane->n_hosts; h++) {
            const char *name = plane->hosts[h].name;
            if (!rail_host_counts(plane, &plane->hosts[h]))
                continue;
            keys[n++] = (struct fab_key){XXH3_64bits(name, strlen(name)), p};
            hosts[p]++;
        }
    }
    fab_radix_sort(keys, keys + room, n);
    return n;
}

/* Two topologies of one file show the same hosts' cables twice. */
static bool rail_are_views(const struct fab_plane *p, const struct fab_plane *q)
{
    const uint64_t a = p->n_switches > 0 ? p->inv->nodes[p->switches[0].node].guid : 0;
    const uint64_t b = q->n_switches > 0 ? q->inv->nodes[q->switches[0].node].guid : 0;
    return FAB_GUID_IS_OF_NAME(a) && FAB_GUID_IS_OF_NAME(b) && FAB_GUID_VIEW(a) != FAB_GUID_VIEW(b);
}

int rail_planes_find(const struct fab_planes *planes, bool *is_rail)
{
    uint32_t room = 0, hosts[MOST_PLANES] = {0};
    memset(is_rail, 0, planes->n * sizeof(*is_rail));
    for (uint32_t p = 0; p < planes->n; p++)
        room += planes->planes[p].n_hosts;
    if (planes->n < 2 || planes->n > MOST_PLANES)
        return PMIXFAB_OK;
    struct fab_key *keys = malloc((2 * (size_t)room + 1) * sizeof(*keys));
    uint32_t(*shared)[MOST_PLANES] = calloc(MOST_PLANES, sizeof(*shared));
    if (keys != NULL && shared != NULL) {
        uint32_t n = rail_sort_hosts(planes, keys, room, hosts);
        for (uint32_t i = 0, end; i < n; i = end) {
            for (end = i + 1; end < n && keys[end].value == keys[i].value; end++)
                for (uint32_t k = i; k < end; k++) /* planes ascend: the sort is stable */
                    shared[keys[k].index][keys[end].index]++;
        }
        for (uint32_t p = 0; p < planes->n; p++)
            for (uint32_t q = p + 1; q < planes->n; q++)
                if (shared[p][q] >= 2 && 2 * shared[p][q] > hosts[p] && 2 * shared[p][q] > hosts[q] &&
                    !rail_are_views(&planes->planes[p], &planes->planes[q]))
                    is_rail[p] = is_rail[q] = true;
    }
    int rc = keys == NULL || shared == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    free(keys);
    free(shared);
    return rc;
}

void rail_planes_mark(const struct fab_plane *plane, uint32_t number, struct fab_geometry *geometry)
{
    if (geometry->units.n > 0 || number == 0)
        return;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (plane->switches[s].n_devices > 0)
            geometry->units.rail[s] = number - 1;
}
