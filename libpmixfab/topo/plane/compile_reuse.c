/*
 * compile_reuse.c - where the strings of a plane stood in its last snapshot.
 *
 * A text that is new shifts those behind it, and with them every fact that points at one: of a small change
 * the whole snapshot would be other bytes, and all of it be written. So strings keep their places. It is a
 * guess where one stood, and it is looked whether it stands there.
 */
#include <stdlib.h>

#include "topo/plane/compile_priv.h"
#include "topo/snapshot/reader.h"

int fab_snapshot_find_reusable(struct snap_build *b)
{
    const struct pmixfab *before = b->before;
    const struct fab_plane *plane = b->plane;
    uint32_t next = 0;

    if (before == NULL)
        return PMIXFAB_OK;
    b->was = malloc((plane->n_devices + (size_t)1) * sizeof(*b->was));
    if (b->was == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint64_t guid = plane->inv->ports[plane->devices[i].port].guid;
        bool here = next < before->meta->n_devices && before->devices[next].port_guid == guid;
        b->was[i] = here ? next : fab_reader_port(before, guid); /* mostly the order is the same */
        next = b->was[i] == FAB_NONE ? next : b->was[i] + 1;
    }
    return PMIXFAB_OK;
}

uint32_t fab_snapshot_reuse_device(const struct snap_build *b, uint32_t device)
{
    return b->was == NULL || b->was[device] == FAB_NONE ? 0 : b->before->devices[b->was[device]].name;
}

uint32_t fab_snapshot_reuse_host(const struct snap_build *b, uint32_t device)
{
    if (b->was == NULL || b->was[device] == FAB_NONE)
        return 0;
    return b->before->hosts[b->before->costs.host[b->was[device]]].name;
}

uint32_t fab_snapshot_reuse_switch(const struct snap_build *b, uint64_t guid, uint32_t *at)
{
    const struct pmixfab *before = b->before;

    if (before == NULL)
        return 0;
    while (*at < before->meta->n_switches && before->switches[*at].guid < guid)
        ++*at;
    if (*at == before->meta->n_switches || before->switches[*at].guid != guid)
        return 0;
    return before->switches[*at].name;
}

const struct snap_fact *fab_snapshot_reuse_facts(const struct snap_build *b, uint32_t device, uint32_t *n)
{
    *n = 0;
    if (b->was == NULL || b->was[device] == FAB_NONE || b->before->facts == NULL)
        return NULL;
    const uint32_t *at = b->before->fact_at + b->was[device];
    *n = at[1] - at[0];
    return b->before->facts + at[0];
}
