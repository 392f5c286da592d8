/* graph.c - find the connected parts of an inventory and make planes of them. */
#include "topo/plane/graph.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/disjoint.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/radix.h"

struct part_size {
    uint32_t devices, switches, cables;
    uint32_t ends; /* of cables between switches: the largest possible number of entries of adj */
};

/* ---- planes of parts ------------------------------------------------------------------------------- */

static int plane_allocate(struct fab_plane *plane, const struct part_size *size)
{
    plane->devices = calloc(size->devices + 1u, sizeof(*plane->devices));
    plane->hosts = calloc(size->devices + 1u, sizeof(*plane->hosts));
    plane->switches = calloc(size->switches + 1u, sizeof(*plane->switches));
    plane->adj = calloc(size->ends + 1u, sizeof(*plane->adj));
    plane->cables = calloc(size->cables + 1u, sizeof(*plane->cables));
    if (plane->devices == NULL || plane->hosts == NULL || plane->switches == NULL || plane->adj == NULL ||
        plane->cables == NULL)
        return PMIXFAB_ERR_NOMEM;
    return PMIXFAB_OK;
}

static void plane_release(struct fab_plane *plane)
{
    free(plane->devices);
    free(plane->hosts);
    free(plane->switches);
    free(plane->adj);
    free(plane->cables);
    memset(plane, 0, sizeof(*plane));
}

/* Return megabits per second; if the two ends differ, the slower one. */
static uint32_t cable_mbps(const struct fab_inventory *inv, uint32_t a, uint32_t b)
{
    uint32_t one = fab_rate_mbps(inv->ports[a].width, inv->ports[a].speed);
    uint32_t other = fab_rate_mbps(inv->ports[b].width, inv->ports[b].speed);
    if (one == 0 || other == 0)
        return one + other;
    return one < other ? one : other;
}

static uint16_t cable_cost(const struct fab_plane *plane, uint32_t mbps)
{
    if (plane->model == FAB_COST_HOPS)
        return 1;
    if (mbps == 0 || mbps >= plane->fastest_mbps)
        return 10;
    uint64_t cost = (10ull * plane->fastest_mbps + mbps - 1) / mbps;
    return (uint16_t)(cost > 65534 ? 65534 : cost);
}

/*
 * Return whether it leads out of the fabric, or to an aggregation node. Gateways to Ethernet answer as HCAs.
 */
static bool graph_is_outside(const struct fab_inventory *inv, uint32_t port)
{
    static const char *const words[] = {"gateway", "skyway", "bridgex", "gw switch"};
    const struct fab_node *node = &inv->nodes[inv->ports[port].node];
    const char *desc = fab_str(inv, node->desc);
    if (node->kind != FAB_HCA)
        return node->kind != FAB_SWITCH;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasestr(desc, words[i]) != NULL)
            return true;
    return strncasecmp(desc, "gw", 2) == 0 && strchr("0123456789-_. ", desc[2]) != NULL;
}

/*
 * Find the fastest rate of the cables between switches and hosts; if none of these is known, of all cables.
 */
static void find_fastest(struct fab_plane *plane)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < plane->n_cables; i++) {
        const struct fab_cable *cable = &plane->cables[i];
        any = cable->mbps > any ? cable->mbps : any;
        if (cable->mbps > plane->fastest_mbps && !graph_is_outside(plane->inv, cable->a) &&
            !graph_is_outside(plane->inv, cable->b))
            plane->fastest_mbps = cable->mbps;
    }
    if (plane->fastest_mbps == 0)
        plane->fastest_mbps = any;
}

