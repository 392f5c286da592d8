/*
 * grid.c - recognise meshes and tori of two and three dimensions and find the coordinates.
 *
 * A grid is a product of paths and rings. In a product, two cables at one switch run along different factors
 * exactly if they are two sides of a square. Opposite sides of a square run along the same factor. This sorts
 * the cables into factors. A ring of four gives two factors of two switches each, because it is a square
 * itself; such pairs are joined again afterwards. The result is then compared with the ideal grid cable by
 * cable, so that a claim is never false.
 */
#include <string.h>

#include "topo/base/order.h"
#include "topo/plane/layout.h"

#define GRID_FACTORS 6 /* a torus of 4 x 4 x 4 has six factors of two */

/* A path or ring that is a factor of the grid. */
struct grid_factor {
    uint32_t size;
    uint32_t first; /* the lowest neighbour of the origin along it: defines its direction and rank */
    bool ring;
};

/* A dimension of the grid: a factor, or two factors of two switches each that form a ring of four. */
struct grid_dim {
    uint32_t size, first;
    unsigned a, b; /* factors; b is GRID_FACTORS if there is only one */
    bool ring, turned;
    uint32_t shift;
};

struct grid {
    const struct fab_plane *plane;
    uint32_t *parent; /* cables (both directions) joined into factors */
    uint8_t *class;   /* per cable: its factor */
    uint32_t *place;  /* GRID_FACTORS numbers for each switch: its place in each factor */
    uint32_t *axis;   /* the switches along one factor, from the origin */
    uint32_t *queue;
    struct grid_factor factors[GRID_FACTORS];
    unsigned n_factors, n_dims;
    struct grid_dim dims[FAB_GRID_DIMS];
};

/* Return factor k as a dimension of its own. */
static struct grid_dim grid_dim_of(const struct grid *grid, unsigned k)
{
    const struct grid_factor *factor = &grid->factors[k];
    return (struct grid_dim){factor->size, factor->first, k, GRID_FACTORS, factor->ring, false, 0};
}

/* Return the place of switch s along a dimension. */
static uint32_t grid_position(const struct grid *grid, uint32_t s, const struct grid_dim *dim)
{
    uint32_t p = grid->place[s * GRID_FACTORS + dim->a];
    if (dim->b != GRID_FACTORS && grid->place[s * GRID_FACTORS + dim->b] != 0)
        p = 3 - p; /* around a square: 00, 10, 11, 01 */
    return ((dim->turned ? dim->size - 1 - p : p) + dim->shift) % dim->size;
}

/* ---- numbered as before ---------------------------------------------------------------------------- */

/*
 * All numberings of a grid differ by the order of its dimensions, by the factors of two that form a ring of
 * four, and by how each dimension is turned and shifted. There are few orders, so all are tried. Turn and
 * shift are chosen so that most remaining switches keep their numbers. If a numbering exists that moves no
 * remaining switch, an order that keeps them all is found.
 */

/*
 * Turn and shift one dimension so that most switches keep their number in it. Return how many do. votes: room
 * for two numbers for each switch.
 */
static uint32_t grid_align_dim(const struct grid *grid, struct grid_dim *dim, unsigned d, const uint32_t *was,
                               uint32_t *votes)
{
    uint32_t size = dim->size, best = 0; /* votes: for shifts, then for shifts of the turned dimension */
    memset(votes, 0, (size_t)2 * size * sizeof *votes);
    dim->turned = false;
    dim->shift = 0;
    for (uint32_t s = 0; s < grid->plane->n_switches; s++) {
        uint32_t old = was[(size_t)s * FAB_GRID_DIMS + d];
        if (old >= size)
            continue;
        uint32_t p = grid_position(grid, s, dim);
        uint32_t shift = (old + size - p) % size, turned = (old + p + 1) % size;
        if (dim->ring || shift == 0) /* a path has ends: it cannot be shifted */
            votes[shift]++;
        if (dim->ring || turned == 0)
            votes[size + turned]++;
    }
    for (uint32_t i = 1; i < 2 * size; i++)
        if (votes[i] > votes[best])
            best = i;
    dim->turned = best >= size;
    dim->shift = dim->turned ? best - size : best;
    return votes[best];
}

static uint64_t turn_all(const struct grid *grid, struct grid_dim *dims, const uint32_t *was, uint32_t *votes)
{
    uint64_t kept = 0;
    for (unsigned d = 0; d < grid->n_dims; d++)
        kept += grid_align_dim(grid, &dims[d], d, was, votes);
    return kept;
}

/*
 * Choose the dimensions where factor k belongs to dimension (code / n_dims^k) mod n_dims. Return false if
 * there are none.
 */
