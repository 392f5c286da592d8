/*
 * grid.c - recognises meshes and tori of two and three dimensions and recovers the coordinates.
 *
 * A grid is a product of paths and rings. In a product, two cables at one switch run along different factors
 * exactly where they are two sides of a square, and opposite sides of a square run along the same factor.
 * That sorts the cables into factors. A ring of four comes out as two factors of two switches each, since it
 * is a square itself; such pairs are put together again afterwards. Whatever was concluded is then compared
 * with the ideal grid cable by cable, so that a claim is never false.
 */
#include <string.h>

#include "topo/base/disjoint.h"
#include "topo/plane/grid.h"

/* The cable from switch `from` to switch `to`, FAB_NONE where there is none. */
static uint32_t find_cable(const struct fab_plane *plane, uint32_t from, uint32_t to)
{
    for (uint32_t e = plane->switches[from].adj_first; e < fab_adj_end(plane, from); e++)
        if (plane->adj[e].to == to)
            return e;
    return FAB_NONE;
}

/* Two cables e and f at switch v: along one factor, or two sides of one square. False: in no grid. */
static bool join_at_corner(struct fab_grid *grid, uint32_t v, uint32_t e, uint32_t f)
{
    const struct fab_plane *plane = grid->plane;
    uint32_t a = plane->adj[e].to, b = plane->adj[f].to, a_far = FAB_NONE, b_far = FAB_NONE;
    for (uint32_t i = plane->switches[a].adj_first; i < fab_adj_end(plane, a); i++) {
        if (plane->adj[i].to == v)
            continue;
        uint32_t j = find_cable(plane, b, plane->adj[i].to);
        if (j == FAB_NONE)
            continue;
        if (a_far != FAB_NONE)
            return false;
        a_far = i;
        b_far = j;
    }
    if (a_far == FAB_NONE) {
        fab_set_join(grid->parent, e, f);
    } else {
        fab_set_join(grid->parent, e, b_far);
        fab_set_join(grid->parent, f, a_far);
    }
    return true;
}

/* Sort all cables into factors. False: the plane is no grid. */
static bool find_factors(struct fab_grid *grid)
{
    const struct fab_plane *plane = grid->plane;
    uint32_t roots[FAB_GRID_FACTORS] = {0};
    for (uint32_t e = 0; e < plane->n_adj; e++)
        grid->parent[e] = e;
    for (uint32_t v = 0; v < plane->n_switches; v++) {
        uint32_t first = plane->switches[v].adj_first, end = fab_adj_end(plane, v);
        for (uint32_t e = first; e < end; e++) {
            uint32_t back = find_cable(plane, plane->adj[e].to, v);
            if (back == FAB_NONE)
                return false;
            fab_set_join(grid->parent, e, back);
            for (uint32_t f = e + 1; f < end; f++)
                if (!join_at_corner(grid, v, e, f))
                    return false;
        }
    }
    for (uint32_t e = 0; e < plane->n_adj; e++) {
        uint32_t root = fab_set_root(grid->parent, e);
        unsigned k = 0;
        while (k < grid->n_factors && roots[k] != root)
            k++;
        if (k == FAB_GRID_FACTORS)
            return false;
        if (k == grid->n_factors)
            roots[grid->n_factors++] = root;
        grid->class[e] = (uint8_t)k;
    }
    return true;
}

/* The lowest neighbour of `at` along factor k, other than `from`; FAB_NONE. */
static uint32_t grid_step(const struct fab_grid *grid, unsigned k, uint32_t at, uint32_t from)
{
    const struct fab_plane *plane = grid->plane;
    for (uint32_t e = plane->switches[at].adj_first; e < fab_adj_end(plane, at); e++)
        if (grid->class[e] == k && plane->adj[e].to != from)
            return plane->adj[e].to;
    return FAB_NONE;
}

/* Walk factor k from the origin to its end or around; the switches on the way go to axis. */
static bool walk_axis(struct fab_grid *grid, unsigned k, uint32_t origin)
{
    struct fab_grid_factor *factor = &grid->factors[k];
    uint32_t from = FAB_NONE, at = origin, n = 0;
    do {
        if (n == grid->plane->n_switches)
            return false;
        grid->axis[n++] = at;
        uint32_t next = grid_step(grid, k, at, from);
        from = at;
        at = next;
    } while (at != FAB_NONE && at != origin);
    factor->ring = at == origin;
    factor->size = n;
    factor->first = n > 1 ? grid->axis[1] : FAB_NONE;
    return n > 1;
}

