/*
 * grid_stable.c - a mesh or torus that is numbered as it was before.
 *
 * All numberings of a grid differ by the order of its dimensions, by which factors of two make a ring of
 * four, and by how each dimension is turned and shifted. There are few orders, so all are tried; turn and
 * shift are what most of the switches that are still there say. Where a numbering exists that moves none of
 * them, an order that keeps them all is found.
 */
#include <string.h>

#include "topo/plane/grid.h"

/* Turn and shift one dimension so that most switches keep their number in it. Returns how many do. votes:
 * room for two numbers a switch. */
static uint32_t grid_align_dim(const struct fab_grid *grid, struct fab_grid_dim *dim, unsigned d,
                               const uint32_t *was, uint32_t *votes)
{
    uint32_t size = dim->size, best = 0; /* votes: for shifts, and behind them for shifts of what is turned */
    memset(votes, 0, (size_t)2 * size * sizeof *votes);
    dim->turned = false;
    dim->shift = 0;
    for (uint32_t s = 0; s < grid->plane->n_switches; s++) {
        uint32_t old = was[(size_t)s * FAB_GRID_DIMS + d];
        if (old >= size)
            continue;
        uint32_t p = fab_grid_position(grid, s, dim);
        uint32_t shift = (old + size - p) % size, turned = (old + p + 1) % size;
        if (dim->ring || shift == 0) /* a path has ends: it cannot be shifted */
            votes[shift]++;
        if (dim->ring || turned == 0)
            votes[size + turned]++;
    }
    for (uint32_t i = 1; i < 2 * size; i++)
        if (votes[i] > votes[best])
            best = i;
    dim->turned = best >= size;
    dim->shift = dim->turned ? best - size : best;
    return votes[best];
}

static uint64_t turn_all(const struct fab_grid *grid, struct fab_grid_dim *dims, const uint32_t *was,
                         uint32_t *votes)
{
    uint64_t kept = 0;
    for (unsigned d = 0; d < grid->n_dims; d++)
        kept += grid_align_dim(grid, &dims[d], d, was, votes);
    return kept;
}

/* The dimensions where factor k belongs to dimension (code / n_dims^k) mod n_dims. False: there are none. */
static bool grid_assign_dims(const struct fab_grid *grid, unsigned code, struct fab_grid_dim *dims)
{
    bool torus = false;
    memset(dims, 0, grid->n_dims * sizeof *dims);
    for (unsigned d = 0; d < grid->n_dims; d++)
        torus = torus || grid->dims[d].ring;
    for (unsigned k = 0; k < grid->n_factors; k++, code /= grid->n_dims) {
        struct fab_grid_dim *dim = &dims[code % grid->n_dims];
        if (dim->size == 0) {
            *dim = fab_grid_dim_of(grid, k);
            continue;
        }
        if (!torus || dim->size != 2 || grid->factors[k].size != 2)
            return false;
        dim->b = k;
        dim->size = 4;
        dim->ring = true;
    }
    for (unsigned d = 0; d < grid->n_dims; d++)
        if (dims[d].size == 0)
            return false;
    return true;
}

int fab_grid_settle(struct fab_grid *grid, const uint32_t *was)
{
    struct fab_grid_dim dims[FAB_GRID_DIMS];
    unsigned codes = 1;
    uint64_t known = 0;
    uint32_t *votes = fab_array((size_t)2 * grid->plane->n_switches, sizeof *votes);
    if (votes == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < grid->plane->n_switches; s++)
        known += was[(size_t)s * FAB_GRID_DIMS] != FAB_NONE ? grid->n_dims : 0;
    for (unsigned k = 0; k < grid->n_factors; k++)
        codes *= grid->n_dims;
    uint64_t best = turn_all(grid, grid->dims, was, votes);
    for (unsigned code = 0; code < codes && best < known; code++) {
        if (!grid_assign_dims(grid, code, dims))
            continue;
        uint64_t kept = turn_all(grid, dims, was, votes);
        if (kept <= best)
            continue;
        best = kept;
        memcpy(grid->dims, dims, grid->n_dims * sizeof *dims);
    }
    free(votes);
    return 0;
}
