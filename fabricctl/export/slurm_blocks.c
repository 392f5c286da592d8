/*
 * slurm_blocks.c - blocks of Slurm's topology/block: each leaf of the tree is a block. The order of the first
 * export, the sizes of larger blocks, and losses.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/order.h"

/* ---- groups of leaves, and the number of hosts to plan for each ---- */

#define NONE          UINT32_MAX
#define BLOCK_LEVELS  CTL_BLOCK_LEVELS
#define BLOCK_LARGEST (1U << (BLOCK_LEVELS - 1))

/* Memory for the ordering of leaves. */
struct ordering {
    const struct ctl_tree *tree;
    struct ctl_blocks *blocks;
    uint32_t *below; /* leaves below each vertex, itself included */
    uint32_t *gone;  /* leaves that were below each vertex and left their places */
    uint32_t n_gone;
    uint32_t *first; /* for each vertex: the number of leaves before it; then room */
    bool *rest;      /* for each leaf in its order: the vertex above it has no whole block for it */
};

static int compare_counts(const void *a, const void *b)
{
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Order the leaves so that those below one vertex follow each other, at every height. */
static void order_leaves(struct ordering *o)
{
    const struct ctl_tree *tree = o->tree;
    struct ctl_blocks *blocks = o->blocks;
    for (uint32_t v = 0; v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];
        o->below[v] += vertex->height == 0;
        blocks->n_hosts += vertex->n_hosts;
        if (vertex->parent != UINT32_MAX) {
            o->below[vertex->parent] += o->below[v];
            o->gone[vertex->parent] += o->gone[v];
        }
    }
    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].parent == UINT32_MAX) {
            o->first[v] = blocks->n;
            blocks->n += o->below[v];
        }
    for (uint32_t v = tree->n; v-- > 0;) {
        uint32_t next = o->first[v];
        for (uint32_t i = tree->begin[v]; i < tree->begin[v + 1]; i++) {
            o->first[tree->children[i]] = next;
            next += o->below[tree->children[i]];
        }
        if (tree->vertices[v].height == 0)
            blocks->leaves[o->first[v]] = v;
    }
}

/*
 * Return the number of leaves that at least half of the vertices of a height have; 0: no vertex has this
 * height. Leaves that left their places count: larger blocks stay as they are.
 */
static uint32_t usual_leaves(struct ordering *o, uint32_t height)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < o->tree->n; v++)
        if (o->tree->vertices[v].height == height)
            o->first[n++] = o->below[v] + o->gone[v];
    qsort(o->first, n, sizeof *o->first, compare_counts);
    return n > 0 ? o->first[n / 2] : 0;
}

static void add_level(struct ctl_blocks *blocks, uint32_t together)
{
    if (blocks->n_levels < BLOCK_LEVELS && together > blocks->together[blocks->n_levels - 1])
        blocks->together[blocks->n_levels++] = together;
}

