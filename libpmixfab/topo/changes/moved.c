/* moved.c - cables that moved, and ports that went down or came up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/changes/correlation.h"

/* ---- hosts ---------------------------------------------------------------------------------------- */

/* A port of before that is missing and has lost its cable, too, is kept where it never was
 * (topo/model/retain.h): that cable, and which end of it the port is. NULL: it is none of these. */
static struct fab_lost_item *displaced_from(struct correlation *s, uint32_t b, int *side)
{
    const struct fab_port *port = &s->before->ports[b];

    if (!fab_port_is_missing(s->before, port) || !correlation_prepare_lost(s))
        return NULL;
    const struct lost_end *end = correlation_lost_at(s, s->before->nodes[port->node].guid, port->num);
    if (end == NULL || correlation_cable(s, end)->used)
        return NULL;
    *side = end->side;
    return correlation_cable(s, end);
}

/* A port that is missing, and is kept elsewhere from now on, since another cable is where it was. */
static void host_displaced(struct correlation *s, uint32_t b, uint32_t a)
{
    const uint32_t from = s->before->ports[b].peer, lower = from < b ? from : b;
    const struct fab_port *old = &s->before->ports[b];
    const uint64_t guid = s->before->nodes[old->node].guid;
    char what[FAB_LINK_TEXT], before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT], port[FAB_PORT_TEXT];
    int side;

    correlation_subject_link(s, s->before, b);
    claim_raw(s, FAB_CHANGE_PORT_MISSING, guid, old->num);
    if (displaced_from(s, b, &side) != NULL) { /* once more */
        fab_port_text(s->before, old, port);
        snprintf(what, sizeof(what), "%s: kept at", port);
        correlation_end_text(s->before, from, false, before);
        correlation_end_text(s->after, s->after->ports[a].peer, false, after);
        correlation_conclude(s, FAB_CHANGE_OTHER, guid, old->num, what, before, after,
                             "it is missing, and another cable is in the port that was kept for it");
        return;
    }
    fab_link_text(s->before, &s->before->ports[lower], what);
    fab_rate_text(old, before);
    correlation_conclude(s, FAB_CHANGE_LINK_LOST, s->before->nodes[s->before->ports[lower].node].guid,
                         s->before->ports[lower].num, what, before, "",
                         "its place at the switch is taken; it is missing, and its numbers are kept");
}

/* It is back: at a place, or where it was before it was kept elsewhere. */
static void displaced_back(struct correlation *s, uint32_t b, uint32_t a, struct fab_lost_item *lost,
                           int side)
{
    const struct fab_port *port = &s->after->ports[a], *to = &s->after->ports[port->peer];
    const struct fab_node *node = &s->after->nodes[port->node];
    char what[FAB_LINK_TEXT], before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT];

    lost->used = true;
    claim_raw(s, FAB_CHANGE_PORT_BACK, node->guid, port->num);
    correlation_subject_node(s, s->before, s->before->ports[b].node);
    correlation_subject_link(s, s->after, a);
    if (lost->end[!side].guid != s->after->nodes[to->node].guid || lost->end[!side].num != to->num) {
        fab_port_text(s->after, port, what);
        correlation_end_texts(s, lost, !side, port->peer, before, after);
        correlation_conclude(s, FAB_CHANGE_HOST_MOVED, node->guid, port->num, what, before, after,
                             "the same GUID at another port");
        return;
    }
    const bool whole = claim_raw(s, FAB_CHANGE_HOST_BACK, node->guid, 0) != FAB_NONE;
    if (whole)
        fab_node_text(s->after, node, what);
    else
        fab_link_text(s->after, port, what);
    correlation_conclude(s, whole ? FAB_CHANGE_HOST_BACK : FAB_CHANGE_PORT_BACK, node->guid,
                         whole ? 0 : port->num, what, "missing", "there",
                         "it is seen again, at its old place");
}

/* As above, where it is kept: nothing else says that it is not where it was. */
static void displaced_stays(struct correlation *s, uint32_t b, uint32_t a)
{
    const struct fab_port *port = &s->after->ports[a], *to = &s->after->ports[port->peer];
    const uint64_t guid = s->after->nodes[port->node].guid;
    int side;

    if (fab_port_is_missing(s->after, port))
        return;
    struct fab_lost_item *lost = displaced_from(s, b, &side);
    if (lost == NULL ||
        (lost->end[!side].guid == s->after->nodes[to->node].guid && lost->end[!side].num == to->num))
        return;
    claim_raw(s, FAB_CHANGE_HOST_BACK, guid, 0);
    claim_raw(s, FAB_CHANGE_PORT_BACK, guid, port->num);
    if (s->n_taken > 0)
        displaced_back(s, b, a, lost, side);
}

