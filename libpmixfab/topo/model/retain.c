/* retain.c - keep the places of things that a sweep no longer sees. */
#include "topo/model/retain.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/radix.h"
#include "topo/model/pairing.h"

/* A retention in progress. Arrays run over the elements of `before`. */
struct retaining {
    const struct fab_inventory *before, *swept;
    struct fab_inventory *out;
    uint32_t *there;      /* its node in swept, or for a switch its replacement; FAB_NONE */
    uint32_t *was;        /* the reverse, for each node of swept */
    struct pairing pairs; /* both */
    uint8_t *kept;        /* nodes that are not seen, or have no cable: the place is kept */
    uint8_t *may;         /* ports of HCAs: the place may be kept */
    uint8_t *cable;       /* ports: the cable stays, down */
    uint8_t *anchor;      /* nodes: a kept switch from which a seen node can be reached */
    uint32_t *port;       /* its port in out */
    uint32_t *away;       /* ports of HCAs whose place another cable has: a switch of swept, else FAB_NONE, */
    uint8_t *num;         /* and the port of that switch where they are kept instead */
    uint8_t subnet[FAB_MAX_SUBNETS];
};

/* Return whether this node of before has no cable in swept. */
static bool retain_is_unseen(const struct retaining *k, uint32_t node)
{
    return k->there[node] == FAB_NONE || !fab_node_is_cabled(k->swept, &k->swept->nodes[k->there[node]]);
}

/* ---- candidates ------------------------------------------------------------------------------------ */

static void match_nodes(struct retaining *k)
{
    for (uint32_t s = 0; s < k->swept->n_nodes; s++)
        k->was[s] = FAB_NONE;
    for (uint32_t b = 0, at = 0; b < k->before->n_nodes; b++) {
        k->there[b] = fab_inventory_find_next(k->swept, k->before->nodes[b].guid, &at);
        if (k->there[b] != FAB_NONE)
            k->was[k->there[b]] = b;
    }
}

/*
 * now: the node with the same GUID in swept, or NULL. If it is another kind of node, it is not an HCA that
 * lacks a port.
 */
static bool is_same_hca(const struct fab_node *node, const struct fab_node *now)
{
    return node->kind == FAB_HCA &&
           (now == NULL || (now->kind == FAB_HCA && now->num_ports == node->num_ports));
}

/*
 * Return whether this port of an HCA had a cable to a switch and has none now. now: the node's number in
 * swept.
 */
static bool is_lacking(const struct fab_inventory *before, uint32_t port, const struct fab_inventory *swept,
                       uint32_t now)
{
    const uint32_t peer = before->ports[port].peer;
    if (peer == FAB_NONE || before->nodes[before->ports[peer].node].kind != FAB_SWITCH)
        return false;
    uint32_t same = now == FAB_NONE ? FAB_NONE : fab_inventory_port(swept, now, before->ports[port].num);
    return same == FAB_NONE || swept->ports[same].peer == FAB_NONE;
}

bool fab_inventory_lacks_port(const struct fab_inventory *before, const struct fab_inventory *swept)
{
    for (uint32_t b = 0, at = 0; b < before->n_nodes; b++) {
        const struct fab_node *node = &before->nodes[b];
        uint32_t now = fab_inventory_find_next(swept, node->guid, &at);
        if (!is_same_hca(node, now == FAB_NONE ? NULL : &swept->nodes[now]))
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            if (is_lacking(before, p, swept, now))
                return true;
    }
    return false;
}

static uint32_t find_candidates(struct retaining *k, fab_retain_fn may, void *cbdata)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < k->before->n_nodes; b++) {
        const struct fab_node *node = &k->before->nodes[b];
        const struct fab_node *now = k->there[b] == FAB_NONE ? NULL : &k->swept->nodes[k->there[b]];
        if (!is_same_hca(node, now))
            continue;
        bool unseen = retain_is_unseen(k, b);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            if (!is_lacking(k->before, p, k->swept, k->there[b]) || !may(k->before, p, cbdata))
                continue;
            k->may[p] = 1;
            k->kept[b] = unseen;
            n++;
        }
    }
    return n;
}

static void drop_hca(struct retaining *k, uint32_t hca)
{
    const struct fab_node *node = &k->before->nodes[hca];
    memset(k->may + node->first_port, 0, node->n_ports);
    k->kept[hca] = 0;
}

