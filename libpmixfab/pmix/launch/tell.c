/* tell.c - launch information for the jobs of a PMIx server that links this library, by public functions. */
#include <pmix.h>
#include <pmix_server.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmix/answers/version.h"
#include "pmix/launch/job_map.h"
#include "pmix/launch/launch.h"
#include "topo/base/library_log.h"

/* Return this server's value of the job; NULL: none, or another type. No request is sent. */
static pmix_value_t *tell_get(const char *nspace, pmix_rank_t rank, const char *key, const char *host)
{
    pmix_proc_t proc;
    pmix_info_t info[3];
    pmix_value_t *value = NULL;
    size_t n = 1;
    PMIX_LOAD_PROCID(&proc, nspace, rank);
    PMIX_INFO_LOAD(&info[0], PMIX_OPTIONAL, NULL, PMIX_BOOL);
    if (host != NULL) {
        PMIX_INFO_LOAD(&info[n++], PMIX_HOSTNAME, host, PMIX_STRING);
        PMIX_INFO_LOAD(&info[n++], PMIX_NODE_INFO, NULL, PMIX_BOOL);
    }
    if (PMIx_Get(&proc, key, info, n, &value) != PMIX_SUCCESS)
        value = NULL;
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    return value;
}

static char *tell_told(const void *nspace, pmix_rank_t rank, const char *key, const char *host)
{
    pmix_value_t *value = tell_get(nspace, rank, key, host);
    char *text = NULL;
    if (value != NULL && value->type == PMIX_STRING) {
        text = value->data.string;
        value->data.string = NULL;
    }
    if (value != NULL)
        PMIX_VALUE_RELEASE(value);
    return text;
}

static pmix_status_t tell_put(void *nspace, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    pmix_proc_t proc;
    if (!fab_launch_may_put(key))
        return PMIX_SUCCESS;
    PMIX_LOAD_PROCID(&proc, nspace, rank);
    return PMIx_Store_internal(&proc, key, value);
}

static int tell_all(const struct fab_job_map *map, struct fab_job_here *here, void *nspace,
                    const struct pmixfab *const planes[], uint32_t n)
{
    struct fab_launch_told told = {0};
    const struct fab_launch_job launch = {.planes = planes,
                                          .n_planes = n,
                                          .hosts = map->hosts,
                                          .n_hosts = map->n_hosts,
                                          .host_of = map->host_of,
                                          .n_ranks = map->n_ranks,
                                          .here = map->here,
                                          .cpus = (const char *const *)here->cpus,
                                          .nearest = here->nearest};
    fab_launch_make_room();
    pmix_status_t rc = fab_launch_fill(&launch, tell_put, nspace, &told);
    if (rc == PMIX_SUCCESS)
        return told.hosts > 0 ? PMIXFAB_OK : PMIXFAB_ERR_NOTFOUND;
    fab_log(PMIXFAB_LOG_ERROR, "job %s: the PMIx library rejects its launch information: %s",
            (const char *)nspace, PMIx_Error_string(rc));
    return rc == PMIX_ERR_NOMEM ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_IO;
}

static uint32_t tell_size(const char *nspace)
{
    pmix_value_t *value = tell_get(nspace, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, NULL);
    uint32_t size = value != NULL && value->type == PMIX_UINT32 ? value->data.uint32 : 0;
    if (value != NULL)
        PMIX_VALUE_RELEASE(value);
    return size;
}

int pmixfab_tell_job(const char *nspace, const char *host, const struct pmixfab *const planes[], uint32_t n)
{
    char own[256] = "";
    struct fab_job_map map;
    struct fab_job_here here = {0};
    if (nspace == NULL || (planes == NULL && n > 0))
        return PMIXFAB_ERR_INVAL;
    if (!PMIx_Initialized())
        return PMIXFAB_ERR_UNREACH;
    if (fab_running_refuses_arrays())
        return PMIXFAB_ERR_UNSUPPORTED;
    if (host == NULL && gethostname(own, sizeof(own) - 1) != 0)
        return PMIXFAB_ERR_IO;
    pmix_value_t *before = tell_get(nspace, PMIX_RANK_WILDCARD, PMIX_FABRIC_PLANE, NULL);
    if (before != NULL) { /* the component has set it */
        PMIX_VALUE_RELEASE(before);
        return PMIXFAB_OK;
    }
    int rc = PMIXFAB_ERR_NOMEM;
    if (fab_job_map_read(tell_told, nspace, tell_size(nspace), host != NULL ? host : own, &map) &&
        fab_job_here_read(tell_told, nspace, &map, &here))
        rc = tell_all(&map, &here, (void *)nspace, planes, n);
    fab_job_here_free(&here);
    fab_job_map_free(&map);
    return rc;
}
