/*
 * cost_matrix.h - expand the costs of a view to rows and to the whole matrix, with all available threads and
 * the widest vectors. The search (plane/cost.c) uses these threads and vectors, too. threads 0: as many as
 * processors the process may run on.
 */
#ifndef FAB_TOPO_SNAPSHOT_COST_MATRIX_H
#define FAB_TOPO_SNAPSHOT_COST_MATRIX_H

#include <stdbool.h>

#include "topo/snapshot/cost_view.h"

/* Write one row (n_devices values), and the whole matrix (n_devices squared). */
void fab_cost_row(const struct fab_cost_view *v, uint32_t a, uint16_t *row);
int fab_cost_matrix(const struct fab_cost_view *v, uint16_t *cells, unsigned threads);

/*
 * Turn the matrix of `was`, in cells, into the matrix of `now` in place. Equal cells are mostly not written.
 * If many cells differ, all are written again. PMIXFAB_ERR_INVAL: the numbers of devices differ. *written
 * (NULL: not wanted) becomes the approximate number of written cells. On error the cells are unchanged.
 */
int fab_cost_matrix_update(const struct fab_cost_view *was, const struct fab_cost_view *now, uint16_t *cells,
                           unsigned threads, uint64_t *written);

/* ---- vectors and threads --------------------------------------------------------------------------------
 */

/*
 * Instruction sets that a function body is compiled for; the source is the same, written with vector types.
 */
#if defined(__x86_64__)
#define FAB_TARGET_AVX2   __attribute__((target("avx2")))
#define FAB_TARGET_AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl")))
#endif
#define FAB_ALWAYS_INLINE inline __attribute__((always_inline))

enum fab_isa { FAB_ISA_ANY = 0, FAB_ISA_AVX2 = 1, FAB_ISA_AVX512 = 2 };

/* Return the best set of this processor, but not above the limit: tests set one to run every body. */
enum fab_isa fab_cost_isa(void);
void fab_cost_limit_isa(enum fab_isa limit);

/*
 * Return the number of threads to use for `tasks` pieces of work; asked 0: as many as processors the process
 * may run on.
 */
unsigned fab_cost_threads(unsigned asked, size_t tasks);

/*
 * Run work(job, i) on n threads, i from 0 to n-1, one of them the caller's, and wait for all. If a thread
 * cannot be started, fewer run: each must be able to do all the work.
 */
void fab_cost_run(unsigned n, void (*work)(void *job, unsigned i), void *job);

#endif
