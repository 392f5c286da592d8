/* launch_node.c - PMIx_server_setup_local_support: a node's part of what the starter of a job handed out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mca/job/job.h"
#include "mca/pnet/launch_news.h"
#include "mca/pnet/pnet_component.h"
#include "mca/pnet/pnet_launch.h"
#include "pmix/answers/value.h"
#include "pmix/launch/blob.h"
#include "pmix/launch/job_endpoints.h"

#include <src/class/pmix_list.h>

static void node_say(const char *line)
{
    pnet_say("launch: %s", line);
}

/* ---- variables -------------------------------------------------------------------------------------- */

/* For all processes of the job here: the library's PMIx_server_setup_fork() sets what stands in its list. */
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
    if (copy != NULL && found == NULL && (found = PMIX_NEW(pmix_envar_list_item_t)) != NULL) {
        found->envar.envar = strndup(name, length);
        found->envar.separator = ':';
        pmix_list_append(&job->envars, &found->super);
    }
    if (copy == NULL || found == NULL || found->envar.envar == NULL) {
        free(copy);
        return PMIX_ERR_NOMEM;
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

/* What this node's own snapshot, or another blob, has said of a job stays: one job has one source here. */
static pmix_status_t node_tell(const char *nspace, const struct fab_blob *blob)
{
    pmix_namespace_t *job = mca_job_find(nspace);
    struct fab_job_here here;
    struct fab_launch_told told;
    if (job == NULL || job->nprocs == 0) {
        pnet_say("launch: %s is not registered: nothing told", nspace);
        return PMIX_SUCCESS;
    }
    if (mca_job_knows(job)) {
        pnet_say("launch: %s has been told before, and that stays", nspace);
        return PMIX_SUCCESS;
    }
    pmix_status_t rc =
        mca_job_tell(job, blob->planes, blob->n_planes,
                     strcmp(pnet_launch_params.coordinates, "standard") == 0, &here, &told, node_say);
    fab_job_here_free(&here);
    return rc;
}

/* Each rank its endpoints. Where they are is the job's own map. `known`: the job has its fabric from this
 * node's own snapshot, then it has these from there, too. */
static pmix_status_t node_endpoints(pmix_namespace_t *job, const struct fab_blob *blob, bool known)
{
    struct fab_job_map map;
    struct rundir_planes planes;
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (job->nprocs == 0) {
        pnet_say("launch: %s is not registered: its endpoints are not told", job->nspace);
        return PMIX_SUCCESS;
    }
    pnet_launch_news_planes(pnet_launch_params.rundir, &planes);
    const bool own = known && planes.n > 0;
    if (mca_job_map(job, &map)) {
        const struct fab_launch_job launch = {.planes = own ? planes.planes : blob->planes,
                                              .n_planes = own ? planes.n : blob->n_planes,
                                              .hosts = map.hosts,
                                              .n_hosts = map.n_hosts,
                                              .host_of = map.host_of,
                                              .n_ranks = map.n_ranks,
                                              .here = map.here};
        rc = fab_endpoints_tell(&launch, blob, mca_job_put, job);
    }
    if (planes.of != NULL)
        rundir_planes_put(&planes);
    if (rc == PMIX_SUCCESS)
        pnet_launch_news_keep(pnet_launch_params.rundir, job, blob, own);
    pnet_say("launch: %s: endpoints of %u processes: %s", job->nspace, map.n_ranks, PMIx_Error_string(rc));
    fab_job_map_free(&map);
    return rc;
}

/* What was allocated under the name that the starter gave it: that name with the numbers of its endpoints, or
 * without such with the plane's name; then the plane, and how many endpoints each process and each node has.
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
