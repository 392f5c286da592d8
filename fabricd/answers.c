#include "fabricd/answers.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/log.h"
#include "fabricd/served.h"
#include "pmix/info.h"
#include "pmix/request.h"

static bool with_bytes;

void answers_init(bool remote)
{
    with_bytes = remote;
}

/* An answer on its way: freed by the library when it has packed it. */
struct answer {
    pmix_info_t *info;
    size_t n, allocated;
};

static void answer_free(void *cbdata)
{
    struct answer *answer = cbdata;
    if (answer->info != NULL)
        PMIX_INFO_FREE(answer->info, answer->allocated);
    free(answer);
}

static void send_answer(pmix_status_t status, struct answer *answer, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    if (status != PMIX_SUCCESS || answer == NULL) {
        cbfunc(status, NULL, 0, cbdata, answer != NULL ? answer_free : NULL, answer);
        return;
    }
    cbfunc(PMIX_SUCCESS, answer->info, answer->n, cbdata, answer_free, answer);
}

/* The plane that is asked for: the default one if it matches, else the first that does. */
static const struct served_plane *select_plane(const struct served_set *set,
                                               const struct fab_request *request)
{
    const struct served_plane *plane = served_default(set);
    if (plane != NULL && fab_request_matches(request, &plane->info))
        return plane;
    for (uint32_t i = 0; i < set->n; i++)
        if (fab_request_matches(request, &set->planes[i]->info))
            return set->planes[i];
    return NULL;
}

static struct fab_info_source source_of(const struct served_plane *plane)
{
    return (struct fab_info_source){.fab = plane->fab, .path = plane->path};
}

pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                            const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct fab_request request;
    struct served_set *set = served_get();
    struct answer *answer = calloc(1, sizeof(*answer));
    const struct served_plane *plane = NULL;
    (void)requestor; /* reading is for all */
    pmix_status_t rc = answer == NULL ? PMIX_ERR_NOMEM : fab_request_parse(directives, n, &request);
    if (rc == PMIX_SUCCESS && op != PMIX_FABRIC_REQUEST_INFO && op != PMIX_FABRIC_UPDATE_INFO)
        rc = PMIX_ERR_BAD_PARAM;
    if (rc == PMIX_SUCCESS && op == PMIX_FABRIC_UPDATE_INFO && !request.has_index)
        rc = PMIX_ERR_BAD_PARAM; /* the standard: an update names its fabric by its index */
    if (rc == PMIX_SUCCESS) {
        plane = set == NULL ? NULL : select_plane(set, &request);
        rc = plane == NULL ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS;
    }
    if (rc == PMIX_SUCCESS) {
        const struct fab_info_source source = source_of(plane);
        rc = fab_info_all(&source, with_bytes, &answer->info, &answer->n);
        answer->allocated = answer->n;
    }
    send_answer(rc, answer, cbfunc, cbdata);
    served_set_put(set);
    return PMIX_SUCCESS;
}

/* ---- queries ------------------------------------------------------------------------------------ */

/* PMIX_FABRIC_PLANE as a key: the names of all planes. */
static pmix_status_t all_planes(const struct served_set *set, pmix_value_t *value)
{
    pmix_data_array_t *array = malloc(sizeof(*array));
    char **names = calloc(set->n, sizeof(*names));
    if (array == NULL || names == NULL) {
        free(array);
        free(names);
        return PMIX_ERR_NOMEM;
    }
    const struct served_plane *first = served_default(set);
    names[0] = strdup(first->info.name); /* the default plane comes first */
    bool complete = names[0] != NULL;
    for (uint32_t i = 0, k = 1; i < set->n; i++)
        if (set->planes[i] != first)
            complete &= (names[k++] = strdup(set->planes[i]->info.name)) != NULL;
    *array = (pmix_data_array_t){.type = PMIX_STRING, .size = set->n, .array = names};
    value->type = PMIX_DATA_ARRAY;
    value->data.darray = array;
    if (!complete) {
        PMIX_VALUE_DESTRUCT(value);
        return PMIX_ERR_NOMEM;
    }
    return PMIX_SUCCESS;
}

static pmix_status_t answer_key(const struct served_set *set, const struct fab_request *request,
                                const char *key, pmix_info_t *out)
{
    pmix_status_t rc;
    const struct served_plane *plane = set == NULL ? NULL : select_plane(set, request);
    if (plane == NULL)
        return PMIX_ERR_NOT_FOUND;
    if (strcmp(key, PMIX_FABRIC_PLANE) == 0 && fab_request_empty(request)) {
        rc = all_planes(set, &out->value);
    } else {
        const struct fab_info_source source = source_of(plane);
        rc = fab_info_value(&source, key, &out->value);
    }
    if (rc == PMIX_SUCCESS)
        PMIX_LOAD_KEY(out->key, key);
    return rc;
}

static size_t count_keys(const pmix_query_t *queries, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; queries[i].keys != NULL && queries[i].keys[k] != NULL; k++)
            count++;
    return count;
}

/* All keys or none: an answer that lacks what was asked for would be taken for the whole. */
static pmix_status_t answer_all(const struct served_set *set, const pmix_query_t *queries, size_t n,
                                struct answer *answer)
{
    answer->allocated = count_keys(queries, n);
    if (answer->allocated == 0)
        return PMIX_ERR_BAD_PARAM;
    PMIX_INFO_CREATE(answer->info, answer->allocated);
    if (answer->info == NULL)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct fab_request request;
        pmix_status_t rc = fab_request_parse(queries[i].qualifiers, queries[i].nqual, &request);
        for (size_t k = 0; rc == PMIX_SUCCESS && queries[i].keys != NULL && queries[i].keys[k] != NULL; k++)
            rc = answer_key(set, &request, queries[i].keys[k], &answer->info[answer->n++]);
        if (rc != PMIX_SUCCESS)
            return rc;
    }
    return PMIX_SUCCESS;
}

pmix_status_t answer_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                           void *cbdata)
{
    (void)requestor;
    struct served_set *set = served_get();
    struct answer *answer = calloc(1, sizeof(*answer));
    pmix_status_t rc =
        answer == NULL || queries == NULL ? PMIX_ERR_BAD_PARAM : answer_all(set, queries, n, answer);
    send_answer(rc, answer, cbfunc, cbdata);
    served_set_put(set);
    return PMIX_SUCCESS;
}
