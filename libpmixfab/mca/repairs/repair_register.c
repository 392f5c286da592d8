/*
 * repair_register.c - what the library does with a fabric request that arrives from a tool or a client.
 *
 * The library makes room for a register's directives in one place and unpacks them into another, which is
 * null: it logs BAD-PARAM, and the caller gets success with nothing. It also counts the caller's record once
 * too often, so that each request leaves one behind. These two functions do what its own are meant to do,
 * without asking components of the library: this program's own answer is the only one.
 *
 * A caller's library overlooks the status of a register, so a refusal looks like a success with nothing. It
 * takes an answer without a byte for PMIX_ERR_UNREACH: that is what a refused register gets.
 */
#include <src/include/pmix_config.h>

#include <src/server/pmix_server_ops.h>

#include "mca/repairs/repair.h"
#include "mca/repairs/repair_unpack.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_REQUESTS

typedef pmix_status_t (*request_fn)(pmix_server_caddy_t *cd, pmix_buffer_t *buf, pmix_info_cbfunc_t cbfunc);

static void register_refuse(pmix_server_caddy_t *cd)
{
    pmix_buffer_t *nothing = PMIX_NEW(pmix_buffer_t);
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (nothing != NULL)
        PMIX_SERVER_QUEUE_REPLY(rc, cd->peer, cd->hdr.tag, nothing);
    if (rc != PMIX_SUCCESS && nothing != NULL)
        PMIX_RELEASE(nothing);
    PMIX_RELEASE(cd);
}

/* What the library is told of a request that failed at once: of a register that it is answered. */
static pmix_status_t register_failed(pmix_server_caddy_t *cd, pmix_fabric_operation_t op, pmix_status_t rc)
{
    if (op != PMIX_FABRIC_REQUEST_INFO)
        return rc;
    register_refuse(cd);
    return PMIX_SUCCESS;
}

static void register_release(pmix_query_caddy_t *qcd)
{
    if (qcd->info != NULL)
        PMIX_INFO_FREE(qcd->info, qcd->ninfo);
    PMIX_RELEASE(qcd);
}

/* The library's own answer, of which a refusal is none. */
static void register_on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                               pmix_release_cbfunc_t release, void *release_data)
{
    pmix_query_caddy_t *qcd = cbdata;
    if (status == PMIX_SUCCESS) {
        qcd->cbfunc(status, info, n, cbdata, release, release_data);
        return;
    }
    if (release != NULL)
        release(release_data);
    register_refuse(qcd->cbdata);
    register_release(qcd);
}

static pmix_status_t unpack_index(pmix_server_caddy_t *cd, pmix_buffer_t *buf, pmix_query_caddy_t *qcd)
{
    pmix_status_t rc;
    int32_t count = 1;
    size_t index = 0;
    PMIX_BFROPS_UNPACK(rc, cd->peer, buf, &index, &count, PMIX_SIZE);
    if (rc != PMIX_SUCCESS)
        return rc;
    PMIX_INFO_CREATE(qcd->info, 1);
    if (qcd->info == NULL)
        return PMIX_ERR_NOMEM;
    qcd->ninfo = 1;
    PMIX_INFO_LOAD(&qcd->info[0], PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
    return PMIX_SUCCESS;
}

/* On success the answer releases qcd, its infos and cd, once each; on an error the library releases cd. */
static pmix_status_t register_ask_host(const char *name, pmix_server_caddy_t *cd, pmix_buffer_t *buf,
                                       pmix_info_cbfunc_t cbfunc, pmix_fabric_operation_t op)
{
    request_fn original = NULL;
    pmix_proc_t requestor;
    pmix_status_t rc;
    if (!fab_repair_wanted(FAB_REPAIR_REQUESTS)) {
        *(void **)&original = fab_repair_original(name);
        return original == NULL ? PMIX_ERR_NOT_SUPPORTED : original(cd, buf, cbfunc);
    }
    if (pmix_host_server.fabric == NULL)
        return register_failed(cd, op, PMIX_ERR_NOT_SUPPORTED);
    pmix_query_caddy_t *qcd = PMIX_NEW(pmix_query_caddy_t);
    if (qcd == NULL)
        return register_failed(cd, op, PMIX_ERR_NOMEM);
    qcd->cbfunc = cbfunc;
    qcd->cbdata = cd;
    rc = op == PMIX_FABRIC_REQUEST_INFO ? repair_unpack_infos(cd->peer, buf, &qcd->info, &qcd->ninfo)
                                        : unpack_index(cd, buf, qcd);
    if (rc == PMIX_SUCCESS) {
        PMIX_LOAD_PROCID(&requestor, cd->peer->info->pname.nspace, cd->peer->info->pname.rank);
        rc = pmix_host_server.fabric(&requestor, op, qcd->info, qcd->ninfo,
                                     op == PMIX_FABRIC_REQUEST_INFO ? register_on_answer : cbfunc, qcd);
    }
    if (rc == PMIX_SUCCESS)
        return rc;
    register_release(qcd);
    return register_failed(cd, op, rc);
}

pmix_status_t pmix_server_fabric_register(pmix_server_caddy_t *cd, pmix_buffer_t *buf,
                                          pmix_info_cbfunc_t cbfunc)
{
    return register_ask_host(__func__, cd, buf, cbfunc, PMIX_FABRIC_REQUEST_INFO);
}

pmix_status_t pmix_server_fabric_update(pmix_server_caddy_t *cd, pmix_buffer_t *buf,
                                        pmix_info_cbfunc_t cbfunc)
{
    return register_ask_host(__func__, cd, buf, cbfunc, PMIX_FABRIC_UPDATE_INFO);
}

#endif
