/* correlate_nodes.c - replaced nodes, and added nodes that were lost before. */
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

/* ---- texts ------------------------------------------------------------------------------------------- */

/* Write a GUID, with the name if that has changed. */
static void identity_text(uint64_t guid, const char *name, bool same_name, char *text)
{
    snprintf(text, DIFF_VALUE_TEXT, "0x%016" PRIx64 "%s%.240s", guid, same_name ? "" : " ",
             same_name ? "" : name);
}

/* Write the texts of a past node and of its present one. Return whether the name is the same. */
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

/* Add the old and the new name as subjects. */
static void subject_both(struct correlation *s, uint32_t past, uint32_t a)
{
    const struct past_node was = past_of(s, past);
    if (was.lost == NULL)
        subject_node(s, s->before, past);
    else
        subject(s, was.kind == FAB_HCA ? was.host : was.name);
    subject_node(s, s->after, a);
}

/*
 * Take the changes of a node that is in another node's former place: they compare two different places and
 * are reported with the present place.
 */
static void claim_comparison(struct correlation *s, uint64_t guid)
{
    static const enum fab_change_kind kinds[] = {FAB_CHANGE_NAME, FAB_CHANGE_LID, FAB_CHANGE_OTHER,
                                                 FAB_CHANGE_PORT_STATE};

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        claim_all_of_node(s, kinds[i], guid);
}

/*
 * Take both changes of the cable of this port of before if the port at its other end now leads to that node
 * of after. Return the node's port, or FAB_NONE.
 */
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

/*
 * Counts of all cables and of cables in their old places. Also the switch port of the first cable, and the
 * ports before and after of the first cable with another rate.
 */
struct cables_back {
    uint32_t n, back;
    char place[FAB_PORT_TEXT];
    const struct fab_port *rated[2];
};

/* Take the cables of a replaced node of before. */
static void claim_cables(struct correlation *s, const struct fab_node *old, uint32_t a,
                         struct cables_back *cables)
{
    for (uint32_t port = old->first_port; port < old->first_port + old->n_ports; port++) {
        const uint32_t end = claim_same_cable(s, port, a);
        const struct fab_port *x = &s->before->ports[port];
        cables->n += x->peer != FAB_NONE;
        if (end == FAB_NONE)
            continue;
        const struct fab_port *y = &s->after->ports[end];
        cables->back += !fab_port_is_missing(s->after, y);
        subject_link(s, s->before, port);
        if (cables->place[0] == '\0')
            fab_port_text(s->before, &s->before->ports[x->peer], cables->place);
        if (cables->rated[0] == NULL && !fab_same_rate(x, y)) {
            cables->rated[0] = x;
            cables->rated[1] = y;
        }
    }
}

/* ---- switches ------------------------------------------------------------------------------------- */

static void claim_cables_of_lost_switch(struct correlation *s, uint64_t guid, struct cables_back *cables)
{
    for (uint32_t e = lost_ends_from(s, guid, 0); e < s->n_ends && s->ends[e].guid == guid; e++) {
        const struct lost_end *end = &s->ends[e];
        if (e > 0 && end[-1].guid == end->guid && end[-1].num == end->num)
            continue; /* what this port had before that */
        const uint32_t port = back_at(s, end->cable, end->side);
        cables->n++;
        if (port == FAB_NONE)
            continue;
        cables->back++;
        if (!is_kind(s->after, peer_node(s->after, port), FAB_HCA))
            claim_link(s, s->after, port);
        subject_link(s, s->after, port);
    }
}

static void conclude_switch(struct correlation *s, uint32_t past)
{
    const uint32_t a = s->to_after[past];
    const struct past_node was = past_of(s, past);
    const struct fab_told_end is = node_end(s->after, a);
    const bool lost = was.lost != NULL;
    struct cables_back cables = {.n = 0};
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
    if (lost)
        claim_cables_of_lost_switch(s, was.guid, &cables);
    else
        claim_cables(s, &s->before->nodes[past], a, &cables);
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

/* ---- HCAs ------------------------------------------------------------------------------------------ */

static void claim_devices(struct correlation *s, enum fab_change_kind kind, const struct fab_inventory *inv,
                          const struct fab_node *node)
{
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++)
        claim(s, kind, port_end(inv, port));
    /* of one without a cable, and of uncabled ports that were listed */
    claim_all_of_node(s, FAB_CHANGE_OTHER, node->guid);
}

