/* correlate_cables.c - cables that moved or are back, and ports that went down or came up. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "topo/changes/changes_private.h"

/* ---- texts ------------------------------------------------------------------------------------------ */

const char *lost_text(const struct fab_lost_item *item, char text[LOST_TEXT])
{
    const time_t seconds = (time_t)(item->seen / 1000000);
    const int n = snprintf(text, LOST_TEXT, "lost in generation %" PRIu64, item->generation);
    struct tm tm;

    if (item->seen > 0 && n > 0 && n < LOST_TEXT && gmtime_r(&seconds, &tm) != NULL)
        strftime(text + n, (size_t)(LOST_TEXT - n), ", last seen %Y-%m-%dT%H:%M:%SZ", &tm);
    return text;
}

void append_rate(char text[DIFF_VALUE_TEXT], unsigned width, unsigned speed)
{
    const struct fab_port port = {.width = (uint8_t)width, .speed = (uint8_t)speed};
    const size_t used = strlen(text);
    char rate[32];

    fab_rate_text(&port, rate);
    if (used < DIFF_VALUE_TEXT)
        snprintf(text + used, DIFF_VALUE_TEXT - used, ", %s", rate);
}

/* Write "leaf1[8]", or the same with the cable's rate. */
static void end_text(const struct fab_inventory *inv, uint32_t port, bool with_rate, char *text)
{
    char end[FAB_PORT_TEXT];

    fab_port_text(inv, &inv->ports[port], end);
    snprintf(text, DIFF_VALUE_TEXT, "%.220s", end);
    if (with_rate)
        append_rate(text, inv->ports[port].width, inv->ports[port].speed);
}

static bool is_same_rate(const struct fab_lost_item *cable, const struct fab_port *port)
{
    return cable->width == port->width && cable->speed == port->speed;
}

/*
 * ---- a known cable that is now elsewhere ------------------------------------------------------------------
 */

/*
 * Write the former and the present far end of the cable, with the rates if they differ. The present far end
 * is that of the port at the near end.
 */
static void far_end_texts(struct correlation *s, const struct fab_lost_item *was, int near, uint32_t a)
{
    const uint32_t peer = s->after->ports[a].peer;
    const bool same_rate = is_same_rate(was, &s->after->ports[peer]);

    snprintf(s->now.before, sizeof(s->now.before), "%.220s", was->text[!near]);
    if (!same_rate)
        append_rate(s->now.before, was->width, was->speed);
    end_text(s->after, peer, !same_rate, s->now.after);
}

/*
 * Conclude for a port of an HCA, or for a cable between switches. a: the present port of the near end, or of
 * a cable of which both ends moved.
 */
static void conclude_elsewhere(struct correlation *s, enum fab_change_kind kind,
                               const struct fab_lost_item *was, int near, uint32_t a, bool both)
{
    const bool of_host = kind == FAB_CHANGE_HOST_MOVED,
               same = was->end[near].guid == port_end(s->after, a).guid;
    const char *why = of_host && same ? "the same GUID at another port"
                      : of_host       ? "the replacement is at another port"
                      : both          ? "a cable between the same two switches, at other ports"
                                      : "one end is unchanged, the other is at another port";
    char when[LOST_TEXT];

    subject_link(s, s->after, a);
    snprintf(s->now.what, sizeof(s->now.what), of_host ? "%s" : "%.520s - %.520s", was->text[near],
             was->text[!near]);
    if (of_host && was->generation != 0) /* it has the present name */
        fab_port_text(s->after, &s->after->ports[a], s->now.what);
    if (both) {
        snprintf(s->now.before, sizeof(s->now.before), "%.270s", s->now.what);
        fab_link_text(s->after, &s->after->ports[a], s->now.after);
    } else {
        far_end_texts(s, was, near, a);
    }
    s->now.seen = was->seen;
    if (was->generation == 0)
        conclude(s, kind, port_end(s->after, a), "%s", why);
    else
        conclude(s, kind, port_end(s->after, a), "%s; %s was %s", why, of_host ? "its cable" : "it",
                 lost_text(was, when));
}

