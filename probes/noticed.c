/* noticed.c - the list of what a cheap look noticed. */
#include <stdlib.h>

#include "probes/probe.h"

int probe_noticed_add(struct probe_noticed *noticed, uint64_t guid, struct fab_err *err)
{
    for (uint32_t i = 0; i < noticed->n; i++)
        if (noticed->guids[i] == guid)
            return PMIXFAB_OK;
    if (noticed->n == noticed->cap) {
        const uint32_t cap = noticed->cap == 0 ? 16 : noticed->cap * 2;
        uint64_t *guids = realloc(noticed->guids, cap * sizeof(*guids));
        if (guids == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for %u changes", cap);
        noticed->guids = guids;
        noticed->cap = cap;
    }
    noticed->guids[noticed->n++] = guid;
    return PMIXFAB_OK;
}

void probe_noticed_free(struct probe_noticed *noticed)
{
    free(noticed->guids);
    *noticed = (struct probe_noticed){0};
}
