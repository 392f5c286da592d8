/* launch_nearest.c - the device that each rank here is to use. */
#include <stdlib.h>

#include "pmix/answers/device.h"
#include "pmix/answers/value.h"
#include "pmix/launch/places.h"
#include "topo/model/model.h"

static pmix_status_t nearest_put(const struct launch_places *places, pmix_rank_t rank, uint32_t device,
                                 fab_launch_put_fn put, void *to)
{
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    pmix_status_t rc = fab_device_value(places->job->planes[places->plane], device, &value);
    if (rc == PMIX_SUCCESS)
        rc = put(to, rank, PMIXFAB_KEY_JOB_NEAREST, &value);
    fab_value_free(&value);
    return rc;
}

pmix_status_t launch_put_nearest(const struct launch_places *places, fab_launch_put_fn put, void *to,
                                 struct fab_launch_told *told)
{
    const struct fab_launch_job *job = places->job;
    if (job->here == FAB_NONE)
        return PMIX_SUCCESS;
    uint32_t host = places->host[(size_t)job->here * job->n_planes + places->plane];
    uint32_t first = places->first[job->here], n = places->first[job->here + 1] - first;
    if (host == FAB_NONE || n == 0)
        return PMIX_SUCCESS;
    struct pmixfab_nearest *own = job->nearest != NULL ? NULL : calloc(n, sizeof(*own));
    struct pmixfab_nearest *nearest = own != NULL ? own : job->nearest;
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (nearest != NULL &&
        pmixfab_nearest(job->planes[places->plane], host, 0, job->cpus, n, nearest) == PMIXFAB_OK) {
        told->plane = places->plane;
        told->host = host;
        rc = PMIX_SUCCESS;
    }
    for (uint32_t r = 0; rc == PMIX_SUCCESS && r < n && n <= FAB_LAUNCH_RANK_DEVICES; r++)
        if (nearest[r].device != UINT32_MAX)
            rc = nearest_put(places, places->ranks[first + r], nearest[r].device, put, to);
    free(own);
    return rc;
}
