/*
 * host.h - fabric-host, the PMIx host of one user, for his own clients and tools: it starts programs, keeps
 * what they publish, and answers for the fabric from a run directory of fabricd's.
 *
 * Two threads: the loop has the jobs and their processes, the PMIx library's thread has what is published.
 * Each tells the other by posting, never by waiting; only the loop waits for the library.
 */
#ifndef FABRIC_HOST_HOST_H
#define FABRIC_HOST_HOST_H

#include <pmix_server.h>

/* What this host's PMIx server answers. */
extern pmix_server_module_t host_module;

/* ---- the module's functions, on the library's thread ---- */

/* Jobs that programs and tools start. */
pmix_status_t host_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                         const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc, void *cbdata);

/* Signals to jobs and processes, and their end. */
pmix_status_t host_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[], size_t ntargets,
                               const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t cbfunc,
                               void *cbdata);

/* What the library sees of a job's processes. */
pmix_status_t host_client_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t n,
                                    pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t host_client_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                    void *cbdata);
pmix_status_t host_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                         pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Output and input of processes. */
pmix_status_t host_iof_pull(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t directives[],
                            size_t ndirs, pmix_iof_channel_t channels, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t host_push_stdin(const pmix_proc_t *source, const pmix_proc_t targets[], size_t ntargets,
                              const pmix_info_t directives[], size_t ndirs, const pmix_byte_object_t *bo,
                              pmix_op_cbfunc_t cbfunc, void *cbdata);

/* PMIx_Log. It does not call back before it returns: the library holds a lock. */
void host_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
              const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Queries. What is not about jobs is a question about the fabric. */
pmix_status_t host_query(pmix_proc_t *proc, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                         void *cbdata);

#endif
