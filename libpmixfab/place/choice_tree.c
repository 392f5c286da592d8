/*
 * choice_tree.c - find the best choice in a tree of classes.
 *
 * Classes are joined in the order of costs, as in a minimum spanning tree. If two parts are joined, the cost
 * between a host of one part and a host of the other is that of the cheapest pair. This is never more than
 * the real cost. So the cost of the best choice is a lower bound for all choices. If the costs are those of a
 * tree, the bound is exact. The best choice of k hosts of a joined part is the best split of k among its two
 * parts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/place_private.h"
#include "topo/base/order.h"

#define TREE_MOST_ENTRIES ((size_t)1 << 24)   /* of all tables together: 128 MB */
#define TREE_MOST_STEPS   ((uint64_t)3 << 30) /* one to two seconds */

/* All tie-breakers together weigh less than any difference of two sums. */
#define TREE_TRIFLES 0.25

struct tree_edge {
    double weight;
    uint32_t a, b;
};

/* A part; the first ones are the classes. */
struct tree_node {
    double *best; /* per number of hosts, 0 to size */
    double level; /* between its two parts */
    uint32_t size, left, right;
    uint32_t hosts; /* number of its hosts; no choice takes more than size */
};

struct tree {
    struct fab_scratch scratch;
    const struct fab_choice *p;
    const double *shift;
    struct tree_node *nodes;
    struct tree_edge *edges;
    uint32_t *part, *node_of; /* per class: the next one of its part up to the first; there the part's node */
    struct tree_pair {
        uint32_t part, node;
    } * joining;
    uint32_t n;
    size_t entries;
    uint64_t steps;
};

static int tree_edge_cmp(const void *a, const void *b)
{
    return FAB_ORDER(((const struct tree_edge *)a)->weight, ((const struct tree_edge *)b)->weight);
}

static int tree_pair_cmp(const void *a, const void *b)
{
    const struct tree_pair *x = a, *y = b;
    return FAB_ORDER(x->part, y->part) ?: FAB_ORDER(x->node, y->node);
}

/* Prim's algorithm: from class 0, always add the class nearest to those added. */
static int tree_span(struct tree *t)
{
    const uint32_t n = t->p->classes->n;
    double *near;
    uint32_t *from, last = 0;

    FAB_SCRATCH(&t->scratch, &near, n);
    if (FAB_SCRATCH(&t->scratch, &from, n) == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t c = 0; c < n; c++)
        near[c] = INFINITY;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t next = FAB_NONE;
        near[last] = -INFINITY; /* it is added */
        for (uint32_t c = 0; c < n; c++) {
            const double weight = fab_choice_weight(t->p, last, c) - t->shift[last] - t->shift[c];
            if (near[c] == -INFINITY)
                continue;
            if (weight < near[c]) {
                near[c] = weight;
                from[c] = last;
            }
            if (next == FAB_NONE || near[c] < near[next])
                next = c;
        }
        t->edges[i - 1] = (struct tree_edge){near[next], from[next], next};
        last = next;
    }
    return PMIXFAB_OK;
}

static uint32_t tree_part(struct tree *t, uint32_t c)
{
    while (t->part[c] != c)
        c = t->part[c] = t->part[t->part[c]];
    return c;
}

static double *tree_table(struct tree *t, uint32_t size)
{
    t->entries += size + (size_t)1;
    return t->entries <= TREE_MOST_ENTRIES ? malloc((size + (size_t)1) * sizeof(double)) : NULL;
}

/*
 * Return the weight of the leaves of a class. used: number of classes of each edge; NULL: all edges are this
 * class's only.
 */
static double tree_charge(const struct fab_choice *p, const struct fab_class *class, const uint32_t *used)
{
    double charge = 0;
    for (uint32_t i = 0; i < class->n_at; i++)
        charge += p->leaf / (used != NULL ? used[p->classes->at[class->first_at + i].edge] : 1);
    return charge;
}

/*
 * Break ties between choices with equal weight. First take the choice with the most complete hosts: each leaf
 * that a host lacks and other hosts are on adds a small weight. Then take the choice that leaves fewest hosts
 * on its leaves unused. All unused hosts together weigh less than one lacking leaf.
 */
