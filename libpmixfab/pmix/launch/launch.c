/* launch.c - the keys of a job as a whole, and the nearest devices of its ranks. */

#include "pmix/launch/launch.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/device.h"
#include "pmix/answers/info.h"
#include "pmix/answers/value.h"
#include "pmix/answers/version.h"
#include "pmix/launch/places.h"
#include "topo/model/model.h"
#include "topo/snapshot/reader.h"

static pmix_status_t nearest_put(const struct launch_places *places, pmix_rank_t rank, uint32_t device,
                                 fab_launch_put_fn put, void *to)
{
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    pmix_status_t rc = fab_device_value(places->job->planes[places->plane], device, &value);
    if (rc == PMIX_SUCCESS)
        rc = put(to, rank, PMIXFAB_KEY_JOB_NEAREST, &value);
    fab_value_free(&value);
    return rc;
}

static pmix_status_t launch_put_nearest(const struct launch_places *places, fab_launch_put_fn put, void *to,
                                        struct fab_launch_told *told)
{
    const struct fab_launch_job *job = places->job;
    if (job->here == FAB_NONE)
        return PMIX_SUCCESS;
    uint32_t host = places->host[(size_t)job->here * job->n_planes + places->plane];
    uint32_t first = places->first[job->here], n = places->first[job->here + 1] - first;
    if (host == FAB_NONE || n == 0)
        return PMIX_SUCCESS;
    struct pmixfab_nearest *own = job->nearest != NULL ? NULL : calloc(n, sizeof(*own));
    struct pmixfab_nearest *nearest = own != NULL ? own : job->nearest;
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (nearest != NULL &&
        pmixfab_nearest(job->planes[places->plane], host, 0, job->cpus, n, nearest) == PMIXFAB_OK) {
        told->plane = places->plane;
        told->host = host;
        rc = PMIX_SUCCESS;
    }
    for (uint32_t r = 0; rc == PMIX_SUCCESS && r < n && n <= FAB_LAUNCH_RANK_DEVICES; r++)
        if (nearest[r].device != UINT32_MAX)
            rc = nearest_put(places, places->ranks[first + r], nearest[r].device, put, to);
    free(own);
    return rc;
}

/*
 * Functions of the library without a public header. All versions from 4.2 on have them in this form; they are
 * NULL in a version without them.
 */
extern int pmix_mca_base_var_find(const char *project, const char *framework, const char *component,
                                  const char *name) __attribute__((weak));
extern int pmix_mca_base_var_get_value(int at, void *value, void *source, const char **file)
    __attribute__((weak));

/* Return the size factor of one of the library's stores; NULL: there is no such store. */
static double *shared_memory_factor(const char *store)
{
    double *factor = NULL;
    int at = pmix_mca_base_var_find("pmix", "gds", store, "segment_size_multiplier");
    return at >= 0 && pmix_mca_base_var_get_value(at, (void *)&factor, NULL, NULL) == 0 ? factor : NULL;
}

void fab_launch_make_room(void)
{
    static const char *const stores[] = {"shmem2", "shmem3"};
    const double room = 8;
    if (pmix_mca_base_var_find == NULL || pmix_mca_base_var_get_value == NULL)
        return;
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
        double *factor = shared_memory_factor(stores[i]);
        if (factor != NULL && *factor < room)
            *factor = room;
    }
}

/* ---- keys of the job -------------------------------------------------------------------------------- */

static bool launch_plane_used(const struct launch_places *places, uint32_t plane)
{
    for (uint32_t h = 0; h < places->job->n_hosts; h++)
        if (places->host[(size_t)h * places->job->n_planes + plane] != FAB_NONE)
            return true;
    return false;
}

/* List the names of the planes with hosts of the job; the first is the one that the other keys belong to. */
static pmix_status_t launch_planes(const struct launch_places *places, pmix_value_t *value)
{
    const struct fab_launch_job *job = places->job;
    struct pmixfab_plane plane;
    size_t n = 0;
    pmix_status_t rc = fab_value_array(value, PMIX_STRING, job->n_planes);
    for (uint32_t p = 0; rc == PMIX_SUCCESS && p < job->n_planes; p++)
        if (launch_plane_used(places, p) && pmixfab_plane(job->planes[p], &plane) == PMIXFAB_OK &&
            (((char **)value->data.darray->array)[n++] = strdup(plane.name)) == NULL)
            rc = PMIX_ERR_NOMEM;
    if (rc == PMIX_SUCCESS)
        value->data.darray->size = n;
    return rc;
}

/* Mark the job's hosts among those of the plane. */
static bool *launch_members(const struct launch_places *places, uint32_t n_hosts)
{
    bool *in = calloc((size_t)n_hosts + 1, sizeof(*in));
    for (uint32_t h = 0; in != NULL && h < places->job->n_hosts; h++) {
        uint32_t host = places->host[(size_t)h * places->job->n_planes + places->plane];
        if (host < n_hosts)
            in[host] = true;
    }
    return in;
}

