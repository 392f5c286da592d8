/* place_private.h - private to this room: classes of hosts, and choices among them. */
#ifndef FAB_PLACE_PLACE_PRIVATE_H
#define FAB_PLACE_PLACE_PRIVATE_H

#include <stdbool.h>

#include "topo/base/scratch.h"
#include "topo/snapshot/reader.h"

/*
 * ---- classes ------------------------------------------------------------------------------------------
 *
 * Hosts under the same leaves at the same costs are equivalent and form one class.
 *
 * A job of any size is a number of hosts of each class, so the search is over numbers, not hosts. The cost
 * between two hosts is that of the cheapest pair of their devices. A device that is down counts only if its
 * host has no other device. If the site has selected devices of the host for jobs, its other devices do not
 * count.
 */

/* A leaf that a class has a device on, as a row of the snapshot's costs, and the cost to reach it. */
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
    uint32_t n_edges;          /* of the snapshot: no attachment has a larger edge */
    struct fab_class *classes; /* by their first host */
    uint32_t *hosts;           /* class after class, ascending in each */
    struct fab_attachment *at;
    uint16_t *costs; /* n x n between two hosts of these classes, or NULL */
    uint32_t *units; /* per class, or NULL; FAB_NONE: in none */
    bool has_units;  /* the plane has units */
};

enum fab_classes_how {
    FAB_CLASSES_UP = 1,     /* leave out hosts of which all devices are down, and count them in n_down */
    FAB_CLASSES_LEAVES = 2, /* ignore the cost from a host to its leaves, in classes and in costs */
    FAB_CLASSES_COSTS = 4,  /* also compute the costs */
    FAB_CLASSES_UNITS = 8   /* also find the units: of leaves, else pods or the groups of a dragonfly */
};

/* The costs of more classes would need more than half a gigabyte. */
#define FAB_CLASSES_MAX 16384u

/*
 * Find the classes of some hosts. The numbers may be in any order, and each counts once. NULL: all hosts of
 * the plane. PMIXFAB_ERR_INVAL: no such host. PMIXFAB_ERR_RANGE: costs of more than FAB_CLASSES_MAX classes.
 */
int fab_classes_find(const struct pmixfab *fab, const uint32_t *hosts, size_t n, unsigned how,
                     struct fab_classes *out);
void fab_classes_destroy(struct fab_classes *classes);

/*
 * Write the costs from a host of class c to another host of each class into row[0..n-1]. near: room for
 * n_edges.
 */
void fab_class_row(const struct pmixfab *fab, const struct fab_classes *classes, uint32_t c, uint32_t *near,
                   uint16_t *row);

/* Return the cost of one pair of classes. */
uint16_t fab_class_cost(const struct pmixfab *fab, const struct fab_classes *classes, uint32_t c, uint32_t d);

/* Return whether hosts of these two classes have a leaf in common. */
bool fab_classes_meet(const struct fab_classes *classes, uint32_t c, uint32_t d);

/*
 * ---- choices ------------------------------------------------------------------------------------------
 *
 * A number of hosts of each class: its weight, a lower bound for all choices, and searches for good ones.
 * docs/design/placement.md has the reasons.
 *
 * A choice weighs the sum of the costs between its hosts. A pair that costs more than `limit` weighs `far`
 * more, which is more than all other pairs together, and each used leaf weighs `leaf`. All weights are whole
 * numbers.
 */

struct fab_choice {
    const struct fab_classes *classes; /* with costs, and at least n hosts */
    uint32_t n;                        /* wanted hosts, at least 1 */
    uint32_t limit;
    double far, leaf;
    uint32_t *counts; /* per class: the best choice so far */
    double value;     /* its weight; INFINITY: no choice yet */
    double bound;     /* no choice weighs less */
};

static inline double fab_choice_weight(const struct fab_choice *p, uint32_t c, uint32_t d)
{
    const uint16_t cost = p->classes->costs[(size_t)c * p->classes->n + d];
    return cost > p->limit ? cost + p->far : cost;
}

/*
 * Compute the weight of these counts; they become the best choice if it is lower than before. Without memory
 * nothing happens.
 */
void fab_choice_offer(struct fab_choice *p, const uint32_t *counts);

/*
 * Raise the bound to a found value, minus the rounding error of sums of this many doubles. Weights are whole.
 */
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
 * Each of these searches offers choices and raises the bound if it can. Without memory a search does nothing.
 *
 * Find the best choice in a tree of classes. If the costs are those of a tree, no choice is better. shift[c]
 * is the part of the cost that belongs to a host of class c, independent of the other host. The tree is made
 * of the rest of the cost. shared: each class of a leaf gets a share of the leaf, so that the result is a
 * bound.
 */
void fab_choice_tree(struct fab_choice *p, const double *shift, bool shared);

/*
 * Find a choice with few leaves. Each step adds the class with the most hosts for each additional leaf. The
 * search starts at the best class, and then at other classes as far as `budget` allows.
 */
void fab_choice_cover(struct fab_choice *p, uint64_t budget);

/*
 * Compute for each class the cost of its n - 1 nearest hosts (sums). The sums bound the total cost. *farthest
 * becomes a bound of the most expensive pair.
 */