static bool grid_assign_dims(const struct grid *grid, unsigned code, struct grid_dim *dims)
{
    bool torus = false;
    memset(dims, 0, grid->n_dims * sizeof *dims);
    for (unsigned d = 0; d < grid->n_dims; d++)
        torus = torus || grid->dims[d].ring;
    for (unsigned k = 0; k < grid->n_factors; k++, code /= grid->n_dims) {
        struct grid_dim *dim = &dims[code % grid->n_dims];
        if (dim->size == 0) {
            *dim = grid_dim_of(grid, k);
            continue;
        }
        if (!torus || dim->size != 2 || grid->factors[k].size != 2)
            return false;
        dim->b = k;
        dim->size = 4;
        dim->ring = true;
    }
    for (unsigned d = 0; d < grid->n_dims; d++)
        if (dims[d].size == 0)
            return false;
    return true;
}

/*
 * Order, turn and shift the dimensions so that all or most switches keep their places. was: FAB_GRID_DIMS
 * numbers for each switch; FAB_NONE: unknown. Return 0 or PMIXFAB_ERR_NOMEM.
 */
static int grid_settle(struct grid *grid, const uint32_t *was)
{
    struct grid_dim dims[FAB_GRID_DIMS];
    unsigned codes = 1;
    uint64_t known = 0;
    uint32_t *votes = fab_array((size_t)2 * grid->plane->n_switches, sizeof *votes);
    if (votes == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < grid->plane->n_switches; s++)
        known += was[(size_t)s * FAB_GRID_DIMS] != FAB_NONE ? grid->n_dims : 0;
    for (unsigned k = 0; k < grid->n_factors; k++)
        codes *= grid->n_dims;
    uint64_t best = turn_all(grid, grid->dims, was, votes);
    for (unsigned code = 0; code < codes && best < known; code++) {
        if (!grid_assign_dims(grid, code, dims))
            continue;
        uint64_t kept = turn_all(grid, dims, was, votes);
        if (kept <= best)
            continue;
        best = kept;
        memcpy(grid->dims, dims, grid->n_dims * sizeof *dims);
    }
    free(votes);
    return 0;
}

/* ---- recognition ----------------------------------------------------------------------------------- */

/* Return the cable from switch `from` to switch `to`; FAB_NONE if there is none. */
static uint32_t find_cable(const struct fab_plane *plane, uint32_t from, uint32_t to)
{
    for (uint32_t e = plane->switches[from].adj_first; e < fab_adj_end(plane, from); e++)
        if (plane->adj[e].to == to)
            return e;
    return FAB_NONE;
}

/*
 * Decide whether cables e and f at switch v run along one factor or are two sides of one square. Return false
 * if neither is possible in a grid.
 */
static bool join_at_corner(struct grid *grid, uint32_t v, uint32_t e, uint32_t f)
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

/* Sort all cables into factors. Return false if the plane is not a grid. */
static bool find_factors(struct grid *grid)
{
    const struct fab_plane *plane = grid->plane;
    uint32_t roots[GRID_FACTORS] = {0};
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
        if (k == GRID_FACTORS)
            return false;
        if (k == grid->n_factors)
            roots[grid->n_factors++] = root;
        grid->class[e] = (uint8_t)k;
    }
    return true;
}

/* Return the lowest neighbour of `at` along factor k other than `from`; FAB_NONE. */
static uint32_t grid_step(const struct grid *grid, unsigned k, uint32_t at, uint32_t from)
{
    const struct fab_plane *plane = grid->plane;
    for (uint32_t e = plane->switches[at].adj_first; e < fab_adj_end(plane, at); e++)
        if (grid->class[e] == k && plane->adj[e].to != from)
            return plane->adj[e].to;
    return FAB_NONE;
}

