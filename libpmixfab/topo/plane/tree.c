/*
 * tree.c - recognises two and three level fat trees.
 *
 * What makes a tree is that devices hang at the bottom, but for a few (upper.c), and each cable goes one
 * level up. It need not be complete: operators pull cables and lose spines all day, and that must not move
 * anybody's coordinates.
 */
#include "topo/plane/layout.h"

/* Above the core (2) there may be the middle switches (3) and leaves (4) of a pod without any device. */
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

/* Pods: what is connected by leaves and middle switches alone. Returns how many there are. */
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
 * pod only, and to most of its middle switches; of a plain tree to all of them. Returns that pod.
 */
static uint32_t idle_leaf(const struct fab_plane *plane, const uint32_t *pod, const uint32_t *n_middles,
                          uint32_t s, bool plain)
{
    const struct fab_vertex *v = &plane->switches[s];
    uint32_t home = FAB_NONE;
    for (uint32_t e = v->adj_first; e < v->adj_first + v->n_adj; e++) {
        uint32_t to = pod[plane->adj[e].to];
        if (to == FAB_NONE || (home != FAB_NONE && home != to))
            return FAB_NONE;
        home = to;
    }
    if (home == FAB_NONE || 2 * v->n_adj <= n_middles[home] || (plain && v->n_adj < n_middles[home]))
        return FAB_NONE;
    return home;
}

static void tree_set_layout(const struct fab_plane *plane, struct fab_layout *layout, enum fab_kind kind,
                            const uint32_t *pod, const uint32_t *home, uint32_t n_pods)
{
    layout->kind = kind;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        const bool leaf = layout->level[s] == 0 || home[s] != FAB_NONE;
        const bool upper = !leaf && plane->switches[s].n_devices > 0;
        layout->pod[s] = home[s] != FAB_NONE ? home[s] : pod[s];
        layout->ranked[s] = leaf ? 1 : upper ? 2 : 0;
        if (upper && pod[s] == FAB_NONE) /* devices on the core stand in a pod of their own */
            layout->pod[s] = n_pods;
    }
}

static int layout_tree(const struct fab_plane *plane, struct fab_layout *layout, bool plain)
{
    const uint8_t *level = layout->level;
    uint32_t n = plane->n_switches, n_core = 0;
    uint32_t *pod = NULL, *n_middles = NULL, *home = NULL;
    unsigned top;
    int rc = 0;

    if (!levels_clean(plane, level, &top) || top > (plain ? 2 : TOP_LEVEL))
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
        home[s] = level[s] == 2 ? idle_leaf(plane, pod, n_middles, s, plain) : FAB_NONE;
        n_core += level[s] >= 2 && home[s] == FAB_NONE;
    }
    /* One pod with a core above it: three levels, but nothing that the core would join. Not claimed. */
    if (n_pods == 1 ? n_core > 0 : plain)
        goto cleanup;
    tree_set_layout(plane, layout, n_pods == 1 ? FAB_KIND_FATTREE_2 : FAB_KIND_FATTREE_3, pod, home, n_pods);
    rc = 1;

cleanup:
    free(pod);
    free(n_middles);
    free(home);
    return rc;
}

int fab_layout_plain_tree(const struct fab_plane *plane, struct fab_layout *layout)
{
    return layout_tree(plane, layout, true);
}

int fab_layout_tree(const struct fab_plane *plane, struct fab_layout *layout)
{
    return layout_tree(plane, layout, false);
}
