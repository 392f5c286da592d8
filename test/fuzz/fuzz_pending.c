/* Any bytes as the file `pending`: refused, or read; and what was read comes back from its text. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "topo/snapshot/pending.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

static int read_from_memory(const void *bytes, size_t size, struct fab_pending *out)
{
    int fd = memfd_create("pending", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    int rc = fab_pending_read(fd, out);
    close(fd);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fab_pending pending, again;
    int rc = read_from_memory(data, size, &pending);
    must(rc == PMIXFAB_OK || rc == PMIXFAB_ERR_CORRUPT);
    if (rc != PMIXFAB_OK) {
        must(pending.generation == 0 && pending.n == 0 && pending.planes == NULL);
        return 0;
    }
    must(pending.generation != 0 && pending.n <= FAB_PENDING_PLANES);
    char *text = fab_pending_text(&pending);
    must(text != NULL && read_from_memory(text, strlen(text), &again) == PMIXFAB_OK);
    must(again.generation == pending.generation && again.n == pending.n);
    for (uint32_t i = 0; i < pending.n; i++)
        must(again.planes[i].index == pending.planes[i].index &&
             strcmp(again.planes[i].name, pending.planes[i].name) == 0);
    free(text);
    fab_pending_clear(&again);
    fab_pending_clear(&pending);
    return 0;
}
