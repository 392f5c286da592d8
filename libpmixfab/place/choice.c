/*
 * choice.c - the weight of a choice, and searches for good ones: by nearest hosts, by exchanges, exhaustive,
 * and by few leaves.
 */
#include <math.h>
#include <string.h>

#include "place/place_private.h"
#include "topo/base/radix.h"

/* Write the used classes to list; return their number. */
static uint32_t choice_used(const struct fab_choice *p, const uint32_t *counts, uint32_t *list)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < p->classes->n; c++)
        if (counts[c] > 0)
            list[n++] = c;
    return n;
}

/*
 * Return the number of leaves that these counts use; `used` has room for n_edges and is set for those leaves.
 */
static uint32_t choice_leaves(const struct fab_classes *classes, const uint32_t *counts, bool *used)
{
    uint32_t n = 0;

    memset(used, 0, classes->n_edges * sizeof(*used));
    for (uint32_t c = 0; c < classes->n; c++)
        for (uint32_t i = 0; i < classes->classes[c].n_at && counts[c] > 0; i++) {
            bool *edge = &used[classes->at[classes->classes[c].first_at + i].edge];
            n += !*edge;
            *edge = true;
        }
    return n;
}

void fab_choice_offer(struct fab_choice *p, const uint32_t *counts)
{
    const struct fab_classes *classes = p->classes;
    struct fab_scratch scratch = {.n = 0};
    uint32_t *list;
    bool *used;
    double value = 0;

    FAB_SCRATCH(&scratch, &list, classes->n);
    FAB_SCRATCH(&scratch, &used, classes->n_edges);
    if (scratch.failed)
        goto cleanup;
    const uint32_t n = choice_used(p, counts, list);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t c = list[i];
        const double hosts = counts[c];
        value += fab_choice_weight(p, c, c) * hosts * (hosts - 1) / 2;
        for (uint32_t j = 0; j < i; j++)
            value += fab_choice_weight(p, c, list[j]) * hosts * counts[list[j]];
    }
    if (p->leaf > 0)
        value += p->leaf * choice_leaves(classes, counts, used);
    if (value < p->value) {
        p->value = value;
        memcpy(p->counts, counts, classes->n * sizeof(*counts));
    }
cleanup:
    fab_scratch_free(&scratch);
}

/*
 * ---- a bound from each host's nearest ones, for costs that are not those of a tree ------------------------
 */

/* There are few different costs: they are counted, not sorted. */
struct nearby {
    uint16_t *rank; /* per cost */
    uint16_t *costs;
    uint32_t *hosts;
    uint32_t n;
};

static void nearby_rank(struct nearby *near, const struct fab_classes *classes)
{
    const size_t cells = (size_t)classes->n * classes->n;

    for (size_t i = 0; i < cells; i++)
        near->rank[classes->costs[i]] = 1;
    for (uint32_t cost = 0; cost <= UINT16_MAX; cost++)
        if (near->rank[cost] != 0)
            near->rank[cost] = (uint16_t)near->n++;
}

static void nearby_row(struct nearby *near, const struct fab_choice *p, uint32_t c, double *sum,
                       uint16_t *reach)
{
    const struct fab_classes *classes = p->classes;
    const uint16_t *row = classes->costs + (size_t)c * classes->n;
    uint32_t left = p->n - 1;

    for (uint32_t i = 0; i < near->n; i++)
        near->hosts[i] = 0;
    for (uint32_t d = 0; d < classes->n; d++) {
        near->costs[near->rank[row[d]]] = row[d];
        near->hosts[near->rank[row[d]]] += classes->classes[d].n_hosts;
    }
    near->hosts[near->rank[row[c]]]--; /* the host itself */
    *sum = 0;
    *reach = 0;
    for (uint32_t i = 0; i < near->n && left > 0; i++) {
        const uint32_t taken = near->hosts[i] < left ? near->hosts[i] : left;
        if (taken == 0)
            continue;
        const uint32_t cost = near->costs[i];
        *sum += taken * (cost > p->limit ? cost + p->far : cost);
        *reach = (uint16_t)cost;
        left -= taken;
    }
}

