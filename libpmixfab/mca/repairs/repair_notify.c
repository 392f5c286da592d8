/*
 * repair_notify.c - an event for a namespace reaches that namespace.
 *
 * The library looks at the range of an event only where it names its targets: what one program tells its own
 * namespace reaches all who have registered for it. Here such an event names its namespace.
 */
#include <stdlib.h>
#include <string.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/server/pmix_server_ops.h>

#include "mca/repairs/repair.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_CONNECTIONS

typedef pmix_status_t (*notify_fn)(pmix_status_t status, const pmix_proc_t *source, pmix_data_range_t range,
                                   const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                   void *cbdata);

static bool notify_has_targets(const pmix_info_t info[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE))
            return true;
    return false;
}

pmix_status_t pmix_server_notify_client_of_event(pmix_status_t status, const pmix_proc_t *source,
                                                 pmix_data_range_t range, const pmix_info_t info[],
                                                 size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    notify_fn original = NULL;
    pmix_proc_t all;
    *(void **)&original = fab_repair_original(__func__);
    if (original == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    if (!fab_repair_wanted(FAB_REPAIR_CONNECTIONS) || range != PMIX_RANGE_NAMESPACE || source == NULL ||
        notify_has_targets(info, ninfo))
        return original(status, source, range, info, ninfo, cbfunc, cbdata);
    pmix_info_t *more = calloc(ninfo + 1, sizeof(*more)); /* the library takes a copy */
    if (more == NULL)
        return PMIX_ERR_NOMEM;
    if (ninfo > 0)
        memcpy(more, info, ninfo * sizeof(*more));
    PMIX_LOAD_PROCID(&all, source->nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&more[ninfo], PMIX_EVENT_CUSTOM_RANGE, &all, PMIX_PROC);
    const pmix_status_t rc = original(status, source, PMIX_RANGE_CUSTOM, more, ninfo + 1, cbfunc, cbdata);
    PMIX_INFO_DESTRUCT(&more[ninfo]);
    free(more);
    return rc;
}

#endif
