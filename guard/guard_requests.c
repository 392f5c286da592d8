/*
 * guard_requests.c - a fabric's register, update and PMIx_Get (docs/upstream.md, R6, R7, R12, R16, R17).
 *
 * The library allocates a register's directives in one place and unpacks them into another, which is null: it
 * logs BAD-PARAM, and the caller gets success without data. It also counts the caller's record once too
 * often, so that each request leaks one. The functions here do the work of the library's functions, without
 * calls of components of the library. So only this program answers.
 *
 * For a PMIx_Get of a fabric's key the library would search a job. Here the program answers each time, as for
 * a query: the key, with the other directives as qualifiers. Nothing is cached on this side. Data of a node,
 * a device or a job are available at once or never. By default the library waits for them. For these keys,
 * callers are treated as if they had requested an immediate answer.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard_priv.h"

#if GUARD_KNOWS_LIBRARY
#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/bfrops/base/base.h>
#include <src/mca/ptl/base/base.h>
#include <src/server/pmix_server_ops.h>

/* Unpack infos. Each packed info takes a byte at least: a count above the number of bytes is false, and would
 * cost memory. The caller frees *info, also on error. */
static pmix_status_t unpack_infos(pmix_peer_t *peer, pmix_buffer_t *buf, pmix_info_t **info, size_t *n)
{
    pmix_status_t rc;
    int32_t count = 1;
    size_t given = 0;
    PMIX_BFROPS_UNPACK(rc, peer, buf, &given, &count, PMIX_SIZE);
    if (rc != PMIX_SUCCESS || given == 0)
        return rc;
    if (given > (size_t)(buf->pack_ptr - buf->unpack_ptr) || given > INT32_MAX)
        return PMIX_ERR_BAD_PARAM;
    PMIX_INFO_CREATE(*info, given);
    if (*info == NULL)
        return PMIX_ERR_NOMEM;
    *n = given;
    count = (int32_t)given;
    PMIX_BFROPS_UNPACK(rc, peer, buf, *info, &count, PMIX_INFO);
    return rc;
}

/* ---- register and update --------------------------------------------------------------------------------
 */

/* A caller's library ignores the status of a register, so a refusal looks like success without data. It takes
 * an answer without a byte for PMIX_ERR_UNREACH: a refused register gets that. */
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

/* Return the status for the library if a request failed at once: for a register, that it is answered. */
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

/* Send the library's own answer; it has none for a refusal. */
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
    pmix_status_t (*original)(pmix_server_caddy_t *, pmix_buffer_t *, pmix_info_cbfunc_t);
    pmix_proc_t requestor;
    pmix_status_t rc;
    if (!guard_does(GUARD_FABRIC)) {
        *(void **)&original = guard_original(name);
        return original(cd, buf, cbfunc);
    }
    if (pmix_host_server.fabric == NULL)
        return register_failed(cd, op, PMIX_ERR_NOT_SUPPORTED);
    pmix_query_caddy_t *qcd = PMIX_NEW(pmix_query_caddy_t);
    if (qcd == NULL)
        return register_failed(cd, op, PMIX_ERR_NOMEM);
    qcd->cbfunc = cbfunc;
    qcd->cbdata = cd;
    rc = op == PMIX_FABRIC_REQUEST_INFO ? unpack_infos(cd->peer, buf, &qcd->info, &qcd->ninfo)
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

/* ---- PMIx_Get --------------------------------------------------------------------------------------------
 */

/* An open request. The library frees cd when it has sent the answer. */
struct get {
    pmix_server_caddy_t *cd;
    pmix_modex_cbfunc_t cbfunc;
    pmix_proc_t proc; /* the process whose data are requested */
    char *key;
    pmix_info_t *info;
    /* the last infos may say where the caller searches the answer, and are not part of the request */
    size_t n, n_asked;
};