static void infer_levels(struct ordering *o)
{
    struct ctl_blocks *blocks = o->blocks;
    uint32_t usual;
    blocks->together[blocks->n_levels++] = 1;
    for (uint32_t height = 1; (usual = usual_leaves(o, height)) > 0; height++) {
        uint32_t together = 1;
        while (together <= usual / 2)
            together *= 2;
        if (usual < blocks->n + o->n_gone)
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
    const struct ctl_blocks *blocks = o->blocks;
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
    struct ctl_blocks *blocks = o->blocks;
    unsigned level = 0;
    uint32_t usual;
    order_leaves(o);
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
static enum ctl_exit blocks_build(const struct ctl_tree *tree, struct ctl_blocks *blocks)
{
    const size_t n = tree->n + (size_t)1;
    struct ordering o = {.tree = tree, .blocks = blocks};
    enum ctl_exit status = CTL_DONE;
    blocks->leaves = calloc(n, sizeof *blocks->leaves);
    o.below = calloc(n, sizeof *o.below);
    o.first = calloc(n, sizeof *o.first);
    o.rest = calloc(n, sizeof *o.rest);
    o.gone = calloc(n, sizeof *o.gone);
    if (blocks->leaves == NULL || o.below == NULL || o.first == NULL || o.rest == NULL || o.gone == NULL ||
        !ctl_places_gone(blocks, tree, o.gone, &o.n_gone))
        status = ctl_nomem();
    else
        order_blocks(&o);
    free(o.gone);
    free(o.below);
    free(o.first);
    free(o.rest);
    return status;
}

/* Return the number of hosts at a place. */
static uint32_t hosts_at(const struct ctl_tree *tree, const struct ctl_blocks *blocks, uint32_t place)
{
    return blocks->leaves[place] != NONE ? tree->vertices[blocks->leaves[place]].n_hosts : 0;
}

/*
 * Find for blocks of `upper` leaves, which consist of parts of `lower` leaves, the maximum number of hosts in
 * the k + 1 fullest parts of a block. The last block may have fewer parts.
 */
static void fullest_parts(const struct ctl_tree *tree, const struct ctl_blocks *blocks, uint32_t lower,
                          uint32_t upper, uint32_t *parts, uint32_t *most)
{
    memset(most, 0, blocks->n * sizeof *most);
    for (uint32_t begin = 0, end; begin < blocks->n; begin = end) {
        uint32_t n = 0, sum = 0;
        end = blocks->n - begin > upper ? begin + upper : blocks->n;
        for (uint32_t i = begin; i < end; i++) {
            if ((i - begin) % lower == 0)
                parts[n++] = 0;
            parts[n - 1] += hosts_at(tree, blocks, i);
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
static uint32_t blocks_base(const struct ctl_tree *tree, const struct ctl_blocks *blocks)
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
static uint32_t blocks_across(const struct ctl_tree *tree, const struct ctl_blocks *blocks, unsigned level,
                              const struct ctl_vertex **first)
{
    const uint32_t together = blocks->together[level], height = blocks->height[level];
    uint32_t n = 0;
    for (uint32_t begin = 0; height > 0 && begin < blocks->n; begin += together) {
        uint32_t above = NONE;
        for (uint32_t i = begin; i < begin + together && i < blocks->n; i++) {
            const uint32_t leaf = blocks->leaves[i];
            const uint32_t here = leaf != NONE ? ctl_tree_at(tree, leaf, height) : above;
            if (above != NONE && here != above) {
                if (n++ == 0)
                    *first = &tree->vertices[above];
                break;
            }
            above = here;
        }
    }
    return n;
}

/* ---- sizes by hand, and losses ---- */

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* Read the hosts of the first size, and larger blocks as multiples of it. */
static enum ctl_exit read_sizes(const char *text, struct ctl_blocks *out)
{
    uint32_t *const base = &out->base;
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

static void lost_borders(struct ctl_export *x, const struct ctl_tree *tree, const struct ctl_blocks *blocks,
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
static void lost_end(struct ctl_export *x, const struct ctl_tree *tree, const struct ctl_blocks *blocks,
                     uint32_t base)
{
    const uint32_t last = blocks->together[blocks->n_levels - 1];
    uint32_t n_behind = 0; /* hosts behind the last whole block */
    for (uint32_t i = blocks->n / last * last; i < blocks->n; i++)
        n_behind += hosts_at(tree, blocks, i);
    if (last > 1 && (uint64_t)base * last < blocks->n_hosts && n_behind > 0)
        ctl_export_lost(x,
                        "BlockSizes end with %u: Slurm rejects requests that need the last %u of %u leaves, "
                        "which are no whole block: add a size of at least %u",
                        base * last, blocks->n % last, blocks->n, blocks->n_hosts);
}

/* Report requests that Slurm rejects because leaves differ in size. */
static void lost_unequal(struct ctl_export *x, const struct ctl_tree *tree, const struct ctl_blocks *blocks,
                         uint32_t base, uint32_t largest)
{
    uint32_t n_larger = 0, n_leaves = 0;
    for (uint32_t i = 0; i < blocks->n; i++) {
        n_larger += hosts_at(tree, blocks, i) > base;
        n_leaves += blocks->leaves[i] != NONE;
    }
    if (base > largest && largest < blocks->n_hosts)
        ctl_export_lost(x,
                        "BlockSizes begin with %u: Slurm rejects some requests although there are enough "
                        "hosts; up to %u it rejects none",
                        base, largest);
    else if (base == largest && n_larger > n_leaves / 2)
        ctl_export_lost(x,
                        "BlockSizes begin with %u, and most leaves have more hosts: with a larger size Slurm "
                        "rejects some requests although there are enough hosts",
                        base);
}

/* Report that blocks move up, because this Slurm takes no empty one. */
static void lost_places(struct ctl_export *x, const struct ctl_blocks *blocks)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < blocks->n_places; i++)
        if (blocks->places[i].leaf != NONE)
            last = i;
    for (uint32_t i = 0; i < last; i++)
        if (blocks->places[i].leaf == NONE) {
            ctl_export_lost(x,
                            "%s has no host, and Slurm before 25.05 takes no block without hosts: the blocks "
                            "behind it move up, into other larger blocks",
                            blocks->places[i].name);
            return;
        }
}

/* Take the places as blocks; those without hosts only if this Slurm takes them. */
static enum ctl_exit blocks_of_places(struct ctl_export *x, struct ctl_blocks *blocks)
{
    uint32_t *leaves = reallocarray(blocks->leaves, blocks->n_places + (size_t)1, sizeof *leaves);
    if (leaves == NULL)
        return ctl_nomem();
    blocks->leaves = leaves;
    blocks->n = 0;
    blocks->no_empty = x->ctl->slurm != 0 && x->ctl->slurm < CTL_SLURM_EMPTY_BLOCKS;
    for (uint32_t i = 0; i < blocks->n_places; i++)
        if (blocks->places[i].leaf != NONE || !blocks->no_empty)
            leaves[blocks->n++] = blocks->places[i].leaf;
    if (blocks->no_empty)
        lost_places(x, blocks);
    return CTL_DONE;
}

/* ---- blocks without hosts inside larger blocks ---- */

/*
 * Return the first place without hosts in a larger block with hosts, if Slurm has to choose some of more than
 * two such blocks; NULL: none. Slurm (25.05 to 26.05) then takes all base blocks of one larger block before
 * it takes the next, and gives up at one without hosts.
 */
static const struct ctl_place *gives_up_at(const struct ctl_tree *tree, const struct ctl_blocks *blocks)
{
    for (unsigned level = 1; level < blocks->n_levels && !blocks->no_empty; level++) {
        const uint32_t lower = blocks->together[level];
        const uint32_t upper = level + 1 < blocks->n_levels ? blocks->together[level + 1] : blocks->n;
        for (uint32_t begin = 0; upper > 2 * lower && begin < blocks->n; begin += lower) {
            uint32_t n_hosts = 0, empty = NONE;
            for (uint32_t i = begin; i < begin + lower && i < blocks->n; i++) {
                n_hosts += hosts_at(tree, blocks, i);
                empty = blocks->leaves[i] == NONE && empty == NONE ? i : empty;
            }
            if (n_hosts > 0 && empty != NONE)
                return &blocks->places[empty];
        }
    }
    return NULL;
}

/* Double the sizes of larger blocks from the first one on, so that Slurm never chooses some of more than two.
 */
static void fill_levels(struct ctl_blocks *blocks)
{
    const struct ctl_blocks before = *blocks;
    const uint32_t last = before.together[before.n_levels - 1];
    unsigned old = 1;
    blocks->n_levels = 1;
    for (uint32_t together = before.together[1]; together <= last; together *= 2) {
        blocks->height[blocks->n_levels] = 0;
        if (together == before.together[old])
            blocks->height[blocks->n_levels] = before.height[old++];
        add_level(blocks, together);
    }
}

/* ---- all of it ---- */

/* With larger blocks, add one of all leaves: it has room for all hosts also by its size. */
static void add_all(struct ctl_blocks *blocks)
{
    uint32_t all = 1;
    while (all < BLOCK_LARGEST && (all < blocks->n || (uint64_t)all * blocks->base < blocks->n_hosts))
        all *= 2;
    if (blocks->n_levels > 1)
        add_level(blocks, all);
}

static enum ctl_exit infer_sizes(const struct ctl_tree *tree, struct ctl_blocks *blocks)
{
    blocks->base = blocks_base(tree, blocks);
    if (blocks->base == 0)
        return ctl_nomem();
    /* such a slurmctld ends at a block that has fewer hosts than the first size */
    for (uint32_t i = 0; i < blocks->n && blocks->no_empty; i++)
        if (tree->vertices[blocks->leaves[i]].n_hosts < blocks->base)
            blocks->base = tree->vertices[blocks->leaves[i]].n_hosts;
    add_all(blocks);
    if (gives_up_at(tree, blocks) == NULL)
        return CTL_DONE;
    fill_levels(blocks);
    blocks->base = blocks_base(tree, blocks);
    if (blocks->base == 0)
        return ctl_nomem();
    add_all(blocks);
    fill_levels(blocks);
    return CTL_DONE;
}

/* Report requests that Slurm rejects with the sizes by hand, or those by inference. */
static enum ctl_exit lost_sizes(struct ctl_export *x, const struct ctl_tree *tree,
                                const struct ctl_blocks *blocks)
{
    const struct ctl_place *empty = gives_up_at(tree, blocks);
    const uint32_t largest = blocks_base(tree, blocks);
    if (largest == 0)
        return ctl_nomem();
    lost_unequal(x, tree, blocks, blocks->base, largest);
    lost_end(x, tree, blocks, blocks->base);
    lost_borders(x, tree, blocks, blocks->base);
    if (empty != NULL)
        ctl_export_lost(x,
                        "BlockSizes: %s has no host: Slurm rejects some requests over several larger blocks: "
                        "give sizes of which each is twice the one before, from the second on",
                        empty->name);
    return CTL_DONE;
}

enum ctl_exit ctl_blocks_make(struct ctl_export *x, const struct ctl_tree *tree, const char *topology,
                              struct ctl_blocks *blocks)
{
    enum ctl_exit status = CTL_DONE;
    *blocks = (struct ctl_blocks){.topology = topology};
    if (x->ctl->block_sizes != NULL)
        status = read_sizes(x->ctl->block_sizes, blocks);
    if (status == CTL_DONE)
        status = ctl_places_load(x->names, blocks) ?: blocks_build(tree, blocks);
    if (status == CTL_DONE)
        status = ctl_places_fill(x, tree, blocks) ?: blocks_of_places(x, blocks);
    if (status == CTL_DONE && blocks->base == 0)
        status = infer_sizes(tree, blocks);
    return status ?: lost_sizes(x, tree, blocks);
}

void ctl_blocks_free(struct ctl_blocks *blocks)
{
    ctl_places_free(blocks);
    free(blocks->leaves);
    *blocks = (struct ctl_blocks){.n = 0};
}
