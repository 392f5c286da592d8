/*
 * pairing.h - which node of one inventory is which of a later one, and switches that are in another's place.
 */
#ifndef FAB_TOPO_MODEL_PAIRING_H
#define FAB_TOPO_MODEL_PAIRING_H

#include "topo/model/inventory.h"

/* Of each node of before the one of after that it is, or that is in its place, and back; FAB_NONE. */
struct pairing {
    const struct fab_inventory *before, *after;
    uint32_t *to_after, *to_before;
};

/* Where a port of `before` is in `after`, and back; FAB_NONE. */
uint32_t pairing_port_after(const struct pairing *pairs, uint32_t port);
uint32_t pairing_port_before(const struct pairing *pairs, uint32_t port);

/* The node of `after` to which more than half of the ports around this switch of `before` lead, of those that
 * lead anywhere; FAB_NONE. */
uint32_t pairing_vote_after(const struct pairing *pairs, uint32_t node);

/*
 * Pair the switches that have no pair: two of which each has the votes of the ports around the other, as far
 * as the nodes of these ports are paired. A switch that is found says more about its neighbours.
 */
void pairing_switches(const struct pairing *pairs);

/* Votes of the ports around a switch: for whom, and how many lead anywhere. More than half decide. */
struct majority {
    uint64_t whom[256];
    uint32_t n_votes[256];
    uint32_t n, all;
};
void majority_add(struct majority *votes, uint64_t whom);
bool majority_elected(const struct majority *votes, uint64_t *whom);

#endif
