/*
 * tree_levels.c - edge switches grouped level by level.
 *
 * Two leaves that are d cables apart are below one vertex at level d. This keeps the pods of a tree apart at
 * any depth. If a spine or a core switch has hosts, it lies on the path between other switches with hosts. It
 * would join all switches near it. So it waits until its nearest switches are joined anyway.
 *
 * Edge switches with the same neighbours have the same distances, so one search serves all of them. A tree of
 * 578 leaves in 34 pods needs 34 searches.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/disjoint.h"
#include "topo/base/order.h"

#define NONE UINT32_MAX
#define FAR  UINT16_MAX

struct levelling {
    const struct ctl_leaves *in;
    uint32_t n_switches;
    uint32_t *begin, *next; /* neighbours of switch s: next[begin[s]..begin[s+1]-1] */
    uint32_t *edge;         /* switches that are leaves, twins next to each other */
    uint32_t n_edge;
    uint32_t *twin;   /* for each place in edge: the number of its search */
    uint16_t *far;    /* for each search: the distance of each edge */
    bool *on_the_way; /* for each leaf */
    /* state of the merging */
    uint32_t *set;    /* for each leaf */
    uint32_t *top;    /* for each set: its vertex so far */
    uint32_t *fresh;  /* for each set: the new vertex of this level */
    uint32_t *parent; /* the result */
    uint32_t n_vertices, n_sets;
};

/* ---- neighbours ---- */

static bool between_switches(const struct pmixfab *fab, uint32_t i, struct pmixfab_link *link)
{
    return pmixfab_link(fab, i, link) == 0 && link->a.is_switch != 0 && link->b.is_switch != 0 &&
           link->a.index != link->b.index;
}

static int levels_neighbours(struct levelling *l)
{
    const struct pmixfab *fab = l->in->fab;
    struct pmixfab_link link;
    uint32_t *fill = calloc(l->n_switches + (size_t)1, sizeof *fill);
    uint64_t total = 0;
    l->begin = calloc(l->n_switches + (size_t)2, sizeof *l->begin);
    l->next = malloc((2 * (size_t)l->in->plane->n_links + 1) * sizeof *l->next);
    if (fill == NULL || l->begin == NULL || l->next == NULL) {
        free(fill);
        return PMIXFAB_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < l->in->plane->n_links; i++)
        if (between_switches(fab, i, &link)) {
            l->begin[link.a.index + 1]++;
            l->begin[link.b.index + 1]++;
        }
    for (uint32_t s = 0; s < l->n_switches; s++) {
        total += l->begin[s + 1];
        l->begin[s + 1] = (uint32_t)total;
        fill[s] = l->begin[s];
    }
    for (uint32_t i = 0; i < l->in->plane->n_links; i++)
        if (between_switches(fab, i, &link)) {
            l->next[fill[link.a.index]++] = link.b.index;
            l->next[fill[link.b.index]++] = link.a.index;
        }
    free(fill);
    return 0;
}

/* ---- twins ---- */

static int compare_numbers(const void *a, const void *b)
{
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int compare_neighbours(const void *a, const void *b, void *levelling)
{
    const struct levelling *l = levelling;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint32_t n_x = l->begin[x + 1] - l->begin[x], n_y = l->begin[y + 1] - l->begin[y];
    return n_x != n_y ? FAB_ORDER(n_x, n_y)
                      : memcmp(&l->next[l->begin[x]], &l->next[l->begin[y]], n_x * sizeof *l->next);
}

/* Order edge switches so that those with the same neighbours are adjacent; return the number of kinds. */
static uint32_t levels_twins(struct levelling *l)
{
    uint32_t kinds = 0;
    for (uint32_t s = 0; s < l->n_switches; s++) {
        if (l->in->leaf_of[s] == NONE)
            continue;
        l->edge[l->n_edge++] = s;
        qsort(&l->next[l->begin[s]], l->begin[s + 1] - l->begin[s], sizeof *l->next, compare_numbers);
    }
    qsort_r(l->edge, l->n_edge, sizeof *l->edge, compare_neighbours, l);
    for (uint32_t i = 0; i < l->n_edge; i++) {
        kinds += i == 0 || compare_neighbours(&l->edge[i - 1], &l->edge[i], l) != 0;
        l->twin[i] = kinds - 1;
    }
    return kinds;
}

/* ---- distances ---- */

/*
 * Search from edge[from]. depth and queue have room for all switches; afterwards depth[s] is FAR or the
 * distance.
 */
static void levels_search(struct levelling *l, uint32_t from, uint16_t *depth, uint32_t *queue, bool *leads)
{
    uint32_t n = 1;
    memset(depth, 0xff, l->n_switches * sizeof *depth);
    queue[0] = l->edge[from];
    depth[queue[0]] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = l->begin[queue[i]]; e < l->begin[queue[i] + 1]; e++)
            if (depth[l->next[e]] == FAR && depth[queue[i]] < FAR - 1) {
                depth[l->next[e]] = depth[queue[i]] + 1;
                queue[n++] = l->next[e];
            }
    /* from the furthest back: mark switches that lead to another edge switch */
    while (n-- > 0) {
        const uint32_t s = queue[n], leaf = l->in->leaf_of[s];
        bool on = false;
        for (uint32_t e = l->begin[s]; e < l->begin[s + 1] && !on; e++)
            on = depth[l->next[e]] > depth[s] && leads[l->next[e]];
        leads[s] = on || leaf != NONE;
        if (on && leaf != NONE && n > 0)
            l->on_the_way[leaf] = true;
    }
}

