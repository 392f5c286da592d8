#include "mca/pmdl/job.h"

#include <stdlib.h>
#include <string.h>

#include <src/class/pmix_list.h>
#include <src/include/pmix_globals.h>
#include <src/mca/gds/base/base.h>

#include "mca/pmdl/environment.h"
#include "pmix/launch/job_map.h"
#include "topo/inventory/model.h"

static pmix_gds_base_module_t *job_store(void)
{
    return pmix_globals.mypeer->nptr->compat.gds;
}

/* ---- where the ranks are ---------------------------------------------------------------------------- */

static char *job_told(const void *of, pmix_rank_t rank, const char *key, const char *host)
{
    const pmix_namespace_t *job = of;
    pmix_list_t found;
    pmix_proc_t proc;
    pmix_info_t name;
    char *text = NULL;
    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    PMIX_CONSTRUCT(&found, pmix_list_t);
    PMIX_INFO_CONSTRUCT(&name);
    if (host != NULL)
        PMIX_INFO_LOAD(&name, PMIX_HOSTNAME, host, PMIX_STRING);
    if (job_store()->fetch(&proc, PMIX_INTERNAL, true, key, &name, host != NULL, &found) == PMIX_SUCCESS &&
        pmix_list_get_size(&found) > 0) {
        pmix_kval_t *kv = (pmix_kval_t *)pmix_list_get_first(&found);
        if (kv->value != NULL && kv->value->type == PMIX_STRING) {
            text = kv->value->data.string;
            kv->value->data.string = NULL;
        }
    }
    PMIX_INFO_DESTRUCT(&name);
    PMIX_LIST_DESTRUCT(&found);
    return text;
}

/* ---- what it is told -------------------------------------------------------------------------------- */

/*
 * Into what the library keeps of the job. As a single value and not as a PMIX_PROC_DATA given to
 * cache_job_info(), which would give each rank the application number 0 on the way.
 */
static pmix_status_t job_put(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    pmix_namespace_t *job = to;
    pmix_proc_t proc;
    pmix_kval_t kv;
    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    PMIX_CONSTRUCT(&kv, pmix_kval_t);
    kv.key = (char *)key;
    kv.value = value;
    return job_store()->store(&proc, PMIX_INTERNAL, &kv);
}

void pmdl_job_tell(pmix_namespace_t *job, struct rundir_planes *planes, bool standard, bool keep)
{
    struct fab_job_map map;
    struct fab_job_here here = {0};
    struct fab_launch_told told = {0};
    if (!fab_job_map_read(job_told, job, job->nprocs, pmix_globals.hostname, &map) ||
        !fab_job_here_read(job_told, job, &map, &here)) {
        pmdl_say("%s: no memory for its %u ranks: nothing told", job->nspace, job->nprocs);
        goto cleanup;
    }
    const struct fab_launch_job launch = {.planes = planes->planes,
                                          .n_planes = planes->n,
                                          .hosts = map.hosts,
                                          .n_hosts = map.n_hosts,
                                          .host_of = map.host_of,
                                          .n_ranks = map.n_ranks,
                                          .here = map.here,
                                          .cpus = (const char *const *)here.cpus,
                                          .nearest = here.nearest,
                                          .standard = standard};
    pmix_status_t rc = fab_launch_fill(&launch, job_put, job, &told);
    pmdl_say("%s: %u ranks on %u hosts, %u of which the fabric does not know, %u planes%s: %s", job->nspace,
             map.n_ranks, map.n_hosts, told.unknown, told.planes,
             told.peers ? "" : ", no switch peers of ranks elsewhere", PMIx_Error_string(rc));
    if (keep && told.plane != FAB_NONE)
        pmdl_environment_keep(job->nspace, planes, told.plane, told.host, &here);
cleanup:
    fab_job_here_free(&here);
    fab_job_map_free(&map);
}
