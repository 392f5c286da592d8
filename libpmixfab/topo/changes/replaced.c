/* replaced.c - switches and HCAs in whose place another one is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topo/changes/correlation.h"

/* What is told by GUID of a node that was another's place before compares two places: it is told with the one
 * where the node is now. */
static void take_comparison(struct correlation *s, uint64_t guid)
{
    static const enum fab_change_kind kinds[] = {FAB_CHANGE_NAME, FAB_CHANGE_LID, FAB_CHANGE_OTHER,
                                                 FAB_CHANGE_PORT_STATE};

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        claim_raw_node(s, kinds[i], guid);
}

/* The cable of this port of before, if the port at its other end now leads to that node of after: its two
 * changes are taken. FAB_NONE: it does not; else the node's port. */
static uint32_t take_same_cable(struct correlation *s, uint32_t port, uint32_t node)
{
    uint32_t peer = s->before->ports[port].peer;
    uint32_t near = peer == FAB_NONE ? FAB_NONE : correlation_port_after(s, peer);
    uint32_t end = near == FAB_NONE ? FAB_NONE : s->after->ports[near].peer;

    if (end == FAB_NONE || s->after->ports[end].node != node)
        return FAB_NONE;
    claim_raw_link(s, FAB_CHANGE_LINK_LOST, s->before, port);
    claim_raw_link(s, FAB_CHANGE_LINK_ADDED, s->after, end);
    return end;
}

void story_identities(uint64_t guid_b, const char *name_b, uint64_t guid_a, const char *name_a,
                      char before[DIFF_VALUE_TEXT], char after[DIFF_VALUE_TEXT])
{
    const bool same = strcmp(name_b, name_a) == 0;
    snprintf(before, DIFF_VALUE_TEXT, "0x%016" PRIx64 "%s%.240s", guid_b, same ? "" : " ",
             same ? "" : name_b);
    snprintf(after, DIFF_VALUE_TEXT, "0x%016" PRIx64 "%s%.240s", guid_a, same ? "" : " ", same ? "" : name_a);
}

/* `what`: the name before. */
static void replaced_describe(const struct correlation *s, uint32_t b, uint32_t a, char what[FAB_NODE_TEXT],
                              char before[DIFF_VALUE_TEXT], char after[DIFF_VALUE_TEXT])
{
    const struct fab_node *old = &s->before->nodes[b], *new = &s->after->nodes[a];
    char name[FAB_NODE_TEXT];

    fab_plain_text(s->before, old, what);
    fab_plain_text(s->after, new, name);
    story_identities(old->guid, what, new->guid, name, before, after);
}

/* ---- switches ------------------------------------------------------------------------------------- */

static void switch_replaced(struct correlation *s, uint32_t b, uint32_t a)
{
    const struct fab_node *old = &s->before->nodes[b], *new = &s->after->nodes[a];
    char what[FAB_NODE_TEXT], before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT], why[DIFF_WHY_TEXT];
    uint32_t n = 0, back = 0;

    claim_raw(s, FAB_CHANGE_SWITCH_LOST, old->guid, 0);
    claim_raw(s, FAB_CHANGE_SWITCH_ADDED, new->guid, 0);
    take_comparison(s, new->guid);
    correlation_subject_node(s, s->before, b);
    correlation_subject_node(s, s->after, a);
    for (uint32_t i = 0; i < old->n_ports; i++) {
        uint32_t port = old->first_port + i;
        if (s->before->ports[port].peer == FAB_NONE)
            continue;
        n++;
        uint32_t end = take_same_cable(s, port, a);
        if (end == FAB_NONE)
            continue;
        back += !fab_port_is_missing(s->after, &s->after->ports[end]);
        correlation_subject_link(s, s->before, port);
    }
    replaced_describe(s, b, a, what, before, after);
    correlation_cables_text(back, n, why);
    s->past.former = old->guid;
    s->past.renamed = correlation_renamed_node(s, fab_str(s->before, old->name), a);
    correlation_conclude(s, FAB_CHANGE_SWITCH_REPLACED, new->guid, 0, what, before, after, why);
}

