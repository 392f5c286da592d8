/*
 * mapping.c - map the ranks of a job to hosts, so that ranks with much communication are near each other.
 *
 * Recursive bisection: the list of hosts, which is in the order of the fabric, is cut where neighbours are
 * farthest from each other, in a tree between two parts below its top. The ranks are divided accordingly.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/run/run.h"
#include "topo/base/order.h"
#include "topo/base/scratch.h"

#define PASSES     8
#define SEEDS      4
#define MOST_STEPS (1u << 26) /* of the exchanges of one division */

/* A part of the ranks, as a graph of its own: vertices 0 to n - 1. */
struct part {
    uint32_t n, left;
    uint32_t *first, *to;
    double *bytes;
};

struct mapping {
    struct fab_scratch scratch;
    const struct run_traffic *traffic;
    const uint16_t *costs;
    const uint32_t *slots;
    uint32_t n_hosts;
    run_divide_fn *divide;
    uint32_t *host_of;
    uint32_t *ranks;     /* all ranks, those of a part in a row */
    uint32_t *vertex_of; /* per rank: in the part; UINT32_MAX: not in it */
    uint32_t *copy;
    double *gain;    /* per vertex: bytes saved by its move to the other side */
    uint32_t *moved; /* vertices in the order of their moves */
    uint8_t *side, *best;
    bool *stays;  /* per vertex: it was moved already */
    uint32_t dim; /* the dimension that sorts the points of a grid */
    struct part part;
};

double run_cost(const struct run_traffic *traffic, const uint16_t *costs, uint32_t n_hosts,
                const uint32_t *host_of)
{
    double cost = 0;
    for (uint32_t r = 0; r < traffic->n; r++)
        for (uint32_t e = traffic->first[r]; e < traffic->first[r + 1]; e++) {
            const uint32_t a = host_of[r], b = host_of[traffic->to[e]];
            cost += a == b ? 0 : traffic->bytes[e] * costs[(size_t)a * n_hosts + b];
        }
    return cost / 2; /* each message stands at both of its ranks */
}

/* ---- one division ---- */

/* Return the bytes between the sides, twice. */
static double cut_of(const struct part *p, const uint8_t *side)
{
    double cut = 0;
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t e = p->first[v]; e < p->first[v + 1]; e++)
            cut += side[v] != side[p->to[e]] ? p->bytes[e] : 0;
    return cut;
}

static void find_gains(struct mapping *m)
{
    const struct part *p = &m->part;
    for (uint32_t v = 0; v < p->n; v++) {
        m->gain[v] = 0;
        for (uint32_t e = p->first[v]; e < p->first[v + 1]; e++)
            m->gain[v] += m->side[v] != m->side[p->to[e]] ? p->bytes[e] : -p->bytes[e];
    }
}

/* Return the unmoved vertex of a side whose move saves most; UINT32_MAX: none. */
static uint32_t best_mover(const struct mapping *m, uint8_t side)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t v = 0; v < m->part.n; v++)
        if (m->side[v] == side && !m->stays[v] && (best == UINT32_MAX || m->gain[v] > m->gain[best]))
            best = v;
    return best;
}

static void move_vertex(struct mapping *m, uint32_t v)
{
    const struct part *p = &m->part;
    m->side[v] ^= 1;
    m->gain[v] = -m->gain[v];
    for (uint32_t e = p->first[v]; e < p->first[v + 1]; e++)
        m->gain[p->to[e]] += m->side[v] == m->side[p->to[e]] ? -2 * p->bytes[e] : 2 * p->bytes[e];
}

static double bytes_between(const struct part *p, uint32_t v, uint32_t w)
{
    double bytes = 0;
    for (uint32_t e = p->first[v]; e < p->first[v + 1]; e++)
        bytes += p->to[e] == w ? p->bytes[e] : 0;
    return bytes;
}

/*
 * Exchange pairs, each vertex once, also where an exchange costs more, and undo those after the best moment
 * (Kernighan and Lin). Return whether that saved bytes.
 */