/* Drop ports whose port GUID is now at another HCA, or at another port of their own: they have moved. */
static int drop_moved_ports(struct retaining *k)
{
    const struct fab_inventory *swept = k->swept, *before = k->before;
    struct fab_key *keys = malloc((2 * (size_t)swept->n_ports + 1) * sizeof(*keys));
    uint32_t n = 0;
    if (keys == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t p = 0; p < swept->n_ports; p++)
        if (swept->ports[p].guid != 0 && swept->nodes[swept->ports[p].node].kind == FAB_HCA)
            keys[n++] = (struct fab_key){swept->ports[p].guid, p};
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t p = 0; p < before->n_ports; p++) {
        uint32_t node = before->ports[p].node;
        if ((!k->kept[node] && !k->may[p]) || before->ports[p].guid == 0)
            continue;
        uint32_t same = fab_radix_find(keys, n, before->ports[p].guid);
        if (same == FAB_NONE ||
            (swept->ports[same].node == k->there[node] && swept->ports[same].num == before->ports[p].num))
            continue;
        k->may[p] = 0;
        if (k->kept[node])
            drop_hca(k, node);
    }
    free(keys);
    return PMIXFAB_OK;
}

/* Return the HCA that was at the place of this port of swept; FAB_NONE. */
static uint32_t hca_before(const struct retaining *k, uint32_t port)
{
    uint32_t peer = k->swept->ports[port].peer;
    uint32_t at = peer == FAB_NONE ? FAB_NONE : pairing_port_before(&k->pairs, peer);
    at = at == FAB_NONE ? FAB_NONE : k->before->ports[at].peer;
    return at == FAB_NONE ? FAB_NONE : k->before->ports[at].node;
}

/* Return the candidate of this host that the new HCA most likely replaces; FAB_NONE. */
static uint32_t replaced_by(const struct retaining *k, const struct fab_node *new)
{
    const char *host = fab_str(k->swept, new->host), *desc = fab_str(k->swept, new->desc);
    uint32_t first = FAB_NONE;
    if (host[0] == '\0' || new->unnamed)
        return FAB_NONE;
    for (uint32_t b = 0; b < k->before->n_nodes; b++) {
        const struct fab_node *node = &k->before->nodes[b];
        if (!k->kept[b] || strcmp(fab_str(k->before, node->host), host) != 0)
            continue;
        if (strcmp(fab_str(k->before, node->desc), desc) == 0)
            return b;
        first = first == FAB_NONE ? b : first;
    }
    return first;
}

/* Each HCA with a new GUID ends the retention of one HCA that it may have replaced. */
static void drop_replaced(struct retaining *k)
{
    for (uint32_t s = 0; s < k->swept->n_nodes; s++) {
        const struct fab_node *new = &k->swept->nodes[s];
        if (new->kind != FAB_HCA || !fab_node_is_cabled(k->swept, new) ||
            fab_inventory_find(k->before, new->guid) != FAB_NONE)
            continue;
        bool took_place = false;
        for (uint32_t p = new->first_port; p < new->first_port + new->n_ports; p++) {
            uint32_t old = hca_before(k, p);
            if (old == FAB_NONE || !k->kept[old])
                continue;
            drop_hca(k, old);
            took_place = true;
        }
        uint32_t old = took_place ? FAB_NONE : replaced_by(k, new);
        if (old != FAB_NONE)
            drop_hca(k, old);
    }
}

/* ---- cables ---------------------------------------------------------------------------------------- */

/*
 * Return whether this end of an old cable is free: its node is present and nothing else is cabled to the
 * port.
 */
static bool end_is_free(const struct retaining *k, uint32_t port)
{
    const struct fab_port *end = &k->before->ports[port];
    uint32_t node = k->there[end->node];
    if (node == FAB_NONE)
        return false;
    const struct fab_node *now = &k->swept->nodes[node];
    if (now->kind != k->before->nodes[end->node].kind || end->num > now->num_ports)
        return false;
    uint32_t same = fab_inventory_port(k->swept, node, end->num);
    return same == FAB_NONE || k->swept->ports[same].peer == FAB_NONE;
}

static bool retain_is_switch_port(const struct retaining *k, uint32_t port)
{
    return k->before->nodes[k->before->ports[port].node].kind == FAB_SWITCH;
}

static bool is_gone(const struct retaining *k, uint32_t port)
{
    return k->there[k->before->ports[port].node] == FAB_NONE;
}

