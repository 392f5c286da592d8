/*
 * dragonfly.c - recognise dragonflies: groups of at least three routers, each group cabled all to all, and
 * cables between all pairs of groups.
 *
 * Two routers of one group have the rest of the group as common neighbours; two routers joined by a global
 * cable have few or none. So the cables whose ends have many common neighbours form the groups, and counting
 * verifies them. In small groups with many global cables this is not clear everywhere. Then the clear groups
 * are formed first and their routers removed; this makes other groups clear. Some pulled cables are
 * tolerated, so that they do not change coordinates.
 */
#include <string.h>

#include "topo/base/disjoint.h"
#include "topo/plane/layout.h"

struct hunt {
    const struct fab_plane *plane;
    uint32_t *back;   /* per cable: the same cable seen from its other end */
    uint32_t *common; /* per cable: number of common neighbours of its ends */
    uint32_t *shared; /* the same among routers not yet in a group */
    uint32_t *group;  /* per router; FAB_NONE: not in a group yet */
    uint32_t *size;   /* per group */
    uint32_t *mark;   /* per router: the last set (tick) that it was seen in */
    uint32_t *list;   /* routers, temporary */
    uint32_t *set;    /* disjoint sets of routers */
    uint32_t *queue;  /* ring buffer of routers to check */
    uint8_t *queued;
    uint32_t tick, n_groups, most;
};

static uint32_t first_cable(const struct hunt *hunt, uint32_t u)
{
    return hunt->plane->switches[u].adj_first;
}

static uint32_t dragonfly_peer(const struct hunt *hunt, uint32_t e)
{
    return hunt->plane->adj[e].to;
}

/* Neighbours are in ascending order, so each list's entries are met in order when all routers are visited. */
static void find_back(struct hunt *hunt)
{
    uint32_t n = hunt->plane->n_switches;
    for (uint32_t u = 0; u < n; u++)
        hunt->list[u] = first_cable(hunt, u);
    for (uint32_t u = 0; u < n; u++)
        for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(hunt->plane, u); e++)
            hunt->back[e] = hunt->list[dragonfly_peer(hunt, e)]++;
}

/* Return false if a router is in no triangle: then it is not a dragonfly. */
static bool count_common(struct hunt *hunt)
{
    const struct fab_plane *plane = hunt->plane;
    for (uint32_t u = 0; u < plane->n_switches; u++) {
        uint32_t first = first_cable(hunt, u), end = fab_adj_end(plane, u), best = 0;
        hunt->tick++;
        for (uint32_t e = first; e < end; e++)
            hunt->mark[dragonfly_peer(hunt, e)] = hunt->tick;
        for (uint32_t e = first; e < end; e++) {
            uint32_t v = dragonfly_peer(hunt, e), n = 0;
            if (v > u) {
                for (uint32_t f = first_cable(hunt, v); f < fab_adj_end(plane, v); f++)
                    n += hunt->mark[dragonfly_peer(hunt, f)] == hunt->tick;
                hunt->common[e] = hunt->common[hunt->back[e]] = n;
            }
            best = hunt->common[e] > best ? hunt->common[e] : best;
        }
        if (best == 0)
            return false;
        hunt->most = best > hunt->most ? best : hunt->most;
    }
    return true;
}

static void dragonfly_enqueue(struct hunt *hunt, uint32_t u, uint32_t *tail)
{
    if (hunt->queued[u] || hunt->group[u] != FAB_NONE)
        return;
    hunt->queued[u] = 1;
    hunt->queue[(*tail)++ % hunt->plane->n_switches] = u;
}

/* Remove router u, which is in a group now: its cables no longer count for its neighbours. */
static void take_out(struct hunt *hunt, uint32_t u, uint32_t *tail)
{
    const struct fab_plane *plane = hunt->plane;
    hunt->tick++;
    for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(plane, u); e++)
        if (hunt->group[dragonfly_peer(hunt, e)] == FAB_NONE)
            hunt->mark[dragonfly_peer(hunt, e)] = hunt->tick;
    for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(plane, u); e++) {
        uint32_t v = dragonfly_peer(hunt, e);
        if (hunt->mark[v] != hunt->tick)
            continue;
        for (uint32_t f = first_cable(hunt, v); f < fab_adj_end(plane, v); f++)
            hunt->shared[f] -= hunt->mark[dragonfly_peer(hunt, f)] == hunt->tick;
        dragonfly_enqueue(hunt, v, tail);
    }
}

