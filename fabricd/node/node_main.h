/*
 * node_main.h - the room of the role node: fabricd on a compute node looks at its host, delivers to the
 * scheduler, mirrors what that publishes, and serves the programs of its host.
 */
#ifndef FABRICD_NODE_NODE_MAIN_H
#define FABRICD_NODE_NODE_MAIN_H

#include "fabricd/config/config.h"

/* The whole program in this role, after the options; its exit status. */
int node_run(const struct config *config);

#endif
