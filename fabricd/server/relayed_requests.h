/*
 * relayed_requests.h - requests of relay servers, which arrive as lookups (libpmixfab/pmix/relay/relay.h).
 */
#ifndef FABRICD_SERVER_RELAYED_REQUESTS_H
#define FABRICD_SERVER_RELAYED_REQUESTS_H

#include <pmix_server.h>

/* Answer a lookup. fabricd publishes nothing: a key other than a relayed request is PMIX_ERR_NOT_FOUND. */
pmix_status_t answer_relayed(const pmix_proc_t *requestor, char **keys, const pmix_info_t info[], size_t n,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata);

#endif
