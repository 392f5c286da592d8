/* relocate.c - where a port stays whose place is another's. */
#include <stdlib.h>

#include "topo/model/retain_state.h"

/* Which ports of each switch of swept are used: a bit each. */
typedef uint8_t used_ports[32];

static bool is_used(const used_ports used, unsigned num)
{
    return (used[num / 8] & (1u << num % 8)) != 0;
}

static void used_ports_set(used_ports used, unsigned num)
{
    used[num / 8] |= (uint8_t)(1u << num % 8);
}

/* Those that are listed, and those where a cable stays. */
static used_ports *list_used(const struct retaining *k)
{
    used_ports *used = calloc((size_t)k->swept->n_nodes + 1, sizeof(*used));
    for (uint32_t p = 0; used != NULL && p < k->swept->n_ports; p++)
        used_ports_set(used[k->swept->ports[p].node], k->swept->ports[p].num);
    for (uint32_t p = 0; used != NULL && p < k->before->n_ports; p++) {
        const struct fab_port *port = &k->before->ports[p];
        if (k->cable[p] && k->there[port->node] != FAB_NONE)
            used_ports_set(used[k->there[port->node]], port->num);
    }
    return used;
}

/* The place that the HCA which is in this port's place has left. */
static bool find_left(struct retaining *k, used_ports *used, uint32_t p)
{
    uint32_t at = pairing_port_after(&k->pairs, k->before->ports[p].peer);
    uint32_t taker = at == FAB_NONE ? FAB_NONE : k->swept->ports[at].peer;
    if (taker == FAB_NONE || k->swept->nodes[k->swept->ports[taker].node].kind != FAB_HCA)
        return false;
    uint32_t then = pairing_port_before(&k->pairs, taker);
    uint32_t left = then == FAB_NONE ? FAB_NONE : k->before->ports[then].peer;
    if (left == FAB_NONE || k->before->ports[left].subnet != k->before->ports[p].subnet)
        return false;
    const struct fab_port *port = &k->before->ports[left];
    uint32_t sw = k->there[port->node];
    if (sw == FAB_NONE || k->swept->nodes[sw].kind != FAB_SWITCH ||
        port->num > k->swept->nodes[sw].num_ports || is_used(used[sw], port->num))
        return false;
    k->away[p] = sw;
    k->num[p] = port->num;
    return true;
}

/* Its own port of this switch, else the first one that nobody uses. */
static bool find_beside(struct retaining *k, used_ports *used, uint32_t p, uint32_t sw)
{
    const unsigned own = k->before->ports[k->before->ports[p].peer].num, n = k->swept->nodes[sw].num_ports;
    unsigned num = own <= n && !is_used(used[sw], own) ? own : 1;
    while (num <= n && is_used(used[sw], num))
        num++;
    if (num > n)
        return false;
    k->away[p] = sw;
    k->num[p] = (uint8_t)num;
    return true;
}

/* The switch of swept where it can be: its own, or the one to which the cables of its own lead now. */
static uint32_t find_switch(const struct retaining *k, uint32_t p)
{
    const uint32_t own = k->before->ports[k->before->ports[p].peer].node;
    uint32_t sw = k->there[own] == FAB_NONE ? pairing_vote_after(&k->pairs, own) : k->there[own];
    return sw == FAB_NONE || k->swept->nodes[sw].kind != FAB_SWITCH ? FAB_NONE : sw;
}

int retain_elsewhere(struct retaining *k)
{
    used_ports *used = NULL;
    for (uint32_t p = 0; p < k->before->n_ports; p++) {
        const struct fab_port *port = &k->before->ports[p];
        if (!k->may[p] || k->cable[p])
            continue;
        uint32_t sw = find_switch(k, p);
        if (sw == FAB_NONE)
            continue;
        if (used == NULL && (used = list_used(k)) == NULL)
            return PMIXFAB_ERR_NOMEM;
        if (!find_left(k, used, p) && !find_beside(k, used, p, sw))
            continue;
        used_ports_set(used[k->away[p]], k->num[p]);
        k->cable[p] = 1;
        k->kept[port->node] = retain_is_unseen(k, port->node);
    }
    free(used);
    return PMIXFAB_OK;
}
