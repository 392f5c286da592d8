/*
 * job.h - a job of the library's: where its ranks are, and what it is told. The room job is for the
 * components that tell jobs of their fabric: with the library's private headers, on the library's thread.
 */
#ifndef FAB_MCA_JOB_JOB_H
#define FAB_MCA_JOB_JOB_H

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>

#include "pmix/launch/job_map.h"
#include "pmix/launch/launch.h"

/* The library's job of this name; NULL: it knows none. */
pmix_namespace_t *mca_job_find(const char *nspace);

/* Where its ranks are, as the library was told. False: no memory. fab_job_map_free() in any case. */
bool mca_job_map(const pmix_namespace_t *job, struct fab_job_map *map);

/* Was it told of its fabric? */
bool mca_job_knows(const pmix_namespace_t *job);

/* Has a rank (a host, where that is not NULL) just these endpoints under the key? */
bool mca_job_has(const pmix_namespace_t *job, pmix_rank_t rank, const char *key, const char *host,
                 const pmix_value_t *endpoints);

/* Into what the library keeps of the job, as a fab_launch_put_fn(). */
pmix_status_t mca_job_put(void *job, pmix_rank_t rank, const char *key, pmix_value_t *value);

/*
 * Put what the planes (the default one first) say of a job's hosts into its information. Says itself through
 * `say` what came of it. *here is what it found of the ranks here; fab_job_here_free() it.
 */
pmix_status_t mca_job_tell(pmix_namespace_t *job, const struct pmixfab *const *planes, uint32_t n_planes,
                           bool standard, struct fab_job_here *here, struct fab_launch_told *told,
                           void (*say)(const char *line));

#endif
