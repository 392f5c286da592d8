/*
 * routes.c - routes by destination: from each switch one cable toward each host, as the forwarding tables of
 * InfiniBand have it (docs/design/simulate.md).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/order.h"

/* ---- cables between switches ---- */

struct route_edge {
    uint32_t from, port, cable, to;
};

struct route_graph {
    struct route_edge *edges; /* of all switches, by switch and port */
    uint32_t *begin;          /* of switch s: edges[begin[s]..begin[s + 1] - 1] */
    uint32_t *level;          /* of each switch */
    uint32_t *place;          /* of each device: its number by switch and port */
    uint32_t *distance;       /* of each switch from the destination; UINT32_MAX: no path */
    uint32_t *queue;
    uint64_t *widest; /* of each level: most cables that a switch can choose from on the way up */
    uint32_t n, n_edges, n_levels;
};

static int compare_route_edges(const void *a, const void *b)
{
    const struct route_edge *x = a, *y = b;
    return FAB_ORDER(x->from, y->from) ?: FAB_ORDER(x->port, y->port) ?: FAB_ORDER(x->cable, y->cable);
}

static void route_graph_free(struct route_graph *g)
{
    free(g->edges);
    free(g->begin);
    free(g->level);
    free(g->place);
    free(g->distance);
    free(g->queue);
    free(g->widest);
}

static void route_edges(struct route_graph *g, const struct ctl_routes *r)
{
    for (uint32_t i = 0; i < r->plane.n_links; i++) {
        const struct pmixfab_link *cable = &r->cables[i];
        if (cable->missing != 0 || cable->a.is_switch == 0 || cable->b.is_switch == 0 ||
            cable->a.index == cable->b.index || cable->a.index >= g->n || cable->b.index >= g->n)
            continue;
        g->edges[g->n_edges++] = (struct route_edge){cable->a.index, cable->a.port, i, cable->b.index};
        g->edges[g->n_edges++] = (struct route_edge){cable->b.index, cable->b.port, i, cable->a.index};
    }
    if (g->n_edges > 0)
        qsort(g->edges, g->n_edges, sizeof *g->edges, compare_route_edges);
    for (uint32_t e = 0; e < g->n_edges; e++)
        g->begin[g->edges[e].from + 1]++;
    for (uint32_t s = 0; s < g->n; s++)
        g->begin[s + 1] += g->begin[s];
}

/* Number the devices by switch and port, so that devices of one leaf follow each other. */
static bool route_places(struct route_graph *g, const struct ctl_routes *r)
{
    struct route_edge *at = calloc(r->plane.n_devices + (size_t)1, sizeof *at);
    struct pmixfab_device device;
    for (uint32_t d = 0; at != NULL && d < r->plane.n_devices; d++)
        if (pmixfab_device(r->fab, d, &device) == 0)
            at[d] = (struct route_edge){device.switch_index, device.switch_port, d, 0};
    if (at != NULL)
        qsort(at, r->plane.n_devices, sizeof *at, compare_route_edges);
    for (uint32_t i = 0; at != NULL && i < r->plane.n_devices; i++)
        g->place[at[i].cable] = i;
    free(at);
    return at != NULL;
}

static bool route_graph_make(struct route_graph *g, const struct ctl_routes *r)
{
    struct pmixfab_switch sw;
    g->n = r->plane.n_switches;
    g->edges = calloc(2 * (size_t)r->plane.n_links + 1, sizeof *g->edges);
    g->begin = calloc(g->n + (size_t)1, sizeof *g->begin);
    g->level = calloc(g->n + (size_t)1, sizeof *g->level);
    g->place = calloc(r->plane.n_devices + (size_t)1, sizeof *g->place);
    g->distance = calloc(g->n + (size_t)1, sizeof *g->distance);
    g->queue = calloc(g->n + (size_t)1, sizeof *g->queue);
    if (g->edges == NULL || g->begin == NULL || g->level == NULL || g->place == NULL || g->distance == NULL ||
        g->queue == NULL)
        return false;
    for (uint32_t s = 0; s < g->n; s++)
        if (pmixfab_switch(r->fab, s, &sw) == 0) {
            g->level[s] = sw.level;
            g->n_levels = sw.level >= g->n_levels ? sw.level + 1 : g->n_levels;
        }
    g->widest = calloc(g->n_levels + (size_t)1, sizeof *g->widest);
    route_edges(g, r);
    return g->widest != NULL && route_places(g, r);
}

