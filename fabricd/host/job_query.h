/* job_query.h - PMIx_Query_info about the host's own jobs. */
#ifndef FABRICD_HOST_JOB_QUERY_H
#define FABRICD_HOST_JOB_QUERY_H

#include <pmix_server.h>

/* The server module's function. What is not about jobs is a question about the fabric. */
pmix_status_t host_query(pmix_proc_t *proc, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                         void *cbdata);

#endif
