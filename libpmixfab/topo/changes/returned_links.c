/* returned_links.c - cables between switches that came, told as those that were lost. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topo/changes/correlation.h"

/* Both of its nodes are there and no HCA. */
static bool returned_link_is_known(const struct correlation *s, const struct fab_lost_item *cable)
{
    for (int side = 0; side < 2; side++) {
        uint32_t node = correlation_now(s, cable->end[side].guid);
        if (node == FAB_NONE || is_kind(s->after, node, FAB_HCA))
            return false;
    }
    return !cable->used;
}

static void link_back(struct correlation *s, uint32_t port, struct fab_lost_item *cable)
{
    char what[FAB_LINK_TEXT], before[DIFF_VALUE_TEXT] = "lost", after[32], when[DIFF_LOST_TEXT],
                              why[DIFF_WHY_TEXT];
    const struct fab_port *now = &s->after->ports[port];

    correlation_subject_link(s, s->after, port);
    fab_link_text(s->after, now, what);
    if (!correlation_same_rate(cable, now))
        correlation_append_rate(before, cable->width, cable->speed);
    fab_rate_text(now, after);
    correlation_lost_text(cable->generation, cable->seen, when);
    snprintf(why, sizeof(why), "a cable between the same two ports; it was %s", when);
    s->past = (struct conclusion){.seen = cable->seen};
    correlation_conclude(s, FAB_CHANGE_LINK_BACK, s->after->nodes[now->node].guid, now->num, what, before,
                         after, why);
}

/* side: the end that stayed; 2: neither. */
static void link_moved(struct correlation *s, uint32_t port, struct fab_lost_item *cable, int side)
{
    char what[FAB_LINK_TEXT], before[DIFF_VALUE_TEXT], after[FAB_LINK_TEXT], when[DIFF_LOST_TEXT],
        why[DIFF_WHY_TEXT];
    const struct fab_port *now = &s->after->ports[port];

    snprintf(what, sizeof(what), "%.520s - %.520s", cable->text[side == 1], cable->text[side != 1]);
    for (int i = 0; i < 2; i++) {
        uint32_t was = correlation_now(s, cable->end[side == 1 ? !i : i].guid);
        if (was != FAB_NONE)
            correlation_subject_node(s, s->after, was);
    }
    correlation_subject_link(s, s->after, port);
    if (side == 2) {
        snprintf(before, sizeof(before), "%.270s", what);
        fab_link_text(s->after, now, after);
    } else {
        correlation_end_texts(s, cable, !side, now->peer, before, after);
    }
    correlation_lost_text(cable->generation, cable->seen, when);
    snprintf(why, sizeof(why), "%s; it was %s",
             side == 2 ? "a cable between the same two switches, on other ports"
                       : "one end is where it was, the other on another port",
             when);
    cable->used = true;
    s->past = (struct conclusion){.seen = cable->seen};
    correlation_conclude(s, FAB_CHANGE_CABLE_MOVED, s->after->nodes[now->node].guid, now->num, what, before,
                         after, why);
}

/* The cable that was lost last at this port, if it is one between switches. */
static const struct lost_end *lost_link(const struct correlation *s, uint32_t port)
{
    const struct fab_port *now = &s->after->ports[port];
    const struct lost_end *end = correlation_lost_at(s, correlation_then(s, now->node), now->num);
    return end != NULL && returned_link_is_known(s, correlation_cable(s, end)) ? end : NULL;
}

/* The only one that was lost between these two switches; NULL: none, or several. */
static struct fab_lost_item *only_between(struct correlation *s, uint32_t port)
{
    const struct fab_port *now = &s->after->ports[port];
    const uint64_t one = correlation_then(s, now->node),
                   other = correlation_then(s, s->after->ports[now->peer].node);
    struct fab_lost_item *only = NULL;

    for (uint32_t e = correlation_lost_ends(s, one, 0); e < s->n_ends && s->ends[e].guid == one; e++) {
        struct fab_lost_item *cable = correlation_cable(s, &s->ends[e]);
        if (cable->end[!s->ends[e].side].guid != other || cable->used ||
            correlation_back_at(s, cable, 0) != FAB_NONE)
            continue;
        if (only != NULL)
            return NULL;
        only = cable;
    }
    return only;
}

static void link_returned(struct correlation *s, uint32_t raw, bool between)
{
    uint32_t port = correlation_switch_link(s->after, &s->raw->changes[raw]);
    if (port == FAB_NONE || correlation_is_new(s, s->after->ports[port].node) ||
        correlation_is_new(s, s->after->ports[s->after->ports[port].peer].node))
        return;
    uint32_t peer = s->after->ports[port].peer;
    const struct lost_end *near = lost_link(s, port), *far = lost_link(s, peer);
    if (between) {
        struct fab_lost_item *only = near == NULL && far == NULL ? only_between(s, port) : NULL;
        if (only == NULL)
            return;
        claim_raw_this(s, raw);
        link_moved(s, port, only, 2);
        return;
    }
    if (near != NULL && far != NULL && near->cable != far->cable && near->generation == far->generation)
        return; /* which of the two? */
    const struct lost_end *end =
        near == NULL || (far != NULL && far->generation > near->generation) ? far : near;
    if (end == NULL)
        return;
    struct fab_lost_item *cable = correlation_cable(s, end);
    claim_raw_this(s, raw);
    if (correlation_back_at(s, cable, 0) != FAB_NONE)
        link_back(s, port, cable);
    else
        link_moved(s, end == near ? port : peer, cable, end->side);
}

void correlation_links_returned(struct correlation *s)
{
    for (int between = 0; between < 2; between++) {
        for (uint32_t i = 0; i < s->raw->n; i++) {
            if (s->raw->changes[i].kind == FAB_CHANGE_LINK_ADDED && !s->taken[i])
                link_returned(s, i, between);
        }
    }
}
