/* retain_write.c - what keeps its place, into the new inventory. */
#include <string.h>

#include "topo/model/retain_state.h"

/* Which subnet of swept each of before's is: by a switch that stands in both, else by its prefix. */
static void retain_match_subnets(struct retaining *k)
{
    const struct fab_inventory *before = k->before, *swept = k->swept;
    for (uint32_t i = 0; i < before->n_subnets; i++) {
        k->subnet[i] = 0;
        for (uint32_t s = swept->n_subnets; s-- > 0;)
            if (swept->subnets[s].prefix == before->subnets[i].prefix)
                k->subnet[i] = (uint8_t)s;
        if (i < swept->n_subnets && swept->subnets[i].prefix == before->subnets[i].prefix)
            k->subnet[i] = (uint8_t)i;
    }
    for (uint32_t b = 0; b < before->n_nodes; b++) {
        const struct fab_node *node = &before->nodes[b];
        const struct fab_node *now = k->there[b] == FAB_NONE ? NULL : &swept->nodes[k->there[b]];
        if (node->kind == FAB_SWITCH && node->n_ports > 0 && now != NULL && now->n_ports > 0)
            k->subnet[before->ports[node->first_port].subnet] = swept->ports[now->first_port].subnet;
    }
}

static int copy_text(const struct retaining *k, uint32_t *offset)
{
    const char *text = fab_str(k->before, *offset);
    *offset = fab_inventory_string(k->out, text, strlen(text));
    return *offset == FAB_NONE ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

/* *number is its number in out. */
static int retain_add_node(struct retaining *k, uint32_t b, uint32_t *number)
{
    struct fab_node node = k->before->nodes[b];
    *number = k->there[b];
    if (*number != FAB_NONE) {
        k->out->nodes[*number].missing = 1;
        return PMIXFAB_OK;
    }
    node.missing = 1;
    int rc = copy_text(k, &node.desc) ?: copy_text(k, &node.host) ?: copy_text(k, &node.name);
    return rc == PMIXFAB_OK ? fab_inventory_add_node(k->out, &node, number) : rc;
}

/* Is it a port of an HCA that is seen? */
static bool is_alone(const struct retaining *k, uint32_t p)
{
    const uint32_t node = k->before->ports[p].node;
    return k->before->nodes[node].kind == FAB_HCA && !k->kept[node];
}

/* A port of `before`, down, at node `number` of out: in place of one without a cable, or new. */
static int retain_add_port(struct retaining *k, uint32_t p, uint32_t number)
{
    struct fab_port port = k->before->ports[p];
    uint32_t same = number < k->swept->n_nodes ? fab_inventory_port(k->swept, number, port.num) : FAB_NONE;
    port.node = number;
    port.peer = FAB_NONE;
    port.state = FAB_PORT_DOWN;
    port.missing = is_alone(k, p);
    port.subnet = k->subnet[port.subnet];
    if (same == FAB_NONE)
        return fab_inventory_add_port(k->out, &port, &k->port[p]);
    k->port[p] = same;
    if (k->out->ports[same].state == FAB_PORT_DISABLED) /* which is why */
        port.state = FAB_PORT_DISABLED;
    k->out->ports[same] = port;
    return PMIXFAB_OK;
}

static int retain_write_ports(struct retaining *k, uint32_t b, uint32_t number)
{
    const struct fab_node *node = &k->before->nodes[b];
    int rc = PMIXFAB_OK;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports && rc == PMIXFAB_OK; p++)
        if (k->cable[p] || (node->kind == FAB_HCA && k->kept[b]))
            rc = retain_add_port(k, p, number);
    return rc;
}

/* The cable of a port that stays elsewhere. */
static int link_away(struct retaining *k, uint32_t p)
{
    const struct fab_port *port = &k->before->ports[p];
    const struct fab_port end = {.node = k->away[p],
                                 .peer = FAB_NONE,
                                 .num = k->num[p],
                                 .state = FAB_PORT_DOWN,
                                 .width = port->width,
                                 .speed = port->speed,
                                 .subnet = k->subnet[port->subnet]};
    uint32_t number;
    int rc = fab_inventory_add_port(k->out, &end, &number);
    return rc == PMIXFAB_OK ? fab_inventory_link(k->out, k->port[p], number) : rc;
}

int retain_write(struct retaining *k)
{
    int rc = PMIXFAB_OK;
    k->out->finished = false; /* nodes and ports of swept stand in front, at their places */
    retain_match_subnets(k);
    for (uint32_t b = 0; b < k->before->n_nodes && rc == PMIXFAB_OK; b++) {
        uint32_t number = k->there[b];
        if (k->kept[b])
            rc = retain_add_node(k, b, &number);
        if (rc == PMIXFAB_OK && number != FAB_NONE)
            rc = retain_write_ports(k, b, number);
    }
    for (uint32_t p = 0; p < k->before->n_ports && rc == PMIXFAB_OK; p++)
        if (k->away[p] != FAB_NONE)
            rc = link_away(k, p);
        else if (k->cable[p] && k->before->ports[p].peer > p)
            rc = fab_inventory_link(k->out, k->port[p], k->port[k->before->ports[p].peer]);
    return rc;
}