/* Collect devices, switches and cables in the inventory's order; sw_of: node -> switch of its plane. */
static void graph_collect(struct fab_planes *planes, const uint32_t *plane_of, uint32_t *sw_of)
{
    const struct fab_inventory *inv = planes->planes[0].inv;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        if (inv->nodes[i].kind != FAB_SWITCH || plane_of[i] == FAB_NONE)
            continue;
        struct fab_plane *plane = &planes->planes[plane_of[i]];
        sw_of[i] = plane->n_switches;
        plane->n_missing += inv->nodes[i].missing;
        plane->switches[plane->n_switches].missing = inv->nodes[i].missing;
        plane->switches[plane->n_switches++].node = i;
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        bool is_switch = inv->nodes[port->node].kind == FAB_SWITCH;
        uint32_t number = plane_of[is_switch ? port->node : inv->n_nodes + p];
        if (number == FAB_NONE)
            continue;
        struct fab_plane *plane = &planes->planes[number];
        if (inv->nodes[port->node].kind == FAB_HCA)
            plane->devices[plane->n_devices++] = (struct fab_device){.port = p, .sw = FAB_NONE};
        if (port->peer == FAB_NONE || port->peer < p)
            continue;
        plane->cables[plane->n_cables++] =
            (struct fab_cable){.a = p, .b = port->peer, .mbps = cable_mbps(inv, p, port->peer)};
    }
}

static int cmp_edge(const void *va, const void *vb)
{
    const struct fab_edge *a = va, *b = vb;
    return FAB_ORDER(a->to, b->to) ?: FAB_ORDER(a->cost, b->cost);
}

/* Merge parallel entries: after sorting the first is the cheapest. Return the number left. */
static uint32_t merge_parallel(struct fab_edge *edges, uint32_t n)
{
    uint32_t kept = 0;
    qsort(edges, n, sizeof(*edges), cmp_edge);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && edges[kept - 1].to == edges[i].to)
            edges[kept - 1].cables += edges[kept - 1].cables < UINT16_MAX;
        else
            edges[kept++] = edges[i];
    }
    return kept;
}

/* Compute the costs of the cables, and from them the switches' neighbours. */
static void connect_switches(struct fab_plane *plane, const uint32_t *sw_of)
{
    const struct fab_inventory *inv = plane->inv;
    for (uint32_t i = 0; i < plane->n_cables; i++) {
        struct fab_cable *cable = &plane->cables[i];
        cable->cost = cable_cost(plane, cable->mbps);
        uint32_t a = sw_of[inv->ports[cable->a].node], b = sw_of[inv->ports[cable->b].node];
        if (a != FAB_NONE && b != FAB_NONE) {
            plane->switches[a].n_adj++;
            plane->switches[b].n_adj++;
        }
    }
    uint32_t at = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        plane->switches[s].adj_first = at;
        at += plane->switches[s].n_adj;
        plane->switches[s].n_adj = 0;
    }
    for (uint32_t i = 0; i < plane->n_cables; i++) {
        const struct fab_cable *cable = &plane->cables[i];
        uint32_t a = sw_of[inv->ports[cable->a].node], b = sw_of[inv->ports[cable->b].node];
        if (a == FAB_NONE || b == FAB_NONE)
            continue;
        struct fab_vertex *va = &plane->switches[a], *vb = &plane->switches[b];
        plane->adj[va->adj_first + va->n_adj++] = (struct fab_edge){b, cable->cost, 1};
        plane->adj[vb->adj_first + vb->n_adj++] = (struct fab_edge){a, cable->cost, 1};
    }
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        struct fab_vertex *v = &plane->switches[s];
        uint32_t kept = merge_parallel(plane->adj + v->adj_first, v->n_adj);
        memmove(plane->adj + plane->n_adj, plane->adj + v->adj_first, kept * sizeof(*plane->adj));
        v->adj_first = plane->n_adj;
        v->n_adj = kept;
        plane->n_adj += kept;
    }
}

/* The sort key of a device, looked up once. */
struct sort_key {
    const char *host, *name;
    uint64_t guid;
    uint32_t port;
    uint8_t num;
};

/* A host and its devices: those with equal hashes. */
struct host_run {
    const char *host;
    uint32_t first, n;
};

static int cmp_run(const void *va, const void *vb)
{
    const struct host_run *a = va, *b = vb;
    return fab_natural_cmp(a->host, b->host);
}

static int cmp_key(const void *va, const void *vb)
{
    const struct sort_key *a = va, *b = vb;
    return (a->host == b->host ? 0 : fab_natural_cmp(a->host, b->host))
           ?: (a->name == b->name ? 0 : fab_natural_cmp(a->name, b->name)) ?: FAB_ORDER(a->num, b->num)
           ?: FAB_ORDER(a->guid, b->guid) ?: FAB_ORDER(a->port, b->port);
}