/* Follow factor k from the origin to its end or around; write its switches to axis. */
static bool walk_axis(struct grid *grid, unsigned k, uint32_t origin)
{
    struct grid_factor *factor = &grid->factors[k];
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

/*
 * Give place i to every switch that is reached from the i-th switch of the axis without the factor's own
 * cables.
 */
static bool spread_place(struct grid *grid, unsigned k)
{
    const struct fab_plane *plane = grid->plane;
    uint32_t reached = 0;
    for (uint32_t i = 0; i < grid->factors[k].size; i++) {
        uint32_t head = 0, tail = 0;
        uint32_t *start = &grid->place[grid->axis[i] * GRID_FACTORS + k];
        if (*start != FAB_NONE)
            return false;
        *start = i;
        grid->queue[tail++] = grid->axis[i];
        while (head < tail) {
            uint32_t at = grid->queue[head++];
            for (uint32_t e = plane->switches[at].adj_first; e < fab_adj_end(plane, at); e++) {
                uint32_t to = plane->adj[e].to;
                if (grid->class[e] == k || grid->place[to * GRID_FACTORS + k] != FAB_NONE)
                    continue;
                grid->place[to * GRID_FACTORS + k] = i;
                grid->queue[tail++] = to;
            }
        }
        reached += tail;
    }
    return reached == plane->n_switches;
}

/* Return the origin, which is the corner with the lowest GUID. In a torus every switch is a corner. */
static uint32_t find_origin(const struct fab_plane *plane)
{
    uint32_t origin = 0;
    for (uint32_t s = 1; s < plane->n_switches; s++)
        if (plane->switches[s].n_adj < plane->switches[origin].n_adj)
            origin = s;
    return origin;
}

/* Compare: longest dimension first, then by GUID. */
static int compare_dimensions(const void *x, const void *y)
{
    const struct grid_dim *a = x, *b = y;
    return FAB_ORDER(b->size, a->size) ?: FAB_ORDER(a->first, b->first);
}

/* Join factors of two in pairs, by GUID; one may be left over. */
static void pair_twos(struct grid *grid, bool pair)
{
    bool done[GRID_FACTORS] = {false};
    for (;;) {
        unsigned two[2] = {GRID_FACTORS, GRID_FACTORS}, n = 0;
        for (; n < (pair ? 2u : 1u); n++) {
            unsigned lowest = GRID_FACTORS;
            for (unsigned k = 0; k < grid->n_factors; k++)
                if (grid->factors[k].size == 2 && !done[k] &&
                    (lowest == GRID_FACTORS || grid->factors[k].first < grid->factors[lowest].first))
                    lowest = k;
            if (lowest == GRID_FACTORS)
                break;
            done[lowest] = true;
            two[n] = lowest;
        }
        if (n == 0)
            return;
        grid->dims[grid->n_dims++] = (struct grid_dim){
            .size = 2 * n, .first = grid->factors[two[0]].first, .a = two[0], .b = two[1], .ring = n == 2};
    }
}

/* Make dimensions of the factors. Return FAB_KIND_OTHER if they make no grid of two or three. */
static enum fab_kind choose_dimensions(struct grid *grid)
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
            grid->dims[grid->n_dims++] = grid_dim_of(grid, k);
    pair_twos(grid, torus);
    qsort(grid->dims, grid->n_dims, sizeof grid->dims[0], compare_dimensions);
    if (dims == 2)
        return mesh ? FAB_KIND_MESH_2D : FAB_KIND_TORUS_2D;
    return mesh ? FAB_KIND_MESH_3D : FAB_KIND_TORUS_3D;
}

/*
 * Return whether the switches fill the grid, each place once. `seen` has room for one number for each switch.
 */
static bool places_filled(const struct grid *grid, const uint32_t *pos, uint32_t *seen)
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

/* Return whether every cable joins two neighbours of the grid, and their number is that of the grid. */
static bool cables_match(const struct grid *grid, const uint32_t *pos)
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

static int grid_detect(struct grid *grid, struct fab_layout *layout)
{
    const struct fab_plane *plane = grid->plane;
    uint32_t origin = find_origin(plane);
    if (!find_factors(grid))
        return 0;
    memset(grid->place, 0xff, (size_t)plane->n_switches * GRID_FACTORS * sizeof *grid->place);
    for (unsigned k = 0; k < grid->n_factors; k++)
        if (!walk_axis(grid, k, origin) || !spread_place(grid, k))
            return 0;
    enum fab_kind kind = choose_dimensions(grid);
    if (kind == FAB_KIND_OTHER)
        return 0;
    if (layout->past != NULL && layout->past->kind == kind && grid_settle(grid, layout->past->logical) != 0)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        for (unsigned d = 0; d < grid->n_dims; d++)
            layout->pos[s * FAB_GRID_DIMS + d] = grid_position(grid, s, &grid->dims[d]);
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
    struct grid grid = {.plane = plane};
    int rc = PMIXFAB_ERR_NOMEM;

    if (n < 4)
        return 0;
    for (uint32_t s = 0; s < n; s++)
        if (plane->switches[s].n_adj < 2 || plane->switches[s].n_adj > 2 * FAB_GRID_DIMS)
            return 0;

    grid.parent = fab_array(plane->n_adj, sizeof *grid.parent);
    grid.class = fab_array(plane->n_adj, sizeof *grid.class);
    grid.place = fab_array((size_t)n * (GRID_FACTORS + 2), sizeof *grid.place);
    if (grid.parent != NULL && grid.class != NULL && grid.place != NULL) {
        grid.axis = grid.place + (size_t)n * GRID_FACTORS;
        grid.queue = grid.axis + n;
        rc = grid_detect(&grid, layout);
    }
    free(grid.parent);
    free(grid.class);
    free(grid.place);
    return rc;
}
