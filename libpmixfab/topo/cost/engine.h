/* cost_priv.h - what the files of the cost computation share. */
#ifndef FAB_TOPO_COST_PRIV_H
#define FAB_TOPO_COST_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>

#include "topo/cost/cost.h"

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

/* ---- threads ---- */

/* How many to use where `asked` may be 0 (all that the process may run on), for `tasks` pieces of work. */
unsigned fab_cost_threads(unsigned asked, size_t tasks);

/*
 * Run work(job, i) on n threads, i from 0 to n-1, the caller's own being one of them, and wait for all. Where
 * no thread can be started fewer run: the work must be such that any of them could do it all.
 */
void fab_cost_run(unsigned n, void (*work)(void *job, unsigned i), void *job);

/* ---- the steps of a computation ---- */

struct fab_costing {
    const struct fab_plane *plane;
    struct fab_costs *out;
    uint32_t *edge_of;   /* switch -> edge or FAB_NONE */
    uint32_t *sources;   /* edge -> switch */
    uint32_t n_searched; /* edges that are switches */
};

/* Everything but dist (of an unattached plane nothing); room for dist; dist from nothing, with its room. End
 * always, with the code that it all came to: after an error nothing is left of the costs. */
int fab_costing_begin(struct fab_costing *costing, const struct fab_plane *plane, struct fab_costs *out);
int fab_costing_room(struct fab_costing *costing);
int fab_costing_search(struct fab_costing *costing, unsigned threads);
void fab_costing_end(struct fab_costing *costing, int rc);

/* ---- shortest paths ---- */

/* Sources searched at once: one bit each in a vector of this many. */
#define FAB_SEARCH_BITS 512

/* Distances between edge switches, for blocks of sources; block b is sources[b * width .. ]. */
struct fab_search {
    const struct fab_plane *plane;
    const uint32_t *sources; /* edge -> switch */
    const uint32_t *edge_of; /* switch -> edge or FAB_NONE */
    uint32_t n_edges;
    uint32_t width;    /* sources in a block, a multiple of 64 */
    uint32_t n_blocks; /* taken by the threads one after the other */
    uint16_t *dist;    /* n_edges x n_edges */
    uint16_t step;     /* uniform searches: cost of each link */
    atomic_uint next_block;
    void **workspace; /* per thread */
};

/* One block at a time until none is left. All links of one cost: breadth first, a bit a source. */
size_t fab_search_uniform_space(const struct fab_search *search);
void fab_search_uniform(void *search, unsigned thread);

/* Links of any costs: distances to all sources of a block relaxed together, a vector lane a source. */
size_t fab_search_mixed_space(const struct fab_search *search);
void fab_search_mixed(void *search, unsigned thread);

#endif
