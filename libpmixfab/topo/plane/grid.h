/* grid.h - what the files that recognise meshes and tori share. */
#ifndef FAB_TOPO_PLANE_GRID_H
#define FAB_TOPO_PLANE_GRID_H

#include "topo/plane/layout.h"

#define FAB_GRID_FACTORS 6 /* a torus of 4 x 4 x 4 has six factors of two */

/* A path or ring that the grid is a product of. */
struct fab_grid_factor {
    uint32_t size;
    uint32_t first; /* the lowest neighbour of the origin along it: gives it direction and rank */
    bool ring;
};

/* A dimension of the grid: a factor, or two of two switches each that make a ring of four. */
struct fab_grid_dim {
    uint32_t size, first;
    unsigned a, b; /* factors; b is FAB_GRID_FACTORS where there is one only */
    bool ring, turned;
    uint32_t shift;
};

struct fab_grid {
    const struct fab_plane *plane;
    uint32_t *parent; /* cables (both directions) joined into factors */
    uint8_t *class;   /* per cable: its factor */
    uint32_t *place;  /* FAB_GRID_FACTORS numbers a switch: where it stands in each factor */
    uint32_t *axis;   /* the switches along one factor, from the origin */
    uint32_t *queue;
    struct fab_grid_factor factors[FAB_GRID_FACTORS];
    unsigned n_factors, n_dims;
    struct fab_grid_dim dims[FAB_GRID_DIMS];
};

/* Factor k as a dimension of its own. */
static inline struct fab_grid_dim fab_grid_dim_of(const struct fab_grid *grid, unsigned k)
{
    const struct fab_grid_factor *factor = &grid->factors[k];
    return (struct fab_grid_dim){factor->size, factor->first, k, FAB_GRID_FACTORS, factor->ring, false, 0};
}

/* Where switch s stands along a dimension. */
static inline uint32_t fab_grid_position(const struct fab_grid *grid, uint32_t s,
                                         const struct fab_grid_dim *dim)
{
    uint32_t p = grid->place[s * FAB_GRID_FACTORS + dim->a];
    if (dim->b != FAB_GRID_FACTORS && grid->place[s * FAB_GRID_FACTORS + dim->b] != 0)
        p = 3 - p; /* around a square: 00, 10, 11, 01 */
    return ((dim->turned ? dim->size - 1 - p : p) + dim->shift) % dim->size;
}

/*
 * Order, turn and shift the dimensions so that the switches stand where they stood, or most of them. was:
 * FAB_GRID_DIMS numbers a switch, FAB_NONE: not known. 0 or PMIXFAB_ERR_NOMEM.
 */
int fab_grid_settle(struct fab_grid *grid, const uint32_t *was);

#endif