static void retain_cable(struct retaining *k, uint32_t port)
{
    k->cable[port] = k->cable[k->before->ports[port].peer] = 1;
}

/* An HCA that is not seen is kept only with a cable. */
static void drop_cableless(struct retaining *k)
{
    for (uint32_t b = 0; b < k->before->n_nodes; b++) {
        const struct fab_node *node = &k->before->nodes[b];
        if (node->kind != FAB_HCA || !k->kept[b])
            continue;
        k->kept[b] = 0;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            k->kept[b] |= k->cable[p];
    }
}

/* Keep the candidates' cables, and the unseen switches at them. */
static void retain_ports(struct retaining *k)
{
    for (uint32_t p = 0; p < k->before->n_ports; p++) {
        uint32_t peer = k->before->ports[p].peer;
        if (!k->may[p] || (!is_gone(k, peer) && !end_is_free(k, peer)))
            continue;
        retain_cable(k, p);
        if (is_gone(k, peer))
            k->kept[k->before->ports[peer].node] = 1;
    }
    drop_cableless(k);
}

/* Keep a kept switch's cables to present switches and to other kept ones. HCAs' ports are done already. */
static void retain_switch_cables(struct retaining *k)
{
    for (uint32_t p = 0; p < k->before->n_ports; p++) {
        const struct fab_port *port = &k->before->ports[p];
        if (port->peer == FAB_NONE || !retain_is_switch_port(k, p) || !k->kept[port->node])
            continue;
        uint32_t to = k->before->ports[port->peer].node;
        if (k->before->nodes[to].kind == FAB_HCA)
            continue;
        if (k->there[to] == FAB_NONE ? k->kept[to] && retain_is_switch_port(k, port->peer)
                                     : end_is_free(k, port->peer))
            retain_cable(k, p);
    }
}

/* Find the kept switches from which a seen switch can be reached. */
static void find_anchors(struct retaining *k)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t p = 0; p < k->before->n_ports; p++) {
            const struct fab_port *port = &k->before->ports[p];
            if (!k->cable[p] || !retain_is_switch_port(k, p) || !is_gone(k, p) || k->anchor[port->node] ||
                !retain_is_switch_port(k, port->peer))
                continue;
            uint32_t to = k->before->ports[port->peer].node;
            if (k->there[to] == FAB_NONE && !k->anchor[to])
                continue;
            k->anchor[port->node] = 1;
            more = true;
        }
    }
}

/* Add the unseen neighbours of kept switches without an anchor. Return false if there is nothing to add. */
static bool retain_between(struct retaining *k)
{
    bool added = false;
    for (uint32_t p = 0; p < k->before->n_ports; p++) {
        const struct fab_port *port = &k->before->ports[p];
        if (port->peer == FAB_NONE || !retain_is_switch_port(k, p) || !retain_is_switch_port(k, port->peer) ||
            k->kept[port->node] != 1 || k->anchor[port->node])
            continue;
        uint32_t to = k->before->ports[port->peer].node;
        if (k->there[to] != FAB_NONE || k->kept[to])
            continue;
        k->kept[to] = 2; /* handled from the next round on */
        added = true;
    }
    for (uint32_t b = 0; b < k->before->n_nodes; b++)
        k->kept[b] = k->kept[b] != 0;
    return added;
}

static void drop_unanchored(struct retaining *k)
{
    for (uint32_t b = 0; b < k->before->n_nodes; b++) {
        const struct fab_node *node = &k->before->nodes[b];
        if (node->kind != FAB_SWITCH || !k->kept[b] || k->anchor[b])
            continue;
        k->kept[b] = 0;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            if (k->cable[p])
                k->cable[p] = k->cable[k->before->ports[p].peer] = 0;
    }
    drop_cableless(k);
}

/*
 * ---- ports whose place is taken -------------------------------------------------------------------------
 */

/* Used ports of each switch of swept: one bit each. */
typedef uint8_t used_ports[32];

static bool is_used(const used_ports used, unsigned num)
{
    return (used[num / 8] & (1u << num % 8)) != 0;
}

static void used_ports_set(used_ports used, unsigned num)
{
    used[num / 8] |= (uint8_t)(1u << num % 8);
}

/* Collect the listed ports, and those where a cable stays. */
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

/* Try the former place of the HCA that is in this port's place. */
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