/* ---- the tree of routes to one switch ---- */

static void route_distances(struct route_graph *g, uint32_t to)
{
    uint32_t n = 1;
    for (uint32_t s = 0; s < g->n; s++)
        g->distance[s] = UINT32_MAX;
    g->distance[to] = 0;
    g->queue[0] = to;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t s = g->queue[i];
        for (uint32_t e = g->begin[s]; e < g->begin[s + 1]; e++)
            if (g->distance[g->edges[e].to] == UINT32_MAX) {
                g->distance[g->edges[e].to] = g->distance[s] + 1;
                g->queue[n++] = g->edges[e].to;
            }
    }
}

static bool route_nearer(const struct route_graph *g, const struct route_edge *edge)
{
    return g->distance[edge->from] != UINT32_MAX && g->distance[edge->to] + 1 == g->distance[edge->from];
}

/* Count a switch's cables on shortest paths. *up: the first of them goes to a higher level. */
static uint32_t route_width(const struct route_graph *g, uint32_t s, bool *up)
{
    uint32_t n = 0;
    *up = false;
    for (uint32_t e = g->begin[s]; e < g->begin[s + 1]; e++)
        if (route_nearer(g, &g->edges[e])) {
            *up = n > 0 ? *up : g->level[g->edges[e].to] > g->level[s];
            n++;
        }
    return n;
}

/* Return the cable of this number among a switch's cables on shortest paths. */
static uint32_t route_cable(const struct route_graph *g, uint32_t s, uint64_t number)
{
    for (uint32_t e = g->begin[s]; e < g->begin[s + 1]; e++)
        if (route_nearer(g, &g->edges[e]) && number-- == 0)
            return g->edges[e].cable;
    return UINT32_MAX;
}

/*
 * Choose the cables toward the hosts `at` of switch `to`. Each level of a tree takes the next digit of the
 * number of the host: if all levels took the same digit, some uplinks would have no route.
 */
static void routes_toward(struct route_graph *g, struct ctl_routes *r, uint32_t to, const uint32_t *at,
                          uint32_t n_at)
{
    uint64_t below = 1;
    bool up;
    route_distances(g, to);
    memset(g->widest, 0, (g->n_levels + (size_t)1) * sizeof *g->widest);
    for (uint32_t s = 0; s < g->n; s++) {
        const uint32_t width = route_width(g, s, &up);
        if (up && width > g->widest[g->level[s]])
            g->widest[g->level[s]] = width;
    }
    for (uint32_t level = 0; level <= g->n_levels; level++) {
        const uint64_t width = g->widest[level] > 0 ? g->widest[level] : 1;
        g->widest[level] = below; /* the divisor that selects the digit */
        below = below > UINT32_MAX ? below : below * width;
    }
    for (uint32_t s = 0; s < g->n; s++) {
        const uint32_t width = route_width(g, s, &up);
        const uint64_t divisor = g->widest[up ? g->level[s] : g->n_levels];
        for (uint32_t i = 0; width > 0 && i < n_at; i++)
            r->next[(size_t)s * r->n + at[i]] =
                route_cable(g, s, g->place[r->hosts[at[i]].device] / divisor % width);
    }
}

/* ---- the hosts ---- */

