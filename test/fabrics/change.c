/* Changes to a finished fabric, as an operator's hand would make them. */
#include <stdlib.h>

#include "test/fabrics/build.h"

static uint32_t cabled_port(const struct fab_inventory *inv, const char *node, unsigned num)
{
    uint32_t at = fabric_find(inv, node);
    uint32_t port = at == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, at, num);
    return port == FAB_NONE || inv->ports[port].peer == FAB_NONE ? FAB_NONE : port;
}

static int copy_nodes(struct fab_inventory *to, const struct fab_inventory *from)
{
    for (uint32_t i = 0; i < from->n_nodes; i++) {
        struct fab_node node = from->nodes[i];
        uint32_t *const strings[] = {&node.desc, &node.host, &node.name};
        for (int s = 0; s < 3; s++) {
            const char *text = fab_str(from, *strings[s]);
            size_t len = 0;
            while (text[len] != '\0')
                len++;
            if ((*strings[s] = fab_inventory_string(to, text, len)) == FAB_NONE)
                return PMIXFAB_ERR_NOMEM;
        }
        int rc = fab_inventory_add_node(to, &node, NULL);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return PMIXFAB_OK;
}

/* The two ends of the pulled cable: a switch's port is no longer listed, an HCA's is down. */
static int copy_ports(struct fab_inventory *to, const struct fab_inventory *from, uint32_t a, uint32_t b,
                      uint32_t *renumbered)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < from->n_ports && rc == PMIXFAB_OK; i++) {
        struct fab_port port = from->ports[i];
        bool pulled = i == a || i == b;
        renumbered[i] = FAB_NONE;
        if (pulled && from->nodes[port.node].kind == FAB_SWITCH)
            continue;
        port.peer = FAB_NONE;
        if (pulled)
            port.state = FAB_PORT_DOWN;
        rc = fab_inventory_add_port(to, &port, &renumbered[i]);
    }
    for (uint32_t i = 0; i < from->n_ports && rc == PMIXFAB_OK; i++) {
        uint32_t peer = from->ports[i].peer;
        if (i != a && i != b && peer != FAB_NONE && i < peer)
            rc = fab_inventory_link(to, renumbered[i], renumbered[peer]);
    }
    return rc;
}

int fabric_unlink(struct fab_inventory *inv, const char *node, unsigned port)
{
    struct fab_inventory next;
    uint32_t a = cabled_port(inv, node, port);
    if (a == FAB_NONE)
        return PMIXFAB_ERR_NOTFOUND;
    fab_inventory_init(&next);
    next.n_subnets = inv->n_subnets;
    for (uint32_t i = 0; i < inv->n_subnets; i++)
        next.subnets[i] = inv->subnets[i];
    uint32_t *renumbered = calloc(inv->n_ports, sizeof(*renumbered));
    int rc = renumbered == NULL ? PMIXFAB_ERR_NOMEM : copy_nodes(&next, inv);
    if (rc == PMIXFAB_OK)
        rc = copy_ports(&next, inv, a, inv->ports[a].peer, renumbered);
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_finish(&next, NULL);
    free(renumbered);
    if (rc != PMIXFAB_OK) {
        fab_inventory_destroy(&next);
        return rc;
    }
    fab_inventory_destroy(inv);
    *inv = next;
    return PMIXFAB_OK;
}

int fabric_set_rate(struct fab_inventory *inv, const char *node, unsigned port, unsigned width,
                    enum fab_speed speed)
{
    uint32_t a = cabled_port(inv, node, port);
    if (a == FAB_NONE)
        return PMIXFAB_ERR_NOTFOUND;
    struct fab_port *ends[] = {&inv->ports[a], &inv->ports[inv->ports[a].peer]};
    for (int i = 0; i < 2; i++) {
        ends[i]->width = (uint8_t)width;
        ends[i]->speed = (uint8_t)speed;
    }
    return PMIXFAB_OK;
}
