/* inventory_check.c - bring an inventory into its canonical order and refuse what cannot be. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/radix.h"
#include "topo/model/inventory.h"

__attribute__((format(printf, 4, 5))) static int inv_reject(struct fab_err *err, int code, uint32_t line,
                                                            const char *fmt, ...)
{
    struct fab_err made;
    va_list args;

    va_start(args, fmt);
    fab_vfail(&made, code, fmt, args);
    va_end(args);
    return line == 0 ? fab_fail(err, code, "%s", made.text)
                     : fab_fail(err, code, "line %" PRIu32 ": %s", line, made.text);
}

/* ", first in line 3" behind what stands twice; empty for live ones. */
static const char *first_seen(char *buf, size_t size, uint32_t line)
{
    buf[0] = '\0';
    if (line != 0)
        snprintf(buf, size, ", first in line %" PRIu32, line);
    return buf;
}

static bool string_known(const struct fab_inventory *inv, uint32_t offset)
{
    return offset == 0 || offset < inv->pool_size;
}

static int check_nodes(const struct fab_inventory *inv, struct fab_err *err)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (!string_known(inv, node->desc) || !string_known(inv, node->host) ||
            !string_known(inv, node->name))
            return inv_reject(err, PMIXFAB_ERR_CORRUPT, node->line,
                              "node 0x%016" PRIx64 " has a name outside of all names", node->guid);
        if (node->guid == 0)
            return inv_reject(err, PMIXFAB_ERR_RANGE, node->line, "node \"%s\" has no GUID (0)",
                              fab_str(inv, node->desc));
        if (node->kind < FAB_SWITCH || node->kind > FAB_AGGREGATOR)
            return inv_reject(err, PMIXFAB_ERR_RANGE, node->line,
                              "node 0x%016" PRIx64 " is of an unknown kind (%u)", node->guid, node->kind);
        if (node->num_ports < 1 || node->num_ports > 254)
            return inv_reject(err, PMIXFAB_ERR_RANGE, node->line,
                              "node 0x%016" PRIx64 " says it has %u ports, 1 to 254 can be", node->guid,
                              node->num_ports);
    }
    return 0;
}

static bool width_known(unsigned width)
{
    return width == 0 || width == 1 || width == 2 || width == 4 || width == 8 || width == 12;
}

static int check_cable(const struct fab_inventory *inv, uint32_t i, struct fab_err *err)
{
    const struct fab_port *port = &inv->ports[i];
    uint64_t guid = inv->nodes[port->node].guid;

    if (port->peer == FAB_NONE)
        return 0;
    if (port->peer >= inv->n_ports)
        return inv_reject(err, PMIXFAB_ERR_CORRUPT, port->line,
                          "port %u of node 0x%016" PRIx64 " is cabled to no port", port->num, guid);
    if (port->peer == i)
        return inv_reject(err, PMIXFAB_ERR_CONFLICT, port->line,
                          "port %u of node 0x%016" PRIx64 " is cabled to itself", port->num, guid);
    const struct fab_port *peer = &inv->ports[port->peer];
    if (peer->node >= inv->n_nodes)
        return inv_reject(err, PMIXFAB_ERR_CORRUPT, peer->line, "a port is of no node");
    uint64_t peer_guid = inv->nodes[peer->node].guid;
    if (peer->peer != i)
        return inv_reject(err, PMIXFAB_ERR_CONFLICT, port->line,
                          "port %u of node 0x%016" PRIx64 " leads to port %u of node 0x%016" PRIx64
                          ", which does not lead back",
                          port->num, guid, peer->num, peer_guid);
    if (peer->node == port->node)
        return inv_reject(err, PMIXFAB_ERR_CONFLICT, port->line,
                          "port %u of node 0x%016" PRIx64 " is cabled to port %u of the same node", port->num,
                          guid, peer->num);
    return 0;
}