static int tree_leaves(struct tree *t, const uint32_t *used)
{
    const struct fab_choice *p = t->p;
    uint32_t most = 0, least = UINT32_MAX;

    for (uint32_t c = 0; c < p->classes->n; c++) {
        const uint32_t n_at = p->classes->classes[c].n_at;
        most = n_at > most ? n_at : most;
        least = n_at < least ? n_at : least;
    }
    const double lacking = most == least ? 0 : TREE_TRIFLES / 2 / ((double)p->n * most);
    const double over = (most == least ? TREE_TRIFLES : lacking / 2) / p->classes->n_hosts;
    for (uint32_t c = 0; c < p->classes->n; c++) {
        const struct fab_class *class = &p->classes->classes[c];
        const double inside = fab_choice_weight(p, c, c) - 2 * t->shift[c];
        const double charge = tree_charge(p, class, used);
        struct tree_node *node = &t->nodes[t->n++];

        node->hosts = class->n_hosts;
        node->size = class->n_hosts < p->n ? class->n_hosts : p->n;
        node->best = tree_table(t, node->size);
        if (node->best == NULL)
            return PMIXFAB_ERR_NOMEM;
        node->best[0] = 0;
        for (uint32_t k = 1; k <= node->size; k++)
            node->best[k] = inside * k * (k - 1) / 2 + t->shift[c] * k * (p->n - 1) + charge +
                            lacking * (most - class->n_at) * k + over * (class->n_hosts - k);
        t->part[c] = t->node_of[c] = c;
    }
    return PMIXFAB_OK;
}

/* Return the minimum number of hosts taken from the joined part, because there are too few outside. */
static uint32_t tree_least(const struct tree *t, uint32_t hosts)
{
    const uint32_t outside = t->p->classes->n_hosts - hosts;
    return t->p->n > outside ? t->p->n - outside : 0;
}

static int tree_join(struct tree *t, uint32_t left, uint32_t right, double level, uint32_t *joined)
{
    const struct tree_node *a = &t->nodes[left], *b = &t->nodes[right];
    const uint32_t n = t->p->n, size = a->size + b->size < n ? a->size + b->size : n;
    const uint32_t hosts = a->hosts + b->hosts, least = tree_least(t, hosts);
    struct tree_node *node = &t->nodes[t->n];

    *node = (struct tree_node){NULL, level, size, left, right, hosts};
    node->best = tree_table(t, size);
    *joined = t->n++;
    if (node->best == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t k = 0; k <= size; k++)
        node->best[k] = INFINITY;
    for (uint32_t i = 0; i <= a->size && t->steps <= TREE_MOST_STEPS; i++) {
        const uint32_t most = b->size < n - i ? b->size : n - i, from_j = least > i ? least - i : 0;
        double *restrict to = node->best + i;
        const double *restrict from = b->best;
        const double inside = a->best[i], each = level * i;
        for (int32_t j = (int32_t)from_j; j <= (int32_t)most;
             j++) { /* signed: vector instructions exist for these */
            const double value = inside + from[j] + each * j;
            to[j] = value < to[j] ? value : to[j]; /* NOLINT(clang-analyzer-core.*): i + j is within size */
        }
        t->steps += from_j <= most ? most - from_j + (uint64_t)1 : 1;
    }
    return t->steps <= TREE_MOST_STEPS ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
}

/*
 * Join the parts of edges [first, end), which have one weight, two by two, so that no table is copied often.
 */
