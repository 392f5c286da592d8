/* nodes.h - nodes of the site, for tcp.c and nodes.c. */
#ifndef FAB_TEST_SIM_NODES_H
#define FAB_TEST_SIM_NODES_H

#include "test/sim/played.h"

/* Whether nodes can be connected may have changed. */
void tcp_check(void);

#endif
