/* diff_ports.c - ports, the devices that they are, and the cables between them. */
#include <inttypes.h>
#include <stdio.h>

#include "topo/base/order.h"
#include "topo/changes/text_sizes.h"

/* Ports are told apart by their node's GUID and their number, in every inventory the same. */
static int diff_compare_ports(const struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    uint64_t guid_b = w->before->nodes[b->node].guid, guid_a = w->after->nodes[a->node].guid;
    return FAB_ORDER(guid_b, guid_a) ?: FAB_ORDER(b->num, a->num);
}

static bool diff_port_is_cabled(const struct fab_port *port)
{
    return port != NULL && port->peer != FAB_NONE;
}

static bool diff_port_is_device(const struct fab_inventory *inv, const struct fab_port *port)
{
    return diff_port_is_cabled(port) && inv->nodes[port->node].kind == FAB_HCA;
}

/* Each cable is looked at from its lower end. */
static bool is_lower_end(const struct fab_inventory *inv, const struct fab_port *port)
{
    return diff_port_is_cabled(port) && (uint32_t)(port - inv->ports) < port->peer;
}

static void one_sided_device(struct diff_walk *w, const struct fab_inventory *inv,
                             const struct fab_port *port)
{
    const struct fab_node *node = &inv->nodes[port->node];
    bool added = inv == w->after;
    char what[FAB_PORT_TEXT], guid[DIFF_GUID_TEXT];

    fab_port_text(inv, port, what);
    diff_guid_text(node->guid, guid);
    diff_add(w, added ? FAB_CHANGE_DEVICE_ADDED : FAB_CHANGE_DEVICE_LOST, node->guid, port->num, what,
             added ? "" : guid, added ? guid : "");
    diff_note_host(w, fab_str(inv, node->host));
}

static void one_sided_link(struct diff_walk *w, const struct fab_inventory *inv, const struct fab_port *port)
{
    bool added = inv == w->after;
    char what[FAB_LINK_TEXT], rate[32];

    fab_link_text(inv, port, what);
    fab_rate_text(port, rate);
    diff_add(w, added ? FAB_CHANGE_LINK_ADDED : FAB_CHANGE_LINK_LOST, inv->nodes[port->node].guid, port->num,
             what, added ? "" : rate, added ? rate : "");
}

static void diff_compare_cables(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    bool had = is_lower_end(w->before, b), has = is_lower_end(w->after, a);

    if (!had && !has)
        return;
    const struct fab_port *peer_b = had ? &w->before->ports[b->peer] : NULL;
    const struct fab_port *peer_a = has ? &w->after->ports[a->peer] : NULL;
    if (!had || !has || diff_compare_ports(w, peer_b, peer_a) != 0) {
        if (had)
            one_sided_link(w, w->before, b);
        if (has)
            one_sided_link(w, w->after, a);
        return;
    }
    bool lower_same = fab_same_rate(b, a);
    if (lower_same && fab_same_rate(peer_b, peer_a))
        return;
    char what[FAB_LINK_TEXT], rate_b[32], rate_a[32];
    fab_link_text(w->after, a, what);
    fab_rate_text(lower_same ? peer_b : b, rate_b);
    fab_rate_text(lower_same ? peer_a : a, rate_a);
    diff_add(w, FAB_CHANGE_LINK_RATE, w->after->nodes[a->node].guid, a->num, what, rate_b, rate_a);
}

static void other_fact(struct diff_walk *w, const struct fab_port *port, const char *of, const char *word,
                       const char *before, const char *after)
{
    char what[FAB_LINK_TEXT];
    snprintf(what, sizeof(what), "%s: %s", of, word);
    diff_add(w, FAB_CHANGE_OTHER, w->after->nodes[port->node].guid, port->num, what, before, after);
}

/* The cable of an HCA that is seen keeps its place, or is seen again. Of an HCA that went altogether is told
 * that it is missing. */
static void diff_compare_absent_port(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    const bool gone = w->after->nodes[a->node].missing && !w->before->nodes[b->node].missing;
    char what[FAB_LINK_TEXT];

    if (b->missing == a->missing || (!a->missing && gone))
        return;
    fab_link_text(w->after, a, what);
    diff_add(w, a->missing ? FAB_CHANGE_PORT_MISSING : FAB_CHANGE_PORT_BACK, w->after->nodes[a->node].guid,
             a->num, what, a->missing ? "there" : "missing", a->missing ? "missing" : "there");
}