/* Find the host's first device that is up. Return the number of such devices. */
static uint32_t route_device(const struct ctl_routes *r, const uint32_t *cable_of, uint32_t host,
                             struct ctl_routed_host *out)
{
    uint32_t first, n, found = 0;
    struct pmixfab_device device;
    *out = (struct ctl_routed_host){.name = "?", .host = host};
    if (pmixfab_host(r->fab, host, &out->name, &first, &n) != 0)
        return 0;
    for (uint32_t d = first; d < first + n; d++) {
        if (pmixfab_device(r->fab, d, &device) != 0 || device.state == PMIXFAB_STATE_DOWN ||
            device.switch_index >= r->plane.n_switches || cable_of[d] == UINT32_MAX)
            continue;
        if (found++ == 0) {
            out->device = d;
            out->sw = device.switch_index;
            out->cable = cable_of[d];
        }
    }
    return found;
}

static enum ctl_exit routes_add(struct ctl_export *x, struct ctl_routes *r, const uint32_t *cable_of,
                                uint32_t host, bool listed, uint32_t *several)
{
    struct ctl_routed_host *out = &r->hosts[r->n];
    const uint32_t found = route_device(r, cable_of, host, out);
    if (found == 0 && listed)
        return ctl_error("host %s: plane %s: no device is up and connected to a switch", out->name,
                         r->plane.name);
    if (found == 0)
        ctl_export_lost(x, "host %s: no device is up and connected to a switch, left out", out->name);
    else if (!ctl_plain_name(out->name, SIZE_MAX))
        ctl_export_lost(x, "host %s: its name is no plain name, left out", out->name);
    else
        r->n++;
    *several += found > 1;
    return CTL_DONE;
}

/* Return the cable of each device to a switch; UINT32_MAX: it has none. Free with free(). */
static uint32_t *device_cables(const struct ctl_routes *r)
{
    uint32_t *cable_of = calloc(r->plane.n_devices + (size_t)1, sizeof *cable_of);
    for (uint32_t d = 0; cable_of != NULL && d < r->plane.n_devices; d++)
        cable_of[d] = UINT32_MAX;
    for (uint32_t i = 0; cable_of != NULL && i < r->plane.n_links; i++) {
        const struct pmixfab_link *cable = &r->cables[i];
        for (unsigned side = 0; cable->missing == 0 && side < 2; side++) {
            const struct pmixfab_end *end = side == 0 ? &cable->a : &cable->b;
            const struct pmixfab_end *other = side == 0 ? &cable->b : &cable->a;
            if (end->kind == PMIXFAB_END_DEVICE && end->index < r->plane.n_devices && other->is_switch != 0)
                cable_of[end->index] = i;
        }
    }
    return cable_of;
}

static enum ctl_exit routes_hosts(struct ctl_export *x, const struct fab_hostlist *list, struct ctl_routes *r)
{
    uint32_t *cable_of = device_cables(r), several = 0;
    const size_t room = list != NULL ? list->n : r->plane.n_hosts;
    enum ctl_exit status = CTL_DONE;
    r->hosts = calloc(room + 1, sizeof *r->hosts);
    r->of_host = calloc(r->plane.n_hosts + (size_t)1, sizeof *r->of_host);
    if (cable_of == NULL || r->of_host == NULL || r->hosts == NULL) {
        status = ctl_nomem();
        goto cleanup;
    }
    for (uint32_t i = 0; status == CTL_DONE && i < room; i++) {
        uint32_t host = i;
        if (list != NULL && pmixfab_find_host(r->fab, list->names[i], &host) != 0)
            status = ctl_error("no host %s: plane %s: see fabricctl devices", list->names[i], r->plane.name);
        else if (r->of_host[host]++ == 0)
            status = routes_add(x, r, cable_of, host, list != NULL, &several);
    }
    if (status == CTL_DONE && several > 0)
        ctl_export_lost(x, "%u host%s several devices that are up in plane %s: written with the first one",
                        several, several == 1 ? " has" : "s have", r->plane.name);
    if (status == CTL_DONE && r->n == 0)
        status = ctl_error("nothing to write: plane %s: no host is up", r->plane.name);
cleanup:
    free(cable_of);
    return status;
}

