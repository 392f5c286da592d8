/*
 * details.h - facts of the devices of a made-up fabric, as the join of its hosts' reports would give them.
 */
#ifndef FAB_TEST_DETAILS_H
#define FAB_TEST_DETAILS_H

#include "topo/join/join.h"

/*
 * Of every HCA port. seed 0: each knows everything, speeds of some are in conflict. Else of some ports some
 * facts, by seed; conflicts may lack what they contradict.
 */
int fabric_details(const struct fab_inventory *inv, uint64_t seed, struct fab_details *out);
void fabric_details_destroy(struct fab_details *details);

#endif
