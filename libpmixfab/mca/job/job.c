#include "mca/job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <src/class/pmix_list.h>
#include <src/mca/gds/base/base.h>

#include "mca/library/shapes.h"

pmix_namespace_t *mca_job_find(const char *nspace)
{
    pmix_namespace_t *job;
    PMIX_LIST_FOREACH(job, &pmix_globals.nspaces, pmix_namespace_t)
    {
        if (job->nspace != NULL && strcmp(job->nspace, nspace) == 0)
            return job;
    }
    return NULL;
}

/* ---- values of the library -------------------------------------------------------------------------- */

/* Fetch the value of a key with this type; it is moved to *out. */
static bool job_fetch(const pmix_namespace_t *job, pmix_rank_t rank, const char *key, const char *host,
                      pmix_data_type_t type, pmix_value_t *out)
{
    pmix_list_t found;
    pmix_proc_t proc;
    pmix_info_t node[2]; /* the node's name, and that its own data are meant, for any key */
    bool there = false;
    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    PMIX_CONSTRUCT(&found, pmix_list_t);
    PMIX_INFO_LOAD(&node[0], PMIX_HOSTNAME, host, PMIX_STRING);
    PMIX_INFO_LOAD(&node[1], PMIX_NODE_INFO, NULL, PMIX_BOOL);
    if (mca_library_fetch(&proc, key, node, host != NULL ? 2 : 0, &found) == PMIX_SUCCESS &&
        pmix_list_get_size(&found) > 0) {
        pmix_kval_t *kv = (pmix_kval_t *)pmix_list_get_first(&found);
        there = kv->value != NULL && kv->value->type == type;
        if (there) {
            *out = *kv->value;
            kv->value->type = PMIX_UNDEF;
        }
    }
    PMIX_INFO_DESTRUCT(&node[0]);
    PMIX_LIST_DESTRUCT(&found);
    return there;
}

static char *job_told(const void *job, pmix_rank_t rank, const char *key, const char *host)
{
    pmix_value_t value;
    return job_fetch(job, rank, key, host, PMIX_STRING, &value) ? value.data.string : NULL;
}

bool mca_job_map(const pmix_namespace_t *job, struct fab_job_map *map)
{
    return fab_job_map_read(job_told, job, job->nprocs, pmix_globals.hostname, map);
}

bool mca_job_knows(const pmix_namespace_t *job)
{
    pmix_value_t planes;
    if (!job_fetch(job, PMIX_RANK_WILDCARD, PMIX_FABRIC_PLANE, NULL, PMIX_DATA_ARRAY, &planes))
        return false;
    PMIX_VALUE_DESTRUCT(&planes);
    return true;
}

static bool job_same_endpoint(const pmix_endpoint_t *a, const pmix_endpoint_t *b)
{
    return a->uuid != NULL && a->osname != NULL && strcmp(a->uuid, b->uuid) == 0 &&
           strcmp(a->osname, b->osname) == 0 && a->endpt.size == b->endpt.size &&
           memcmp(a->endpt.bytes, b->endpt.bytes, a->endpt.size) == 0;
}

bool mca_job_has(const pmix_namespace_t *job, pmix_rank_t rank, const char *key, const char *host,
                 const pmix_value_t *endpoints)
{
    const pmix_data_array_t *wanted = endpoints->data.darray;
    pmix_value_t value;
    if (!job_fetch(job, rank, key, host, PMIX_DATA_ARRAY, &value))
        return false;
    const pmix_data_array_t *there = value.data.darray;
    bool same = there->type == PMIX_ENDPOINT && there->size == wanted->size;
    for (size_t i = 0; same && i < there->size; i++)
        same = job_same_endpoint((pmix_endpoint_t *)there->array + i, (pmix_endpoint_t *)wanted->array + i);
    PMIX_VALUE_DESTRUCT(&value);
    return same;
}

/*
 * Store a single value and not a PMIX_PROC_DATA by cache_job_info(), which would also give each rank the
 * application number 0.
 */