/* ---- all routes ---- */

uint32_t ctl_route_switch(const struct ctl_routes *r, uint32_t sw, uint32_t cable)
{
    const struct pmixfab_link *link = &r->cables[cable];
    return link->a.is_switch != 0 && link->a.index == sw ? link->b.index : link->a.index;
}

static int compare_routed_hosts(const void *a, const void *b)
{
    const struct ctl_routed_host *x = a, *y = b;
    return FAB_ORDER(x->sw, y->sw) ?: FAB_ORDER(x->device, y->device);
}

static enum ctl_exit routes_connected(const struct ctl_routes *r)
{
    for (uint32_t to = 0; to < r->n; to++)
        if (r->hosts[0].sw != r->hosts[to].sw && r->next[(size_t)r->hosts[0].sw * r->n + to] == UINT32_MAX)
            return ctl_error(
                "no path: plane %s: %s and %s are in parts of the fabric without a cable between",
                r->plane.name, r->hosts[0].name, r->hosts[to].name);
    return CTL_DONE;
}

static bool routes_fill(struct ctl_routes *r)
{
    struct route_graph g = {.n = 0};
    uint32_t *at = calloc(r->n + (size_t)1, sizeof *at);
    const size_t cells = (size_t)r->n * r->plane.n_switches;
    const bool good = route_graph_make(&g, r) && at != NULL;
    r->next = good ? calloc(cells + 1, sizeof *r->next) : NULL;
    for (size_t i = 0; r->next != NULL && i < cells; i++)
        r->next[i] = UINT32_MAX;
    for (uint32_t first = 0, end; r->next != NULL && first < r->n; first = end) {
        for (end = first; end < r->n && r->hosts[end].sw == r->hosts[first].sw; end++)
            at[end - first] = end;
        routes_toward(&g, r, r->hosts[first].sw, at, end - first);
    }
    route_graph_free(&g);
    free(at);
    return r->next != NULL;
}

enum ctl_exit ctl_routes_make(struct ctl_export *x, const struct fab_hostlist *list, struct ctl_routes *r)
{
    enum ctl_exit status;
    uint64_t n_routes;
    *r = (struct ctl_routes){.fab = x->view->planes[0]};
    if (pmixfab_plane(r->fab, &r->plane) != 0)
        return ctl_export_contradicts();
    r->cables = calloc(r->plane.n_links + (size_t)1, sizeof *r->cables);
    if (r->cables == NULL)
        return ctl_nomem();
    for (uint32_t i = 0; i < r->plane.n_links; i++)
        if (pmixfab_link(r->fab, i, &r->cables[i]) != 0)
            return ctl_export_contradicts();
    status = routes_hosts(x, list, r);
    if (status != CTL_DONE)
        return status;
    qsort(r->hosts, r->n, sizeof *r->hosts, compare_routed_hosts);
    for (uint32_t h = 0; h < r->plane.n_hosts; h++)
        r->of_host[h] = UINT32_MAX;
    for (uint32_t i = 0; i < r->n; i++) {
        r->of_host[r->hosts[i].host] = i;
        r->n_leaves += i == 0 || r->hosts[i].sw != r->hosts[i - 1].sw;
    }
    n_routes = (uint64_t)r->n_leaves * r->n;
    if (n_routes > CTL_ROUTES_MAX)
        return ctl_error("too large: plane %s: %u hosts at %u switches have %" PRIu64
                         " routes, and at most %d are written: give a list of hosts",
                         r->plane.name, r->n, r->n_leaves, n_routes, CTL_ROUTES_MAX);
    return routes_fill(r) ? routes_connected(r) : ctl_nomem();
}

void ctl_routes_free(struct ctl_routes *r)
{
    free(r->cables);
    free(r->hosts);
    free(r->next);
    free(r->of_host);
    *r = (struct ctl_routes){.n = 0};
}
