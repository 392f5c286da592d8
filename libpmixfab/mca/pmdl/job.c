#include "mca/pmdl/job.h"

#include <stdlib.h>
#include <string.h>

#include <src/class/pmix_list.h>
#include <src/include/pmix_globals.h>
#include <src/mca/gds/base/base.h>

/* Without memory a name is not found; the macros would end the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "mca/pmdl/environment.h"
#include "topo/base/array.h"
#include "topo/inventory/host_name.h"
#include "topo/inventory/model.h"

#define MAX_RANKS (16u << 20)
/* A job of which so many ranks have no host is not asked for the hosts of the others. */
#define MAX_WITHOUT 4096u

/* A host of the job. */
struct job_host {
    uint32_t index;
    char *name;
    UT_hash_handle hh;
};

struct job_map {
    struct job_host *table;
    const char **hosts;
    uint32_t n_hosts, room;
    uint32_t *host_of, n_ranks;
};

static pmix_gds_base_module_t *job_store(void)
{
    return pmix_globals.mypeer->nptr->compat.gds;
}

/* ---- where the ranks are ---------------------------------------------------------------------------- */

/* As the launcher told it; free() it. NULL: it did not. */
static char *job_fetch(const pmix_proc_t *proc, const char *key, pmix_info_t *qualifiers, size_t n)
{
    pmix_list_t found;
    char *text = NULL;
    PMIX_CONSTRUCT(&found, pmix_list_t);
    if (job_store()->fetch(proc, PMIX_INTERNAL, true, key, qualifiers, n, &found) == PMIX_SUCCESS &&
        pmix_list_get_size(&found) > 0) {
        pmix_kval_t *kv = (pmix_kval_t *)pmix_list_get_first(&found);
        if (kv->value != NULL && kv->value->type == PMIX_STRING) {
            text = kv->value->data.string;
            kv->value->data.string = NULL;
        }
    }
    PMIX_LIST_DESTRUCT(&found);
    return text;
}

/* Takes the name over. FAB_NONE: no memory. */
static uint32_t job_map_host(struct job_map *map, char *name)
{
    struct job_host *host;
    HASH_FIND_STR(map->table, name, host);
    if (host != NULL) {
        free(name);
        return host->index;
    }
    host = calloc(1, sizeof(*host));
    if (host == NULL || !FAB_ARRAY_ROOM(&map->hosts, &map->room, map->n_hosts + 1)) {
        free(host);
        free(name);
        return FAB_NONE;
    }
    host->index = map->n_hosts;
    host->name = name;
    map->hosts[map->n_hosts++] = name;
    HASH_ADD_KEYPTR(hh, map->table, name, strlen(name), host);
    if (host->hh.tbl == NULL) { /* no memory */
        map->n_hosts--;
        free(host);
        free(name);
        return FAB_NONE;
    }
    return host->index;
}

static void job_map_free(struct job_map *map)
{
    struct job_host *host, *next;
    HASH_ITER(hh, map->table, host, next)
    {
        HASH_DEL(map->table, host);
        free(host->name);
        free(host);
    }
    free(map->hosts);
    free(map->host_of);
}

/* The other ranks of a host, where the launcher has told them together: so most ranks need no look-up. */
static void job_map_peers(struct job_map *map, const pmix_namespace_t *job, uint32_t host)
{
    pmix_info_t name;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&name, PMIX_HOSTNAME, map->hosts[host], PMIX_STRING);
    char *peers = job_fetch(&proc, PMIX_LOCAL_PEERS, &name, 1), *at = peers;
    PMIX_INFO_DESTRUCT(&name);
    while (at != NULL && *at >= '0' && *at <= '9') {
        unsigned long rank = strtoul(at, &at, 10);
        if (rank < map->n_ranks && map->host_of[rank] == FAB_NONE)
            map->host_of[rank] = host;
        at += *at == ',';
    }
    free(peers);
}

