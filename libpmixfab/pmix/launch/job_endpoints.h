/*
 * job_endpoints.h - the endpoints of a job: how many numbers it needs, and which of those that it has are
 * whose (docs/design/launch.md, "Endpoints").
 */
#ifndef FAB_PMIX_LAUNCH_JOB_ENDPOINTS_H
#define FAB_PMIX_LAUNCH_JOB_ENDPOINTS_H

#include "pmix/launch/blob.h"
#include "pmix/launch/job_map.h"
#include "pmix/launch/launch.h"

/* In a job with more endpoints those of this host and its ranks are told, and of no others. */
#define FAB_ENDPOINTS_ELSEWHERE (1u << 18)

/* This host and its ranks have no more: the blob may be anybody's, and each endpoint takes memory. */
#define FAB_ENDPOINTS_HERE (1u << 18)

/* So many numbers of each plane are needed for as many of each process and of each node. */
uint64_t fab_endpoints_needed(const struct fab_job_map *map, uint32_t per_process, uint32_t per_node);

/* The names of the planes with hosts of the job, as long as the planes are open. free() them. NULL: no
 * memory. */
const char **fab_endpoints_planes(const struct fab_launch_job *job, uint32_t *n);

/*
 * Hand over PMIX_FABRIC_ENDPT of each rank, and of each node as a PMIX_NODE_INFO_ARRAY of its PMIX_HOSTNAME
 * and that. PMIX_ERR_BAD_PARAM: the job has fewer than its ranks need, _OUT_OF_RESOURCE: they
 * need more than FAB_ENDPOINTS_HERE here. Then nothing is handed over. An error of put() ends it.
 */
pmix_status_t fab_endpoints_tell(const struct fab_launch_job *job, const struct fab_blob *blob,
                                 fab_launch_put_fn put, void *to);

/* The numbers that the job has of a plane, as "1000-1003,1007". free() it. NULL: none, or no memory. */
char *fab_endpoints_text(const struct fab_blob *blob, const char *plane);

#endif
