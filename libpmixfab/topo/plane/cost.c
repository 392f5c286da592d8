/*
 * cost.c - compute the compact form of a plane's costs: a row for each edge switch, and the shortest paths
 * between them.
 *
 * The first step uses the cheapest links only. In most fabrics these are all links. The step is a
 * breadth-first search from up to 512 edge switches at once. Bit s of a switch's vector means that source s
 * has reached it. A level is one pass over the switches; each of them gathers its neighbours' vectors.
 *
 * If links have different costs, each switch holds its distances to a block of sources, one vector lane for
 * each source. The distances start as those of the cheapest links alone, which are nearly right if few links
 * are more expensive. A switch whose distances can reduce others offers them to its neighbours, until no
 * distance is reduced. Passes alternate between forward and backward order; in a real fabric four to eight
 * passes are enough for any costs.
 */
#include "topo/plane/cost.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/large_pages.h"
#include "topo/snapshot/cost_matrix.h"

#define SEARCH_BITS 512 /* sources searched at once: one bit each in a vector of this many */

/* Distances between edge switches, for blocks of sources; block b is sources[b * width .. ]. */
struct search {
    const struct fab_plane *plane;
    const uint32_t *sources; /* edge -> switch */
    const uint32_t *edge_of; /* switch -> edge or FAB_NONE */
    uint32_t n_edges;
    uint32_t width;    /* sources in a block, a multiple of 64 */
    uint32_t n_blocks; /* taken by the threads one after the other */
    uint16_t *dist;    /* n_edges x n_edges */
    uint16_t step;     /* cost of the cheapest link */
    bool mixed;        /* other links cost more */
    atomic_uint next_block;
    void **workspace; /* per thread */
};

/* Where distances from a block of sources are written: a row for each switch with one. */
struct rows {
    uint16_t *cells; /* all ones at first */
    size_t stride;
    const uint32_t *row_of; /* per switch: its row or FAB_NONE; NULL: each has its own */
};

/* ---- with the cheapest links only ------------------------------------------------------------------- */

#define WORDS (SEARCH_BITS / 64)

typedef uint64_t bits __attribute__((vector_size(SEARCH_BITS / 8)));
typedef uint16_t cell_lanes __attribute__((vector_size(32)));
#define CELL_LANES 16

struct bfs_space {
    bits *seen, *front, *next; /* per switch */
};

static size_t bfs_space_size(const struct search *search)
{
    return ((size_t)search->plane->n_switches * 3 + 1) * sizeof(bits);
}

/*
 * Set row[s] = value for each set bit s. Each place is written once and starts as all ones, so an AND is
 * enough. Only the last block of a row may end inside a vector. This vector is written lane by lane, because
 * the following values belong to another block.
 */
static FAB_ALWAYS_INLINE void bfs_mark(uint16_t *row, uint32_t width, const uint64_t *words, uint16_t value)
{
    const cell_lanes pattern = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    for (uint32_t at = 0; at < width; at += CELL_LANES) {
        uint16_t set = (uint16_t)(words[at / 64] >> at % 64);
        if (set == 0)
            continue;
        if (width - at < CELL_LANES) {
            for (uint32_t s = 0; s < width - at; s++)
                if (set >> s & 1)
                    row[at + s] = value;
            continue;
        }
        cell_lanes cells, unset = (cell_lanes)((pattern & set) == 0);
        memcpy(&cells, row + at, sizeof(cells));
        cells &= unset | value;
        memcpy(row + at, &cells, sizeof(cells));
    }
}

static FAB_ALWAYS_INLINE bool bfs_any_bit(const bits *v)
{
    uint64_t all = 0;
    for (int w = 0; w < WORDS; w++)
        all |= (*v)[w];
    return all != 0;
}

static FAB_ALWAYS_INLINE uint32_t row_of(const struct rows *rows, uint32_t v)
{
    return rows->row_of == NULL ? v : rows->row_of[v];
}

/*
 * Run one level for every switch that some source has not reached yet. Return whether anything was reached.
 */
