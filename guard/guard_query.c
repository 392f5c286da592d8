/*
 * guard_query.c - queries that would crash the library, and memory that it leaks for each.
 *
 * A server compares keys[0] even without keys, and reads qualifiers as the expected type: one such query of a
 * tool ends it. These queries are refused here.
 *
 * In 4.2 the library passes each query to PMIx_Query_info_nb(). For a query for supported attributes (pattrs)
 * it calls back with its own record in place of the caller's: here the caller gets its own. The querying tool
 * writes each line of a description into a buffer, and past its end: so lines are truncated to its size.
 *
 * From 5.0 on the library searches each key itself, and passes the others to the server program; its copies
 * of the queries leak. Here the program is called at once, except for keys that only the library knows.
 */
#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard_priv.h"

#if GUARD_KNOWS_LIBRARY
#include <src/client/pmix_client_ops.h>
#include <src/server/pmix_server_ops.h>

/* Check qualifiers that the library reads itself, whose type it does not check. */
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
#if PMIX_VERSION_MAJOR < 5
        {PMIX_CLIENT_ATTRIBUTES, PMIX_STRING},
        {PMIX_SERVER_ATTRIBUTES, PMIX_STRING},
        {PMIX_HOST_ATTRIBUTES, PMIX_STRING},
        {PMIX_TOOL_ATTRIBUTES, PMIX_STRING},
#endif
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

#if PMIX_VERSION_MAJOR < 5
static bool asks_for_attributes(const pmix_query_t *query)
{
    return strcmp(query->keys[0], PMIX_QUERY_ATTRIBUTE_SUPPORT) == 0;
}

/* There it uses the index of the qualifier for the keys. */
static bool reads_beyond_keys(const pmix_query_t *query)
{
    size_t n_keys = 0;
    while (query->keys[n_keys] != NULL)
        n_keys++;
    return asks_for_attributes(query) && query->nqual > n_keys;
}
#else
static bool reads_beyond_keys(const pmix_query_t *query)
{
    (void)query;
    return false;
}
#endif

static bool query_is_sound(const pmix_query_t *query)
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
    /* a rank without a namespace is written through a null pointer */
    return (!rank || nspace) && !reads_beyond_keys(query);
}

static bool queries_are_sound(const pmix_query_t queries[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!query_is_sound(&queries[i]))
            return false;
    return true;
}

#if PMIX_VERSION_MAJOR < 5

/* The caller's callback, at the position where the library's record has it. */
struct caller {
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

#define DESCRIPTION_ROOM 54 /* pmix_attributes_print_attrs(): the rest of 141 bytes beside its columns */

static void cut_descriptions(const pmix_regattr_t *attributes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (char **line = attributes[i].description; line != NULL && *line != NULL; line++)
            if (strlen(*line) > DESCRIPTION_ROOM)
                (*line)[DESCRIPTION_ROOM] = '\0';
}

/* For each query, an array of the functions, and for each of them an array of attributes. */
static void cut_answers(const pmix_info_t *info, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const pmix_data_array_t *array = info[i].value.data.darray;
        if (info[i].value.type != PMIX_DATA_ARRAY || array == NULL)
            continue;
        if (array->type == PMIX_REGATTR)
            cut_descriptions(array->array, array->size);
        else if (array->type == PMIX_INFO)
            cut_answers(array->array, array->size);
    }
}

static void call_back(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_data)
{
    const pmix_query_caddy_t *own = cbdata;
    struct caller *caller = own->cbdata;
    if (status == PMIX_SUCCESS)
        cut_answers(info, n);
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

/* Return whether the first deciding query is one for attributes, not one for a fresh answer: the library
 * examines them in their order. */
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
    GUARD_ORIGINAL(PMIx_Query_info_nb);
    if (!guard_does(GUARD_REQUESTS) || queries == NULL)
        return original(queries, nqueries, cbfunc, cbdata);
    if (!queries_are_sound(queries, nqueries))
        return PMIX_ERR_BAD_PARAM;
    if (cbfunc != NULL && attributes_decide(queries, nqueries))
        return ask_for_attributes(original, queries, nqueries, cbfunc, cbdata);
    return original(queries, nqueries, cbfunc, cbdata);
}

