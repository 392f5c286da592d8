/*
 * geometry_tree.c - recognises two and three level fat trees.
 *
 * What makes a tree is that devices hang at the bottom only and each cable goes one level up. It need not be
 * complete: operators pull cables and lose spines all day, and that must not move anybody's coordinates.
 */
#include "topo/geometry_priv.h"

/* Levels above the core that are tolerated: middle switches (3) and leaves (4) of a pod without any device.
 */
#define TOP_LEVEL 4

/* Does every cable join neighbouring levels? Levels are distances, so it is enough that none stays in one. */
static bool levels_clean(const struct fab_plane *plane, const uint8_t *level, unsigned *top)
{
    *top = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        if (level[s] > *top)
            *top = level[s];
        for (uint32_t e = plane->switches[s].adj_first; e < fab_adj_end(plane, s); e++)
            if (level[plane->adj[e].to] == level[s])
                return false;
    }
    return true;
}

static void rank_edges(const struct fab_plane *plane, struct fab_layout *layout)
{
    for (uint32_t s = 0; s < plane->n_switches; s++)
        layout->ranked[s] = plane->switches[s].n_devices > 0;
}

int fab_layout_plain_tree(const struct fab_plane *plane, struct fab_layout *layout)
{
    unsigned top;
    if (!levels_clean(plane, layout->level, &top) || top != 1)
        return 0;
    layout->kind = FAB_KIND_FATTREE_2;
    rank_edges(plane, layout);
    for (uint32_t s = 0; s < plane->n_switches; s++)
        layout->pod[s] = 0;
    return 1;
}

/* What is connected by leaves and middle switches alone gets one number in pod; returns how many there are.
 */
static uint32_t find_pods(const struct fab_plane *plane, const uint8_t *level, uint32_t *pod, uint32_t *queue)
{
    uint32_t n_pods = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        pod[s] = FAB_NONE;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        if (level[s] != 0 || pod[s] != FAB_NONE)
            continue;
        uint32_t head = 0, tail = 0;
        queue[tail++] = s;
        pod[s] = n_pods;
        while (head < tail) {
            uint32_t at = queue[head++];
            for (uint32_t e = plane->switches[at].adj_first; e < fab_adj_end(plane, at); e++) {
                uint32_t to = plane->adj[e].to;
                if (level[to] > 1 || pod[to] != FAB_NONE)
                    continue;
                pod[to] = n_pods;
                queue[tail++] = to;
            }
        }
        n_pods++;
    }
    return n_pods;
}

/*
 * A leaf whose devices are all off looks like a switch of the core. What tells it apart: it is cabled to one
 * pod only, and to most of its middle switches. Returns that pod.
 */
static uint32_t idle_leaf(const struct fab_plane *plane, const uint32_t *pod, const uint32_t *n_middles,
                          uint32_t s)
{
    const struct fab_vertex *v = &plane->switches[s];
    uint32_t home = FAB_NONE;
    for (uint32_t e = v->adj_first; e < v->adj_first + v->n_adj; e++) {
        uint32_t to = pod[plane->adj[e].to];
        if (to == FAB_NONE || (home != FAB_NONE && home != to))
            return FAB_NONE;
        home = to;
    }
    return home != FAB_NONE && 2 * v->n_adj > n_middles[home] ? home : FAB_NONE;
}

int fab_layout_tree(const struct fab_plane *plane, struct fab_layout *layout)
{
    const uint8_t *level = layout->level;
    uint32_t n = plane->n_switches, n_core = 0;
    uint32_t *pod = NULL, *n_middles = NULL, *home = NULL;
    unsigned top;
    int rc = 0;

    if (!levels_clean(plane, level, &top) || top < 2 || top > TOP_LEVEL)
        return 0;

    pod = fab_array(n, sizeof *pod);
    n_middles = fab_array(n, sizeof *n_middles);
    home = fab_array(n, sizeof *home);
    if (pod == NULL || n_middles == NULL || home == NULL) {
        rc = PMIXFAB_ERR_NOMEM;
        goto cleanup;
    }
    uint32_t n_pods = find_pods(plane, level, pod, home);
    for (uint32_t s = 0; s < n; s++)
        if (level[s] == 1)
            n_middles[pod[s]]++;
    for (uint32_t s = 0; s < n; s++) {
        home[s] = level[s] == 2 ? idle_leaf(plane, pod, n_middles, s) : FAB_NONE;
        n_core += level[s] >= 2 && home[s] == FAB_NONE;
    }
    /* One pod with a core above it: three levels, but nothing that the core would join. Not claimed. */
    if (n_pods == 1 && n_core > 0)
        goto cleanup;

    layout->kind = n_pods == 1 ? FAB_KIND_FATTREE_2 : FAB_KIND_FATTREE_3;
    rank_edges(plane, layout);
    for (uint32_t s = 0; s < n; s++) {
        layout->pod[s] = home[s] != FAB_NONE ? home[s] : pod[s];
        layout->ranked[s] |= home[s] != FAB_NONE;
    }
    rc = 1;

cleanup:
    free(pod);
    free(n_middles);
    free(home);
    return rc;
}
