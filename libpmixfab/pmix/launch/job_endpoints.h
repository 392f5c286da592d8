/*
 * job_endpoints.h - the endpoints of a job: how many numbers it needs, and their assignment
 * (docs/design/launch.md, "Endpoints").
 */
#ifndef FAB_PMIX_LAUNCH_JOB_ENDPOINTS_H
#define FAB_PMIX_LAUNCH_JOB_ENDPOINTS_H

#include "pmix/launch/blob.h"
#include "pmix/launch/job_map.h"
#include "pmix/launch/launch.h"

/* In a job with more endpoints only those of this host and its ranks are put. */
#define FAB_ENDPOINTS_ELSEWHERE (1u << 18)

/* Limit for this host and its ranks: the blob may be from anyone, and each endpoint takes memory. */
#define FAB_ENDPOINTS_HERE (1u << 18)

/* Return how many numbers of each plane are needed for the given numbers of each process and of each node. */
uint64_t fab_endpoints_needed(const struct fab_job_map *map, uint32_t per_process, uint32_t per_node);

/*
 * Return the names of the planes with hosts of the job, valid while the planes are open. Free the array with
 * free(). NULL without memory.
 */
const char **fab_endpoints_planes(const struct fab_launch_job *job, uint32_t *n);

/*
 * Put PMIX_FABRIC_ENDPT of each rank and each node. For a node, put a PMIX_NODE_INFO_ARRAY with its
 * PMIX_HOSTNAME and the endpoints. PMIX_ERR_BAD_PARAM: the job has fewer endpoints than its ranks need;
 * _OUT_OF_RESOURCE: the ranks here need more than FAB_ENDPOINTS_HERE. In both cases nothing is put. An error
 * of put() ends the function.
 */
pmix_status_t fab_endpoints_tell(const struct fab_launch_job *job, const struct fab_blob *blob,
                                 fab_launch_put_fn put, void *to);

/*
 * Return the job's numbers of a plane as "1000-1003,1007", to be freed with free(). NULL: none, or no memory.
 */
char *fab_endpoints_text(const struct fab_blob *blob, const char *plane);

#endif