/* Sort the devices of one host: few, and mostly in order. */
static void sort_few(struct sort_key *keys, uint32_t n)
{
    if (n > 32) {
        qsort(keys, n, sizeof(*keys), cmp_key);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        struct sort_key key = keys[i];
        uint32_t at = i;
        for (; at > 0 && cmp_key(&key, &keys[at - 1]) < 0; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Make runs of devices of one host, by a hash of it; return 0 if two hosts have one hash. */
static uint32_t host_runs(struct sort_key *keys, uint32_t n, struct fab_key *hashes, struct host_run *runs)
{
    uint32_t n_runs = 0;
    for (uint32_t i = 0; i < n; i++)
        hashes[i] = (struct fab_key){XXH3_64bits(keys[i].host, strlen(keys[i].host)), i};
    fab_radix_sort(hashes, hashes + n, n);
    for (uint32_t i = 0; i < n; i++) {
        struct sort_key *key = &keys[hashes[i].index];
        if (i == 0 || hashes[i].value != hashes[i - 1].value)
            runs[n_runs++] = (struct host_run){key->host, i, 0};
        else if (strcmp(key->host, runs[n_runs - 1].host) != 0)
            return 0;
        key->host = runs[n_runs - 1].host; /* equal hosts have one text */
        runs[n_runs - 1].n++;
    }
    return n_runs;
}

/* Sort by host. Hosts have several devices each: their names are compared once, not for each device. */
static int sort_by_host(struct sort_key **keys, uint32_t n)
{
    struct fab_key *hashes = malloc((2 * (size_t)n + 1) * sizeof(*hashes));
    struct host_run *runs = malloc((n + (size_t)1) * sizeof(*runs));
    struct sort_key *sorted = calloc(n + (size_t)1, sizeof(*sorted));
    const bool failed = hashes == NULL || runs == NULL || sorted == NULL;
    const uint32_t n_runs = failed ? 0 : host_runs(*keys, n, hashes, runs);
    if (n_runs > 0) {
        qsort(runs, n_runs, sizeof(*runs), cmp_run);
        for (uint32_t r = 0, at = 0; r < n_runs; at += runs[r++].n) {
            for (uint32_t i = 0; i < runs[r].n; i++)
                sorted[at + i] = (*keys)[hashes[runs[r].first + i].index];
            sort_few(sorted + at, runs[r].n);
        }
        free(*keys);
        *keys = sorted;
        sorted = NULL;
    } else if (!failed) { /* this is slower */
        qsort(*keys, n, sizeof(**keys), cmp_key);
    }
    free(hashes);
    free(runs);
    free(sorted);
    return failed ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

static int graph_sort_devices(struct fab_plane *plane)
{
    const struct fab_inventory *inv = plane->inv;
    const uint32_t n = plane->n_devices;
    int rc = PMIXFAB_OK;
    struct sort_key *keys = calloc(n + 1u, sizeof(*keys));
    if (keys == NULL)
        return PMIXFAB_ERR_NOMEM;
    bool sorted = true; /* often they are: hosts were cabled in the order of their names */
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_port *port = &inv->ports[plane->devices[i].port];
        const struct fab_node *node = &inv->nodes[port->node];
        keys[i] = (struct sort_key){.host = fab_str(inv, node->host),
                                    .name = fab_str(inv, node->name),
                                    .guid = port->guid,
                                    .port = plane->devices[i].port,
                                    .num = port->num};
        if (i > 0 && sorted)
            sorted = cmp_key(&keys[i - 1], &keys[i]) < 0;
    }
    if (!sorted)
        rc = sort_by_host(&keys, n);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        if (i == 0 || strcmp(keys[i].host, keys[i - 1].host) != 0)
            plane->hosts[plane->n_hosts++] = (struct fab_host){.name = keys[i].host, .first = i};
        plane->hosts[plane->n_hosts - 1].n++;
        plane->devices[i].port = keys[i].port;
        plane->devices[i].host = plane->n_hosts - 1;
    }
    free(keys);
    return rc;
}

/*
 * Find the switch at each device's own cable, and the cable's cost. cost_of: by port, of the plane's cables.
 */
static void attach_devices(struct fab_plane *plane, const uint32_t *sw_of, uint16_t *cost_of)
{
    const struct fab_inventory *inv = plane->inv;
    for (uint32_t i = 0; i < plane->n_cables; i++)
        cost_of[plane->cables[i].a] = cost_of[plane->cables[i].b] = plane->cables[i].cost;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct fab_device *device = &plane->devices[i];
        const struct fab_port *port = &inv->ports[device->port];
        uint32_t peer = fab_port_far(inv, port);
        if (peer == FAB_NONE)
            continue;
        device->access = cost_of[inv->ports[peer].peer];
        device->sw = sw_of[inv->ports[peer].node];
        if (device->sw != FAB_NONE)
            plane->switches[device->sw].n_devices++;
    }
}

/*
 * Fill allocated planes. plane_of: per vertex the plane or FAB_NONE; a switch's vertex is its node, any other
 * port's is n_nodes + port.
 */
static int planes_fill(struct fab_planes *planes, const uint32_t *plane_of)
{
    if (planes->n == 0)
        return PMIXFAB_OK;
    const struct fab_inventory *inv = planes->planes[0].inv;
    int rc = PMIXFAB_OK;
    uint32_t *sw_of = malloc((inv->n_nodes + 1u) * sizeof(*sw_of));
    uint16_t *cost_of = malloc((inv->n_ports + 1u) * sizeof(*cost_of));
    if (sw_of == NULL || cost_of == NULL) {
        rc = PMIXFAB_ERR_NOMEM;
        goto cleanup;
    }
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        sw_of[i] = FAB_NONE;
    graph_collect(planes, plane_of, sw_of);
    for (uint32_t i = 0; i < planes->n && rc == PMIXFAB_OK; i++) {
        find_fastest(&planes->planes[i]);
        connect_switches(&planes->planes[i], sw_of);
        rc = graph_sort_devices(&planes->planes[i]);
        if (rc == PMIXFAB_OK)
            attach_devices(&planes->planes[i], sw_of, cost_of);
    }
cleanup:
    free(sw_of);
    free(cost_of);
    return rc;
}

/* ---- connected parts ------------------------------------------------------------------------------- */

/*
 * Return the vertex of a port. Every switch is one vertex for all of its ports, and the vertex has the number
 * of the node. Every other port is a vertex of its own, with the number n_nodes + its port.
 */
static uint32_t vertex_of(const struct fab_inventory *inv, uint32_t port)
{
    uint32_t node = inv->ports[port].node;
    return inv->nodes[node].kind == FAB_SWITCH ? node : inv->n_nodes + port;
}

/* A component of the graph that becomes a plane. */
struct part {
    struct part_size size;
    uint64_t guid;   /* lowest of its nodes */
    uint32_t number; /* in order of discovery, then its position in the order of planes */
    uint32_t subnet;
    bool unattached;
};

static int cmp_part(const void *va, const void *vb)
{
    const struct part *a = va, *b = vb;
    return FAB_ORDER(b->size.devices, a->size.devices) ?: FAB_ORDER(b->size.switches, a->size.switches)
           ?: FAB_ORDER(a->guid, b->guid) ?: FAB_ORDER(a->number, b->number);
}

/* Working state: part_of maps vertices to parts, FAB_NONE for those in none. */
struct cut {
    const struct fab_inventory *inv;
    uint32_t *part_of;
    struct part *parts;
    uint32_t n_parts, n_vertices;
    bool cabled; /* the inventory has a cable */
};

static uint64_t prefix_of(const struct fab_inventory *inv, uint32_t subnet)
{
    return subnet < inv->n_subnets ? inv->subnets[subnet].prefix : FAB_DEFAULT_PREFIX;
}

static bool graph_is_unattached(const struct fab_inventory *inv, const struct fab_port *port)
{
    return fab_port_far(inv, port) == FAB_NONE && prefix_of(inv, port->subnet) == FAB_UNATTACHED &&
           inv->nodes[port->node].kind == FAB_HCA;
}

/*
 * If there is no cable, make one plane of the first HCA port. If there is no HCA port, make a plane of each
 * switch.
 */
static void cut_uncabled(struct cut *cut, uint32_t *parent)
{
    const struct fab_inventory *inv = cut->inv;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (inv->nodes[inv->ports[p].node].kind == FAB_HCA && !graph_is_unattached(inv, &inv->ports[p])) {
            parent[inv->n_nodes + p] = inv->n_nodes + p;
            return;
        }
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_SWITCH)
            parent[i] = i;
}

