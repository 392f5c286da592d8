/* correlate_nodes.c - nodes in whose place another one is, and what came, told as what was lost. */
#include <inttypes.h>
#include <stdio.h>

#include "topo/changes/changes_private.h"

static bool has_name(const struct fab_inventory *inv, const char *name)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        if (strcmp(fab_node_known_as(inv, &inv->nodes[i]), name) == 0)
            return true;
    }
    return false;
}

bool is_renamed(const struct correlation *s, const char *was, uint32_t after)
{
    const char *name = fab_node_known_as(s->after, &s->after->nodes[after]);
    return *was != '\0' && *name != '\0' && strcmp(was, name) != 0 && !has_name(s->after, was) &&
           !has_name(s->before, name);
}

/* ---- words ----------------------------------------------------------------------------------------- */

/* A GUID, with the name where it is another one than before. */
static void identity_text(uint64_t guid, const char *name, bool same_name, char *text)
{
    snprintf(text, DIFF_VALUE_TEXT, "0x%016" PRIx64 "%s%.240s", guid, same_name ? "" : " ",
             same_name ? "" : name);
}

/* What a node of the past was, and what of after it is now. Returns whether its name is the same. */
static bool describe(struct correlation *s, const struct past_node *was, uint32_t a)
{
    const struct fab_node *is = &s->after->nodes[a];
    struct conclusion *now = &s->now;
    char name[FAB_NODE_TEXT];

    fab_name_text(was->kind, was->guid, was->host, was->name, now->what);
    fab_plain_text(s->after, is, name);
    const bool same_name = strcmp(now->what, name) == 0;
    if (was->guid == is->guid) {
        snprintf(now->before, sizeof(now->before), "lost");
        snprintf(now->after, sizeof(now->after), "there%s%.240s", same_name ? "" : " as ",
                 same_name ? "" : name);
    } else {
        identity_text(was->guid, now->what, same_name, now->before);
        identity_text(is->guid, name, same_name, now->after);
        now->former = was->guid;
    }
    now->was_lost = was->lost != NULL;
    now->seen = was->lost != NULL ? was->lost->seen : 0;
    now->renamed = is_renamed(s, was->kind == FAB_HCA ? was->host : was->name, a);
    return same_name;
}

/* The name that it had, and the one that it has. */
static void subject_both(struct correlation *s, uint32_t past, uint32_t a)
{
    const struct past_node was = past_node(s, past);
    if (was.lost == NULL)
        subject_node(s, s->before, past);
    else
        subject(s, was.kind == FAB_HCA ? was.host : was.name);
    subject_node(s, s->after, a);
}

/* What is told by GUID of a node that was another's place before compares two places: it is told with the one
 * where the node is now. */
static void claim_comparison(struct correlation *s, uint64_t guid)
{
    static const enum fab_change_kind kinds[] = {FAB_CHANGE_NAME, FAB_CHANGE_LID, FAB_CHANGE_OTHER,
                                                 FAB_CHANGE_PORT_STATE};

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        claim_all_of_node(s, kinds[i], guid);
}

/* The cable of this port of before, if the port at its other end now leads to that node of after: its two
 * changes are taken. FAB_NONE: it does not; else the node's port. */
static uint32_t claim_same_cable(struct correlation *s, uint32_t port, uint32_t node)
{
    const uint32_t peer = s->before->ports[port].peer;
    const uint32_t near = peer == FAB_NONE ? FAB_NONE : port_after(s, peer);
    const uint32_t end = near == FAB_NONE ? FAB_NONE : s->after->ports[near].peer;

    if (end == FAB_NONE || s->after->ports[end].node != node)
        return FAB_NONE;
    claim_link(s, s->before, port);
    claim_link(s, s->after, end);
    return end;
}

/* ---- switches ------------------------------------------------------------------------------------- */

/* Cables, and those of them that are where they were. */
struct cables_back {
    uint32_t n, back;
};

