/* job_map.h - the hosts of a job's ranks, from the launcher's data in the job's PMIx server. */
#ifndef FAB_PMIX_LAUNCH_JOB_MAP_H
#define FAB_PMIX_LAUNCH_JOB_MAP_H

#include <pmix_common.h>
#include <stdbool.h>

#include "topo/base/error.h"

/*
 * Return the library's value of the job under a key, a string to be freed with free(); NULL: none. The value
 * is that of the rank. If the rank has no value and host is not NULL, it is the value of the host.
 */
typedef char *(*fab_job_told_fn)(const void *job, pmix_rank_t rank, const char *key, const char *host);

struct fab_job_map {
    struct job_host *table;
    const char **hosts; /* each once */
    uint32_t n_hosts, room;
    uint32_t *host_of, n_ranks; /* an index in hosts; FAB_NONE: unknown */
    uint32_t here;              /* an index in hosts; FAB_NONE: no rank of the job is on this host */
};

/* `here`: this host's name. Return false without memory. Free it in any case. */
bool fab_job_map_read(fab_job_told_fn told, const void *job, uint32_t n_ranks, const char *here,
                      struct fab_job_map *map);
void fab_job_map_free(struct fab_job_map *map);

/*
 * Make the map from PMIX_NODE_MAP, names, and PMIX_PROC_MAP, the ranks of each node as "0-3,8" (both up to
 * NULL). PMIXFAB_ERR_INVAL, with the reason in err: they disagree, a node is listed twice, a rank is listed
 * twice or missing. _NOMEM. Free it in any case.
 */
int fab_job_map_parse(char *const *nodes, char *const *ranks, struct fab_job_map *map, struct fab_err *err);

/* The ranks of a job on this host. */
struct fab_job_here {
    pmix_rank_t *ranks; /* ascending */
    char **cpus;        /* binding of each; NULL: unknown */
    struct pmixfab_nearest *nearest;
    uint32_t n;
};

/*
 * Read the ranks here and the launcher's binding of each. Return false without memory. Free it in any case.
 */
bool fab_job_here_read(fab_job_told_fn told, const void *job, const struct fab_job_map *map,
                       struct fab_job_here *here);
void fab_job_here_free(struct fab_job_here *here);

/*
 * Parse PMIX_NODE_MAP and PMIX_PROC_MAP in the uncompressed forms of the PMIx library:
 * "pmix[node[4:1-16,20],login]", "pmix[0-3;4,5]" or "raw:0-3;4,5", or the bare lists. The library's own
 * parser crashes on other input.
 */

#define FAB_MAP_NODES (1u << 17) /* maximum number */

/*
 * Return the names of the nodes, up to NULL, to be freed with fab_map_free(). NULL: not a map, or no memory.
 */
char **fab_map_nodes(const char *text);

/* As above, the ranks of each node as text. */
char **fab_map_ranks(const char *text);

void fab_map_free(char **list); /* NULL is allowed */

#endif
