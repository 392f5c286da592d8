/*
 * slurm_block.c - topology.conf of Slurm's topology/block: each leaf of the tree is a block.
 */
#include "fabricctl/export/blocks.h"
#include "fabricctl/export/export.h"

#include <stdlib.h>

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* Hosts of the first size, and larger blocks as multiples of it. */
static enum ctl_exit read_sizes(const char *text, uint32_t *base, struct ctl_blocks *out)
{
    const char *at = text;

    for (;;) {
        char *end;
        unsigned long size = strtoul(at, &end, 10);
        const uint32_t before = out->n_levels > 0 ? out->together[out->n_levels - 1] : 0;

        if (*at < '0' || *at > '9' || size == 0 || size > 1000000 || (*end != ',' && *end != '\0') ||
            out->n_levels == CTL_BLOCK_LEVELS)
            return ctl_usage("not sizes of blocks: --block-sizes %s: give numbers of hosts, as 18,36,72",
                             text);
        if (before == 0)
            *base = (uint32_t)size;
        else if (size % *base != 0 || size / *base <= before || !is_power_of_two((uint32_t)size / *base) ||
                 size / *base > CTL_BLOCK_LARGEST)
            return ctl_usage(
                "not sizes of blocks: --block-sizes %s: each is larger than the one before, and the "
                "first one times a power of two, at most %u",
                text, CTL_BLOCK_LARGEST);
        out->together[out->n_levels++] = (uint32_t)size / *base;
        if (*end == '\0')
            return CTL_DONE;
        at = end + 1;
    }
}

static void lost_borders(struct ctl_export *x, const struct ctl_tree *tree, const struct ctl_blocks *blocks,
                         uint32_t base)
{
    for (unsigned level = 1; level < blocks->n_levels; level++) {
        const struct ctl_vertex *first = NULL;
        const uint32_t n = ctl_blocks_across(tree, blocks, level, &first);

        if (n > 0)
            ctl_export_lost(x, "BlockSizes %u: %u block%s of %u leaves reach%s over several switches: %s%s",
                            base * blocks->together[level], n, n == 1 ? "" : "s", blocks->together[level],
                            n == 1 ? "es" : "", first->name, n == 1 ? "" : ", ...");
    }
}

/* For what is more than a block of the last size Slurm counts whole blocks of it only (25.05 to 26.05). */
static void lost_end(struct ctl_export *x, const struct ctl_blocks *blocks, uint32_t base)
{
    const uint32_t last = blocks->together[blocks->n_levels - 1];

    if (last > 1 && (uint64_t)base * last < blocks->n_hosts && blocks->n % last != 0)
        ctl_export_lost(x,
                        "BlockSizes end with %u: Slurm refuses requests that need the last %u of %u leaves, "
                        "which are no whole block: add a size of at least %u",
                        base * last, blocks->n % last, blocks->n, blocks->n_hosts);
}

/* What leaves of unequal size make of the first size. */
static void lost_unequal(struct ctl_export *x, const struct ctl_tree *tree, const struct ctl_blocks *blocks,
                         uint32_t base, uint32_t largest)
{
    uint32_t n_larger = 0;

    for (uint32_t i = 0; i < blocks->n; i++)
        n_larger += tree->vertices[blocks->leaves[i]].n_hosts > base;
    if (base > largest && largest < blocks->n_hosts)
        ctl_export_lost(
            x,
            "BlockSizes begin with %u: Slurm refuses some requests that there are hosts for; up to "
            "%u it refuses none",
            base, largest);
    else if (base == largest && n_larger > blocks->n / 2)
        ctl_export_lost(x,
                        "BlockSizes begin with %u, and most leaves have more hosts: with a larger size Slurm "
                        "refuses some requests that there are hosts for",
                        base);
}

static enum ctl_exit put_blocks(struct ctl_export *x, const struct ctl_tree *tree,
                                const struct ctl_blocks *blocks, uint32_t base)
{
    const struct ctl_vertex *smallest = &tree->vertices[blocks->leaves[0]];

    for (uint32_t i = 0; i < blocks->n; i++)
        if (tree->vertices[blocks->leaves[i]].n_hosts < smallest->n_hosts)
            smallest = &tree->vertices[blocks->leaves[i]];
    if (smallest->n_hosts < base)
        fprintf(
            x->out,
            "# %s has fewer hosts than BlockSizes begin with: Slurm before 25.05 does not start with that\n",
            smallest->name);
    for (uint32_t i = 0; i < blocks->n; i++) {
        char *list = ctl_tree_below(tree, blocks->leaves[i]);

        if (list == NULL)
            return ctl_nomem();
        fprintf(x->out, "BlockName=%s Nodes=%s\n", tree->vertices[blocks->leaves[i]].name, list);
        free(list);
    }
    for (unsigned level = 0; level < blocks->n_levels; level++)
        fprintf(x->out, "%s%u%s", level == 0 ? "BlockSizes=" : ",", base * blocks->together[level],
                level + 1 == blocks->n_levels ? "\n" : "");
    return CTL_DONE;
}

static enum ctl_exit write_blocks(struct ctl_export *x, const struct ctl_tree *tree)
{
    struct ctl_blocks blocks = {.n = 0};
    enum ctl_exit status = CTL_DONE;
    uint32_t base = 0, largest;

    if (x->ctl->block_sizes != NULL)
        status = read_sizes(x->ctl->block_sizes, &base, &blocks);
    if (status == CTL_DONE)
        status = ctl_blocks_build(tree, &blocks);
    if (status == CTL_DONE) {
        largest = ctl_blocks_base(tree, &blocks);
        status = largest == 0 ? ctl_nomem() : CTL_DONE;
        if (base == 0) {
            base = largest;
            ctl_blocks_end(&blocks, base);
        }
    }
    if (status == CTL_DONE) {
        lost_unequal(x, tree, &blocks, base, largest);
        lost_end(x, &blocks, base);
        lost_borders(x, tree, &blocks, base);
        status = put_blocks(x, tree, &blocks, base);
    }
    ctl_blocks_free(&blocks);
    return status;
}

enum ctl_exit ctl_export_slurm_block(struct ctl_export *x)
{
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build(x, &tree);

    fputs("# Slurm topology.conf (TopologyPlugin=topology/block), by fabricctl export slurm-block\n", x->out);
    if (status == CTL_DONE)
        status = write_blocks(x, &tree);
    if (status == CTL_DONE)
        ctl_tree_mapping(x->out, &tree);
    ctl_tree_free(&tree);
    return status;
}
