/* engine.h - what the files of the cost search share. */
#ifndef FAB_TOPO_PLANE_ENGINE_H
#define FAB_TOPO_PLANE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "topo/plane/cost.h"
#include "topo/snapshot/cost_matrix.h"

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
    uint16_t step;     /* cost of the cheapest link */
    bool mixed;        /* others cost more */
    atomic_uint next_block;
    void **workspace; /* per thread */
};

/* Where distances from a block of sources are written: a row for each switch that has one. */
struct fab_rows {
    uint16_t *cells; /* all ones at first */
    size_t stride;
    const uint32_t *row_of; /* per switch: its row or FAB_NONE; NULL: each has its own */
};

/* By the cheapest links alone: breadth first, a bit a source. */
size_t fab_search_cheapest_space(const struct fab_search *search);
void fab_search_cheapest(const struct fab_search *search, void *space, uint32_t first, uint32_t width,
                         const struct fab_rows *rows);

/* By links of any costs: what the cheapest ones give, and then relaxed together, a vector lane a source. */
size_t fab_search_mixed_space(const struct fab_search *search);
void fab_search_mixed(const struct fab_search *search, void *space, uint32_t first, uint32_t width);

#endif