/* Unite the ends of all cables. parent is FAB_NONE for vertices in no plane. */
static void cut_cabled(struct cut *cut, uint32_t *parent)
{
    const struct fab_inventory *inv = cut->inv;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t peer = inv->ports[p].peer;
        uint32_t v = vertex_of(inv, p), sibling = inv->ports[p].sibling;
        if (peer == FAB_NONE && fab_port_far(inv, &inv->ports[p]) == FAB_NONE)
            continue;
        if (parent[v] == FAB_NONE)
            parent[v] = v;
        if (peer == FAB_NONE) { /* it is placed with its sibling */
            uint32_t at = vertex_of(inv, sibling - 1);
            if (parent[at] == FAB_NONE)
                parent[at] = at;
            fab_set_join(parent, v, at);
            continue;
        }
        if (peer < p)
            fab_set_join(parent, v, vertex_of(inv, peer));
        cut->cabled = true;
    }
}

static void count_vertex(struct part *part, const struct cut *cut, uint32_t v)
{
    const struct fab_inventory *inv = cut->inv;
    bool is_switch = v < inv->n_nodes;
    const struct fab_node *node = &inv->nodes[is_switch ? v : inv->ports[v - inv->n_nodes].node];
    part->size.switches += is_switch;
    part->size.devices += node->kind == FAB_HCA;
    if (node->guid < part->guid)
        part->guid = node->guid;
}

