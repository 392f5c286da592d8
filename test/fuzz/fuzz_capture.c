/* fuzz_capture.c - the readers of recorded fabrics: whatever comes, an explained error or a finished
 * inventory. */
#include <stdlib.h>
#include <string.h>

#include "probes/capture/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fab_inventory inv;
    struct fab_err err = {{0}};
    fab_inventory_init(&inv);
    int rc = cache_is(data, size) ? cache_parse("fuzz", data, size, NULL, &inv, &err)
                                  : capture_parse("fuzz", (const char *)data, size, NULL, &inv, &err);
    if (rc == PMIXFAB_OK ? !inv.finished : strncmp(err.text, "fuzz:", 5) != 0)
        abort();
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < inv.n_ports; i++)
        if (inv.ports[i].peer != FAB_NONE && inv.ports[inv.ports[i].peer].peer != i)
            abort();
    fab_inventory_destroy(&inv);
    return 0;
}
