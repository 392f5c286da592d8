/*
 * cover.c - few leaves, by taking again and again the class that brings most hosts for each leaf more.
 *
 * A tree of classes charges each class for all of its leaves, though hosts on several leaves share some. Here
 * what is in use already costs nothing, and a class brings with it every host whose leaves are then all used.
 */
#include <stdlib.h>
#include <string.h>

#include "place/choice.h"

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

/* Hosts that are covered when the leaves of class c are used, and were not before: as far as the work goes,
 * else only its own. */
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

/* Returns how many hosts are still wanted. */
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

/* The class not yet in use that brings most for each leaf, of what is wanted. */
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

/* seed: the class to begin with; FAB_NONE: with the best one. */
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

    v.first = calloc(classes->n_edges + (size_t)2, sizeof(*v.first));
    v.classes_at = malloc((classes->n_at + (size_t)1) * sizeof(*v.classes_at));
    v.counts = malloc(classes->n * sizeof(*v.counts));
    v.missing = malloc(classes->n * sizeof(*v.missing));
    v.used = malloc(classes->n_edges * sizeof(*v.used));
    v.met = calloc(classes->n, sizeof(*v.met));
    if (v.first != NULL && v.classes_at != NULL && v.counts != NULL && v.missing != NULL && v.used != NULL &&
        v.met != NULL) {
        cover_index(&v);
        cover_from(&v, FAB_NONE);
        for (uint32_t seed = 0; seed < classes->n && v.work < budget; seed++)
            cover_from(&v, seed);
    }
    free(v.first);
    free(v.classes_at);
    free(v.counts);
    free(v.missing);
    free(v.used);
    free(v.met);
}
