#include "fabricd/node_local.h"

#include <pmix.h>

#include "fabricd/answers_keys.h"

static bool is_local(const pmix_query_t *query, const char *key)
{
    struct fab_request request;
    return fab_request_parse(query->qualifiers, query->nqual, &request) == PMIX_SUCCESS &&
           answer_is_local(key, &request);
}

/* One of its keys is: then it becomes a question a key, because the other keys must not be about a node. */
static bool is_about_this_host(const pmix_query_t *query)
{
    for (char **key = query->keys; key != NULL && *key != NULL; key++)
        if (is_local(query, *key))
            return true;
    return false;
}

static size_t parts(const pmix_query_t *query)
{
    size_t n = 0;
    if (!is_about_this_host(query))
        return 1;
    while (query->keys[n] != NULL)
        n++;
    return n;
}

/* All of a question, or one key of it. */
static pmix_status_t copy(const pmix_query_t *from, const char *key, pmix_query_t *to)
{
    const char *host = key != NULL && is_local(from, key) ? answer_host() : NULL;
    size_t n = from->nqual + (host != NULL);
    pmix_status_t rc = PMIX_SUCCESS;
    if (key != NULL)
        PMIX_ARGV_APPEND(rc, to->keys, key);
    for (char **k = from->keys; key == NULL && rc == PMIX_SUCCESS && k != NULL && *k != NULL; k++)
        PMIX_ARGV_APPEND(rc, to->keys, *k);
    if (rc != PMIX_SUCCESS || n == 0)
        return rc;
    PMIX_QUERY_QUALIFIERS_CREATE(to, n);
    if (to->qualifiers == NULL)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < from->nqual; i++)
        PMIX_INFO_XFER(&to->qualifiers[i], &from->qualifiers[i]);
    if (host != NULL)
        PMIX_INFO_LOAD(&to->qualifiers[from->nqual], PMIX_HOSTNAME, host, PMIX_STRING);
    return PMIX_SUCCESS;
}

pmix_status_t node_name_host(pmix_query_t *queries, size_t n, struct node_queries *out)
{
    size_t all = 0, at = 0;
    bool any = false;
    for (size_t i = 0; queries != NULL && i < n; i++) {
        all += parts(&queries[i]);
        any = any || is_about_this_host(&queries[i]);
    }
    *out = (struct node_queries){.queries = queries, .n = n};
    if (!any)
        return PMIX_SUCCESS;
    *out = (struct node_queries){.n = all, .made = true};
    PMIX_QUERY_CREATE(out->queries, all);
    if (out->queries == NULL)
        return PMIX_ERR_NOMEM;
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++) {
        if (!is_about_this_host(&queries[i]))
            rc = copy(&queries[i], NULL, &out->queries[at++]);
        else
            for (char **key = queries[i].keys; rc == PMIX_SUCCESS && *key != NULL; key++)
                rc = copy(&queries[i], *key, &out->queries[at++]);
    }
    return rc;
}

void node_queries_free(struct node_queries *named)
{
    if (named->made && named->queries != NULL)
        PMIX_QUERY_FREE(named->queries, named->n);
    *named = (struct node_queries){0};
}
