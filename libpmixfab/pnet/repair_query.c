/*
 * repair_query.c - PMIx_Query_info_nb: a query that the library would crash on is refused before it.
 *
 * A server hands each query that arrives to this function, which compares keys[0] whether there are keys or
 * not, and which reads qualifiers as the type that they should have. One tool with one bad query ends the
 * server.
 */
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "pnet/repair.h"

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

static bool is_sound(const pmix_query_t *query)
{
    bool rank = false, nspace = false;
    if (query->keys == NULL || query->keys[0] == NULL || (query->qualifiers == NULL && query->nqual > 0))
        return false;
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *info = &query->qualifiers[i];
        if (!type_is_right(info))
            return false;
        rank |= PMIX_CHECK_KEY(info, PMIX_RANK);
        nspace |= PMIX_CHECK_KEY(info, PMIX_NSPACE) || PMIX_CHECK_KEY(info, PMIX_PROCID);
    }
    return !rank || nspace; /* a rank of no namespace is written through a null pointer */
}

pmix_status_t PMIx_Query_info_nb(pmix_query_t queries[], size_t nqueries, pmix_info_cbfunc_t cbfunc,
                                 void *cbdata)
{
    pmix_status_t (*original)(pmix_query_t[], size_t, pmix_info_cbfunc_t, void *) = NULL;
    *(void **)&original = fab_repair_original(__func__);
    if (original == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    for (size_t i = 0; fab_repair_wanted() && queries != NULL && i < nqueries; i++)
        if (!is_sound(&queries[i]))
            return PMIX_ERR_BAD_PARAM;
    return original(queries, nqueries, cbfunc, cbdata);
}
