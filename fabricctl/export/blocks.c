/*
 * blocks.c - which leaves stand together, and how many hosts may be planned for each.
 */
#include "fabricctl/export/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"

/* Room while leaves are put in order. */
struct ordering {
    const struct ctl_tree *tree;
    struct ctl_blocks *blocks;
    uint32_t *below; /* leaves below each vertex, itself included */
    uint32_t *first; /* of each vertex: how many leaves stand before it; then room */
    bool *rest;      /* of each leaf in its order: the vertex above it has no whole block for it */
};

static int compare_counts(const void *a, const void *b)
{
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Those below one vertex follow each other, at every height. */
static void order_leaves(struct ordering *o)
{
    const struct ctl_tree *tree = o->tree;
    struct ctl_blocks *blocks = o->blocks;

    for (uint32_t v = 0; v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];

        o->below[v] += vertex->height == 0;
        blocks->n_hosts += vertex->n_hosts;
        if (vertex->parent != UINT32_MAX)
            o->below[vertex->parent] += o->below[v];
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

/* At least half of the vertices of a height have so many leaves; 0: there is none of this height. */
static uint32_t usual_leaves(struct ordering *o, uint32_t height)
{
    uint32_t n = 0;

    for (uint32_t v = 0; v < o->tree->n; v++)
        if (o->tree->vertices[v].height == height)
            o->first[n++] = o->below[v];
    qsort(o->first, n, sizeof *o->first, compare_counts);
    return n > 0 ? o->first[n / 2] : 0;
}

static void add_level(struct ctl_blocks *blocks, uint32_t together)
{
    if (blocks->n_levels < CTL_BLOCK_LEVELS && together > blocks->together[blocks->n_levels - 1])
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
        if (usual < blocks->n)
            add_level(blocks, together);
    }
}

/* Those that are the rest behind the others, which else stay in their order. */
static void rest_behind(struct ordering *o, uint32_t begin, uint32_t end)
{
    uint32_t *leaves = o->blocks->leaves, n = begin;

    memcpy(o->first + begin, leaves + begin, (end - begin) * sizeof *leaves);
    for (unsigned rest = 0; rest < 2; rest++)
        for (uint32_t i = begin; i < end; i++)
            if (o->rest[i] == (rest == 1))
                leaves[n++] = o->first[i];
}

/* Below each vertex of a height whole blocks of `together` leaves come first. */
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

enum ctl_exit ctl_blocks_build(const struct ctl_tree *tree, struct ctl_blocks *blocks)
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

void ctl_blocks_free(struct ctl_blocks *blocks)
{
    free(blocks->leaves);
}

/* Of blocks of `upper` leaves, made of parts of `lower` leaves: the hosts of the k + 1 fullest parts of a
 * block, where those are most. The last block may have fewer parts. */
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
            parts[n - 1] += tree->vertices[blocks->leaves[i]].n_hosts;
        }
        qsort(parts, n, sizeof *parts, compare_counts);
        for (uint32_t k = 0; k < blocks->n && (uint64_t)k * lower < upper; k++) {
            sum += k < n ? parts[n - 1 - k] : 0;
            most[k] = sum > most[k] ? sum : most[k];
        }
    }
}

/* Slurm counts a request in base blocks, takes the smallest larger block that has as many, and there no more
 * of the next smaller ones than the request would fill were all of them full. */
uint32_t ctl_blocks_base(const struct ctl_tree *tree, const struct ctl_blocks *blocks)
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

void ctl_blocks_end(struct ctl_blocks *blocks, uint32_t base)
{
    uint32_t all = 1;

    while (all < CTL_BLOCK_LARGEST && (all < blocks->n || (uint64_t)all * base < blocks->n_hosts))
        all *= 2;
    if (blocks->n_levels > 1)
        add_level(blocks, all);
}

uint32_t ctl_blocks_across(const struct ctl_tree *tree, const struct ctl_blocks *blocks, unsigned level,
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
