/*
 * place_private.h - shared by the files of this room only: classes of hosts, and choices among them.
 */
#ifndef FAB_PLACE_PLACE_PRIVATE_H
#define FAB_PLACE_PLACE_PRIVATE_H

#include <stdbool.h>

#include "topo/base/scratch.h"
#include "topo/snapshot/reader.h"

/* ---- classes ------------------------------------------------------------------------------------------
 *
 * Hosts that nothing tells apart: those under the same leaves at the same costs are one class.
 *
 * A job of any size is a number of hosts of each class, so what is searched is numbers, not hosts. The cost
 * between two hosts is that of the cheapest pair of their devices. A device that is down counts only where
 * its host has no other, and one that the site has not chosen for jobs only where it has chosen none.
 */

/* A leaf that a class has a device on, as a row of the snapshot's costs, and the cost to get there. */
struct fab_attachment {
    uint32_t edge;
    uint32_t access;
};

struct fab_class {
    uint32_t first_host, n_hosts; /* of struct fab_classes' hosts */
    uint32_t first_at, n_at;      /* of its attachments, by edge */
};

struct fab_classes {
    uint32_t n, n_hosts, n_at, n_down;
    uint32_t n_edges;          /* of the snapshot: no attachment has a larger one */
    struct fab_class *classes; /* by their first host */
    uint32_t *hosts;           /* class after class, ascending in each */
    struct fab_attachment *at;
    uint16_t *costs; /* n x n between two hosts of these classes, or NULL */
    uint32_t *units; /* per class, or NULL; FAB_NONE: in none */
    bool has_units;  /* this plane has some */
};

enum fab_classes_how {
    FAB_CLASSES_UP = 1,     /* hosts of which all devices are down are left out, and counted in n_down */
    FAB_CLASSES_LEAVES = 2, /* what it costs a host to reach its leaves tells nobody apart, and is no cost */
    FAB_CLASSES_COSTS = 4,  /* compute the costs, too */
    FAB_CLASSES_UNITS = 8   /* and find the units: of leaves, else pods or the groups of a dragonfly */
};

/* More classes would need more than half a gigabyte for their costs. */
#define FAB_CLASSES_MAX 16384u

/*
 * The classes of some hosts (numbers in any order, each counts once; NULL: all of the plane).
 * PMIXFAB_ERR_INVAL: no such host. PMIXFAB_ERR_RANGE: costs of more than FAB_CLASSES_MAX classes.
 */
int fab_classes_find(const struct pmixfab *fab, const uint32_t *hosts, size_t n, unsigned how,
                     struct fab_classes *out);
void fab_classes_destroy(struct fab_classes *classes);

/* Costs from a host of class c to another host of each class, into row[0..n-1]. near: room for n_edges. */
void fab_class_row(const struct pmixfab *fab, const struct fab_classes *classes, uint32_t c, uint32_t *near,
                   uint16_t *row);

/* Of one pair of classes. */
uint16_t fab_class_cost(const struct pmixfab *fab, const struct fab_classes *classes, uint32_t c, uint32_t d);

/* Have hosts of these two classes a leaf in common? */
bool fab_classes_meet(const struct fab_classes *classes, uint32_t c, uint32_t d);

/* ---- choices ------------------------------------------------------------------------------------------
 *
 * So many hosts of each class: what a choice weighs, what none can weigh less than, and the ways to a good
 * one. docs/design/placement.md has the reasons.
 *
 * A choice weighs the sum of the costs between its hosts. A pair that costs more than `limit` weighs `far`
 * more, which is more than all other pairs together, and each leaf that is used weighs `leaf`. All weights
 * are whole numbers.
 */

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