static FAB_ALWAYS_INLINE bool bfs_level(const struct search *search, const struct bfs_space *sp,
                                        const bits *full, const struct rows *rows, uint32_t width,
                                        uint16_t value)
{
    const struct fab_plane *plane = search->plane;
    bool reached = false;
    for (uint32_t v = 0; v < plane->n_switches; v++) {
        bits missing = *full & ~sp->seen[v], found = {0};
        if (bfs_any_bit(&missing)) {
            const struct fab_edge *adj = plane->adj + plane->switches[v].adj_first;
            for (uint32_t i = 0; i < plane->switches[v].n_adj; i++)
                if (adj[i].cost == search->step)
                    found |= sp->front[adj[i].to];
            found &= missing;
        }
        sp->next[v] = found;
        if (!bfs_any_bit(&found))
            continue;
        reached = true;
        sp->seen[v] |= found;
        uint32_t row = row_of(rows, v);
        if (row != FAB_NONE) {
            uint64_t words[WORDS];
            memcpy(words, &found, sizeof(words));
            bfs_mark(rows->cells + row * rows->stride, width, words, value);
        }
    }
    return reached;
}

/* Stop at missing switches: they are reached, but no path continues there. */
static void stop_at_missing(const struct fab_plane *plane, bits *front)
{
    for (uint32_t v = 0; v < plane->n_switches; v++)
        if (plane->switches[v].missing)
            memset(&front[v], 0, sizeof(front[v]));
}

static FAB_ALWAYS_INLINE void bfs_block(const struct search *search, void *space, uint32_t first,
                                        uint32_t width, const struct rows *rows)
{
    uint32_t n = search->plane->n_switches;
    bits *memory = space;
    struct bfs_space sp = {memory, memory + n, memory + (size_t)2 * n};
    uint64_t words[WORDS] = {0};
    bits full;
    memset(sp.seen, 0, n * sizeof(bits));
    memset(sp.front, 0, n * sizeof(bits));
    for (uint32_t s = 0; s < width; s++) {
        uint32_t v = search->sources[first + s];
        words[s / 64] |= 1ull << s % 64;
        sp.seen[v][s / 64] |= 1ull << s % 64;
        sp.front[v][s / 64] |= 1ull << s % 64;
        rows->cells[row_of(rows, v) * rows->stride + s] = 0;
    }
    memcpy(&full, words, sizeof(full));
    uint32_t cost = search->step;
    while (
        bfs_level(search, &sp, &full, rows, width, (uint16_t)(cost > FAB_COST_MAX ? FAB_COST_MAX : cost))) {
        if (search->plane->n_missing > 0)
            stop_at_missing(search->plane, sp.next);
        bits *swap = sp.front;
        sp.front = sp.next;
        sp.next = swap;
        if (cost <= FAB_COST_MAX)
            cost += search->step;
    }
}

/* ---- with links of different costs ----------------------------------------------------------------- */

typedef uint16_t lanes __attribute__((vector_size(64)));
#define LANES 32

struct mixed_space {
    void *cheapest; /* of bfs_block() */
    lanes *dist;    /* per switch, `chunks` of them */
    uint8_t *dirty; /* per switch: it has distances to offer */
    uint32_t chunks;
};

static uint32_t chunks_of(const struct search *search)
{
    return (search->width + LANES - 1) / LANES;
}

static size_t mixed_space_size(const struct search *search)
{
    size_t vectors = (size_t)search->plane->n_switches * chunks_of(search);
    return bfs_space_size(search) + vectors * sizeof(lanes) + search->plane->n_switches;
}

/*
 * to = min(to, from + cost). All ones: not reached. Sums saturate there or, if `reach` requires a
 * distinction, at FAB_COST_MAX. Return whether any distance was reduced.
 */
static FAB_ALWAYS_INLINE bool lanes_relax(lanes *to, const lanes *from, uint32_t chunks, uint16_t cost,
                                          bool reach)
{
    lanes change = {0};
    for (uint32_t i = 0; i < chunks; i++) {
        lanes sum = from[i] + cost;
        sum |= (lanes)(sum < from[i]);
        if (reach)
            sum -= (lanes)(sum == FAB_COST_NO_PATH) & (lanes)(from[i] != FAB_COST_NO_PATH) & 1;
        lanes old = to[i], less = (lanes)(sum < old);
        to[i] = (sum & less) | (old & ~less);
        change |= less;
    }
    uint64_t words[sizeof(lanes) / 8], all = 0;
    memcpy(words, &change, sizeof(words));
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
        all |= words[w];
    return all != 0;
}