/*
 * List the free neighbours with which u shares at least `share` others. If they and u are share + 2 routers
 * cabled all to all, they are the only possible group of u.
 */
static bool is_clear(struct hunt *hunt, uint32_t u, uint32_t share, uint32_t *n)
{
    *n = 0;
    for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(hunt->plane, u); e++)
        if (hunt->group[dragonfly_peer(hunt, e)] == FAB_NONE && hunt->shared[e] >= share)
            hunt->list[(*n)++] = dragonfly_peer(hunt, e);
    if (*n != share + 1)
        return false;
    hunt->list[(*n)++] = u;
    hunt->tick++;
    for (uint32_t i = 0; i < *n; i++)
        hunt->mark[hunt->list[i]] = hunt->tick;
    for (uint32_t i = 0; i < *n; i++) {
        uint32_t v = hunt->list[i], inside = 0;
        for (uint32_t e = first_cable(hunt, v); e < fab_adj_end(hunt->plane, v); e++)
            inside += hunt->mark[dragonfly_peer(hunt, e)] == hunt->tick;
        if (inside != *n - 1)
            return false;
    }
    return true;
}

/* Form groups of share + 2 routers, clear ones first, until none is clear. */
static void dragonfly_assign_groups(struct hunt *hunt, uint32_t share)
{
    uint32_t head = 0, tail = 0, n;
    for (uint32_t u = 0; u < hunt->plane->n_switches; u++)
        dragonfly_enqueue(hunt, u, &tail);
    while (head != tail) {
        uint32_t u = hunt->queue[head++ % hunt->plane->n_switches];
        hunt->queued[u] = 0;
        if (hunt->group[u] != FAB_NONE || !is_clear(hunt, u, share, &n))
            continue;
        for (uint32_t i = 0; i < n; i++) {
            hunt->group[hunt->list[i]] = hunt->n_groups;
            take_out(hunt, hunt->list[i], &tail);
        }
        hunt->size[hunt->n_groups++] = n;
    }
}

/* Return the largest number of neighbours that router u shares with a free neighbour. */
static uint32_t best_share(const struct hunt *hunt, uint32_t u)
{
    uint32_t best = 0;
    for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(hunt->plane, u); e++)
        if (hunt->group[dragonfly_peer(hunt, e)] == FAB_NONE && hunt->shared[e] > best)
            best = hunt->shared[e];
    return best;
}

/* Join free routers that share at least half as many neighbours as the best cable of either of them. */
static void draw_rest(struct hunt *hunt)
{
    uint32_t n = hunt->plane->n_switches;
    for (uint32_t u = 0; u < n; u++) {
        hunt->set[u] = u;
        hunt->list[u] = hunt->group[u] == FAB_NONE ? best_share(hunt, u) : 0;
    }
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(hunt->plane, u); e++) {
            uint32_t v = dragonfly_peer(hunt, e),
                     best = hunt->list[v] > hunt->list[u] ? hunt->list[v] : hunt->list[u];
            if (hunt->group[u] == FAB_NONE && hunt->group[v] == FAB_NONE && hunt->shared[e] > 0 &&
                2 * hunt->shared[e] >= best)
                fab_set_join(hunt->set, u, v);
        }
    }
    for (uint32_t u = 0; u < n; u++) {
        if (hunt->group[u] != FAB_NONE)
            continue;
        uint32_t root = fab_set_root(hunt->set, u); /* the lowest of its set, so it has its group already */
        if (root == u)
            hunt->size[hunt->n_groups] = 0;
        hunt->group[u] = root == u ? hunt->n_groups++ : hunt->group[root];
        hunt->size[hunt->group[u]]++;
    }
}

/*
 * Return whether each group is cabled all to all, except one cable in every four routers at most. Counts
 * global cables.
 */
static bool groups_full(const struct hunt *hunt, uint64_t *n_global)
{
    uint32_t *inside = hunt->list; /* per group: ends of cables; there are fewer groups than routers */
    memset(inside, 0, hunt->n_groups * sizeof *inside);
    *n_global = 0;
    for (uint32_t u = 0; u < hunt->plane->n_switches; u++) {
        uint32_t group = hunt->group[u];
        for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(hunt->plane, u); e++) {
            inside[group] += hunt->group[dragonfly_peer(hunt, e)] == group;
            *n_global += hunt->group[dragonfly_peer(hunt, e)] != group;
        }
    }
    *n_global /= 2;
    for (uint32_t g = 0; g < hunt->n_groups; g++) {
        uint64_t size = hunt->size[g];
        if (size * (size - 1) - inside[g] > 2 * (size / 4))
            return false;
    }
    return true;
}