static struct cables_back claim_cables_of_switch(struct correlation *s, const struct fab_node *old,
                                                 uint32_t a)
{
    struct cables_back cables = {0, 0};

    for (uint32_t port = old->first_port; port < old->first_port + old->n_ports; port++) {
        const uint32_t end = claim_same_cable(s, port, a);
        cables.n += s->before->ports[port].peer != FAB_NONE;
        if (end == FAB_NONE)
            continue;
        cables.back += !fab_port_is_missing(s->after, &s->after->ports[end]);
        subject_link(s, s->before, port);
    }
    return cables;
}

static struct cables_back claim_cables_of_lost_switch(struct correlation *s, uint64_t guid)
{
    struct cables_back cables = {0, 0};

    for (uint32_t e = lost_ends_from(s, guid, 0); e < s->n_ends && s->ends[e].guid == guid; e++) {
        const struct lost_end *end = &s->ends[e];
        if (e > 0 && end[-1].guid == end->guid && end[-1].num == end->num)
            continue; /* what was in this port before that */
        const uint32_t port = back_at(s, end->cable, end->side);
        cables.n++;
        if (port == FAB_NONE)
            continue;
        cables.back++;
        if (!is_kind(s->after, peer_node(s->after, port), FAB_HCA))
            claim_link(s, s->after, port);
        subject_link(s, s->after, port);
    }
    return cables;
}

static void conclude_switch(struct correlation *s, uint32_t past)
{
    const uint32_t a = s->to_after[past];
    const struct past_node was = past_node(s, past);
    const struct fab_told_end is = node_end(s->after, a);
    const bool lost = was.lost != NULL;
    char why[DIFF_WHY_TEXT], when[LOST_TEXT];

    if (!lost) {
        claim(s, FAB_CHANGE_SWITCH_LOST, (struct fab_told_end){was.guid, 0});
        claim(s, FAB_CHANGE_SWITCH_ADDED, is);
        claim_comparison(s, is.guid);
    } else if (claim(s, FAB_CHANGE_SWITCH_ADDED, is) == FAB_NONE) {
        return;
    }
    describe(s, &was, a);
    subject_both(s, past, a);
    const struct cables_back cables = lost ? claim_cables_of_lost_switch(s, was.guid)
                                           : claim_cables_of_switch(s, &s->before->nodes[past], a);
    if (was.guid == is.guid)
        snprintf(why, sizeof(why), "the same GUID, with %" PRIu32 " of its %" PRIu32 " cable%s", cables.back,
                 cables.n, cables.n == 1 ? "" : "s");
    else if (cables.n == 1)
        snprintf(why, sizeof(why), "its cable leads to another switch now");
    else
        snprintf(why, sizeof(why), "%" PRIu32 " of its %" PRIu32 " cables lead%s to another switch now",
                 cables.back, cables.n, cables.back == 1 ? "s" : "");
    conclude(s, was.guid == is.guid ? FAB_CHANGE_SWITCH_BACK : FAB_CHANGE_SWITCH_REPLACED, is, "%s%s%s", why,
             lost ? "; it was " : "", lost ? lost_text(was.lost, when) : "");
}

/* ---- HCAs that were replaced -------------------------------------------------------------------------- */

static void claim_devices(struct correlation *s, enum fab_change_kind kind, const struct fab_inventory *inv,
                          const struct fab_node *node)
{
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++)
        claim(s, kind, port_end(inv, port));
    /* of one that had no cable, and of ports that were listed without */
    claim_all_of_node(s, FAB_CHANGE_OTHER, node->guid);
}

/* The cables that stay where they are. `place`: the first one's switch port; rated: the ports of the first
 * one whose rate is another now, before and after; NULL. */
static bool claim_cables_of_hca(struct correlation *s, const struct fab_node *old, uint32_t a,
                                char place[FAB_PORT_TEXT], const struct fab_port *rated[2])
{
    bool stayed = false;

    place[0] = '\0';
    rated[0] = NULL;
    for (uint32_t port = old->first_port; port < old->first_port + old->n_ports; port++) {
        const uint32_t end = claim_same_cable(s, port, a);
        if (end == FAB_NONE)
            continue;
        const struct fab_port *x = &s->before->ports[port], *y = &s->after->ports[end];
        subject_link(s, s->before, port);
        if (!stayed)
            fab_port_text(s->before, &s->before->ports[x->peer], place);
        stayed = true;
        if (rated[0] == NULL && !fab_same_rate(x, y)) {
            rated[0] = x;
            rated[1] = y;
        }
    }
    return stayed;
}

