/* rank.c - switches in the order of their names. */
#include "topo/base/natural.h"
#include "topo/plane/layout.h"

struct ranked_switch {
    const char *name;
    uint64_t guid;
    uint32_t sw;
    uint8_t ranked;
};

static int geometry_compare_names(const void *x, const void *y)
{
    const struct ranked_switch *a = x, *b = y;
    if (a->ranked != b->ranked)
        return a->ranked < b->ranked ? -1 : 1;
    int order = fab_natural_cmp(a->name, b->name);
    if (order != 0)
        return order;
    return a->guid < b->guid ? -1 : a->guid > b->guid;
}

int fab_rank_by_name(const struct fab_plane *plane, const uint8_t *ranked, uint32_t *pods, uint32_t *rank)
{
    uint32_t n = 0, n_pods = 0;
    struct ranked_switch *order = fab_array(plane->n_switches, sizeof *order);
    uint32_t *number = fab_array((size_t)2 * plane->n_switches, sizeof *number); /* per pod */
    int rc = PMIXFAB_ERR_NOMEM;

    if (order == NULL || number == NULL)
        goto cleanup;
    uint32_t *count = number + plane->n_switches;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        const struct fab_node *node = &plane->inv->nodes[plane->switches[s].node];
        number[s] = FAB_NONE;
        if (ranked[s])
            order[n++] = (struct ranked_switch){fab_str(plane->inv, node->name), node->guid, s, ranked[s]};
    }
    qsort(order, n, sizeof *order, geometry_compare_names);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = order[i].sw, pod = pods[s];
        if (number[pod] == FAB_NONE)
            number[pod] = n_pods++;
        rank[s] = count[pod]++;
    }
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (pods[s] != FAB_NONE && number[pods[s]] != FAB_NONE)
            pods[s] = number[pods[s]];
    rc = 0;

cleanup:
    free(order);
    free(number);
    return rc;
}
