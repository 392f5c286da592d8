#include "pmix/relay/query.h"

#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/base/library_log.h"

/* Shared by the caller and the library's callback: the last one to release it frees it. */
struct fab_answer {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    unsigned refs;
    bool done;
    pmix_status_t status;
    pmix_query_t *query;
    pmix_info_t *info; /* the library's, until release is called */
    size_t n;
    pmix_release_cbfunc_t release;
    void *release_data;
};

void fab_answer_free(struct fab_answer *answer)
{
    if (answer == NULL)
        return;
    pthread_mutex_lock(&answer->lock);
    unsigned left = --answer->refs;
    pthread_mutex_unlock(&answer->lock);
    if (left > 0)
        return;
    if (answer->release != NULL)
        answer->release(answer->release_data);
    PMIX_QUERY_FREE(answer->query, 1);
    pthread_cond_destroy(&answer->arrived);
    pthread_mutex_destroy(&answer->lock);
    free(answer);
}

int fab_error_of(pmix_status_t status)
{
    switch (status) {
    case PMIX_SUCCESS:
        return PMIXFAB_OK;
    case PMIX_ERR_NOT_FOUND:
        return PMIXFAB_ERR_NOTFOUND;
    case PMIX_ERR_BAD_PARAM:
        return PMIXFAB_ERR_INVAL;
    case PMIX_ERR_NOMEM:
        return PMIXFAB_ERR_NOMEM;
    case PMIX_ERR_NOT_SUPPORTED:
        return PMIXFAB_ERR_UNSUPPORTED;
    case PMIX_ERR_NO_PERMISSIONS:
        return PMIXFAB_ERR_PERM;
    case PMIX_ERR_TIMEOUT:
        return PMIXFAB_ERR_TIMEOUT;
    case PMIX_ERR_UNREACH:
    case PMIX_ERR_LOST_CONNECTION:
    case PMIX_ERR_COMM_FAILURE:
    case PMIX_ERR_INIT:
        return PMIXFAB_ERR_UNREACH;
    default:
        return PMIXFAB_ERR_IO;
    }
}

static void query_on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                            pmix_release_cbfunc_t release, void *release_data)
{
    struct fab_answer *answer = cbdata;
    pthread_mutex_lock(&answer->lock);
    answer->status = status;
    answer->info = info;
    answer->n = info == NULL ? 0 : n;
    answer->release = release;
    answer->release_data = release_data;
    answer->done = true;
    pthread_cond_signal(&answer->arrived);
    pthread_mutex_unlock(&answer->lock);
    fab_answer_free(answer);
}

/*
 * Make the query: the keys, the caller's directives, and one more, without which the library answers from its
 * cache.
 */
static pmix_query_t *make_query(const char *const *keys, const pmix_info_t *directives, size_t ndirs)
{
    pmix_query_t *query;
    bool yes = true;
    PMIX_QUERY_CREATE(query, 1);
    if (query == NULL)
        return NULL;
    for (size_t i = 0; keys[i] != NULL; i++) {
        pmix_status_t rc;
        PMIX_ARGV_APPEND(rc, query->keys, keys[i]);
        if (rc != PMIX_SUCCESS)
            goto fail;
    }
    PMIX_QUERY_QUALIFIERS_CREATE(query, ndirs + 1);
    if (query->qualifiers == NULL)
        goto fail;
    for (size_t i = 0; i < ndirs; i++)
        PMIX_INFO_XFER(&query->qualifiers[i], &directives[i]);
    PMIX_INFO_LOAD(&query->qualifiers[ndirs], PMIX_QUERY_REFRESH_CACHE, &yes, PMIX_BOOL);
    return query;
fail:
    PMIX_QUERY_FREE(query, 1);
    return NULL;
}

static struct fab_answer *answer_new(pmix_query_t *query)
{
    struct fab_answer *answer = calloc(1, sizeof(*answer));
    pthread_condattr_t monotonic;
    if (answer == NULL)
        return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&answer->lock, NULL);
    pthread_cond_init(&answer->arrived, &monotonic);
    pthread_condattr_destroy(&monotonic);
    answer->query = query;
    answer->refs = 2;
    return answer;
}

/* Return whether the answer has arrived. */
static bool query_wait_answer(struct fab_answer *answer)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FAB_QUERY_SECONDS;
    pthread_mutex_lock(&answer->lock);
    while (!answer->done && pthread_cond_timedwait(&answer->arrived, &answer->lock, &until) != ETIMEDOUT)
        ;
    bool done = answer->done;
    pthread_mutex_unlock(&answer->lock);
    return done;
}

int fab_query(const char *const *keys, const pmix_info_t *directives, size_t ndirs, struct fab_answer **out)
{
    *out = NULL;
    if (!PMIx_Initialized()) {
        fab_log(PMIXFAB_LOG_ERROR, "PMIx is not initialized: call PMIx_tool_init() or PMIx_Init() first");
        return PMIXFAB_ERR_UNREACH;
    }
    pmix_query_t *query = make_query(keys, directives, ndirs);
    struct fab_answer *answer = query == NULL ? NULL : answer_new(query);
    if (answer == NULL) {
        if (query != NULL)
            PMIX_QUERY_FREE(query, 1);
        return PMIXFAB_ERR_NOMEM;
    }
    pmix_status_t status = PMIx_Query_info_nb(query, 1, query_on_answer, answer);
    if (status != PMIX_SUCCESS) { /* the callback will not come: release its reference */
        fab_answer_free(answer);
    } else if (!query_wait_answer(answer)) {
        status = PMIX_ERR_TIMEOUT;
    } else {
        status = answer->status;
    }
    if (status != PMIX_SUCCESS) {
        fab_log(PMIXFAB_LOG_INFO, "the PMIx server answers %s: %s", keys[0], PMIx_Error_string(status));
        fab_answer_free(answer); /* and ours. NOLINT(clang-analyzer-unix.Malloc): it does not count them */
        return fab_error_of(status);
    }
    *out = answer;
    return PMIXFAB_OK;
}

const pmix_value_t *fab_answer_value(const struct fab_answer *answer, const char *key, pmix_data_type_t type)
{
    for (size_t i = 0; i < answer->n; i++)
        if (PMIX_CHECK_KEY(&answer->info[i], key) && answer->info[i].value.type == type)
            return &answer->info[i].value;
    return NULL;
}
