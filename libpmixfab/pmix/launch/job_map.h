/* job_map.h - on which hosts a job's ranks are, as the host of its PMIx server was told by the launcher. */
#ifndef FAB_PMIX_LAUNCH_JOB_MAP_H
#define FAB_PMIX_LAUNCH_JOB_MAP_H

#include <pmix_common.h>
#include <stdbool.h>

#include "topo/base/error.h"

/* What the library keeps of the job under a key, a string to free(); NULL: nothing. Of a rank; of a host
 * where that is not NULL, and the rank says nothing. */
typedef char *(*fab_job_told_fn)(const void *job, pmix_rank_t rank, const char *key, const char *host);

struct fab_job_map {
    struct job_host *table;
    const char **hosts; /* each once */
    uint32_t n_hosts, room;
    uint32_t *host_of, n_ranks; /* an index in hosts; FAB_NONE: not told */
    uint32_t here;              /* an index in hosts; FAB_NONE: no rank of the job is on this host */
};

/* `here`: this host's name. False: no memory. To be freed in any case. */
bool fab_job_map_read(fab_job_told_fn told, const void *job, uint32_t n_ranks, const char *here,
                      struct fab_job_map *map);
void fab_job_map_free(struct fab_job_map *map);

/*
 * From what the library makes of PMIX_NODE_MAP, names, and PMIX_PROC_MAP, the ranks of each node as "0-3,8"
 * (both up to NULL). PMIXFAB_ERR_INVAL, and err says why: they disagree, a node is there twice, a rank is
 * there twice or is missing. _NOMEM. To be freed in any case.
 */
int fab_job_map_parse(char *const *nodes, char *const *ranks, struct fab_job_map *map, struct fab_err *err);

/* The ranks of a job on this host. */
struct fab_job_here {
    pmix_rank_t *ranks; /* ascending */
    char **cpus;        /* what each is bound to; NULL: the host did not say */
    struct pmixfab_nearest *nearest;
    uint32_t n;
};

/* And what the launcher has bound each of them to; likewise. */
bool fab_job_here_read(fab_job_told_fn told, const void *job, const struct fab_job_map *map,
                       struct fab_job_here *here);
void fab_job_here_free(struct fab_job_here *here);

/*
 * PMIX_NODE_MAP and PMIX_PROC_MAP as the PMIx library writes them where it does not compress them:
 * "pmix[node[4:1-16,20],login]", "pmix[0-3;4,5]" or "raw:0-3;4,5", or the bare lists. The library's own
 * parser crashes on what it did not write.
 */

#define FAB_MAP_NODES (1u << 17) /* at most */

/* The names of the nodes, up to NULL; fab_map_free() them. NULL: that is no map, or no memory. */
char **fab_map_nodes(const char *text);

/* The ranks of each node, as they stand there; likewise. */
char **fab_map_ranks(const char *text);

void fab_map_free(char **list); /* NULL allowed */

#endif
