/*
 * oracle.c - what is served, held against the rules of the house by plain means: a search from each host that
 * knows nothing of how fabricd does it, in what the last good sweep was given.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/serving/served.h"
#include "pmixfab.h"
#include "test/sim/oracle.h"
#include "test/sim/played.h"

#define FAR UINT32_MAX

/* A cable's cost in its plane: 10 at the fastest rate, in proportion more for slower ones, rounded up. */
static uint32_t link_cost(const struct fab_port *port, uint32_t fastest)
{
    const uint32_t rate = fab_rate_mbps(port->width, (enum fab_speed)port->speed);
    return rate == 0 || fastest == 0 ? 10 : (uint32_t)((UINT64_C(10) * fastest + rate - 1) / rate);
}

/* Is there traffic over it? A port that is not active is no path. */
static bool carries(const struct fab_inventory *inv, const struct fab_port *port)
{
    return port->peer != FAB_NONE && inv->nodes[port->node].n_ports > 0;
}

/* The nodes that can be reached from this one, and the fastest rate of a cable among them. */
static uint32_t flood(const struct fab_inventory *inv, uint32_t from, uint32_t *plane, uint32_t number,
                      uint32_t *queue)
{
    uint32_t n = 0, fastest = 0;
    queue[n++] = from;
    plane[from] = number;
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_node *node = &inv->nodes[queue[i]];
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            const struct fab_port *port = &inv->ports[p];
            if (!carries(inv, port))
                continue;
            const uint32_t rate = fab_rate_mbps(port->width, (enum fab_speed)port->speed);
            const uint32_t next = inv->ports[port->peer].node;
            fastest = rate > fastest ? rate : fastest;
            if (plane[next] == FAR) {
                plane[next] = number;
                queue[n++] = next;
            }
        }
    }
    return fastest;
}

/* Bellman and Ford: until nothing becomes less. An HCA is an end, and nothing goes through it. */
static void search(const struct fab_inventory *inv, uint32_t from, uint32_t fastest, uint32_t *cost)
{
    bool less = true;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        cost[i] = FAR;
    cost[from] = 0;
    while (less) {
        less = false;
        for (uint32_t p = 0; p < inv->n_ports; p++) {
            const struct fab_port *port = &inv->ports[p];
            if (!carries(inv, port) || cost[port->node] == FAR ||
                (port->node != from && inv->nodes[port->node].kind != FAB_SWITCH))
                continue;
            const uint32_t next = inv->ports[port->peer].node,
                           sum = cost[port->node] + link_cost(port, fastest);
            less = less || sum < cost[next];
            cost[next] = sum < cost[next] ? sum : cost[next];
        }
    }
}

/* Where a node's first port is served: its plane and index there. False: nowhere. */
static bool find_device(const struct served_set *set, uint64_t node_guid, const struct served_plane **plane,
                        uint32_t *index)
{
    char what[24];
    snprintf(what, sizeof(what), "0x%016" PRIx64, node_guid);
    for (uint32_t i = 0; i < set->n; i++)
        if (pmixfab_find(set->planes[i]->fab, what, index) == PMIXFAB_OK) {
            *plane = set->planes[i];
            return true;
        }
    return false;
}

static uint32_t random_hca(const struct fab_inventory *inv)
{
    for (unsigned tries = 0; inv->n_nodes > 0 && tries < 1000; tries++) {
        const uint32_t at = (uint32_t)(seam_random() % inv->n_nodes);
        if (inv->nodes[at].kind == FAB_HCA && fab_node_is_cabled(inv, &inv->nodes[at]))
            return at;
    }
    return FAR;
}

/* One row of the matrix. */
static bool check_row(const struct fab_inventory *inv, const struct served_set *set, uint32_t from,
                      const uint32_t *plane, const uint32_t *cost, char *why, size_t size)
{
    const struct served_plane *served, *other;
    uint32_t a, b;
    uint16_t is;
    if (!find_device(set, inv->nodes[from].guid, &served, &a)) {
        snprintf(why, size, "HCA 0x%016" PRIx64 " is cabled and not served", inv->nodes[from].guid);
        return false;
    }
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        if (inv->nodes[i].kind != FAB_HCA || !fab_node_is_cabled(inv, &inv->nodes[i]))
            continue;
        const bool found = find_device(set, inv->nodes[i].guid, &other, &b);
        if (plane[i] != plane[from] && found && other == served &&
            pmixfab_cost(served->fab, a, b, &is) == PMIXFAB_OK && is != PMIXFAB_NO_PATH) {
            snprintf(why, size, "0x%016" PRIx64 " to 0x%016" PRIx64 " costs %u, and there is no path",
                     inv->nodes[from].guid, inv->nodes[i].guid, is);
            return false;
        }
        if (plane[i] != plane[from])
            continue;
        if (!found || other != served || pmixfab_cost(served->fab, a, b, &is) != PMIXFAB_OK ||
            is != cost[i]) {
            snprintf(why, size, "0x%016" PRIx64 " to 0x%016" PRIx64 " costs %d, not %u",
                     inv->nodes[from].guid, inv->nodes[i].guid, found && other == served ? is : -1, cost[i]);
            return false;
        }
    }
    return true;
}

bool oracle_costs(const struct fab_inventory *inv, unsigned rows, char *why, size_t size)
{
    uint32_t *plane = malloc((inv->n_nodes + 1) * sizeof(*plane)),
             *cost = malloc((inv->n_nodes + 1) * sizeof(*cost));
    uint32_t *queue = malloc((inv->n_nodes + 1) * sizeof(*queue));
    struct served_set *set = served_get();
    bool good = true;
    if (plane == NULL || cost == NULL || queue == NULL)
        sim_fail("out of memory");
    for (unsigned row = 0; good && row < rows; row++) {
        const uint32_t from = random_hca(inv);
        if (from == FAR)
            break;
        memset(plane, 0xff, inv->n_nodes * sizeof(*plane));
        search(inv, from, flood(inv, from, plane, 0, queue), cost);
        good = check_row(inv, set, from, plane, cost, why, size);
    }
    served_set_put(set);
    free(plane);
    free(cost);
    free(queue);
    return good;
}

/* Indices are dense and unique by construction of the API; names are in their order, and each device knows
 * its own. */
bool oracle_order(char *why, size_t size)
{
    struct served_set *set = served_get();
    bool good = true;
    for (uint32_t i = 0; good && i < set->n; i++) {
        const struct pmixfab *fab = set->planes[i]->fab;
        struct pmixfab_device device;
        for (uint32_t k = 0; good && pmixfab_device(fab, k, &device) == PMIXFAB_OK; k++) {
            uint16_t cost;
            good = device.index == k && pmixfab_cost(fab, k, k, &cost) == PMIXFAB_OK && cost == 0;
            if (!good)
                snprintf(why, size, "plane %u: device %u is not where it says, or not 0 away from itself", i,
                         k);
        }
    }
    served_set_put(set);
    return good;
}
