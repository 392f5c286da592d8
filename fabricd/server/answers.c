#include "fabricd/server/answers.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/server/answers_keys.h"
#include "fabricd/server/plane_memory.h"
#include "pmix/values/device.h"

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

static void pmix_answer_free(void *cbdata)
{
    struct answer *answer = cbdata;
    fab_infos_free(answer->info, answer->allocated);
    free(answer);
}

static void send_answer(pmix_status_t status, struct answer *answer, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    if (status != PMIX_SUCCESS || answer == NULL) {
        cbfunc(status, NULL, 0, cbdata, answer != NULL ? pmix_answer_free : NULL, answer);
        return;
    }
    cbfunc(PMIX_SUCCESS, answer->info, answer->n, cbdata, pmix_answer_free, answer);
}

/*
 * The library leaves 0 in pmix_fabric_t's index whatever we tell it, and an update asks for that: it means
 * the plane that this caller was given. To one who was given nothing it means plane 0, or where there is none
 * of this number what a register without directives gives.
 */
static const struct served_plane *plane_for_request(const struct served_set *set, pmix_fabric_operation_t op,
                                                    const struct fab_request *request,
                                                    const pmix_proc_t *requestor)
{
    if (op != PMIX_FABRIC_UPDATE_INFO || request->index != 0)
        return answer_plane(set, request);
    uint32_t meant = plane_memory_meant_by_zero(requestor);
    if (meant != PLANE_MEMORY_NOTHING)
        return served_find(set, meant);
    const struct served_plane *plane = answer_plane(set, request);
    return plane != NULL ? plane : served_default(set);
}

/* A directive may ask for the devices: one element more, that holds them all. */
static pmix_status_t append_devices(const struct served_plane *plane, const struct fab_request *request,
                                    struct answer *answer)
{
    pmix_info_t *more = realloc(answer->info, (answer->n + 1) * sizeof(*more));
    if (more == NULL)
        return PMIX_ERR_NOMEM;
    answer->info = more;
    answer->allocated = answer->n + 1;
    if (answer->n > 0)
        more[answer->n - 1].flags &= ~(pmix_info_directives_t)PMIX_INFO_ARRAY_END;
    memset(&more[answer->n], 0, sizeof(*more));
    more[answer->n].flags = PMIX_INFO_ARRAY_END;
    PMIX_LOAD_KEY(more[answer->n].key, PMIX_FABRIC_DEVICES);
    return fab_devices_value(plane->fab, request, &more[answer->n++].value);
}

static pmix_status_t answer_fill(const struct served_plane *plane, const struct fab_request *request,
                                 struct answer *answer)
{
    const struct fab_info_source source = {.fab = plane->fab, .path = plane->path, .view = request->view};
    pmix_status_t rc = fab_info_all(&source, with_bytes, &answer->info, &answer->n);
    answer->allocated = answer->n;
    if (rc == PMIX_SUCCESS && request->devices)
        rc = append_devices(plane, request, answer);
    return rc;
}

pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                            const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct fab_request request;
    struct served_set *set = served_get();
    struct answer *answer = calloc(1, sizeof(*answer));
    const struct served_plane *plane = NULL;
    pmix_status_t rc = answer == NULL ? PMIX_ERR_NOMEM : fab_request_parse(directives, n, &request);
    if (rc == PMIX_SUCCESS && op != PMIX_FABRIC_REQUEST_INFO && op != PMIX_FABRIC_UPDATE_INFO)
        rc = PMIX_ERR_BAD_PARAM;
    if (rc == PMIX_SUCCESS && op == PMIX_FABRIC_UPDATE_INFO && !request.has_index)
        rc = PMIX_ERR_BAD_PARAM; /* the standard: an update names its fabric by its index */
    if (rc == PMIX_SUCCESS) {
        plane = set == NULL ? NULL : plane_for_request(set, op, &request, requestor);
        rc = plane == NULL ? PMIX_ERR_NOT_FOUND : answer_fill(plane, &request, answer);
    }
    if (rc == PMIX_SUCCESS)
        plane_memory_note(requestor, plane->info.index);
    send_answer(rc, answer, cbfunc, cbdata);
    served_set_put(set);
    return PMIX_SUCCESS;
}

/* PMIX_SUCCESS: something is asked for, and not so much that the answer would be a danger. */
static pmix_status_t count_keys(const pmix_query_t *queries, size_t n, size_t *count)
{
    size_t large = 0;
    *count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; queries[i].keys != NULL && queries[i].keys[k] != NULL; k++) {
            large += answer_is_large(queries[i].keys[k]);
            if (++*count > ANSWERS_MAX_KEYS || large > ANSWERS_MAX_LARGE)
                return PMIX_ERR_OUT_OF_RESOURCE;
        }
    return *count == 0 ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS;
}

/* All keys or none: an answer that lacks what was asked for would be taken for the whole. */
static pmix_status_t answer_all(const struct served_set *set, const pmix_query_t *queries, size_t n,
                                struct answer *answer)
{
    size_t count;
    pmix_status_t rc = count_keys(queries, n, &count);
    if (rc != PMIX_SUCCESS)
        return rc;
    answer->info = calloc(count, sizeof(*answer->info));
    if (answer->info == NULL)
        return PMIX_ERR_NOMEM;
    answer->allocated = count;
    answer->info[count - 1].flags = PMIX_INFO_ARRAY_END;
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++) {
        struct fab_request request;
        rc = fab_request_parse(queries[i].qualifiers, queries[i].nqual, &request);
        for (size_t k = 0; rc == PMIX_SUCCESS && queries[i].keys != NULL && queries[i].keys[k] != NULL; k++) {
            pmix_info_t *info = &answer->info[answer->n++];
            PMIX_LOAD_KEY(info->key, queries[i].keys[k]);
            rc = answer_key(set, &request, queries[i].keys[k], &info->value);
        }
    }
    return rc;
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
