/* relay_requests.c - requests of a server's clients to the scheduler: each is answered once. */
#include <limits.h>
#include <pmix.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "pmix/answers/answers.h"
#include "pmix/answers/request.h"
#include "pmix/relay/relay_state.h"
#include "pmix/relay/thread.h"
#include "topo/base/library_log.h"
#include "topo/base/milliseconds.h"

/* ---- answers ------------------------------------------------------------------------------------ */

struct answer {
    pmix_info_t *info;
    size_t n;
};

static void relay_answer_free(void *cbdata)
{
    struct answer *answer = cbdata;
    PMIX_INFO_FREE(answer->info, answer->n);
    free(answer);
}

static void answer_error(const struct relay_request *request, pmix_status_t status)
{
    if (strcmp(request->op, RELAY_QUERY) == 0)
        status = relay_error_of_query(status);
    fab_log(PMIXFAB_LOG_DEBUG, "relay: %s: %s", request->op, PMIx_Error_string(status));
    request->cbfunc(status, NULL, 0, request->cbdata, NULL, NULL);
}

static void answer_data(const struct relay_request *request, pmix_pdata_t *data, size_t n)
{
    struct answer *answer = calloc(1, sizeof(*answer));
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (answer != NULL)
        rc = relay_decode(data, n, strcmp(request->op, RELAY_QUERY) != 0, &answer->info, &answer->n);
    if (rc == PMIX_SUCCESS) {
        request->cbfunc(rc, answer->info, answer->n, request->cbdata, relay_answer_free, answer);
        return;
    }
    free(answer);
    fab_log(PMIXFAB_LOG_ERROR, "relay: invalid answer of the scheduler to %s: %s", request->op,
            PMIx_Error_string(rc));
    answer_error(request, rc);
}

/* ---- the table ---------------------------------------------------------------------------------- */

static void relay_request_put(struct relay_request *request)
{
    if (--request->refs > 0)
        return;
    if (request->info != NULL)
        PMIX_INFO_FREE(request->info, request->n);
    free(request);
}

/* Insert into the list in the order of deadlines: nearly always at the end. */
static void relay_request_insert(struct relay *relay, struct relay_request *request)
{
    struct relay_request *before = relay->list == NULL ? NULL : relay->list->prev;
    while (before != NULL && before->deadline > request->deadline)
        before = before == relay->list ? NULL : before->prev;
    if (before == NULL)
        DL_PREPEND(relay->list, request);
    else
        DL_APPEND_ELEM(relay->list, before, request);
    relay->waiting++;
    if (relay->wakes_at > request->deadline)
        relay_poke(relay);
}

/* Remove from the list: the caller that removes a request answers it. */
static void relay_request_remove(struct relay *relay, struct relay_request *request)
{
    relay_forget_attempt(relay, request);
    relay->waiting--;
    DL_DELETE(relay->list, request);
}

static bool means_lost(pmix_status_t status)
{
    return status == PMIX_ERR_UNREACH || status == PMIX_ERR_LOST_CONNECTION ||
           status == PMIX_ERR_COMM_FAILURE;
}

/* On PMIx's thread. The number identifies the attempt: an answer that comes too late finds no request. */
static void relay_request_on_answer(pmix_status_t status, pmix_pdata_t *data, size_t n, void *cbdata)
{
    struct relay *relay = &fab_relay;
    struct relay_request *request;
    uint64_t id = (uint64_t)(uintptr_t)cbdata;
    pthread_mutex_lock(&relay->lock);
    DL_SEARCH_SCALAR(relay->list, request, id, id);
    if (request != NULL && means_lost(status)) {
        relay_lost(relay);
        request = NULL;
    }
    if (request != NULL)
        relay_request_remove(relay, request);
    pthread_mutex_unlock(&relay->lock);
    if (request == NULL)
        return;
    if (status == PMIX_SUCCESS)
        answer_data(request, data, n);
    else
        answer_error(request, status);
    pthread_mutex_lock(&relay->lock);
    relay_request_put(request);
    pthread_mutex_unlock(&relay->lock);
}

/* ---- sending ------------------------------------------------------------------------------------ */

static void send_request(struct relay *relay, struct relay_request *request)
{
    char *keys[] = {(char *)request->op, NULL};
    uint64_t id = ++relay->last_id;
    request->id = id;
    request->refs++;
    relay->waiting--;
    relay->sending++;
    pthread_mutex_unlock(&relay->lock);
    pmix_status_t rc =
        PMIx_Lookup_nb(keys, request->info, request->n, relay_request_on_answer, (void *)(uintptr_t)id);
    pthread_mutex_lock(&relay->lock);
    if (--relay->sending == 0 && !relay->connected)
        relay_poke(relay);
    if (rc != PMIX_SUCCESS && request->id == id) /* no answer will come: the connection is lost */
        relay_lost(relay);
    relay_request_put(request);
}

void relay_send_waiting(struct relay *relay)
{
    struct relay_request *request;
    while (relay->connected && relay->waiting > 0) {
        DL_FOREACH(relay->list, request)
        {
            if (request->id == 0)
                break;
        }
        if (request == NULL)
            return;
        send_request(relay, request);
    }
}

/* On PMIx's thread. */
static void answer_expired(pmix_status_t status, void *cbdata)
{
    struct relay_request *request = cbdata;
    (void)status;
    answer_error(request, request->outcome);
    pthread_mutex_lock(&fab_relay.lock);
    relay_request_put(request);
    pthread_mutex_unlock(&fab_relay.lock);
}

