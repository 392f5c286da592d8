/* inventories.h - what every reader of a fabric owes: an explained error or a finished inventory. */
#ifndef TEST_FUZZ_INVENTORIES_H
#define TEST_FUZZ_INVENTORIES_H

#include <stdlib.h>
#include <string.h>

#include "probes/core/source_file.h"

static inline void fuzz_reader(source_file_reader *read, const uint8_t *data, size_t size)
{
    struct fab_inventory inv;
    struct fab_err err = {{0}};
    fab_inventory_init(&inv);
    const int rc = read("fuzz", (const char *)data, size, NULL, &inv, &err);
    if (rc == PMIXFAB_OK ? !inv.finished : strncmp(err.text, "fuzz:", 5) != 0)
        abort();
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < inv.n_ports; i++)
        if (inv.ports[i].peer != FAB_NONE && inv.ports[inv.ports[i].peer].peer != i)
            abort();
    fab_inventory_destroy(&inv);
}

#endif
