/*
 * A snapshot with bytes changed or cut, and its hashes made right, so that it is as a lying writer would make
 * it: a job is told something of it, or nothing. The input is a list of five bytes each: place (three), what
 * is put there, and whether it is cut there.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/launch/launch.h"
#include "test/unit/served_small.h"
#include "topo/snapshot/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static pmix_status_t swallow(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    size_t *sum = to;
    *sum += rank + strlen(key) + (value->type == PMIX_DATA_ARRAY ? value->data.darray->size : 0);
    return PMIX_SUCCESS;
}

static void launch_try(const void *bytes, size_t size)
{
    static const char *const hosts[] = {"node0001", "node0003.site", "node0004", "other", ""};
    static const uint32_t host_of[] = {0, 0, 1, 2, 3, 4, FAB_NONE, 2, 1};
    struct pmixfab *fab = NULL;
    struct fab_launch_told told;
    size_t sum = 0;
    if (pmixfab_open_memory(bytes, size, &fab) != PMIXFAB_OK)
        return;
    for (int standard = 0; standard < 2; standard++) {
        const struct fab_launch_job job = {.planes = (const struct pmixfab *const[]){fab, fab},
                                           .n_planes = 2,
                                           .hosts = hosts,
                                           .n_hosts = 5,
                                           .host_of = host_of,
                                           .n_ranks = 9,
                                           .here = (uint32_t)standard,
                                           .standard = standard != 0};
        if (fab_launch_fill(&job, swallow, &sum, &told) != PMIX_SUCCESS && sum == 0)
            abort();
    }
    pmixfab_close(fab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct served_plane *whole;
    if (whole == NULL && (whole = small_plane("fattree2:2,1,2", "ib1", 1, true)) == NULL)
        abort();
    size_t length = whole->size;
    char *bytes = malloc(length);
    if (bytes == NULL)
        return 0;
    memcpy(bytes, whole->bytes, length);
    for (; size >= 5; data += 5, size -= 5) {
        size_t at = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % whole->size;
        if (at < length)
            bytes[at] = (char)data[3];
        if (data[4] == 1 && at < length)
            length = at;
    }
    launch_try(bytes, length);
    if (length >= sizeof(struct snap_head)) {
        struct snap_head *head = (struct snap_head *)bytes;
        head->size = length;
        fab_snapshot_seal(bytes);
        launch_try(bytes, length);
    }
    free(bytes);
    return 0;
}
