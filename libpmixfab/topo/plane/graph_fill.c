#include "topo/plane/graph_parts.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/natural.h"
#include "topo/base/radix.h"

int fab_plane_allocate(struct fab_plane *plane, const struct fab_part_size *size)
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

void fab_plane_release(struct fab_plane *plane)
{
    free(plane->devices);
    free(plane->hosts);
    free(plane->switches);
    free(plane->adj);
    free(plane->cables);
    memset(plane, 0, sizeof(*plane));
}

/* Megabits per second; should the two ends disagree, the cable is as fast as the slower says. */
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

/* Does it lead out of the fabric, or compute in a switch? Gateways to Ethernet answer as HCAs. */
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

/* Of the cables between switches and hosts; where no rate of these is known, of all. */
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

/* Devices, switches and cables in the inventory's order; sw_of: node -> switch of its plane. */
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
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->cost < b->cost ? -1 : a->cost > b->cost;
}

/* Make one entry of parallel ones: after sorting the first is the cheapest. Returns how many are left. */
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

/* Costs of the cables, and from them the switches' neighbours. */
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

/* What a device is sorted by, looked up once. */
struct sort_key {
    const char *host, *name;
    uint64_t guid;
    uint32_t port;
    uint32_t rank; /* of the host, where equal hosts are one text */
    uint8_t num;
};

/* A host, once. */
struct ranked {
    const char *host;
    uint32_t index;
};

static int cmp_ranked(const void *va, const void *vb)
{
    const struct ranked *a = va, *b = vb;
    return fab_natural_cmp(a->host, b->host);
}

/* Devices by a hash of their host: those of one are neighbours then. False: two hosts have one hash. */
static bool unite_hosts(struct sort_key *keys, uint32_t n, struct fab_key *hashes, struct ranked *hosts,
                        uint32_t *n_hosts)
{
    *n_hosts = 0;
    for (uint32_t i = 0; i < n; i++)
        hashes[i] = (struct fab_key){XXH3_64bits(keys[i].host, strlen(keys[i].host)), i};
    fab_radix_sort(hashes, hashes + n, n);
    for (uint32_t i = 0; i < n; i++) {
        struct sort_key *key = &keys[hashes[i].index];
        bool first = i == 0 || hashes[i].value != hashes[i - 1].value;
        if (first) {
            hosts[*n_hosts] = (struct ranked){key->host, *n_hosts};
            ++*n_hosts;
        } else if (strcmp(key->host, hosts[*n_hosts - 1].host) != 0) {
            return false;
        }
    }
    return true;
}

/* Hosts have several devices each: their names are compared once, not device by device. False: nothing is
 * ranked. */
static bool rank_hosts(struct sort_key *keys, uint32_t n, uint32_t *n_hosts)
{
    bool ranked = false;
    struct fab_key *hashes = malloc((2 * (size_t)n + 1) * sizeof(*hashes));
    struct ranked *hosts = malloc((n + (size_t)1) * sizeof(*hosts));
    uint32_t *rank = malloc((n + (size_t)1) * sizeof(*rank));
    if (hashes != NULL && hosts != NULL && rank != NULL && unite_hosts(keys, n, hashes, hosts, n_hosts)) {
        uint32_t host = FAB_NONE;
        qsort(hosts, *n_hosts, sizeof(*hosts), cmp_ranked);
        for (uint32_t r = 0; r < *n_hosts; r++)
            rank[hosts[r].index] = r;
        for (uint32_t i = 0; i < n; i++) {
            host += i == 0 || hashes[i].value != hashes[i - 1].value;
            keys[hashes[i].index].rank = rank[host];
            keys[hashes[i].index].host = hosts[rank[host]].host;
        }
        ranked = true;
    }
    free(hashes);
    free(hosts);
    free(rank);
    return ranked;
}

static int cmp_key(const void *va, const void *vb)
{
    const struct sort_key *a = va, *b = vb;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    int order = a->host == b->host ? 0 : fab_natural_cmp(a->host, b->host);
    if (order == 0 && a->name != b->name)
        order = fab_natural_cmp(a->name, b->name);
    if (order != 0)
        return order;
    if (a->num != b->num)
        return a->num < b->num ? -1 : 1;
    if (a->guid != b->guid)
        return a->guid < b->guid ? -1 : 1;
    return a->port < b->port ? -1 : a->port > b->port;
}

/* Those of one host: few, and mostly in their order. */
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

/* Behind each other by rank, then each host's few by themselves. NULL: no memory, and nothing is done. */
static struct sort_key *sort_ranked(const struct sort_key *keys, uint32_t n, uint32_t n_hosts)
{
    struct sort_key *sorted = malloc((n + (size_t)1) * sizeof(*sorted));
    uint32_t *end = calloc(n_hosts + (size_t)1, sizeof(*end));
    if (sorted != NULL && end != NULL) {
        /* All are written again below: this is for the analyzer, which cannot count. */
        memcpy(sorted, keys, n * sizeof(*sorted));
        for (uint32_t i = 0; i < n; i++)
            end[keys[i].rank + 1]++;
        for (uint32_t r = 0; r < n_hosts; r++)
            end[r + 1] += end[r];
        for (uint32_t i = 0; i < n; i++)
            sorted[end[keys[i].rank]++] = keys[i];
        for (uint32_t r = 0, at = 0; r < n_hosts; at = end[r++])
            sort_few(sorted + at, end[r] - at);
    } else {
        free(sorted);
        sorted = NULL;
    }
    free(end);
    return sorted;
}

/* Takes the keys and returns them sorted. */
static struct sort_key *sort_keys(struct sort_key *keys, uint32_t n)
{
    uint32_t n_hosts;
    struct sort_key *sorted = rank_hosts(keys, n, &n_hosts) ? sort_ranked(keys, n, n_hosts) : NULL;
    if (sorted == NULL) { /* it takes longer */
        qsort(keys, n, sizeof(*keys), cmp_key);
        return keys;
    }
    free(keys);
    return sorted;
}

static int graph_sort_devices(struct fab_plane *plane)
{
    const struct fab_inventory *inv = plane->inv;
    const uint32_t n = plane->n_devices;
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
        keys = sort_keys(keys, n);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(keys[i].host, keys[i - 1].host) != 0)
            plane->hosts[plane->n_hosts++] = (struct fab_host){.name = keys[i].host, .first = i};
        plane->hosts[plane->n_hosts - 1].n++;
        plane->devices[i].port = keys[i].port;
        plane->devices[i].host = plane->n_hosts - 1;
    }
    free(keys);
    return PMIXFAB_OK;
}

/* Where each device's own cable leads, and what it costs. cost_of: by port, of the plane's cables. */
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

int fab_planes_fill(struct fab_planes *planes, const uint32_t *plane_of)
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