/* A port of an HCA that has a cable before and after, at another port. */
static void host_moved(struct correlation *s, uint32_t b, uint32_t a)
{
    uint32_t from = s->before->ports[b].peer, to = s->after->ports[a].peer;
    const struct fab_node *old = &s->before->nodes[s->before->ports[b].node],
                          *new = &s->after->nodes[s->after->ports[a].node];
    char what[FAB_PORT_TEXT], before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT];
    int side = 0;

    claim_raw_link(s, FAB_CHANGE_LINK_LOST, s->before, b);
    claim_raw_link(s, FAB_CHANGE_LINK_ADDED, s->after, a);
    if (s->n_taken == 0) /* the other end is an HCA as well, and it was told of that */
        return;
    if (fab_port_is_missing(s->after, &s->after->ports[a])) {
        host_displaced(s, b, a);
        return;
    }
    struct fab_lost_item *lost = displaced_from(s, b, &side);
    if (lost != NULL) {
        displaced_back(s, b, a, lost, side);
        return;
    }
    const bool same_rate = fab_same_rate(&s->before->ports[b], &s->after->ports[a]);
    claim_raw(s, FAB_CHANGE_PORT_BACK, new->guid, s->after->ports[a].num); /* where it is says that it is */
    correlation_subject_link(s, s->before, b);
    correlation_subject_link(s, s->after, a);
    fab_port_text(s->before, &s->before->ports[b], what);
    correlation_end_text(s->before, from, !same_rate, before);
    correlation_end_text(s->after, to, !same_rate, after);
    correlation_conclude(s, FAB_CHANGE_HOST_MOVED, new->guid, s->after->ports[a].num, what, before, after,
                         old->guid == new->guid ? "the same GUID at another port"
                                                : "what replaced it is at another port");
}

void correlation_hosts_moved(struct correlation *s)
{
    for (uint32_t b = 0; b < s->before->n_ports; b++) {
        const struct fab_port *port = &s->before->ports[b];
        if (port->peer == FAB_NONE || !is_kind(s->before, port->node, FAB_HCA))
            continue;
        uint32_t a = correlation_port_after(s, b);
        uint32_t to = a == FAB_NONE ? FAB_NONE : s->after->ports[a].peer;
        if (to != FAB_NONE && correlation_port_after(s, port->peer) != to)
            host_moved(s, b, a);
        else if (to != FAB_NONE)
            displaced_stays(s, b, a);
    }
}

/* ---- cables between switches ---------------------------------------------------------------------- */

uint32_t correlation_switch_link(const struct fab_inventory *inv, const struct fab_change *change)
{
    uint32_t node = fab_inventory_find(inv, change->guid);
    uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, change->port);
    if (port == FAB_NONE || inv->ports[port].peer == FAB_NONE || is_kind(inv, node, FAB_HCA) ||
        is_kind(inv, inv->ports[inv->ports[port].peer].node, FAB_HCA))
        return FAB_NONE;
    return port;
}

/* b and a: the ends, or one of the two where both moved. */
static void cable_moved(struct correlation *s, uint32_t b, uint32_t a, bool both)
{
    char what[FAB_LINK_TEXT], before[DIFF_VALUE_TEXT], after[FAB_LINK_TEXT];
    const struct fab_port *old = &s->before->ports[b], *new = &s->after->ports[a];
    const bool same_rate = fab_same_rate(old, new);

    correlation_subject_link(s, s->before, b);
    correlation_subject_link(s, s->after, a);
    fab_link_text(s->before, old, what);
    if (both) {
        snprintf(before, sizeof(before), "%.270s", what);
        fab_link_text(s->after, new, after);
    } else {
        correlation_end_text(s->before, old->peer, !same_rate, before);
        correlation_end_text(s->after, new->peer, !same_rate, after);
    }
    correlation_conclude(s, FAB_CHANGE_CABLE_MOVED, s->after->nodes[new->node].guid, new->num, what, before,
                         after,
                         both ? "a cable between the same two switches, on other ports"
                              : "one end is where it was, the other on another port");
}

/* A cable that went, and one that came on the port where this end is. */
static bool moved_from(struct correlation *s, uint32_t raw, uint32_t end)
{
    uint32_t a = correlation_port_after(s, end);

    if (a == FAB_NONE || s->after->ports[a].peer == FAB_NONE ||
        is_kind(s->after, s->after->ports[s->after->ports[a].peer].node, FAB_HCA) ||
        claim_raw_link(s, FAB_CHANGE_LINK_ADDED, s->after, a) == FAB_NONE)
        return false;
    claim_raw_this(s, raw);
    cable_moved(s, end, a, false);
    return true;
}