/* Any n hosts cost at least as much as the n with the smallest sums; each pair is in two sums. */
static double nearby_least(struct fab_key *keys, struct fab_key *scratch, const struct fab_choice *p,
                           uint64_t *last)
{
    const struct fab_classes *classes = p->classes;
    uint32_t left = p->n;
    double total = 0;

    fab_radix_sort(keys, scratch, classes->n);
    for (uint32_t i = 0; left > 0; i++) {
        const uint32_t hosts = classes->classes[keys[i].index].n_hosts;
        const uint32_t taken = hosts < left ? hosts : left;
        total += (double)taken * (double)keys[i].value;
        *last = keys[i].value;
        left -= taken;
    }
    return total;
}

void fab_choice_nearest(struct fab_choice *p, double *sums, uint16_t *farthest)
{
    const uint32_t n = p->classes->n;
    struct fab_scratch scratch = {.n = 0};
    struct fab_key *keys, *reaches, *room;
    struct nearby near = {.n = 0};
    uint64_t last = 0;
    uint16_t reach;

    FAB_SCRATCH(&scratch, &keys, n);
    FAB_SCRATCH(&scratch, &reaches, n);
    FAB_SCRATCH(&scratch, &room, n);
    if (FAB_SCRATCH(&scratch, &near.rank, UINT16_MAX) != NULL)
        nearby_rank(&near, p->classes);
    FAB_SCRATCH(&scratch, &near.costs, near.n);
    FAB_SCRATCH(&scratch, &near.hosts, near.n);
    if (!scratch.failed) {
        for (uint32_t c = 0; c < n; c++) {
            nearby_row(&near, p, c, &sums[c], &reach);
            keys[c] = (struct fab_key){(uint64_t)sums[c], c};
            reaches[c] = (struct fab_key){reach, c};
        }
        fab_choice_raise(p, nearby_least(keys, room, p, &last) / 2);
        nearby_least(reaches, room, p, &last);
        *farthest = (uint16_t)last;
    }
    fab_scratch_free(&scratch);
}

/*
 * ---- growing a choice around a class, and exchanging hosts ------------------------------------------------
 */

struct search {
    struct fab_scratch scratch;
    struct fab_choice *p;
    uint32_t *counts;
    double *joining; /* per class: cost of one more of its hosts with all chosen ones */
    uint64_t work, budget;
};

static bool search_open(struct search *s)
{
    FAB_SCRATCH(&s->scratch, &s->counts, s->p->classes->n);
    return FAB_SCRATCH(&s->scratch, &s->joining, s->p->classes->n) != NULL;
}

static bool search_goes_on(const struct search *s)
{
    return s->work < s->budget;
}

/* Add this many hosts of a class; negative: remove. */
static void search_take(struct search *s, uint32_t c, int32_t hosts)
{
    const struct fab_choice *p = s->p;
    const uint32_t n = p->classes->n;

    s->counts[c] += (uint32_t)hosts;
    for (uint32_t d = 0; d < n; d++)
        s->joining[d] += hosts * fab_choice_weight(p, c, d);
    s->work += n;
}

/* Return the class with a free host that costs least to add. There is one. */
static uint32_t search_cheapest(struct search *s)
{
    const struct fab_classes *classes = s->p->classes;
    uint32_t best = FAB_NONE;

    for (uint32_t c = 0; c < classes->n; c++)
        if (s->counts[c] < classes->classes[c].n_hosts &&
            (best == FAB_NONE || s->joining[c] < s->joining[best]))
            best = c;
    s->work += classes->n;
    return best;
}

static void search_grow(struct search *s, uint32_t seed)
{
    const struct fab_classes *classes = s->p->classes;

    memset(s->counts, 0, classes->n * sizeof(*s->counts));
    memset(s->joining, 0, classes->n * sizeof(*s->joining));
    for (uint32_t left = s->p->n, c = seed; left > 0; c = left > 0 ? search_cheapest(s) : c) {
        const uint32_t hosts = classes->classes[c].n_hosts < left ? classes->classes[c].n_hosts : left;
        search_take(s, c, (int32_t)hosts);
        left -= hosts;
    }
}

/* Return the cost of a chosen host of this class with the others. */
static double search_staying(const struct search *s, uint32_t c)
{
    return s->joining[c] - fab_choice_weight(s->p, c, c);
}

/*
 * Remove the host that costs most, then add the one that costs least. Return false, with the exchange undone,
 * if that is no better.
 */
