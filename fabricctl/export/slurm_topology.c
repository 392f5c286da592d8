/*
 * slurm_topology.c - Slurm's topologies: topology.conf of topology/tree and topology/block, and
 * topology.yaml.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/order.h"

/* ---- topology.conf of Slurm's topology/tree ---- */

enum ctl_exit ctl_write_slurm_tree(struct ctl_export *x, const struct ctl_tree *tree)
{
    for (uint32_t v = 0; v < tree->n; v++) {
        char *list = ctl_tree_below(tree, v);
        if (list == NULL)
            return ctl_nomem();
        fprintf(x->out, "SwitchName=%s %s=%s\n", tree->vertices[v].name,
                tree->vertices[v].height == 0 ? "Nodes" : "Switches", list);
        free(list);
    }
    return CTL_DONE;
}

/*
 * ---- topology.yaml of Slurm 25.05
 *
 * The file has a topology/tree for each plane. All texts are in quotes, because a name may consist of digits.
 */

static enum ctl_exit yaml_write(FILE *out, const struct pmixfab *fab, struct ctl_tree *tree, bool is_default)
{
    char buf[CTL_VERTEX_NAME];
    struct pmixfab_plane plane;
    if (pmixfab_plane(fab, &plane) != 0)
        return ctl_export_contradicts();
    fprintf(out, "- topology: \"%s\"\n  cluster_default: %s\n  tree:\n    switches:\n",
            ctl_plane_name(&plane, buf), is_default ? "true" : "false");
    for (uint32_t v = 0; v < tree->n; v++) {
        char *list = ctl_tree_below(tree, v);
        if (list == NULL)
            return ctl_nomem();
        fprintf(out, "      - switch: \"%s\"\n        %s: \"%s\"\n", tree->vertices[v].name,
                tree->vertices[v].height == 0 ? "nodes" : "children", list);
        free(list);
    }
    ctl_tree_mapping(out, tree);
    return CTL_DONE;
}

/*
 * Build a tree for each plane with switches, and choose the default tree. It is the tree of the default
 * plane, or the first tree if the default plane has none; SIZE_MAX: no tree.
 */
static enum ctl_exit yaml_trees(struct ctl_export *x, struct ctl_tree *trees, size_t *is_default)
{
    enum ctl_exit status = CTL_DONE;
    bool found = false;
    for (size_t i = 0; status == CTL_DONE && i < x->view->n; i++) {
        struct pmixfab_plane plane;
        if (pmixfab_plane(x->view->planes[i], &plane) != 0 || plane.n_switches == 0)
            continue;
        status = ctl_tree_build_plane(x, i, &trees[i]);
        if (status == CTL_DONE && trees[i].n == 0 && x->n_chosen == 0)
            ctl_export_lost(x, "plane %s: no host with a name is connected to a switch, left out",
                            plane.name);
        if (trees[i].n > 0 && (*is_default == SIZE_MAX || (plane.is_default != 0 && !found))) {
            *is_default = i;
            found = plane.is_default != 0;
        }
    }
    if (status == CTL_DONE && *is_default == SIZE_MAX)
        status =
            ctl_error("nothing to write: no plane has a host with a name at a switch: see fabricctl devices");
    return status;
}

enum ctl_exit ctl_export_slurm_yaml(struct ctl_export *x)
{
    struct ctl_tree *trees = calloc(x->view->n + 1, sizeof *trees);
    size_t is_default = SIZE_MAX;
    enum ctl_exit status = trees != NULL ? yaml_trees(x, trees, &is_default) : ctl_nomem();
    for (size_t i = 0; trees != NULL && status == CTL_DONE && i < x->view->n; i++)
        if (trees[i].n > 0)
            status = yaml_write(x->out, x->view->planes[i], &trees[i], i == is_default);
    for (size_t i = 0; trees != NULL && i < x->view->n; i++)
        ctl_tree_free(&trees[i]);
    free(trees);
    return status;
}

/* ---- groups of leaves, and the number of hosts to plan for each ---- */

/* Slurm's levels are the first sixteen powers of two. */
#define BLOCK_LEVELS  16
#define BLOCK_LARGEST (1U << (BLOCK_LEVELS - 1))
struct blocks {
    uint32_t *leaves; /* vertices, in their order */
    uint32_t n;
    uint32_t n_hosts;
    /* Larger blocks: the number of leaves of each, counted from the first leaf on. Powers of two, smaller
     * ones first; together[0] is 1. */
    uint32_t together[BLOCK_LEVELS];
    uint32_t height[BLOCK_LEVELS]; /* height of the vertices that hold one block; 0: none does */
    unsigned n_levels;
};

