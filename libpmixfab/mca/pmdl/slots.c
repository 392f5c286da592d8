#include "mca/pmdl/slots.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/server/pmix_server_ops.h>

#include "mca/pmdl/pmdl_component.h"
#include "pmix/answers/value.h"
#include "pmix/rundir/snapshots.h"

#define FABRIC_KEYS "pmix.fab" /* "pmix.fab.NAME" and "pmix.fabdev", "pmix.fabdev.NAME" */
#define OWN_KEYS    "pmixfab."

static struct rundir_snapshots *source;
static pmix_server_query_fn_t hosts_query; /* the former content of the slot */
static atomic_bool fabric_is_ours;         /* read by the watching thread */
static bool query_is_ours;                 /* hosts_query is the host's function */

/* ---- answers ---------------------------------------------------------------------------------------- */

/* Answer a request, or a query if there are queries. */
static void slots_answer(const pmix_proc_t *requestor, pmix_fabric_operation_t op, const pmix_info_t *infos,
                         const pmix_query_t *queries, size_t n, struct fab_answered *out)
{
    struct fab_err err = {""};
    rundir_answer(source, pmix_globals.hostname, requestor, op, infos, queries, n, out, &err);
    if (out->status != PMIX_SUCCESS)
        pmdl_say("a %s is refused: %s %s", queries != NULL ? "query" : "fabric request",
                 PMIx_Error_string(out->status), err.text);
}

static pmix_status_t slots_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                  const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                                  void *cbdata)
{
    struct fab_answered answered;
    if (cbfunc == NULL)
        return PMIX_ERR_BAD_PARAM;
    slots_answer(requestor, op, directives, NULL, n, &answered);
    if (answered.status == PMIX_ERR_UNREACH)
        return PMIX_ERR_NOT_SUPPORTED; /* no snapshot: as the library answers for an empty slot */
    fab_answer_send(&answered, cbfunc, cbdata);
    return PMIX_SUCCESS;
}

/* Return whether every key of every query is a fabric's. */
static bool slots_ours(const pmix_query_t *queries, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; queries[i].keys != NULL && queries[i].keys[k] != NULL; k++) {
            const char *key = queries[i].keys[k];
            if (strncmp(key, FABRIC_KEYS, strlen(FABRIC_KEYS)) != 0 &&
                strncmp(key, OWN_KEYS, strlen(OWN_KEYS)) != 0)
                return false;
            any = true;
        }
    return any;
}

/* If this server has connected to another one meanwhile, the library now forwards its queries. */
static pmix_status_t slots_pass_on(pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    pmix_host_server.query = NULL;
    query_is_ours = false;
    return PMIx_Query_info_nb(queries, n, cbfunc, cbdata);
}

static pmix_status_t slots_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n,
                                 pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct fab_answered answered = {.status = PMIX_ERR_NOT_FOUND};
    bool ours = queries != NULL && cbfunc != NULL && slots_ours(queries, n);
    if (ours)
        slots_answer(requestor, PMIX_FABRIC_REQUEST_INFO, NULL, queries, n, &answered);
    /* a host with a function of its own may have an answer */
    if (hosts_query != NULL && (!ours || answered.status != PMIX_SUCCESS)) {
        fab_infos_free(answered.info, answered.allocated);
        return hosts_query(requestor, queries, n, cbfunc, cbdata);
    }
    if (!ours && pmix_globals.connected)
        return slots_pass_on(queries, n, cbfunc, cbdata);
    if (!ours)
        return PMIX_ERR_UNREACH; /* as the library answers without a function and without a server */
    if (answered.status != PMIX_SUCCESS && pmix_globals.connected) {
        fab_infos_free(answered.info, answered.allocated);
        return answered.status; /* the library never forwards a later error of a connected server */
    }
    fab_answer_send(&answered, cbfunc, cbdata);
    return PMIX_SUCCESS;
}

/* ---- slots ------------------------------------------------------------------------------------------ */

/*
 * If a server is connected to another server and has no query function, the library forwards its queries.
 * With our function in the slot, the library would not forward them.
 */
void pmdl_slots_take(struct rundir_snapshots *snapshots, bool fabric, bool query, bool hosts_jobs)
{
    source = snapshots;
    if (pmix_host_server.fabric != NULL && pmix_host_server.fabric != slots_fabric)
        return; /* the host answers for the fabric itself */
    /* A scheduler's own calls are handled by the component pnet, which supports more if no other component
     * follows. But the master of PRRTE calls itself a scheduler, too, and has jobs. */
    if (fabric && (hosts_jobs || !PMIX_PEER_IS_SCHEDULER(pmix_globals.mypeer)))
        pmix_host_server.fabric = slots_fabric;
    fabric_is_ours = pmix_host_server.fabric == slots_fabric;
    if (query && !query_is_ours && (pmix_host_server.query != NULL || !pmix_globals.connected)) {
        hosts_query = pmix_host_server.query;
        pmix_host_server.query = slots_query;
        query_is_ours = true;
    }
}

bool pmdl_slots_have_fabric(void)
{
    return fabric_is_ours;
}

void pmdl_slots_give_back(void)
{
    if (pmix_host_server.fabric == slots_fabric)
        pmix_host_server.fabric = NULL;
    fabric_is_ours = false;
    if (query_is_ours && pmix_host_server.query == slots_query)
        pmix_host_server.query = hosts_query;
    query_is_ours = false;
    hosts_query = NULL;
}
