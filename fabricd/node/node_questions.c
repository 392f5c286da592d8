#include "fabricd/node/node_questions.h"

#include <pmix.h>

#include "fabricd/server/answers.h"
#include "pmix/answers/keys.h"

#define MOST_COPIES 65536 /* of qualifiers: a question with many of both becomes keys times qualifiers */

/* A question, looked at. */
struct seen {
    const pmix_query_t *query;
    struct fab_request request;
    bool readable; /* what is not is answered by who gets it */
    size_t n_keys, n_local;
};

static bool is_local(const struct seen *seen, const char *key)
{
    return seen->readable && answer_is_local(key, &seen->request);
}

static struct seen query_classify(const pmix_query_t *query)
{
    struct seen seen = {.query = query};
    seen.readable = fab_request_parse(query->qualifiers, query->nqual, &seen.request) == PMIX_SUCCESS;
    for (; query->keys != NULL && query->keys[seen.n_keys] != NULL; seen.n_keys++)
        seen.n_local += is_local(&seen, query->keys[seen.n_keys]);
    return seen;
}

/* All of a question, or one key of it. */
static pmix_status_t query_copy(const struct seen *seen, const char *key, pmix_query_t *to)
{
    const pmix_query_t *from = seen->query;
    const char *host = key != NULL && is_local(seen, key) ? answer_host() : NULL;
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

/* One with a key about this host becomes a question a key, because the others must not be about a node. */
static pmix_status_t copy_parts(const pmix_query_t *query, pmix_query_t *to, size_t *at)
{
    struct seen seen = query_classify(query);
    pmix_status_t rc = PMIX_SUCCESS;
    if (seen.n_local == 0)
        return query_copy(&seen, NULL, &to[(*at)++]);
    for (char **key = query->keys; rc == PMIX_SUCCESS && *key != NULL; key++)
        rc = query_copy(&seen, *key, &to[(*at)++]);
    return rc;
}

pmix_status_t node_name_host(pmix_query_t *queries, size_t n, struct node_queries *out)
{
    size_t all = 0, local = 0, copies = 0, at = 0;
    *out = (struct node_queries){.queries = queries, .n = n};
    for (size_t i = 0; queries != NULL && i < n; i++) {
        struct seen seen = query_classify(&queries[i]);
        size_t parts = seen.n_local > 0 ? seen.n_keys : 1;
        local += seen.n_local;
        all += parts;
        copies += parts * (seen.query->nqual + 1);
    }
    if (local == 0)
        return PMIX_SUCCESS;
    if (copies > MOST_COPIES)
        return PMIX_ERR_OUT_OF_RESOURCE;
    *out = (struct node_queries){.n = all, .made = true};
    PMIX_QUERY_CREATE(out->queries, all);
    pmix_status_t rc = out->queries == NULL ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++)
        rc = copy_parts(&queries[i], out->queries, &at);
    return rc;
}

void node_queries_free(struct node_queries *named)
{
    if (named->made && named->queries != NULL)
        PMIX_QUERY_FREE(named->queries, named->n);
    *named = (struct node_queries){0};
}