/* Memory for the ordering of leaves. */
struct ordering {
    const struct ctl_tree *tree;
    struct blocks *blocks;
    uint32_t *below; /* leaves below each vertex, itself included */
    uint32_t *first; /* room for all vertices */
    bool *rest;      /* for each leaf in its order: the vertex above it has no whole block for it */
};

static int compare_counts(const void *a, const void *b)
{
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* List the leaves. In the tree those below one vertex follow each other, at every height. */
static void list_leaves(struct ordering *o)
{
    const struct ctl_tree *tree = o->tree;
    struct blocks *blocks = o->blocks;
    for (uint32_t v = 0; v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];
        o->below[v] += vertex->height == 0;
        blocks->n_hosts += vertex->n_hosts;
        if (vertex->height == 0)
            blocks->leaves[blocks->n++] = v;
        if (vertex->parent != UINT32_MAX)
            o->below[vertex->parent] += o->below[v];
    }
}

/*
 * Return the number of leaves that at least half of the vertices of a height have; 0: no vertex has this
 * height.
 */
static uint32_t usual_leaves(struct ordering *o, uint32_t height)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < o->tree->n; v++)
        if (o->tree->vertices[v].height == height)
            o->first[n++] = o->below[v];
    qsort(o->first, n, sizeof *o->first, compare_counts);
    return n > 0 ? o->first[n / 2] : 0;
}

static void add_level(struct blocks *blocks, uint32_t together)
{
    if (blocks->n_levels < BLOCK_LEVELS && together > blocks->together[blocks->n_levels - 1])
        blocks->together[blocks->n_levels++] = together;
}

static void infer_levels(struct ordering *o)
{
    struct blocks *blocks = o->blocks;
    uint32_t usual;
    blocks->together[blocks->n_levels++] = 1;
    for (uint32_t height = 1; (usual = usual_leaves(o, height)) > 0; height++) {
        uint32_t together = 1;
        while (together <= usual / 2)
            together *= 2;
        if (usual < blocks->n)
            add_level(blocks, together);
    }
}

/* Move the leaves of rests behind the others, whose order stays. */
static void rest_behind(struct ordering *o, uint32_t begin, uint32_t end)
{
    uint32_t *leaves = o->blocks->leaves, n = begin;
    memcpy(o->first + begin, leaves + begin, (end - begin) * sizeof *leaves);
    for (unsigned rest = 0; rest < 2; rest++)
        for (uint32_t i = begin; i < end; i++)
            if (o->rest[i] == (rest == 1))
                leaves[n++] = o->first[i];
}

/* Put whole blocks of `together` leaves first, below each vertex of a height. */
static void whole_blocks(struct ordering *o, uint32_t height, uint32_t together)
{
    const struct blocks *blocks = o->blocks;
    for (uint32_t begin = 0, end; begin < blocks->n; begin = end) {
        const uint32_t above = ctl_tree_at(o->tree, blocks->leaves[begin], height);
        end = begin;
        while (end < blocks->n && ctl_tree_at(o->tree, blocks->leaves[end], height) == above)
            end++;
        rest_behind(o, begin, end);
        for (uint32_t i = begin; i < end; i++)
            o->rest[i] = i - begin >= (end - begin) / together * together;
    }
}

static void order_blocks(struct ordering *o)
{
    struct blocks *blocks = o->blocks;
    unsigned level = 0;
    uint32_t usual;
    list_leaves(o);
    if (blocks->n_levels == 0)
        infer_levels(o);
    for (uint32_t height = 1; (usual = usual_leaves(o, height)) > 0; height++) {
        for (; level + 1 < blocks->n_levels && blocks->together[level + 1] <= usual; level++)
            blocks->height[level + 1] = height;
        whole_blocks(o, height, blocks->together[level]);
    }
    rest_behind(o, 0, blocks->n);
}

/*
 * Build the blocks. With n_levels 0, derive the size of each larger level of blocks: at least half of
 * the vertices of that height have this size. Otherwise the caller has filled in the sizes.
 */
static enum ctl_exit blocks_build(const struct ctl_tree *tree, struct blocks *blocks)
{
    const size_t n = tree->n + (size_t)1;
    struct ordering o = {.tree = tree, .blocks = blocks};
    enum ctl_exit status = CTL_DONE;
    blocks->leaves = calloc(n, sizeof *blocks->leaves);
    o.below = calloc(n, sizeof *o.below);
    o.first = calloc(n, sizeof *o.first);
    o.rest = calloc(n, sizeof *o.rest);
    if (blocks->leaves == NULL || o.below == NULL || o.first == NULL || o.rest == NULL)
        status = ctl_nomem();
    else
        order_blocks(&o);
    free(o.below);
    free(o.first);
    free(o.rest);
    return status;
}

