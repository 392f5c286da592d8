/* streams.h - who wants what processes write, and what is written to their standard input. */
#ifndef FABRICD_HOST_STREAMS_H
#define FABRICD_HOST_STREAMS_H

#include <pmix_server.h>

/* The server module's functions. */
pmix_status_t host_iof_pull(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t directives[],
                            size_t ndirs, pmix_iof_channel_t channels, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t host_push_stdin(const pmix_proc_t *source, const pmix_proc_t targets[], size_t ntargets,
                              const pmix_info_t directives[], size_t ndirs, const pmix_byte_object_t *bo,
                              pmix_op_cbfunc_t cbfunc, void *cbdata);

#endif
