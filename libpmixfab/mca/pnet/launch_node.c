/*
 * launch_node.c - PMIx_server_setup_local_support: a node's part of the starter's launch information, and
 * later changes of its jobs' endpoints. On the library's thread.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mca/job/job.h"
#include "mca/pnet/pnet_component.h"
#include "pmix/answers/value.h"
#include "pmix/launch/blob.h"
#include "pmix/launch/job_endpoints.h"
#include "pmix/rundir/rundir_watch.h"
#include "topo/base/array.h"

#include <src/class/pmix_list.h>
#include <src/event/pmix_event.h>

#define MOST_CHANGES 4096u /* maximum number in one event */

struct pnet_launch_params pnet_launch_params;

/* A job of this server with its endpoints: a blob of ours with nothing else in it. */
struct news_job {
    struct news_job *next;
    char nspace[PMIX_MAX_NSLEN + 1];
    struct fab_blob blob;
    struct fab_blob_endpoints *endpoints;
    bool compared; /* with this node's own data */
};

static struct news_job *news_jobs;
static struct rundir_snapshots *node_snapshots; /* of this node; from the first job on */
static struct dir_watch *news_watch;
static atomic_bool news_pending; /* a look is pending */

/* ---- jobs whose endpoints may change ---------------------------------------------------------------- */

static void news_job_free(struct news_job *one)
{
    for (uint32_t i = 0; i < one->blob.n_endpoints; i++)
        free((char *)one->endpoints[i].plane);
    free(one->endpoints);
    free(one);
}

static struct news_job *news_job_new(const char *nspace, const struct fab_blob *blob)
{
    struct news_job *one = calloc(1, sizeof(*one));
    if (one == NULL)
        return NULL;
    PMIX_LOAD_NSPACE(one->nspace, nspace);
    one->blob = (struct fab_blob){.per_process = blob->per_process, .per_node = blob->per_node};
    one->blob.endpoints = one->endpoints = calloc(blob->n_endpoints, sizeof(*one->endpoints));
    for (uint32_t i = 0; i < blob->n_endpoints; i++) {
        char *plane = one->endpoints == NULL ? NULL : strdup(blob->endpoints[i].plane);
        if (plane == NULL) {
            news_job_free(one);
            return NULL;
        }
        one->endpoints[i] = blob->endpoints[i];
        one->endpoints[i].plane = plane;
        one->blob.n_endpoints++;
    }
    return one;
}

void pnet_launch_node_forget(const char *nspace)
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

/* ---- changed endpoints, because a card was swapped or moved: PMIX_FABRIC_UPDATE_ENDPOINTS ------------- */

/* The changes of a job, as the infos of its event. */
struct news_changes {
    pmix_namespace_t *job;
    pmix_info_t *infos;
    uint32_t n, room;
};

/* Add {PMIX_RANK, PMIX_FABRIC_ENDPT} of a rank, or the array of a node as it is. Takes the value over. */
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

/* A fab_launch_put_fn(): equal values are no change. */
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

/* Send to the processes of the job here, each once, and to no default handler. */
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

/* Put each rank's endpoints, and each node's. The places of the ranks are from the job's own map. */
static pmix_status_t node_hand_over(pmix_namespace_t *job, const struct pmixfab *const *planes, uint32_t n,
                                    const struct fab_blob *blob, fab_launch_put_fn put, void *to)
{
    pmix_status_t rc = PMIX_ERR_NOMEM;
    struct fab_job_map map;
    if (mca_job_map(job, &map)) {
        const struct fab_launch_job launch = {.planes = planes,
                                              .n_planes = n,
                                              .hosts = map.hosts,
                                              .n_hosts = map.n_hosts,
                                              .host_of = map.host_of,
                                              .n_ranks = map.n_ranks,
                                              .here = map.here};
        rc = fab_endpoints_tell(&launch, blob, put, to);
    }
    fab_job_map_free(&map);
    return rc;
}

static void news_look_at(const struct news_job *one, const struct rundir_planes *planes)
{
    struct news_changes changes = {.job = mca_job_find(one->nspace)};
    if (changes.job == NULL || changes.job->nprocs == 0)
        return;
    pmix_status_t rc = node_hand_over(changes.job, planes->planes, planes->n, &one->blob, news_put, &changes);
    if (rc != PMIX_SUCCESS)
        pnet_say("launch: %s: cannot update its endpoints: %s", one->nspace, PMIx_Error_string(rc));
    if (changes.n > 0)
        news_raise(&changes);
    fab_infos_free(changes.infos, changes.n);
}

