/* dirty_switches.c - the list of what a light sweep finds changed. */
#include "probes/core/probe.h"
#include "topo/base/array.h"

int dirty_switches_add(struct dirty_switches *dirty, uint64_t guid, struct fab_err *err)
{
    for (uint32_t i = 0; i < dirty->n; i++)
        if (dirty->guids[i] == guid)
            return PMIXFAB_OK;
    if (!FAB_ARRAY_ROOM(&dirty->guids, &dirty->cap, (uint64_t)dirty->n + 1))
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for %u changes", dirty->n + 1);
    dirty->guids[dirty->n++] = guid;
    return PMIXFAB_OK;
}

void dirty_switches_free(struct dirty_switches *dirty)
{
    free(dirty->guids);
    *dirty = (struct dirty_switches){0};
}