static int levels_distances(struct levelling *l, bool *irregular)
{
    uint16_t *depth = malloc((l->n_switches + (size_t)1) * sizeof *depth);
    uint32_t *queue = malloc((l->n_switches + (size_t)1) * sizeof *queue);
    bool *leads = calloc(l->n_switches + (size_t)1, sizeof *leads);
    uint32_t kinds = levels_twins(l), between = 0;
    int rc = PMIXFAB_ERR_NOMEM;
    l->far = malloc(((size_t)kinds * l->n_edge + 1) * sizeof *l->far);
    if (depth == NULL || queue == NULL || leads == NULL || l->far == NULL)
        goto cleanup;
    for (uint32_t i = 0; i < l->n_edge; i++) {
        uint16_t *row = l->far + (size_t)l->twin[i] * l->n_edge;
        if (i > 0 && l->twin[i] == l->twin[i - 1])
            continue;
        levels_search(l, i, depth, queue, leads);
        for (uint32_t k = 0; k < l->n_edge; k++)
            row[k] = depth[l->edge[k]];
    }
    for (uint32_t leaf = 0; leaf < l->in->n; leaf++)
        between += l->on_the_way[leaf];
    *irregular = 2 * (uint64_t)between > l->in->n;
    if (*irregular)
        memset(l->on_the_way, 0, l->in->n * sizeof *l->on_the_way);
    rc = 0;
cleanup:
    free(depth);
    free(queue);
    free(leads);
    return rc;
}

/* ---- merging ---- */

/* Put each set that was joined since the last level below a new vertex. */
static void levels_close(struct levelling *l)
{
    memset(l->fresh, 0xff, l->in->n * sizeof *l->fresh);
    for (uint32_t leaf = 0; leaf < l->in->n; leaf++) {
        const uint32_t root = fab_set_root(l->set, leaf);
        if (l->top[leaf] == NONE || root == leaf) /* was not a set of its own, or still represents one */
            continue;
        if (l->fresh[root] == NONE) {
            l->fresh[root] = l->n_vertices++;
            l->parent[l->fresh[root]] = NONE;
            l->parent[l->top[root]] = l->fresh[root];
        }
        l->parent[l->top[leaf]] = l->fresh[root];
        l->top[leaf] = NONE;
        l->n_sets--;
    }
    for (uint32_t leaf = 0; leaf < l->in->n; leaf++)
        if (l->fresh[leaf] != NONE)
            l->top[leaf] = l->fresh[leaf];
}

static uint32_t leaf_at(const struct levelling *l, uint32_t edge)
{
    return l->in->leaf_of[l->edge[edge]];
}

/* Find for a waiting leaf the set that contains all its nearest leaves; NONE: the leaf still waits. */
static uint32_t levels_nearest(struct levelling *l, uint32_t edge)
{
    uint16_t least = FAR;
    uint32_t found = NONE;
    for (uint32_t k = 0; k < l->n_edge; k++) {
        const uint32_t leaf = leaf_at(l, k);
        const uint16_t far = l->far[(size_t)l->twin[edge] * l->n_edge + k];
        if (l->on_the_way[leaf] || far > least || far == FAR)
            continue;
        if (far == least && (found == NONE || fab_set_root(l->set, leaf) != fab_set_root(l->set, found)))
            found = NONE;
        else
            found = leaf;
        least = far;
    }
    return found;
}

static void levels_by_distance(struct levelling *l)
{
    uint32_t before;
    for (uint16_t d = 1; d < FAR && l->n_sets > 1; d++) {
        bool further = false;
        before = l->n_sets;
        for (uint32_t i = 0; i < l->n_edge; i++) {
            const uint16_t *row = l->far + (size_t)l->twin[i] * l->n_edge;
            /* twins have the same distances to all others, and distance 2 to each other */
            if (l->on_the_way[leaf_at(l, i)] || (d > 2 && i > 0 && l->twin[i] == l->twin[i - 1]))
                continue;
            for (uint32_t k = 0; k < l->n_edge; k++) {
                further |= row[k] != FAR && row[k] > d;
                if (row[k] == d && !l->on_the_way[leaf_at(l, k)])
                    fab_set_join(l->set, leaf_at(l, i), leaf_at(l, k));
            }
        }
        for (uint32_t i = 0; i < l->n_edge; i++) {
            const uint32_t nearest = l->on_the_way[leaf_at(l, i)] ? levels_nearest(l, i) : NONE;
            if (nearest != NONE)
                fab_set_join(l->set, leaf_at(l, i), nearest);
        }
        levels_close(l);
        if (!further && before == l->n_sets)
            break;
    }
}

