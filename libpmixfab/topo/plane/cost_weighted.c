/*
 * cost_weighted.c - distances where links cost different amounts.
 *
 * Each switch holds its distances to a block of sources, a vector lane a source. They begin as those by the
 * cheapest links alone, which are nearly right where few links are dearer. A switch whose distances can make
 * others smaller offers them to its neighbours, until nothing becomes smaller. The switches are gone through
 * forwards and backwards in turn; in a real fabric four to eight passes do, whatever the costs are.
 */
#include "topo/plane/engine.h"

#include <string.h>

typedef uint16_t lanes __attribute__((vector_size(64)));
#define LANES 32

struct space {
    void *cheapest; /* of fab_search_cheapest() */
    lanes *dist;    /* per switch, `chunks` of them */
    uint8_t *dirty; /* per switch: has something to offer */
    uint32_t chunks;
};

static uint32_t chunks_of(const struct fab_search *search)
{
    return (search->width + LANES - 1) / LANES;
}

size_t fab_search_mixed_space(const struct fab_search *search)
{
    size_t vectors = (size_t)search->plane->n_switches * chunks_of(search);
    return fab_search_cheapest_space(search) + vectors * sizeof(lanes) + search->plane->n_switches;
}

/* to = min(to, from + cost). All ones: not reached; sums end there, too, or, where `reach` says that both
 * must be told apart, at FAB_COST_MAX. Returns whether anything became smaller. */
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

static FAB_ALWAYS_INLINE bool weighted_pass(const struct fab_search *search, struct space *sp, bool forwards,
                                            bool reach)
{
    const struct fab_plane *plane = search->plane;
    bool busy = false;
    for (uint32_t i = 0; i < plane->n_switches; i++) {
        uint32_t v = forwards ? i : plane->n_switches - 1 - i;
        if (!sp->dirty[v])
            continue;
        sp->dirty[v] = 0;
        if (plane->switches[v].missing) /* reached, but nothing goes on from here */
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

/* Only a dearer link can give less than the cheapest ones gave: begin with the ends of those. */
static void begin_at_dearer(const struct fab_search *search, struct space *sp)
{
    const struct fab_plane *plane = search->plane;
    for (uint32_t v = 0; v < plane->n_switches; v++) {
        const struct fab_edge *adj = plane->adj + plane->switches[v].adj_first;
        sp->dirty[v] = 0;
        for (uint32_t e = 0; e < plane->switches[v].n_adj && !sp->dirty[v]; e++)
            sp->dirty[v] = adj[e].cost != search->step;
    }
}

/* A source that is missing reaches its neighbours, once. */
static void leave_missing(const struct fab_search *search, struct space *sp, uint32_t v, uint32_t s)
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

static FAB_ALWAYS_INLINE void weighted_block(const struct fab_search *search, struct space *sp,
                                             uint32_t first, uint32_t width)
{
    const struct fab_plane *plane = search->plane;
    const struct fab_rows rows = {(uint16_t *)sp->dist, (size_t)sp->chunks * LANES, NULL};
    memset(sp->dist, 0xff, (size_t)plane->n_switches * sp->chunks * sizeof(lanes));
    fab_search_cheapest(search, sp->cheapest, first, width, &rows);
    begin_at_dearer(search, sp);
    for (uint32_t s = 0; s < width && plane->n_missing > 0; s++)
        if (plane->switches[search->sources[first + s]].missing)
            leave_missing(search, sp, search->sources[first + s], s);
    const bool reach = plane->n_missing > 0;
    for (bool forwards = true, busy = true; busy; forwards = !forwards)
        busy = reach ? weighted_pass(search, sp, forwards, true) : weighted_pass(search, sp, forwards, false);
    /* A plane is connected: what is still at all ones is too far, unless switches are missing. */
    for (uint32_t e = 0; e < search->n_edges; e++) {
        uint16_t *row = search->dist + (size_t)e * search->n_edges + first;
        memcpy(row, sp->dist + (size_t)search->sources[e] * sp->chunks, width * sizeof(uint16_t));
        for (uint32_t s = 0; s < width && !reach; s++)
            row[s] -= row[s] == FAB_COST_NO_PATH;
    }
}

static void weighted_block_any(const struct fab_search *search, struct space *sp, uint32_t first,
                               uint32_t width)
{
    weighted_block(search, sp, first, width);
}

#if defined(__x86_64__)
FAB_TARGET_AVX2 static void weighted_block_avx2(const struct fab_search *search, struct space *sp,
                                                uint32_t first, uint32_t width)
{
    weighted_block(search, sp, first, width);
}

FAB_TARGET_AVX512 static void weighted_block_avx512(const struct fab_search *search, struct space *sp,
                                                    uint32_t first, uint32_t width)
{
    weighted_block(search, sp, first, width);
}
#endif

void fab_search_mixed(const struct fab_search *search, void *space, uint32_t first, uint32_t width)
{
    struct space sp = {.cheapest = space, .chunks = chunks_of(search)};
    sp.dist = (lanes *)((char *)space + fab_search_cheapest_space(search));
    sp.dirty = (uint8_t *)(sp.dist + (size_t)search->plane->n_switches * sp.chunks);
#if defined(__x86_64__)
    enum fab_isa isa = fab_cost_isa();
    if (isa == FAB_ISA_AVX512)
        weighted_block_avx512(search, &sp, first, width);
    else if (isa == FAB_ISA_AVX2)
        weighted_block_avx2(search, &sp, first, width);
    else
#endif
        weighted_block_any(search, &sp, first, width);
}
