/*
 * cost_bfs.c - distances by the links that cost least, which are all links in most fabrics.
 *
 * Breadth-first search from up to 512 edge switches at once: bit s of a switch's vector says that source s
 * has reached it. A level is one pass over the switches, each gathering its neighbours' vectors.
 */
#include "topo/plane/engine.h"

#include <string.h>

#define WORDS (FAB_SEARCH_BITS / 64)

typedef uint64_t bits __attribute__((vector_size(FAB_SEARCH_BITS / 8)));
typedef uint16_t lanes __attribute__((vector_size(32)));
#define LANES 16

struct space {
    bits *seen, *front, *next; /* per switch */
};

size_t fab_search_cheapest_space(const struct fab_search *search)
{
    return ((size_t)search->plane->n_switches * 3 + 1) * sizeof(bits);
}

/*
 * row[s] = value where bit s is set. Each place is written once and holds all ones before, so that an AND
 * does it. Only the last block of a row may end inside a vector; it goes lane by lane, for what lies behind
 * belongs to another block.
 */
static FAB_ALWAYS_INLINE void bfs_mark(uint16_t *row, uint32_t width, const uint64_t *words, uint16_t value)
{
    const lanes pattern = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    for (uint32_t at = 0; at < width; at += LANES) {
        uint16_t set = (uint16_t)(words[at / 64] >> at % 64);
        if (set == 0)
            continue;
        if (width - at < LANES) {
            for (uint32_t s = 0; s < width - at; s++)
                if (set >> s & 1)
                    row[at + s] = value;
            continue;
        }
        lanes cells, unset = (lanes)((pattern & set) == 0);
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

static FAB_ALWAYS_INLINE uint32_t row_of(const struct fab_rows *rows, uint32_t v)
{
    return rows->row_of == NULL ? v : rows->row_of[v];
}

/* One level for every switch that some source has not reached yet. Returns whether anything was reached. */
static FAB_ALWAYS_INLINE bool bfs_level(const struct fab_search *search, const struct space *sp,
                                        const bits *full, const struct fab_rows *rows, uint32_t width,
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

/* Switches that are missing are reached, but nothing goes on from there. */
static void stop_at_missing(const struct fab_plane *plane, bits *front)
{
    for (uint32_t v = 0; v < plane->n_switches; v++)
        if (plane->switches[v].missing)
            memset(&front[v], 0, sizeof(front[v]));
}

static FAB_ALWAYS_INLINE void bfs_block(const struct fab_search *search, struct space sp, uint32_t first,
                                        uint32_t width, const struct fab_rows *rows)
{
    uint32_t n = search->plane->n_switches;
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

static void bfs_block_any(const struct fab_search *search, struct space sp, uint32_t first, uint32_t width,
                          const struct fab_rows *rows)
{
    bfs_block(search, sp, first, width, rows);
}

#if defined(__x86_64__)
FAB_TARGET_AVX2 static void bfs_block_avx2(const struct fab_search *search, struct space sp, uint32_t first,
                                           uint32_t width, const struct fab_rows *rows)
{
    bfs_block(search, sp, first, width, rows);
}

FAB_TARGET_AVX512 static void bfs_block_avx512(const struct fab_search *search, struct space sp,
                                               uint32_t first, uint32_t width, const struct fab_rows *rows)
{
    bfs_block(search, sp, first, width, rows);
}
#endif

void fab_search_cheapest(const struct fab_search *search, void *space, uint32_t first, uint32_t width,
                         const struct fab_rows *rows)
{
    uint32_t n = search->plane->n_switches;
    bits *memory = space;
    struct space sp = {memory, memory + n, memory + (size_t)2 * n};
#if defined(__x86_64__)
    enum fab_isa isa = fab_cost_isa();
    if (isa == FAB_ISA_AVX512)
        bfs_block_avx512(search, sp, first, width, rows);
    else if (isa == FAB_ISA_AVX2)
        bfs_block_avx2(search, sp, first, width, rows);
    else
#endif
        bfs_block_any(search, sp, first, width, rows);
}
