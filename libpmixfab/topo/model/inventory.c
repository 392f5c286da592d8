/* inventory.c - build, finish, search, copy and compare inventories. */
#include "topo/model/inventory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/radix.h"
#include "topo/base/search.h"

#define MAX_ELEMENTS (1u << 24)
#define MAX_POOL     (1u << 31)

void fab_inventory_init(struct fab_inventory *inv)
{
    memset(inv, 0, sizeof(*inv));
}

void fab_inventory_destroy(struct fab_inventory *inv)
{
    if (inv == NULL)
        return;
    free(inv->nodes);
    free(inv->ports);
    free(inv->pool);
    fab_inventory_init(inv);
}

bool inventory_pool_room(struct fab_inventory *inv, uint64_t need)
{
    if (!FAB_ARRAY_ROOM(&inv->pool, &inv->pool_cap, need))
        return false;
    inv->pool[0] = '\0';
    return true;
}

uint32_t fab_inventory_string(struct fab_inventory *inv, const char *text, size_t len)
{
    len = text == NULL ? 0 : strnlen(text, len);
    if (len == 0)
        return 0;
    uint32_t used = inv->pool == NULL ? 1 : inv->pool_size;
    if (len >= MAX_POOL - used)
        return FAB_NONE;
    if (!inventory_pool_room(inv, used + (uint64_t)len + 1))
        return FAB_NONE;
    memcpy(inv->pool + used, text, len);
    inv->pool[used + len] = '\0';
    inv->pool_size = used + (uint32_t)len + 1;
    return used;
}

int fab_inventory_add_node(struct fab_inventory *inv, const struct fab_node *node, uint32_t *index)
{
    if (inv->finished)
        return PMIXFAB_ERR_INVAL;
    if (inv->n_nodes >= MAX_ELEMENTS)
        return PMIXFAB_ERR_RANGE;
    if (!FAB_ARRAY_ROOM(&inv->nodes, &inv->cap_nodes, inv->n_nodes + 1))
        return PMIXFAB_ERR_NOMEM;
    if (index != NULL)
        *index = inv->n_nodes;
    inv->nodes[inv->n_nodes++] = *node;
    return 0;
}

int fab_inventory_add_port(struct fab_inventory *inv, const struct fab_port *port, uint32_t *index)
{
    if (inv->finished)
        return PMIXFAB_ERR_INVAL;
    if (inv->n_ports >= MAX_ELEMENTS)
        return PMIXFAB_ERR_RANGE;
    if (!FAB_ARRAY_ROOM(&inv->ports, &inv->cap_ports, inv->n_ports + 1))
        return PMIXFAB_ERR_NOMEM;
    if (index != NULL)
        *index = inv->n_ports;
    inv->ports[inv->n_ports] = *port;
    inv->ports[inv->n_ports++].peer = FAB_NONE;
    return 0;
}

int fab_inventory_link(struct fab_inventory *inv, uint32_t a, uint32_t b)
{
    if (inv->finished || a >= inv->n_ports || b >= inv->n_ports)
        return PMIXFAB_ERR_INVAL;
    if (inv->ports[a].peer != FAB_NONE || inv->ports[b].peer != FAB_NONE)
        return PMIXFAB_ERR_CONFLICT;
    inv->ports[a].peer = b;
    inv->ports[b].peer = a;
    return 0;
}

/* Copy an array; NULL stays NULL. Return false without memory. */
static bool copy_array(void **to, const void *from, size_t n, size_t size)
{
    *to = n == 0 ? NULL : malloc(n * size);
    if (*to != NULL)
        memcpy(*to, from, n * size);
    return n == 0 || *to != NULL;
}

