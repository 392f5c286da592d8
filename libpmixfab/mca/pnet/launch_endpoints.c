/* launch_endpoints.c - a starter's endpoints: asked for with the job's launch information, given back at its
 * end. */
#include <stdlib.h>
#include <string.h>

#include "mca/pnet/launch_news.h"
#include "mca/pnet/pnet_component.h"
#include "mca/pnet/pnet_endpoints.h"
#include "mca/pnet/pnet_launch.h"
#include "pmix/launch/job_endpoints.h"
#include "topo/model/model.h"

#include <src/class/pmix_list.h>

#define MAX_SECONDS 600

struct pnet_launch_params pnet_launch_params;

/* The jobs that were asked for. The library's thread. */
static struct asked_job {
    struct asked_job *next;
    pmix_namespace_t *held; /* by an entry of ours in the library's list */
    bool may_have;          /* fabricd was there, and a take whose answer was lost may have been good */
    bool ended;             /* but fabricd could not be told so */
    char nspace[PMIX_MAX_NSLEN + 1];
} * asked_jobs;

static struct asked_job **asked_find(const char *nspace)
{
    struct asked_job **at = &asked_jobs;
    while (*at != NULL && strcmp((*at)->nspace, nspace) != 0)
        at = &(*at)->next;
    return at;
}

/* The library tells a component only of the end of jobs that it keeps variables of. An entry of its list
 * holds the job, and up to 6.1 does not let it go: who made it does. */
static bool asked_watch(struct asked_job *asked, pmix_namespace_t *job)
{
    pmix_nspace_env_cache_t *cache;
    PMIX_LIST_FOREACH(cache, &pmix_pnet_globals.nspaces, pmix_nspace_env_cache_t)
    {
        if (strcmp(cache->ns->nspace, job->nspace) == 0)
            return true;
    }
    if ((cache = PMIX_NEW(pmix_nspace_env_cache_t)) == NULL)
        return false;
    PMIX_RETAIN(job);
    cache->ns = asked->held = job;
    pmix_list_append(&pmix_pnet_globals.nspaces, &cache->super);
    return true;
}

static bool asked_remember(pmix_namespace_t *job)
{
    struct asked_job **at = asked_find(job->nspace);
    if (*at == NULL && (*at = calloc(1, sizeof(**at))) != NULL)
        PMIX_LOAD_NSPACE((*at)->nspace, job->nspace);
    if (*at == NULL || !asked_watch(*at, job))
        return false;
    (*at)->ended = false;
    return true;
}

static struct pnet_endpoints_request endpoints_request(const char *job)
{
    const int seconds = pnet_launch_params.seconds;
    return (struct pnet_endpoints_request){.rundir = pnet_launch_params.rundir,
                                           .job = job,
                                           .seconds = seconds < 1             ? 1
                                                      : seconds > MAX_SECONDS ? MAX_SECONDS
                                                                              : seconds};
}

/* The entry is out of the list, and the library still has the job. */
static void asked_let_go(struct asked_job *asked)
{
    pmix_namespace_t *job = asked->held;
    asked->held = NULL;
    if (job != NULL)
        PMIX_RELEASE(job);
}

/* Nobody heard it, or could do it now. */
static bool asked_again(int code)
{
    return code == PMIXFAB_ERR_TIMEOUT || code == PMIXFAB_ERR_UNREACH || code == PMIXFAB_ERR_BUSY ||
           code == PMIXFAB_ERR_IO || code == PMIXFAB_ERR_NOMEM;
}

/* Gives back what jobs had that have ended; what fails for now is tried before the next take and at the next
 * end. The error of that. */
static int asked_settle(struct fab_err *err)
{
    for (struct asked_job **at = &asked_jobs, *asked; (asked = *at) != NULL;) {
        const struct pnet_endpoints_request request = endpoints_request(asked->nspace);
        if (!asked->ended) {
            at = &asked->next;
            continue;
        }
        int rc = asked->may_have ? pnet_endpoints_give_back(&request, err) : PMIXFAB_OK;
        if (rc != PMIXFAB_OK)
            pnet_say("launch: %s: %s", asked->nspace, err->text);
        if (asked_again(rc))
            return rc;
        *at = asked->next;
        free(asked);
    }
    return PMIXFAB_OK;
}