static void conclude_hca_replaced(struct correlation *s, uint32_t b)
{
    const uint32_t a = s->to_after[b];
    const struct fab_node *old = &s->before->nodes[b], *new = &s->after->nodes[a];
    const struct past_node was = past_node(s, b);
    const char *host = fab_str(s->after, new->host);
    const bool same_host = strcmp(was.host, host) == 0;
    const bool same_slot = same_host && strcmp(was.name, fab_str(s->after, new->name)) == 0;
    const struct fab_port *rated[2];
    char place[FAB_PORT_TEXT];

    subject_both(s, b, a);
    claim_devices(s, FAB_CHANGE_DEVICE_LOST, s->before, old);
    claim_devices(s, FAB_CHANGE_DEVICE_ADDED, s->after, new);
    claim_comparison(s, new->guid);
    if (!same_host) {
        claim_host(s, FAB_CHANGE_HOST_LOST, was.host);
        claim_host(s, FAB_CHANGE_HOST_ADDED, host);
    }
    const bool stayed = claim_cables_of_hca(s, old, a, place, rated);
    describe(s, &was, a);
    if (rated[0] != NULL) {
        append_rate(s->now.before, rated[0]->width, rated[0]->speed);
        append_rate(s->now.after, rated[1]->width, rated[1]->speed);
    }
    conclude(s, FAB_CHANGE_HCA_REPLACED, node_end(s->after, a), "another GUID%s%s%.300s",
             same_slot ? " under the same host's and device's name" : "", stayed ? " at the same port " : "",
             place);
}

void conclude_replaced(struct correlation *s)
{
    for (unsigned kind = FAB_SWITCH; kind <= FAB_HCA; kind++)
        for (uint32_t b = 0; b < s->before->n_nodes; b++) {
            const uint32_t a = s->to_after[b];
            if (a == FAB_NONE || !is_kind(s->before, b, kind) ||
                s->before->nodes[b].guid == s->after->nodes[a].guid)
                continue;
            if (kind == FAB_SWITCH)
                conclude_switch(s, b);
            else
                conclude_hca_replaced(s, b);
        }
}

/* ---- HCAs that were lost ------------------------------------------------------------------------------ */

/* The cable of a port of an HCA that was lost last; NULL. */
static const struct lost_end *lost_cable_of(const struct correlation *s, uint32_t port)
{
    const struct fab_port *at = &s->after->ports[port];
    return at->peer == FAB_NONE ? NULL : lost_at(s, guid_then(s, at->node), at->num);
}

static bool has_moved(const struct correlation *s, const struct lost_end *end)
{
    return end != NULL && back_at(s, end->cable, end->side) == FAB_NONE;
}

/* Take the devices of a node that came, and the cables that are where they were. `place`: the first one's
 * switch port. Returns how many cables are elsewhere. */
static uint32_t claim_devices_back(struct correlation *s, const struct fab_node *node, bool all,
                                   char place[FAB_PORT_TEXT])
{
    bool stayed = false;
    uint32_t n_moved = 0;

    place[0] = '\0';
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++) {
        const struct lost_end *end = lost_cable_of(s, port);
        if (end == NULL && !all)
            continue;
        claim(s, FAB_CHANGE_DEVICE_ADDED, port_end(s->after, port));
        n_moved += has_moved(s, end);
        if (has_moved(s, end) || s->after->ports[port].peer == FAB_NONE)
            continue;
        claim_link(s, s->after, port);
        subject_link(s, s->after, port);
        if (!stayed && end != NULL)
            fab_port_text(s->after, &s->after->ports[s->after->ports[port].peer], place);
        stayed |= end != NULL;
    }
    return n_moved;
}

