/*
 * classes.h - hosts that nothing tells apart: those under the same leaves at the same costs are one class.
 *
 * A job of any size is a number of hosts of each class, so what is searched is numbers, not hosts. The cost
 * between two hosts is that of the cheapest pair of their devices. A device that is down counts only where
 * its host has no other, and one that the site has not chosen for jobs only where it has chosen none.
 */
#ifndef FAB_PLACE_CLASSES_H
#define FAB_PLACE_CLASSES_H

#include <stdbool.h>

#include "topo/snapshot/reader.h"

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

#endif
