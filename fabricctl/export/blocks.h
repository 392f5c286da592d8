/*
 * blocks.h - a tree's leaves one after the other, so that what follows each other in powers of two is near
 * together (docs/design/export.md).
 */
#ifndef FABRICCTL_EXPORT_BLOCKS_H
#define FABRICCTL_EXPORT_BLOCKS_H

#include "fabricctl/export/export_tree.h"

/* Slurm's levels are the first sixteen powers of two. */
#define CTL_BLOCK_LEVELS  16
#define CTL_BLOCK_LARGEST (1U << (CTL_BLOCK_LEVELS - 1))

struct ctl_blocks {
    uint32_t *leaves; /* vertices, in their order */
    uint32_t n;
    uint32_t n_hosts;
    /* The larger blocks: so many leaves each, counted from the first leaf on. Powers of two, smaller ones
     * first; together[0] is 1. */
    uint32_t together[CTL_BLOCK_LEVELS];
    uint32_t height[CTL_BLOCK_LEVELS]; /* of the vertices that hold one; 0: none does */
    unsigned n_levels;
};

/* With n_levels 0 the larger blocks are those that at least half of the vertices of a height hold; else the
 * caller has filled them in. Tells its failures. */
enum ctl_exit ctl_blocks_build(const struct ctl_tree *tree, struct ctl_blocks *blocks);
void ctl_blocks_free(struct ctl_blocks *blocks);

/* The most hosts that may be planned for each leaf so that every request which there are hosts for has a
 * place. 0: without memory. */
uint32_t ctl_blocks_base(const struct ctl_tree *tree, const struct ctl_blocks *blocks);

/* Where there are larger blocks, add one of all leaves, in which there is room for all hosts by its size,
 * too.
 */
void ctl_blocks_end(struct ctl_blocks *blocks, uint32_t base);

/* How many blocks of a level reach over the border of vertices that hold such a block, and the first of those
 * vertices. */
uint32_t ctl_blocks_across(const struct ctl_tree *tree, const struct ctl_blocks *blocks, unsigned level,
                           const struct ctl_vertex **first);

#endif
