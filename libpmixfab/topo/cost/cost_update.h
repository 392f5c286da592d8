/*
 * cost_update.h - what the files of the update of costs share: how two planes' switch graphs differ, and who
 * is the farther for it.
 *
 * Switches have one numbering for both planes: that of the new one, and behind it those that are gone.
 */
#ifndef FAB_TOPO_COST_UPDATE_H
#define FAB_TOPO_COST_UPDATE_H

#include "topo/cost/engine.h"
#include "topo/snapshot/reader.h"

/* Two switches whose cheapest cable costs something else than before; 0: they have none. a < b. */
struct fab_change {
    uint32_t a, b;
    uint16_t was, now;
};

struct fab_changes {
    struct fab_change *list;
    uint32_t n, cap;
    uint32_t n_switches; /* of both planes together */
    bool uniform;        /* all cables between switches cost the same, before and now */
    uint16_t dearest;    /* cost of any of them */
    uint32_t *number;    /* per switch of the old plane */
    uint32_t *old_of;    /* per switch of the new plane: its number there; FAB_NONE */
};

/* Tests lift the limits beyond which a search from nothing is faster, so that small fabrics go this way too.
 */
void fab_costs_update_always(bool always);
bool fab_costs_update_unlimited(void);

/* All changes from `before` to the plane. PMIXFAB_ERR_RANGE: more than are worth looking at one by one. */
int fab_changes_find(const struct fab_plane *plane, const struct pmixfab *before, struct fab_changes *out);
void fab_changes_destroy(struct fab_changes *changes);

struct fab_waiting {
    uint32_t sw, next;
};

/* The switch graph on its way from the old to the new one. */
struct fab_walk {
    const struct fab_plane *plane;
    uint32_t n;           /* switches, of both planes */
    struct fab_edge *own; /* neighbours of the switches that changes are about */
    uint32_t *own_first;  /* per switch; FAB_NONE: its neighbours are the plane's */
    uint32_t *own_n;      /* per switch */
    bool uniform;         /* all cables cost the same, before and after */
    uint64_t budget;      /* cables that may still be looked at */
    uint32_t *dist;       /* of the last search; FAB_NONE: not reached */
    uint8_t *only;        /* of the last search from one end of a cable: reached through that cable only */
    /* Switches whose turn is to come, by distance: a ring of lists, since none waiting is further from the
     * one whose turn it is than the dearest cable costs. */
    uint32_t *heads; /* per distance, of the ring: its first entry, or FAB_NONE */
    uint32_t mask;   /* the ring's size, a power of two, less one */
    struct fab_waiting *entries;
    uint32_t n_entries, n_waiting;
    uint32_t now;    /* the distance that it is the turn of */
    uint32_t *found; /* switches for which `only` holds, as far as they were wanted */
    uint32_t n_found;
};

/* The graph as it was before all changes. No budget is given yet. */
int fab_affected_begin(struct fab_walk *walk, const struct fab_plane *plane,
                       const struct fab_changes *changes);
void fab_affected_set(struct fab_walk *walk, uint32_t a, uint32_t b, uint16_t cost);
void fab_affected_destroy(struct fab_walk *walk);

/* Distances from one switch to those that edge_of names, n of them; of the others some. False: the budget is
 * spent. */
bool fab_affected_search(struct fab_walk *walk, uint32_t from, const uint32_t *edge_of, uint32_t n);

/*
 * Which switches are reached from `from` on shortest ways that all begin with its cable to `to`: they are the
 * farther from it for the loss of that cable, and no others. Those of them that are `wanted` stand in
 * walk->found. False: the budget is spent.
 */
bool fab_affected_affected(struct fab_walk *walk, uint32_t from, uint32_t to, const uint8_t *wanted);

#endif
