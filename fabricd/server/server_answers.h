/*
 * server_answers.h - what fabricd answers to fabric requests and queries, from the served set.
 *
 * Called on the PMIx library's thread. Each request is answered exactly once, and at once.
 */
#ifndef FABRICD_SERVER_SERVER_ANSWERS_H
#define FABRICD_SERVER_SERVER_ANSWERS_H

#include <pmix_server.h>
#include <stdbool.h>

#include "fabricd/serving/served.h"

/* Answer from what is served here. `remote`: callers may be on other hosts, which cannot map our files:
 * answers hold the snapshot itself. */
void answers_init(struct served *served, bool remote);

/*
 * This host's name, as the daemon is configured: whom a question is about that asks for a node's devices or
 * coordinates and names no node. Kept, not copied. Without it the system's name.
 */
void answer_host_is(const char *host);
const char *answer_host(void); /* NULL: not said */

/* The server module's functions. */
pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                            const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                            void *cbdata);
pmix_status_t answer_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                           void *cbdata);

#endif