int64_t relay_expire(struct relay *relay, int64_t now, bool all)
{
    while (relay->list != NULL && (all || relay->list->deadline <= now)) {
        struct relay_request *request = relay->list;
        relay_request_remove(relay, request);
        request->outcome = relay->connected && !all ? PMIX_ERR_TIMEOUT : PMIX_ERR_UNREACH;
        pthread_mutex_unlock(&relay->lock);
        fab_on_pmix_thread(answer_expired, request);
        pthread_mutex_lock(&relay->lock);
    }
    return relay->list == NULL ? INT64_MAX : relay->list->deadline;
}

/* ---- functions of a server's module ------------------------------------------------------------------ */

/* Make a request with room for n infos; NULL without memory. */
static struct relay_request *relay_request_new(const struct relay_request *like, size_t n)
{
    struct relay_request *request = malloc(sizeof(*request));
    if (request == NULL)
        return NULL;
    *request = *like;
    request->refs = 1;
    request->n = n;
    if (n > 0)
        PMIX_INFO_CREATE(request->info, n);
    if (n == 0 || request->info != NULL)
        return request;
    free(request);
    return NULL;
}

/*
 * Insert a request and send it, with this deadline (0: the relay's own, which is the maximum). Return false
 * without a connection: the caller keeps the request.
 */
static bool relay_request_start(struct relay_request *request, unsigned deadline_ms)
{
    struct relay *relay = &fab_relay;
    pthread_mutex_lock(&relay->lock);
    bool taken = relay->open && !relay->closing && relay->connected;
    if (taken) {
        if (deadline_ms == 0 || deadline_ms > relay->deadline_ms)
            deadline_ms = relay->deadline_ms;
        request->deadline = fab_now_ms() + deadline_ms;
        relay_request_insert(relay, request);
        send_request(relay, request);
    }
    pthread_mutex_unlock(&relay->lock);
    return taken;
}

/* Return the shortest PMIX_TIMEOUT of the caller if it is less than `most`; 0: no limit. */
static unsigned relay_patience(const pmix_info_t *info, size_t n, unsigned most)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t seconds = 0;
        if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT) && fab_request_read_number(&info[i].value, &seconds) &&
            seconds > 0 && seconds < (most == 0 ? UINT_MAX : most) / 1000)
            most = (unsigned)seconds * 1000;
    }
    return most;
}

static pmix_status_t relay_submit(struct relay_request *request, unsigned patience_ms)
{
    if (relay_request_start(request, patience_ms))
        return PMIX_SUCCESS;
    answer_error(request, PMIX_ERR_UNREACH);
    relay_request_put(request);
    return PMIX_SUCCESS;
}

pmix_status_t pmixfab_server_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                    const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                                    void *cbdata)
{
    const struct relay_request like = {.op = op == PMIX_FABRIC_REQUEST_INFO ? RELAY_REGISTER : RELAY_UPDATE,
                                       .cbfunc = cbfunc,
                                       .cbdata = cbdata};
    const size_t before = requestor != NULL;
    if (cbfunc == NULL || (directives == NULL && n > 0) ||
        (op != PMIX_FABRIC_REQUEST_INFO && op != PMIX_FABRIC_UPDATE_INFO))
        return PMIX_ERR_BAD_PARAM;
    if (relay_local_answer(requestor, op, directives, NULL, n, cbfunc, cbdata))
        return PMIX_SUCCESS;
    struct relay_request *request = relay_request_new(&like, before + n);
    if (request == NULL)
        return PMIX_ERR_NOMEM;
    if (requestor != NULL)
        PMIX_INFO_LOAD(&request->info[0], RELAY_REQUESTOR, requestor, PMIX_PROC);
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_XFER(&request->info[before + i], &directives[i]);
    return relay_submit(request, relay_patience(directives, n, 0));
}

static bool copy_queries(pmix_value_t *value, const pmix_query_t *queries, size_t n)
{
    pmix_data_array_t whole = {.type = PMIX_QUERY, .size = n, .array = (void *)queries};
    const pmix_value_t from = {.type = PMIX_DATA_ARRAY, .data.darray = &whole};
    return PMIx_Value_xfer(value, &from) == PMIX_SUCCESS;
}

pmix_status_t pmixfab_server_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n,
                                   pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    const struct relay_request like = {.op = RELAY_QUERY, .cbfunc = cbfunc, .cbdata = cbdata};
    if (cbfunc == NULL || queries == NULL || n == 0)
        return PMIX_ERR_BAD_PARAM;
    pmix_status_t refused = fab_answer_check(queries, n); /* a later error is lost: relay_error_of_query() */
    if (refused != PMIX_SUCCESS)
        return refused;
    if (relay_local_answer(requestor, PMIX_FABRIC_REQUEST_INFO, NULL, queries, n, cbfunc, cbdata))
        return PMIX_SUCCESS;
    struct relay_request *request = relay_request_new(&like, 1);
    if (request == NULL)
        return PMIX_ERR_NOMEM;
    PMIX_LOAD_KEY(request->info->key, RELAY_QUERIES);
    unsigned patience = 0;
    for (size_t i = 0; i < n; i++)
        patience = relay_patience(queries[i].qualifiers, queries[i].nqual, patience);
    if (copy_queries(&request->info->value, queries, n))
        return relay_submit(request, patience);
    relay_request_put(request);
    return PMIX_ERR_NOMEM;
}
