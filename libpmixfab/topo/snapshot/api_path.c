/* api_path.c - one of the cheapest paths between two devices, switch by switch. */
#include <stdlib.h>

#include "topo/snapshot/reader.h"

/* Of the cheapest way from the start: what it costs, and the switch before. */
struct path_step {
    uint32_t cost, before;
};

static bool path_improve(const struct pmixfab *fab, uint32_t start, struct path_step *steps, uint32_t from,
                         uint32_t to, uint16_t cost)
{
    const uint32_t way = steps[from].cost;
    /* a path may begin or end at a missing switch, none leads through it */
    if (way == UINT32_MAX || (fab->switches[from].missing != 0 && from != start) ||
        steps[to].cost <= way + cost)
        return false;
    steps[to] = (struct path_step){way + cost, from};
    return true;
}

/*
 * Look at all cables again and again until no way becomes cheaper: that is as many times as the longest way
 * has switches, which is few, and needs no lists of neighbours, which would take as long to make.
 */
static void path_search(const struct pmixfab *fab, uint32_t start, struct path_step *steps)
{
    bool better = true;

    for (uint32_t s = 0; s < fab->meta->n_switches; s++)
        steps[s] = (struct path_step){UINT32_MAX, FAB_NONE};
    steps[start].cost = 0;
    while (better) {
        better = false;
        for (uint32_t i = 0; i < fab->meta->n_links; i++) {
            const struct snap_link *cable = &fab->links[i];
            const uint32_t a = cable->a & ~SNAP_END_KIND, b = cable->b & ~SNAP_END_KIND;
            if ((cable->a & SNAP_END_KIND) != SNAP_END_SWITCH ||
                (cable->b & SNAP_END_KIND) != SNAP_END_SWITCH)
                continue;
            better |= path_improve(fab, start, steps, a, b, cable->cost);
            better |= path_improve(fab, start, steps, b, a, cable->cost);
        }
    }
}

int pmixfab_path(const struct pmixfab *fab, uint32_t a, uint32_t b, uint32_t *switches, size_t room,
                 uint32_t *n)
{
    if (fab == NULL || n == NULL || (switches == NULL && room > 0) || a >= fab->meta->n_devices ||
        b >= fab->meta->n_devices)
        return PMIXFAB_ERR_INVAL;
    if (fab_cost_of(&fab->costs, a, b) == FAB_COST_NO_PATH)
        return PMIXFAB_ERR_NOTFOUND;
    const uint32_t start = fab->devices[a].sw, end = fab->devices[b].sw;
    uint32_t count = 0;
    if (fab->costs.host[a] == fab->costs.host[b] || start == FAB_NONE || end == FAB_NONE) {
        *n = 0; /* inside the host, or by a cable from device to device */
        return PMIXFAB_OK;
    }
    struct path_step *steps = malloc(fab->meta->n_switches * sizeof(*steps));
    if (steps == NULL)
        return PMIXFAB_ERR_NOMEM;
    /* from the end, so that the steps lead from the start */
    path_search(fab, end, steps);
    int rc = steps[start].cost == UINT32_MAX ? PMIXFAB_ERR_CORRUPT : PMIXFAB_OK;
    for (uint32_t s = start; rc == PMIXFAB_OK && s != FAB_NONE; s = steps[s].before, count++)
        if (count < room)
            switches[count] = s;
    if (rc == PMIXFAB_OK) {
        *n = count;
        rc = count <= room ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
    }
    free(steps);
    return rc;
}