/*
 * Find for blocks of `upper` leaves, which consist of parts of `lower` leaves, the maximum number of hosts in
 * the k + 1 fullest parts of a block. The last block may have fewer parts.
 */
static void fullest_parts(const struct ctl_tree *tree, const struct blocks *blocks, uint32_t lower,
                          uint32_t upper, uint32_t *parts, uint32_t *most)
{
    memset(most, 0, blocks->n * sizeof *most);
    for (uint32_t begin = 0, end; begin < blocks->n; begin = end) {
        uint32_t n = 0, sum = 0;
        end = blocks->n - begin > upper ? begin + upper : blocks->n;
        for (uint32_t i = begin; i < end; i++) {
            if ((i - begin) % lower == 0)
                parts[n++] = 0;
            parts[n - 1] += tree->vertices[blocks->leaves[i]].n_hosts;
        }
        qsort(parts, n, sizeof *parts, compare_counts);
        for (uint32_t k = 0; k < blocks->n && (uint64_t)k * lower < upper; k++) {
            sum += k < n ? parts[n - 1 - k] : 0;
            most[k] = sum > most[k] ? sum : most[k];
        }
    }
}

/*
 * Return the maximum number of hosts that may be planned for each leaf, so that Slurm can place every request
 * for which there are enough hosts; 0: no memory. Slurm counts a request in base blocks. It takes the
 * smallest larger block that has as many base blocks. In this block, it uses only as many of the next smaller
 * blocks as the request would fill if all were full.
 */
static uint32_t blocks_base(const struct ctl_tree *tree, const struct blocks *blocks)
{
    uint32_t *parts = calloc(blocks->n + (size_t)1, sizeof *parts);
    uint32_t *most = calloc(blocks->n + (size_t)1, sizeof *most);
    uint32_t base = blocks->n_hosts;
    for (unsigned level = 0; parts != NULL && most != NULL && level < blocks->n_levels; level++) {
        const uint32_t lower = blocks->together[level];
        fullest_parts(tree, blocks, lower,
                      level + 1 < blocks->n_levels ? blocks->together[level + 1] : blocks->n, parts, most);
        for (uint32_t k = 0; k < blocks->n && most[k] > 0 && most[k] < blocks->n_hosts; k++)
            if (most[k] / (lower * (k + UINT64_C(1))) < base)
                base = (uint32_t)(most[k] / (lower * (k + UINT64_C(1))));
    }
    if (parts == NULL || most == NULL)
        base = 0;
    free(parts);
    free(most);
    return base;
}

/*
 * Return how many blocks of a level cross the border of vertices that hold such a block, and the first of
 * those vertices.
 */
static uint32_t blocks_across(const struct ctl_tree *tree, const struct blocks *blocks, unsigned level,
                              const struct ctl_vertex **first)
{
    const uint32_t together = blocks->together[level], height = blocks->height[level];
    uint32_t n = 0;
    for (uint32_t i = 0; height > 0 && i < blocks->n; i += together) {
        const uint32_t above = ctl_tree_at(tree, blocks->leaves[i], height);
        uint32_t at = i + 1;
        while (at < i + together && at < blocks->n && ctl_tree_at(tree, blocks->leaves[at], height) == above)
            at++;
        if (at < i + together && at < blocks->n && n++ == 0)
            *first = &tree->vertices[above];
    }
    return n;
}

/* ---- topology.conf of Slurm's topology/block: each leaf of the tree is a block ---- */

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* Read the hosts of the first size, and larger blocks as multiples of it. */
static enum ctl_exit read_sizes(const char *text, uint32_t *base, struct blocks *out)
{
    const char *at = text;
    for (;;) {
        char *end;
        unsigned long size = strtoul(at, &end, 10);
        const uint32_t before = out->n_levels > 0 ? out->together[out->n_levels - 1] : 0;
        if (*at < '0' || *at > '9' || size == 0 || size > 1000000 || (*end != ',' && *end != '\0') ||
            out->n_levels == BLOCK_LEVELS)
            return ctl_usage(
                "not sizes of blocks: --block-sizes %s: give numbers of hosts, for example 18,36,72", text);
        if (before == 0)
            *base = (uint32_t)size;
        else if (size % *base != 0 || size / *base <= before || !is_power_of_two((uint32_t)size / *base) ||
                 size / *base > BLOCK_LARGEST)
            return ctl_usage("not sizes of blocks: --block-sizes %s: each must be larger than the one "
                             "before, and the first one times a power of two, at most %u",
                             text, BLOCK_LARGEST);
        out->together[out->n_levels++] = (uint32_t)size / *base;
        if (*end == '\0')
            return CTL_DONE;
        at = end + 1;
    }
}