/*
 * Check two conditions, so that the groups are distinct. Global cables are spread evenly over all pairs of
 * groups, except one in 16. They join at most a quarter of all pairs of routers. Return 1, 0 or a negative
 * code.
 */
static int pairs_even(const struct hunt *hunt, uint64_t n_global)
{
    uint64_t n = hunt->n_groups, n_pairs = n * (n - 1) / 2, missing = 0, allowed = 1 + n_global / 16;
    if (n_pairs > n_global + allowed)
        return 0;
    uint32_t *cables = fab_array(n * n, sizeof *cables);
    if (cables == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t u = 0; u < hunt->plane->n_switches; u++)
        for (uint32_t e = first_cable(hunt, u); e < fab_adj_end(hunt->plane, u); e++)
            cables[hunt->group[u] * n + hunt->group[dragonfly_peer(hunt, e)]]++;
    uint64_t due = n_global / n_pairs > 0 ? n_global / n_pairs : 1;
    bool few = true;
    for (uint64_t a = 0; a < n; a++) {
        for (uint64_t b = a + 1; b < n; b++) {
            uint64_t found = cables[a * n + b];
            missing += found < due ? due - found : 0;
            few = few && 4 * found <= (uint64_t)hunt->size[a] * hunt->size[b];
        }
    }
    free(cables);
    return few && missing <= allowed;
}

static int check_groups(const struct hunt *hunt)
{
    uint32_t smallest = UINT32_MAX;
    uint64_t n_global;
    for (uint32_t g = 0; g < hunt->n_groups; g++)
        smallest = hunt->size[g] < smallest ? hunt->size[g] : smallest;
    /* Groups of three are also the rings of tori with a side of three. Fewer than four of them are no
     * proof: the smallest dragonfly has more. */
    if (hunt->n_groups < 2 || smallest < 3 || (smallest == 3 && hunt->n_groups < 4))
        return 0;
    return groups_full(hunt, &n_global) ? pairs_even(hunt, n_global) : 0;
}

/* Find groups, those of share + 2 first (share 0: none), and check them. */
static int try_share(struct hunt *hunt, uint32_t share)
{
    uint32_t n = hunt->plane->n_switches;
    memcpy(hunt->shared, hunt->common, hunt->plane->n_adj * sizeof *hunt->shared);
    memset(hunt->group, 0xff, n * sizeof *hunt->group);
    hunt->n_groups = 0;
    if (share > 0)
        dragonfly_assign_groups(hunt, share);
    if (share == 0 || hunt->n_groups > 0)
        draw_rest(hunt);
    return check_groups(hunt);
}

static int dragonfly_search(struct hunt *hunt)
{
    find_back(hunt);
    if (!count_common(hunt))
        return 0;
    int rc = try_share(hunt, 0);
    for (uint32_t share = hunt->most; rc == 0 && share > 0; share--)
        rc = try_share(hunt, share);
    return rc;
}

int fab_layout_dragonfly(const struct fab_plane *plane, struct fab_layout *layout)
{
    uint32_t n = plane->n_switches;
    struct hunt hunt = {.plane = plane};
    /* One block: three numbers for each cable, six for each router. */
    uint32_t *block = fab_array(3 * (size_t)plane->n_adj + 6 * (size_t)n, sizeof *block);
    int rc = PMIXFAB_ERR_NOMEM;

    hunt.queued = fab_array(n, sizeof *hunt.queued);
    if (block == NULL || hunt.queued == NULL)
        goto cleanup;
    hunt.back = block;
    hunt.common = hunt.back + plane->n_adj;
    hunt.shared = hunt.common + plane->n_adj;
    hunt.group = hunt.shared + plane->n_adj;
    hunt.size = hunt.group + n;
    hunt.mark = hunt.size + n;
    hunt.list = hunt.mark + n;
    hunt.set = hunt.list + n;
    hunt.queue = hunt.set + n;

    rc = dragonfly_search(&hunt);
    if (rc != 1)
        goto cleanup;
    layout->kind = FAB_KIND_DRAGONFLY;
    for (uint32_t s = 0; s < n; s++) {
        layout->pod[s] = hunt.group[s];
        layout->ranked[s] = 1;
    }

cleanup:
    free(block);
    free(hunt.queued);
    return rc;
}
