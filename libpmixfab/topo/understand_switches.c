/* understand_switches.c - which switch is in whose place: the neighbours' ports vote. */
#include <string.h>

#include "topo/understand_priv.h"

#define MAX_PORTS 256

/* Votes of the ports around a switch: for whom, and how many lead anywhere. */
struct votes {
    uint32_t node[MAX_PORTS], n_votes[MAX_PORTS];
    uint32_t n, all;
};

static void vote(struct votes *votes, uint32_t node)
{
    uint32_t i = 0;

    votes->all++;
    while (i < votes->n && votes->node[i] != node)
        i++;
    if (i == MAX_PORTS)
        return;
    if (i == votes->n) {
        votes->node[votes->n] = node;
        votes->n_votes[votes->n++] = 0;
    }
    votes->n_votes[i]++;
}

/* More than half; FAB_NONE. */
static uint32_t elected(const struct votes *votes)
{
    for (uint32_t i = 0; i < votes->n; i++) {
        if (2 * votes->n_votes[i] > votes->all)
            return votes->node[i];
    }
    return FAB_NONE;
}

/* Where the ports around a switch of `in` lead in the other inventory. */
static uint32_t count_votes(const struct story *s, const struct fab_inventory *in, uint32_t node)
{
    bool forth = in == s->before;
    const struct fab_inventory *other = forth ? s->after : s->before;
    struct votes votes = {.n = 0};

    for (uint32_t i = 0; i < in->nodes[node].n_ports; i++) {
        uint32_t near = peer_of(in, node, i);
        if (near == FAB_NONE)
            continue;
        uint32_t there = forth ? story_port_after(s, near) : story_port_before(s, near);
        if (there != FAB_NONE && other->ports[there].peer != FAB_NONE)
            vote(&votes, other->ports[other->ports[there].peer].node);
    }
    return elected(&votes);
}

/* One round. A switch that is found says more about its neighbours: there may be another one. */
static bool match_some(struct story *s)
{
    bool found = false;

    for (uint32_t i = 0; i < s->before->n_nodes; i++) {
        if (!is_kind(s->before, i, FAB_SWITCH) || s->to_after[i] != FAB_NONE)
            continue;
        uint32_t node = count_votes(s, s->before, i);
        if (node == FAB_NONE || !is_kind(s->after, node, FAB_SWITCH) || s->to_before[node] != FAB_NONE ||
            count_votes(s, s->after, node) != i)
            continue;
        s->to_after[i] = node;
        s->to_before[node] = i;
        found = true;
    }
    return found;
}

void story_match_switches(struct story *s)
{
    while (match_some(s)) {
    }
}
