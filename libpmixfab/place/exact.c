/* exact.c - all choices that may be better than the best so far, by branch and bound over the classes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/choice.h"

/* With more classes than this there is no hope of an end. */
#define EXACT_MOST 64u

struct exact {
    struct fab_choice *p;
    uint32_t counts[EXACT_MOST];
    double joining[EXACT_MOST]; /* as in search.c */
    uint32_t *users;            /* per edge: classes in use that have it */
    double least;               /* weight of any pair */
    uint64_t work, budget;
};

/* What the leaves weigh that this class alone uses. */
static double exact_leaves(const struct exact *x, uint32_t c)
{
    const struct fab_class *class = &x->p->classes->classes[c];
    double weight = 0;
    for (uint32_t i = 0; i < class->n_at; i++)
        weight += x->users[x->p->classes->at[class->first_at + i].edge] == 0 ? x->p->leaf : 0;
    return weight;
}

static void exact_take(struct exact *x, uint32_t c, int32_t hosts)
{
    const struct fab_classes *classes = x->p->classes;
    const bool used = x->counts[c] > 0;

    x->counts[c] += (uint32_t)hosts;
    for (uint32_t d = 0; d < classes->n; d++)
        x->joining[d] += hosts * fab_choice_weight(x->p, c, d);
    for (uint32_t i = 0; i < classes->classes[c].n_at && used != (x->counts[c] > 0); i++)
        x->users[classes->at[classes->classes[c].first_at + i].edge] += used ? UINT32_MAX : 1;
    x->work += classes->n;
}

/* The remaining hosts cost at least what the cheapest to join cost with those that are in, and among each
 * other the least that any pair does. INFINITY: there are not so many. */
static double exact_rest(struct exact *x, uint32_t first, uint32_t left)
{
    const struct fab_classes *classes = x->p->classes;
    double rest = x->least * left * (left - 1.0) / 2;
    bool taken[EXACT_MOST] = {false};

    while (left > 0) {
        uint32_t best = FAB_NONE;
        for (uint32_t c = first; c < classes->n; c++)
            if (!taken[c] && (best == FAB_NONE || x->joining[c] < x->joining[best]))
                best = c;
        x->work += classes->n - first;
        if (best == FAB_NONE)
            return INFINITY;
        const uint32_t hosts = classes->classes[best].n_hosts < left ? classes->classes[best].n_hosts : left;
        rest += hosts * x->joining[best];
        taken[best] = true;
        left -= hosts;
    }
    return rest;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are classes, EXACT_MOST at most */
static void exact_from(struct exact *x, uint32_t c, uint32_t left, double value)
{
    if (left == 0) {
        fab_choice_offer(x->p, x->counts);
        return;
    }
    if (x->work >= x->budget || value + exact_rest(x, c, left) > x->p->value - 0.5)
        return;
    const uint32_t hosts = x->p->classes->classes[c].n_hosts;
    const double inside = fab_choice_weight(x->p, c, c), joining = x->joining[c], leaves = exact_leaves(x, c);
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
    struct exact x = {.p = p, .budget = budget, .least = INFINITY};

    if (classes->n > EXACT_MOST)
        return;
    for (uint32_t c = 0; c < classes->n; c++)
        for (uint32_t d = 0; d <= c; d++) {
            const double weight = fab_choice_weight(p, c, d);
            if (weight < x.least && (c != d || classes->classes[c].n_hosts > 1))
                x.least = weight;
        }
    x.users = calloc(classes->n_edges, sizeof(*x.users));
    if (x.users == NULL)
        return;
    x.least = isinf(x.least) ? 0 : x.least; /* one host: there is no pair */
    exact_from(&x, 0, p->n, 0);
    if (x.work < x.budget && p->value > p->bound)
        p->bound = p->value;
    free(x.users);
}
