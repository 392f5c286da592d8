/* node_server.c - what a node's PMIx server answers. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/node/node_priv.h"
#include "fabricd/node/node_questions.h"
#include "fabricd/server/answers.h"
#include "fabricd/server/relayed_requests.h"
#include "fabricd/serving/served.h"
#include "pmix/relay/relay.h"

/* A request that may have to be answered here. The library keeps what it is about until it is answered. */
struct asked {
    pmix_proc_t requestor;
    pmix_fabric_operation_t op;
    const pmix_info_t *directives;
    pmix_query_t *queries; /* NULL: it is about a fabric */
    size_t n;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

/*
 * Before 6.0 a server that is attached to another one and has a query function of its own does not pass an
 * error on to its client, which then waits for ever. An answer without any value says the same.
 */
static pmix_status_t error_of_query(pmix_status_t status)
{
    return PMIX_VERSION_MAJOR < 6 ? PMIX_SUCCESS : status;
}

static void asked_reply(const struct asked *asked, pmix_status_t status, pmix_info_t *info, size_t n,
                        pmix_release_cbfunc_t release, void *release_data)
{
    if (status != PMIX_SUCCESS && asked->queries != NULL)
        status = error_of_query(status);
    asked->cbfunc(status, info, n, asked->cbdata, release, release_data);
}

/* From the mirror. */
static void on_own_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                          pmix_release_cbfunc_t release, void *release_data)
{
    struct asked *asked = cbdata;
    asked_reply(asked, status, info, n, release, release_data);
    free(asked);
}

static void answer_here(struct asked *asked)
{
    pmix_status_t rc;
    served_set_stale(true); /* what the scheduler serves is not known now; its next news say */
    if (asked->queries != NULL)
        rc = answer_query(&asked->requestor, asked->queries, asked->n, on_own_answer, asked);
    else
        rc = answer_fabric(&asked->requestor, asked->op, asked->directives, asked->n, on_own_answer, asked);
    if (rc != PMIX_SUCCESS)
        on_own_answer(rc, NULL, 0, asked, NULL, NULL);
}

/* From the scheduler, or from the relay, which has waited in vain. */
static void asked_on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                            pmix_release_cbfunc_t release, void *release_data)
{
    struct asked *asked = cbdata;
    if (status == PMIX_ERR_UNREACH || status == PMIX_ERR_TIMEOUT) {
        if (release != NULL)
            release(release_data);
        answer_here(asked);
        return;
    }
    asked_reply(asked, status, info, n, release, release_data);
    free(asked);
}

static pmix_status_t node_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                                 const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc,
                                 void *cbdata)
{
    struct asked *asked = malloc(sizeof(*asked));
    if (asked == NULL)
        return PMIX_ERR_NOMEM;
    *asked = (struct asked){.requestor = *requestor,
                            .op = op,
                            .directives = directives,
                            .n = n,
                            .cbfunc = cbfunc,
                            .cbdata = cbdata};
    pmix_status_t rc = pmixfab_server_fabric(requestor, op, directives, n, asked_on_answer, asked);
    if (rc != PMIX_SUCCESS)
        free(asked);
    return rc;
}

static pmix_status_t node_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n,
                                pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct asked *asked = malloc(sizeof(*asked));
    if (asked == NULL)
        return PMIX_ERR_NOMEM;
    *asked = (struct asked){
        .requestor = *requestor, .queries = queries, .n = n, .cbfunc = cbfunc, .cbdata = cbdata};
    struct node_queries named;
    pmix_status_t rc = node_name_host(queries, n, &named);
    if (rc == PMIX_SUCCESS)
        rc = relay_query(named.queries, named.n, asked_on_answer, asked);
    node_queries_free(&named);
    if (rc != PMIX_SUCCESS)
        on_own_answer(rc, NULL, 0, asked, NULL, NULL);
    return PMIX_SUCCESS;
}

/* Nodes deliver to the scheduler, not to each other. */
static pmix_status_t node_relayed(const pmix_proc_t *requestor, char **keys, const pmix_info_t info[],
                                  size_t n, pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    if (keys != NULL && keys[0] != NULL &&
        (strcmp(keys[0], RELAY_DELIVER) == 0 || strcmp(keys[0], RELAY_SCAN_REQUESTS) == 0))
        return PMIX_ERR_NOT_SUPPORTED;
    return answer_relayed(requestor, keys, info, n, cbfunc, cbdata);
}

pmix_server_module_t node_module = {
    .lookup = node_relayed,
    .query = node_query,
    .fabric = node_fabric,
};
