#include "fabricd/server/server_answers.h"

#include <stdlib.h>

#include "pmix/answers/answers.h"

static struct served *answers_served;
static bool with_bytes;
static const char *this_host;

void answers_init(struct served *served, bool remote)
{
    answers_served = served;
    with_bytes = remote;
}

void answer_host_is(const char *host)
{
    this_host = host;
}

const char *answer_host(void)
{
    return this_host;
}

/* Convert the served set for the answers; PMIX_ERR_NOMEM. free() planes. */
static pmix_status_t answers_from(const struct served_set *served, struct fab_answer_set *out)
{
    uint32_t n = served == NULL ? 0 : served->n;
    struct fab_answer_plane *planes = calloc((size_t)n + 1, sizeof(*planes));
    for (uint32_t i = 0; planes != NULL && i < n; i++)
        planes[i] = (struct fab_answer_plane){
            .fab = served->planes[i]->fab, .info = served->planes[i]->info, .path = served->planes[i]->path};
    *out = (struct fab_answer_set){.planes = planes,
                                   .n = n,
                                   .stale = served_is_stale(answers_served),
                                   .with_bytes = with_bytes,
                                   .host = this_host};
    return planes == NULL ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}

pmix_status_t answer_fabric(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                            const pmix_info_t directives[], size_t n, pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct served_set *served = served_get(answers_served);
    struct fab_answer_set set;
    struct fab_answered answered = {.status = answers_from(served, &set)};
    if (answered.status == PMIX_SUCCESS)
        fab_answer_fabric(&set, requestor, op, directives, n, &answered);
    free((void *)set.planes);
    fab_answer_send(&answered, cbfunc, cbdata);
    served_set_put(served);
    return PMIX_SUCCESS;
}

pmix_status_t answer_query(pmix_proc_t *requestor, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                           void *cbdata)
{
    struct served_set *served = served_get(answers_served);
    struct fab_answer_set set;
    struct fab_answered answered = {.status = answers_from(served, &set)};
    (void)requestor;
    if (answered.status == PMIX_SUCCESS)
        fab_answer_query(&set, queries, n, &answered);
    free((void *)set.planes);
    fab_answer_send(&answered, cbfunc, cbdata);
    served_set_put(served);
    return PMIX_SUCCESS;
}
