/*
 * answers.h - what fabricd answers to fabric requests and queries, from the served set.
 *
 * Called on the PMIx library's thread. Each request is answered exactly once; all but those that are taken
 * over at once.
 */
#ifndef FABRICD_ANSWERS_H
#define FABRICD_ANSWERS_H

#include <pmix_server.h>
#include <stdbool.h>

#include "fabricd/serving/served.h"
#include "pmix/values/request.h"

#define ANSWERS_MAX_KEYS  1024 /* of one query; more get PMIX_ERR_OUT_OF_RESOURCE */
#define ANSWERS_MAX_LARGE 32   /* of them those whose answers may be large */

/* `remote`: callers may be on other hosts, which cannot map our files: answers then hold the snapshot itself.
 */
void answers_init(bool remote);

/*
 * A query whose first key is this one is handed over whole. The function returns PMIX_SUCCESS and calls
 * cbfunc exactly once, whenever it likes; or returns an error and does not call it. The queries live until
 * then. To be called before the server starts; keys are strings that live for ever.
 */
typedef pmix_status_t (*answers_query_fn)(const pmix_proc_t *requestor, pmix_query_t *queries, size_t n,
                                          pmix_info_cbfunc_t cbfunc, void *cbdata);
int answers_delegate(const char *key, answers_query_fn fn);

/* The server module's functions. */
pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                            const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                            void *cbdata);
pmix_status_t answer_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                           void *cbdata);

#endif
