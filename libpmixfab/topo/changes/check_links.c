/* check_links.c - cables and ports: down, not active, leading nowhere. */
#include <stdio.h>

#include "topo/changes/finding.h"

/* ---- what is missing ------------------------------------------------------------------------------- */

/* Is that because the switch's ports at its cables are switched off? Then it is told of them. */
static bool is_switched_off(const struct fab_inventory *inv, const struct fab_node *node)
{
    uint32_t off = 0, cables = 0;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const uint32_t peer = inv->ports[p].peer;
        cables += peer != FAB_NONE;
        off += peer != FAB_NONE && inv->ports[peer].state == FAB_PORT_DISABLED;
    }
    return cables > 0 && off == cables;
}

static void tell_missing(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t n = 0; n < inv->n_nodes; n++) {
        const struct fab_node *node = &inv->nodes[n];
        char where[FAB_NODE_TEXT], cable[FAB_LINK_TEXT] = "";
        uint32_t cables = 0;
        if (!node->missing || is_switched_off(inv, node))
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            if (inv->ports[p].peer != FAB_NONE && cables++ == 0)
                fab_port_text(inv, &inv->ports[inv->ports[p].peer], cable);
        fab_node_text(inv, node, where);
        if (cables == 1)
            check_add(c, FAB_CHECK_MISSING, fab_about_node(node), where,
                      "not seen any more; its place is kept at %s", cable);
        else
            check_add(c, FAB_CHECK_MISSING, fab_about_node(node), where,
                      "not seen any more; the places of its %u cables are kept, the first at %s", cables,
                      cable);
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        char where[FAB_PORT_TEXT], cable[FAB_PORT_TEXT];
        if (!inv->ports[p].missing || inv->ports[p].peer == FAB_NONE ||
            inv->ports[inv->ports[p].peer].state == FAB_PORT_DISABLED)
            continue;
        fab_port_text(inv, &inv->ports[p], where);
        fab_port_text(inv, &inv->ports[inv->ports[p].peer], cable);
        check_add(c, FAB_CHECK_MISSING, fab_about_port(inv, &inv->ports[p]), where,
                  "its cable is not seen any more; its place is kept at %s", cable);
    }
}

/* ---- what is switched off --------------------------------------------------------------------------- */

/* Ports of a node that are in this state, and have no cable, as one finding. */
static void tell_ports(struct check *c, const struct fab_inventory *inv, uint32_t n_node,
                       enum fab_port_state state, enum fab_check_kind kind, const char *words)
{
    const struct fab_node *node = &inv->nodes[n_node];
    struct fab_about about = fab_about_node(node);
    char where[FAB_NODE_TEXT], list[400] = "";
    size_t used = 0;
    uint32_t n = 0;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->state != state || port->peer != FAB_NONE)
            continue;
        if (used + 8 < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%u", n > 0 ? ", " : "", port->num);
        about.state = about.state * 31 + port->num;
        n++;
    }
    if (n == 0)
        return;
    fab_node_text(inv, node, where);
    check_add(c, kind, about, where, "%u port%s %s: %s", n, n == 1 ? " is" : "s are", words, list);
}

static void check_disabled_ports(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t n = 0; n < inv->n_nodes; n++)
        tell_ports(c, inv, n, FAB_PORT_LOOPED, FAB_CHECK_SELF_CABLE, "cabled to the same node");
    for (uint32_t n = 0; n < c->whole->n_nodes; n++) /* those of a lost cable are told as that */
        if (c->whole->nodes[n].kind == FAB_SWITCH)   /* some sites switch off all that they do not use */
            tell_ports(c, c->whole, n, FAB_PORT_DISABLED, FAB_CHECK_DISABLED_PORTS, "disabled");
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        char where[FAB_PORT_TEXT], behind[FAB_PORT_TEXT];
        if (port->state != FAB_PORT_DISABLED || port->peer == FAB_NONE)
            continue;
        fab_port_text(inv, port, where);
        fab_port_text(inv, &inv->ports[port->peer], behind);
        check_add(c, FAB_CHECK_PORT_DISABLED, fab_about_port(inv, port), where,
                  "somebody switched it off (its physical state is Disabled); %s is behind it", behind);
    }
}

/* ---- states ---------------------------------------------------------------------------------------- */

static bool is_inactive(const struct fab_port *port)
{
    return port->state == FAB_PORT_INIT || port->state == FAB_PORT_ARMED;
}

/* A cable, from its lower end. */
static void check_state(struct check *c, const struct fab_port *port, bool managed)
{
    const struct fab_port *peer = &c->inv->ports[port->peer];
    bool down = port->state == FAB_PORT_DOWN || peer->state == FAB_PORT_DOWN;
    bool inactive = is_inactive(port) || is_inactive(peer);
    const struct fab_port *first = (down ? port->state == FAB_PORT_DOWN : is_inactive(port)) ? port : peer;
    char where[FAB_LINK_TEXT], end[FAB_PORT_TEXT];
    if (fab_port_is_missing(c->inv, port) || (!down && (!inactive || !managed)))
        return;
    fab_link_text(c->inv, port, where);
    fab_port_text(c->inv, first, end);
    check_add(c, down ? FAB_CHECK_PORT_DOWN : FAB_CHECK_INACTIVE, fab_about_cable(c->inv, port), where,
              "%s is %s", end, fab_state_text(first->state));
}

static void check_states(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    uint32_t cabled = 0, inactive = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE || !check_is_swept(c, port) || fab_port_is_missing(inv, port))
            continue;
        cabled++;
        inactive += is_inactive(port);
    }
    bool managed = inactive <= cabled / 2;
    if (!managed)
        check_add(c, FAB_CHECK_NO_MANAGER, fab_about_text(""), "the fabric",
                  "%u of %u cabled ports are not active", inactive, cabled);
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer != FAB_NONE && p < port->peer && check_is_swept(c, port))
            check_state(c, port, managed);
    }
}

/* Of what hosts alone tell, no switch has a word. */
static void check_nowhere(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t p = 0; inv->n_dangling > 0 && p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        char where[FAB_PORT_TEXT];
        if (!fab_port_dangles(inv, port) || !check_is_swept(c, port))
            continue;
        fab_port_text(inv, port, where);
        check_add(c, FAB_CHECK_NOWHERE, fab_about_port(inv, port), where,
                  "%s, and nothing is seen at its other end",
                  port->state == FAB_PORT_UNKNOWN ? "it does not answer" : fab_state_text(port->state));
    }
}

void check_links(struct check *c)
{
    tell_missing(c);
    check_disabled_ports(c);
    check_states(c);
    check_nowhere(c);
}
