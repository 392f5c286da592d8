/*
 * units.c - leaves that serve the same hosts.
 *
 * Two leaves belong together where more than half of the hosts of each have a device on the other, and at
 * least two hosts do. What belongs together directly or by others is a unit where its hosts have a device on
 * more than half of its leaves; else (hosts that are spread over a ring of leaves) there is no unit. So a
 * storage leaf that hosts of all units have a device on joins nobody, and neither does a misplugged cable.
 */
#include "topo/plane/units.h"

#include <string.h>

#include "topo/plane/units_priv.h"

/* No plain tree goes on after this. */
static bool units_possible(const struct fab_plane *plane)
{
    for (uint32_t h = 0; plane->n_switches > 1 && h < plane->n_hosts; h++) {
        const struct fab_host *host = &plane->hosts[h];
        for (uint32_t d = host->first + 1; d < host->first + host->n; d++)
            if (plane->devices[d].sw != plane->devices[host->first].sw && units_host_counts(plane, host))
                return true;
    }
    return false;
}

/* The devices of each switch, and how many hosts they are of. */
static void units_sort_devices(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    uint32_t *next = work->scratch, *last_host = work->scratch + plane->n_switches;
    for (uint32_t s = 0, at = 0; s <= plane->n_switches; s++) {
        work->first[s] = at;
        if (s < plane->n_switches) {
            next[s] = at;
            last_host[s] = FAB_NONE;
            at += plane->switches[s].n_devices;
        }
    }
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint32_t s = plane->devices[i].sw, h = plane->devices[i].host;
        if (s == FAB_NONE)
            continue;
        work->devices[next[s]++] = i;
        work->n_hosts[s] += last_host[s] != h && units_host_counts(plane, &plane->hosts[h]);
        last_host[s] = h;
    }
}

/* Count with how many hosts of leaf a each leaf above it is shared; those go to list. Returns how many. */
static uint32_t units_count_shared(const struct units_work *work, uint32_t a, uint32_t *shared,
                                   uint32_t *tick, uint32_t *list)
{
    const struct fab_plane *plane = work->plane;
    uint32_t n = 0, last = FAB_NONE, *seen = shared + plane->n_switches;
    for (uint32_t i = work->first[a]; i < work->first[a + 1]; i++) {
        uint32_t h = plane->devices[work->devices[i]].host;
        const struct fab_host *host = &plane->hosts[h];
        if (h == last || !units_host_counts(plane, host))
            continue;
        last = h;
        ++*tick;
        for (uint32_t d = host->first; d < host->first + host->n; d++) {
            uint32_t b = plane->devices[d].sw;
            if (b == FAB_NONE || b <= a || seen[b] == *tick)
                continue;
            seen[b] = *tick;
            if (shared[b]++ == 0)
                list[n++] = b;
        }
    }
    return n;
}

static void units_join_leaves(struct units_work *work)
{
    uint32_t n = work->plane->n_switches, tick = 0;
    uint32_t *shared = work->scratch, *list = work->scratch + 2 * (size_t)n;
    memset(work->scratch, 0, 2 * (size_t)n * sizeof *shared);
    for (uint32_t s = 0; s < n; s++)
        work->set[s] = s;
    for (uint32_t a = 0; a < n; a++) {
        uint32_t n_list = units_count_shared(work, a, shared, &tick, list);
        for (uint32_t i = 0; i < n_list; i++) {
            uint32_t b = list[i], both = shared[b];
            if (both >= 2 && 2 * (uint64_t)both > work->n_hosts[a] && 2 * (uint64_t)both > work->n_hosts[b])
                fab_set_join(work->set, a, b);
            shared[b] = 0;
        }
    }
}

