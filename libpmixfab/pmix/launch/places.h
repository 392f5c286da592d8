/* places.h - where the hosts of a job stand in the planes: the rest of this room works with that. */
#ifndef FAB_PMIX_LAUNCH_PLACES_H
#define FAB_PMIX_LAUNCH_PLACES_H

#include "pmix/launch/launch.h"

struct launch_places {
    const struct fab_launch_job *job;
    uint32_t *host;  /* [host of the job * n_planes + plane]: the plane's host; FAB_NONE */
    uint32_t *first; /* n_hosts + 1: ranks of host h are those from [h] to before [h + 1] of ranks */
    pmix_rank_t *ranks;
    uint64_t devices; /* of all hosts of the job */
    uint32_t plane;   /* that coordinates, dims, groups are of: the first with a host of the job; FAB_NONE */
};

/* PMIX_ERR_NOMEM; launch_places_free() either way. */
pmix_status_t launch_places_find(const struct fab_launch_job *job, struct launch_places *out);
void launch_places_free(struct launch_places *places);

/* A walk over the devices of a host of the job, plane by plane: {.host = h}. */
struct launch_device {
    uint32_t host;
    const struct pmixfab *fab; /* of the device */
    uint32_t index;
    uint32_t plane_, left_; /* the walk's own */
};
bool launch_device_next(const struct launch_places *places, struct launch_device *at);
uint32_t launch_device_count(const struct launch_places *places, uint32_t host);

/* Write what this host's processes ask for by rank, and PMIX_NODE_INFO_ARRAYs. (job_node.c) */
pmix_status_t launch_put_nodes(const struct launch_places *places, fab_launch_put_fn put, void *to);

/* PMIXFAB_KEY_JOB_COORDINATES. (job_node.c) */
pmix_status_t launch_coordinates(const struct launch_places *places, pmix_value_t *value);

/* PMIX_SWITCH_PEERS. *elsewhere: of the ranks of other hosts, too. (peers.c) */
pmix_status_t launch_put_peers(const struct launch_places *places, fab_launch_put_fn put, void *to,
                               bool *elsewhere);

#endif