/* Conclude for a cable of before, given by its near end. */
static void conclude_seen_elsewhere(struct correlation *s, enum fab_change_kind kind, uint32_t b, uint32_t a,
                                    bool both)
{
    char texts[2][FAB_PORT_TEXT];
    const struct fab_lost_item was = cable_item(s->before, b, texts);
    subject_link(s, s->before, b);
    conclude_elsewhere(s, kind, &was, 0, a, both);
}

static void conclude_lost_elsewhere(struct correlation *s, enum fab_change_kind kind,
                                    struct fab_lost_item *was, int near, uint32_t a, bool both)
{
    for (int i = 0; i < 2; i++) {
        const uint32_t node = node_now(s, was->end[near ^ i].guid);
        if (node != FAB_NONE)
            subject_node(s, s->after, node);
    }
    was->used = true;
    conclude_elsewhere(s, kind, was, near, a, both);
}

/* ---- ports of hosts ---------------------------------------------------------------------------------- */

/*
 * A missing port of before that has also lost its cable is kept at a place where it never was
 * (topo/model/retain.h). Return the lost cable's end at the port, or NULL for any other port.
 */
static const struct lost_end *displaced_from(const struct correlation *s, uint32_t b)
{
    const struct fab_told_end port = port_end(s->before, b);
    const struct lost_end *end =
        fab_port_is_missing(s->before, &s->before->ports[b]) ? lost_at(s, port.guid, port.port) : NULL;
    return end == NULL || end->cable->used ? NULL : end;
}

/* Return whether this port of after is cabled to the port at the other end of that cable. */
static bool is_at_far_end(const struct correlation *s, const struct lost_end *end, uint32_t a)
{
    const struct fab_told_end to = port_end(s->after, s->after->ports[a].peer);
    const struct fab_lost_item *cable = end->cable;
    return cable->end[!end->side].guid == to.guid && cable->end[!end->side].num == to.port;
}

/*
 * Conclude for a missing port that is kept elsewhere from now on, because another cable is in its old place.
 */
static void conclude_displaced(struct correlation *s, uint32_t b, uint32_t a)
{
    const uint32_t from = s->before->ports[b].peer, lower = from < b ? from : b;
    const struct fab_told_end port = port_end(s->before, b);
    char text[FAB_PORT_TEXT];

    subject_link(s, s->before, b);
    claim(s, FAB_CHANGE_PORT_MISSING, port);
    if (displaced_from(s, b) != NULL) { /* already kept elsewhere */
        fab_port_text(s->before, &s->before->ports[b], text);
        snprintf(s->now.what, sizeof(s->now.what), "%s: kept at", text);
        end_text(s->before, from, false, s->now.before);
        end_text(s->after, s->after->ports[a].peer, false, s->now.after);
        conclude(s, FAB_CHANGE_OTHER, port,
                 "it is missing; another cable is in the port that was kept for it");
        return;
    }
    fab_link_text(s->before, &s->before->ports[lower], s->now.what);
    fab_rate_text(&s->before->ports[b], s->now.before);
    conclude(s, FAB_CHANGE_LINK_LOST, port_end(s->before, lower),
             "its place at the switch is taken; it is missing, and its numbers are kept");
}

/* Conclude for a port that is back: at another place, or where it was before it was kept elsewhere. */
static void conclude_displaced_back(struct correlation *s, uint32_t b, uint32_t a, const struct lost_end *end)
{
    const struct fab_port *port = &s->after->ports[a];
    const struct fab_told_end node = node_end(s->after, port->node), at = port_end(s->after, a);

    end->cable->used = true;
    claim(s, FAB_CHANGE_PORT_BACK, at);
    subject_node(s, s->before, s->before->ports[b].node);
    subject_link(s, s->after, a);
    if (!is_at_far_end(s, end, a)) {
        fab_port_text(s->after, port, s->now.what);
        far_end_texts(s, end->cable, end->side, a);
        conclude(s, FAB_CHANGE_HOST_MOVED, at, "the same GUID at another port");
        return;
    }
    const bool whole = claim(s, FAB_CHANGE_HOST_BACK, node) != FAB_NONE;
    if (whole)
        fab_node_text(s->after, &s->after->nodes[port->node], s->now.what);
    else
        fab_link_text(s->after, port, s->now.what);
    say(s, NULL, "missing", "there");
    conclude(s, whole ? FAB_CHANGE_HOST_BACK : FAB_CHANGE_PORT_BACK, whole ? node : at,
             "it is seen again, at its old place");
}

