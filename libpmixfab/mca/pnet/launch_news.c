#include "mca/pnet/launch_news.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mca/pnet/pnet_component.h"
#include "pmix/answers/value.h"
#include "pmix/launch/job_endpoints.h"
#include "pmix/rundir/rundir_watch.h"
#include "topo/base/array.h"

#include <src/event/pmix_event.h>

#define MOST_CHANGES 4096u /* that an event tells */

/* A job of this server, and which endpoints it has. */
struct news_job {
    struct news_job *next;
    char nspace[PMIX_MAX_NSLEN + 1];
    struct fab_blob_endpoints *endpoints;
    uint32_t n, per_process, per_node;
    bool compared; /* with what this node itself knows */
};

static struct news_job *news_jobs;
static struct rundir_snapshots *news_snapshots; /* of this node; from the first such job on */
static struct dir_watch *news_watch;
static atomic_bool news_pending; /* a look */

/* ---- the jobs ---------------------------------------------------------------------------------------- */

static void news_job_free(struct news_job *one)
{
    for (uint32_t i = 0; one->endpoints != NULL && i < one->n; i++)
        free((char *)one->endpoints[i].plane);
    free(one->endpoints);
    free(one);
}

static struct news_job *news_job_new(const char *nspace, const struct fab_blob *blob)
{
    struct news_job *one = calloc(1, sizeof(*one));
    if (one == NULL || (one->endpoints = calloc(blob->n_endpoints, sizeof(*one->endpoints))) == NULL) {
        free(one);
        return NULL;
    }
    PMIX_LOAD_NSPACE(one->nspace, nspace);
    one->per_process = blob->per_process;
    one->per_node = blob->per_node;
    for (; one->n < blob->n_endpoints; one->n++) {
        one->endpoints[one->n] = blob->endpoints[one->n];
        if ((one->endpoints[one->n].plane = strdup(blob->endpoints[one->n].plane)) == NULL) {
            news_job_free(one);
            return NULL;
        }
    }
    return one;
}

void pnet_launch_news_forget(const char *nspace)
{
    struct news_job **at = &news_jobs;
    while (*at != NULL && strcmp((*at)->nspace, nspace) != 0)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    struct news_job *one = *at;
    *at = one->next;
    news_job_free(one);
}

/* ---- what changes ------------------------------------------------------------------------------------ */

/* What is told of a job anew, as the infos of its event. */
struct news_changes {
    pmix_namespace_t *job;
    pmix_info_t *infos;
    uint32_t n, room;
};

/* Of a rank {PMIX_RANK, PMIX_FABRIC_ENDPT}; of a node its array as it is. Takes the value over. */
static pmix_status_t news_add(struct news_changes *changes, pmix_rank_t rank, pmix_value_t *value)
{
    if (changes->n == MOST_CHANGES)
        return PMIX_SUCCESS;
    if (!FAB_ARRAY_ROOM(&changes->infos, &changes->room, (uint64_t)changes->n + 1))
        return PMIX_ERR_NOMEM;
    pmix_info_t *info = &changes->infos[changes->n++];
    memset(info, 0, sizeof(*info));
    PMIX_LOAD_KEY(info->key, rank == PMIX_RANK_WILDCARD ? PMIX_NODE_INFO_ARRAY : PMIX_PROC_DATA);
    if (rank != PMIX_RANK_WILDCARD) {
        pmix_status_t rc = fab_value_array(&info->value, PMIX_INFO, 2);
        if (rc != PMIX_SUCCESS)
            return rc;
        pmix_info_t *pair = info->value.data.darray->array;
        PMIX_LOAD_KEY(pair[0].key, PMIX_RANK);
        pair[0].value.type = PMIX_PROC_RANK;
        pair[0].value.data.rank = rank;
        PMIX_LOAD_KEY(pair[1].key, PMIX_FABRIC_ENDPT);
        pair[1].value = *value;
    } else {
        info->value = *value;
    }
    value->type = PMIX_UNDEF;
    return PMIX_SUCCESS;
}

/* As a fab_launch_put_fn(): what stands there already is no news. */
static pmix_status_t news_put(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    struct news_changes *changes = to;
    const pmix_info_t *node = rank == PMIX_RANK_WILDCARD ? value->data.darray->array : NULL;
    if (mca_job_has(changes->job, rank, PMIX_FABRIC_ENDPT, node == NULL ? NULL : node[0].value.data.string,
                    node == NULL ? value : &node[1].value))
        return PMIX_SUCCESS;
    pmix_status_t rc = mca_job_put(changes->job, rank, key, value);
    return rc == PMIX_SUCCESS ? news_add(changes, rank, value) : rc;
}

