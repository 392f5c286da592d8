/*
 * node_server.h - what a node's PMIx server answers to the programs of its host.
 *
 * Fabric requests and queries are handed on to the scheduler; where that does not answer, the mirror does.
 * Other servers of this host may relay to the node instead of the scheduler: they are answered from the
 * mirror. Called on the PMIx library's thread.
 */
#ifndef FABRICD_NODE_SERVER_H
#define FABRICD_NODE_SERVER_H

#include <pmix_server.h>

extern pmix_server_module_t node_module;

#endif