#else

/* The library takes the qualifier's key for the names of the functions, and finds none. */
static bool names_functions(const pmix_query_t *query)
{
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *info = &query->qualifiers[i];
        if (PMIX_CHECK_KEY(info, PMIX_CLIENT_ATTRIBUTES) || PMIX_CHECK_KEY(info, PMIX_SERVER_ATTRIBUTES) ||
            PMIX_CHECK_KEY(info, PMIX_HOST_ATTRIBUTES) || PMIX_CHECK_KEY(info, PMIX_TOOL_ATTRIBUTES))
            return true;
    }
    return false;
}

/* Return whether only the library can answer. */
static bool is_of_library(const pmix_query_t *query)
{
    static const char *const keys[] = {PMIX_QUERY_ATTRIBUTE_SUPPORT, PMIX_QUERY_AVAIL_SERVERS,
                                       PMIX_QUERY_STABLE_ABI_VERSION, PMIX_QUERY_PROVISIONAL_ABI_VERSION};
    size_t known = 0, n_keys = 0;
    for (; query->keys[n_keys] != NULL; n_keys++)
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            known += strcmp(query->keys[n_keys], keys[i]) == 0;
    return known == n_keys;
}

static size_t count_queries(const pmix_query_caddy_t *asked, bool (*is)(const pmix_query_t *query))
{
    size_t n = 0;
    for (size_t i = 0; i < asked->nqueries; i++)
        n += is(&asked->queries[i]);
    return n;
}

/* The caller's callback, in place of the library's own record, whose queries are never freed. */
struct caller {
    pmix_query_caddy_t *asked;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

static void call_back(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_data)
{
    struct caller *caller = cbdata;
    PMIX_QUERY_FREE(caller->asked->queries, caller->asked->nqueries);
    if (caller->cbfunc != NULL)
        caller->cbfunc(status, info, n, caller->cbdata, release, release_data);
    free(caller);
}

/* Let the library make its own answer from that record. */
static bool ask_library(pmix_query_caddy_t *asked)
{
    GUARD_ORIGINAL(pmix_parse_localquery);
    struct caller *caller = malloc(sizeof(*caller));
    if (caller == NULL)
        return false;
    *caller = (struct caller){.asked = asked, .cbfunc = asked->cbfunc, .cbdata = asked->cbdata};
    asked->cbfunc = call_back;
    asked->cbdata = caller;
    original(-1, 0, asked);
    return true;
}

static void query_end(pmix_query_caddy_t *asked, pmix_status_t status, pmix_info_t *info, size_t n,
                      pmix_release_cbfunc_t release, void *release_data)
{
    PMIX_QUERY_FREE(asked->queries, asked->nqueries);
    if (asked->cbfunc != NULL)
        asked->cbfunc(status, info, n, asked->cbdata, release, release_data);
    else if (release != NULL)
        release(release_data);
    PMIX_RELEASE(asked);
}

static void query_answered(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                           pmix_release_cbfunc_t release, void *release_data)
{
    query_end(cbdata, status, info, n, release, release_data);
}

/* Also for this process's own queries. On the library's thread. */
void pmix_parse_localquery(int sd, short args, void *cbdata)
{
    GUARD_ORIGINAL(pmix_parse_localquery);
    pmix_query_caddy_t *asked = cbdata;
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (!guard_does(GUARD_REQUESTS) || pmix_host_server.query == NULL) {
        original(sd, args, cbdata);
        return;
    }
    if (asked->nqueries == 0 || !queries_are_sound(asked->queries, asked->nqueries))
        rc = PMIX_ERR_BAD_PARAM;
    else if (count_queries(asked, is_of_library) < asked->nqueries)
        rc = pmix_host_server.query(&pmix_globals.myid, asked->queries, asked->nqueries, query_answered,
                                    asked);
    else if (count_queries(asked, names_functions) > 0)
        rc = PMIX_ERR_NOT_SUPPORTED;
    else if (ask_library(asked))
        return;
    if (rc != PMIX_SUCCESS)
        query_end(asked, rc, NULL, 0, NULL, NULL);
}
#endif

#endif