static bool same_switches(const struct correlation *s, uint32_t b, uint32_t a)
{
    const struct fab_port *x = &s->before->ports[b], *y = &s->after->ports[a];
    uint32_t one = s->to_after[x->node], other = s->to_after[s->before->ports[x->peer].node];
    uint32_t there = s->after->ports[y->peer].node;

    return one != FAB_NONE && other != FAB_NONE &&
           ((one == y->node && other == there) || (one == there && other == y->node));
}

/* Where a run of changes of one kind begins and ends. */
struct span {
    uint32_t first, end;
};

static struct span find_kind(const struct correlation *s, enum fab_change_kind kind)
{
    struct span span = {0, 0};
    while (span.first < s->raw->n && s->raw->changes[span.first].kind < kind)
        span.first++;
    for (span.end = span.first; span.end < s->raw->n && s->raw->changes[span.end].kind == kind;)
        span.end++;
    return span;
}

static void both_ends_moved(struct correlation *s, uint32_t lost, uint32_t b, struct span added)
{
    for (uint32_t i = added.first; i < added.end; i++) {
        uint32_t a = s->taken[i] ? FAB_NONE : correlation_switch_link(s->after, &s->raw->changes[i]);
        if (a == FAB_NONE || !same_switches(s, b, a))
            continue;
        claim_raw_this(s, lost);
        claim_raw_this(s, i);
        cable_moved(s, b, a, true);
        return;
    }
}

/* Drop those that are told, and those at an HCA, which are told with it. */
static uint32_t list_links(const struct correlation *s, struct span span, const struct fab_inventory *inv)
{
    uint32_t n = 0;
    for (uint32_t i = span.first; i < span.end; i++)
        n += !s->taken[i] && correlation_switch_link(inv, &s->raw->changes[i]) != FAB_NONE;
    return n;
}

void correlation_cables_moved(struct correlation *s)
{
    struct span lost = find_kind(s, FAB_CHANGE_LINK_LOST), added = find_kind(s, FAB_CHANGE_LINK_ADDED);

    for (uint32_t i = lost.first; i < lost.end; i++) {
        uint32_t b = s->taken[i] ? FAB_NONE : correlation_switch_link(s->before, &s->raw->changes[i]);
        if (b != FAB_NONE && !moved_from(s, i, b))
            moved_from(s, i, s->before->ports[b].peer);
    }
    /* A storm that rewires everything is not searched for pairs. */
    uint64_t pairs = (uint64_t)list_links(s, lost, s->before) * list_links(s, added, s->after);
    for (uint32_t i = lost.first; pairs > 0 && pairs <= 1000000 && i < lost.end; i++) {
        uint32_t b = s->taken[i] ? FAB_NONE : correlation_switch_link(s->before, &s->raw->changes[i]);
        if (b != FAB_NONE)
            both_ends_moved(s, i, b, added);
    }
}

/* ---- ports that go down or come up ---------------------------------------------------------------- */

static void port_changed(struct correlation *s, uint32_t raw)
{
    const struct fab_change *change = claim_raw_this(s, raw);
    uint32_t node = fab_inventory_find(s->after, change->guid);
    uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(s->after, node, change->port);
    bool up = port != FAB_NONE && s->after->ports[port].state == FAB_PORT_ACTIVE;
    const char *why = "the cable is there, its port says so";
    char what[FAB_LINK_TEXT];

    snprintf(what, sizeof(what), "%s", change->what);
    if (port != FAB_NONE && s->after->ports[port].peer != FAB_NONE) {
        const struct fab_port *peer = &s->after->ports[s->after->ports[port].peer];
        uint64_t guid = s->after->nodes[peer->node].guid;
        bool peer_up = peer->state == FAB_PORT_ACTIVE;
        fab_link_text(s->after, &s->after->ports[port], what);
        correlation_subject_link(s, s->after, port);
        if (peer_up == up && claim_raw(s, FAB_CHANGE_PORT_STATE, guid, peer->num) != FAB_NONE)
            why = "the cable is there, the ports at both its ends say so";
    }
    correlation_conclude(s, up ? FAB_CHANGE_PORT_UP : FAB_CHANGE_PORT_DOWN, change->guid, change->port, what,
                         change->before, change->after, why);
}

void correlation_ports(struct correlation *s)
{
    struct span states = find_kind(s, FAB_CHANGE_PORT_STATE);
    for (uint32_t i = states.first; i < states.end; i++) {
        if (!s->taken[i])
            port_changed(s, i);
    }
}
