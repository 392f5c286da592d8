/* host_log.h - PMIx_Log: what programs and tools want written. */
#ifndef FABRICD_HOST_HOST_LOG_H
#define FABRICD_HOST_HOST_LOG_H

#include <pmix_server.h>

/* The server module's function. It does not call back before it returns: the library holds a lock. */
void host_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
              const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc, void *cbdata);

#endif
