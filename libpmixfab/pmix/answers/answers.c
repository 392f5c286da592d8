#include "pmix/answers/answers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/device.h"
#include "pmix/answers/keys.h"
#include "pmix/answers/plane_memory.h"

/* Called by the PMIx library after it has packed the answer. */
static void pmix_answer_free(void *cbdata)
{
    struct fab_answered *answered = cbdata;
    fab_infos_free(answered->info, answered->allocated);
    free(answered);
}

void fab_answer_send(struct fab_answered *answered, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct fab_answered *kept = malloc(sizeof(*kept));
    pmix_status_t status = kept != NULL ? answered->status : PMIX_ERR_NOMEM;
    if (status != PMIX_SUCCESS) {
        fab_infos_free(answered->info, answered->allocated);
        free(kept);
        cbfunc(status, NULL, 0, cbdata, NULL, NULL);
        return;
    }
    *kept = *answered;
    cbfunc(PMIX_SUCCESS, kept->info, kept->n, cbdata, pmix_answer_free, kept);
}

/* The index that PMIX_FABRIC_CONSTRUCT and, from 6.1 on, PMIx_Fabric_construct() set. */
static bool is_no_index(size_t index)
{
    return index == 0 || index == SIZE_MAX;
}

/*
 * Find the plane for an update with index 0. The PMIx library always leaves 0 in the index of pmix_fabric_t,
 * and an update sends this 0. It means the only plane that this caller was given. If fabricd has restarted
 * and the caller is a client of another server, the caller is unknown. Then the plane is clear only if there
 * is just one. PMIX_ERR_BAD_PARAM: the index may mean several planes.
 */
static pmix_status_t plane_for_request(const struct fab_answer_set *set, pmix_fabric_operation_t op,
                                       const struct fab_request *request, const pmix_proc_t *requestor,
                                       const struct fab_answer_plane **plane)
{
    if (op != PMIX_FABRIC_UPDATE_INFO || !is_no_index(request->index)) {
        *plane = answer_plane(set, request);
    } else {
        uint32_t meant = plane_memory_meant_by_zero(requestor);
        if (meant == PLANE_MEMORY_SEVERAL || (meant == PLANE_MEMORY_NOTHING && set->n > 1))
            return PMIX_ERR_BAD_PARAM;
        *plane = meant == PLANE_MEMORY_NOTHING ? answer_default(set) : answer_find(set, meant);
    }
    return *plane == NULL ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS;
}

/* A directive may request the devices: one more element, which holds them all. */
static pmix_status_t append_devices(const struct fab_answer_plane *plane, const struct fab_request *request,
                                    struct fab_answered *answer)
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

static pmix_status_t answer_fill(const struct fab_answer_plane *plane, bool with_bytes,
                                 const struct fab_request *request, struct fab_answered *answer)
{
    const struct fab_info_source source = {.fab = plane->fab, .path = plane->path, .view = request->view};
    pmix_status_t rc = fab_info_all(&source, with_bytes, &answer->info, &answer->n);
    answer->allocated = answer->n;
    if (rc == PMIX_SUCCESS && request->devices)
        rc = append_devices(plane, request, answer);
    return rc;
}

void fab_answer_fabric(const struct fab_answer_set *set, const pmix_proc_t *requestor,
                       pmix_fabric_operation_t op, const pmix_info_t directives[], size_t n,
                       struct fab_answered *out)
{
    struct fab_request request;
    const struct fab_answer_plane *plane = NULL;
    *out = (struct fab_answered){.info = NULL};
    pmix_status_t rc = fab_request_parse(directives, n, &request);
    if (rc == PMIX_SUCCESS && op != PMIX_FABRIC_REQUEST_INFO && op != PMIX_FABRIC_UPDATE_INFO)
        rc = PMIX_ERR_BAD_PARAM;
    if (rc == PMIX_SUCCESS && op == PMIX_FABRIC_UPDATE_INFO && !request.has_index)
        rc = PMIX_ERR_BAD_PARAM; /* the standard: an update names its fabric by its index */
    if (rc == PMIX_SUCCESS &&
        fab_request_refused(&request, FAB_HEEDS_VIEW | FAB_HEEDS_DEVICES | FAB_HEEDS_CONTENTS |
                                          (request.devices ? FAB_HEEDS_CONDITIONS : 0)))
        rc = PMIX_ERR_NOT_SUPPORTED;
    if (rc == PMIX_SUCCESS)
        rc = plane_for_request(set, op, &request, requestor, &plane);
    if (rc == PMIX_SUCCESS)
        rc = answer_fill(plane, set->with_bytes, &request, out);
    if (rc == PMIX_SUCCESS)
        plane_memory_note(requestor, plane->info.index);
    out->status = rc;
}

/* Return PMIX_SUCCESS if something is requested, and the answer cannot become too large. */
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

pmix_status_t fab_answer_check(const pmix_query_t *queries, size_t n)
{
    size_t count;
    pmix_status_t rc = count_keys(queries, n, &count);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++) {
        struct fab_request request;
        rc = fab_request_parse(queries[i].qualifiers, queries[i].nqual, &request);
        for (size_t k = 0; rc == PMIX_SUCCESS && queries[i].keys != NULL && queries[i].keys[k] != NULL; k++)
            if (!answer_heeds(queries[i].keys[k], &request))
                rc = PMIX_ERR_NOT_SUPPORTED;
    }
    return rc;
}

/* Answer all keys or none: a partial answer would be taken for the whole. */
static pmix_status_t answer_all(const struct fab_answer_set *set, const pmix_query_t *queries, size_t n,
                                struct fab_answered *answer)
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

void fab_answer_query(const struct fab_answer_set *set, const pmix_query_t *queries, size_t n,
                      struct fab_answered *out)
{
    *out = (struct fab_answered){.info = NULL};
    out->status = queries == NULL ? PMIX_ERR_BAD_PARAM : answer_all(set, queries, n, out);
}