void fab_choice_nearest(struct fab_choice *p, double *sums, uint16_t *farthest);

/*
 * Grow a choice around a class, best first by `sums`, and exchange hosts while that is better. `budget`:
 * steps of some nanoseconds.
 */
void fab_choice_search(struct fab_choice *p, const double *sums, uint64_t budget);

/* Try all choices that may be better; when the budget ends, the best one so far may not be optimal. */
void fab_choice_exact(struct fab_choice *p, uint64_t budget);

/*
 * ---- loads of links -----------------------------------------------------------------------------------
 *
 * The switches of a plane as cells, in one of two ways.
 *
 * Single: each switch is a cell, and each direction of a cable an arc. A message follows one route by its
 * destination. At each switch each device, in the order of hosts, gets the shortest way that fewest devices
 * have so far, then that of the lowest port, as OpenSM's minhop does. In large planes, the device of host h
 * gets way h mod n of the n shortest ways, which is the same in a regular tree.
 *
 * Otherwise messages are spread evenly over all shortest paths. A leaf is a cell of its own. Other switches
 * share a cell if each of them has equally many cables of each rate to each cell: in a fat tree, the spines
 * of a pod, and all cores. Then all cables from one cell to another carry the same load. So the loads of a
 * few cells are those of all cables, without rounding.
 */

/* The cables of one rate from each switch of a cell to the switches of another cell. */
struct fab_arc {
    uint32_t from, to;
    uint32_t back;   /* the arc in the other direction */
    uint32_t cables; /* of one switch */
    uint32_t link;   /* one of these cables, as pmixfab_link() counts them */
    uint32_t mbps;   /* not 0 */
    bool b_to_a;     /* the arc leads from end b of that cable to end a */
};

/* Hosts whose devices are on the same switches at the same rates. */
struct fab_spot {
    uint32_t first_at, n_at;
    uint32_t mbps; /* of its slowest device */
};

struct fab_net {
    struct fab_scratch scratch, walk;
    const struct pmixfab *fab;
    uint32_t n, n_arcs, n_spots;
    bool single, failed; /* failed: without memory for a route */
    uint64_t work;       /* steps so far, of some nanoseconds */
    uint32_t *cell;      /* per switch */
    uint32_t *first;     /* per cell and past the last one: its arcs */
    struct fab_arc *arcs;
    uint32_t *spot_of; /* per host */
    struct fab_spot *spots;
    uint32_t *at; /* cells; FAB_NONE: the device has no switch */
    bool *is_up;  /* per host: it has a device that is not down */
    /* the shortest paths from one cell, by number of links */
    uint32_t *dist, *queue, n_queue;
    double *paths, *flow; /* per cell, of each of its switches: number of paths; bytes that arrive */
    uint16_t **away;      /* single: per cell NULL, or the number of links from each cell to it */
    /* single: per device and cell the number of its way among the shortest ones, or NULL */
    uint8_t *table;
    uint32_t *row_of; /* per host: its first device in the table */
};

int fab_net_open(const struct pmixfab *fab, bool single, struct fab_net *net);
void fab_net_close(struct fab_net *net);

/* Not single: return the arc between two cells at this rate, which must exist. */
uint32_t fab_net_arc(const struct fab_net *net, uint32_t from, uint32_t to, uint32_t mbps);

/*
 * Not single: find the shortest paths from a leaf. Then send bytes to hosts of spots: to the nearest devices,
 * evenly. Then add all to the loads: of each arc, the bytes on one of its cables. fab_net_send() returns
 * false if no path leads there.
 */
void fab_net_from(struct fab_net *net, uint32_t cell);
bool fab_net_send(struct fab_net *net, const struct fab_spot *to, double bytes);
void fab_net_carry(struct fab_net *net, double *loads);

/*
 * Single: visit the arcs of the route from a leaf to the nearest devices of a host, with its even part of the
 * bytes. Return false if no path leads there.
 */
typedef void fab_net_fn(void *cbdata, uint32_t arc, double bytes);
bool fab_net_route(struct fab_net *net, uint32_t from, uint32_t host, double bytes, fab_net_fn *visit,
                   void *cbdata);

/*
 * ---- the time of a pattern ----------------------------------------------------------------------------
 */

struct fab_traffic {
    struct fab_net net;  /* single, for the job */
    struct fab_net even; /* for the other jobs; its spots are the same */
    struct fab_scratch scratch;
    double *links, *out, *in;                /* of one round of the job: per arc of net, per host */
    double *base_links, *base_out, *base_in; /* of the other jobs: per arc of even, per host */
    double *ready;                           /* per rank: seconds, after the rounds so far */
    uint32_t *even_of;                       /* per arc of net: the arc of even */
    uint32_t *outside, *by_spot, *spot_start, *used, *leaves, n_used;
    uint8_t *in_job; /* per host */
};

int fab_traffic_open(const struct pmixfab *fab, struct fab_traffic *traffic);
void fab_traffic_close(struct fab_traffic *traffic);

/* As pmixfab_traffic(); the arguments have been checked. */
int fab_traffic_assess(struct fab_traffic *traffic, const struct pmixfab_job *jobs, size_t n,
                       enum pmixfab_sharing sharing, struct pmixfab_traffic *out);

#endif