pmix_status_t mca_job_put(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    pmix_namespace_t *job = to;
    pmix_proc_t proc;
    pmix_kval_t kv;
    if (!fab_launch_may_put(key))
        return PMIX_SUCCESS;
    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    PMIX_CONSTRUCT(&kv, pmix_kval_t);
    kv.key = (char *)key;
    kv.value = value;
    return mca_library_store()->store(&proc, PMIX_INTERNAL, &kv);
}

/*
 * Return the node of the job that has the number of this one, to be freed with free(); NULL: none. The
 * library numbers the nodes of a job by their positions, and this node as its launcher does. mpirun of Open
 * MPI 4 counts the nodes from its own, which may have no rank. A client takes two nodes with equal numbers
 * for one.
 */
static char *job_clash(const pmix_namespace_t *job)
{
    pmix_value_t number;
    pmix_list_t found;
    pmix_proc_t proc;
    pmix_info_t node[2];
    char *name = NULL;
    if (!job_fetch(job, PMIX_RANK_WILDCARD, PMIX_NODEID, NULL, PMIX_UINT32, &number))
        return NULL;
    PMIX_LOAD_PROCID(&proc, job->nspace, PMIX_RANK_UNDEF);
    PMIX_CONSTRUCT(&found, pmix_list_t);
    PMIX_INFO_LOAD(&node[0], PMIX_NODEID, &number.data.uint32, PMIX_UINT32);
    PMIX_INFO_LOAD(&node[1], PMIX_NODE_INFO, NULL, PMIX_BOOL);
    /* without a key: all that is known of the node, in one array, with its name */
    if (mca_library_fetch(&proc, NULL, node, 2, &found) == PMIX_SUCCESS && pmix_list_get_size(&found) == 1) {
        const pmix_kval_t *kv = (pmix_kval_t *)pmix_list_get_first(&found);
        const pmix_data_array_t *all = kv->value->type == PMIX_DATA_ARRAY ? kv->value->data.darray : NULL;
        for (size_t i = 0; all != NULL && name == NULL && all->type == PMIX_INFO && i < all->size; i++) {
            const pmix_info_t *info = (pmix_info_t *)all->array + i;
            if (PMIX_CHECK_KEY(info, PMIX_HOSTNAME) && info->value.type == PMIX_STRING)
                name = strdup(info->value.data.string);
        }
    }
    PMIX_LIST_DESTRUCT(&found);
    return name;
}

/* ---- launch information ----------------------------------------------------------------------------- */

pmix_status_t mca_job_tell(pmix_namespace_t *job, const struct pmixfab *const *planes, uint32_t n_planes,
                           bool standard, struct fab_job_here *here, struct fab_launch_told *told,
                           void (*say)(const char *line))
{
    struct fab_job_map map;
    char line[512], *clash = NULL;
    pmix_status_t rc = PMIX_ERR_NOMEM;
    *told = (struct fab_launch_told){.plane = UINT32_MAX};
    *here = (struct fab_job_here){0};
    if (!mca_job_map(job, &map) || !fab_job_here_read(job_told, job, &map, here)) {
        snprintf(line, sizeof(line), "%s: no memory for its %u ranks: no launch information is set",
                 job->nspace, job->nprocs);
        goto cleanup;
    }
    clash = job_clash(job);
    const struct fab_launch_job launch = {.planes = planes,
                                          .n_planes = n_planes,
                                          .hosts = map.hosts,
                                          .n_hosts = map.n_hosts,
                                          .host_of = map.host_of,
                                          .n_ranks = map.n_ranks,
                                          .here = map.here,
                                          .cpus = (const char *const *)here->cpus,
                                          .nearest = here->nearest,
                                          .standard = standard,
                                          .clash = clash};
    fab_launch_make_room();
    rc = fab_launch_fill(&launch, mca_job_put, job, told);
    snprintf(line, sizeof(line), "%s: %u ranks on %u hosts, %u of them not in the fabric, %u planes%s: %s",
             job->nspace, map.n_ranks, map.n_hosts, told->unknown, told->planes,
             told->peers ? "" : ", no switch peers of ranks on other hosts", PMIx_Error_string(rc));
cleanup:
    say(line);
    fab_job_map_free(&map);
    free(clash);
    return rc;
}
