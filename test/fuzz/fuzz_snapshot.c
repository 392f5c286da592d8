/*
 * Any bytes at all: opening refuses them or everything can be asked. A mutation rarely meets a checksum, so
 * the same bytes are tried again with size and hashes made right, once for each version that is still read:
 * that is how a lying writer looks.
 */
#include "test/unit/snapshot_walk.h"
#include "topo/snapshot/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_bytes(const void *bytes, size_t size)
{
    struct pmixfab *fab = NULL;

    if (pmixfab_open_memory(bytes, size, &fab) == 0)
        walk_everything(fab);
    pmixfab_close(fab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_bytes(data, size);
    if (size < sizeof(struct snap_head))
        return 0;

    struct snap_head *sealed = malloc(size);
    if (sealed == NULL)
        return 0;
    memcpy(sealed, data, size);
    memcpy(sealed->magic, SNAP_MAGIC, SNAP_MAGIC_SIZE);
    sealed->order = SNAP_ORDER;
    sealed->size = size;
    sealed->zero = 0;
    for (uint32_t version = SNAP_OLDEST; version <= SNAP_VERSION; version++) {
        sealed->version = version;
        fab_snapshot_seal(sealed);
        try_bytes(sealed, size);
    }
    free(sealed);
    return 0;
}