static bool job_map_read(const pmix_namespace_t *job, struct job_map *map)
{
    pmix_proc_t proc;
    uint32_t without = 0;
    PMIX_LOAD_PROCID(&proc, job->nspace, 0);
    map->n_ranks = job->nprocs <= MAX_RANKS ? job->nprocs : 0;
    map->host_of = malloc(((size_t)map->n_ranks + 1) * sizeof(*map->host_of));
    if (map->host_of == NULL)
        return false;
    memset(map->host_of, 0xff, ((size_t)map->n_ranks + 1) * sizeof(*map->host_of)); /* FAB_NONE */
    for (uint32_t r = 0; r < map->n_ranks && without < MAX_WITHOUT; r++) {
        if (map->host_of[r] != FAB_NONE)
            continue;
        uint32_t known = map->n_hosts;
        proc.rank = r;
        char *host = job_fetch(&proc, PMIX_HOSTNAME, NULL, 0);
        without += host == NULL;
        map->host_of[r] = host != NULL ? job_map_host(map, host) : FAB_NONE;
        if (map->n_hosts > known)
            job_map_peers(map, job, known);
    }
    return true;
}

static uint32_t job_map_here(const struct job_map *map)
{
    struct fab_host_choice choice = {0};
    struct job_host *host = NULL;
    for (uint32_t h = 0; !choice.exact && h < map->n_hosts; h++)
        fab_choose_host(&choice, pmix_globals.hostname, map->hosts[h]);
    if (choice.host != NULL && !choice.several)
        HASH_FIND_STR(map->table, choice.host, host);
    return host != NULL ? host->index : FAB_NONE;
}

/* The ranks on this host, and what the launcher has bound each of them to. False: no memory. */
static bool job_map_local(const struct job_map *map, uint32_t at, const pmix_namespace_t *job,
                          struct pmdl_here *here)
{
    uint32_t n = 0, without = 0;
    pmix_proc_t proc;
    for (uint32_t r = 0; at != FAB_NONE && r < map->n_ranks; r++)
        n += map->host_of[r] == at;
    *here = (struct pmdl_here){.ranks = calloc((size_t)n + 1, sizeof(*here->ranks)),
                               .cpus = calloc((size_t)n + 1, sizeof(*here->cpus)),
                               .nearest = calloc((size_t)n + 1, sizeof(*here->nearest)),
                               .n = n};
    if (here->ranks == NULL || here->cpus == NULL || here->nearest == NULL)
        return false;
    PMIX_LOAD_PROCID(&proc, job->nspace, 0);
    for (uint32_t r = 0, k = 0; k < n; r++) {
        if (map->host_of[r] != at)
            continue;
        here->ranks[k] = proc.rank = r;
        if (without < MAX_WITHOUT)
            here->cpus[k] = job_fetch(&proc, PMIX_CPUSET, NULL, 0);
        without += here->cpus[k++] == NULL;
    }
    return true;
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

void pmdl_job_tell(pmix_namespace_t *job, struct pmdl_planes *planes, bool standard, bool keep)
{
    struct job_map map = {NULL};
    struct pmdl_here here = {NULL};
    struct fab_launch_told told = {0};
    uint32_t at = FAB_NONE;
    bool read = job_map_read(job, &map);
    if (read) {
        at = job_map_here(&map);
        read = job_map_local(&map, at, job, &here);
    }
    if (!read) {
        pmdl_say("%s: no memory for its %u ranks: nothing told", job->nspace, job->nprocs);
        goto cleanup;
    }
    const struct fab_launch_job launch = {.planes = planes->planes,
                                          .n_planes = planes->n,
                                          .hosts = map.hosts,
                                          .n_hosts = map.n_hosts,
                                          .host_of = map.host_of,
                                          .n_ranks = map.n_ranks,
                                          .here = at,
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
    pmdl_here_free(&here);
    job_map_free(&map);
}
