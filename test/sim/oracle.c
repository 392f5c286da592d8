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

static bool carries(const struct fab_port *port)
{
    return port->peer != FAB_NONE;
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
            if (!carries(port))
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

/* Bellman and Ford: from one port of an HCA to each switch, until nothing becomes less. */
static void search(const struct fab_inventory *inv, uint32_t from, uint32_t fastest, uint32_t *cost)
{
    const struct fab_port *start = &inv->ports[from];
    bool less = true;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        cost[i] = FAR;
    if (inv->nodes[inv->ports[start->peer].node].kind == FAB_SWITCH)
        cost[inv->ports[start->peer].node] = link_cost(start, fastest);
    while (less) {
        less = false;
        for (uint32_t p = 0; p < inv->n_ports; p++) {
            const struct fab_port *port = &inv->ports[p];
            if (!carries(port) || cost[port->node] == FAR)
                continue;
            const uint32_t next = inv->ports[port->peer].node,
                           sum = cost[port->node] + link_cost(port, fastest);
            if (inv->nodes[next].kind != FAB_SWITCH || sum >= cost[next])
                continue;
            less = true;
            cost[next] = sum;
        }
    }
}

/* Where the port of an HCA is served: its plane and index there. False: nowhere. */
static bool find_device(const struct served_set *set, uint64_t port_guid, const struct served_plane **plane,
                        uint32_t *index)
{
    char what[24];
    snprintf(what, sizeof(what), "0x%016" PRIx64, port_guid);
    for (uint32_t i = 0; i < set->n; i++)
        if (pmixfab_find(set->planes[i]->fab, what, index) == PMIXFAB_OK) {
            *plane = set->planes[i];
            return true;
        }
    return false;
}

static bool is_device(const struct fab_inventory *inv, uint32_t port)
{
    return inv->nodes[inv->ports[port].node].kind == FAB_HCA && carries(&inv->ports[port]);
}

static uint32_t random_device(const struct fab_inventory *inv)
{
    for (unsigned tries = 0; inv->n_ports > 0 && tries < 1000; tries++) {
        const uint32_t at = (uint32_t)(seam_random() % inv->n_ports);
        if (is_device(inv, at))
            return at;
    }
    return FAR;
}

/* The cost from the port that the search began at to this one; FAR: there is no path. */
static uint32_t cost_to(const struct fab_inventory *inv, uint32_t from, uint32_t to, uint32_t fastest,
                        const uint32_t *cost)
{
    const struct fab_port *end = &inv->ports[to];
    const uint32_t edge = inv->ports[end->peer].node;
    if (end->peer == from)
        return link_cost(end, fastest);
    return inv->nodes[edge].kind != FAB_SWITCH || cost[edge] == FAR ? FAR
                                                                    : cost[edge] + link_cost(end, fastest);
}

/* One row of the matrix, but for the devices of the own card and host, whose costs hosts report. */
static bool check_row(const struct fab_inventory *inv, const struct served_set *set, uint32_t from,
                      uint32_t fastest, const uint32_t *cost, char *why, size_t size)
{
    const struct served_plane *served, *other;
    struct pmixfab_device one, two;
    uint32_t a, b;
    uint16_t is;
    if (!find_device(set, inv->ports[from].guid, &served, &a) ||
        pmixfab_device(served->fab, a, &one) != PMIXFAB_OK) {
        snprintf(why, size, "port 0x%016" PRIx64 " is cabled and not served", inv->ports[from].guid);
        return false;
    }
    for (uint32_t i = 0; i < inv->n_ports; i++) {
        if (!is_device(inv, i) || i == from)
            continue;
        const uint32_t right = cost_to(inv, from, i, fastest, cost);
        const bool found = find_device(set, inv->ports[i].guid, &other, &b) && other == served &&
                           pmixfab_device(served->fab, b, &two) == PMIXFAB_OK &&
                           pmixfab_cost(served->fab, a, b, &is) == PMIXFAB_OK;
        if (found && one.host_index == two.host_index)
            continue;
        if (right == FAR ? found && is != PMIXFAB_NO_PATH : !found || is != right) {
            snprintf(why, size, "port 0x%016" PRIx64 " to 0x%016" PRIx64 " costs %d, not %d",
                     inv->ports[from].guid, inv->ports[i].guid, found ? is : -1, (int)right);
            return false;
        }
    }
    return true;
}

bool oracle_costs(const struct fab_inventory *inv, unsigned rows, char *why, size_t size)
{
    uint32_t *plane = malloc((inv->n_nodes + 1) * sizeof(*plane));
    uint32_t *cost = malloc((inv->n_nodes + 1) * sizeof(*cost));
    uint32_t *queue = malloc((inv->n_nodes + 1) * sizeof(*queue));
    struct served_set *set = served_get(front_served());
    bool good = true;
    if (plane == NULL || cost == NULL || queue == NULL)
        sim_fail("out of memory");
    for (unsigned row = 0; good && row < rows; row++) {
        const uint32_t from = random_device(inv);
        if (from == FAR)
            break;
        memset(plane, 0xff, inv->n_nodes * sizeof(*plane));
        const uint32_t fastest = flood(inv, inv->ports[inv->ports[from].peer].node, plane, 0, queue);
        search(inv, from, fastest, cost);
        good = check_row(inv, set, from, fastest, cost, why, size);
    }
    served_set_put(set);
    free(plane);
    free(cost);
    free(queue);
    return good;
}

/* Each device knows its index, and is 0 away from itself. */
bool oracle_order(char *why, size_t size)
{
    struct served_set *set = served_get(front_served());
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