/* Take all changes that an HCA of before was lost and another one was added. */
static void claim_replaced(struct correlation *s, uint32_t b, uint32_t a, struct cables_back *cables)
{
    const struct fab_node *old = &s->before->nodes[b], *new = &s->after->nodes[a];
    const char *was = fab_str(s->before, old->host), *is = fab_str(s->after, new->host);

    claim_devices(s, FAB_CHANGE_DEVICE_LOST, s->before, old);
    claim_devices(s, FAB_CHANGE_DEVICE_ADDED, s->after, new);
    claim_comparison(s, new->guid);
    if (strcmp(was, is) != 0) {
        claim_host(s, FAB_CHANGE_HOST_LOST, was);
        claim_host(s, FAB_CHANGE_HOST_ADDED, is);
    }
    claim_cables(s, old, a, cables);
}

/* Return the cable lost last at a port of an HCA, or NULL. */
static const struct lost_end *lost_cable_of(const struct correlation *s, uint32_t port)
{
    const struct fab_port *at = &s->after->ports[port];
    return at->peer == FAB_NONE ? NULL : lost_at(s, guid_then(s, at->node), at->num);
}

static bool has_moved(const struct correlation *s, const struct lost_end *end)
{
    return end != NULL && back_at(s, end->cable, end->side) == FAB_NONE;
}

/*
 * Take the devices of an added node and its cables in their old places. `place`: the first one's switch port.
 * Return the number of cables elsewhere.
 */
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

static void conclude_hca(struct correlation *s, uint32_t past)
{
    const uint32_t a = s->to_after[past];
    const struct fab_node *node = &s->after->nodes[a];
    const struct past_node was = past_of(s, past);
    const struct fab_told_end is = node_end(s->after, a);
    const bool lost = was.lost != NULL, same = was.guid == node->guid;
    struct cables_back cables = {.n = 0};
    uint32_t n_moved = 0;
    char when[LOST_TEXT];

    subject_both(s, past, a);
    if (!lost)
        claim_replaced(s, past, a, &cables);
    else
        n_moved = claim_devices_back(s, node, !same || !has_known_port(s, node), cables.place);
    if (lost && s->now.n_taken > 0)
        claim_host(s, FAB_CHANGE_HOST_ADDED, fab_str(s->after, node->host));
    const bool same_name = describe(s, &was, a), anything = s->now.n_taken > 0;
    const char *at = cables.place[0] == '\0' ? "" : same ? " at its old port " : " at the same port ";
    if (cables.rated[0] != NULL) {
        append_rate(s->now.before, cables.rated[0]->width, cables.rated[0]->speed);
        append_rate(s->now.after, cables.rated[1]->width, cables.rated[1]->speed);
    }
    if ((lost && !anything) || (same && n_moved > 0 && cables.place[0] == '\0' && same_name))
        unsay(s); /* only its present place remains to be reported, if anything */
    else if (same)
        conclude(s, FAB_CHANGE_HOST_BACK, is, "the same GUID%s%.200s; it was %s", at, cables.place,
                 lost_text(was.lost, when));
    else
        conclude(s, FAB_CHANGE_HCA_REPLACED, is, "another GUID%s%s%.200s%s%s",
                 same_name ? " under the same host's and device's name" : "", at, cables.place,
                 lost ? "; the former was " : "", lost ? lost_text(was.lost, when) : "");
    if (lost && anything)
        conclude_ports_moved(s, node);
}

/* Conclude for past nodes from `first` on that are another node now, or were lost. */
static void conclude_nodes(struct correlation *s, uint32_t first, uint32_t end)
{
    for (unsigned kind = FAB_SWITCH; kind <= FAB_HCA; kind++)
        for (uint32_t p = first; p < end; p++) {
            const struct past_node was = past_of(s, p);
            const uint32_t a = s->to_after[p];
            if (a == FAB_NONE || was.kind != kind ||
                (was.lost == NULL && was.guid == s->after->nodes[a].guid))
                continue;
            if (kind == FAB_SWITCH)
                conclude_switch(s, p);
            else
                conclude_hca(s, p);
        }
}

void conclude_replaced(struct correlation *s)
{
    conclude_nodes(s, 0, s->before->n_nodes);
}

/* Conclude for a port of an HCA that was present all the time, or had no cable. */
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
    conclude_nodes(s, s->before->n_nodes, s->n_past);
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->raw->changes[i].kind == FAB_CHANGE_DEVICE_ADDED && !s->taken[i])
            conclude_port_returned(s, i);
    }
}
