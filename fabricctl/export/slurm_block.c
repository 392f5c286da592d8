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

/* Where blocks stand in the file: Slurm makes larger blocks of blocks that follow each other, so those that
 * are below one vertex do, at every height. */
struct block_order {
    uint32_t *leaves; /* below each vertex, itself included */
    uint32_t *first;  /* of each vertex: how many leaves stand before it */
    uint32_t *at;     /* the leaves, in their order */
    uint32_t n;
};

static bool order_blocks(const struct ctl_tree *tree, struct block_order *out)
{
    out->leaves = calloc((tree->n + (size_t)1) * 3, sizeof *out->leaves);
    if (out->leaves == NULL)
        return false;
    out->first = out->leaves + tree->n;
    out->at = out->first + tree->n;
    for (uint32_t v = 0; v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];

        out->leaves[v] += vertex->height == 0;
        if (vertex->parent != UINT32_MAX)
            out->leaves[vertex->parent] += out->leaves[v];
    }
    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].parent == UINT32_MAX) {
            out->first[v] = out->n;
            out->n += out->leaves[v];
        }
    for (uint32_t v = tree->n; v-- > 0;) {
        uint32_t next = out->first[v];

        for (uint32_t i = tree->begin[v]; i < tree->begin[v + 1]; i++) {
            out->first[tree->children[i]] = next;
            next += out->leaves[tree->children[i]];
        }
        if (tree->vertices[v].height == 0)
            out->at[out->first[v]] = v;
    }
    return true;
}

/* Of the vertices of a height, the least number of leaves; 0: there is none of this height. */
static uint32_t least_leaves(const struct ctl_tree *tree, const struct block_order *order, uint32_t height)
{
    uint32_t least = 0;

    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].height == height && (least == 0 || order->leaves[v] < least))
            least = order->leaves[v];
    return least;
}

/* The smallest leaf, and what stands together at each height of the tree. */
static void infer_sizes(const struct ctl_tree *tree, const struct block_order *order, uint32_t smallest,
                        struct block_sizes *out)
{
    uint32_t least;

    out->sizes[out->n++] = smallest;
    for (uint32_t height = 1; (least = least_leaves(tree, order, height)) > 0; height++)
        add_size(out, least);
}

/* Larger blocks that hold leaves of two neighbours of the lowest height that has as many leaves. */
static void lost_borders(struct ctl_export *x, const struct ctl_tree *tree, const struct block_order *order,
                         const struct block_sizes *sizes)
{
    for (unsigned i = 1; i < sizes->n; i++) {
        const uint32_t blocks = sizes->sizes[i] / sizes->sizes[0];
        const struct ctl_vertex *amid = NULL;
        uint32_t height = 1, least, n = 0;

        while ((least = least_leaves(tree, order, height)) > 0 && least < blocks)
            height++;
        for (uint32_t v = 0; v < tree->n; v++)
            if (tree->vertices[v].height == height && order->first[v] % blocks != 0 && n++ == 0)
                amid = &tree->vertices[v];
        if (amid != NULL)
            ctl_export_lost(x, "BlockSizes %u: a block is %u leaves, and %u switch%s amid one: %s%s",
                            sizes->sizes[i], blocks, n, n == 1 ? " begins" : "es begin", amid->name,
                            n == 1 ? "" : ", ...");
    }
}

/* Slurm takes no block with fewer nodes than the first size: one leaf that has lost a host makes all sizes
 * smaller. */
static void lost_small(struct ctl_export *x, const struct ctl_tree *tree, const struct ctl_vertex *smallest)
{
    uint32_t n_leaves = 0, n_small = 0;

    for (uint32_t v = 0; v < tree->n; v++) {
        n_leaves += tree->vertices[v].height == 0;
        n_small += tree->vertices[v].height == 0 && tree->vertices[v].n_hosts == smallest->n_hosts;
    }
    if (n_small <= n_leaves / 2)
        ctl_export_lost(x, "BlockSizes begin with %u, the hosts of %s%s: most leaves have more",
                        smallest->n_hosts, smallest->name, n_small > 1 ? " and others" : "");
}

static enum ctl_exit put_blocks(struct ctl_export *x, const struct ctl_tree *tree,
                                const struct block_order *order)
{
    for (uint32_t i = 0; i < order->n; i++) {
        char *list = ctl_tree_below(tree, order->at[i]);

        if (list == NULL)
            return ctl_nomem();
        fprintf(x->out, "BlockName=%s Nodes=%s\n", tree->vertices[order->at[i]].name, list);
        free(list);
    }
    return CTL_DONE;
}

static enum ctl_exit write_blocks(struct ctl_export *x, const struct ctl_tree *tree)
{
    struct block_sizes sizes = {.n = 0};
    struct block_order order = {.n = 0};
    const struct ctl_vertex *smallest = &tree->vertices[0];
    enum ctl_exit status = CTL_DONE;

    if (!order_blocks(tree, &order))
        return ctl_nomem();
    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].height == 0 && tree->vertices[v].n_hosts < smallest->n_hosts)
            smallest = &tree->vertices[v];
    if (x->ctl->block_sizes != NULL)
        status = read_sizes(x->ctl->block_sizes, &sizes);
    else {
        infer_sizes(tree, &order, smallest->n_hosts, &sizes);
        lost_small(x, tree, smallest);
    }
    if (status == CTL_DONE && sizes.sizes[0] > smallest->n_hosts)
        status = ctl_error("not written: block %s has %u hosts, fewer than the smallest block size, %u",
                           smallest->name, smallest->n_hosts, sizes.sizes[0]);
    if (status == CTL_DONE) {
        lost_borders(x, tree, &order, &sizes);
        status = put_blocks(x, tree, &order);
    }
    for (unsigned i = 0; status == CTL_DONE && i < sizes.n; i++)
        fprintf(x->out, "%s%u%s", i == 0 ? "BlockSizes=" : ",", sizes.sizes[i], i + 1 == sizes.n ? "\n" : "");
    free(order.leaves);
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
