/*
 * repair_query.c - PMIx_Query_info_nb: queries that the library would crash on.
 *
 * A server hands each query that arrives to this function, which compares keys[0] whether there are keys or
 * not, and which reads qualifiers as the type that they should have: those are refused before it. And where
 * it is asked what attributes are supported (pattrs), it calls back with its own record in place of the
 * caller's: the caller here gets its own again. One tool with one such query ends a stock server.
 */
#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <stdlib.h>
#include <string.h>

#include "mca/repairs/repair.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_REQUESTS

/* Qualifiers that the library reads itself, with the type that it takes for granted. */
static bool type_is_right(const pmix_info_t *info)
{
    static const struct {
        const char *key;
        pmix_data_type_t type;
    } read[] = {
        {PMIX_PROCID, PMIX_PROC},
        {PMIX_NSPACE, PMIX_STRING},
        {PMIX_RANK, PMIX_PROC_RANK},
        {PMIX_HOSTNAME, PMIX_STRING},
        {PMIX_CLIENT_ATTRIBUTES, PMIX_STRING},
        {PMIX_SERVER_ATTRIBUTES, PMIX_STRING},
        {PMIX_HOST_ATTRIBUTES, PMIX_STRING},
        {PMIX_TOOL_ATTRIBUTES, PMIX_STRING},
    };
    if (info->value.type == PMIX_STRING && info->value.data.string == NULL)
        return false;
    if (info->value.type == PMIX_PROC && info->value.data.proc == NULL)
        return false;
    for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++)
        if (PMIX_CHECK_KEY(info, read[i].key))
            return info->value.type == read[i].type;
    return true;
}

static bool asks_for_attributes(const pmix_query_t *query)
{
    return strcmp(query->keys[0], PMIX_QUERY_ATTRIBUTE_SUPPORT) == 0;
}

static bool query_is_sound(const pmix_query_t *query)
{
    bool rank = false, nspace = false;
    size_t n_keys = 0;
    if (query->keys == NULL || query->keys[0] == NULL || (query->qualifiers == NULL && query->nqual > 0))
        return false;
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *info = &query->qualifiers[i];
        if (!type_is_right(info))
            return false;
        rank |= PMIX_CHECK_KEY(info, PMIX_RANK);
        nspace |= PMIX_CHECK_KEY(info, PMIX_NSPACE) || PMIX_CHECK_KEY(info, PMIX_PROCID);
    }
    while (query->keys[n_keys] != NULL)
        n_keys++;
    if (asks_for_attributes(query) && query->nqual > n_keys)
        return false;       /* it takes the key of the same number as the qualifier */
    return !rank || nspace; /* a rank of no namespace is written through a null pointer */
}

/* Who is to be called back, in the place where the library's record holds it. */
struct caller {
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

static void call_back(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_data)
{
    const pmix_query_caddy_t *own = cbdata;
    struct caller *caller = own->cbdata;
    caller->cbfunc(status, info, n, caller->cbdata, release, release_data);
    free(caller);
}

typedef pmix_status_t (*query_fn)(pmix_query_t[], size_t, pmix_info_cbfunc_t, void *);

static pmix_status_t ask_for_attributes(query_fn original, pmix_query_t queries[], size_t n,
                                        pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct caller *caller = malloc(sizeof(*caller));
    if (caller == NULL)
        return PMIX_ERR_NOMEM;
    *caller = (struct caller){.cbfunc = cbfunc, .cbdata = cbdata};
    pmix_status_t rc = original(queries, n, call_back, caller);
    if (rc != PMIX_SUCCESS)
        free(caller);
    return rc;
}

/* The library looks at one query after the other: the first that decides is the first for attributes, or the
 * first that wants a fresh answer. */
static bool attributes_decide(const pmix_query_t queries[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (asks_for_attributes(&queries[i]))
            return true;
        for (size_t k = 0; k < queries[i].nqual; k++)
            if (PMIX_CHECK_KEY(&queries[i].qualifiers[k], PMIX_QUERY_REFRESH_CACHE) &&
                PMIX_INFO_TRUE(&queries[i].qualifiers[k]))
                return false;
        if (strcmp(queries[i].keys[0], PMIX_QUERY_AVAIL_SERVERS) == 0)
            return false;
    }
    return false;
}

pmix_status_t PMIx_Query_info_nb(pmix_query_t queries[], size_t nqueries, pmix_info_cbfunc_t cbfunc,
                                 void *cbdata)
{
    query_fn original = NULL;
    *(void **)&original = fab_repair_original(__func__);
    if (original == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    if (!fab_repair_wanted(FAB_REPAIR_REQUESTS) || queries == NULL)
        return original(queries, nqueries, cbfunc, cbdata);
    for (size_t i = 0; i < nqueries; i++)
        if (!query_is_sound(&queries[i]))
            return PMIX_ERR_BAD_PARAM;
    if (cbfunc != NULL && attributes_decide(queries, nqueries))
        return ask_for_attributes(original, queries, nqueries, cbfunc, cbdata);
    return original(queries, nqueries, cbfunc, cbdata);
}

#endif
