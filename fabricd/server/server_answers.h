/*
 * server_answers.h - fabricd's answers to fabric requests and queries, from the served set.
 *
 * Called on the PMIx library's thread. Each request gets exactly one answer, at once.
 */
#ifndef FABRICD_SERVER_SERVER_ANSWERS_H
#define FABRICD_SERVER_SERVER_ANSWERS_H

#include <pmix_server.h>
#include <stdbool.h>

#include "fabricd/serving/served.h"

/* Set the served set to answer from. remote: callers may be on other hosts, which cannot map our files, so
 * the answers contain the snapshot. */
void answers_init(struct served *served, bool remote);

/*
 * Set this host's configured name. It is the default host of a query for a node's devices or coordinates. The
 * text is not copied. Default: the system's name.
 */
void answer_host_is(const char *host);
const char *answer_host(void); /* NULL: not set */

/* Functions of the server module. */
pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                            const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                            void *cbdata);
pmix_status_t answer_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                           void *cbdata);

#endif