/* Of sets of leaves, those that are units: unit[s] is a number below n_switches. */
static void units_keep_dense(struct units_work *work)
{
    const struct fab_plane *plane = work->plane;
    uint32_t n = plane->n_switches, tick = 0;
    uint32_t *leaves = work->scratch, *hosts = leaves + n, *seen = hosts + n, *unit = work->out->unit;
    memset(work->scratch, 0, 3 * (size_t)n * sizeof *leaves);
    for (uint32_t h = 0; h < plane->n_hosts; h++) {
        const struct fab_host *host = &plane->hosts[h];
        if (!units_host_counts(plane, host))
            continue;
        tick++;
        for (uint32_t d = host->first; d < host->first + host->n; d++) {
            if (plane->devices[d].sw == FAB_NONE)
                continue;
            uint32_t root = fab_set_root(work->set, plane->devices[d].sw);
            hosts[root] += seen[root] != tick;
            seen[root] = tick;
        }
    }
    memset(seen, 0, n * sizeof *seen);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t root = fab_set_root(work->set, s);
        leaves[root]++;
        seen[root] += work->n_hosts[s]; /* places where a host has a device on a leaf */
    }
    for (uint32_t s = 0; s < n; s++) {
        uint32_t root = fab_set_root(work->set, s);
        if (leaves[root] > 1 && 2 * (uint64_t)seen[root] > (uint64_t)leaves[root] * hosts[root])
            unit[s] = root;
    }
}

/* Number the units by the names of their leaves. */
static int units_number(struct units_work *work)
{
    uint32_t n = work->plane->n_switches;
    struct fab_units *out = work->out;
    uint8_t *ranked = fab_array(n, sizeof *ranked);
    if (ranked == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < n; s++)
        ranked[s] = out->unit[s] != FAB_NONE;
    int rc = fab_rank_by_name(work->plane, ranked, out->unit, work->rank);
    free(ranked);
    if (rc != 0)
        return rc;
    for (uint32_t s = 0; s < n; s++)
        if (out->unit[s] != FAB_NONE && out->unit[s] >= out->n)
            out->n = out->unit[s] + 1;
    out->label = fab_array(out->n, sizeof *out->label);
    if (out->label == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t u = 0; u < out->n; u++)
        out->label[u] = u;
    return 0;
}

static int units_search(const struct fab_plane *plane, struct fab_units *out)
{
    size_t n = plane->n_switches;
    struct units_work work = {.plane = plane, .out = out};
    /* One block: seven numbers a switch and one more, and one a device. */
    uint32_t *block = fab_array(7 * n + 1 + plane->n_devices, sizeof *block);
    if (block == NULL)
        return PMIXFAB_ERR_NOMEM;
    work.first = block;
    work.n_hosts = work.first + n + 1;
    work.set = work.n_hosts + n;
    work.rank = work.set + n;
    work.scratch = work.rank + n;
    work.devices = work.scratch + 3 * n;

    units_sort_devices(&work);
    units_join_leaves(&work);
    units_keep_dense(&work);
    int rc = units_number(&work);
    if (rc == 0 && out->n > 0)
        rc = units_find_rails(&work);
    free(block);
    return rc;
}

int fab_units_find(const struct fab_plane *plane, struct fab_units *out)
{
    size_t n = plane->n_switches;
    *out =
        (struct fab_units){.unit = fab_array(n, sizeof *out->unit), .rail = fab_array(n, sizeof *out->rail)};
    int rc = out->unit == NULL || out->rail == NULL ? PMIXFAB_ERR_NOMEM : 0;
    if (rc == 0) {
        memset(out->unit, 0xff, n * sizeof *out->unit);
        memset(out->rail, 0xff, n * sizeof *out->rail);
        if (units_possible(plane))
            rc = units_search(plane, out);
    }
    if (rc != 0)
        fab_units_destroy(out);
    return rc;
}

void fab_units_destroy(struct fab_units *units)
{
    if (units == NULL)
        return;
    free(units->unit);
    free(units->rail);
    free(units->label);
    free(units->strays);
    *units = (struct fab_units){0};
}
