/* pairing.h - match the nodes of one inventory with those of a later one, and find replaced switches. */
#ifndef FAB_TOPO_MODEL_PAIRING_H
#define FAB_TOPO_MODEL_PAIRING_H

#include "topo/model/inventory.h"

/*
 * Each node of before has here the same node of after, or its replacement, and each node of after the
 * reverse. FAB_NONE: none.
 */
struct pairing {
    const struct fab_inventory *before, *after;
    uint32_t *to_after, *to_before;
};

/* Return the port of `after` for a port of `before`, and the reverse; FAB_NONE. */
uint32_t pairing_port_after(const struct pairing *pairs, uint32_t port);
uint32_t pairing_port_before(const struct pairing *pairs, uint32_t port);

/*
 * Return the node of `after` to which more than half of the ports around this switch of `before` lead, of
 * those that lead anywhere; FAB_NONE.
 */
uint32_t pairing_vote_after(const struct pairing *pairs, uint32_t node);

/*
 * Pair the switches without a pair. Two switches become a pair if each has the votes of the ports around the
 * other. Only ports of paired nodes vote. So each new pair adds information about its neighbours.
 */
void pairing_switches(const struct pairing *pairs);

/*
 * Votes of the ports around a switch: the candidates, and the number of ports that lead anywhere. More than
 * half decide.
 */
struct majority {
    uint64_t whom[256];
    uint32_t n_votes[256];
    uint32_t n, all;
};
void majority_add(struct majority *votes, uint64_t whom);
bool majority_elected(const struct majority *votes, uint64_t *whom);

#endif
