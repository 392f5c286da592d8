/*
 * Bytes that a node is handed as a job's launch information, as they are and with the head made right, as a
 * liar would make it: what is believed can be told.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/launch/blob.h"
#include "pmix/launch/job_endpoints.h"
#include "pmix/launch/launch.h"
#include "topo/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static pmix_status_t blob_swallow(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    size_t *sum = to;
    *sum += rank + strlen(key) + (value->type == PMIX_DATA_ARRAY ? value->data.darray->size : 0);
    return PMIX_SUCCESS;
}

static void blob_try(const uint8_t *bytes, size_t size)
{
    static const char *const hosts[] = {"node0001", "node0002.site", "node0016", "other"};
    static const uint32_t host_of[] = {0, 0, 1, 2, 3, FAB_NONE, 2, 1};
    struct fab_launch_told told;
    struct fab_blob blob;
    size_t sum = 0;
    if (fab_blob_read(bytes, size, "j", &blob, NULL) != PMIXFAB_OK)
        return;
    for (uint32_t i = 0; i < blob.n_envs; i++)
        sum += strlen(blob.envs[i]);
    for (int standard = 0; standard < 2; standard++) {
        const struct fab_launch_job job = {.planes = blob.planes,
                                           .n_planes = blob.n_planes,
                                           .hosts = hosts,
                                           .n_hosts = 4,
                                           .host_of = host_of,
                                           .n_ranks = 8,
                                           .here = (uint32_t)standard,
                                           .standard = standard != 0};
        fab_launch_fill(&job, blob_swallow, &sum, &told);
        fab_endpoints_tell(&job, &blob, blob_swallow, &sum);
    }
    free(fab_endpoints_text(&blob, blob.plane));
    fab_blob_free(&blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    blob_try(data, size);
    uint8_t *copy = size < FRAME_HEAD ? NULL : malloc(size);
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    frame_seal(&blob_frame, copy, size);
    blob_try(copy, size);
    free(copy);
    return 0;
}