static void lost_borders(struct ctl_export *x, const struct ctl_tree *tree, const struct blocks *blocks,
                         uint32_t base)
{
    for (unsigned level = 1; level < blocks->n_levels; level++) {
        const struct ctl_vertex *first = NULL;
        const uint32_t n = blocks_across(tree, blocks, level, &first);
        if (n > 0)
            ctl_export_lost(x, "BlockSizes %u: %u block%s of %u leaves reach%s over several switches: %s%s",
                            base * blocks->together[level], n, n == 1 ? "" : "s", blocks->together[level],
                            n == 1 ? "es" : "", first->name, n == 1 ? "" : ", ...");
    }
}

/*
 * Report requests that Slurm cannot place at the end. If a request is larger than the last size, Slurm counts
 * only whole blocks of that size (25.05 to 26.05).
 */
static void lost_end(struct ctl_export *x, const struct blocks *blocks, uint32_t base)
{
    const uint32_t last = blocks->together[blocks->n_levels - 1];
    if (last > 1 && (uint64_t)base * last < blocks->n_hosts && blocks->n % last != 0)
        ctl_export_lost(x,
                        "BlockSizes end with %u: Slurm rejects requests that need the last %u of %u leaves, "
                        "which are no whole block: add a size of at least %u",
                        base * last, blocks->n % last, blocks->n, blocks->n_hosts);
}

/* Report requests that Slurm rejects because leaves differ in size. */
static void lost_unequal(struct ctl_export *x, const struct ctl_tree *tree, const struct blocks *blocks,
                         uint32_t base, uint32_t largest)
{
    uint32_t n_larger = 0;
    for (uint32_t i = 0; i < blocks->n; i++)
        n_larger += tree->vertices[blocks->leaves[i]].n_hosts > base;
    if (base > largest && largest < blocks->n_hosts)
        ctl_export_lost(x,
                        "BlockSizes begin with %u: Slurm rejects some requests although there are enough "
                        "hosts; up to %u it rejects none",
                        base, largest);
    else if (base == largest && n_larger > blocks->n / 2)
        ctl_export_lost(x,
                        "BlockSizes begin with %u, and most leaves have more hosts: with a larger size Slurm "
                        "rejects some requests although there are enough hosts",
                        base);
}

static enum ctl_exit put_blocks(struct ctl_export *x, const struct ctl_tree *tree,
                                const struct blocks *blocks, uint32_t base)
{
    const struct ctl_vertex *smallest = &tree->vertices[blocks->leaves[0]];
    for (uint32_t i = 0; i < blocks->n; i++)
        if (tree->vertices[blocks->leaves[i]].n_hosts < smallest->n_hosts)
            smallest = &tree->vertices[blocks->leaves[i]];
    if (smallest->n_hosts < base)
        fprintf(x->out,
                "# %s has fewer hosts than the first of BlockSizes: Slurm before 25.05 does not start with "
                "that\n",
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

enum ctl_exit ctl_write_slurm_block(struct ctl_export *x, const struct ctl_tree *tree)
{
    struct blocks blocks = {.n = 0};
    enum ctl_exit status = CTL_DONE;
    uint32_t base = 0, largest;
    if (x->ctl->block_sizes != NULL)
        status = read_sizes(x->ctl->block_sizes, &base, &blocks);
    if (status == CTL_DONE)
        status = blocks_build(tree, &blocks);
    if (status == CTL_DONE) {
        largest = blocks_base(tree, &blocks);
        status = largest == 0 ? ctl_nomem() : CTL_DONE;
        if (base == 0) {
            base = largest;
            /* With larger blocks, add one of all leaves: it has room for all hosts also by its size. */
            uint32_t all = 1;
            while (all < BLOCK_LARGEST && (all < blocks.n || (uint64_t)all * base < blocks.n_hosts))
                all *= 2;
            if (blocks.n_levels > 1)
                add_level(&blocks, all);
        }
    }
    if (status == CTL_DONE) {
        lost_unequal(x, tree, &blocks, base, largest);
        lost_end(x, &blocks, base);
        lost_borders(x, tree, &blocks, base);
        status = put_blocks(x, tree, &blocks, base);
    }
    free(blocks.leaves);
    return status;
}
