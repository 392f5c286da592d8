/*
 * cost.h - costs between devices: computed (the arrays of snapshot/cost_view.h), and written out as a matrix.
 * The room cost searches the shortest paths and fills the matrix, on as many threads and with as wide vectors
 * as there are.
 */
#ifndef FAB_TOPO_COST_COST_H
#define FAB_TOPO_COST_COST_H

#include "topo/graph/graph.h"
#include "topo/snapshot/cost_view.h"

struct fab_costs {
    struct fab_cost_view view; /* points at the arrays below */
    uint32_t *edge, *host;
    uint16_t *access, *dist;
};

/* Compute the compact form; threads 0: as many as the process may run on. */
int fab_costs_compute(const struct fab_plane *plane, unsigned threads, struct fab_costs *out);
void fab_costs_destroy(struct fab_costs *costs);

/* One row (n_devices values), and the whole matrix (n_devices squared). threads as above. */
void fab_cost_row(const struct fab_cost_view *v, uint32_t a, uint16_t *row);
int fab_cost_matrix(const struct fab_cost_view *v, uint16_t *cells, unsigned threads);

/*
 * The matrix of `was`, in cells, becomes that of `now`, in place: cells that are the same are mostly not
 * touched, and where many differ all are written from nothing. Both have as many devices, or it is
 * PMIXFAB_ERR_INVAL. *written (NULL: not wanted): how many cells were written, about. On error the cells are
 * as they were.
 */
int fab_cost_matrix_update(const struct fab_cost_view *was, const struct fab_cost_view *now, uint16_t *cells,
                           unsigned threads, uint64_t *written);

#endif