static FAB_ALWAYS_INLINE bool weighted_pass(const struct search *search, struct mixed_space *sp,
                                            bool forwards, bool reach)
{
    const struct fab_plane *plane = search->plane;
    bool busy = false;
    for (uint32_t i = 0; i < plane->n_switches; i++) {
        uint32_t v = forwards ? i : plane->n_switches - 1 - i;
        if (!sp->dirty[v])
            continue;
        sp->dirty[v] = 0;
        if (plane->switches[v].missing) /* reached, but no path continues here */
            continue;
        busy = true;
        const struct fab_edge *adj = plane->adj + plane->switches[v].adj_first;
        for (uint32_t e = 0; e < plane->switches[v].n_adj; e++) {
            lanes *to = sp->dist + (size_t)adj[e].to * sp->chunks;
            if (lanes_relax(to, sp->dist + (size_t)v * sp->chunks, sp->chunks, adj[e].cost, reach))
                sp->dirty[adj[e].to] = 1;
        }
    }
    return busy;
}

/* Only a more expensive link can reduce the distances of the cheapest ones: start at the ends of those. */
static void begin_at_dearer(const struct search *search, struct mixed_space *sp)
{
    const struct fab_plane *plane = search->plane;
    for (uint32_t v = 0; v < plane->n_switches; v++) {
        const struct fab_edge *adj = plane->adj + plane->switches[v].adj_first;
        sp->dirty[v] = 0;
        for (uint32_t e = 0; e < plane->switches[v].n_adj && !sp->dirty[v]; e++)
            sp->dirty[v] = adj[e].cost != search->step;
    }
}

/* Let a missing source reach its neighbours, once. */
static void leave_missing(const struct search *search, struct mixed_space *sp, uint32_t v, uint32_t s)
{
    const struct fab_vertex *from = &search->plane->switches[v];
    const struct fab_edge *adj = search->plane->adj + from->adj_first;
    for (uint32_t e = 0; e < from->n_adj; e++) {
        uint16_t cost = adj[e].cost;
        lanes *to = sp->dist + (size_t)adj[e].to * sp->chunks + s / LANES;
        if (cost < (*to)[s % LANES])
            (*to)[s % LANES] = cost;
        sp->dirty[adj[e].to] = 1;
    }
}

static FAB_ALWAYS_INLINE void weighted_block(const struct search *search, void *space, uint32_t first,
                                             uint32_t width)
{
    struct mixed_space sp = {.cheapest = space, .chunks = chunks_of(search)};
    sp.dist = (lanes *)((char *)space + bfs_space_size(search));
    sp.dirty = (uint8_t *)(sp.dist + (size_t)search->plane->n_switches * sp.chunks);
    const struct fab_plane *plane = search->plane;
    const struct rows rows = {(uint16_t *)sp.dist, (size_t)sp.chunks * LANES, NULL};
    memset(sp.dist, 0xff, (size_t)plane->n_switches * sp.chunks * sizeof(lanes));
    bfs_block(search, sp.cheapest, first, width, &rows);
    begin_at_dearer(search, &sp);
    for (uint32_t s = 0; s < width && plane->n_missing > 0; s++)
        if (plane->switches[search->sources[first + s]].missing)
            leave_missing(search, &sp, search->sources[first + s], s);
    const bool reach = plane->n_missing > 0;
    for (bool forwards = true, busy = true; busy; forwards = !forwards)
        busy =
            reach ? weighted_pass(search, &sp, forwards, true) : weighted_pass(search, &sp, forwards, false);
    /* A plane is connected: a distance of all ones is too far, unless switches are missing. */
    for (uint32_t e = 0; e < search->n_edges; e++) {
        uint16_t *row = search->dist + (size_t)e * search->n_edges + first;
        memcpy(row, sp.dist + (size_t)search->sources[e] * sp.chunks, width * sizeof(uint16_t));
        for (uint32_t s = 0; s < width && !reach; s++)
            row[s] -= row[s] == FAB_COST_NO_PATH;
    }
}

/* ---- all blocks ------------------------------------------------------------------------------------ */

static void *alloc_vectors(size_t size)
{
    void *vectors = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    if (vectors != NULL)
        fab_large_pages(vectors, size);
    return vectors;
}

/*
 * Number the rows of dist. The switches with devices come first, in the order in which the devices name them,
 * so that adjacent devices use adjacent rows. Each device without a switch gets one row after them.
 */