int fab_inventory_copy(struct fab_inventory *to, const struct fab_inventory *from)
{
    void *nodes, *ports = NULL, *pool = NULL;

    fab_inventory_init(to);
    if (!from->finished)
        return PMIXFAB_ERR_INVAL;
    const bool copied = copy_array(&nodes, from->nodes, from->n_nodes, sizeof(*from->nodes)) &&
                        copy_array(&ports, from->ports, from->n_ports, sizeof(*from->ports)) &&
                        copy_array(&pool, from->pool, from->pool_size, 1);
    *to = *from;
    to->nodes = nodes;
    to->ports = ports;
    to->pool = pool;
    to->cap_nodes = from->n_nodes;
    to->cap_ports = from->n_ports;
    to->pool_cap = from->pool_size;
    if (!copied)
        fab_inventory_destroy(to);
    return copied ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

uint32_t fab_inventory_find(const struct fab_inventory *inv, uint64_t guid)
{
    const uint32_t n = inv->finished ? inv->n_nodes : 0;
    uint32_t at = FAB_LOWER_BOUND(0, n, i, inv->nodes[i].guid < guid);
    return at < n && inv->nodes[at].guid == guid ? at : FAB_NONE;
}

uint32_t fab_inventory_find_next(const struct fab_inventory *inv, uint64_t guid, uint32_t *from)
{
    const uint32_t n = inv->finished ? inv->n_nodes : 0;
    while (*from < n && inv->nodes[*from].guid < guid)
        ++*from;
    return *from < n && inv->nodes[*from].guid == guid ? *from : FAB_NONE;
}

uint32_t fab_inventory_port(const struct fab_inventory *inv, uint32_t node, unsigned num)
{
    if (!inv->finished || node >= inv->n_nodes)
        return FAB_NONE;
    const uint32_t first = inv->nodes[node].first_port, end = first + inv->nodes[node].n_ports;
    uint32_t at = FAB_LOWER_BOUND(first, end, i, inv->ports[i].num < num);
    return at < end && inv->ports[at].num == num ? at : FAB_NONE;
}

bool fab_node_equal(const struct fab_inventory *ia, const struct fab_node *a, const struct fab_inventory *ib,
                    const struct fab_node *b)
{
    return a->guid == b->guid && a->system_guid == b->system_guid && a->vendor_id == b->vendor_id &&
           a->device_id == b->device_id && a->lid == b->lid && a->chassis == b->chassis &&
           a->slot_type == b->slot_type && a->slot == b->slot && a->chip == b->chip && a->kind == b->kind &&
           a->lmc == b->lmc && a->num_ports == b->num_ports && a->enhanced == b->enhanced &&
           a->unnamed == b->unnamed && a->missing == b->missing &&
           strcmp(fab_str(ia, a->desc), fab_str(ib, b->desc)) == 0 &&
           strcmp(fab_str(ia, a->host), fab_str(ib, b->host)) == 0 &&
           strcmp(fab_str(ia, a->name), fab_str(ib, b->name)) == 0;
}

static bool ports_equal(const struct fab_port *a, const struct fab_port *b)
{
    return a->guid == b->guid && a->node == b->node && a->peer == b->peer && a->lid == b->lid &&
           a->num == b->num && a->lmc == b->lmc && a->state == b->state && a->width == b->width &&
           a->speed == b->speed && a->subnet == b->subnet && a->missing == b->missing;
}

bool fab_inventory_equal(const struct fab_inventory *a, const struct fab_inventory *b)
{
    if (!a->finished || !b->finished || a->n_nodes != b->n_nodes || a->n_ports != b->n_ports ||
        a->n_subnets != b->n_subnets)
        return false;
    for (uint32_t i = 0; i < a->n_subnets; i++) {
        if (a->subnets[i].prefix != b->subnets[i].prefix)
            return false;
    }
    for (uint32_t i = 0; i < a->n_ports; i++) {
        if (!ports_equal(&a->ports[i], &b->ports[i]))
            return false;
    }
    for (uint32_t i = 0; i < a->n_nodes; i++) {
        if (!fab_node_equal(a, &a->nodes[i], b, &b->nodes[i]))
            return false;
    }
    return true;
}

/* ---- finishing ------------------------------------------------------------------------------------- */

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

/* Report a fault of a port: "port 3 of node 0x...", and the fault. */
__attribute__((format(printf, 5, 6))) static int port_reject(const struct fab_inventory *inv,
                                                             const struct fab_port *port, struct fab_err *err,
                                                             int code, const char *fmt, ...)
{
    struct fab_err made;
    va_list args;

    va_start(args, fmt);
    fab_vfail(&made, code, fmt, args);
    va_end(args);
    return inv_reject(err, code, port->line, "port %u of node 0x%016" PRIx64 " %s", port->num,
                      inv->nodes[port->node].guid, made.text);
}

/* Write ", first in line 3" for a duplicate; empty if no line is known. */
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
                              "node 0x%016" PRIx64 " has a name outside the pool of names", node->guid);
        if (node->guid == 0)
            return inv_reject(err, PMIXFAB_ERR_RANGE, node->line, "node \"%s\" has no GUID (0)",
                              fab_str(inv, node->desc));
        if (node->kind < FAB_SWITCH || node->kind > FAB_AGGREGATOR)
            return inv_reject(err, PMIXFAB_ERR_RANGE, node->line,
                              "node 0x%016" PRIx64 " has an unknown kind (%u)", node->guid, node->kind);
        if (node->num_ports < 1 || node->num_ports > 254)
            return inv_reject(err, PMIXFAB_ERR_RANGE, node->line,
                              "node 0x%016" PRIx64 " has %u ports; 1 to 254 are possible", node->guid,
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

    if (port->peer == FAB_NONE)
        return 0;
    if (port->peer >= inv->n_ports)
        return port_reject(inv, port, err, PMIXFAB_ERR_CORRUPT, "is cabled to no port");
    if (port->peer == i)
        return port_reject(inv, port, err, PMIXFAB_ERR_CONFLICT, "is cabled to itself");
    const struct fab_port *peer = &inv->ports[port->peer];
    if (peer->node >= inv->n_nodes)
        return inv_reject(err, PMIXFAB_ERR_CORRUPT, peer->line, "a port is of no node");
    if (peer->peer != i)
        return port_reject(inv, port, err, PMIXFAB_ERR_CONFLICT,
                           "leads to port %u of node 0x%016" PRIx64 ", which does not lead back", peer->num,
                           inv->nodes[peer->node].guid);
    if (peer->node == port->node)
        return port_reject(inv, port, err, PMIXFAB_ERR_CONFLICT, "is cabled to port %u of the same node",
                           peer->num);
    return 0;
}