static pmix_status_t endpoints_status(int code)
{
    switch (code) {
    case PMIXFAB_OK:
        return PMIX_SUCCESS;
    case PMIXFAB_ERR_NOMEM:
        return PMIX_ERR_NOMEM;
    case PMIXFAB_ERR_BUSY:
    case PMIXFAB_ERR_RANGE:
        return PMIX_ERR_OUT_OF_RESOURCE;
    case PMIXFAB_ERR_TIMEOUT:
        return PMIX_ERR_TIMEOUT;
    case PMIXFAB_ERR_UNREACH:
        return PMIX_ERR_UNREACH;
    case PMIXFAB_ERR_CONFLICT:
        return PMIX_ERR_EXISTS;
    case PMIXFAB_ERR_NOTFOUND:
    case PMIXFAB_ERR_UNSUPPORTED:
        return PMIX_ERR_NOT_SUPPORTED;
    default:
        return PMIX_ERROR;
    }
}

/* No fabricd with a pool is here. */
static bool endpoints_none(pmix_status_t rc)
{
    return rc == PMIX_ERR_UNREACH || rc == PMIX_ERR_NOT_SUPPORTED;
}

/* Then only who must have endpoints is told. What is refused is always told. */
static pmix_status_t endpoints_without(const struct pnet_endpoints_wanted *wanted, pmix_status_t rc)
{
    return endpoints_none(rc) && !wanted->required ? PMIX_SUCCESS : rc;
}

static pmix_status_t endpoints_take(const struct pnet_endpoints_wanted *wanted, const struct fab_job_map *map,
                                    struct pnet_endpoints_request *request, struct fab_blob *blob,
                                    struct fab_err *err)
{
    struct asked_job *asked = *asked_find(request->job);
    struct fab_blob_endpoints *list;
    const uint64_t count = fab_endpoints_needed(map, wanted->per_process, wanted->per_node);
    if (count > UINT32_MAX) {
        fab_fail(err, PMIXFAB_ERR_RANGE, "endpoints: too many are wanted, or no memory");
        return PMIX_ERR_OUT_OF_RESOURCE;
    }
    request->count = (uint32_t)count;
    int rc = pnet_endpoints_take(request, &list, &blob->n_endpoints, err);
    asked->may_have |= !endpoints_none(endpoints_status(rc));
    if (rc != PMIXFAB_OK) {
        pnet_say("launch: %s: %s", request->job, err->text);
        return endpoints_without(wanted, endpoints_status(rc));
    }
    blob->endpoints = list;
    blob->per_process = wanted->per_process;
    blob->per_node = wanted->per_node;
    return PMIX_SUCCESS;
}

pmix_status_t pnet_launch_endpoints(pmix_namespace_t *job, const struct pnet_endpoints_wanted *wanted,
                                    const struct fab_job_map *map, struct fab_blob *blob, struct fab_err *err)
{
    struct pnet_endpoints_request request = endpoints_request(job->nspace);
    const struct fab_launch_job places = {.planes = blob->planes,
                                          .n_planes = blob->n_planes,
                                          .hosts = map->hosts,
                                          .n_hosts = map->n_hosts,
                                          .host_of = map->host_of,
                                          .n_ranks = map->n_ranks,
                                          .here = FAB_NONE};
    const char **planes = NULL;
    if (wanted->per_process == 0 && wanted->per_node == 0)
        return PMIX_SUCCESS;
    if (map->n_hosts == 0) {
        fab_fail(err, PMIXFAB_ERR_INVAL, "endpoints: they need PMIX_NODE_MAP and PMIX_PROC_MAP");
        return PMIX_ERR_BAD_PARAM;
    }
    request.planes = &blob->plane;
    request.n_planes = 1;
    if (blob->plane[0] == '\0') {
        if ((planes = fab_endpoints_planes(&places, &request.n_planes)) == NULL)
            return PMIX_ERR_NOMEM;
        request.planes = planes;
    }
    pmix_status_t rc =
        blob->n_planes == 0 || request.n_planes == 0 ? endpoints_without(wanted, PMIX_ERR_NOT_SUPPORTED)
        : asked_settle(err) == PMIXFAB_ERR_TIMEOUT   ? PMIX_ERR_TIMEOUT /* it would take that, too */
        : !asked_remember(job)                       ? PMIX_ERR_NOMEM
                                                     : endpoints_take(wanted, map, &request, blob, err);
    free((void *)planes);
    return rc;
}

void pnet_launch_end(pmix_namespace_t *job)
{
    struct asked_job *asked = *asked_find(job->nspace);
    struct fab_err err = {""};
    pnet_launch_news_forget(job->nspace);
    if (asked == NULL)
        return;
    asked_let_go(asked);
    asked->ended = true;
    (void)asked_settle(&err);
}

/* What jobs have that have not ended is free when this process has. */
void pnet_launch_endpoints_stop(void)
{
    pnet_launch_news_stop();
    while (asked_jobs != NULL) {
        struct asked_job *next = asked_jobs->next;
        free(asked_jobs);
        asked_jobs = next;
    }
}