/* Conclude for a port of an HCA that has a cable before and after. */
static void conclude_host_port(struct correlation *s, uint32_t b, uint32_t a)
{
    const bool moved = port_after(s, s->before->ports[b].peer) != s->after->ports[a].peer;
    const bool missing = fab_port_is_missing(s->after, &s->after->ports[a]);
    const struct lost_end *displaced = missing ? NULL : displaced_from(s, b);

    if (moved) {
        claim_link(s, s->before, b);
        claim_link(s, s->after, a);
    } else if (displaced != NULL && !is_at_far_end(s, displaced, a)) {
        /* it is seen where it was kept: no other change shows that this is not its old place */
        claim(s, FAB_CHANGE_HOST_BACK, node_end(s->after, s->after->ports[a].node));
        claim(s, FAB_CHANGE_PORT_BACK, port_end(s->after, a));
    }
    if (s->now.n_taken == 0) /* or the other end is an HCA, too, and its conclusion has the change */
        return;
    if (missing) {
        conclude_displaced(s, b, a);
    } else if (displaced != NULL) {
        conclude_displaced_back(s, b, a, displaced);
    } else {
        claim(s, FAB_CHANGE_PORT_BACK, port_end(s->after, a)); /* its place shows that it is back */
        conclude_seen_elsewhere(s, FAB_CHANGE_HOST_MOVED, b, a, false);
    }
}

static void conclude_hosts_moved(struct correlation *s)
{
    for (uint32_t b = 0; b < s->before->n_ports; b++) {
        const struct fab_port *port = &s->before->ports[b];
        if (port->peer == FAB_NONE || !is_kind(s->before, port->node, FAB_HCA))
            continue;
        const uint32_t a = port_after(s, b);
        if (a != FAB_NONE && s->after->ports[a].peer != FAB_NONE)
            conclude_host_port(s, b, a);
    }
}

void conclude_port_moved(struct correlation *s, uint32_t port, const struct lost_end *end)
{
    claim_link(s, s->after, port);
    end->cable->used = true;
    if (s->now.n_taken > 0) /* else the other end is an HCA, too, and its conclusion has the change */
        conclude_lost_elsewhere(s, FAB_CHANGE_HOST_MOVED, end->cable, end->side, port, false);
}

/* ---- cables between switches ---------------------------------------------------------------------- */

/*
 * Return the lower end of the cable that a change is about. Return FAB_NONE if the change is taken or an HCA
 * is at the cable.
 */
static uint32_t switch_link(const struct correlation *s, const struct fab_inventory *inv, uint32_t raw)
{
    const struct fab_change *change = &s->raw->changes[raw];
    const uint32_t node = s->taken[raw] ? FAB_NONE : fab_inventory_find(inv, change->guid);
    const uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, change->port);
    const uint32_t far = port == FAB_NONE ? FAB_NONE : peer_node(inv, port);
    return far == FAB_NONE || is_kind(inv, node, FAB_HCA) || is_kind(inv, far, FAB_HCA) ? FAB_NONE : port;
}

/* Conclude for a lost cable and a new one in the port at this end. */
static bool conclude_moved_from(struct correlation *s, uint32_t raw, uint32_t end)
{
    const uint32_t a = port_after(s, end), far = a == FAB_NONE ? FAB_NONE : peer_node(s->after, a);

    if (far == FAB_NONE || is_kind(s->after, far, FAB_HCA) || claim_link(s, s->after, a) == FAB_NONE)
        return false;
    claim_this(s, raw);
    conclude_seen_elsewhere(s, FAB_CHANGE_CABLE_MOVED, end, a, false);
    return true;
}