static void get_free(struct get *get)
{
    if (get->info != NULL)
        PMIX_INFO_FREE(get->info, get->n);
    free(get->key);
    free(get);
}

static pmix_status_t get_unpack(struct get *get, pmix_buffer_t *buf)
{
    pmix_status_t rc;
    int32_t count = 1;
    char *nspace = NULL;
    PMIX_BFROPS_UNPACK(rc, get->cd->peer, buf, &nspace, &count, PMIX_STRING);
    if (rc != PMIX_SUCCESS)
        return rc;
    PMIX_LOAD_NSPACE(get->proc.nspace, nspace);
    free(nspace);
    count = 1;
    PMIX_BFROPS_UNPACK(rc, get->cd->peer, buf, &get->proc.rank, &count, PMIX_PROC_RANK);
    if (rc == PMIX_SUCCESS)
        rc = unpack_infos(get->cd->peer, buf, &get->info, &get->n);
    if (rc != PMIX_SUCCESS)
        return rc;
    count = 1;
    PMIX_BFROPS_UNPACK(rc, get->cd->peer, buf, &get->key, &count, PMIX_STRING);
    return rc;
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

static const pmix_info_t *get_find_info(const struct get *get, const char *key)
{
    for (size_t i = 0; i < get->n; i++)
        if (PMIX_CHECK_KEY(&get->info[i], key))
            return &get->info[i];
    return NULL;
}

/* Set where the caller's library, which stores the answer first, then searches it. From 5.0 on it does not
 * search the data of a whole job if a process of it was named. */
static void set_place(struct get *get)
{
    bool own = PMIX_CHECK_NSPACE(get->proc.nspace, get->cd->peer->info->pname.nspace);
    bool process = PMIX_RANK_IS_VALID(get->proc.rank);
    bool elsewhere = !own && (!process || PMIX_PEER_IS_EARLIER(get->cd->peer, 5, 0, 0));
    if (get->proc.rank == PMIX_RANK_UNDEF || elsewhere)
        get->proc.rank = PMIX_RANK_WILDCARD;
}

/* It searches the data of a named node, if it treats the key so, else those of the process. */
static bool belongs_to_node(const struct get *get)
{
    const pmix_info_t *directive = get_find_info(get, PMIX_NODE_INFO);
    bool node = directive != NULL ? PMIX_INFO_TRUE(directive) : pmix_check_node_info(get->key);
    return node && !PMIX_RANK_IS_VALID(get->proc.rank) &&
           (get_find_info(get, PMIX_HOSTNAME) != NULL || get_find_info(get, PMIX_NODEID) != NULL);
}

/* Pack infos that name the node and contain the key's value, which the program keeps. */
static pmix_status_t pack_node(const struct get *get, pmix_value_t *value, pmix_buffer_t *buf)
{
    static const char *const names[] = {PMIX_HOSTNAME, PMIX_NODEID};
    pmix_info_t infos[3];
    pmix_data_array_t array = {.type = PMIX_INFO, .array = infos};
    pmix_value_t node = {.type = PMIX_DATA_ARRAY, .data.darray = &array};
    pmix_kval_t kv = {.key = (char[]){PMIX_NODE_INFO_ARRAY}, .value = &node};
    pmix_status_t rc;
    memset(infos, 0, sizeof(infos));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const pmix_info_t *name = get_find_info(get, names[i]);
        if (name != NULL)
            infos[array.size++] = *name;
    }
    PMIX_LOAD_KEY(infos[array.size].key, get->key);
    infos[array.size++].value = *value;
    PMIX_BFROPS_PACK(rc, get->cd->peer, buf, &kv, 1, PMIX_KVAL);
    return rc;
}

static pmix_status_t pack_proc(const struct get *get, pmix_value_t *value, pmix_buffer_t *buf)
{
    pmix_kval_t kv = {.key = get->key, .value = value};
    pmix_status_t rc;
    PMIX_BFROPS_PACK(rc, get->cd->peer, buf, &kv, 1, PMIX_KVAL);
    return rc;
}