/* To the processes of the job here, each once, and to nobody's handler of everything. */
static void news_raise(struct news_changes *changes)
{
    pmix_proc_t all;
    const bool yes = true;
    const uint32_t n = changes->n;
    if (!FAB_ARRAY_ROOM(&changes->infos, &changes->room, (uint64_t)n + 3))
        return;
    PMIX_LOAD_PROCID(&all, changes->job->nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&changes->infos[n], PMIX_EVENT_CUSTOM_RANGE, &all, PMIX_PROC);
    PMIX_INFO_LOAD(&changes->infos[n + 1], PMIX_EVENT_DO_NOT_CACHE, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&changes->infos[n + 2], PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    pmix_status_t rc =
        pmix_server_notify_client_of_event(PMIX_FABRIC_UPDATE_ENDPOINTS, &pmix_globals.myid,
                                           PMIX_RANGE_CUSTOM, changes->infos, n + 3, NULL, NULL);
    pnet_say("launch: %s: endpoints of %u processes and nodes changed: %s", changes->job->nspace, n,
             PMIx_Error_string(rc));
    for (uint32_t i = n; i < n + 3; i++)
        PMIX_INFO_DESTRUCT(&changes->infos[i]);
}

static void news_look_at(const struct news_job *one, const struct rundir_planes *planes)
{
    struct news_changes changes = {.job = mca_job_find(one->nspace)};
    const struct fab_blob blob = {.endpoints = one->endpoints,
                                  .n_endpoints = one->n,
                                  .per_process = one->per_process,
                                  .per_node = one->per_node};
    struct fab_job_map map;
    if (changes.job == NULL || changes.job->nprocs == 0)
        return;
    if (mca_job_map(changes.job, &map)) {
        const struct fab_launch_job launch = {.planes = planes->planes,
                                              .n_planes = planes->n,
                                              .hosts = map.hosts,
                                              .n_hosts = map.n_hosts,
                                              .host_of = map.host_of,
                                              .n_ranks = map.n_ranks,
                                              .here = map.here};
        pmix_status_t rc = fab_endpoints_tell(&launch, &blob, news_put, &changes);
        if (rc != PMIX_SUCCESS)
            pnet_say("launch: %s: its endpoints cannot be told anew: %s", one->nspace, PMIx_Error_string(rc));
    }
    fab_job_map_free(&map);
    if (changes.n > 0)
        news_raise(&changes);
    fab_infos_free(changes.infos, changes.n);
}

/* All jobs where something is published, else those that were not compared yet. */
static void news_on_look(int fd, short what, void *arg)
{
    struct rundir_planes planes;
    struct fab_err err = {""};
    (void)fd, (void)what;
    free(arg);
    news_pending = false;
    if (news_snapshots == NULL || news_jobs == NULL)
        return;
    (void)rundir_snapshots_look(news_snapshots);
    const bool changed = rundir_snapshots_changed(news_snapshots);
    rundir_planes_get(news_snapshots, &planes, &err);
    for (struct news_job *one = news_jobs; planes.n > 0 && one != NULL; one = one->next) {
        if (changed || !one->compared)
            news_look_at(one, &planes);
        one->compared = true;
    }
    rundir_planes_put(&planes);
}

/* On any thread. */
static void news_look_soon(void)
{
    if (atomic_exchange(&news_pending, true))
        return;
    pmix_event_t *event = calloc(1, sizeof(*event));
    if (event == NULL) {
        news_pending = false;
        return;
    }
    pmix_event_assign(event, pmix_globals.evbase, -1, EV_WRITE, news_on_look, event);
    pmix_event_active(event, EV_WRITE, 1);
}

/* On the watching thread. */
static bool news_on_change(struct dir_watch *watch, void *cbdata)
{
    (void)watch, (void)cbdata;
    news_look_soon();
    return false;
}

void pnet_launch_news_planes(const char *rundir, struct rundir_planes *planes)
{
    struct fab_err err = {""};
    *planes = (struct rundir_planes){.of = NULL};
    if (news_snapshots == NULL && rundir_snapshots_new(rundir, &news_snapshots) == PMIXFAB_OK)
        (void)rundir_snapshots_look(news_snapshots); /* what comes from now on is news */
    if (news_snapshots != NULL)
        rundir_planes_get(news_snapshots, planes, &err);
}

void pnet_launch_news_keep(const char *rundir, const pmix_namespace_t *job, const struct fab_blob *blob,
                           bool own)
{
    pnet_launch_news_forget(job->nspace);
    struct news_job *one = news_job_new(job->nspace, blob);
    if (one == NULL)
        return;
    one->compared = own;
    one->next = news_jobs;
    news_jobs = one;
    if (news_watch == NULL && dir_watch_start(rundir, news_on_change, NULL, &news_watch) != PMIXFAB_OK)
        pnet_say("launch: %s cannot be watched: nobody is told that endpoints change", rundir);
    if (!own)
        news_look_soon();
}

/* The library's thread stands still. */
void pnet_launch_news_stop(void)
{
    dir_watch_stop(news_watch);
    news_watch = NULL;
    news_pending = false;
    while (news_jobs != NULL)
        pnet_launch_news_forget(news_jobs->nspace);
    rundir_snapshots_free(news_snapshots);
    news_snapshots = NULL;
}
