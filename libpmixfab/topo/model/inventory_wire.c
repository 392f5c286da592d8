/*
 * inventory_wire.c - encode and decode an inventory.
 *
 * After the head (frame.h): n_subnets, n_nodes, n_ports, pool_size (u32 each); subnets; nodes; ports; pool.
 */
#include "topo/model/inventory_wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/frame.h"

#define COUNTS      16
#define SUBNET_SIZE (9 + FAB_VIEW_NAME)
#define NODE_SIZE   52
#define PORT_SIZE   28

static const struct frame_kind kind = {
    {'f', 'a', 'b', 'w', 'i', 'r', 'e', '\n'}, 2, FAB_WIRE_MAX, "the inventory of a sweep"};

static uint8_t *wire_put_node(uint8_t *at, const struct fab_node *node)
{
    at = frame_put(at, node->guid, 8);
    at = frame_put(at, node->system_guid, 8);
    at = frame_put(at, node->vendor_id, 4);
    at = frame_put(at, node->device_id, 4);
    at = frame_put(at, node->desc, 4);
    at = frame_put(at, node->host, 4);
    at = frame_put(at, node->name, 4);
    at = frame_put(at, node->line, 4);
    at = frame_put(at, node->lid, 2);
    at = frame_put(at, node->chassis, 2);
    const uint8_t small[] = {node->slot_type, node->slot,      node->chip,     node->kind,
                             node->lmc,       node->num_ports, node->enhanced, node->unnamed};
    memcpy(at, small, sizeof(small));
    return at + sizeof(small);
}

static void get_node(struct frame *in, struct fab_node *node)
{
    *node = (struct fab_node){0};
    node->guid = frame_get(in, 8);
    node->system_guid = frame_get(in, 8);
    node->vendor_id = (uint32_t)frame_get(in, 4);
    node->device_id = (uint32_t)frame_get(in, 4);
    node->desc = (uint32_t)frame_get(in, 4);
    node->host = (uint32_t)frame_get(in, 4);
    node->name = (uint32_t)frame_get(in, 4);
    node->line = (uint32_t)frame_get(in, 4);
    node->lid = (uint16_t)frame_get(in, 2);
    node->chassis = (uint16_t)frame_get(in, 2);
    uint8_t *const small[] = {&node->slot_type, &node->slot,      &node->chip,     &node->kind,
                              &node->lmc,       &node->num_ports, &node->enhanced, &node->unnamed};
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
        *small[i] = (uint8_t)frame_get(in, 1);
}

static uint8_t *wire_put_port(uint8_t *at, const struct fab_port *port)
{
    at = frame_put(at, port->guid, 8);
    at = frame_put(at, port->node, 4);
    at = frame_put(at, port->peer, 4);
    at = frame_put(at, port->line, 4);
    at = frame_put(at, port->lid, 2);
    const uint8_t small[] = {port->num, port->lmc, port->state, port->width, port->speed, port->subnet};
    memcpy(at, small, sizeof(small));
    return at + sizeof(small);
}

static void get_port(struct frame *in, struct fab_port *port)
{
    *port = (struct fab_port){0};
    port->guid = frame_get(in, 8);
    port->node = (uint32_t)frame_get(in, 4);
    port->peer = (uint32_t)frame_get(in, 4);
    port->line = (uint32_t)frame_get(in, 4);
    port->lid = (uint16_t)frame_get(in, 2);
    uint8_t *const small[] = {&port->num,   &port->lmc,   &port->state,
                              &port->width, &port->speed, &port->subnet};
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
        *small[i] = (uint8_t)frame_get(in, 1);
}

static uint64_t total_size(uint64_t subnets, uint64_t nodes, uint64_t ports, uint64_t pool)
{
    return FRAME_HEAD + COUNTS + subnets * SUBNET_SIZE + nodes * NODE_SIZE + ports * PORT_SIZE + pool;
}

