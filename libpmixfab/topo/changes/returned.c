/* returned.c - what came, told as what was lost: back, replaced or moved. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topo/base/text.h"
#include "topo/changes/correlation.h"

/* ---- switches -------------------------------------------------------------------------------------- */

/* What to tell of a node that was lost: what it was, and is. */
struct returned {
    const struct fab_lost_item *lost;
    char what[FAB_NODE_TEXT], before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT], when[DIFF_LOST_TEXT];
    bool same, renamed; /* the same GUID; another name */
};

static void returned_describe(const struct correlation *s, uint32_t i, struct returned *out)
{
    const struct fab_node *node = &s->after->nodes[s->lost_after[i]];
    char name[FAB_NODE_TEXT];

    out->lost = &s->lost->nodes.items[i];
    out->same = out->lost->guid == node->guid;
    fab_name_text(out->lost->kind, out->lost->guid, out->lost->host, out->lost->name, out->what);
    fab_plain_text(s->after, node, name);
    correlation_lost_text(out->lost->generation, out->lost->seen, out->when);
    out->renamed = strcmp(name, out->what) != 0;
    if (!out->same) {
        story_identities(out->lost->guid, out->what, node->guid, name, out->before, out->after);
        return;
    }
    snprintf(out->before, DIFF_VALUE_TEXT, "lost");
    snprintf(out->after, DIFF_VALUE_TEXT, "there%s%.240s", out->renamed ? " as " : "",
             out->renamed ? name : "");
}

/* The name that it had, and the one that it has. */
static void returned_subjects(struct correlation *s, const struct fab_lost_item *lost, uint32_t a)
{
    const char *name = lost->kind == FAB_HCA ? lost->host : lost->name;
    if (*name != '\0')
        correlation_subject(s, name);
    correlation_subject_node(s, s->after, a);
}

static void tell_returned(struct correlation *s, const struct returned *r, enum fab_change_kind kind,
                          uint32_t a, const char *why)
{
    const struct fab_node *node = &s->after->nodes[a];
    const char *was = r->lost->kind == FAB_HCA ? r->lost->host : r->lost->name;
    s->past = (struct conclusion){.former = r->same ? 0 : r->lost->guid,
                                  .seen = r->lost->seen,
                                  .was_lost = true,
                                  .renamed = correlation_renamed_node(s, was, a)};
    correlation_conclude(s, kind, node->guid, 0, r->what, r->before, r->after, why);
}

static void switch_returned(struct correlation *s, uint32_t i)
{
    const uint32_t a = s->lost_after[i];
    uint32_t n = 0, back = 0;
    struct returned r;
    char why[DIFF_WHY_TEXT], cables[DIFF_WHY_TEXT];

    if (claim_raw(s, FAB_CHANGE_SWITCH_ADDED, s->after->nodes[a].guid, 0) == FAB_NONE)
        return;
    returned_describe(s, i, &r);
    returned_subjects(s, r.lost, a);
    for (uint32_t e = correlation_lost_ends(s, r.lost->guid, 0);
         e < s->n_ends && s->ends[e].guid == r.lost->guid; e++) {
        const struct lost_end *end = &s->ends[e];
        const struct fab_lost_item *cable = correlation_cable(s, end);
        if (e > 0 && end[-1].guid == end->guid && end[-1].num == end->num)
            continue; /* what was in this port before that */
        uint32_t port = correlation_back_at(s, cable, end->side);
        n++;
        if (port == FAB_NONE)
            continue;
        back++;
        if (!is_kind(s->after, s->after->ports[s->after->ports[port].peer].node, FAB_HCA))
            claim_raw_link(s, FAB_CHANGE_LINK_ADDED, s->after, port);
        correlation_subject_link(s, s->after, port);
    }
    if (r.same)
        snprintf(why, sizeof(why), "the same GUID, with %" PRIu32 " of its %" PRIu32 " cable%s; it was %s",
                 back, n, n == 1 ? "" : "s", r.when);
    correlation_cables_text(back, n, cables);
    if (!r.same)
        snprintf(why, sizeof(why), "%.100s; it was %s", cables, r.when);
    tell_returned(s, &r, r.same ? FAB_CHANGE_SWITCH_BACK : FAB_CHANGE_SWITCH_REPLACED, a, why);
}

