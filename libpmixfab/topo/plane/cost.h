/*
 * cost.h - compute the costs between devices: the arrays of cost_view.h. The shortest paths are searched with
 * all available threads and the widest vectors.
 */
#ifndef FAB_TOPO_PLANE_COST_H
#define FAB_TOPO_PLANE_COST_H

#include "topo/plane/graph.h"
#include "topo/snapshot/cost_view.h"

struct fab_costs {
    struct fab_cost_view view; /* points at the arrays below */
    uint32_t *edge, *host;
    uint16_t *access, *dist;
};

/* Compute the compact form; threads 0: as many as processors the process may run on. */
int fab_costs_compute(const struct fab_plane *plane, unsigned threads, struct fab_costs *out);
void fab_costs_destroy(struct fab_costs *costs);

#endif