static uint32_t number_edges(const struct fab_plane *plane, struct fab_costs *costs, uint32_t *edge_of,
                             uint32_t *sources, uint32_t *n_edges)
{
    uint32_t n = 0, alone = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        edge_of[s] = FAB_NONE;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        const struct fab_device *device = &plane->devices[i];
        costs->host[i] = device->host;
        costs->access[i] = device->sw == FAB_NONE ? 0 : device->access;
        if (device->sw == FAB_NONE) {
            alone++;
            continue;
        }
        if (edge_of[device->sw] == FAB_NONE) {
            sources[n] = device->sw;
            edge_of[device->sw] = n++;
        }
        costs->edge[i] = edge_of[device->sw];
    }
    *n_edges = n + alone;
    return n;
}

/*
 * Assign rows to devices without a switch. Each device has its own row. The cost of the cable between two
 * such devices is in dist itself, so that it counts once. These rows start at n_searched, and no other device
 * reaches them.
 */
static void add_private_edges(const struct fab_plane *plane, struct fab_costs *costs, uint32_t n_searched)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t n = costs->view.n_edges, next = n_searched;
    for (uint32_t i = 0; i < plane->n_devices; i++)
        if (plane->devices[i].sw == FAB_NONE)
            costs->edge[i] = next++;
    if (next == n_searched)
        return;
    for (uint32_t e = 0; e < n; e++)
        for (uint32_t f = 0; f < n; f++)
            if (e >= n_searched || f >= n_searched)
                costs->dist[(size_t)e * n + f] = e == f ? 0 : FAB_COST_NO_PATH;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint32_t peer = fab_port_far(inv, &inv->ports[plane->devices[i].port]);
        if (plane->devices[i].sw != FAB_NONE || peer == FAB_NONE)
            continue;
        for (uint32_t j = 0; j < plane->n_devices; j++)
            if (plane->devices[j].port == peer)
                costs->dist[(size_t)costs->edge[i] * n + costs->edge[j]] =
                    costs->dist[(size_t)costs->edge[j] * n + costs->edge[i]] = plane->devices[i].access;
    }
}

/* Use one edge for all devices: 65535 within it, so that 10,000 of them do not need 100,000,000 cells. */
static int share_edge(const struct fab_plane *plane, struct fab_costs *costs)
{
    costs->dist = alloc_vectors(sizeof(*costs->dist));
    if (costs->dist == NULL)
        return PMIXFAB_ERR_NOMEM;
    costs->dist[0] = FAB_COST_NO_PATH;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        costs->edge[i] = 0;
        costs->access[i] = 0;
        costs->host[i] = plane->devices[i].host;
    }
    costs->view = (struct fab_cost_view){plane->n_devices, 1,           costs->edge, costs->access,
                                         costs->host,      costs->dist, NULL};
    return PMIXFAB_OK;
}

/* Find the cost of the cheapest link between switches, and whether others cost more. */
static void find_cheapest(struct search *search)
{
    const struct fab_plane *plane = search->plane;
    search->step = plane->n_adj == 0 ? 1 : plane->adj[0].cost;
    for (uint32_t i = 1; i < plane->n_adj; i++) {
        search->mixed = search->mixed || plane->adj[i].cost != search->step;
        search->step = plane->adj[i].cost < search->step ? plane->adj[i].cost : search->step;
    }
}

static uint32_t block_width(const struct search *search, unsigned threads, uint32_t most)
{
    uint32_t blocks = (search->n_edges + most - 1) / most;
    if (threads > 1)
        blocks = (blocks + threads - 1) / threads * threads;
    uint32_t width = (search->n_edges + blocks - 1) / blocks;
    return (width + 63) / 64 * 64;
}

/* Search one block at a time until none is left. */
static FAB_ALWAYS_INLINE void search_blocks(void *job, unsigned thread)
{
    struct search *search = job;
    void *space = search->workspace[thread];
    for (uint32_t b; (b = atomic_fetch_add(&search->next_block, 1)) < search->n_blocks;) {
        uint32_t first = b * search->width, left = search->n_edges - first;
        uint32_t width = left < search->width ? left : search->width;
        if (search->mixed) {
            weighted_block(search, space, first, width);
            continue;
        }
        const struct rows rows = {search->dist + first, search->n_edges, search->edge_of};
        for (uint32_t e = 0; e < search->n_edges; e++)
            memset(rows.cells + e * rows.stride, 0xff, width * sizeof(uint16_t));
        bfs_block(search, space, first, width, &rows);
    }
}

