/* cost_threads.h - the vectors and threads that work on costs: the search, and the writing of the matrix. */
#ifndef FAB_TOPO_SNAPSHOT_COST_THREADS_H
#define FAB_TOPO_SNAPSHOT_COST_THREADS_H

#include <stdbool.h>
#include <stddef.h>

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