/* Everything that is reached from the i-th switch of the axis without the factor's own cables has place i in
 * it. */
static bool spread_place(struct fab_grid *grid, unsigned k)
{
    const struct fab_plane *plane = grid->plane;
    uint32_t reached = 0;
    for (uint32_t i = 0; i < grid->factors[k].size; i++) {
        uint32_t head = 0, tail = 0;
        uint32_t *start = &grid->place[grid->axis[i] * FAB_GRID_FACTORS + k];
        if (*start != FAB_NONE)
            return false;
        *start = i;
        grid->queue[tail++] = grid->axis[i];
        while (head < tail) {
            uint32_t at = grid->queue[head++];
            for (uint32_t e = plane->switches[at].adj_first; e < fab_adj_end(plane, at); e++) {
                uint32_t to = plane->adj[e].to;
                if (grid->class[e] == k || grid->place[to * FAB_GRID_FACTORS + k] != FAB_NONE)
                    continue;
                grid->place[to * FAB_GRID_FACTORS + k] = i;
                grid->queue[tail++] = to;
            }
        }
        reached += tail;
    }
    return reached == plane->n_switches;
}

/* The origin: the corner with the lowest GUID; on a torus every switch is a corner. */
static uint32_t find_origin(const struct fab_plane *plane)
{
    uint32_t origin = 0;
    for (uint32_t s = 1; s < plane->n_switches; s++)
        if (plane->switches[s].n_adj < plane->switches[origin].n_adj)
            origin = s;
    return origin;
}

/* Longest dimension first, then by GUID. */
static int compare_dimensions(const void *x, const void *y)
{
    const struct fab_grid_dim *a = x, *b = y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Put factors of two together in pairs, by GUID; one may be left over. */
static void pair_twos(struct fab_grid *grid, bool pair)
{
    bool done[FAB_GRID_FACTORS] = {false};
    for (;;) {
        unsigned two[2] = {FAB_GRID_FACTORS, FAB_GRID_FACTORS}, n = 0;
        for (; n < (pair ? 2u : 1u); n++) {
            unsigned lowest = FAB_GRID_FACTORS;
            for (unsigned k = 0; k < grid->n_factors; k++)
                if (grid->factors[k].size == 2 && !done[k] &&
                    (lowest == FAB_GRID_FACTORS || grid->factors[k].first < grid->factors[lowest].first))
                    lowest = k;
            if (lowest == FAB_GRID_FACTORS)
                break;
            done[lowest] = true;
            two[n] = lowest;
        }
        if (n == 0)
            return;
        grid->dims[grid->n_dims++] = (struct fab_grid_dim){
            .size = 2 * n, .first = grid->factors[two[0]].first, .a = two[0], .b = two[1], .ring = n == 2};
    }
}

/* Make dimensions of the factors. FAB_KIND_OTHER where they make no grid of two or three. */
static enum fab_kind choose_dimensions(struct fab_grid *grid)
{
    unsigned twos = 0, rings = 0, n = grid->n_factors;
    for (unsigned k = 0; k < n; k++) {
        twos += grid->factors[k].size == 2;
        rings += grid->factors[k].ring;
    }
    unsigned paths = n - twos - rings;
    bool mesh = rings == 0 && (n == 2 || n == 3);
    bool torus = !mesh && paths == 0;
    unsigned dims = mesh ? n : rings + (twos + 1) / 2;
    if ((!mesh && !torus) || dims < 2 || dims > FAB_GRID_DIMS)
        return FAB_KIND_OTHER;

    for (unsigned k = 0; k < n; k++)
        if (grid->factors[k].size > 2)
            grid->dims[grid->n_dims++] = fab_grid_dim_of(grid, k);
    pair_twos(grid, torus);
    qsort(grid->dims, grid->n_dims, sizeof grid->dims[0], compare_dimensions);
    if (dims == 2)
        return mesh ? FAB_KIND_MESH_2D : FAB_KIND_TORUS_2D;
    return mesh ? FAB_KIND_MESH_3D : FAB_KIND_TORUS_3D;
}

/* Do the switches fill the grid, each place once? `seen` has room for one number a switch. */
static bool places_filled(const struct fab_grid *grid, const uint32_t *pos, uint32_t *seen)
{
    uint32_t n = grid->plane->n_switches;
    uint64_t places = 1;
    for (unsigned d = 0; d < grid->n_dims; d++) {
        places *= grid->dims[d].size;
        if (places > n)
            return false;
    }
    if (places != n)
        return false;
    memset(seen, 0, n * sizeof *seen);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t at = 0;
        for (unsigned d = 0; d < grid->n_dims; d++)
            at = at * grid->dims[d].size + pos[s * FAB_GRID_DIMS + d];
        if (seen[at]++ > 0)
            return false;
    }
    return true;
}

