/*
 * cost_matrix_update.c - turn the former matrix of a plane into its present one in place.
 *
 * docs/design/costs.md says which cells can differ. Edges are numbered anew in every plane, so each is
 * compared with the former edge of most of its devices. All changes are known before the first cell is
 * written; if they are many, the whole matrix is written anew.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/scratch.h"
#include "topo/model/model.h"
#include "topo/snapshot/cost_matrix.h"

/*
 * Scattered cells that take as long as one cell written in sequence with all others. Measured: the caches
 * hold none of them.
 */
#define CELL_WORTH 12u

struct pair {
    uint32_t e, f;
};

struct refresh {
    struct fab_scratch scratch;
    const struct fab_cost_view *was, *now;
    uint16_t *cells;
    uint32_t *from;  /* per edge: its former edge; FAB_NONE: it has no device */
    bool same_edges; /* all edges are unchanged */
    uint8_t *anew;   /* per device: its row and column change */
    uint32_t *rows;  /* these devices */
    uint32_t n_rows;
    struct pair *pairs; /* pairs of edges with another cost */
    uint32_t n_pairs, cap;
    uint32_t *start, *member; /* devices by edge: member[start[e] .. start[e + 1] - 1] */
    uint32_t *hosts;          /* first devices of hosts with other places */
    uint32_t n_hosts;
    uint64_t most; /* maximum number of scattered cells */
    uint64_t n;    /* number of cells known to change */
};

/* Add some cells. Return false if the update is no longer faster. */
static bool refresh_spend(struct refresh *r, uint64_t cells)
{
    r->n += cells;
    return r->n <= r->most;
}

static void write_anew(struct refresh *r, uint32_t device)
{
    if (!r->anew[device])
        r->rows[r->n_rows++] = device;
    r->anew[device] = 1;
}

/* Return the end of the devices of device i's host. */
static uint32_t host_end(const struct fab_cost_view *v, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < v->n_devices && v->host[end] == v->host[i])
        end++;
    return end;
}

/* ---- comparison ------------------------------------------------------------------------------------ */

/* Find the former edge of each edge: that of most of its devices, if there is one, else that of some. */
static int match_edges(struct refresh *r)
{
    const struct fab_cost_view *was = r->was, *now = r->now;
    uint32_t *votes;
    if (FAB_SCRATCH(&r->scratch, &votes, now->n_edges) == NULL)
        return PMIXFAB_ERR_NOMEM;
    memset(r->from, 0xff, now->n_edges * sizeof(*r->from));
    for (uint32_t i = 0; i < now->n_devices; i++) {
        uint32_t e = now->edge[i];
        if (votes[e] == 0)
            r->from[e] = was->edge[i];
        votes[e] += r->from[e] == was->edge[i] ? 1 : UINT32_MAX;
    }
    r->same_edges = now->n_edges == was->n_edges;
    for (uint32_t e = 0; e < now->n_edges; e++)
        r->same_edges = r->same_edges && r->from[e] == e;
    return PMIXFAB_OK;
}

static void refresh_compare_devices(struct refresh *r)
{
    const struct fab_cost_view *was = r->was, *now = r->now;
    for (uint32_t i = 0; i < now->n_devices; i++)
        if (r->from[now->edge[i]] != was->edge[i] || now->access[i] != was->access[i])
            write_anew(r, i);
}

static bool same_places(const struct refresh *r, uint32_t first, uint32_t end)
{
    const struct fab_cost_view *was = r->was, *now = r->now;
    if (was->places != NULL && now->places != NULL)
        return memcmp(was->places + first, now->places + first, (end - first) * sizeof(*now->places)) == 0;
    return was->places == now->places;
}

/* Compare hosts: find devices that are no longer with the same others, and hosts with changes inside. */
static bool refresh_compare_hosts(struct refresh *r)
{
    const struct fab_cost_view *was = r->was, *now = r->now;
    uint32_t n = now->n_devices;
    if (memcmp(was->host, now->host, n * sizeof(*now->host)) == 0 && same_places(r, 0, n))
        return true;
    for (uint32_t first = 0, end; first < n; first = end) {
        end = host_end(now, first);
        bool same = host_end(was, first) == end; /* a device with other companions has another end, too */
        for (uint32_t i = first; i < end && !same; i++)
            write_anew(r, i);
        if (!same || end - first == 1 || same_places(r, first, end))
            continue;
        r->hosts[r->n_hosts++] = first;
        if (!refresh_spend(r, (uint64_t)(end - first) * (end - first)))
            return false;
    }
    return true;
}

/* List devices by edge, without those that are written anew. */
static int list_members(struct refresh *r)
{
    const struct fab_cost_view *now = r->now;
    FAB_SCRATCH(&r->scratch, &r->start, now->n_edges + (size_t)1);
    FAB_SCRATCH(&r->scratch, &r->member, now->n_devices);
    if (r->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < now->n_devices; i++)
        r->start[now->edge[i] + 2] += !r->anew[i];
    for (uint32_t e = 0; e < now->n_edges; e++)
        r->start[e + 2] += r->start[e + 1];
    for (uint32_t i = 0; i < now->n_devices; i++)
        if (!r->anew[i])
            r->member[r->start[now->edge[i] + 1]++] = i;
    return PMIXFAB_OK;
}

