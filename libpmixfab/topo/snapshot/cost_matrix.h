/*
 * cost_matrix.h - the costs of a view, written out as rows and as the whole matrix, on as many threads and
 * with as wide vectors as there are; and these threads and vectors, for the search. threads 0: as many as the
 * process may run on.
 */
#ifndef FAB_TOPO_SNAPSHOT_COST_MATRIX_H
#define FAB_TOPO_SNAPSHOT_COST_MATRIX_H

#include <stdbool.h>

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

/* ---- vectors and threads --------------------------------------------------------------------------------
 */

/* Instructions that a function body is compiled for; the body is the same, written with vector types. */
#if defined(__x86_64__)
#define FAB_TARGET_AVX2   __attribute__((target("avx2")))
#define FAB_TARGET_AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl")))
#endif
#define FAB_ALWAYS_INLINE inline __attribute__((always_inline))

enum fab_isa { FAB_ISA_ANY = 0, FAB_ISA_AVX2 = 1, FAB_ISA_AVX512 = 2 };

/* What this processor has, but no more than the limit: tests set one to go through every body. */
enum fab_isa fab_cost_isa(void);
void fab_cost_limit_isa(enum fab_isa limit);

/* How many to use where `asked` may be 0 (all that the process may run on), for `tasks` pieces of work. */
unsigned fab_cost_threads(unsigned asked, size_t tasks);

/*
 * Run work(job, i) on n threads, i from 0 to n-1, the caller's own being one of them, and wait for all. Where
 * no thread can be started fewer run: the work must be such that any of them could do it all.
 */
void fab_cost_run(unsigned n, void (*work)(void *job, unsigned i), void *job);

#endif