static int tree_level(struct tree *t, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    int rc = PMIXFAB_OK;

    for (uint32_t e = first; e < end; e++)
        for (int side = 0; side < 2; side++) {
            const uint32_t part = tree_part(t, side == 0 ? t->edges[e].a : t->edges[e].b);
            t->joining[n++] = (struct tree_pair){part, t->node_of[part]};
        }
    for (uint32_t e = first; e < end; e++)
        t->part[tree_part(t, t->edges[e].a)] = tree_part(t, t->edges[e].b);
    for (uint32_t i = 0; i < n; i++)
        t->joining[i].part = tree_part(t, t->joining[i].part);
    qsort(t->joining, n, sizeof(*t->joining), tree_pair_cmp);
    for (uint32_t from = 0, to; from < n && rc == PMIXFAB_OK; from = to) {
        struct tree_pair *group = t->joining + from;
        uint32_t m = 0;
        for (to = from; to < n && t->joining[to].part == group->part; to++)
            if (to == from || t->joining[to].node != t->joining[to - 1].node)
                group[m++].node = t->joining[to].node;
        for (; m > 1 && rc == PMIXFAB_OK; m = (m + 1) / 2) {
            for (uint32_t i = 0; i + 1 < m && rc == PMIXFAB_OK; i += 2)
                rc = tree_join(t, group[i].node, group[i + 1].node, t->edges[first].weight,
                               &group[i / 2].node);
            if (m % 2 == 1)
                group[m / 2].node = group[m - 1].node;
        }
        t->node_of[group->part] = group->node;
    }
    return rc;
}

/* Find the splits, from the whole down: parts come after the parts that they are made of. */
static void tree_counts(const struct tree *t, uint32_t *wanted)
{
    wanted[t->n - 1] = t->p->n;
    for (uint32_t v = t->n - 1; v >= t->p->classes->n; v--) {
        const struct tree_node *node = &t->nodes[v], *a = &t->nodes[node->left], *b = &t->nodes[node->right];
        const uint32_t k = wanted[v];
        double least = INFINITY;
        const uint32_t least_i = k > b->size ? k - b->size : 0;
        for (uint32_t i = (a->size < k ? a->size : k) + 1;
             i-- > least_i;) { /* of equal splits the first hosts */
            const double value = a->best[i] + b->best[k - i] + node->level * i * (k - i);
            if (value < least) {
                least = value;
                wanted[node->left] = i;
            }
        }
        wanted[node->right] = k - wanted[node->left];
    }
}

static int tree_build(struct tree *t, const uint32_t *used)
{
    const uint32_t n = t->p->classes->n;
    int rc = tree_span(t) ?: tree_leaves(t, used);

    if (rc == PMIXFAB_OK && n > 1)
        qsort(t->edges, n - 1, sizeof(*t->edges), tree_edge_cmp);
    for (uint32_t first = 0, end; first + 1 < n && rc == PMIXFAB_OK; first = end) {
        for (end = first; end + 1 < n && t->edges[end].weight == t->edges[first].weight; end++)
            continue;
        rc = tree_level(t, first, end);
    }
    return rc;
}

void fab_choice_tree(struct fab_choice *p, const double *shift, bool shared)
{
    const struct fab_classes *classes = p->classes;
    const uint32_t n = classes->n;
    struct tree t = {.p = p, .shift = shift};
    uint32_t *wanted, *used; /* per edge: classes that have it */

    FAB_SCRATCH(&t.scratch, &wanted, 2 * (size_t)n);
    FAB_SCRATCH(&t.scratch, &used, classes->n_edges);
    FAB_SCRATCH(&t.scratch, &t.nodes, 2 * (size_t)n);
    FAB_SCRATCH(&t.scratch, &t.edges, n);
    FAB_SCRATCH(&t.scratch, &t.part, n);
    FAB_SCRATCH(&t.scratch, &t.node_of, n);
    FAB_SCRATCH(&t.scratch, &t.joining, 2 * (size_t)n);
    if (t.scratch.failed)
        goto cleanup;
    for (uint32_t i = 0; i < classes->n_at; i++)
        used[classes->at[i].edge]++;
    if (tree_build(&t, shared ? used : NULL) != PMIXFAB_OK)
        goto cleanup;
    tree_counts(&t, wanted);
    fab_choice_offer(p, wanted);
    if (shared)
        fab_choice_raise(p, t.nodes[t.n - 1].best[p->n] - TREE_TRIFLES);
cleanup:
    for (uint32_t v = 0; v < t.n; v++)
        free(t.nodes[v].best);
    fab_scratch_free(&t.scratch);
}