static void levels_by_group(struct levelling *l)
{
    const uint32_t *group = l->in->group;
    for (uint32_t leaf = 0; leaf < l->in->n; leaf++) {
        uint32_t first = 0; /* of the group */
        while (group[first] != group[leaf])
            first++;
        fab_set_join(l->set, first, leaf);
    }
    levels_close(l);
    for (uint32_t leaf = 1; leaf < l->in->n; leaf++)
        fab_set_join(l->set, 0, leaf);
    levels_close(l);
}

int ctl_levels(const struct ctl_leaves *leaves, uint32_t *parent, uint32_t *n_vertices, bool *irregular)
{
    struct levelling l = {.in = leaves,
                          .n_switches = leaves->plane->n_switches,
                          .parent = parent,
                          .n_vertices = leaves->n,
                          .n_sets = leaves->n};
    int rc = PMIXFAB_ERR_NOMEM;
    *n_vertices = leaves->n;
    *irregular = false;
    l.edge = calloc(l.n_switches + (size_t)1, sizeof *l.edge);
    l.twin = calloc(l.n_switches + (size_t)1, sizeof *l.twin);
    l.on_the_way = calloc(leaves->n + (size_t)1, sizeof *l.on_the_way);
    l.set = calloc(leaves->n + (size_t)1, sizeof *l.set);
    l.top = calloc(leaves->n + (size_t)1, sizeof *l.top);
    l.fresh = calloc(leaves->n + (size_t)1, sizeof *l.fresh);
    if (l.edge == NULL || l.twin == NULL || l.on_the_way == NULL || l.set == NULL || l.top == NULL ||
        l.fresh == NULL)
        goto cleanup;
    for (uint32_t leaf = 0; leaf < leaves->n; leaf++) {
        l.set[leaf] = l.top[leaf] = leaf;
        parent[leaf] = NONE;
    }
    rc = 0;
    if (leaves->group != NULL)
        levels_by_group(&l);
    else if ((rc = levels_neighbours(&l)) == 0 && (rc = levels_distances(&l, irregular)) == 0)
        levels_by_distance(&l);
    *n_vertices = l.n_vertices;
cleanup:
    free(l.begin);
    free(l.next);
    free(l.edge);
    free(l.twin);
    free(l.far);
    free(l.on_the_way);
    free(l.set);
    free(l.top);
    free(l.fresh);
    return rc;
}

/* ---- order ---- */

struct leveled {
    uint32_t vertex, parent, first; /* first: its lowest leaf */
};

/* Compare: the highest parent first, and siblings by their first leaf. */
static int compare_leveled(const void *a, const void *b)
{
    const struct leveled *x = a, *y = b;
    return FAB_ORDER(y->parent, x->parent) ?: FAB_ORDER(x->first, y->first);
}

int ctl_levels_order(uint32_t *parent, uint32_t n_leaves, uint32_t n_vertices, uint32_t *place)
{
    struct leveled *list = calloc(n_vertices + (size_t)1, sizeof *list);
    uint32_t *below = calloc(n_vertices + (size_t)1, sizeof *below); /* leaves below each vertex */
    uint32_t *begin = calloc(n_vertices + (size_t)1, sizeof *begin); /* leaves before each vertex */
    int rc = PMIXFAB_ERR_NOMEM;
    if (list == NULL || below == NULL || begin == NULL)
        goto cleanup;
    for (uint32_t v = 0; v < n_vertices; v++)
        list[v] = (struct leveled){v, parent[v], v < n_leaves ? v : NONE};
    for (uint32_t v = 0; v < n_vertices; v++) {
        below[v] += v < n_leaves;
        if (parent[v] == NONE)
            continue;
        below[parent[v]] += below[v];
        if (list[v].first < list[parent[v]].first)
            list[parent[v]].first = list[v].first;
    }
    qsort(list, n_vertices, sizeof *list, compare_leveled);
    for (uint32_t i = 0, next = 0; i < n_vertices; i++) {
        if (i > 0 && list[i].parent != list[i - 1].parent)
            next = begin[list[i].parent];
        begin[list[i].vertex] = next;
        next += below[list[i].vertex];
    }
    memcpy(below, parent, n_leaves * sizeof *below);
    for (uint32_t leaf = 0; leaf < n_leaves; leaf++) {
        place[leaf] = begin[leaf];
        parent[place[leaf]] = below[leaf];
    }
    rc = 0;
cleanup:
    free(list);
    free(below);
    free(begin);
    return rc;
}