static void conclude_ports_moved(struct correlation *s, const struct fab_node *node)
{
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++) {
        const struct lost_end *end = lost_cable_of(s, port);
        if (has_moved(s, end))
            conclude_port_moved(s, port, end);
    }
}

static bool has_known_port(const struct correlation *s, const struct fab_node *node)
{
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++) {
        if (lost_cable_of(s, port) != NULL)
            return true;
    }
    return false;
}

static void conclude_hca_returned(struct correlation *s, uint32_t past)
{
    const uint32_t a = s->to_after[past];
    const struct fab_node *node = &s->after->nodes[a];
    const struct past_node was = past_node(s, past);
    const struct fab_told_end is = node_end(s->after, a);
    const bool same = was.guid == node->guid;
    char place[FAB_PORT_TEXT], name[FAB_NODE_TEXT], old_name[FAB_NODE_TEXT], when[LOST_TEXT];

    subject_both(s, past, a);
    const uint32_t n_moved = claim_devices_back(s, node, !same || !has_known_port(s, node), place);
    if (s->now.n_taken > 0)
        claim_host(s, FAB_CHANGE_HOST_ADDED, fab_str(s->after, node->host));
    fab_plain_text(s->after, node, name);
    fab_name_text(was.kind, was.guid, was.host, was.name, old_name);
    const bool only_moved = same && n_moved > 0 && place[0] == '\0' && strcmp(name, old_name) == 0;
    if (only_moved || s->now.n_taken == 0) { /* all that there is to tell is where it is now, if anything */
        s->now.n_subjects = 0;
        if (only_moved)
            conclude_ports_moved(s, node);
        return;
    }
    const bool same_name = describe(s, &was, a);
    lost_text(was.lost, when);
    if (same)
        conclude(s, FAB_CHANGE_HOST_BACK, is, "the same GUID%s%.200s; it was %s",
                 place[0] == '\0' ? "" : " at its old port ", place, when);
    else
        conclude(s, FAB_CHANGE_HCA_REPLACED, is, "another GUID%s%s%.200s; the former was %s",
                 same_name ? " under the same host's and device's name" : "",
                 place[0] == '\0' ? "" : " at the same port ", place, when);
    conclude_ports_moved(s, node);
}

/* A port of an HCA that was there all the time, or without any cable. */
static void conclude_port_returned(struct correlation *s, uint32_t raw)
{
    const struct fab_change *change = &s->raw->changes[raw];
    const uint32_t a = fab_inventory_find(s->after, change->guid);
    const uint32_t port = a == FAB_NONE || s->to_before[a] == FAB_NONE
                              ? FAB_NONE
                              : fab_inventory_port(s->after, a, change->port);
    const struct lost_end *end = port == FAB_NONE ? NULL : lost_cable_of(s, port);
    char when[LOST_TEXT];

    if (end == NULL)
        return;
    claim_this(s, raw);
    claim_host(s, FAB_CHANGE_HOST_ADDED, fab_str(s->after, s->after->nodes[a].host));
    if (has_moved(s, end)) {
        conclude_port_moved(s, port, end);
        return;
    }
    claim_link(s, s->after, port);
    subject_link(s, s->after, port);
    fab_link_text(s->after, &s->after->ports[port], s->now.what);
    say(s, NULL, "lost", "there");
    s->now.seen = end->cable->seen;
    s->now.was_lost = true;
    conclude(s, FAB_CHANGE_PORT_BACK, port_end(s->after, port),
             "the cable is seen again, at its old place; it was %s", lost_text(end->cable, when));
}

void conclude_returned(struct correlation *s)
{
    for (unsigned kind = FAB_SWITCH; kind <= FAB_HCA; kind++)
        for (uint32_t p = s->before->n_nodes; p < s->n_past; p++) {
            if (s->to_after[p] == FAB_NONE || past_node(s, p).kind != kind)
                continue;
            if (kind == FAB_SWITCH)
                conclude_switch(s, p);
            else
                conclude_hca_returned(s, p);
        }
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->raw->changes[i].kind == FAB_CHANGE_DEVICE_ADDED && !s->taken[i])
            conclude_port_returned(s, i);
    }
}
