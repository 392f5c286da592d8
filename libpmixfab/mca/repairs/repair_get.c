/*
 * repair_get.c - a PMIx_Get of a fabric's key is a question to the server program. The library would look it
 * up in a job (docs/design/pmix.md). Here the program answers each time, as it answers a query: the key, with
 * what came with it as qualifiers. Nothing is kept on this side.
 *
 * What a node, a device or a job is told once is there or never comes. The library waits for it all the same,
 * where the caller says nothing else: of these keys the callers are taken to have said it.
 */
#include <stdlib.h>
#include <string.h>

#include <src/include/pmix_config.h>

#include <src/mca/ptl/base/base.h>
#include <src/server/pmix_server_ops.h>

#include "mca/repairs/repair.h"
#include "mca/repairs/repair_unpack.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_REQUESTS

#define FABRIC_KEYS "pmix.fab" /* "pmix.fab.NAME" and "pmix.fabdev", "pmix.fabdev.NAME" */

/* A request, as long as it is not answered. The library frees cd when it has sent the answer. */
struct get {
    pmix_server_caddy_t *cd;
    pmix_modex_cbfunc_t cbfunc;
    pmix_proc_t proc; /* whose data is asked for */
    char *key;
    pmix_info_t *info;
    size_t n, n_asked; /* the last of them may say where the answer is looked for, and not what is asked */
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
        rc = repair_unpack_infos(get->cd->peer, buf, &get->info, &get->n);
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

/* Where the caller's library, which puts the answer away first, then looks for it. From 5.0 on it does not
 * look at what is known of a whole job when a process of it was named. */
static void set_place(struct get *get)
{
    bool own = PMIX_CHECK_NSPACE(get->proc.nspace, get->cd->peer->info->pname.nspace);
    bool process = PMIX_RANK_IS_VALID(get->proc.rank);
    bool elsewhere = !own && (!process || PMIX_PEER_IS_EARLIER(get->cd->peer, 5, 0, 0));
    if (get->proc.rank == PMIX_RANK_UNDEF || elsewhere)
        get->proc.rank = PMIX_RANK_WILDCARD;
}

/* It looks below a node that was named, where that is how it sees the key, else below the process. */
static bool belongs_to_node(const struct get *get)
{
    const pmix_info_t *directive = get_find_info(get, PMIX_NODE_INFO);
    bool node = directive != NULL ? PMIX_INFO_TRUE(directive) : pmix_check_node_info(get->key);
    return node && !PMIX_RANK_IS_VALID(get->proc.rank) &&
           (get_find_info(get, PMIX_HOSTNAME) != NULL || get_find_info(get, PMIX_NODEID) != NULL);
}

/* Infos that say which node, and of it the key's value, which stays the program's. */
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

/* What a caller's library expects: a byte object with the process, and its data. */
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

/* ---- the question -------------------------------------------------------------------------------------- */

/* From 5.0 on a caller's library says of a key that is a node's which host it is on, and PMIX_OPTIONAL behind
 * that (who says that himself is not sent here at all). It looks for the answer there. A device is named by
 * its id, whatever host it is on. */
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

/* On success the answer has taken over `get`. The program answers at once, on this thread. */
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
    pmix_status_t (*original)(pmix_buffer_t *, pmix_modex_cbfunc_t, void *) = NULL;
    *(void **)&original = fab_repair_original("pmix_server_get");
    return original == NULL ? PMIX_ERR_NOT_SUPPORTED : original(buf, cbfunc, cbdata);
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

/* The same request with PMIX_IMMEDIATE; what cannot be packed again is refused. */
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
    if (!fab_repair_wanted(FAB_REPAIR_REQUESTS) || pmix_host_server.query == NULL)
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
    buf->unpack_ptr = start; /* not ours: the library's own function reads it from where it begins */
    return get_forward(buf, cbfunc, cbdata);
}

#if PMIX_VERSION_MAJOR >= 5
/* A refresh of what a caller was told: the library answers it, and leaves its record of the caller behind. A
 * library that has learned it has let go of it itself. */
pmix_status_t pmix_server_refresh_cache(pmix_server_caddy_t *cd, pmix_buffer_t *buf, pmix_op_cbfunc_t cbfunc)
{
    pmix_status_t (*original)(pmix_server_caddy_t *, pmix_buffer_t *, pmix_op_cbfunc_t) = NULL;
    pmix_object_t *record = (pmix_object_t *)cd;
    *(void **)&original = fab_repair_original(__func__);
    if (original == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    if (!fab_repair_wanted(FAB_REPAIR_REQUESTS))
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
