/*
 * cost_matrix.h - the costs of a view, written out as rows and as the whole matrix, on as many threads and
 * with as wide vectors as there are. threads 0: as many as the process may run on.
 */
#ifndef FAB_TOPO_SNAPSHOT_COST_MATRIX_H
#define FAB_TOPO_SNAPSHOT_COST_MATRIX_H

#include "topo/snapshot/cost_view.h"

/* One row (n_devices values), and the whole matrix (n_devices squared). */
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
