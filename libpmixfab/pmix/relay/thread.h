/*
 * thread.h - answers go out on the PMIx library's own thread, as docs/relay.md explains: the standard lets a
 * server call back from any, and in the stock library (4.2 to the main line) an answer can then get lost.
 */
#ifndef FAB_PMIX_RELAY_THREAD_H
#define FAB_PMIX_RELAY_THREAD_H

#include <pmix_server.h>

/*
 * Call fn(status, cbdata) there, in the order of these calls; in a server only. Not initialized any more: it
 * is called here.
 */
static inline void fab_on_pmix_thread(pmix_op_cbfunc_t fn, void *cbdata)
{
    /* Nothing to be done, and it is done there. */
    if (PMIx_server_deregister_resources(NULL, 0, fn, cbdata) != PMIX_SUCCESS)
        fn(PMIX_ERR_INIT, cbdata);
}

/* Wait until what was asked for before is done. Not on that thread. */
static inline void fab_wait_for_pmix_thread(void)
{
    (void)PMIx_server_deregister_resources(NULL, 0, NULL, NULL);
}

#endif