int fab_wire_encode(const struct fab_inventory *inv, void **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    if (!inv->finished)
        return PMIXFAB_ERR_INVAL;
    uint64_t total = total_size(inv->n_subnets, inv->n_nodes, inv->n_ports, inv->pool_size);
    if (total > FAB_WIRE_MAX)
        return PMIXFAB_ERR_RANGE;
    uint8_t *start = malloc(total);
    if (start == NULL)
        return PMIXFAB_ERR_NOMEM;

    uint8_t *at = frame_put(start + FRAME_HEAD, inv->n_subnets, 4);
    at = frame_put(at, inv->n_nodes, 4);
    at = frame_put(at, inv->n_ports, 4);
    at = frame_put(at, inv->pool_size, 4);
    for (uint32_t i = 0; i < inv->n_subnets; i++) {
        at = frame_put(at, inv->subnets[i].prefix, 8);
        at = frame_put(at, inv->subnets[i].is_default, 1);
        memcpy(at, inv->subnets[i].view, FAB_VIEW_NAME);
        at += FAB_VIEW_NAME;
    }
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        at = wire_put_node(at, &inv->nodes[i]);
    for (uint32_t i = 0; i < inv->n_ports; i++)
        at = wire_put_port(at, &inv->ports[i]);
    if (inv->pool_size > 0)
        memcpy(at, inv->pool, inv->pool_size);
    frame_seal(&kind, start, total);
    *bytes = start;
    *size = total;
    return 0;
}

uint64_t fab_wire_total(const void *head)
{
    struct frame in = {.at = (const uint8_t *)head + 16, .end = (const uint8_t *)head + FAB_WIRE_HEAD};
    return memcmp(head, kind.magic, sizeof(kind.magic)) == 0 ? frame_get(&in, 8) : 0;
}

static int wire_read_body(struct frame *in, uint64_t total, struct fab_inventory *inv, struct fab_err *err)
{
    uint32_t subnets = (uint32_t)frame_get(in, 4), nodes = (uint32_t)frame_get(in, 4);
    uint32_t ports = (uint32_t)frame_get(in, 4), pool = (uint32_t)frame_get(in, 4);

    if (subnets > FAB_MAX_SUBNETS || total_size(subnets, nodes, ports, pool) != total)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the inventory's counts do not fit its size");
    inv->nodes = malloc((size_t)nodes * sizeof(*inv->nodes) + 1);
    inv->ports = malloc((size_t)ports * sizeof(*inv->ports) + 1);
    inv->pool = malloc((size_t)pool + 1);
    if (inv->nodes == NULL || inv->ports == NULL || inv->pool == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for an inventory of %" PRIu64 " bytes", total);
    inv->n_subnets = subnets;
    inv->n_nodes = inv->cap_nodes = nodes;
    inv->n_ports = inv->cap_ports = ports;
    for (uint32_t i = 0; i < subnets; i++) {
        inv->subnets[i].prefix = frame_get(in, 8);
        inv->subnets[i].is_default = frame_get(in, 1) != 0;
        memcpy(inv->subnets[i].view, frame_bytes(in, FAB_VIEW_NAME), FAB_VIEW_NAME);
        inv->subnets[i].view[FAB_VIEW_NAME - 1] = '\0';
    }
    for (uint32_t i = 0; i < nodes; i++)
        get_node(in, &inv->nodes[i]);
    for (uint32_t i = 0; i < ports; i++)
        get_port(in, &inv->ports[i]);
    memcpy(inv->pool, frame_bytes(in, pool), pool);
    inv->pool[pool] = '\0'; /* every offset is inside: each string ends */
    if (pool > 0 && (inv->pool[0] != '\0' || inv->pool[pool - 1] != '\0'))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the inventory's names have no end");
    inv->pool_size = pool == 0 ? 1 : pool;
    inv->pool_cap = pool + 1;
    return 0;
}

int fab_wire_decode(const void *bytes, size_t size, struct fab_inventory *inv, struct fab_err *err)
{
    struct frame in;

    fab_inventory_init(inv);
    int rc = frame_open(&kind, bytes, size, &in, err) ?: wire_read_body(&in, size, inv, err)
             ?: fab_inventory_finish(inv, err);
    if (rc != 0)
        fab_inventory_destroy(inv);
    return rc;
}