static bool exchange_pairs(struct mapping *m, uint32_t turns)
{
    const struct part *p = &m->part;
    double saved = 0, most = 1e-9 * cut_of(p, m->side);
    uint32_t n = 0, kept = 0;
    memset(m->stays, 0, p->n * sizeof *m->stays);
    while (turns-- > 0) {
        const uint32_t v = best_mover(m, 0), w = best_mover(m, 1);
        if (v == UINT32_MAX || w == UINT32_MAX)
            break;
        saved += m->gain[v] + m->gain[w] - 2 * bytes_between(p, v, w);
        for (int k = 0; k < 2; k++) {
            m->moved[n++] = k == 0 ? v : w;
            m->stays[m->moved[n - 1]] = true;
            move_vertex(m, m->moved[n - 1]);
        }
        if (saved > most) {
            most = saved;
            kept = n;
        }
    }
    while (n > kept)
        move_vertex(m, m->moved[--n]);
    return kept > 0;
}

/* Move vertices until side 0 has its number, then exchange pairs while that saves bytes. Keep the best
 * division. */
static void improve(struct mapping *m, double *least)
{
    const struct part *p = &m->part;
    const uint32_t turns = MOST_STEPS / PASSES / (p->n + 1) + 1;
    uint32_t have = 0;
    memset(m->stays, 0, p->n * sizeof *m->stays);
    find_gains(m);
    for (uint32_t v = 0; v < p->n; v++)
        have += m->side[v] == 0;
    for (; have > p->left; have--)
        move_vertex(m, best_mover(m, 0));
    for (; have < p->left; have++)
        move_vertex(m, best_mover(m, 1));
    for (int pass = 0; pass < PASSES && exchange_pairs(m, turns); pass++)
        ;
    const double cut = cut_of(p, m->side);
    if (*least < 0 || cut < *least) {
        *least = cut;
        memcpy(m->best, m->side, p->n);
    }
}

static uint32_t coordinate(const struct run_traffic *traffic, uint32_t rank, uint32_t dim)
{
    for (uint32_t d = traffic->n_dims - 1; d > dim; d--)
        rank /= traffic->dims[d];
    return rank % traffic->dims[dim];
}

static int point_cmp(const void *a, const void *b, void *arg)
{
    const struct mapping *m = arg;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const int order = FAB_ORDER(coordinate(m->traffic, x, m->dim), coordinate(m->traffic, y, m->dim));
    return order != 0 ? order : FAB_ORDER(x, y);
}

