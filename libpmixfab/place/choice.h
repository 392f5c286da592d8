/*
 * choice.h - so many hosts of each class: what a choice weighs, what none can weigh less than, and the ways
 * to a good one. docs/design/placement.md has the reasons.
 *
 * A choice weighs the sum of the costs between its hosts. A pair that costs more than `limit` weighs `far`
 * more, which is more than all other pairs together, and each leaf that is used weighs `leaf`. All weights
 * are whole numbers.
 */
#ifndef FAB_PLACE_CHOICE_H
#define FAB_PLACE_CHOICE_H

#include "place/classes.h"

struct fab_choice {
    const struct fab_classes *classes; /* with costs, and at least n hosts */
    uint32_t n;                        /* hosts that are wanted, at least 1 */
    uint32_t limit;
    double far, leaf;
    uint32_t *counts; /* per class: the best choice so far */
    double value;     /* what it weighs; INFINITY: there is none yet */
    double bound;     /* no choice weighs less */
};

static inline double fab_choice_weight(const struct fab_choice *p, uint32_t c, uint32_t d)
{
    const uint16_t cost = p->classes->costs[(size_t)c * p->classes->n + d];
    return cost > p->limit ? cost + p->far : cost;
}

/* How many leaves these counts use; `used` has room for n_edges, and says which. */
uint32_t fab_choice_leaves(const struct fab_classes *classes, const uint32_t *counts, bool *used);

/* What these counts weigh; and they become the best choice where they weigh less than the one so far. Without
 * memory nothing happens. */
void fab_choice_offer(struct fab_choice *p, const uint32_t *counts);

/* A bound that is raised to what was found, less what sums of so many doubles may be wrong by. Weights are
 * whole. */
static inline void fab_choice_raise(struct fab_choice *p, double found)
{
    const double least = found - 1e-6 - found * 1e-12;
    if (least > p->bound) {
        const double whole = (double)(uint64_t)least;
        p->bound = whole < least ? whole + 1 : whole;
    }
}

static inline bool fab_choice_proven(const struct fab_choice *p)
{
    return p->value <= p->bound;
}

/*
 * Each of these offers choices, and raises the bound where it can; what it has no memory for it leaves
 * undone.
 *
 * The best choice in a tree of classes, which is the best of all where the costs are those of a tree.
 * shift[c] is a part of the cost that belongs to a host of class c, whichever the other one is; what is left
 * is made a tree of. shared: a leaf of several classes is shared out among them, so that the result is a
 * bound.
 */
void fab_choice_tree(struct fab_choice *p, const double *shift, bool shared);

/* Few leaves: always the class next that brings most hosts for each leaf more; from the best one on, and from
 * others as far as `budget` goes. */
void fab_choice_cover(struct fab_choice *p, uint64_t budget);

/* What the n - 1 nearest hosts cost a host of each class (sums), and the farthest of them (reach): together
 * they bound what all cost, and the costliest pair, which is *farthest. */
void fab_choice_nearest(struct fab_choice *p, double *sums, uint16_t *farthest);

/* Grow a choice around a class, best first by `sums`, and exchange hosts while that is better. As much work
 * as `budget` says, in steps of some nanoseconds. */
void fab_choice_search(struct fab_choice *p, const double *sums, uint64_t budget);

/* Try all that may be better; what it has found when the budget ends may still not be the best. */
void fab_choice_exact(struct fab_choice *p, uint64_t budget);

#endif
