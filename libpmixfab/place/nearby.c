/* nearby.c - a bound from each host's nearest ones, for costs that are not those of a tree. */
#include <stdlib.h>

#include "place/choice.h"
#include "topo/base/radix.h"

/* Different costs are few: they are counted, not sorted. */
struct nearby {
    uint16_t *rank; /* per cost */
    uint16_t *costs;
    uint32_t *hosts;
    uint32_t n;
};

static bool nearby_open(struct nearby *near, const struct fab_classes *classes)
{
    const size_t cells = (size_t)classes->n * classes->n;

    *near = (struct nearby){.rank = calloc(UINT16_MAX + 1, sizeof(*near->rank))};
    for (size_t i = 0; i < cells && near->rank != NULL; i++)
        near->rank[classes->costs[i]] = 1;
    for (uint32_t cost = 0; cost <= UINT16_MAX && near->rank != NULL; cost++)
        if (near->rank[cost] != 0)
            near->rank[cost] = (uint16_t)near->n++;
    near->costs = malloc((near->n + (size_t)1) * sizeof(*near->costs));
    near->hosts = malloc((near->n + (size_t)1) * sizeof(*near->hosts));
    return near->rank != NULL && near->costs != NULL && near->hosts != NULL;
}

static void nearby_close(struct nearby *near)
{
    free(near->rank);
    free(near->costs);
    free(near->hosts);
}

static void nearby_row(struct nearby *near, const struct fab_choice *p, uint32_t c, double *sum,
                       uint16_t *reach)
{
    const struct fab_classes *classes = p->classes;
    const uint16_t *row = classes->costs + (size_t)c * classes->n;
    uint32_t left = p->n - 1;

    for (uint32_t i = 0; i < near->n; i++)
        near->hosts[i] = 0;
    for (uint32_t d = 0; d < classes->n; d++) {
        near->costs[near->rank[row[d]]] = row[d];
        near->hosts[near->rank[row[d]]] += classes->classes[d].n_hosts;
    }
    near->hosts[near->rank[row[c]]]--; /* the host itself */
    *sum = 0;
    *reach = 0;
    for (uint32_t i = 0; i < near->n && left > 0; i++) {
        const uint32_t taken = near->hosts[i] < left ? near->hosts[i] : left;
        if (taken == 0)
            continue;
        const uint32_t cost = near->costs[i];
        *sum += taken * (cost > p->limit ? cost + p->far : cost);
        *reach = (uint16_t)cost;
        left -= taken;
    }
}

/* Any n hosts cost at least what the n with the least sums do; each pair is in two sums. */
static double nearby_least(struct fab_key *keys, struct fab_key *scratch, const struct fab_choice *p,
                           uint64_t *last)
{
    const struct fab_classes *classes = p->classes;
    uint32_t left = p->n;
    double total = 0;

    fab_radix_sort(keys, scratch, classes->n);
    for (uint32_t i = 0; left > 0; i++) {
        const uint32_t hosts = classes->classes[keys[i].index].n_hosts;
        const uint32_t taken = hosts < left ? hosts : left;
        total += (double)taken * (double)keys[i].value;
        *last = keys[i].value;
        left -= taken;
    }
    return total;
}

void fab_choice_nearest(struct fab_choice *p, double *sums, uint16_t *farthest)
{
    const uint32_t n = p->classes->n;
    struct fab_key *keys = malloc(3 * (size_t)n * sizeof(*keys));
    struct nearby near;
    uint64_t last = 0;
    uint16_t reach;

    if (nearby_open(&near, p->classes) && keys != NULL) {
        struct fab_key *reaches = keys + n, *scratch = reaches + n;
        for (uint32_t c = 0; c < n; c++) {
            nearby_row(&near, p, c, &sums[c], &reach);
            keys[c] = (struct fab_key){(uint64_t)sums[c], c};
            reaches[c] = (struct fab_key){reach, c};
        }
        fab_choice_raise(p, nearby_least(keys, scratch, p, &last) / 2);
        nearby_least(reaches, scratch, p, &last);
        *farthest = (uint16_t)last;
    }
    nearby_close(&near);
    free(keys);
}
