/* choice.c - what a choice weighs. */
#include "place/choice.h"

#include <stdlib.h>
#include <string.h>

/* The used classes into list; returns how many. */
static uint32_t choice_used(const struct fab_choice *p, const uint32_t *counts, uint32_t *list)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < p->classes->n; c++)
        if (counts[c] > 0)
            list[n++] = c;
    return n;
}

uint32_t fab_choice_leaves(const struct fab_classes *classes, const uint32_t *counts, bool *used)
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
    uint32_t *list = malloc(classes->n * sizeof(*list));
    bool *used = malloc(classes->n_edges * sizeof(*used));
    double value = 0;

    if (list != NULL && used != NULL) {
        const uint32_t n = choice_used(p, counts, list);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t c = list[i];
            const double hosts = counts[c];
            value += fab_choice_weight(p, c, c) * hosts * (hosts - 1) / 2;
            for (uint32_t j = 0; j < i; j++)
                value += fab_choice_weight(p, c, list[j]) * hosts * counts[list[j]];
        }
        if (p->leaf > 0)
            value += p->leaf * fab_choice_leaves(classes, counts, used);
        if (value < p->value) {
            p->value = value;
            memcpy(p->counts, counts, classes->n * sizeof(*counts));
        }
    }
    free(list);
    free(used);
}
