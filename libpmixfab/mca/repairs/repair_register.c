/*
 * repair_register.c - what the library does with a fabric request that arrives from a tool or a client.
 *
 * The library makes room for a register's directives in one place and unpacks them into another, which is
 * null: it logs BAD-PARAM, and the caller gets success with nothing. It also counts the caller's record once
 * too often, so that each request leaves one behind. These two functions do what its own are meant to do,
 * without asking components of the library: this program's own answer is the only one.
 */
#include <limits.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/bfrops/base/base.h>
#include <src/server/pmix_server_ops.h>

#include "mca/repairs/repair.h"

#include <pmix_version.h>

/* Other versions: other structures. The library's own functions stay in place. */
#if PMIX_VERSION_MAJOR == 4 && PMIX_VERSION_MINOR == 2

typedef pmix_status_t (*request_fn)(pmix_server_caddy_t *cd, pmix_buffer_t *buf, pmix_info_cbfunc_t cbfunc);

static pmix_status_t register_forward(const char *name, pmix_server_caddy_t *cd, pmix_buffer_t *buf,
                                      pmix_info_cbfunc_t cbfunc)
{
    request_fn original = NULL;
    *(void **)&original = fab_repair_original(name);
    return original == NULL ? PMIX_ERR_NOT_SUPPORTED : original(cd, buf, cbfunc);
}

/* Each packed directive takes a byte at least: more than there are bytes is a lie that would cost memory. */
static pmix_status_t unpack_directives(pmix_server_caddy_t *cd, pmix_buffer_t *buf, pmix_query_caddy_t *qcd)
{
    pmix_status_t rc;
    int32_t count = 1;
    size_t n = 0;
    PMIX_BFROPS_UNPACK(rc, cd->peer, buf, &n, &count, PMIX_SIZE);
    if (rc != PMIX_SUCCESS || n == 0)
        return rc;
    if (n > (size_t)(buf->pack_ptr - buf->unpack_ptr) || n > INT32_MAX)
        return PMIX_ERR_BAD_PARAM;
    PMIX_INFO_CREATE(qcd->info, n);
    if (qcd->info == NULL)
        return PMIX_ERR_NOMEM;
    qcd->ninfo = n;
    count = (int32_t)n;
    PMIX_BFROPS_UNPACK(rc, cd->peer, buf, qcd->info, &count, PMIX_INFO);
    return rc;
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
static pmix_status_t register_ask_host(pmix_server_caddy_t *cd, pmix_buffer_t *buf, pmix_info_cbfunc_t cbfunc,
                                       pmix_fabric_operation_t op)
{
    pmix_proc_t requestor;
    pmix_status_t rc;
    if (pmix_host_server.fabric == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    pmix_query_caddy_t *qcd = PMIX_NEW(pmix_query_caddy_t);
    if (qcd == NULL)
        return PMIX_ERR_NOMEM;
    qcd->cbfunc = cbfunc;
    qcd->cbdata = cd;
    rc = op == PMIX_FABRIC_REQUEST_INFO ? unpack_directives(cd, buf, qcd) : unpack_index(cd, buf, qcd);
    if (rc == PMIX_SUCCESS) {
        PMIX_LOAD_PROCID(&requestor, cd->peer->info->pname.nspace, cd->peer->info->pname.rank);
        rc = pmix_host_server.fabric(&requestor, op, qcd->info, qcd->ninfo, cbfunc, qcd);
    }
    if (rc != PMIX_SUCCESS) {
        if (qcd->info != NULL)
            PMIX_INFO_FREE(qcd->info, qcd->ninfo);
        PMIX_RELEASE(qcd);
    }
    return rc;
}

pmix_status_t pmix_server_fabric_register(pmix_server_caddy_t *cd, pmix_buffer_t *buf,
                                          pmix_info_cbfunc_t cbfunc)
{
    if (!fab_repair_wanted())
        return register_forward(__func__, cd, buf, cbfunc);
    return register_ask_host(cd, buf, cbfunc, PMIX_FABRIC_REQUEST_INFO);
}

pmix_status_t pmix_server_fabric_update(pmix_server_caddy_t *cd, pmix_buffer_t *buf,
                                        pmix_info_cbfunc_t cbfunc)
{
    if (!fab_repair_wanted())
        return register_forward(__func__, cd, buf, cbfunc);
    return register_ask_host(cd, buf, cbfunc, PMIX_FABRIC_UPDATE_INFO);
}

#endif