/* Pack the form that a caller's library expects: a byte object with the process, and its data. */
static pmix_status_t get_pack(const struct get *get, pmix_value_t *value, pmix_buffer_t *out)
{
    pmix_buffer_t data;
    pmix_status_t rc;
    PMIX_CONSTRUCT(&data, pmix_buffer_t);
    PMIX_BFROPS_PACK(rc, get->cd->peer, &data, &get->proc, 1, PMIX_PROC);
    if (rc == PMIX_SUCCESS)
        rc = belongs_to_node(get) ? pack_node(get, value, &data) : pack_proc(get, value, &data);
    if (rc == PMIX_SUCCESS) {
        pmix_byte_object_t bytes = {.bytes = data.base_ptr, .size = data.bytes_used};
        PMIX_BFROPS_PACK(rc, get->cd->peer, out, &bytes, 1, PMIX_BYTE_OBJECT);
    }
    PMIX_DESTRUCT(&data);
    return rc;
}

static void get_on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                          pmix_release_cbfunc_t release, void *release_data)
{
    struct get *get = cbdata;
    pmix_buffer_t reply;
    char *bytes = NULL;
    size_t size = 0;
    if (status == PMIX_SUCCESS && n != 1)
        status = PMIX_ERR_NOT_FOUND;
    PMIX_CONSTRUCT(&reply, pmix_buffer_t);
    set_place(get);
    if (status == PMIX_SUCCESS)
        status = get_pack(get, &info[0].value, &reply);
    if (release != NULL)
        release(release_data);
    if (status == PMIX_SUCCESS)
        PMIX_UNLOAD_BUFFER(&reply, bytes, size);
    PMIX_DESTRUCT(&reply);
    get->cbfunc(status, bytes, size, get->cd, free, bytes);
    get_free(get);
}

/* ---- the request --------------------------------------------------------------------------------------- */

/*
 * From 5.0 on a caller's library adds the caller's host to a key of a node, and PMIX_OPTIONAL after it. (If
 * a caller sets PMIX_OPTIONAL itself, the request is not sent here.) It looks for the answer under that host.
 * A device is identified by its id on any host.
 */
static void get_set_host_aside(struct get *get)
{
    get->n_asked = get->n;
    if (get_find_info(get, PMIX_DEVICE_ID) == NULL)
        return;
    for (size_t i = 1; i < get->n; i++) {
        pmix_info_t *host = &get->info[i - 1], *last = &get->info[get->n - 1], swap = *host;
        if (!PMIX_CHECK_KEY(host, PMIX_HOSTNAME) || !PMIX_CHECK_KEY(&get->info[i], PMIX_OPTIONAL))
            continue;
        *host = *last;
        *last = swap;
        get->n_asked = get->n - 1;
        return;
    }
}

/* On success the answer owns `get`. The program answers at once, on this thread. */
static pmix_status_t get_ask_host(struct get *get)
{
    char *keys[] = {get->key, NULL};
    pmix_proc_t requestor;
    get_set_host_aside(get);
    pmix_query_t query = {.keys = keys, .qualifiers = get->info, .nqual = get->n_asked};
    PMIX_LOAD_PROCID(&requestor, get->cd->peer->info->pname.nspace, get->cd->peer->info->pname.rank);
    return pmix_host_server.query(&requestor, &query, 1, get_on_answer, get);
}

static pmix_status_t get_forward(pmix_buffer_t *buf, pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    GUARD_ORIGINAL(pmix_server_get);
    return original(buf, cbfunc, cbdata);
}