/* ---- HCAs ------------------------------------------------------------------------------------------ */

/* A port of an HCA that has a cable at another place than the one that was lost. */
static void port_moved(struct correlation *s, uint32_t a, uint32_t port, struct fab_lost_item *cable,
                       int side)
{
    char what[FAB_PORT_TEXT], before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT], why[DIFF_WHY_TEXT];
    char when[DIFF_LOST_TEXT];
    const struct fab_port *now = &s->after->ports[port];
    const bool same = cable->end[side].guid == s->after->nodes[a].guid;

    claim_raw_link(s, FAB_CHANGE_LINK_ADDED, s->after, port);
    cable->used = true;
    if (s->n_taken == 0) /* the other end is an HCA as well, and it was told of that */
        return;
    correlation_subject_node(s, s->after, a);
    uint32_t was = correlation_now(s, cable->end[!side].guid);
    if (was != FAB_NONE)
        correlation_subject_node(s, s->after, was);
    correlation_subject_link(s, s->after, port);
    fab_port_text(s->after, now, what);
    correlation_end_texts(s, cable, !side, now->peer, before, after);
    correlation_lost_text(cable->generation, cable->seen, when);
    snprintf(why, sizeof(why), "%s at another port; its cable was %s",
             same ? "the same GUID" : "what replaced it is", when);
    s->past = (struct conclusion){.seen = cable->seen};
    correlation_conclude(s, FAB_CHANGE_HOST_MOVED, s->after->nodes[a].guid, now->num, what, before, after,
                         why);
}

/* The cable of a port of an HCA that was lost last; NULL. */
static const struct lost_end *returned_cable(const struct correlation *s, uint32_t a, uint32_t port)
{
    return s->after->ports[port].peer == FAB_NONE
               ? NULL
               : correlation_lost_at(s, correlation_then(s, a), s->after->ports[port].num);
}

/* Take the devices of a node that came, and the cables that are where they were. `place`: the first one's
 * switch port. */
static void returned_claim_devices(struct correlation *s, uint32_t a, bool all, char place[FAB_PORT_TEXT],
                                   uint32_t *n_moved)
{
    const struct fab_node *node = &s->after->nodes[a];
    bool stayed = false;

    place[0] = '\0';
    *n_moved = 0;
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++) {
        const struct lost_end *end = returned_cable(s, a, port);
        if (end == NULL && !all)
            continue;
        claim_raw(s, FAB_CHANGE_DEVICE_ADDED, node->guid, s->after->ports[port].num);
        if (end != NULL && correlation_back_at(s, correlation_cable(s, end), end->side) == FAB_NONE) {
            ++*n_moved;
            continue;
        }
        if (s->after->ports[port].peer == FAB_NONE)
            continue;
        claim_raw_link(s, FAB_CHANGE_LINK_ADDED, s->after, port);
        correlation_subject_link(s, s->after, port);
        if (!stayed && end != NULL)
            fab_port_text(s->after, &s->after->ports[s->after->ports[port].peer], place);
        stayed |= end != NULL;
    }
}

static void ports_moved(struct correlation *s, uint32_t a)
{
    const struct fab_node *node = &s->after->nodes[a];
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++) {
        const struct lost_end *end = returned_cable(s, a, port);
        if (end != NULL && correlation_back_at(s, correlation_cable(s, end), end->side) == FAB_NONE)
            port_moved(s, a, port, correlation_cable(s, end), end->side);
    }
}

static bool has_known_port(const struct correlation *s, uint32_t a)
{
    const struct fab_node *node = &s->after->nodes[a];
    for (uint32_t port = node->first_port; port < node->first_port + node->n_ports; port++) {
        if (returned_cable(s, a, port) != NULL)
            return true;
    }
    return false;
}

