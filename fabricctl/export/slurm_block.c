/*
 * slurm_block.c - topology.conf of Slurm's topology/block: each leaf of the tree is a block.
 */
#include "fabricctl/export/export.h"
#include "fabricctl/export/tree/tree.h"

#include <stdlib.h>

#define SIZES_MAX 16

/* Sizes in the making: the planning base block, and power-of-two multiples of it. */
struct block_sizes {
    uint32_t sizes[SIZES_MAX];
    unsigned n;
};

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static enum ctl_exit read_sizes(const char *text, struct block_sizes *out)
{
    const char *at = text;

    for (;;) {
        char *end;
        unsigned long size = strtoul(at, &end, 10);
        const uint32_t before = out->n > 0 ? out->sizes[out->n - 1] : 0;

        if (*at < '0' || *at > '9' || size == 0 || size > 1000000 || (*end != ',' && *end != '\0') ||
            out->n == SIZES_MAX)
            return ctl_usage("not sizes of blocks: --block-sizes %s: give numbers of hosts, as 18,36,72",
                             text);
        if (before != 0 &&
            (size <= before || size % out->sizes[0] != 0 || !is_power_of_two((uint32_t)size / out->sizes[0])))
            return ctl_usage(
                "not sizes of blocks: --block-sizes %s: each is larger than the one before, and the "
                "first one times a power of two",
                text);
        out->sizes[out->n++] = (uint32_t)size;
        if (*end == '\0')
            return CTL_DONE;
        at = end + 1;
    }
}

/* The base times the largest power of two that is no more than `blocks`, unless it is there. */
static void add_size(struct block_sizes *out, uint32_t blocks)
{
    uint32_t size = out->sizes[0];

    while (size / out->sizes[0] <= blocks / 2)
        size *= 2;
    if (out->n < SIZES_MAX && size > out->sizes[out->n - 1])
        out->sizes[out->n++] = size;
}

/* The smallest leaf, and what stands together at each height of the tree. */
static bool infer_sizes(const struct ctl_tree *tree, uint32_t smallest, struct block_sizes *out)
{
    uint32_t highest = 0, *leaves = calloc(tree->n + (size_t)1, sizeof *leaves);

    out->sizes[out->n++] = smallest;
    for (uint32_t v = 0; leaves != NULL && v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];

        leaves[v] += vertex->height == 0;
        if (vertex->parent != UINT32_MAX)
            leaves[vertex->parent] += leaves[v];
        highest = vertex->height > highest ? vertex->height : highest;
    }
    for (uint32_t height = 1; leaves != NULL && height <= highest; height++) {
        uint32_t least = UINT32_MAX;

        for (uint32_t v = 0; v < tree->n; v++)
            if (tree->vertices[v].height == height && leaves[v] < least)
                least = leaves[v];
        add_size(out, least);
    }
    bool good = leaves != NULL;

    free(leaves);
    return good;
}

static enum ctl_exit write_blocks(struct ctl_export *x, const struct ctl_tree *tree)
{
    struct block_sizes sizes = {.n = 0};
    const struct ctl_vertex *smallest = &tree->vertices[0];
    enum ctl_exit status = CTL_DONE;

    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].height == 0 && tree->vertices[v].n_hosts < smallest->n_hosts)
            smallest = &tree->vertices[v];
    if (x->ctl->block_sizes != NULL)
        status = read_sizes(x->ctl->block_sizes, &sizes);
    else if (!infer_sizes(tree, smallest->n_hosts, &sizes))
        status = ctl_nomem();
    if (status == CTL_DONE && sizes.sizes[0] > smallest->n_hosts)
        status = ctl_error("not written: block %s has %u hosts, fewer than the smallest block size, %u",
                           smallest->name, smallest->n_hosts, sizes.sizes[0]);
    for (uint32_t v = 0; status == CTL_DONE && v < tree->n; v++) {
        char *list = tree->vertices[v].height == 0 ? ctl_tree_below(tree, v) : NULL;

        if (list != NULL)
            fprintf(x->out, "BlockName=%s Nodes=%s\n", tree->vertices[v].name, list);
        else if (tree->vertices[v].height == 0)
            status = ctl_nomem();
        free(list);
    }
    for (unsigned i = 0; status == CTL_DONE && i < sizes.n; i++)
        fprintf(x->out, "%s%u%s", i == 0 ? "BlockSizes=" : ",", sizes.sizes[i], i + 1 == sizes.n ? "\n" : "");
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
