/* nodes.h - nodes of the site, for relay.c and nodes.c. */
#ifndef FAB_TEST_SIM_NODES_H
#define FAB_TEST_SIM_NODES_H

#include "test/sim/played.h"

struct loop_queue;
/* The node's connection was made, or (NULL) is gone. */
void node_has_queue(struct sim_node *node, struct loop_queue *queue);
/* Whether it can be connected may have changed. */
void relay_check(struct loop_queue *queue);
/* Some munged does not hang any more. */
void relay_munge_goes_on(void);

#endif