static int inventory_check_ports(const struct fab_inventory *inv, struct fab_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < inv->n_ports && rc == 0; i++) {
        const struct fab_port *port = &inv->ports[i];
        if (port->node >= inv->n_nodes)
            return inv_reject(err, PMIXFAB_ERR_CORRUPT, port->line, "a port is of no node");
        const struct fab_node *node = &inv->nodes[port->node];
        if (port->num == 0 || port->num > node->num_ports)
            return inv_reject(err, PMIXFAB_ERR_RANGE, port->line,
                              "node 0x%016" PRIx64 " has no port %u, it has 1 to %u", node->guid, port->num,
                              node->num_ports);
        if (!width_known(port->width))
            rc = port_reject(inv, port, err, PMIXFAB_ERR_RANGE, "has an unknown width (%u)", port->width);
        else if (port->speed >= FAB_SPEEDS)
            rc = port_reject(inv, port, err, PMIXFAB_ERR_RANGE, "has an unknown speed (%u)", port->speed);
        else if (port->state > FAB_PORT_LOOPED)
            rc = port_reject(inv, port, err, PMIXFAB_ERR_RANGE, "has an unknown state (%u)", port->state);
        else if (port->subnet >= inv->n_subnets)
            rc = port_reject(inv, port, err, PMIXFAB_ERR_RANGE, "is of no subnet (%u)", port->subnet);
        else if (port->sibling > inv->n_ports)
            rc = port_reject(inv, port, err, PMIXFAB_ERR_CORRUPT, "uses the cable of no port");
        else
            rc = check_cable(inv, i, err);
    }
    return rc;
}

/*
 * Return the elements in the order of the keys, instead of `old`, and the new position of each. NULL without
 * memory.
 */
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

/* Sort nodes by GUID. `keys` has room for all nodes twice, `moved` once. */
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

/* Sort ports by node and number. `keys` has room for all ports twice, `moved` once. */
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

/* A port GUID joins two views of one device, so no two HCA ports may share one. */
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
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%" PRIu32 " subnets; at most %d are possible",
                        inv->n_subnets, FAB_MAX_SUBNETS);
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
