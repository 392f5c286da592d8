/* host_control.h - signals to jobs and processes of this host, and their end, as programs and tools ask for
 * it. */
#ifndef FABRICD_HOST_HOST_CONTROL_H
#define FABRICD_HOST_HOST_CONTROL_H

#include <pmix_server.h>

/* The server module's function. */
pmix_status_t host_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[], size_t ntargets,
                               const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t cbfunc,
                               void *cbdata);

#endif
