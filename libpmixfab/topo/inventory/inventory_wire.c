/*
 * wire.c - an inventory as bytes.
 *
 * Head (32 bytes): magic[8], version u32, 0 u32, total size u64, XXH3-64 of all other bytes u64.
 * Body: n_subnets, n_nodes, n_ports, pool_size (u32 each); subnets; nodes; ports; pool.
 */
#include "topo/inventory/inventory_wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define VERSION     1u
#define SUM_AT      24
#define COUNTS      16
#define SUBNET_SIZE 8
#define NODE_SIZE   52
#define PORT_SIZE   28

static const char magic[8] = {'f', 'a', 'b', 'w', 'i', 'r', 'e', '\n'};

static uint8_t *wire_put_uint(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + bytes;
}

static uint64_t wire_get_uint(const uint8_t **at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)(*at)[i] << (8 * i);
    *at += bytes;
    return value;
}

/* Everything but the checksum itself. */
static uint64_t wire_checksum(const uint8_t *bytes, size_t size)
{
    uint64_t head = XXH3_64bits(bytes, SUM_AT);
    return XXH3_64bits_withSeed(bytes + FAB_WIRE_HEAD, size - FAB_WIRE_HEAD, head);
}

static uint8_t *wire_put_node(uint8_t *at, const struct fab_node *node)
{
    at = wire_put_uint(at, node->guid, 8);
    at = wire_put_uint(at, node->system_guid, 8);
    at = wire_put_uint(at, node->vendor_id, 4);
    at = wire_put_uint(at, node->device_id, 4);
    at = wire_put_uint(at, node->desc, 4);
    at = wire_put_uint(at, node->host, 4);
    at = wire_put_uint(at, node->name, 4);
    at = wire_put_uint(at, node->line, 4);
    at = wire_put_uint(at, node->lid, 2);
    at = wire_put_uint(at, node->chassis, 2);
    const uint8_t small[] = {node->slot_type, node->slot,      node->chip,     node->kind,
                             node->lmc,       node->num_ports, node->enhanced, node->unnamed};
    memcpy(at, small, sizeof(small));
    return at + sizeof(small);
}

static void get_node(const uint8_t **at, struct fab_node *node)
{
    memset(node, 0, sizeof(*node));
    node->guid = wire_get_uint(at, 8);
    node->system_guid = wire_get_uint(at, 8);
    node->vendor_id = (uint32_t)wire_get_uint(at, 4);
    node->device_id = (uint32_t)wire_get_uint(at, 4);
    node->desc = (uint32_t)wire_get_uint(at, 4);
    node->host = (uint32_t)wire_get_uint(at, 4);
    node->name = (uint32_t)wire_get_uint(at, 4);
    node->line = (uint32_t)wire_get_uint(at, 4);
    node->lid = (uint16_t)wire_get_uint(at, 2);
    node->chassis = (uint16_t)wire_get_uint(at, 2);
    node->slot_type = (uint8_t)wire_get_uint(at, 1);
    node->slot = (uint8_t)wire_get_uint(at, 1);
    node->chip = (uint8_t)wire_get_uint(at, 1);
    node->kind = (uint8_t)wire_get_uint(at, 1);
    node->lmc = (uint8_t)wire_get_uint(at, 1);
    node->num_ports = (uint8_t)wire_get_uint(at, 1);
    node->enhanced = (uint8_t)wire_get_uint(at, 1);
    node->unnamed = (uint8_t)wire_get_uint(at, 1);
}

static uint8_t *wire_put_port(uint8_t *at, const struct fab_port *port)
{
    at = wire_put_uint(at, port->guid, 8);
    at = wire_put_uint(at, port->node, 4);
    at = wire_put_uint(at, port->peer, 4);
    at = wire_put_uint(at, port->line, 4);
    at = wire_put_uint(at, port->lid, 2);
    const uint8_t small[] = {port->num, port->lmc, port->state, port->width, port->speed, port->subnet};
    memcpy(at, small, sizeof(small));
    return at + sizeof(small);
}

static void get_port(const uint8_t **at, struct fab_port *port)
{
    memset(port, 0, sizeof(*port));
    port->guid = wire_get_uint(at, 8);
    port->node = (uint32_t)wire_get_uint(at, 4);
    port->peer = (uint32_t)wire_get_uint(at, 4);
    port->line = (uint32_t)wire_get_uint(at, 4);
    port->lid = (uint16_t)wire_get_uint(at, 2);
    port->num = (uint8_t)wire_get_uint(at, 1);
    port->lmc = (uint8_t)wire_get_uint(at, 1);
    port->state = (uint8_t)wire_get_uint(at, 1);
    port->width = (uint8_t)wire_get_uint(at, 1);
    port->speed = (uint8_t)wire_get_uint(at, 1);
    port->subnet = (uint8_t)wire_get_uint(at, 1);
}

