/*
 * geometry_dragonfly.c - recognises dragonflies: groups of at least three routers, each group cabled all to
 * all, and cables between all pairs of groups.
 *
 * Two routers of one group have the rest of the group as common neighbours; two routers joined by a global
 * cable have few or none. So the cables with many common neighbours draw the groups, and counting checks
 * them. Pulled cables are allowed for, so that they do not move anybody's coordinates.
 */
#include "topo/geometry_priv.h"

struct groups {
    uint32_t *of;   /* per switch: its group, 0..n-1 */
    uint32_t *size; /* per group */
    uint32_t n, smallest;
};

/*
 * common[e], for cables e from the lower to the higher switch: how many neighbours its ends share; most[s]:
 * the largest at switch s. False as soon as a switch turns up that stands in no triangle: no dragonfly then.
 */
static bool count_common(const struct fab_plane *plane, uint32_t *common, uint32_t *most, uint32_t *seen)
{
    for (uint32_t u = 0; u < plane->n_switches; u++) {
        uint32_t first = plane->switches[u].adj_first, end = fab_adj_end(plane, u);
        for (uint32_t e = first; e < end; e++)
            seen[plane->adj[e].to] = u + 1;
        for (uint32_t e = first; e < end; e++) {
            uint32_t v = plane->adj[e].to, n = 0;
            if (v < u)
                continue;
            for (uint32_t f = plane->switches[v].adj_first; f < fab_adj_end(plane, v); f++)
                n += seen[plane->adj[f].to] == u + 1;
            common[e] = n;
            most[u] = n > most[u] ? n : most[u];
            most[v] = n > most[v] ? n : most[v];
        }
        if (most[u] == 0)
            return false;
    }
    return true;
}

/* Join the ends of every cable that shares at least half as many neighbours as the best cable at its ends. */
static void draw_groups(const struct fab_plane *plane, const uint32_t *common, const uint32_t *most,
                        struct groups *groups, uint32_t *parent)
{
    uint32_t n = plane->n_switches;
    for (uint32_t u = 0; u < n; u++)
        parent[u] = u;
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t e = plane->switches[u].adj_first; e < fab_adj_end(plane, u); e++) {
            uint32_t v = plane->adj[e].to;
            uint32_t best = v > u && most[v] > most[u] ? most[v] : most[u];
            if (v > u && common[e] > 0 && 2 * common[e] >= best)
                fab_set_join(parent, u, v);
        }
    }
    for (uint32_t u = 0; u < n; u++) {
        uint32_t root = fab_set_root(parent, u); /* the lowest of its set, so it has its number already */
        groups->of[u] = root == u ? groups->n++ : groups->of[root];
        groups->size[groups->of[u]]++;
    }
    groups->smallest = UINT32_MAX;
    for (uint32_t g = 0; g < groups->n; g++)
        if (groups->size[g] < groups->smallest)
            groups->smallest = groups->size[g];
}

/* Is each group cabled all to all, but for a quarter of a router's cables at most? Counts global cables. */
static bool groups_full(const struct fab_plane *plane, const struct groups *groups, uint64_t *n_global)
{
    *n_global = 0;
    for (uint32_t u = 0; u < plane->n_switches; u++) {
        uint32_t size = groups->size[groups->of[u]], inside = 0;
        for (uint32_t e = plane->switches[u].adj_first; e < fab_adj_end(plane, u); e++)
            inside += groups->of[plane->adj[e].to] == groups->of[u];
        if (size - 1 - inside > size / 4)
            return false;
        *n_global += plane->switches[u].n_adj - inside;
    }
    *n_global /= 2;
    return true;
}

/* Are the global cables spread evenly over all pairs of groups, but for one in 16? 1, 0 or a negative code.
 */
static int pairs_even(const struct fab_plane *plane, const struct groups *groups, uint64_t n_global)
{
    uint64_t n = groups->n, n_pairs = n * (n - 1) / 2, missing = 0, allowed = 1 + n_global / 16;
    if (n_pairs > n_global + allowed)
        return 0;
    uint32_t *cables = fab_array(n * n, sizeof *cables);
    if (cables == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t u = 0; u < plane->n_switches; u++)
        for (uint32_t e = plane->switches[u].adj_first; e < fab_adj_end(plane, u); e++)
            cables[groups->of[u] * n + groups->of[plane->adj[e].to]]++;
    uint64_t due = n_global / n_pairs > 0 ? n_global / n_pairs : 1;
    for (uint64_t a = 0; a < n; a++)
        for (uint64_t b = a + 1; b < n; b++)
            if (cables[a * n + b] < due)
                missing += due - cables[a * n + b];
    free(cables);
    return missing <= allowed;
}

static int check_groups(const struct fab_plane *plane, const struct groups *groups)
{
    uint64_t n_global;
    /* Groups of three are also the rings of tori with a side of three. Fewer than four of them prove nothing:
     * the smallest dragonfly has more. */
    if (groups->n < 2 || groups->smallest < 3 || (groups->smallest == 3 && groups->n < 4))
        return 0;
    if (!groups_full(plane, groups, &n_global))
        return 0;
    return pairs_even(plane, groups, n_global);
}

int fab_layout_dragonfly(const struct fab_plane *plane, struct fab_layout *layout)
{
    uint32_t n = plane->n_switches;
    struct groups groups = {0};
    uint32_t *common = fab_array(plane->n_adj, sizeof *common);
    uint32_t *most = fab_array(n, sizeof *most);
    uint32_t *scratch = fab_array(n, sizeof *scratch);
    int rc = PMIXFAB_ERR_NOMEM;

    groups.of = fab_array(n, sizeof *groups.of);
    groups.size = fab_array(n, sizeof *groups.size);
    if (common == NULL || most == NULL || scratch == NULL || groups.of == NULL || groups.size == NULL)
        goto cleanup;

    rc = 0;
    if (!count_common(plane, common, most, scratch))
        goto cleanup;
    draw_groups(plane, common, most, &groups, scratch);
    rc = check_groups(plane, &groups);
    if (rc != 1)
        goto cleanup;

    layout->kind = FAB_KIND_DRAGONFLY;
    for (uint32_t s = 0; s < n; s++) {
        layout->pod[s] = groups.of[s];
        layout->ranked[s] = 1;
    }

cleanup:
    free(common);
    free(most);
    free(scratch);
    free(groups.of);
    free(groups.size);
    return rc;
}