/* Replace each vertex's root in part_of by the number of its part, in order of appearance. */
static int number_parts(struct cut *cut)
{
    uint32_t *parent = cut->part_of, n = 0;
    for (uint32_t v = 0; v < cut->n_vertices; v++)
        n += parent[v] == v;
    cut->parts = calloc(n + 1u, sizeof(*cut->parts));
    uint32_t *number = calloc(cut->n_vertices + 1u, sizeof(*number));
    if (cut->parts == NULL || number == NULL) {
        free(number);
        return PMIXFAB_ERR_NOMEM;
    }
    for (uint32_t v = 0; v < cut->n_vertices; v++) {
        if (parent[v] == FAB_NONE) {
            number[v] = FAB_NONE;
            continue;
        }
        uint32_t root = fab_set_root(parent, v); /* never above v */
        if (root < v) {
            number[v] = number[root];
        } else {
            cut->parts[cut->n_parts] =
                (struct part){.guid = UINT64_MAX, .number = cut->n_parts, .subnet = FAB_NONE};
            number[v] = cut->n_parts++;
        }
        count_vertex(&cut->parts[number[v]], cut, v);
    }
    memcpy(parent, number, cut->n_vertices * sizeof(*number));
    free(number);
    return PMIXFAB_OK;
}

/* Count the cables of each part and find its subnet, that of its lowest port. */
static void graph_count_ports(struct cut *cut)
{
    const struct fab_inventory *inv = cut->inv;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t number = cut->part_of[vertex_of(inv, p)], peer = inv->ports[p].peer;
        if (number == FAB_NONE || (peer == FAB_NONE && cut->cabled))
            continue;
        struct part *part = &cut->parts[number];
        if (part->subnet == FAB_NONE)
            part->subnet = inv->ports[p].subnet;
        if (peer == FAB_NONE || peer < p)
            continue;
        part->size.cables++;
        part->size.ends += vertex_of(inv, p) < inv->n_nodes && vertex_of(inv, peer) < inv->n_nodes ? 2 : 0;
    }
}

