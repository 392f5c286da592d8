/* inventory.c - building, finding, copying and comparing inventories. */
#include "topo/model/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
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

/* NULL stays NULL. False: no memory. */
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