/* Does every cable join two neighbours of the grid, and are there as many as the grid has? */
static bool cables_match(const struct fab_grid *grid, const uint32_t *pos)
{
    const struct fab_plane *plane = grid->plane;
    uint64_t ideal = 0;
    for (unsigned d = 0; d < grid->n_dims; d++) {
        uint32_t size = grid->dims[d].size;
        ideal += 2 * (uint64_t)(plane->n_switches / size) * (grid->dims[d].ring ? size : size - 1);
    }
    if (ideal != plane->n_adj)
        return false;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        for (uint32_t e = plane->switches[s].adj_first; e < fab_adj_end(plane, s); e++) {
            const uint32_t *a = pos + (size_t)s * FAB_GRID_DIMS;
            const uint32_t *b = pos + (size_t)plane->adj[e].to * FAB_GRID_DIMS;
            unsigned steps = 0;
            for (unsigned d = 0; d < grid->n_dims; d++) {
                uint32_t gap = a[d] > b[d] ? a[d] - b[d] : b[d] - a[d];
                bool near = gap == 1 || (grid->dims[d].ring && gap == grid->dims[d].size - 1);
                steps += gap == 0 ? 0 : near ? 1 : 2;
            }
            if (steps != 1)
                return false;
        }
    }
    return true;
}

static int grid_detect(struct fab_grid *grid, struct fab_layout *layout)
{
    const struct fab_plane *plane = grid->plane;
    uint32_t origin = find_origin(plane);
    if (!find_factors(grid))
        return 0;
    memset(grid->place, 0xff, (size_t)plane->n_switches * FAB_GRID_FACTORS * sizeof *grid->place);
    for (unsigned k = 0; k < grid->n_factors; k++)
        if (!walk_axis(grid, k, origin) || !spread_place(grid, k))
            return 0;
    enum fab_kind kind = choose_dimensions(grid);
    if (kind == FAB_KIND_OTHER)
        return 0;
    if (layout->past != NULL && layout->past->kind == kind &&
        fab_grid_settle(grid, layout->past->logical) != 0)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        for (unsigned d = 0; d < grid->n_dims; d++)
            layout->pos[s * FAB_GRID_DIMS + d] = fab_grid_position(grid, s, &grid->dims[d]);
    if (!places_filled(grid, layout->pos, grid->queue) || !cables_match(grid, layout->pos))
        return 0;

    layout->kind = kind;
    layout->dims = grid->n_dims;
    for (unsigned d = 0; d < grid->n_dims; d++)
        layout->size[d] = grid->dims[d].size;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        layout->pod[s] = 0;
        layout->ranked[s] = 1;
    }
    return 1;
}

int fab_layout_grid(const struct fab_plane *plane, struct fab_layout *layout)
{
    uint32_t n = plane->n_switches;
    struct fab_grid grid = {.plane = plane};
    int rc = PMIXFAB_ERR_NOMEM;

    if (n < 4)
        return 0;
    for (uint32_t s = 0; s < n; s++)
        if (plane->switches[s].n_adj < 2 || plane->switches[s].n_adj > 2 * FAB_GRID_DIMS)
            return 0;

    grid.parent = fab_array(plane->n_adj, sizeof *grid.parent);
    grid.class = fab_array(plane->n_adj, sizeof *grid.class);
    grid.place = fab_array((size_t)n * (FAB_GRID_FACTORS + 2), sizeof *grid.place);
    if (grid.parent != NULL && grid.class != NULL && grid.place != NULL) {
        grid.axis = grid.place + (size_t)n * FAB_GRID_FACTORS;
        grid.queue = grid.axis + n;
        rc = grid_detect(&grid, layout);
    }
    free(grid.parent);
    free(grid.class);
    free(grid.place);
    return rc;
}