static void hca_returned(struct correlation *s, uint32_t i)
{
    const uint32_t a = s->lost_after[i];
    const struct fab_node *node = &s->after->nodes[a];
    char place[FAB_PORT_TEXT], why[DIFF_WHY_TEXT];
    struct returned r;
    uint32_t n_moved;

    returned_describe(s, i, &r);
    returned_subjects(s, r.lost, a);
    returned_claim_devices(s, a, !r.same || !has_known_port(s, a), place, &n_moved);
    if (s->n_taken > 0)
        claim_raw_host(s, FAB_CHANGE_HOST_ADDED, fab_str(s->after, node->host));
    if (r.same && n_moved > 0 && place[0] == '\0' && !r.renamed) {
        s->subjects.used = 0; /* all that there is to tell is where it is now */
        ports_moved(s, a);
        return;
    }
    if (s->n_taken == 0) {
        s->subjects.used = 0;
        return;
    }
    if (r.same)
        snprintf(why, sizeof(why), "the same GUID%s%.200s; it was %s",
                 place[0] == '\0' ? "" : " at its old port ", place, r.when);
    else
        snprintf(why, sizeof(why), "another GUID%s%s%.200s; the former was %s",
                 r.renamed ? "" : " under the same host's and device's name",
                 place[0] == '\0' ? "" : " at the same port ", place, r.when);
    tell_returned(s, &r, r.same ? FAB_CHANGE_HOST_BACK : FAB_CHANGE_HCA_REPLACED, a, why);
    ports_moved(s, a);
}

/* A port of an HCA that was there all the time, or without any cable. */
static void port_returned(struct correlation *s, uint32_t raw)
{
    const struct fab_change *change = &s->raw->changes[raw];
    uint32_t a = fab_inventory_find(s->after, change->guid);
    uint32_t port = a == FAB_NONE || s->to_before[a] == FAB_NONE
                        ? FAB_NONE
                        : fab_inventory_port(s->after, a, change->port);
    const struct lost_end *end = port == FAB_NONE ? NULL : returned_cable(s, a, port);
    char what[FAB_LINK_TEXT], when[DIFF_LOST_TEXT], why[DIFF_WHY_TEXT];

    if (end == NULL)
        return;
    struct fab_lost_item *cable = correlation_cable(s, end);
    claim_raw_this(s, raw);
    claim_raw_host(s, FAB_CHANGE_HOST_ADDED, fab_str(s->after, s->after->nodes[a].host));
    if (correlation_back_at(s, cable, end->side) == FAB_NONE) {
        port_moved(s, a, port, cable, end->side);
        return;
    }
    claim_raw_link(s, FAB_CHANGE_LINK_ADDED, s->after, port);
    correlation_subject_link(s, s->after, port);
    fab_link_text(s->after, &s->after->ports[port], what);
    correlation_lost_text(cable->generation, cable->seen, when);
    snprintf(why, sizeof(why), "the cable is seen again, at its old place; it was %s", when);
    s->past = (struct conclusion){.seen = cable->seen, .was_lost = true};
    correlation_conclude(s, FAB_CHANGE_PORT_BACK, change->guid, change->port, what, "lost", "there", why);
}

void correlation_returned(struct correlation *s)
{
    for (uint32_t i = 0; i < s->lost->nodes.n; i++) {
        if (s->lost_after[i] != FAB_NONE && s->lost->nodes.items[i].kind == FAB_SWITCH)
            switch_returned(s, i);
    }
    for (uint32_t i = 0; i < s->lost->nodes.n; i++) {
        if (s->lost_after[i] != FAB_NONE && s->lost->nodes.items[i].kind == FAB_HCA)
            hca_returned(s, i);
    }
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->raw->changes[i].kind == FAB_CHANGE_DEVICE_ADDED && !s->taken[i])
            port_returned(s, i);
    }
}
