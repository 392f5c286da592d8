/* search.c - choices that are grown around a class, and made better host by host. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/choice.h"
#include "topo/base/radix.h"

struct search {
    struct fab_choice *p;
    uint32_t *counts;
    double *joining; /* per class: what one host more of it would cost with all that are chosen */
    uint64_t work, budget;
};

static bool search_goes_on(const struct search *s)
{
    return s->work < s->budget;
}

/* So many hosts more of a class; or fewer. */
static void search_take(struct search *s, uint32_t c, int32_t hosts)
{
    const struct fab_choice *p = s->p;
    const uint32_t n = p->classes->n;

    s->counts[c] += (uint32_t)hosts;
    for (uint32_t d = 0; d < n; d++)
        s->joining[d] += hosts * fab_choice_weight(p, c, d);
    s->work += n;
}

/* The class with a host left that costs least to join. There is one. */
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

/* What a chosen host of this class costs with the others. */
static double search_staying(const struct search *s, uint32_t c)
{
    return s->joining[c] - fab_choice_weight(s->p, c, c);
}

/* The host that costs most goes, the one that costs least then comes. False: that was no better, and has been
 * undone. */
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

/* The best of all exchanges of one host for another one. False: none is better. */
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

/* From the best choice so far. */
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

/* Around the classes whose nearest hosts cost least; not around what an earlier choice has already. */
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
    struct fab_key *keys = malloc(2 * (size_t)n * sizeof(*keys));
    bool *chosen = calloc(n, sizeof(*chosen));

    s.counts = malloc(n * sizeof(*s.counts));
    s.joining = malloc(n * sizeof(*s.joining));
    if (keys != NULL && chosen != NULL && s.counts != NULL && s.joining != NULL) {
        if (!isinf(p->value))
            search_again(&s);
        search_seeds(&s, sums, keys, keys + n, chosen);
    }
    free(keys);
    free(chosen);
    free(s.counts);
    free(s.joining);
}
