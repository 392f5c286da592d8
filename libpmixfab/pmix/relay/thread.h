/*
 * thread.h - send answers on the PMIx library's own thread (docs/relay.md). The standard allows a server to
 * call back from any thread. But the library (4.2 to the main line) can lose an answer from another thread.
 */
#ifndef FAB_PMIX_RELAY_THREAD_H
#define FAB_PMIX_RELAY_THREAD_H

#include <pmix_server.h>

/*
 * Call fn(status, cbdata) there, in the order of these calls; in a server only. If PMIx is not initialized,
 * call it here.
 */
static inline void fab_on_pmix_thread(pmix_op_cbfunc_t fn, void *cbdata)
{
    /* a call without effect that runs the callback there */
    if (PMIx_server_deregister_resources(NULL, 0, fn, cbdata) != PMIX_SUCCESS)
        fn(PMIX_ERR_INIT, cbdata);
}

/* Wait until all earlier calls are done. Not on that thread. */
static inline void fab_wait_for_pmix_thread(void)
{
    (void)PMIx_server_deregister_resources(NULL, 0, NULL, NULL);
}

#endif
