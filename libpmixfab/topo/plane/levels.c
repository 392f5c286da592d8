/* levels.c - how far switches are from those with devices. */
#include "topo/plane/layout.h"

int fab_levels_find(const struct fab_plane *plane, const uint8_t *upper, uint8_t *level)
{
    uint32_t n = plane->n_switches, head = 0, tail = 0;
    uint32_t *queue = fab_array(n, sizeof *queue);
    uint8_t *found = fab_array(n, sizeof *found);
    int rc = PMIXFAB_ERR_NOMEM;

    if (queue == NULL || found == NULL)
        goto cleanup;
    for (uint32_t s = 0; s < n; s++) {
        level[s] = 0;
        if (plane->switches[s].n_devices > 0 && (upper == NULL || !upper[s])) {
            found[s] = 1;
            queue[tail++] = s;
        }
    }
    while (head < tail) {
        uint32_t at = queue[head++];
        for (uint32_t e = plane->switches[at].adj_first; e < fab_adj_end(plane, at); e++) {
            uint32_t to = plane->adj[e].to;
            if (found[to])
                continue;
            found[to] = 1;
            level[to] = level[at] < UINT8_MAX ? level[at] + 1 : UINT8_MAX;
            queue[tail++] = to;
        }
    }
    rc = 0;

cleanup:
    free(queue);
    free(found);
    return rc;
}
