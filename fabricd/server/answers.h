/*
 * answers.h - what fabricd answers to fabric requests and queries, from the served set.
 *
 * Called on the PMIx library's thread. Each request is answered exactly once, and at once.
 */
#ifndef FABRICD_SERVER_ANSWERS_H
#define FABRICD_SERVER_ANSWERS_H

#include <pmix_server.h>
#include <stdbool.h>

#include "fabricd/serving/served.h"
#include "pmix/values/request.h"

#define ANSWERS_MAX_KEYS  1024 /* of one query; more get PMIX_ERR_OUT_OF_RESOURCE */
#define ANSWERS_MAX_LARGE 32   /* of them those whose answers may be large */

/* `remote`: callers may be on other hosts, which cannot map our files: answers hold the snapshot itself. */
void answers_init(bool remote);

/* The server module's functions. */
pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                            const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                            void *cbdata);
pmix_status_t answer_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                           void *cbdata);

#endif
