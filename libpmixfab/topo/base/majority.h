/* votes.h - which switch the ports around another one lead to: more than half decide (understand_switches.c).
 */
#ifndef FAB_TOPO_VOTES_H
#define FAB_TOPO_VOTES_H

#include <stdbool.h>
#include <stdint.h>

/* Votes of the ports around a switch: for whom, and how many lead anywhere. */
struct majority {
    uint64_t whom[256];
    uint32_t n_votes[256];
    uint32_t n, all;
};
void majority_add(struct majority *votes, uint64_t whom);
bool majority_elected(const struct majority *votes, uint64_t *whom); /* by more than half */

#endif
