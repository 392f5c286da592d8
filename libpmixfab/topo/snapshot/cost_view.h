/*
 * cost_view.h - costs between devices, stored as costs between the switches that carry them.
 *
 * cost(i,j) is one of these:
 * - 0 for i == j
 * - the cost within the host, for two devices of one host
 * - 65535 without a path
 * - else access(i) + dist(sw(i), sw(j)) + access(j), saturating at 65534.
 *
 * `dist` is E x E for the E edge switches (the switches with devices). Shortest paths use all switches.
 */
#ifndef FAB_TOPO_SNAPSHOT_COST_VIEW_H
#define FAB_TOPO_SNAPSHOT_COST_VIEW_H

#include <stddef.h>

#include "topo/model/details.h"

#define FAB_COST_NO_PATH   65535u
#define FAB_COST_MAX       65534u
#define FAB_COST_SAME_HOST 5u /* distance within the host unknown */

/* Two devices of one host with known places cost by the nearest component that they share. */
#define FAB_COST_SAME_CARD    1u
#define FAB_COST_SAME_SWITCH  2u
#define FAB_COST_SAME_NUMA    4u
#define FAB_COST_SAME_PACKAGE 6u
#define FAB_COST_ACROSS       9u

/*
 * Read-only arrays, possibly in a mapped snapshot. edge[i] < n_edges always: a device without a switch
 * (cabled to another device, or alone) has an artificial edge. All devices of an unattached plane share one
 * edge, which reaches nothing, not even itself.
 */
struct fab_cost_view {
    uint32_t n_devices, n_edges;
    const uint32_t *edge;   /* per device: row in dist */
    const uint16_t *access; /* per device */
    const uint32_t *host;   /* per device; devices of one host are neighbours */
    const uint16_t
        *dist; /* n_edges x n_edges, symmetric; the diagonal is 0, unless all devices are unattached */
    const struct fab_locality *places; /* per device; NULL: unknown */
};

/* Return the cost between two different devices of one host. */
static inline uint16_t fab_cost_inside(const struct fab_cost_view *v, uint32_t a, uint32_t b)
{
    if (v->places == NULL)
        return FAB_COST_SAME_HOST;
    const struct fab_locality *x = &v->places[a], *y = &v->places[b];
    if (x->card != 0 && x->card == y->card)
        return FAB_COST_SAME_CARD;
    if (x->sw != 0 && x->sw == y->sw)
        return FAB_COST_SAME_SWITCH;
    if (x->numa == 0 || y->numa == 0)
        return FAB_COST_SAME_HOST;
    if (x->numa == y->numa)
        return FAB_COST_SAME_NUMA;
    return x->package != 0 && x->package == y->package ? FAB_COST_SAME_PACKAGE : FAB_COST_ACROSS;
}

static inline uint16_t fab_cost_of(const struct fab_cost_view *v, uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    if (v->host[a] == v->host[b])
        return fab_cost_inside(v, a, b);
    uint32_t d = v->dist[(size_t)v->edge[a] * v->n_edges + v->edge[b]];
    if (d == FAB_COST_NO_PATH)
        return FAB_COST_NO_PATH;
    d += (uint32_t)v->access[a] + v->access[b];
    return (uint16_t)(d > FAB_COST_MAX ? FAB_COST_MAX : d);
}

#endif
