/*
 * upper.c - trees with a few devices above their leaves: management nodes or storage on a spine or on the
 * core.
 *
 * Which switches those are is tried: where two switches with devices are cabled to each other one of them is
 * above the other, and it is the one that has most such cables; of what is left it may be those with the
 * fewest devices. They carry less than the leaves do, and less than half of it where nothing above the leaves
 * is without a device; or the plane is no such tree.
 */
#include "topo/plane/layout.h"

struct upper {
    const struct fab_plane *plane;
    uint8_t *is;      /* of each switch: it carries devices, and is above the leaves */
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

/* Neighbours of a leaf that would be leaves. */
static uint32_t upper_conflicts(const struct upper *upper, uint32_t s)
{
    uint32_t n = 0;
    for (uint32_t e = upper->plane->switches[s].adj_first; e < fab_adj_end(upper->plane, s); e++)
        n += upper_is_leaf(upper, upper->plane->adj[e].to);
    return n;
}

/* Until no leaf is cabled to a leaf, or too many are above. conflicts: room for a number a switch. */
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

/* The least number of devices above `more` that a leaf has; 0: none has more. */
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

/* Is it a tree with these? One of two levels stays that unless the core was taken for leaves. */
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
        upper->is[s] = layout->ranked[s] == 2; /* a leaf with few devices is no less a leaf */
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
    if (rc == 0 && two) /* as before */
        rc = fab_layout_plain_tree(plane, layout) ?: fab_layout_tree(plane, layout);
    free(upper.is);
    free(conflicts);
    return rc;
}