/* Sort the parts, drop those without device and switch (two routers cabled together), renumber. */
static int order_parts(struct cut *cut)
{
    uint32_t *place = malloc((cut->n_parts + 1u) * sizeof(*place)), kept = 0;
    if (place == NULL)
        return PMIXFAB_ERR_NOMEM;
    qsort(cut->parts, cut->n_parts, sizeof(*cut->parts), cmp_part);
    for (uint32_t i = 0; i < cut->n_parts; i++) {
        const struct part *part = &cut->parts[i];
        bool empty = part->size.devices == 0 && part->size.switches == 0;
        place[part->number] = empty ? FAB_NONE : kept++; /* the empty ones are last */
    }
    for (uint32_t v = 0; v < cut->n_vertices; v++)
        if (cut->part_of[v] != FAB_NONE)
            cut->part_of[v] = place[cut->part_of[v]];
    cut->n_parts = kept;
    free(place);
    return PMIXFAB_OK;
}

/* Add the part of ports without a cable. number_parts() has left room for it. */
static void add_unattached(struct cut *cut)
{
    const struct fab_inventory *inv = cut->inv;
    struct part *part = &cut->parts[cut->n_parts];

    *part = (struct part){.subnet = FAB_NONE, .unattached = true};
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        if (!graph_is_unattached(inv, &inv->ports[p]))
            continue;
        cut->part_of[inv->n_nodes + p] = cut->n_parts;
        part->size.devices++;
        if (part->subnet == FAB_NONE)
            part->subnet = inv->ports[p].subnet;
    }
    cut->n_parts += part->size.devices > 0;
}

static int cut_into_parts(struct cut *cut)
{
    const struct fab_inventory *inv = cut->inv;
    cut->n_vertices = inv->n_nodes + inv->n_ports;
    cut->part_of = calloc(cut->n_vertices + 1u, sizeof(*cut->part_of));
    if (cut->part_of == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t v = 0; v < cut->n_vertices; v++)
        cut->part_of[v] = FAB_NONE;
    cut_cabled(cut, cut->part_of);
    if (!cut->cabled)
        cut_uncabled(cut, cut->part_of);
    int rc = number_parts(cut);
    if (rc != PMIXFAB_OK)
        return rc;
    graph_count_ports(cut);
    rc = order_parts(cut);
    if (rc == PMIXFAB_OK)
        add_unattached(cut);
    return rc;
}

int fab_planes_build(const struct fab_inventory *inv, enum fab_cost_model model, struct fab_planes *out,
                     struct fab_err *err)
{
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = (struct fab_planes){NULL, 0};
    if (inv == NULL || !inv->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "planes: the inventory is not finished");
    if (model != FAB_COST_RATE && model != FAB_COST_HOPS)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "planes: unknown cost model %d", (int)model);
    struct cut cut = {.inv = inv};
    int rc = cut_into_parts(&cut);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    out->planes = calloc(cut.n_parts + 1u, sizeof(*out->planes));
    if (out->planes == NULL) {
        rc = PMIXFAB_ERR_NOMEM;
        goto cleanup;
    }
    out->n = cut.n_parts;
    for (uint32_t i = 0; i < out->n && rc == PMIXFAB_OK; i++) {
        struct fab_plane *plane = &out->planes[i];
        plane->inv = inv;
        plane->model = model;
        plane->subnet = cut.parts[i].subnet == FAB_NONE ? 0 : cut.parts[i].subnet;
        plane->prefix = prefix_of(inv, plane->subnet);
        plane->unattached = cut.parts[i].unattached;
        rc = plane_allocate(plane, &cut.parts[i].size);
    }
    if (rc == PMIXFAB_OK)
        rc = planes_fill(out, cut.part_of);
cleanup:
    free(cut.part_of);
    free(cut.parts);
    if (rc != PMIXFAB_OK) {
        fab_planes_destroy(out);
        return fab_fail(err, rc, "planes: out of memory for %u nodes and %u ports", inv->n_nodes,
                        inv->n_ports);
    }
    return PMIXFAB_OK;
}

void fab_planes_destroy(struct fab_planes *planes)
{
    if (planes == NULL)
        return;
    for (uint32_t i = 0; i < planes->n; i++)
        plane_release(&planes->planes[i]);
    free(planes->planes);
    *planes = (struct fab_planes){NULL, 0};
}