static bool search_exchange(struct search *s)
{
    const uint32_t n = s->p->classes->n;
    uint32_t worst = FAB_NONE;

    for (uint32_t c = 0; c < n; c++)
        if (s->counts[c] > 0 && (worst == FAB_NONE || search_staying(s, c) > search_staying(s, worst)))
            worst = c;
    s->work += n;
    const double saved = search_staying(s, worst);
    search_take(s, worst, -1);
    const uint32_t best = search_cheapest(s);
    const bool better = s->joining[best] < saved - 0.5;
    search_take(s, better ? best : worst, 1);
    return better;
}

/* Make the best exchange of one host for another. Return false if none is better. */
static bool search_best_exchange(struct search *s)
{
    const struct fab_choice *p = s->p;
    const struct fab_classes *classes = p->classes;
    double most = 0.5;
    uint32_t out = FAB_NONE, in = FAB_NONE;

    for (uint32_t c = 0; c < classes->n; c++) {
        if (s->counts[c] == 0)
            continue;
        const double saved = search_staying(s, c);
        s->work += classes->n;
        for (uint32_t d = 0; d < classes->n; d++) {
            const double less = saved - s->joining[d] + fab_choice_weight(p, c, d);
            if (less > most && d != c && s->counts[d] < classes->classes[d].n_hosts) {
                most = less;
                out = c;
                in = d;
            }
        }
    }
    if (out == FAB_NONE)
        return false;
    search_take(s, out, -1);
    search_take(s, in, 1);
    return true;
}

static void search_improve(struct search *s)
{
    do
        while (search_goes_on(s) && search_exchange(s))
            continue;
    while (search_goes_on(s) && search_best_exchange(s));
    fab_choice_offer(s->p, s->counts);
}

/* Continue from the best choice so far. */
static void search_again(struct search *s)
{
    const uint32_t n = s->p->classes->n;

    memset(s->counts, 0, n * sizeof(*s->counts));
    memset(s->joining, 0, n * sizeof(*s->joining));
    for (uint32_t c = 0; c < n; c++)
        if (s->p->counts[c] > 0)
            search_take(s, c, (int32_t)s->p->counts[c]);
    search_improve(s);
}

/* Start at the classes whose nearest hosts cost least, except those in an earlier choice. */
static void search_seeds(struct search *s, const double *sums, struct fab_key *keys, struct fab_key *scratch,
                         bool *chosen)
{
    const uint32_t n = s->p->classes->n;

    for (uint32_t c = 0; c < n; c++)
        keys[c] = (struct fab_key){(uint64_t)sums[c], c};
    fab_radix_sort(keys, scratch, n);
    for (uint32_t i = 0; i < n && search_goes_on(s) && !fab_choice_proven(s->p); i++) {
        if (chosen[keys[i].index])
            continue;
        search_grow(s, keys[i].index);
        search_improve(s);
        chosen[keys[i].index] = true;
        for (uint32_t c = 0; c < n; c++)
            chosen[c] |= s->counts[c] > 0;
    }
}

void fab_choice_search(struct fab_choice *p, const double *sums, uint64_t budget)
{
    const uint32_t n = p->classes->n;
    struct search s = {.p = p, .budget = budget};
    struct fab_key *keys;
    bool *chosen;

    FAB_SCRATCH(&s.scratch, &keys, 2 * (size_t)n);
    FAB_SCRATCH(&s.scratch, &chosen, n);
    if (search_open(&s)) {
        if (!isinf(p->value))
            search_again(&s);
        search_seeds(&s, sums, keys, keys + n, chosen);
    }
    fab_scratch_free(&s.scratch);
}

/*
 * ---- exhaustive: branch and bound over the classes
 * ------------------------------------------------------------
 */

/* With more classes the search would not end. */
#define EXACT_MOST 64u

struct exact {
    struct search s;
    uint32_t *users; /* per edge: classes in use that have it */
    double least;    /* weight of any pair */
};

/* Return the weight of the leaves that only this class uses. */
static double exact_leaves(const struct exact *x, uint32_t c)
{
    const struct fab_class *class = &x->s.p->classes->classes[c];
    double weight = 0;
    for (uint32_t i = 0; i < class->n_at; i++)
        weight += x->users[x->s.p->classes->at[class->first_at + i].edge] == 0 ? x->s.p->leaf : 0;
    return weight;
}

static void exact_take(struct exact *x, uint32_t c, int32_t hosts)
{
    const struct fab_classes *classes = x->s.p->classes;
    const bool used = x->s.counts[c] > 0;

    search_take(&x->s, c, hosts);
    for (uint32_t i = 0; i < classes->classes[c].n_at && used != (x->s.counts[c] > 0); i++)
        x->users[classes->at[classes->classes[c].first_at + i].edge] += used ? UINT32_MAX : 1;
}