static int add_pair(struct refresh *r, uint32_t e, uint32_t f)
{
    int rc = r->start == NULL ? list_members(r) : PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        return rc;
    uint64_t cells = (uint64_t)(r->start[e + 1] - r->start[e]) * (r->start[f + 1] - r->start[f]);
    if (cells == 0)
        return PMIXFAB_OK;
    if (!refresh_spend(r, cells))
        return PMIXFAB_ERR_RANGE;
    if (!FAB_ARRAY_ROOM(&r->pairs, &r->cap, (uint64_t)r->n_pairs + 1))
        return PMIXFAB_ERR_NOMEM;
    r->pairs[r->n_pairs++] = (struct pair){e, f};
    return PMIXFAB_OK;
}

static int compare_row(struct refresh *r, uint32_t e)
{
    const struct fab_cost_view *was = r->was, *now = r->now;
    const uint16_t *before = was->dist + (size_t)r->from[e] * was->n_edges;
    const uint16_t *row = now->dist + (size_t)e * now->n_edges;
    int rc = PMIXFAB_OK;
    if (r->same_edges && memcmp(row, before, now->n_edges * sizeof(*row)) == 0)
        return rc;
    for (uint32_t f = 0; f < now->n_edges && rc == PMIXFAB_OK; f++)
        if (r->from[f] != FAB_NONE && row[f] != before[r->from[f]])
            rc = add_pair(r, e, f);
    return rc;
}

/* Compare. PMIXFAB_ERR_RANGE: too many changes. */
static int refresh_compare(struct refresh *r)
{
    int rc = match_edges(r);
    if (rc != PMIXFAB_OK)
        return rc;
    refresh_compare_devices(r);
    if (!refresh_compare_hosts(r) || !refresh_spend(r, 2 * (uint64_t)r->n_rows * r->now->n_devices))
        return PMIXFAB_ERR_RANGE;
    for (uint32_t e = 0; e < r->now->n_edges && rc == PMIXFAB_OK; e++)
        if (r->from[e] != FAB_NONE)
            rc = compare_row(r, e);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------------- */

static void refresh_write_devices(const struct refresh *r)
{
    uint32_t n = r->now->n_devices;
    for (uint32_t i = 0; i < n && r->n_rows > 0; i++) {
        uint16_t *row = r->cells + (size_t)i * n;
        if (r->anew[i]) {
            fab_cost_row(r->now, i, row);
            continue;
        }
        for (uint32_t k = 0; k < r->n_rows; k++)
            row[r->rows[k]] = fab_cost_of(r->now, i, r->rows[k]);
    }
}

static void write_pair(const struct refresh *r, const struct pair *pair)
{
    for (uint32_t a = r->start[pair->e]; a < r->start[pair->e + 1]; a++) {
        uint16_t *row = r->cells + (size_t)r->member[a] * r->now->n_devices;
        for (uint32_t b = r->start[pair->f]; b < r->start[pair->f + 1]; b++)
            row[r->member[b]] = fab_cost_of(r->now, r->member[a], r->member[b]);
    }
}

static void write_host(const struct refresh *r, uint32_t first)
{
    uint32_t end = host_end(r->now, first);
    for (uint32_t a = first; a < end; a++)
        for (uint32_t b = first; b < end; b++)
            r->cells[(size_t)a * r->now->n_devices + b] = fab_cost_of(r->now, a, b);
}

int fab_cost_matrix_update(const struct fab_cost_view *was, const struct fab_cost_view *now, uint16_t *cells,
                           unsigned threads, uint64_t *written)
{
    if (was == NULL || now == NULL || was->n_devices != now->n_devices ||
        (cells == NULL && now->n_devices > 0))
        return PMIXFAB_ERR_INVAL;
    size_t n = now->n_devices;
    if (written != NULL && n == 0)
        *written = 0;
    if (n == 0)
        return PMIXFAB_OK;
    struct refresh r = {.was = was, .now = now, .cells = cells, .most = (uint64_t)n * n / CELL_WORTH};
    FAB_SCRATCH(&r.scratch, &r.rows, n);
    FAB_SCRATCH(&r.scratch, &r.hosts, n);
    FAB_SCRATCH(&r.scratch, &r.from, now->n_edges);
    FAB_SCRATCH(&r.scratch, &r.anew, n);
    int rc = r.scratch.failed ? PMIXFAB_ERR_NOMEM : refresh_compare(&r);
    if (rc == PMIXFAB_OK) {
        refresh_write_devices(&r);
        for (uint32_t i = 0; i < r.n_pairs; i++)
            write_pair(&r, &r.pairs[i]);
        for (uint32_t i = 0; i < r.n_hosts; i++)
            write_host(&r, r.hosts[i]);
    } else if (rc == PMIXFAB_ERR_RANGE) {
        rc = fab_cost_matrix(now, cells, threads);
        r.n = (uint64_t)n * n;
    }
    if (written != NULL && rc == PMIXFAB_OK)
        *written = r.n;
    fab_scratch_free(&r.scratch);
    free(r.pairs);
    return rc;
}