/* Try the same port number of this switch, else the first unused port. */
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

/*
 * Return the switch of swept where it can be: its own, or the one to which most cables of its own lead now.
 */
static uint32_t find_switch(const struct retaining *k, uint32_t p)
{
    const uint32_t own = k->before->ports[k->before->ports[p].peer].node;
    uint32_t sw = k->there[own] == FAB_NONE ? pairing_vote_after(&k->pairs, own) : k->there[own];
    return sw == FAB_NONE || k->swept->nodes[sw].kind != FAB_SWITCH ? FAB_NONE : sw;
}

/*
 * Find other places for ports that may stay, whose switch is present but has no room at their old place. Run
 * after all others: cable is set for them, and not for the old place. PMIXFAB_ERR_NOMEM.
 */
static int retain_elsewhere(struct retaining *k)
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

/* ---- writing --------------------------------------------------------------------------------------- */

/* Find the subnet of swept for each one of before: by a switch in both, else by prefix. */
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

/* *number becomes its number in out. */
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

/* Return whether it is a port of an HCA that is seen. */
static bool is_alone(const struct retaining *k, uint32_t p)
{
    const uint32_t node = k->before->ports[p].node;
    return k->before->nodes[node].kind == FAB_HCA && !k->kept[node];
}

/* Add a port of `before`, down, to node `number` of out: in place of one without a cable, or new. */
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
    if (k->out->ports[same].state == FAB_PORT_DISABLED) /* this is the reason */
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

/* Add the cable of a port that is kept at another place. */
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

/* Write the selection into out, a copy of swept, which is unfinished afterwards. */
static int retain_write(struct retaining *k)
{
    int rc = PMIXFAB_OK;
    k->out->finished = false; /* nodes and ports of swept come first, at their places */
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

/*
 * ---- the whole retention ---------------------------------------------------------------------------------
 */

static int retain_choose(struct retaining *k)
{
    drop_replaced(k);
    retain_ports(k);
    retain_switch_cables(k);
    find_anchors(k);
    while (retain_between(k)) {
        retain_switch_cables(k);
        find_anchors(k);
    }
    drop_unanchored(k);
    return retain_elsewhere(k);
}

/* Allocate two pieces of memory, at there and kept. */
static int retain_prepare(struct retaining *k)
{
    const size_t nodes = (size_t)k->before->n_nodes + 1, ports = (size_t)k->before->n_ports + 1;
    k->there = malloc((nodes + k->swept->n_nodes + 1 + 2 * ports) * sizeof(*k->there));
    k->kept = calloc(2 * nodes + 3 * ports, 1);
    if (k->there == NULL || k->kept == NULL)
        return PMIXFAB_ERR_NOMEM;
    k->was = k->there + nodes;
    k->port = k->was + k->swept->n_nodes + 1;
    k->away = k->port + ports;
    for (size_t p = 0; p < ports; p++)
        k->away[p] = FAB_NONE;
    k->anchor = k->kept + nodes;
    k->cable = k->anchor + nodes;
    k->may = k->cable + ports;
    k->num = k->may + ports;
    k->pairs = (struct pairing){k->before, k->swept, k->there, k->was};
    return PMIXFAB_OK;
}

int fab_retain(const struct fab_inventory *before, const struct fab_inventory *swept, fab_retain_fn may,
               void *cbdata, struct fab_inventory *out, struct fab_err *err)
{
    struct retaining k = {.before = before, .swept = swept, .out = out};
    fab_inventory_init(out);
    if (!swept->finished || (!before->finished && before->n_nodes > 0))
        return fab_fail(err, PMIXFAB_ERR_INVAL, "keep: an inventory is not finished");
    int rc = fab_inventory_copy(out, swept) ?: retain_prepare(&k);
    if (rc == PMIXFAB_OK) {
        match_nodes(&k);
        if (find_candidates(&k, may, cbdata) > 0) {
            pairing_switches(&k.pairs); /* as in the correlation */
            rc = drop_moved_ports(&k) ?: retain_choose(&k) ?: retain_write(&k)
                 ?: fab_inventory_finish(out, err);
        }
    }
    free(k.there);
    free(k.kept);
    if (rc != PMIXFAB_OK)
        fab_inventory_destroy(out);
    return rc == PMIXFAB_ERR_NOMEM ? fab_fail(err, rc, "out of memory") : rc;
}