/*
 * Return a lower bound for the remaining hosts: the lowest costs with those chosen, and among each other the
 * lowest cost of any pair. INFINITY: there are not enough.
 */
static double exact_rest(struct exact *x, uint32_t first, uint32_t left)
{
    const struct fab_classes *classes = x->s.p->classes;
    double rest = x->least * left * (left - 1.0) / 2;
    bool taken[EXACT_MOST] = {false};

    while (left > 0) {
        uint32_t best = FAB_NONE;
        for (uint32_t c = first; c < classes->n; c++)
            if (!taken[c] && (best == FAB_NONE || x->s.joining[c] < x->s.joining[best]))
                best = c;
        x->s.work += classes->n - first;
        if (best == FAB_NONE)
            return INFINITY;
        const uint32_t hosts = classes->classes[best].n_hosts < left ? classes->classes[best].n_hosts : left;
        rest += hosts * x->s.joining[best];
        taken[best] = true;
        left -= hosts;
    }
    return rest;
}

/* NOLINTNEXTLINE(misc-no-recursion): the depth is the number of classes, at most EXACT_MOST */
static void exact_from(struct exact *x, uint32_t c, uint32_t left, double value)
{
    if (left == 0) {
        fab_choice_offer(x->s.p, x->s.counts);
        return;
    }
    if (x->s.work >= x->s.budget || value + exact_rest(x, c, left) > x->s.p->value - 0.5)
        return;
    const uint32_t hosts = x->s.p->classes->classes[c].n_hosts;
    const double inside = fab_choice_weight(x->s.p, c, c), joining = x->s.joining[c],
                 leaves = exact_leaves(x, c);
    for (uint32_t k = hosts < left ? hosts : left; k > 0; k--) {
        exact_take(x, c, (int32_t)k);
        exact_from(x, c + 1, left - k, value + leaves + k * joining + inside * k * (k - 1.0) / 2);
        exact_take(x, c, -(int32_t)k);
    }
    exact_from(x, c + 1, left, value);
}

void fab_choice_exact(struct fab_choice *p, uint64_t budget)
{
    const struct fab_classes *classes = p->classes;
    struct exact x = {.s = {.p = p, .budget = budget}, .least = INFINITY};

    if (classes->n > EXACT_MOST)
        return;
    for (uint32_t c = 0; c < classes->n; c++)
        for (uint32_t d = 0; d <= c; d++) {
            const double weight = fab_choice_weight(p, c, d);
            if (weight < x.least && (c != d || classes->classes[c].n_hosts > 1))
                x.least = weight;
        }
    x.least = isinf(x.least) ? 0 : x.least; /* one host: there is no pair */
    FAB_SCRATCH(&x.s.scratch, &x.users, classes->n_edges);
    if (search_open(&x.s)) {
        exact_from(&x, 0, p->n, 0);
        if (x.s.work < budget && p->value > p->bound)
            p->bound = p->value;
    }
    fab_scratch_free(&x.s.scratch);
}

/*
 * ---- few leaves: repeatedly take the class with most hosts for each additional leaf
 * ------------------------
 *
 * A tree of classes charges each class for all of its leaves, although hosts on several leaves share some.
 * Here leaves in use cost nothing, and a class adds every host whose leaves are then all in use.
 */

struct cover {
    struct fab_choice *p;
    uint32_t *first, *classes_at; /* per edge: its classes */
    uint32_t *counts;
    uint32_t *missing; /* per class: leaves of it that are not in use */
    bool *used;        /* per edge */
    uint32_t *met;     /* per class: leaves of the candidate that it needs; all 0 between candidates */
    uint64_t work, budget;
};

static const struct fab_attachment *cover_at(const struct cover *v, uint32_t c)
{
    return v->p->classes->at + v->p->classes->classes[c].first_at;
}

/*
 * Return the number of hosts that are newly covered when the leaves of class c are used. Once the budget of
 * work is spent, return only the number of hosts of the class.
 */
