/*
 * job.h - a job of the PMIx library: the places of its ranks, and its launch information. The room job is for
 * the components that set launch information: with the library's private headers, on the library's thread.
 */
#ifndef FAB_MCA_JOB_JOB_H
#define FAB_MCA_JOB_JOB_H

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>

#include "pmix/launch/job_map.h"
#include "pmix/launch/launch.h"

/* Return the library's job with this name; NULL: unknown. */
pmix_namespace_t *mca_job_find(const char *nspace);

/*
 * Make the map of its ranks from the library's data. Return false without memory. Call fab_job_map_free() in
 * any case.
 */
bool mca_job_map(const pmix_namespace_t *job, struct fab_job_map *map);

/* Return whether it has launch information. */
bool mca_job_knows(const pmix_namespace_t *job);

/* Return whether a rank (or a host, if that is not NULL) has exactly these endpoints under the key. */
bool mca_job_has(const pmix_namespace_t *job, pmix_rank_t rank, const char *key, const char *host,
                 const pmix_value_t *endpoints);

/* Store a value in the library's data of the job; a fab_launch_put_fn(). */
pmix_status_t mca_job_put(void *job, pmix_rank_t rank, const char *key, pmix_value_t *value);

/*
 * Set the launch information of a job from the planes (the default one first) and report the result through
 * `say`. *here becomes the ranks on this host; free it with fab_job_here_free().
 */
pmix_status_t mca_job_tell(pmix_namespace_t *job, const struct pmixfab *const *planes, uint32_t n_planes,
                           bool standard, struct fab_job_here *here, struct fab_launch_told *told,
                           void (*say)(const char *line));

#endif