/* What is kept of a port beside its cable. A port that lost or got its cable has been told of. */
static void diff_compare_facts(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    char of[FAB_PORT_TEXT], text_b[32], text_a[32];
    uint64_t guid = w->after->nodes[a->node].guid;
    bool cabled = diff_port_is_cabled(b);

    if (cabled != diff_port_is_cabled(a) ||
        (b->guid == a->guid && b->lid == a->lid && b->lmc == a->lmc && b->state == a->state &&
         b->subnet == a->subnet && b->missing == a->missing && (cabled || fab_same_rate(b, a))))
        return;
    if (cabled)
        diff_compare_absent_port(w, b, a);
    fab_port_text(w->after, a, of);
    /* That what is missing is down goes without saying. */
    if (b->state != a->state && fab_port_is_missing(w->before, b) == fab_port_is_missing(w->after, a)) {
        const char *state_b = fab_state_text(b->state), *state_a = fab_state_text(a->state);
        if (cabled && (b->state == FAB_PORT_ACTIVE || a->state == FAB_PORT_ACTIVE))
            diff_add(w, FAB_CHANGE_PORT_STATE, guid, a->num, of, state_b, state_a);
        else
            other_fact(w, a, of, "state", state_b, state_a);
    }
    diff_lid(w, of, guid, a->num, b->lid, a->lid);
    if (!cabled && !fab_same_rate(b, a)) {
        fab_rate_text(b, text_b);
        fab_rate_text(a, text_a);
        other_fact(w, a, of, "rate", text_b, text_a);
    }
    diff_number(w, of, guid, a->num, "port GUID", b->guid, a->guid, 16);
    diff_number(w, of, guid, a->num, "LMC", b->lmc, a->lmc, 0);
    diff_number(w, of, guid, a->num, "subnet", b->subnet, a->subnet, 0);
}

/* A port without a cable that one side lists, of a node that both have. */
static void one_sided_port(struct diff_walk *w, const struct fab_inventory *inv, const struct fab_port *port)
{
    bool added = inv == w->after;
    const struct fab_inventory *other = added ? w->before : w->after;
    const struct fab_node *node = &inv->nodes[port->node];
    uint32_t same = fab_inventory_find(other, node->guid);
    const char *state = fab_state_text(port->state);
    char what[FAB_PORT_TEXT];

    if (same == FAB_NONE || other->nodes[same].kind != node->kind)
        return;
    fab_port_text(inv, port, what);
    diff_add(w, FAB_CHANGE_OTHER, node->guid, port->num, what, added ? "" : state, added ? state : "");
}

/* One port as either side has it; NULL: it has not. */
static void compare_port(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    bool was_device = diff_port_is_device(w->before, b);

    if (was_device != diff_port_is_device(w->after, a))
        one_sided_device(w, was_device ? w->before : w->after, was_device ? b : a);
    diff_compare_cables(w, b, a);
    if (b != NULL && a != NULL) {
        if (w->before->nodes[b->node].kind == w->after->nodes[a->node].kind)
            diff_compare_facts(w, b, a);
    } else if (b != NULL && b->peer == FAB_NONE) {
        one_sided_port(w, w->before, b);
    } else if (a != NULL && a->peer == FAB_NONE) {
        one_sided_port(w, w->after, a);
    }
}

void diff_ports(struct diff_walk *w)
{
    uint32_t i = 0, k = 0;

    while (i < w->before->n_ports || k < w->after->n_ports) {
        const struct fab_port *b = i < w->before->n_ports ? &w->before->ports[i] : NULL;
        const struct fab_port *a = k < w->after->n_ports ? &w->after->ports[k] : NULL;
        int order = b == NULL ? 1 : a == NULL ? -1 : diff_compare_ports(w, b, a);
        compare_port(w, order <= 0 ? b : NULL, order >= 0 ? a : NULL);
        i += order <= 0;
        k += order >= 0;
    }
}
