/* join_groups.c - lists of devices and of the items that they are made of. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/join/join_state.h"

void join_groups_free(struct join_groups *groups)
{
    free(groups->groups);
    free(groups->links);
    memset(groups, 0, sizeof(*groups));
}

int join_groups_room(struct join_groups *out, uint32_t n, uint32_t n_links)
{
    return FAB_ARRAY_ROOM(&out->groups, &out->cap, (uint64_t)out->n + n) &&
                   FAB_ARRAY_ROOM(&out->links, &out->cap_links, (uint64_t)out->n_links + n_links)
               ? PMIXFAB_OK
               : PMIXFAB_ERR_NOMEM;
}

int join_groups_copy(const struct join_groups *from, uint32_t first, uint32_t n, uint32_t number,
                     struct join_groups *out)
{
    if (n == 0)
        return PMIXFAB_OK;
    const struct join_group *old = &from->groups[first]; /* links stand in the order of their groups */
    uint32_t n_links = old[n - 1].first + old[n - 1].n - old[0].first;
    int rc = join_groups_room(out, n, n_links);
    if (rc != PMIXFAB_OK)
        return rc;
    for (uint32_t g = 0; g < n; g++)
        out->groups[out->n + g] =
            (struct join_group){number, out->n_links + (old[g].first - old[0].first), old[g].n, old[g].rdma};
    memcpy(out->links + out->n_links, from->links + old[0].first, n_links * sizeof(*out->links));
    out->n += n;
    out->n_links += n_links;
    return PMIXFAB_OK;
}
