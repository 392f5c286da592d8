/* dirty.c - the list of what a light sweep dirty. */
#include <stdlib.h>

#include "probes/core/probe.h"

int dirty_switches_add(struct dirty_switches *dirty, uint64_t guid, struct fab_err *err)
{
    for (uint32_t i = 0; i < dirty->n; i++)
        if (dirty->guids[i] == guid)
            return PMIXFAB_OK;
    if (dirty->n == dirty->cap) {
        const uint32_t cap = dirty->cap == 0 ? 16 : dirty->cap * 2;
        uint64_t *guids = realloc(dirty->guids, cap * sizeof(*guids));
        if (guids == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for %u changes", cap);
        dirty->guids = guids;
        dirty->cap = cap;
    }
    dirty->guids[dirty->n++] = guid;
    return PMIXFAB_OK;
}

void dirty_switches_free(struct dirty_switches *dirty)
{
    free(dirty->guids);
    *dirty = (struct dirty_switches){0};
}
