/* understand_switches.c - which switch is in whose place: the neighbours' ports vote. */
#include <string.h>

#include "topo/correlate/correlation.h"

void majority_add(struct majority *votes, uint64_t whom)
{
    uint32_t i = 0;

    votes->all++;
    while (i < votes->n && votes->whom[i] != whom)
        i++;
    if (i == sizeof(votes->whom) / sizeof(votes->whom[0]))
        return;
    if (i == votes->n) {
        votes->whom[votes->n] = whom;
        votes->n_votes[votes->n++] = 0;
    }
    votes->n_votes[i]++;
}

bool majority_elected(const struct majority *votes, uint64_t *whom)
{
    for (uint32_t i = 0; i < votes->n; i++) {
        *whom = votes->whom[i];
        if (2 * votes->n_votes[i] > votes->all)
            return true;
    }
    return false;
}

/* Where the ports around a switch of `in` lead in the other inventory. */
static uint32_t switch_count_majority(const struct correlation *s, const struct fab_inventory *in,
                                      uint32_t node)
{
    bool forth = in == s->before;
    const struct fab_inventory *other = forth ? s->after : s->before;
    struct majority votes = {.n = 0};

    for (uint32_t i = 0; i < in->nodes[node].n_ports; i++) {
        uint32_t near = peer_of(in, node, i);
        if (near == FAB_NONE)
            continue;
        uint32_t there = forth ? correlation_port_after(s, near) : correlation_port_before(s, near);
        if (there != FAB_NONE && other->ports[there].peer != FAB_NONE)
            majority_add(&votes, other->ports[other->ports[there].peer].node);
    }
    uint64_t whom;
    return majority_elected(&votes, &whom) ? (uint32_t)whom : FAB_NONE;
}

/* One round. A switch that is found says more about its neighbours: there may be another one. */
static bool match_some(struct correlation *s)
{
    bool found = false;

    for (uint32_t i = 0; i < s->before->n_nodes; i++) {
        if (!is_kind(s->before, i, FAB_SWITCH) || s->to_after[i] != FAB_NONE)
            continue;
        uint32_t node = switch_count_majority(s, s->before, i);
        if (node == FAB_NONE || !is_kind(s->after, node, FAB_SWITCH) || s->to_before[node] != FAB_NONE ||
            switch_count_majority(s, s->after, node) != i)
            continue;
        s->to_after[i] = node;
        s->to_before[node] = i;
        found = true;
    }
    return found;
}

void correlation_match_switches(struct correlation *s)
{
    while (match_some(s)) {
    }
}