static uint32_t cover_gain(struct cover *v, uint32_t c)
{
    const struct fab_class *classes = v->p->classes->classes;
    const struct fab_attachment *at = cover_at(v, c), *end = at + classes[c].n_at;
    uint32_t gain = 0;

    if (v->work >= v->budget)
        return classes[c].n_hosts;
    for (const struct fab_attachment *a = at; a < end; a++)
        for (uint32_t i = v->first[a->edge]; i < v->first[a->edge + 1] && !v->used[a->edge]; i++) {
            const uint32_t d = v->classes_at[i];
            gain += ++v->met[d] == v->missing[d] ? classes[d].n_hosts : 0;
        }
    for (const struct fab_attachment *a = at; a < end; a++)
        for (uint32_t i = v->first[a->edge]; i < v->first[a->edge + 1] && !v->used[a->edge]; i++) {
            v->met[v->classes_at[i]] = 0;
            v->work++;
        }
    return gain;
}

/* Use a class and return the number of hosts still wanted. */
static uint32_t cover_use(struct cover *v, uint32_t c, uint32_t left)
{
    const struct fab_class *classes = v->p->classes->classes;

    for (uint32_t i = 0; i < classes[c].n_at; i++) {
        const uint32_t edge = cover_at(v, c)[i].edge;
        for (uint32_t k = v->first[edge]; k < v->first[edge + 1] && !v->used[edge]; k++)
            v->missing[v->classes_at[k]]--;
        v->used[edge] = true;
    }
    for (uint32_t d = 0; d < v->p->classes->n && left > 0; d++)
        if (v->missing[d] == 0 && v->counts[d] == 0) {
            v->counts[d] = classes[d].n_hosts < left ? classes[d].n_hosts : left;
            left -= v->counts[d];
        }
    v->work += v->p->classes->n;
    return left;
}

/* Return the unused class that adds most hosts for each leaf, up to the number wanted. */
static uint32_t cover_best(struct cover *v, uint32_t left)
{
    uint32_t best = FAB_NONE;
    double most = -1;

    for (uint32_t c = 0; c < v->p->classes->n; c++) {
        if (v->counts[c] > 0)
            continue;
        const uint32_t gain = cover_gain(v, c);
        const double each = (double)(gain < left ? gain : left) / v->missing[c];
        if (each > most) {
            most = each;
            best = c;
        }
    }
    v->work += v->p->classes->n;
    return best;
}

/* seed: the class to begin with; FAB_NONE: the best one. */
static void cover_from(struct cover *v, uint32_t seed)
{
    const struct fab_classes *classes = v->p->classes;
    uint32_t left = v->p->n;

    memset(v->counts, 0, classes->n * sizeof(*v->counts));
    memset(v->used, 0, classes->n_edges * sizeof(*v->used));
    for (uint32_t c = 0; c < classes->n; c++)
        v->missing[c] = classes->classes[c].n_at;
    if (seed != FAB_NONE)
        left = cover_use(v, seed, left);
    while (left > 0)
        left = cover_use(v, cover_best(v, left), left);
    fab_choice_offer(v->p, v->counts);
}

static void cover_index(struct cover *v)
{
    const struct fab_classes *classes = v->p->classes;

    for (uint32_t i = 0; i < classes->n_at; i++)
        v->first[classes->at[i].edge + 2]++;
    for (uint32_t e = 2; e < classes->n_edges + 2; e++)
        v->first[e] += v->first[e - 1];
    for (uint32_t c = 0; c < classes->n; c++)
        for (uint32_t i = 0; i < classes->classes[c].n_at; i++)
            v->classes_at[v->first[cover_at(v, c)[i].edge + 1]++] = c;
}

void fab_choice_cover(struct fab_choice *p, uint64_t budget)
{
    const struct fab_classes *classes = p->classes;
    struct cover v = {.p = p, .budget = budget};

    struct fab_scratch scratch = {.n = 0};

    FAB_SCRATCH(&scratch, &v.first, classes->n_edges + (size_t)1);
    FAB_SCRATCH(&scratch, &v.classes_at, classes->n_at);
    FAB_SCRATCH(&scratch, &v.counts, classes->n);
    FAB_SCRATCH(&scratch, &v.missing, classes->n);
    FAB_SCRATCH(&scratch, &v.used, classes->n_edges);
    FAB_SCRATCH(&scratch, &v.met, classes->n);
    if (!scratch.failed) {
        cover_index(&v);
        cover_from(&v, FAB_NONE);
        for (uint32_t seed = 0; seed < classes->n && v.work < budget; seed++)
            cover_from(&v, seed);
    }
    fab_scratch_free(&scratch);
}
