/* spawn.h - jobs that clients and tools start. */
#ifndef FABRICD_HOST_SPAWN_H
#define FABRICD_HOST_SPAWN_H

#include <pmix_server.h>

/* The server module's function. */
pmix_status_t host_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                         const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc, void *cbdata);

#endif