/* Make the plane's PMIX_FABRIC_GROUPS, with its numbers, reduced to the job's hosts. */
static pmix_status_t launch_groups(const struct launch_places *places, pmix_value_t *value)
{
    const struct pmixfab *fab = places->job->planes[places->plane];
    struct pmixfab_plane plane;
    size_t size;
    if (pmixfab_plane(fab, &plane) != PMIXFAB_OK)
        return PMIX_ERR_NOT_FOUND;
    bool *in = launch_members(places, plane.n_hosts);
    FILE *out = in == NULL ? NULL : open_memstream(&value->data.string, &size);
    bool any = false;
    for (uint32_t g = 0; out != NULL && g < plane.n_groups; g++) {
        const uint32_t *hosts;
        uint32_t n, first, devices, k = 0;
        if (pmixfab_group(fab, g, &hosts, &n) != PMIXFAB_OK)
            continue;
        for (uint32_t i = 0; i < n; i++) {
            const char *name;
            if (hosts[i] >= plane.n_hosts || !in[hosts[i]] ||
                pmixfab_host(fab, hosts[i], &name, &first, &devices) != PMIXFAB_OK)
                continue;
            if (k++ == 0)
                fprintf(out, any ? ";%u:%s" : "%u:%s", fab_reader_number(fab->group_numbers, g), name);
            else
                fprintf(out, ",%s", name);
            any = true;
        }
    }
    free(in);
    if (out == NULL || fclose(out) != 0)
        return PMIX_ERR_NOMEM;
    value->type = PMIX_STRING;
    return any ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

bool fab_launch_may_put(const char *key)
{
    if (strncmp(key, "pmix", 4) == 0)
        return true;
    const long version = fab_running_version();
    return version < FAB_PMIX_VERSION(5, 0, 0) || version >= FAB_PMIX_VERSION(7, 0, 0);
}

static pmix_status_t launch_put_one(const struct launch_places *places, const char *key, const char *fact,
                                    fab_launch_put_fn put, void *to)
{
    const struct fab_info_source source = {.fab = places->job->planes[places->plane]};
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    pmix_status_t rc = strcmp(key, PMIX_FABRIC_PLANE) == 0    ? launch_planes(places, &value)
                       : strcmp(key, PMIX_FABRIC_GROUPS) == 0 ? launch_groups(places, &value)
                       : strcmp(key, PMIXFAB_KEY_JOB_COORDINATES) == 0
                           ? launch_coordinates(places, &value)
                           : fab_info_value(&source, fact, &value);
    if (rc == PMIX_SUCCESS)
        rc = put(to, PMIX_RANK_WILDCARD, key, &value);
    else if (rc == PMIX_ERR_NOT_FOUND)
        rc = PMIX_SUCCESS;
    fab_value_free(&value);
    return rc;
}

static pmix_status_t launch_put_job(const struct launch_places *places, fab_launch_put_fn put, void *to)
{
    static const char *const keys[] = {
        PMIX_FABRIC_PLANE,        PMIX_FABRIC_INDEX,  PMIX_FABRIC_VENDOR,
        PMIX_FABRIC_IDENTIFIER,   PMIX_FABRIC_DIMS,   PMIX_FABRIC_SHAPE,
        PMIX_FABRIC_SHAPE_STRING, PMIX_FABRIC_GROUPS, PMIXFAB_KEY_JOB_COORDINATES};
    pmix_status_t rc = launch_put_one(places, PMIXFAB_KEY_JOB_GENERATION, PMIXFAB_KEY_GENERATION, put, to);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < sizeof(keys) / sizeof(keys[0]); i++)
        rc = launch_put_one(places, keys[i], keys[i], put, to);
    return rc;
}

/*
 * ---- all keys -------------------------------------------------------------------------------------------
 */

static void launch_count(const struct launch_places *places, struct fab_launch_told *told)
{
    const struct fab_launch_job *job = places->job;
    for (uint32_t h = 0; h < job->n_hosts; h++)
        if (launch_device_count(places, h) > 0)
            told->hosts++;
    told->unknown = job->n_hosts - told->hosts;
    for (uint32_t p = 0; p < job->n_planes; p++)
        told->planes += launch_plane_used(places, p);
}

pmix_status_t fab_launch_fill(const struct fab_launch_job *job, fab_launch_put_fn put, void *to,
                              struct fab_launch_told *told)
{
    struct launch_places places;
    *told = (struct fab_launch_told){.plane = FAB_NONE};
    pmix_status_t rc = launch_places_find(job, &places);
    if (rc == PMIX_SUCCESS)
        launch_count(&places, told);
    if (rc == PMIX_SUCCESS && places.plane != FAB_NONE) {
        rc = launch_put_job(&places, put, to);
        if (rc == PMIX_SUCCESS)
            rc = launch_put_nodes(&places, put, to);
        if (rc == PMIX_SUCCESS)
            rc = launch_put_peers(&places, put, to, &told->peers);
        if (rc == PMIX_SUCCESS)
            rc = launch_put_nearest(&places, put, to, told);
    }
    launch_places_free(&places);
    return rc;
}
