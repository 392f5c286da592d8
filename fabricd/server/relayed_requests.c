#include "fabricd/server/relayed_requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fabricd/server/server.h"
#include "fabricd/server/server_answers.h"
#include "fabricd/server/subscribers.h"
#include "pmix/answers/info.h"
#include "pmix/relay/relay.h"

/* Refuse a delivery of an old node, from before nodes had their own channel. */
static pmix_status_t relayed_old_delivery(pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    static const char *const keys[] = {RELAY_CODE, RELAY_REASON, RELAY_DIGEST};
    pmix_pdata_t data[3];
    for (size_t i = 0; i < 3; i++) {
        PMIX_PDATA_CONSTRUCT(&data[i]);
        data[i].proc = *server_self();
        PMIX_LOAD_KEY(data[i].key, keys[i]);
    }
    data[0].value.type = PMIX_INT32;
    data[0].value.data.int32 = PMIXFAB_ERR_OLDER;
    data[1].value.type = PMIX_STRING;
    data[1].value.data.string = "this scheduler accepts nodes over a channel of its own, no longer over "
                                "PMIx: upgrade fabricd on this node, and set scheduler = HOST there";
    data[2].value.type = PMIX_UINT64;
    cbfunc(PMIX_SUCCESS, data, 3, cbdata); /* the library packs it before it returns */
    return PMIX_SUCCESS;
}

/* The destination of the answer to a relayed request. */
struct way {
    pmix_lookup_cbfunc_t cbfunc;
    void *cbdata;
};

/* Return an info array as published data. The library packs it before cbfunc returns, so the values are only
 * lent. */
static void relayed_on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                              pmix_release_cbfunc_t release, void *release_data)
{
    struct way *way = cbdata;
    pmix_pdata_t *data = NULL;
    if (status == PMIX_SUCCESS && n > 0) {
        data = calloc(n, sizeof(*data));
        status = data == NULL ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
    }
    for (size_t i = 0; data != NULL && i < n; i++) {
        data[i].proc = *server_self();
        PMIX_LOAD_KEY(data[i].key, info[i].key);
        data[i].value = info[i].value;
    }
    way->cbfunc(status, data, data == NULL ? 0 : n, way->cbdata);
    free(data);
    free(way);
    if (release != NULL)
        release(release_data);
}

static pmix_status_t relayed_query(pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                                   struct way *way)
{
    for (size_t i = 0; i < n; i++) {
        if (!PMIX_CHECK_KEY(&info[i], RELAY_QUERIES))
            continue;
        const pmix_value_t *value = &info[i].value;
        if (value->type != PMIX_DATA_ARRAY || value->data.darray == NULL ||
            value->data.darray->type != PMIX_QUERY || value->data.darray->array == NULL)
            return PMIX_ERR_BAD_PARAM;
        return answer_query(requestor, value->data.darray->array, value->data.darray->size, relayed_on_answer,
                            way);
    }
    return PMIX_ERR_BAD_PARAM;
}

static pmix_status_t relayed_subscribe(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                                       pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    struct subscriber_knows known = {.any = false};
    bool has_generation = false, has_published = false;
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIXFAB_KEY_GENERATION) && info[i].value.type == PMIX_UINT64) {
            known.generation = info[i].value.data.uint64;
            has_generation = true;
        } else if (PMIX_CHECK_KEY(&info[i], FAB_KEY_PUBLISHED) && info[i].value.type == PMIX_INT64) {
            known.published = info[i].value.data.int64;
            has_published = true;
        } else if (PMIX_CHECK_KEY(&info[i], PMIXFAB_KEY_STALE) && info[i].value.type == PMIX_BOOL) {
            known.says_stale = true;
            known.stale = info[i].value.data.flag;
        }
    }
    known.any = has_generation && has_published;
    return subscriber_add(requestor, &known, cbfunc, cbdata);
}

/*
 * Return a name for the requestor that is unique over all clients of all relays. It is a hash of both names,
 * since each may have the full length of a name. Only the first item of the request is used, the name that
 * the relay has added for its client. Later items may come from the client.
 */
static pmix_proc_t relayed_requestor(const pmix_proc_t *relay, const pmix_info_t info[], size_t n)
{
    pmix_proc_t names[2], who = *relay;
    if (info == NULL || n == 0 || !PMIX_CHECK_KEY(&info[0], RELAY_REQUESTOR) ||
        info[0].value.type != PMIX_PROC || info[0].value.data.proc == NULL)
        return who;
    const pmix_proc_t *client = info[0].value.data.proc;
    memset(names, 0, sizeof(names));
    memcpy(names[0].nspace, relay->nspace, strnlen(relay->nspace, PMIX_MAX_NSLEN));
    memcpy(names[1].nspace, client->nspace, strnlen(client->nspace, PMIX_MAX_NSLEN));
    names[0].rank = relay->rank;
    XXH128_hash_t hash = XXH3_128bits(names, sizeof(names));
    snprintf(who.nspace, sizeof(who.nspace), "relayed:%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    who.rank = client->rank;
    return who;
}

pmix_status_t answer_relayed(const pmix_proc_t *requestor, char **keys, const pmix_info_t info[], size_t n,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    if (keys == NULL || keys[0] == NULL)
        return PMIX_ERR_BAD_PARAM;
    const char *op = keys[0];
    if (strcmp(op, RELAY_SUBSCRIBE) == 0)
        return relayed_subscribe(requestor, info, n, cbfunc, cbdata);
    if (strcmp(op, RELAY_DELIVER) == 0)
        return relayed_old_delivery(cbfunc, cbdata);
    bool is_register = strcmp(op, RELAY_REGISTER) == 0, is_update = strcmp(op, RELAY_UPDATE) == 0;
    if (!is_register && !is_update && strcmp(op, RELAY_QUERY) != 0)
        return PMIX_ERR_NOT_FOUND;
    struct way *way = malloc(sizeof(*way));
    if (way == NULL)
        return PMIX_ERR_NOMEM;
    *way = (struct way){cbfunc, cbdata};
    pmix_proc_t from = is_register || is_update ? relayed_requestor(requestor, info, n) : *requestor;
    pmix_status_t rc;
    if (is_register || is_update)
        rc = answer_fabric(&from, is_register ? PMIX_FABRIC_REQUEST_INFO : PMIX_FABRIC_UPDATE_INFO, info, n,
                           relayed_on_answer, way);
    else
        rc = relayed_query(&from, info, n, way);
    if (rc != PMIX_SUCCESS)
        free(way);
    return rc;
}