void correlation_switches_replaced(struct correlation *s)
{
    for (uint32_t b = 0; b < s->before->n_nodes; b++) {
        uint32_t a = s->to_after[b];
        if (a != FAB_NONE && is_kind(s->before, b, FAB_SWITCH) &&
            s->before->nodes[b].guid != s->after->nodes[a].guid)
            switch_replaced(s, b, a);
    }
}

/* ---- HCAs ----------------------------------------------------------------------------------------- */

static void replaced_claim_devices(struct correlation *s, enum fab_change_kind kind,
                                   const struct fab_inventory *inv, const struct fab_node *node)
{
    for (uint32_t i = 0; i < node->n_ports; i++)
        claim_raw(s, kind, node->guid, inv->ports[node->first_port + i].num);
    /* of one that had no cable, and of ports that were listed without */
    claim_raw_node(s, FAB_CHANGE_OTHER, node->guid);
}

/* The cables that stay where they are. `place`: the first one's switch port; rated: the ports of the first
 * one whose rate is another now, before and after; NULL. */
static uint32_t take_cables(struct correlation *s, uint32_t b, uint32_t a, char place[FAB_PORT_TEXT],
                            const struct fab_port *rated[2])
{
    const struct fab_node *old = &s->before->nodes[b];
    uint32_t n = 0;

    place[0] = '\0';
    rated[0] = NULL;
    for (uint32_t i = 0; i < old->n_ports; i++) {
        uint32_t port = old->first_port + i, end = take_same_cable(s, port, a);
        if (end == FAB_NONE)
            continue;
        correlation_subject_link(s, s->before, port);
        const struct fab_port *x = &s->before->ports[port], *y = &s->after->ports[end];
        if (n++ == 0)
            fab_port_text(s->before, &s->before->ports[x->peer], place);
        if (rated[0] == NULL && !fab_same_rate(x, y)) {
            rated[0] = x;
            rated[1] = y;
        }
    }
    return n;
}

static void hca_replaced(struct correlation *s, uint32_t b, uint32_t a)
{
    const struct fab_node *old = &s->before->nodes[b], *new = &s->after->nodes[a];
    const char *host_b = fab_str(s->before, old->host), *host_a = fab_str(s->after, new->host);
    char what[FAB_NODE_TEXT], before[DIFF_VALUE_TEXT], after[DIFF_VALUE_TEXT], why[DIFF_WHY_TEXT];
    char place[FAB_PORT_TEXT];
    const struct fab_port *rated[2];
    bool same_host = strcmp(host_b, host_a) == 0;
    bool same_slot = same_host && strcmp(fab_str(s->before, old->name), fab_str(s->after, new->name)) == 0;

    correlation_subject_node(s, s->before, b);
    correlation_subject_node(s, s->after, a);
    replaced_claim_devices(s, FAB_CHANGE_DEVICE_LOST, s->before, old);
    replaced_claim_devices(s, FAB_CHANGE_DEVICE_ADDED, s->after, new);
    take_comparison(s, new->guid);
    if (!same_host) {
        claim_raw_host(s, FAB_CHANGE_HOST_LOST, host_b);
        claim_raw_host(s, FAB_CHANGE_HOST_ADDED, host_a);
    }
    bool stayed = take_cables(s, b, a, place, rated) > 0;
    replaced_describe(s, b, a, what, before, after);
    if (rated[0] != NULL) {
        correlation_append_rate(before, rated[0]->width, rated[0]->speed);
        correlation_append_rate(after, rated[1]->width, rated[1]->speed);
    }
    snprintf(why, sizeof(why), "another GUID%s%s%.300s",
             same_slot ? " under the same host's and device's name" : "", stayed ? " at the same port " : "",
             place);
    s->past.former = old->guid;
    s->past.renamed = correlation_renamed_node(s, host_b, a);
    correlation_conclude(s, FAB_CHANGE_HCA_REPLACED, new->guid, 0, what, before, after, why);
}

void correlation_hcas_replaced(struct correlation *s)
{
    for (uint32_t b = 0; b < s->before->n_nodes; b++) {
        uint32_t a = s->to_after[b];
        if (a != FAB_NONE && is_kind(s->before, b, FAB_HCA) &&
            s->before->nodes[b].guid != s->after->nodes[a].guid)
            hca_replaced(s, b, a);
    }
}