/* Divide a block of a grid across its longest dimension. */
static void divide_block(struct mapping *m, const uint32_t *ranks)
{
    uint32_t longest = 0;
    m->dim = 0;
    for (uint32_t d = 0; d < m->traffic->n_dims; d++) {
        uint32_t low = UINT32_MAX, high = 0;
        for (uint32_t i = 0; i < m->part.n; i++) {
            const uint32_t at = coordinate(m->traffic, ranks[i], d);
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        if (high - low > longest) {
            longest = high - low;
            m->dim = d;
        }
    }
    memcpy(m->copy, ranks, m->part.n * sizeof *m->copy);
    qsort_r(m->copy, m->part.n, sizeof *m->copy, point_cmp, m);
    for (uint32_t i = 0; i < m->part.n; i++)
        m->side[m->vertex_of[m->copy[i]]] = i >= m->part.left;
}

/* Divide the ranks: those of side 0 come first. */
static void divide_ranks(struct mapping *m, uint32_t *ranks)
{
    const struct part *p = &m->part;
    double least = -1;
    uint32_t at = 0;
    for (uint32_t v = 0; v < p->n; v++)
        m->side[v] = v >= p->left;
    improve(m, &least);
    if (m->traffic->n_dims > 0) {
        divide_block(m, ranks);
        improve(m, &least);
    }
    for (uint32_t i = 0; i < SEEDS && m->traffic->n_dims == 0; i++) {
        memset(m->side, 1, p->n);
        m->side[(uint64_t)i * p->n / SEEDS] = 0; /* it grows from this rank */
        improve(m, &least);
    }
    if (m->divide != NULL && m->divide(p->n, p->first, p->to, p->bytes, p->left, m->side))
        improve(m, &least);
    memcpy(m->copy, ranks, p->n * sizeof *ranks);
    for (uint8_t side = 0; side < 2; side++)
        for (uint32_t v = 0; v < p->n; v++)
            if (m->best[v] == side)
                ranks[at++] = m->copy[v];
}

/* ---- all divisions ---- */

/* Take n ranks as a graph, with `left` of them for side 0. */
static void take_part(struct mapping *m, const uint32_t *ranks, uint32_t n, uint32_t left)
{
    const struct run_traffic *traffic = m->traffic;
    struct part *p = &m->part;
    uint32_t used = 0;
    p->n = n;
    p->left = left;
    for (uint32_t v = 0; v < n; v++)
        m->vertex_of[ranks[v]] = v;
    for (uint32_t v = 0; v < n; v++) {
        p->first[v] = used;
        for (uint32_t e = traffic->first[ranks[v]]; e < traffic->first[ranks[v] + 1]; e++) {
            const uint32_t w = m->vertex_of[traffic->to[e]];
            if (w < n && ranks[w] == traffic->to[e]) { /* else a number of an earlier part */
                p->to[used] = w;
                p->bytes[used++] = traffic->bytes[e];
            }
        }
    }
    p->first[n] = used;
}

/* Return the best place to cut hosts first to end - 1: where neighbours are farthest, then near the middle.
 */
static uint32_t cut_hosts(const struct mapping *m, uint32_t first, uint32_t end)
{
    uint32_t best = first + 1, off = UINT32_MAX;
    uint16_t most = 0;
    for (uint32_t h = first + 1; h < end; h++) {
        const uint16_t cost = m->costs[(size_t)(h - 1) * m->n_hosts + h];
        const uint32_t from_middle = 2 * h > first + end ? 2 * h - first - end : first + end - 2 * h;
        if (cost > most || (cost == most && from_middle < off)) {
            best = h;
            most = cost;
            off = from_middle;
        }
    }
    return best;
}

static void map_part(struct mapping *m, uint32_t *ranks, uint32_t n, uint32_t first, uint32_t end)
{
    while (end - first > 1) {
        const uint32_t cut = cut_hosts(m, first, end);
        uint32_t left = 0;
        for (uint32_t h = first; h < cut; h++)
            left += m->slots[h];
        take_part(m, ranks, n, left);
        divide_ranks(m, ranks);
        map_part(m, ranks, left, first, cut);
        ranks += left;
        n -= left;
        first = cut;
    }
    for (uint32_t i = 0; i < n; i++)
        m->host_of[ranks[i]] = first;
}

int run_map(const struct run_traffic *traffic, const uint16_t *costs, const uint32_t *slots, uint32_t n_hosts,
            run_divide_fn *divide, uint32_t *host_of)
{
    struct mapping m = {
        .traffic = traffic, .costs = costs, .slots = slots, .n_hosts = n_hosts, .divide = divide};
    const uint32_t n = traffic->n;
    const double before = run_cost(traffic, costs, n_hosts, host_of);
    FAB_SCRATCH(&m.scratch, &m.host_of, n);
    FAB_SCRATCH(&m.scratch, &m.ranks, n);
    FAB_SCRATCH(&m.scratch, &m.vertex_of, n);
    FAB_SCRATCH(&m.scratch, &m.copy, n);
    FAB_SCRATCH(&m.scratch, &m.gain, n);
    FAB_SCRATCH(&m.scratch, &m.moved, n);
    FAB_SCRATCH(&m.scratch, &m.stays, n);
    FAB_SCRATCH(&m.scratch, &m.side, n);
    FAB_SCRATCH(&m.scratch, &m.best, n);
    FAB_SCRATCH(&m.scratch, &m.part.first, n);
    FAB_SCRATCH(&m.scratch, &m.part.to, traffic->first[n]);
    FAB_SCRATCH(&m.scratch, &m.part.bytes, traffic->first[n]);
    if (m.scratch.failed) {
        fab_scratch_free(&m.scratch);
        return PMIXFAB_ERR_NOMEM;
    }
    for (uint32_t r = 0; r < n; r++)
        m.ranks[r] = r;
    map_part(&m, m.ranks, n, 0, n_hosts);
    if (run_cost(traffic, costs, n_hosts, m.host_of) < before)
        memcpy(host_of, m.host_of, n * sizeof *host_of);
    fab_scratch_free(&m.scratch);
    return PMIXFAB_OK;
}
