/*
 * tree.c - recognise two and three level fat trees.
 *
 * In a tree devices are at the bottom, except a few, and each cable goes one level up. It need not be
 * complete: cables are pulled and spines fail all the time, which must not change coordinates.
 */
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

/* Above the core (2) there may be middle switches (3) and leaves (4) of a pod without any device. */
#define TOP_LEVEL 4

/*
 * Return whether every cable joins adjacent levels. Levels are distances, so it is enough that no cable stays
 * in one.
 */
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

/* Find pods: sets connected by leaves and middle switches alone. Return their number. */
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
 * A leaf whose devices are all off looks like a core switch. It differs in being cabled to one pod only, and
 * to most of its middle switches; in a plain tree to all of them. Return that pod.
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
        if (upper && pod[s] == FAB_NONE) /* devices on the core are in a pod of their own */
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
    /* one pod with a core above it: three levels, but nothing for the core to join; not claimed */
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

/* ---- devices above the leaves ---------------------------------------------------------------------- */

/*
 * Management nodes or storage may be attached to a spine or a core. Those switches are found by trying. If
 * two switches with devices are cabled to each other, the switch with most such cables is above the other. Of
 * the rest, the switches with the fewest devices may be above the leaves. They must carry fewer devices than
 * the leaves. If every switch above the leaves has devices, they must carry less than half as many. Otherwise
 * the plane is not such a tree.
 */
struct upper {
    const struct fab_plane *plane;
    uint8_t *is;      /* of each switch: it carries devices and is above the leaves */
    uint64_t devices; /* of those */
    uint64_t all;     /* of all switches */
};

static void upper_take(struct upper *upper, uint32_t s)
{
    if (!upper->is[s] && upper->plane->switches[s].n_devices > 0) {
        upper->is[s] = 1;
        upper->devices += upper->plane->switches[s].n_devices;
    }
}

static bool upper_are_few(const struct upper *upper)
{
    return upper->devices < upper->all - upper->devices;
}

/* A leaf at the core, in no pod, is above the core here: no tree has that. */
static bool upper_are_accepted(const struct upper *upper, const struct fab_layout *layout)
{
    bool others = false;
    for (uint32_t s = 0; s < upper->plane->n_switches; s++) {
        others = others || (layout->level[s] > 0 && upper->plane->switches[s].n_devices == 0);
        if (layout->ranked[s] == 2 && layout->level[s] > 2)
            return false;
    }
    return others || 2 * upper->devices < upper->all - upper->devices;
}

static bool upper_is_leaf(const struct upper *upper, uint32_t s)
{
    return upper->plane->switches[s].n_devices > 0 && !upper->is[s];
}

/* Count the neighbours of a leaf that would be leaves. */
static uint32_t upper_conflicts(const struct upper *upper, uint32_t s)
{
    uint32_t n = 0;
    for (uint32_t e = upper->plane->switches[s].adj_first; e < fab_adj_end(upper->plane, s); e++)
        n += upper_is_leaf(upper, upper->plane->adj[e].to);
    return n;
}

/*
 * Move switches up until no leaf is cabled to a leaf, or too many are above. conflicts: room for one number
 * for each switch.
 */
static void upper_part_leaves(struct upper *upper, uint32_t *conflicts)
{
    const struct fab_plane *plane = upper->plane;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        conflicts[s] = upper_is_leaf(upper, s) ? upper_conflicts(upper, s) : 0;
    while (upper_are_few(upper)) {
        uint32_t most = 0;
        for (uint32_t s = 1; s < plane->n_switches; s++)
            if (conflicts[s] > conflicts[most] ||
                (conflicts[s] == conflicts[most] &&
                 plane->switches[s].n_devices < plane->switches[most].n_devices))
                most = s;
        if (conflicts[most] == 0)
            return;
        upper_take(upper, most);
        conflicts[most] = 0;
        for (uint32_t e = plane->switches[most].adj_first; e < fab_adj_end(plane, most); e++)
            conflicts[plane->adj[e].to] -= conflicts[plane->adj[e].to] > 0;
    }
}

/* Return the smallest number of devices of a leaf that is above `more`; 0: none. */
static uint32_t upper_next_count(const struct upper *upper, uint32_t more)
{
    uint32_t least = 0;
    for (uint32_t s = 0; s < upper->plane->n_switches; s++) {
        const uint32_t n = upper->plane->switches[s].n_devices;
        if (upper_is_leaf(upper, s) && n > more && (least == 0 || n < least))
            least = n;
    }
    return least;
}

/*
 * Check whether it is a tree with these. A tree of two levels stays that unless the core was taken for
 * leaves.
 */
static int upper_try(struct upper *upper, struct fab_layout *layout, bool two, uint8_t *level)
{
    int rc = fab_levels_find(upper->plane, upper->is, level);
    if (rc == 0 && !two)
        rc = fab_layout_plain_tree(upper->plane, layout);
    if (rc == 0)
        rc = fab_layout_tree(upper->plane, layout);
    if (rc <= 0 || (two && layout->kind != FAB_KIND_FATTREE_3) || !upper_are_accepted(upper, layout))
        return rc < 0 ? rc : 0;
    for (uint32_t s = 0; s < upper->plane->n_switches; s++)
        upper->is[s] = layout->ranked[s] == 2; /* a leaf with few devices is still a leaf */
    rc = fab_levels_find(upper->plane, upper->is, level);
    return rc < 0 ? rc : 1;
}

int fab_layout_upper(const struct fab_plane *plane, struct fab_layout *layout, uint8_t *level)
{
    struct upper upper = {.plane = plane, .is = fab_array(plane->n_switches, 1)};
    uint32_t *conflicts = fab_array(plane->n_switches, sizeof *conflicts);
    const bool two = layout->kind == FAB_KIND_FATTREE_2;
    int rc = upper.is == NULL || conflicts == NULL ? PMIXFAB_ERR_NOMEM : 0;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        upper.all += plane->switches[s].n_devices;
    if (rc == 0)
        upper_part_leaves(&upper, conflicts);
    for (uint32_t most = 0; rc == 0 && upper_are_few(&upper);) {
        if (upper.devices > 0)
            rc = upper_try(&upper, layout, two, level);
        most = rc == 0 ? upper_next_count(&upper, most) : 0;
        if (most == 0)
            break;
        for (uint32_t s = 0; s < plane->n_switches; s++)
            if (plane->switches[s].n_devices <= most)
                upper_take(&upper, s);
    }
    if (rc == 0)
        rc = fab_levels_find(plane, NULL, level);
    if (rc == 0 && two) /* unchanged */
        rc = fab_layout_plain_tree(plane, layout) ?: fab_layout_tree(plane, layout);
    free(upper.is);
    free(conflicts);
    return rc;
}
