/* inventory_merge.c - merge the views of several probes into one inventory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/radix.h"
#include "topo/model/inventory.h"

/* A merge in progress. Arrays run over the elements of `from`. */
struct merge {
    struct fab_inventory *into;
    const struct fab_inventory *from;
    struct fab_err *err;
    uint32_t old_ports; /* of into, before the merge */
    uint32_t *node;     /* its node in into */
    uint32_t *port;     /* its port in into; FAB_NONE: none yet */
    uint8_t subnet[FAB_MAX_SUBNETS];
};

/* Append all strings at once; *base is the shift of their offsets. */
static int append_pool(struct fab_inventory *into, const struct fab_inventory *from, uint32_t *base)
{
    *base = 0;
    if (from->pool_size <= 1)
        return 0;
    uint32_t used = into->pool == NULL ? 1 : into->pool_size;
    uint64_t need = (uint64_t)used + from->pool_size;
    if (need > UINT32_MAX / 2)
        return PMIXFAB_ERR_RANGE;
    if (!inventory_pool_room(into, need))
        return PMIXFAB_ERR_NOMEM;
    memcpy(into->pool + used, from->pool, from->pool_size);
    into->pool_size = (uint32_t)need;
    *base = used;
    return 0;
}

/* Fill in a value that `to` does not have. */
#define FILL(to, from, field)                                                                                \
    do {                                                                                                     \
        if ((to)->field == 0)                                                                                \
            (to)->field = (from)->field;                                                                     \
    } while (0)

static int merge_node(struct merge *m, struct fab_node *to, const struct fab_node *from)
{
    if (to->kind != from->kind || to->num_ports != from->num_ports)
        return fab_fail(m->err, PMIXFAB_ERR_CONFLICT,
                        "node 0x%016" PRIx64
                        " has two views: kind %u with %u ports, and kind %u with %u ports",
                        to->guid, to->kind, to->num_ports, from->kind, from->num_ports);
    FILL(to, from, system_guid);
    FILL(to, from, vendor_id);
    FILL(to, from, device_id);
    FILL(to, from, desc);
    if (to->host == 0) {
        to->host = from->host;
        to->unnamed = from->unnamed;
    }
    FILL(to, from, name);
    if (to->lid == 0) {
        to->lid = from->lid;
        to->lmc = from->lmc;
    }
    if (to->chassis == 0) {
        to->chassis = from->chassis;
        to->slot_type = from->slot_type;
        to->slot = from->slot;
        to->chip = from->chip;
    }
    FILL(to, from, enhanced);
    FILL(to, from, line);
    return 0;
}

static int merge_nodes(struct merge *m)
{
    struct fab_inventory *into = m->into;
    uint32_t old = into->n_nodes, base;
    int rc = append_pool(into, m->from, &base);
    struct fab_key *keys = malloc((2 * (size_t)old + 1) * sizeof(*keys));

    if (rc != 0 || keys == NULL) {
        free(keys);
        return rc != 0 ? rc : PMIXFAB_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < old; i++)
        keys[i] = (struct fab_key){into->nodes[i].guid, i};
    fab_radix_sort(keys, keys + old, old);
    for (uint32_t i = 0; i < m->from->n_nodes && rc == 0; i++) {
        struct fab_node node = m->from->nodes[i];
        node.desc += node.desc == 0 ? 0 : base;
        node.host += node.host == 0 ? 0 : base;
        node.name += node.name == 0 ? 0 : base;
        m->node[i] = fab_radix_find(keys, old, node.guid);
        if (m->node[i] == FAB_NONE)
            rc = fab_inventory_add_node(into, &node, &m->node[i]);
        else
            rc = merge_node(m, &into->nodes[m->node[i]], &node);
    }
    free(keys);
    return rc;
}

/* Find the port of into for each port of from. */
static int match_ports(struct merge *m)
{
    uint32_t n = m->old_ports;
    struct fab_key *keys = malloc((2 * (size_t)n + 1) * sizeof(*keys));

    if (keys == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct fab_key){(uint64_t)m->into->ports[i].node << 8 | m->into->ports[i].num, i};
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t i = 0; i < m->from->n_ports; i++) {
        const struct fab_port *port = &m->from->ports[i];
        m->port[i] = fab_radix_find(keys, n, (uint64_t)m->node[port->node] << 8 | port->num);
    }
    free(keys);
    return 0;
}

