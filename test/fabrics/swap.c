/* Hardware that is replaced, moved or taken away: the fabric as a sweep sees it afterwards. */
#include <stdlib.h>
#include <string.h>

#include "test/fabrics/build.h"

/* What is to be different. Indices are those of the fabric as it was; FAB_NONE: none. */
struct swap {
    uint32_t replaced, lost; /* nodes */
    uint64_t guid;           /* of the replaced one */
    bool *pulled;            /* ports */
    uint32_t moved;          /* the port whose end of a cable goes elsewhere */
    uint32_t to;             /* that node */
    unsigned to_port;
};

static uint32_t cabled_port(const struct fab_inventory *inv, const char *node, unsigned num)
{
    uint32_t at = fabric_find(inv, node);
    uint32_t port = at == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, at, num);
    return port == FAB_NONE || inv->ports[port].peer == FAB_NONE ? FAB_NONE : port;
}

static bool keeps_cable(const struct fab_inventory *inv, const struct swap *swap, uint32_t port)
{
    uint32_t peer = inv->ports[port].peer;
    return peer != FAB_NONE && !swap->pulled[port] && !swap->pulled[peer] &&
           inv->ports[port].node != swap->lost && inv->ports[peer].node != swap->lost;
}

static bool is_there(const struct fab_inventory *inv, const struct swap *swap, uint32_t node)
{
    const struct fab_node *n = &inv->nodes[node];
    bool cabled = false;

    if (node == swap->lost || n->kind == FAB_SWITCH)
        return node != swap->lost;
    for (uint32_t i = 0; i < n->n_ports; i++)
        cabled |= keeps_cable(inv, swap, n->first_port + i);
    return cabled;
}

static int copy_node(struct fab_inventory *to, const struct fab_inventory *from, const struct swap *swap,
                     uint32_t index, uint32_t *renumbered)
{
    struct fab_node node = from->nodes[index];
    uint32_t *const strings[] = {&node.desc, &node.host, &node.name};

    for (int s = 0; s < 3; s++) {
        const char *text = fab_str(from, *strings[s]);
        if ((*strings[s] = fab_inventory_string(to, text, strlen(text))) == FAB_NONE)
            return PMIXFAB_ERR_NOMEM;
    }
    if (index == swap->replaced) {
        node.system_guid = node.system_guid == node.guid ? swap->guid : node.system_guid;
        node.guid = swap->guid;
    }
    return fab_inventory_add_node(to, &node, renumbered);
}

/* nodes[] and ports[]: where each is in `to`. */
static int copy_port(struct fab_inventory *to, const struct fab_inventory *from, const struct swap *swap,
                     uint32_t index, const uint32_t *nodes, uint32_t *ports)
{
    struct fab_port port = from->ports[index];
    bool cabled = keeps_cable(from, swap, index);

    if (nodes[port.node] == FAB_NONE || (!cabled && from->nodes[port.node].kind == FAB_SWITCH))
        return PMIXFAB_OK;
    if (port.node == swap->replaced && port.guid != 0)
        port.guid += swap->guid - from->nodes[port.node].guid;
    if (!cabled)
        port.state = FAB_PORT_DOWN;
    if (index == swap->moved) {
        port.node = swap->to;
        port.num = (uint8_t)swap->to_port;
    }
    port.node = nodes[port.node];
    port.peer = FAB_NONE;
    return fab_inventory_add_port(to, &port, &ports[index]);
}

static int copy(struct fab_inventory *to, const struct fab_inventory *from, const struct swap *swap,
                uint32_t *nodes, uint32_t *ports)
{
    int rc = PMIXFAB_OK;

    for (uint32_t i = 0; i < from->n_nodes && rc == PMIXFAB_OK; i++) {
        nodes[i] = FAB_NONE;
        if (is_there(from, swap, i))
            rc = copy_node(to, from, swap, i, &nodes[i]);
    }
    for (uint32_t i = 0; i < from->n_ports && rc == PMIXFAB_OK; i++) {
        ports[i] = FAB_NONE;
        rc = copy_port(to, from, swap, i, nodes, ports);
    }
    for (uint32_t i = 0; i < from->n_ports && rc == PMIXFAB_OK; i++) {
        if (keeps_cable(from, swap, i) && i < from->ports[i].peer)
            rc = fab_inventory_link(to, ports[i], ports[from->ports[i].peer]);
    }
    return rc == PMIXFAB_OK ? fab_inventory_finish(to, NULL) : rc;
}

static int apply(struct fab_inventory *inv, const struct swap *swap)
{
    struct fab_inventory next;
    uint32_t *nodes = calloc(inv->n_nodes + 1u, sizeof(*nodes));
    uint32_t *ports = calloc(inv->n_ports + 1u, sizeof(*ports));

    fab_inventory_init(&next);
    next.n_subnets = inv->n_subnets;
    memcpy(next.subnets, inv->subnets, sizeof(next.subnets));
    int rc = nodes == NULL || ports == NULL ? PMIXFAB_ERR_NOMEM : copy(&next, inv, swap, nodes, ports);
    free(nodes);
    free(ports);
    if (rc != PMIXFAB_OK) {
        fab_inventory_destroy(&next);
        return rc;
    }
    fab_inventory_destroy(inv);
    *inv = next;
    return PMIXFAB_OK;
}

static struct swap nothing(const struct fab_inventory *inv)
{
    return (struct swap){.replaced = FAB_NONE,
                         .lost = FAB_NONE,
                         .moved = FAB_NONE,
                         .to = FAB_NONE,
                         .pulled = calloc(inv->n_ports + 1u, sizeof(bool))};
}

int fabric_replace(struct fab_inventory *inv, const char *node, uint64_t guid, unsigned cables)
{
    struct swap swap = nothing(inv);
    int rc = swap.pulled == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;

    swap.replaced = fabric_find(inv, node);
    swap.guid = guid;
    if (rc == PMIXFAB_OK && swap.replaced == FAB_NONE)
        rc = PMIXFAB_ERR_NOTFOUND;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < inv->nodes[swap.replaced].n_ports; i++) {
        uint32_t port = inv->nodes[swap.replaced].first_port + i;
        if (inv->ports[port].peer == FAB_NONE)
            continue;
        swap.pulled[port] = cables == 0;
        cables -= cables > 0;
    }
    if (rc == PMIXFAB_OK)
        rc = apply(inv, &swap);
    free(swap.pulled);
    return rc;
}

int fabric_move(struct fab_inventory *inv, const char *node, unsigned port, const char *to, unsigned to_port)
{
    struct swap swap = nothing(inv);
    uint32_t stays = cabled_port(inv, node, port);
    int rc = swap.pulled == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;

    swap.to = fabric_find(inv, to);
    swap.to_port = to_port;
    if (rc == PMIXFAB_OK && (stays == FAB_NONE || swap.to == FAB_NONE))
        rc = PMIXFAB_ERR_NOTFOUND;
    else if (rc == PMIXFAB_OK)
        swap.moved = inv->ports[stays].peer;
    if (rc == PMIXFAB_OK)
        rc = apply(inv, &swap);
    free(swap.pulled);
    return rc;
}

int fabric_lose(struct fab_inventory *inv, const char *node)
{
    struct swap swap = nothing(inv);
    int rc = swap.pulled == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;

    swap.lost = fabric_find(inv, node);
    if (rc == PMIXFAB_OK && swap.lost == FAB_NONE)
        rc = PMIXFAB_ERR_NOTFOUND;
    if (rc == PMIXFAB_OK)
        rc = apply(inv, &swap);
    free(swap.pulled);
    return rc;
}
