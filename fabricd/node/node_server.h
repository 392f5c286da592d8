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

pmix_status_t node_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                          const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc, void *cbdata);
pmix_status_t node_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                         void *cbdata);
pmix_status_t node_relayed(const pmix_proc_t *requestor, char **keys, const pmix_info_t info[], size_t n,
                           pmix_lookup_cbfunc_t cbfunc, void *cbdata);

#endif
