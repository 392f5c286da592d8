/* marks.h - what the library's thread sees of a job's processes, told to the loop. */
#ifndef FABRICD_HOST_MARKS_H
#define FABRICD_HOST_MARKS_H

#include <pmix_server.h>

/* The server module's functions. */
pmix_status_t host_client_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t n,
                                    pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t host_client_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                    void *cbdata);
pmix_status_t host_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                         pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t cbfunc, void *cbdata);

#endif