static bool get_never_comes(const char *key)
{
    static const char *const keys[] = {PMIX_HOSTNAME, PMIX_NODEID, PMIX_DEVICE_ID, PMIX_SWITCH_PEERS,
                                       PMIX_DEVICE_DISTANCES};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Forward the same request with PMIX_IMMEDIATE; refuse it if it cannot be packed again. */
static pmix_status_t get_forward_at_once(const struct get *get, pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    char *nspace = (char *)get->proc.nspace;
    size_t n = get->n + 1;
    pmix_info_t *info;
    pmix_buffer_t buf;
    pmix_status_t rc;
    PMIX_INFO_CREATE(info, n);
    if (info == NULL)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < get->n; i++)
        PMIX_INFO_XFER(&info[i], &get->info[i]);
    PMIX_INFO_LOAD(&info[get->n], PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    PMIX_CONSTRUCT(&buf, pmix_buffer_t);
    PMIX_BFROPS_PACK(rc, get->cd->peer, &buf, &nspace, 1, PMIX_STRING);
    if (rc == PMIX_SUCCESS)
        PMIX_BFROPS_PACK(rc, get->cd->peer, &buf, &get->proc.rank, 1, PMIX_PROC_RANK);
    if (rc == PMIX_SUCCESS)
        PMIX_BFROPS_PACK(rc, get->cd->peer, &buf, &n, 1, PMIX_SIZE);
    if (rc == PMIX_SUCCESS)
        PMIX_BFROPS_PACK(rc, get->cd->peer, &buf, info, (int32_t)n, PMIX_INFO);
    if (rc == PMIX_SUCCESS)
        PMIX_BFROPS_PACK(rc, get->cd->peer, &buf, &get->key, 1, PMIX_STRING);
    if (rc == PMIX_SUCCESS)
        rc = get_forward(&buf, cbfunc, cbdata);
    PMIX_DESTRUCT(&buf);
    PMIX_INFO_FREE(info, n);
    return rc;
}

pmix_status_t pmix_server_get(pmix_buffer_t *buf, pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    char *start = buf->unpack_ptr;
    struct get *get = NULL;
    pmix_status_t rc;
    if (!guard_does(GUARD_REQUESTS) || pmix_host_server.query == NULL)
        return get_forward(buf, cbfunc, cbdata);
    if ((get = calloc(1, sizeof(*get))) == NULL)
        return PMIX_ERR_NOMEM;
    get->cd = cbdata;
    get->cbfunc = cbfunc;
    rc = get_unpack(get, buf);
    if (rc == PMIX_SUCCESS && get->key != NULL && strncmp(get->key, FABRIC_KEYS, strlen(FABRIC_KEYS)) == 0) {
        rc = get_ask_host(get);
        if (rc != PMIX_SUCCESS)
            get_free(get);
        return rc;
    }
    const bool at_once = rc == PMIX_SUCCESS && get->key != NULL && get_never_comes(get->key);
    if (at_once)
        rc = get_forward_at_once(get, cbfunc, cbdata);
    get_free(get);
    if (at_once || rc == PMIX_ERR_BAD_PARAM || rc == PMIX_ERR_NOMEM)
        return rc;
    buf->unpack_ptr = start; /* not for us: the library's own function reads it from its beginning */
    return get_forward(buf, cbfunc, cbdata);
}

#if PMIX_VERSION_MAJOR >= 5
/* Refresh the caller's data: the library answers it, and leaks its record of the caller. A newer library
 * frees the record itself. */
pmix_status_t pmix_server_refresh_cache(pmix_server_caddy_t *cd, pmix_buffer_t *buf, pmix_op_cbfunc_t cbfunc)
{
    GUARD_ORIGINAL(pmix_server_refresh_cache);
    pmix_object_t *record = (pmix_object_t *)cd;
    if (!guard_does(GUARD_REQUESTS))
        return original(cd, buf, cbfunc);
    PMIX_RETAIN(record);
    const pmix_status_t rc = original(cd, buf, cbfunc);
    if (rc == PMIX_SUCCESS && record->obj_reference_count > 1)
        PMIX_RELEASE(cd);
    PMIX_RELEASE(record);
    return rc;
}
#endif

#endif
