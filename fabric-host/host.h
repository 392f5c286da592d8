/*
 * host.h - fabric-host, the PMIx host of one user, for the user's own clients and tools. It starts programs,
 * stores published values, and answers fabric queries from a run directory of fabricd.
 *
 * fabric-host has two threads. The loop owns the jobs and their processes. The PMIx library's thread owns the
 * published values. The threads communicate by posting functions, without waiting. Only the loop waits for
 * the library.
 */
#ifndef FABRIC_HOST_HOST_H
#define FABRIC_HOST_HOST_H

#include <pmix_server.h>

/* The functions of this host's PMIx server. */
extern pmix_server_module_t host_module;

/* ---- functions of the module, on the library's thread ---- */

/* Start jobs for programs and tools. */
pmix_status_t host_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                         const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc, void *cbdata);

/* Send signals to jobs and processes, and end them. */
pmix_status_t host_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[], size_t ntargets,
                               const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t cbfunc,
                               void *cbdata);

/* Process the library's notifications of a job's processes. */
pmix_status_t host_client_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t n,
                                    pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t host_client_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                    void *cbdata);
pmix_status_t host_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                         pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Handle output and input of processes. */
pmix_status_t host_iof_pull(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t directives[],
                            size_t ndirs, pmix_iof_channel_t channels, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t host_push_stdin(const pmix_proc_t *source, const pmix_proc_t targets[], size_t ntargets,
                              const pmix_info_t directives[], size_t ndirs, const pmix_byte_object_t *bo,
                              pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Handle PMIx_Log. It must not call back before it returns, since the library holds a lock. */
void host_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
              const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Answer queries. Queries that do not concern jobs go to the fabric. */
pmix_status_t host_query(pmix_proc_t *proc, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                         void *cbdata);

#endif