static uint64_t total_size(uint64_t subnets, uint64_t nodes, uint64_t ports, uint64_t pool)
{
    return FAB_WIRE_HEAD + COUNTS + subnets * SUBNET_SIZE + nodes * NODE_SIZE + ports * PORT_SIZE + pool;
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

    memcpy(start, magic, sizeof(magic));
    uint8_t *at = wire_put_uint(start + sizeof(magic), VERSION, 4);
    at = wire_put_uint(at, 0, 4);
    at = wire_put_uint(at, total, 8);
    at = wire_put_uint(at, 0, 8); /* the checksum, when the rest stands */
    at = wire_put_uint(at, inv->n_subnets, 4);
    at = wire_put_uint(at, inv->n_nodes, 4);
    at = wire_put_uint(at, inv->n_ports, 4);
    at = wire_put_uint(at, inv->pool_size, 4);
    for (uint32_t i = 0; i < inv->n_subnets; i++)
        at = wire_put_uint(at, inv->subnets[i].prefix, SUBNET_SIZE);
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        at = wire_put_node(at, &inv->nodes[i]);
    for (uint32_t i = 0; i < inv->n_ports; i++)
        at = wire_put_port(at, &inv->ports[i]);
    if (inv->pool_size > 0)
        memcpy(at, inv->pool, inv->pool_size);
    wire_put_uint(start + SUM_AT, wire_checksum(start, total), 8);
    *bytes = start;
    *size = total;
    return 0;
}

uint64_t fab_wire_total(const void *head)
{
    if (memcmp(head, magic, sizeof(magic)) != 0)
        return 0;
    const uint8_t *at = (const uint8_t *)head + 16;
    return wire_get_uint(&at, 8);
}

/* Head, size and checksum. */
static int wire_check_head(const uint8_t *bytes, size_t size, struct fab_err *err)
{
    if (memcmp(bytes, magic, size < sizeof(magic) ? size : sizeof(magic)) != 0)
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "these bytes are not an inventory from a sweep");
    if (size < FAB_WIRE_HEAD)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "the inventory ends after %zu bytes, inside its head",
                        size);
    const uint8_t *at = bytes + sizeof(magic);
    uint64_t version = wire_get_uint(&at, 4), total = fab_wire_total(bytes);
    if (version != VERSION)
        return fab_fail(err, version < VERSION ? PMIXFAB_ERR_OLDER : PMIXFAB_ERR_NEWER,
                        "the inventory is of format %" PRIu64
                        ", this program reads %u: use programs of one version",
                        version, VERSION);
    if (total > FAB_WIRE_MAX || total < FAB_WIRE_HEAD + COUNTS)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the inventory says it has an impossible %" PRIu64 " bytes",
                        total);
    if (size < total)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "the inventory ends after %zu of %" PRIu64 " bytes", size,
                        total);
    if (size > total)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%" PRIu64 " bytes too many behind the inventory",
                        size - total);
    at = bytes + SUM_AT;
    if (wire_get_uint(&at, 8) != wire_checksum(bytes, size))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the inventory's checksum does not match");
    return 0;
}

static int wire_read_body(const uint8_t *at, uint64_t total, struct fab_inventory *inv, struct fab_err *err)
{
    uint32_t subnets = (uint32_t)wire_get_uint(&at, 4), nodes = (uint32_t)wire_get_uint(&at, 4);
    uint32_t ports = (uint32_t)wire_get_uint(&at, 4), pool = (uint32_t)wire_get_uint(&at, 4);

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
    for (uint32_t i = 0; i < subnets; i++)
        inv->subnets[i].prefix = wire_get_uint(&at, SUBNET_SIZE);
    for (uint32_t i = 0; i < nodes; i++)
        get_node(&at, &inv->nodes[i]);
    for (uint32_t i = 0; i < ports; i++)
        get_port(&at, &inv->ports[i]);
    memcpy(inv->pool, at, pool);
    inv->pool[pool] = '\0'; /* every offset below is inside: each string ends */
    if (pool > 0 && (inv->pool[0] != '\0' || inv->pool[pool - 1] != '\0'))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the inventory's names do not end");
    inv->pool_size = pool == 0 ? 1 : pool;
    inv->pool_cap = pool + 1;
    return 0;
}

int fab_wire_decode(const void *bytes, size_t size, struct fab_inventory *inv, struct fab_err *err)
{
    fab_inventory_init(inv);
    if (bytes == NULL || size == 0)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "no inventory came");
    int rc = wire_check_head(bytes, size, err);
    if (rc == 0)
        rc = wire_read_body((const uint8_t *)bytes + FAB_WIRE_HEAD, size, inv, err);
    if (rc == 0)
        rc = fab_inventory_finish(inv, err);
    if (rc != 0)
        fab_inventory_destroy(inv);
    return rc;
}