/* A cable in both makes their subnets one; the others are new. */
static int merge_match_subnets(struct merge *m)
{
    struct fab_inventory *into = m->into;
    const struct fab_inventory *from = m->from;
    const uint8_t unknown = FAB_MAX_SUBNETS;

    memset(m->subnet, unknown, sizeof(m->subnet));
    for (uint32_t i = 0; i < from->n_ports; i++) {
        const struct fab_port *port = &from->ports[i];
        if (port->peer == FAB_NONE || m->port[i] == FAB_NONE || m->port[port->peer] == FAB_NONE)
            continue;
        const struct fab_port *same = &into->ports[m->port[i]];
        if (same->peer != m->port[port->peer] || same->subnet >= into->n_subnets)
            continue;
        if (m->subnet[port->subnet] == unknown &&
            into->subnets[same->subnet].prefix == from->subnets[port->subnet].prefix)
            m->subnet[port->subnet] = same->subnet;
    }
    for (uint32_t s = 0; s < from->n_subnets; s++) {
        if (m->subnet[s] != unknown)
            continue;
        if (into->n_subnets >= FAB_MAX_SUBNETS)
            return fab_fail(m->err, PMIXFAB_ERR_RANGE, "more than %d subnets", FAB_MAX_SUBNETS);
        m->subnet[s] = (uint8_t)into->n_subnets;
        into->subnets[into->n_subnets++] = from->subnets[s];
    }
    return 0;
}

static int join_port(struct merge *m, struct fab_port *to, const struct fab_port *from)
{
    if (to->guid != 0 && from->guid != 0 && to->guid != from->guid)
        return fab_fail(m->err, PMIXFAB_ERR_CONFLICT,
                        "port %u of node 0x%016" PRIx64 " is seen with two port GUIDs, 0x%016" PRIx64
                        " and 0x%016" PRIx64,
                        to->num, m->into->nodes[to->node].guid, to->guid, from->guid);
    FILL(to, from, guid);
    FILL(to, from, line);
    if (to->peer == FAB_NONE && from->peer != FAB_NONE) { /* the cabled view is used */
        to->lid = from->lid;
        to->lmc = from->lmc;
        to->state = from->state;
        to->width = from->width;
        to->speed = from->speed;
        to->subnet = m->subnet[from->subnet];
        return 0;
    }
    if (to->peer != FAB_NONE && from->peer == FAB_NONE)
        return 0;
    if (to->lid == 0) {
        to->lid = from->lid;
        to->lmc = from->lmc;
    }
    FILL(to, from, state);
    if (to->width == 0 || to->speed == FAB_SPEED_UNKNOWN) {
        to->width = from->width;
        to->speed = from->speed;
    }
    return 0;
}

static int merge_ports(struct merge *m)
{
    for (uint32_t i = 0; i < m->from->n_ports; i++) {
        struct fab_port port = m->from->ports[i];
        int rc;
        if (m->port[i] == FAB_NONE) {
            port.node = m->node[port.node];
            port.subnet = m->subnet[port.subnet];
            rc = fab_inventory_add_port(m->into, &port, &m->port[i]);
        } else {
            rc = join_port(m, &m->into->ports[m->port[i]], &port);
        }
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int merge_cables(struct merge *m)
{
    for (uint32_t i = 0; i < m->from->n_ports; i++) {
        uint32_t peer = m->from->ports[i].peer;
        if (peer == FAB_NONE || peer < i)
            continue;
        const struct fab_port *a = &m->into->ports[m->port[i]], *b = &m->into->ports[m->port[peer]];
        if (a->peer == m->port[peer] && b->peer == m->port[i])
            continue;
        if (fab_inventory_link(m->into, m->port[i], m->port[peer]) != 0)
            return fab_fail(m->err, PMIXFAB_ERR_CONFLICT,
                            "the cable from port %u of node 0x%016" PRIx64 " to port %u of node 0x%016" PRIx64
                            " contradicts another at one of its ends",
                            a->num, m->into->nodes[a->node].guid, b->num, m->into->nodes[b->node].guid);
    }
    return 0;
}

int fab_inventory_merge(struct fab_inventory *into, const struct fab_inventory *from, struct fab_err *err)
{
    struct merge m = {.into = into, .from = from, .err = err, .old_ports = into->n_ports};
    int rc;

    if (!from->finished || into == from)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "only a finished inventory can be merged into another");
    into->finished = false;
    if (err != NULL)
        err->text[0] = '\0';
    m.node = malloc(((size_t)from->n_nodes + 1) * sizeof(*m.node));
    m.port = malloc(((size_t)from->n_ports + 1) * sizeof(*m.port));
    if (m.node == NULL || m.port == NULL) {
        rc = PMIXFAB_ERR_NOMEM;
        goto cleanup;
    }
    rc = merge_nodes(&m) ?: match_ports(&m) ?: merge_match_subnets(&m) ?: merge_ports(&m) ?: merge_cables(&m);

cleanup:
    if (rc != 0 && err != NULL && err->text[0] == '\0')
        fab_fail(err, rc, "merging two inventories: %s", pmixfab_strerror(rc));
    free(m.node);
    free(m.port);
    return rc;
}