static void search_any(void *job, unsigned thread)
{
    search_blocks(job, thread);
}

#if defined(__x86_64__)
FAB_TARGET_AVX2 static void search_avx2(void *job, unsigned thread)
{
    search_blocks(job, thread);
}

FAB_TARGET_AVX512 static void search_avx512(void *job, unsigned thread)
{
    search_blocks(job, thread);
}
#endif

static void run_search(struct search *search, unsigned threads)
{
    void (*work)(void *job, unsigned thread) = search_any;
#if defined(__x86_64__)
    const enum fab_isa isa = fab_cost_isa();
    work = isa == FAB_ISA_AVX512 ? search_avx512 : isa == FAB_ISA_AVX2 ? search_avx2 : search_any;
#endif
    fab_cost_run(threads, work, search);
}

/* Compute the distances between the first search->n_edges edges into a dense n_edges x n_edges array. */
static int search_all(struct search *search, unsigned asked)
{
    find_cheapest(search);
    /* Starting a thread takes longer than a small search. */
    unsigned threads = fab_cost_threads(asked, search->n_edges / (search->mixed ? 64 : SEARCH_BITS));
    search->width = block_width(search, threads, SEARCH_BITS);
    search->n_blocks = (search->n_edges + search->width - 1) / search->width;
    size_t space = search->mixed ? mixed_space_size(search) : bfs_space_size(search);
    void **workspace = calloc(threads, sizeof(*workspace));
    int rc = workspace == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (unsigned t = 0; t < threads && rc == PMIXFAB_OK; t++)
        if ((workspace[t] = alloc_vectors(space)) == NULL)
            rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK) {
        search->workspace = workspace;
        run_search(search, threads);
    }
    for (unsigned t = 0; t < threads && workspace != NULL; t++)
        free(workspace[t]);
    free(workspace);
    return rc;
}

int fab_costs_compute(const struct fab_plane *plane, unsigned threads, struct fab_costs *out)
{
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    memset(out, 0, sizeof(*out));
    if (plane == NULL)
        return PMIXFAB_ERR_INVAL;
    int rc = PMIXFAB_ERR_NOMEM;
    size_t n = plane->n_devices, n_switches = plane->n_switches;
    uint32_t *edge_of = malloc((2 * n_switches + 1) * sizeof(*edge_of));
    out->edge = malloc((n + 1) * sizeof(*out->edge));
    out->host = malloc((n + 1) * sizeof(*out->host));
    out->access = malloc((n + 1) * sizeof(*out->access));
    if (edge_of == NULL || out->edge == NULL || out->host == NULL || out->access == NULL)
        goto cleanup;
    uint32_t *sources = edge_of + n_switches;
    if (plane->unattached) {
        rc = share_edge(plane, out);
        goto cleanup;
    }
    uint32_t n_edges, n_searched = number_edges(plane, out, edge_of, sources, &n_edges);
    /* A plane is connected: it has switches, or one or two devices, never devices of both kinds. */
    if (n_searched != 0 && n_edges != n_searched) {
        rc = PMIXFAB_ERR_CONFLICT;
        goto cleanup;
    }
    out->dist = alloc_vectors((size_t)n_edges * n_edges * sizeof(*out->dist));
    if (out->dist == NULL)
        goto cleanup;
    out->view =
        (struct fab_cost_view){plane->n_devices, n_edges, out->edge, out->access, out->host, out->dist, NULL};
    rc = PMIXFAB_OK;
    if (n_searched > 0) {
        struct search search = {
            .plane = plane, .sources = sources, .edge_of = edge_of, .n_edges = n_searched, .dist = out->dist};
        rc = search_all(&search, threads);
    }
    add_private_edges(plane, out, n_searched);
cleanup:
    free(edge_of);
    if (rc != PMIXFAB_OK)
        fab_costs_destroy(out);
    return rc;
}

void fab_costs_destroy(struct fab_costs *costs)
{
    if (costs == NULL)
        return;
    free(costs->edge);
    free(costs->host);
    free(costs->access);
    free(costs->dist);
    memset(costs, 0, sizeof(*costs));
}