static int inventory_check_ports(const struct fab_inventory *inv, struct fab_err *err)
{
    for (uint32_t i = 0; i < inv->n_ports; i++) {
        const struct fab_port *port = &inv->ports[i];
        if (port->node >= inv->n_nodes)
            return inv_reject(err, PMIXFAB_ERR_CORRUPT, port->line, "a port is of no node");
        const struct fab_node *node = &inv->nodes[port->node];
        if (port->num == 0 || port->num > node->num_ports)
            return inv_reject(err, PMIXFAB_ERR_RANGE, port->line,
                              "node 0x%016" PRIx64 " has no port %u, it has 1 to %u", node->guid, port->num,
                              node->num_ports);
        if (!width_known(port->width))
            return inv_reject(err, PMIXFAB_ERR_RANGE, port->line,
                              "port %u of node 0x%016" PRIx64 " has an unknown width (%u)", port->num,
                              node->guid, port->width);
        if (port->speed >= FAB_SPEEDS)
            return inv_reject(err, PMIXFAB_ERR_RANGE, port->line,
                              "port %u of node 0x%016" PRIx64 " has an unknown speed (%u)", port->num,
                              node->guid, port->speed);
        if (port->state > FAB_PORT_LOOPED)
            return inv_reject(err, PMIXFAB_ERR_RANGE, port->line,
                              "port %u of node 0x%016" PRIx64 " has an unknown state (%u)", port->num,
                              node->guid, port->state);
        if (port->subnet >= inv->n_subnets)
            return inv_reject(err, PMIXFAB_ERR_RANGE, port->line,
                              "port %u of node 0x%016" PRIx64 " is of no subnet (%u)", port->num, node->guid,
                              port->subnet);
        if (port->sibling > inv->n_ports)
            return inv_reject(err, PMIXFAB_ERR_CORRUPT, port->line,
                              "port %u of node 0x%016" PRIx64 " uses the cable of no port", port->num,
                              node->guid);
        int rc = check_cable(inv, i, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* The elements in the order of the keys, in place of `old`, and where each one is now. NULL: no memory. */
static void *inventory_reorder(void *old, uint32_t n, size_t size, const struct fab_key *keys,
                               uint32_t *moved)
{
    char *sorted = malloc(n * size);
    for (uint32_t i = 0; sorted != NULL && i < n; i++) {
        memcpy(sorted + i * size, (const char *)old + keys[i].index * size, size);
        moved[keys[i].index] = i;
    }
    if (sorted != NULL)
        free(old);
    return sorted;
}

/* Nodes by GUID. `keys` has room for all nodes twice, `moved` once. */
static int inventory_order_nodes(struct fab_inventory *inv, struct fab_key *keys, uint32_t *moved,
                                 struct fab_err *err)
{
    char first[40];

    for (uint32_t i = 0; i < inv->n_nodes; i++)
        keys[i] = (struct fab_key){inv->nodes[i].guid, i};
    bool changed = fab_radix_sort(keys, keys + inv->n_nodes, inv->n_nodes);
    for (uint32_t i = 1; i < inv->n_nodes; i++) {
        if (keys[i - 1].value == keys[i].value)
            return inv_reject(err, PMIXFAB_ERR_CONFLICT, inv->nodes[keys[i].index].line,
                              "two nodes have the GUID 0x%016" PRIx64 "%s", keys[i].value,
                              first_seen(first, sizeof(first), inv->nodes[keys[i - 1].index].line));
    }
    if (!changed)
        return 0;
    struct fab_node *sorted = inventory_reorder(inv->nodes, inv->n_nodes, sizeof(*sorted), keys, moved);
    if (sorted == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < inv->n_ports; i++)
        inv->ports[i].node = moved[inv->ports[i].node];
    inv->nodes = sorted;
    inv->cap_nodes = inv->n_nodes;
    return 0;
}

/* Ports by node and number. `keys` has room for all ports twice, `moved` once. */
static int inventory_order_ports(struct fab_inventory *inv, struct fab_key *keys, uint32_t *moved,
                                 struct fab_err *err)
{
    char first[40];

    for (uint32_t i = 0; i < inv->n_ports; i++)
        keys[i] = (struct fab_key){(uint64_t)inv->ports[i].node << 8 | inv->ports[i].num, i};
    bool changed = fab_radix_sort(keys, keys + inv->n_ports, inv->n_ports);
    for (uint32_t i = 1; i < inv->n_ports; i++) {
        const struct fab_port *port = &inv->ports[keys[i].index];
        if (keys[i - 1].value == keys[i].value)
            return inv_reject(err, PMIXFAB_ERR_CONFLICT, port->line,
                              "node 0x%016" PRIx64 " has two ports %u%s", inv->nodes[port->node].guid,
                              port->num,
                              first_seen(first, sizeof(first), inv->ports[keys[i - 1].index].line));
    }
    if (!changed)
        return 0;
    struct fab_port *sorted = inventory_reorder(inv->ports, inv->n_ports, sizeof(*sorted), keys, moved);
    if (sorted == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < inv->n_ports; i++) {
        if (sorted[i].peer != FAB_NONE)
            sorted[i].peer = moved[sorted[i].peer];
        if (sorted[i].sibling != 0)
            sorted[i].sibling = moved[sorted[i].sibling - 1] + 1;
    }
    inv->ports = sorted;
    inv->cap_ports = inv->n_ports;
    return 0;
}

/* A port GUID is what joins two views of one device, so no two HCA ports may share one. */
static int check_port_guids(const struct fab_inventory *inv, struct fab_key *keys, struct fab_err *err)
{
    uint32_t n = 0;
    char first[40];

    for (uint32_t i = 0; i < inv->n_ports; i++) {
        const struct fab_port *port = &inv->ports[i];
        if (port->guid != 0 && inv->nodes[port->node].kind == FAB_HCA)
            keys[n++] = (struct fab_key){port->guid, i};
    }
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t i = 1; i < n; i++) {
        const struct fab_port *a = &inv->ports[keys[i - 1].index], *b = &inv->ports[keys[i].index];
        if (keys[i - 1].value != keys[i].value)
            continue;
        if (a->line > b->line) {
            const struct fab_port *later = a;
            a = b;
            b = later;
        }
        return inv_reject(err, PMIXFAB_ERR_CONFLICT, b->line,
                          "two HCA ports have the port GUID 0x%016" PRIx64 " (nodes 0x%016" PRIx64
                          " and 0x%016" PRIx64 ")%s",
                          b->guid, inv->nodes[a->node].guid, inv->nodes[b->node].guid,
                          first_seen(first, sizeof(first), a->line));
    }
    return 0;
}

static void inventory_count_ports(struct fab_inventory *inv)
{
    uint32_t at = 0;

    inv->n_dangling = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        inv->nodes[i].first_port = at;
        for (; at < inv->n_ports && inv->ports[at].node == i; at++)
            inv->n_dangling += fab_port_dangles(inv, &inv->ports[at]);
        inv->nodes[i].n_ports = at - inv->nodes[i].first_port;
    }
}

int fab_inventory_finish(struct fab_inventory *inv, struct fab_err *err)
{
    uint32_t most = inv->n_nodes > inv->n_ports ? inv->n_nodes : inv->n_ports;
    struct fab_key *keys = NULL;
    uint32_t *moved = NULL;
    int rc;

    inv->finished = false;
    if (inv->n_subnets > FAB_MAX_SUBNETS)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%" PRIu32 " subnets, at most %d can be", inv->n_subnets,
                        FAB_MAX_SUBNETS);
    if (inv->n_subnets == 0 && inv->n_nodes > 0)
        inv->subnets[inv->n_subnets++].prefix = FAB_DEFAULT_PREFIX;
    rc = check_nodes(inv, err) ?: inventory_check_ports(inv, err);
    if (rc != 0)
        return rc;

    keys = malloc((2 * (size_t)most + 1) * sizeof(*keys));
    moved = malloc(((size_t)most + 1) * sizeof(*moved));
    if (keys == NULL || moved == NULL) {
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        goto cleanup;
    }
    rc = inventory_order_nodes(inv, keys, moved, err) ?: inventory_order_ports(inv, keys, moved, err)
         ?: check_port_guids(inv, keys, err);
    if (rc != 0)
        goto cleanup;
    inventory_count_ports(inv);
    rc = fab_inventory_mark_names(inv);
    if (rc != 0) {
        fab_fail(err, rc, "out of memory");
        goto cleanup;
    }
    inv->finished = true;

cleanup:
    free(keys);
    free(moved);
    return rc;
}