/* All jobs after a publication, else those that were not compared yet. */
static void news_on_look(int fd, short what, void *arg)
{
    struct rundir_planes planes;
    struct fab_err err = {""};
    (void)fd, (void)what;
    free(arg);
    news_pending = false;
    if (node_snapshots == NULL || news_jobs == NULL)
        return;
    (void)rundir_snapshots_look(node_snapshots);
    const bool changed = rundir_snapshots_changed(node_snapshots);
    rundir_planes_get(node_snapshots, &planes, &err);
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

void pnet_launch_planes(struct rundir_planes *planes, struct fab_err *err)
{
    *planes = (struct rundir_planes){.of = NULL};
    if (node_snapshots == NULL &&
        rundir_snapshots_new(pnet_launch_params.rundir, &node_snapshots) == PMIXFAB_OK)
        (void)rundir_snapshots_look(node_snapshots); /* later changes are reported */
    if (node_snapshots != NULL)
        (void)rundir_planes_get(node_snapshots, planes, err);
}

/* The job has its endpoints, `own`: from this node's own planes. Watch for changes from now on. */
static void news_keep(const pmix_namespace_t *job, const struct fab_blob *blob, bool own)
{
    pnet_launch_node_forget(job->nspace);
    struct news_job *one = news_job_new(job->nspace, blob);
    if (one == NULL)
        return;
    one->compared = own;
    one->next = news_jobs;
    news_jobs = one;
    const char *rundir = pnet_launch_params.rundir;
    if (news_watch == NULL && dir_watch_start(rundir, news_on_change, NULL, &news_watch) != PMIXFAB_OK)
        pnet_say("launch: %s cannot be watched: changes of endpoints are not announced", rundir);
    if (!own)
        news_look_soon();
}

void pnet_launch_node_stop(void)
{
    dir_watch_stop(news_watch);
    news_watch = NULL;
    news_pending = false;
    while (news_jobs != NULL)
        pnet_launch_node_forget(news_jobs->nspace);
    rundir_snapshots_free(node_snapshots);
    node_snapshots = NULL;
}

static void node_say(const char *line)
{
    pnet_say("launch: %s", line);
}

/* ---- variables -------------------------------------------------------------------------------------- */

/*
 * Set a variable for all processes of the job here: the library's PMIx_server_setup_fork() sets the entries
 * of its list.
 */
static pmix_status_t node_set(pmix_nspace_env_cache_t *job, const char *name, size_t length,
                              const char *value)
{
    pmix_envar_list_item_t *item, *found = NULL;
    PMIX_LIST_FOREACH(item, &job->envars, pmix_envar_list_item_t)
    {
        if (strncmp(item->envar.envar, name, length) == 0 && item->envar.envar[length] == '\0')
            found = item;
    }
    char *copy = strdup(value);
    if (copy == NULL)
        return PMIX_ERR_NOMEM;
    if (found == NULL) {
        found = PMIX_NEW(pmix_envar_list_item_t);
        if (found == NULL || (found->envar.envar = strndup(name, length)) == NULL) {
            if (found != NULL)
                PMIX_RELEASE(found);
            free(copy);
            return PMIX_ERR_NOMEM;
        }
        found->envar.separator = ':';
        pmix_list_append(&job->envars, &found->super);
    }
    free(found->envar.value);
    found->envar.value = copy;
    return PMIX_SUCCESS;
}

static pmix_status_t node_set_secret(pmix_nspace_env_cache_t *job, const uint8_t *secret)
{
    char text[2 * FAB_BLOB_SECRET + 1];
    for (size_t i = 0; i < FAB_BLOB_SECRET; i++)
        sprintf(text + 2 * i, "%02x", secret[i]);
    pmix_status_t rc = node_set(job, FAB_FORWARD_SECRET, strlen(FAB_FORWARD_SECRET), text);
    explicit_bzero(text, sizeof(text));
    return rc;
}

static pmix_status_t node_environment(pmix_nspace_env_cache_t *job, const struct fab_blob *blob)
{
    pmix_status_t rc = blob->has_secret ? node_set_secret(job, blob->secret) : PMIX_SUCCESS;
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < blob->n_envs; i++) {
        const size_t length = strcspn(blob->envs[i], "=");
        rc = node_set(job, blob->envs[i], length, blob->envs[i] + length + 1);
    }
    return rc;
}

/* ---- information ------------------------------------------------------------------------------------ */

/* Information from this node's own snapshot, or from another blob, stays: one job has one source here. */
static pmix_status_t node_tell(const char *nspace, const struct fab_blob *blob)
{
    pmix_namespace_t *job = mca_job_find(nspace);
    struct fab_job_here here;
    struct fab_launch_told told;
    if (job == NULL || job->nprocs == 0) {
        pnet_say("launch: %s is not registered: no launch information is set", nspace);
        return PMIX_SUCCESS;
    }
    if (mca_job_knows(job)) {
        pnet_say("launch: %s has launch information already, which stays", nspace);
        return PMIX_SUCCESS;
    }
    pmix_status_t rc =
        mca_job_tell(job, blob->planes, blob->n_planes,
                     strcmp(pnet_launch_params.coordinates, "standard") == 0, &here, &told, node_say);
    fab_job_here_free(&here);
    return rc;
}

