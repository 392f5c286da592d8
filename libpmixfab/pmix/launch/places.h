/* places.h - the places of a job's hosts in the planes, used by the rest of this room. */
#ifndef FAB_PMIX_LAUNCH_PLACES_H
#define FAB_PMIX_LAUNCH_PLACES_H

#include "pmix/launch/launch.h"

struct launch_places {
    const struct fab_launch_job *job;
    uint32_t *host;  /* [host of the job * n_planes + plane]: the plane's host; FAB_NONE */
    uint32_t *first; /* n_hosts + 1: the ranks of host h are [h] to before [h + 1] of ranks */
    pmix_rank_t *ranks;
    uint64_t devices; /* of all hosts of the job */
    uint32_t plane;   /* the plane of coordinates, dims, groups: the first with a host of the job; FAB_NONE */
};

/* Find them. PMIX_ERR_NOMEM; call launch_places_free() in any case. */
pmix_status_t launch_places_find(const struct fab_launch_job *job, struct launch_places *out);
void launch_places_free(struct launch_places *places);

/* A pass over the devices of a host of the job, plane by plane: {.host = h}. */
struct launch_device {
    uint32_t host;
    const struct pmixfab *fab; /* of the device */
    uint32_t index;
    uint32_t plane_, left_; /* private to the pass */
};
bool launch_device_next(const struct launch_places *places, struct launch_device *at);
uint32_t launch_device_count(const struct launch_places *places, uint32_t host);

/* Write the keys that this host's processes request by rank, and PMIX_NODE_INFO_ARRAYs. (job_node.c) */
pmix_status_t launch_put_nodes(const struct launch_places *places, fab_launch_put_fn put, void *to);

/* Make PMIXFAB_KEY_JOB_COORDINATES. (job_node.c) */
pmix_status_t launch_coordinates(const struct launch_places *places, pmix_value_t *value);

/* Put PMIX_SWITCH_PEERS. *elsewhere: also for the ranks of other hosts. (peers.c) */
pmix_status_t launch_put_peers(const struct launch_places *places, fab_launch_put_fn put, void *to,
                               bool *elsewhere);

#endif
