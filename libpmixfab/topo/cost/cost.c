#include "topo/cost/cost.h"

#include <stdlib.h>
#include <string.h>

#include "topo/cost/engine.h"

static void *alloc_vectors(size_t size)
{
    return aligned_alloc(64, (size + 63) / 64 * 64 + 64);
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
        uint32_t peer = inv->ports[plane->devices[i].port].peer;
        if (plane->devices[i].sw != FAB_NONE || peer == FAB_NONE)
            continue;
        for (uint32_t j = 0; j < plane->n_devices; j++)
            if (plane->devices[j].port == peer)
                costs->dist[(size_t)costs->edge[i] * n + costs->edge[j]] = plane->devices[i].access;
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

/* All links between switches cost the same: that cost; 0 otherwise. */
static uint16_t uniform_cost(const struct fab_plane *plane)
{
    for (uint32_t i = 1; i < plane->n_adj; i++)
        if (plane->adj[i].cost != plane->adj[0].cost)
            return 0;
    return plane->n_adj == 0 ? 1 : plane->adj[0].cost;
}

/* A block's vectors should stay in the second-level cache. */
#define MIXED_SPACE (512u << 10)

static uint32_t block_width(const struct fab_search *search, unsigned threads, uint32_t most)
{
    uint32_t blocks = (search->n_edges + most - 1) / most;
    if (threads > 1)
        blocks = (blocks + threads - 1) / threads * threads;
    uint32_t width = (search->n_edges + blocks - 1) / blocks;
    return (width + 63) / 64 * 64;
}

/* Distances between the first search->n_edges edges into a dense n_edges x n_edges array. */
static int search_all(struct fab_search *search, unsigned asked)
{
    const struct fab_plane *plane = search->plane;
    search->step = uniform_cost(plane);
    uint32_t most = FAB_SEARCH_BITS;
    if (search->step == 0) {
        size_t fits = MIXED_SPACE / (plane->n_switches * sizeof(uint16_t)) / 64 * 64;
        most = fits < 64 ? 64 : fits < most ? (uint32_t)fits : most;
    }
    /* A thread takes longer to start than a small search takes. */
    unsigned threads = fab_cost_threads(asked, search->n_edges / (search->step != 0 ? FAB_SEARCH_BITS : 64));
    search->width = block_width(search, threads, most);
    search->n_blocks = (search->n_edges + search->width - 1) / search->width;
    size_t space = search->step != 0 ? fab_search_uniform_space(search) : fab_search_mixed_space(search);
    void **workspace = calloc(threads, sizeof(*workspace));
    int rc = workspace == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (unsigned t = 0; t < threads && rc == PMIXFAB_OK; t++)
        if ((workspace[t] = alloc_vectors(space)) == NULL)
            rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK) {
        search->workspace = workspace;
        fab_cost_run(threads, search->step != 0 ? fab_search_uniform : fab_search_mixed, search);
    }
    for (unsigned t = 0; t < threads && workspace != NULL; t++)
        free(workspace[t]);
    free(workspace);
    return rc;
}

int fab_costing_begin(struct fab_costing *c, const struct fab_plane *plane, struct fab_costs *out)
{
    size_t n = plane->n_devices, n_switches = plane->n_switches;
    *c = (struct fab_costing){.plane = plane, .out = out};
    memset(out, 0, sizeof(*out));
    c->edge_of = malloc((n_switches + 1) * sizeof(*c->edge_of));
    c->sources = malloc((n_switches + 1) * sizeof(*c->sources));
    out->edge = malloc((n + 1) * sizeof(*out->edge));
    out->host = malloc((n + 1) * sizeof(*out->host));
    out->access = malloc((n + 1) * sizeof(*out->access));
    if (c->edge_of == NULL || c->sources == NULL || out->edge == NULL || out->host == NULL ||
        out->access == NULL)
        return PMIXFAB_ERR_NOMEM;
    if (plane->unattached)
        return PMIXFAB_OK;
    uint32_t n_edges;
    c->n_searched = number_edges(plane, out, c->edge_of, c->sources, &n_edges);
    out->view =
        (struct fab_cost_view){plane->n_devices, n_edges, out->edge, out->access, out->host, NULL, NULL};
    /* A plane is connected: it has switches, or else one or two devices, never devices of both sorts. */
    return c->n_searched != 0 && n_edges != c->n_searched ? PMIXFAB_ERR_CONFLICT : PMIXFAB_OK;
}

int fab_costing_room(struct fab_costing *c)
{
    size_t n = c->out->view.n_edges;
    c->out->view.dist = c->out->dist = alloc_vectors(n * n * sizeof(*c->out->dist));
    return c->out->dist == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

int fab_costing_search(struct fab_costing *c, unsigned threads)
{
    if (c->plane->unattached)
        return share_edge(c->plane, c->out);
    int rc = fab_costing_room(c);
    if (rc != PMIXFAB_OK)
        return rc;
    c->out->n_searched = c->n_searched;
    if (c->n_searched > 0) {
        struct fab_search search = {.plane = c->plane,
                                    .sources = c->sources,
                                    .edge_of = c->edge_of,
                                    .n_edges = c->n_searched,
                                    .dist = c->out->dist};
        rc = search_all(&search, threads);
    }
    add_private_edges(c->plane, c->out, c->n_searched);
    return rc;
}

void fab_costing_end(struct fab_costing *c, int rc)
{
    free(c->edge_of);
    free(c->sources);
    if (rc != PMIXFAB_OK)
        fab_costs_destroy(c->out);
}

int fab_costs_compute(const struct fab_plane *plane, unsigned threads, struct fab_costs *out)
{
    struct fab_costing costing;
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    memset(out, 0, sizeof(*out));
    if (plane == NULL)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_costing_begin(&costing, plane, out);
    if (rc == PMIXFAB_OK)
        rc = fab_costing_search(&costing, threads);
    fab_costing_end(&costing, rc);
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