/* `known`: the job has its fabric from this node's own snapshot, so its endpoints come from there, too. */
static pmix_status_t node_endpoints(pmix_namespace_t *job, const struct fab_blob *blob, bool known)
{
    struct rundir_planes planes;
    struct fab_err err = {""};
    if (job->nprocs == 0) {
        pnet_say("launch: %s is not registered: no endpoints are set", job->nspace);
        return PMIX_SUCCESS;
    }
    pnet_launch_planes(&planes, &err);
    const bool own = known && planes.n > 0;
    pmix_status_t rc = node_hand_over(job, own ? planes.planes : blob->planes,
                                      own ? planes.n : blob->n_planes, blob, mca_job_put, job);
    if (planes.of != NULL)
        rundir_planes_put(&planes);
    if (rc == PMIX_SUCCESS)
        news_keep(job, blob, own);
    pnet_say("launch: %s: endpoints of %u processes: %s", job->nspace, job->nprocs, PMIx_Error_string(rc));
    return rc;
}

/*
 * The allocation under the name that the starter gave. It has that name with the numbers of its endpoints, or
 * with the plane's name if it has no endpoints. Then come the plane, and the number of endpoints of each
 * process and each node.
 */
static pmix_status_t node_allocation(pmix_namespace_t *job, const struct fab_blob *blob)
{
    struct pmixfab_plane plane = {.name = blob->plane};
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    if (blob->plane[0] == '\0' &&
        (blob->n_planes == 0 || pmixfab_plane(blob->planes[0], &plane) != PMIXFAB_OK))
        return PMIX_SUCCESS;
    char *numbers = fab_endpoints_text(blob, plane.name);
    pmix_status_t rc = fab_value_array(&value, PMIX_INFO, numbers != NULL ? 4 : 2);
    if (rc == PMIX_SUCCESS) {
        pmix_info_t *info = value.data.darray->array;
        PMIX_LOAD_KEY(info[0].key, blob->id);
        PMIX_LOAD_KEY(info[1].key, PMIX_ALLOC_FABRIC_PLANE);
        rc = fab_value_string(&info[0].value, numbers != NULL ? numbers : plane.name);
        if (rc == PMIX_SUCCESS)
            rc = fab_value_string(&info[1].value, plane.name);
        if (numbers != NULL) {
            PMIX_LOAD_KEY(info[2].key, PMIX_ALLOC_FABRIC_ENDPTS);
            PMIX_LOAD_KEY(info[3].key, PMIX_ALLOC_FABRIC_ENDPTS_NODE);
            (void)fab_value_number(&info[2].value, PMIX_SIZE, blob->per_process);
            (void)fab_value_number(&info[3].value, PMIX_SIZE, blob->per_node);
        }
    }
    free(numbers);
    if (rc == PMIX_SUCCESS)
        rc = mca_job_put(job, PMIX_RANK_WILDCARD, blob->id, &value);
    fab_value_free(&value);
    return rc;
}

static pmix_status_t node_apply(pmix_nspace_env_cache_t *job, const struct fab_blob *blob)
{
    pmix_status_t rc = node_environment(job, blob);
    const bool known = job->ns->nprocs > 0 && mca_job_knows(job->ns);
    if (rc == PMIX_SUCCESS && blob->id[0] != '\0')
        rc = node_allocation(job->ns, blob);
    if (blob->n_planes == 0 || !pnet_launch_params.launch)
        return rc;
    if (rc == PMIX_SUCCESS)
        rc = node_tell(job->ns->nspace, blob);
    if (rc == PMIX_SUCCESS && blob->n_endpoints > 0)
        rc = node_endpoints(job->ns, blob, known);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < blob->n_parents; i++)
        rc = node_tell(blob->parents[i], blob);
    return rc;
}

/* ---- the call --------------------------------------------------------------------------------------- */

static pmix_status_t node_status(int code)
{
    switch (code) {
    case PMIXFAB_ERR_NOMEM:
        return PMIX_ERR_NOMEM;
    case PMIXFAB_ERR_OLDER:
    case PMIXFAB_ERR_NEWER:
        return PMIX_ERR_NOT_SUPPORTED;
    default:
        return PMIX_ERR_BAD_PARAM;
    }
}

pmix_status_t pnet_launch_set_up(pmix_nspace_env_cache_t *job, pmix_info_t *info, size_t n)
{
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; rc == PMIX_SUCCESS && i < n; i++) {
        const pmix_byte_object_t *bytes = &info[i].value.data.bo;
        struct fab_err err = {""};
        struct fab_blob blob;
        if (!PMIX_CHECK_KEY(&info[i], FAB_BLOB_KEY))
            continue;
        if (info[i].value.type != PMIX_BYTE_OBJECT) {
            pnet_say("launch: %s: the launch information is of another type", job->ns->nspace);
            return PMIX_ERR_BAD_PARAM;
        }
        int read = fab_blob_read(bytes->bytes, bytes->size, job->ns->nspace, &blob, &err);
        if (read != PMIXFAB_OK) {
            pnet_say("launch: %s: %s", job->ns->nspace, err.text);
            return node_status(read);
        }
        rc = node_apply(job, &blob);
        fab_blob_free(&blob);
    }
    return rc;
}
