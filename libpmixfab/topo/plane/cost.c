#include "topo/plane/cost.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/large_pages.h"
#include "topo/plane/engine.h"

static void *alloc_vectors(size_t size)
{
    void *vectors = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    if (vectors != NULL)
        fab_large_pages(vectors, size);
    return vectors;
}

/*
 * Give every device its row in dist: the switches with devices in the order in which the devices first name
 * them (so that devices side by side use rows side by side), then a row for each device without a switch.
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
 * Devices without a switch: each has a row of its own, and the cost of the cable between two stands in dist
 * itself, so that it counts once. Rows from n_searched on; nothing else reaches them.
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

/* One edge for all: 65535 within it, so that 10,000 of them do not make 100,000,000 cells. */
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

/* What the cheapest link between switches costs, and whether others cost more. */
static void find_cheapest(struct fab_search *search)
{
    const struct fab_plane *plane = search->plane;
    search->step = plane->n_adj == 0 ? 1 : plane->adj[0].cost;
    for (uint32_t i = 1; i < plane->n_adj; i++) {
        search->mixed = search->mixed || plane->adj[i].cost != search->step;
        search->step = plane->adj[i].cost < search->step ? plane->adj[i].cost : search->step;
    }
}

static uint32_t block_width(const struct fab_search *search, unsigned threads, uint32_t most)
{
    uint32_t blocks = (search->n_edges + most - 1) / most;
    if (threads > 1)
        blocks = (blocks + threads - 1) / threads * threads;
    uint32_t width = (search->n_edges + blocks - 1) / blocks;
    return (width + 63) / 64 * 64;
}

/* One block at a time until none is left. */
static void search_blocks(void *job, unsigned thread)
{
    struct fab_search *search = job;
    void *space = search->workspace[thread];
    for (uint32_t b; (b = atomic_fetch_add(&search->next_block, 1)) < search->n_blocks;) {
        uint32_t first = b * search->width, left = search->n_edges - first;
        uint32_t width = left < search->width ? left : search->width;
        if (search->mixed) {
            fab_search_mixed(search, space, first, width);
            continue;
        }
        const struct fab_rows rows = {search->dist + first, search->n_edges, search->edge_of};
        for (uint32_t e = 0; e < search->n_edges; e++)
            memset(rows.cells + e * rows.stride, 0xff, width * sizeof(uint16_t));
        fab_search_cheapest(search, space, first, width, &rows);
    }
}

/* Distances between the first search->n_edges edges into a dense n_edges x n_edges array. */
static int search_all(struct fab_search *search, unsigned asked)
{
    find_cheapest(search);
    /* A thread takes longer to start than a small search takes. */
    unsigned threads = fab_cost_threads(asked, search->n_edges / (search->mixed ? 64 : FAB_SEARCH_BITS));
    search->width = block_width(search, threads, FAB_SEARCH_BITS);
    search->n_blocks = (search->n_edges + search->width - 1) / search->width;
    size_t space = search->mixed ? fab_search_mixed_space(search) : fab_search_cheapest_space(search);
    void **workspace = calloc(threads, sizeof(*workspace));
    int rc = workspace == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (unsigned t = 0; t < threads && rc == PMIXFAB_OK; t++)
        if ((workspace[t] = alloc_vectors(space)) == NULL)
            rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK) {
        search->workspace = workspace;
        fab_cost_run(threads, search_blocks, search);
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
    /* A plane is connected: it has switches, or else one or two devices, never devices of both sorts. */
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
        struct fab_search search = {
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
