/*
 * host_module.c - the table of functions, and the short ones. The library itself handles operations among
 * processes of this host: it stores their data, and counts the participants of a fence or connect.
 */
#include <stdlib.h>

#include "fabric-host/data/kv.h"
#include "fabric-host/host.h"
#include "fabricd/server/server_answers.h"

/* The library calls this only if a participant is missing: it has ended, or never existed. The data belong to
 * us, and with an error the library passes none to any process. */
static pmix_status_t host_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc,
                                void *cbdata)
{
    (void)procs, (void)nprocs, (void)info, (void)ninfo, (void)ndata;
    free(data);
    cbfunc(PMIX_ERR_PARTIAL_SUCCESS, NULL, 0, cbdata, NULL, NULL);
    return PMIX_SUCCESS;
}

/* Handle connect and disconnect in the same way. If the library calls because a participant has died, it
 * drops the waiting ones unless it gets the answer by a callback. */
static pmix_status_t host_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)procs, (void)nprocs, (void)info, (void)ninfo;
    cbfunc(PMIX_ERR_PARTIAL_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

/* The library calls this for processes that are not on this host: there are none. */
static pmix_status_t host_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                       pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    (void)proc, (void)info, (void)ninfo, (void)cbfunc, (void)cbdata;
    return PMIX_ERR_NOT_FOUND;
}

/* ---- events: the library selects the receivers -------------------------------------------------- */

static pmix_status_t host_register_events(pmix_status_t *codes, size_t n, const pmix_info_t info[],
                                          size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)codes, (void)n, (void)info, (void)ninfo, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t host_deregister_events(pmix_status_t *codes, size_t n, pmix_op_cbfunc_t cbfunc,
                                            void *cbdata)
{
    (void)codes, (void)n, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t host_notify_event(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                                       pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                       void *cbdata)
{
    (void)code, (void)source, (void)range, (void)info, (void)ninfo, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_server_module_t host_module = {
    .client_connected2 = host_client_connected,
    .client_finalized = host_client_finalized,
    .abort = host_abort,
    .fence_nb = host_fence,
    .direct_modex = host_direct_modex,
    .publish = kv_publish,
    .lookup = kv_lookup,
    .unpublish = kv_unpublish,
    .connect = host_connect,
    .disconnect = host_connect,
    .spawn = host_spawn,
    .iof_pull = host_iof_pull,
    .push_stdin = host_push_stdin,
    .job_control = host_job_control,
    .register_events = host_register_events,
    .deregister_events = host_deregister_events,
    .notify_event = host_notify_event,
    .query = host_query,
    .log = host_log,
    .fabric = answer_fabric,
};