static bool is_between_same(const struct correlation *s, uint32_t b, uint32_t a)
{
    const uint32_t one = s->to_after[s->before->ports[b].node], other = s->to_after[peer_node(s->before, b)];
    const uint32_t here = s->after->ports[a].node, there = peer_node(s->after, a);

    return one != FAB_NONE && other != FAB_NONE &&
           ((one == here && other == there) || (one == there && other == here));
}

/* Begin and end of the changes of one kind. */
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

static void conclude_both_ends_moved(struct correlation *s, uint32_t lost, uint32_t b, struct span added)
{
    for (uint32_t i = added.first; i < added.end; i++) {
        const uint32_t a = switch_link(s, s->after, i);
        if (a == FAB_NONE || !is_between_same(s, b, a))
            continue;
        claim_this(s, lost);
        claim_this(s, i);
        conclude_seen_elsewhere(s, FAB_CHANGE_CABLE_MOVED, b, a, true);
        return;
    }
}

static uint32_t count_switch_links(const struct correlation *s, struct span span,
                                   const struct fab_inventory *inv)
{
    uint32_t n = 0;
    for (uint32_t i = span.first; i < span.end; i++)
        n += switch_link(s, inv, i) != FAB_NONE;
    return n;
}

void conclude_moved(struct correlation *s)
{
    const struct span lost = find_kind(s, FAB_CHANGE_LINK_LOST), added = find_kind(s, FAB_CHANGE_LINK_ADDED);

    conclude_hosts_moved(s);
    for (uint32_t i = lost.first; i < lost.end; i++) {
        const uint32_t b = switch_link(s, s->before, i);
        if (b != FAB_NONE && !conclude_moved_from(s, i, b))
            conclude_moved_from(s, i, s->before->ports[b].peer);
    }
    /* do not search for pairs if nearly everything was rewired */
    const uint64_t pairs =
        (uint64_t)count_switch_links(s, lost, s->before) * count_switch_links(s, added, s->after);
    for (uint32_t i = lost.first; pairs > 0 && pairs <= 1000000 && i < lost.end; i++) {
        const uint32_t b = switch_link(s, s->before, i);
        if (b != FAB_NONE)
            conclude_both_ends_moved(s, i, b, added);
    }
}

/*
 * ---- lost cables between switches ------------------------------------------------------------------------
 */

/* Return whether both of its nodes are present switches, and it was not found elsewhere. */
static bool is_between_known(const struct correlation *s, const struct fab_lost_item *cable)
{
    for (int side = 0; side < 2; side++) {
        const uint32_t node = node_now(s, cable->end[side].guid);
        if (node == FAB_NONE || is_kind(s->after, node, FAB_HCA))
            return false;
    }
    return !cable->used;
}

static void conclude_link_back(struct correlation *s, uint32_t port, const struct fab_lost_item *cable)
{
    const struct fab_port *now = &s->after->ports[port];
    char when[LOST_TEXT];

    subject_link(s, s->after, port);
    fab_link_text(s->after, now, s->now.what);
    say(s, NULL, "lost", NULL);
    if (!is_same_rate(cable, now))
        append_rate(s->now.before, cable->width, cable->speed);
    fab_rate_text(now, s->now.after);
    s->now.seen = cable->seen;
    conclude(s, FAB_CHANGE_LINK_BACK, port_end(s->after, port),
             "a cable between the same two ports; it was %s", lost_text(cable, when));
}

/* Return the cable lost last at this port if it is between switches, else NULL. */
static const struct lost_end *lost_link(const struct correlation *s, uint32_t port)
{
    const struct fab_port *now = &s->after->ports[port];
    const struct lost_end *end = lost_at(s, guid_then(s, now->node), now->num);
    return end != NULL && is_between_known(s, end->cable) ? end : NULL;
}

/* Return the only cable lost between these two switches; NULL if there are none or several. */
static struct fab_lost_item *only_between(const struct correlation *s, uint32_t port)
{
    const uint64_t one = guid_then(s, s->after->ports[port].node),
                   other = guid_then(s, peer_node(s->after, port));
    struct fab_lost_item *only = NULL;

    for (uint32_t e = lost_ends_from(s, one, 0); e < s->n_ends && s->ends[e].guid == one; e++) {
        struct fab_lost_item *cable = s->ends[e].cable;
        if (cable->end[!s->ends[e].side].guid != other || cable->used || back_at(s, cable, 0) != FAB_NONE)
            continue;
        if (only != NULL)
            return NULL;
        only = cable;
    }
    return only;
}

static void conclude_link_returned(struct correlation *s, uint32_t raw, bool between)
{
    const uint32_t port = switch_link(s, s->after, raw);
    const uint32_t peer = port == FAB_NONE ? FAB_NONE : s->after->ports[port].peer;
    if (port == FAB_NONE || is_new(s, s->after->ports[port].node) || is_new(s, s->after->ports[peer].node))
        return;
    const struct lost_end *near = lost_link(s, port), *far = lost_link(s, peer);
    if (between) {
        struct fab_lost_item *only = near == NULL && far == NULL ? only_between(s, port) : NULL;
        if (only == NULL)
            return;
        claim_this(s, raw);
        conclude_lost_elsewhere(s, FAB_CHANGE_CABLE_MOVED, only, 0, port, true);
        return;
    }
    if (near != NULL && far != NULL && near->cable != far->cable && near->generation == far->generation)
        return; /* ambiguous */
    const bool is_far = near == NULL || (far != NULL && far->generation > near->generation);
    const struct lost_end *end = is_far ? far : near;
    if (end == NULL)
        return;
    claim_this(s, raw);
    if (back_at(s, end->cable, 0) != FAB_NONE)
        conclude_link_back(s, port, end->cable);
    else
        conclude_lost_elsewhere(s, FAB_CHANGE_CABLE_MOVED, end->cable, end->side, is_far ? peer : port,
                                false);
}

void conclude_links_returned(struct correlation *s)
{
    const struct span added = find_kind(s, FAB_CHANGE_LINK_ADDED);
    for (int between = 0; between < 2; between++) {
        for (uint32_t i = added.first; i < added.end; i++)
            conclude_link_returned(s, i, between);
    }
}

/* ---- ports that go down or come up ---------------------------------------------------------------- */

static void conclude_port(struct correlation *s, uint32_t raw)
{
    const struct fab_change *change = claim_this(s, raw);
    const uint32_t node = fab_inventory_find(s->after, change->guid);
    const uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(s->after, node, change->port);
    const bool up = port != FAB_NONE && s->after->ports[port].state == FAB_PORT_ACTIVE;
    bool both = false;

    say(s, change->what, change->before, change->after);
    if (port != FAB_NONE && s->after->ports[port].peer != FAB_NONE) {
        const uint32_t peer = s->after->ports[port].peer;
        fab_link_text(s->after, &s->after->ports[port], s->now.what);
        subject_link(s, s->after, port);
        both = up == (s->after->ports[peer].state == FAB_PORT_ACTIVE) &&
               claim(s, FAB_CHANGE_PORT_STATE, port_end(s->after, peer)) != FAB_NONE;
    }
    conclude(s, up ? FAB_CHANGE_PORT_UP : FAB_CHANGE_PORT_DOWN,
             (struct fab_told_end){change->guid, change->port}, "the cable is there, %s",
             both ? "as the ports at both ends report" : "as its port reports");
}

void conclude_ports(struct correlation *s)
{
    const struct span states = find_kind(s, FAB_CHANGE_PORT_STATE);
    for (uint32_t i = states.first; i < states.end; i++) {
        if (!s->taken[i])
            conclude_port(s, i);
    }
}
