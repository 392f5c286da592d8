#include "topo/model/pairing.h"

/* ---- votes ----------------------------------------------------------------------------------------- */

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

/* ---- pairs ----------------------------------------------------------------------------------------- */

/* Return the same pairs, seen from the later inventory. */
static struct pairing pairing_turned(const struct pairing *pairs)
{
    return (struct pairing){pairs->after, pairs->before, pairs->to_before, pairs->to_after};
}

uint32_t pairing_port_after(const struct pairing *pairs, uint32_t port)
{
    const struct fab_port *from = &pairs->before->ports[port];
    uint32_t node = pairs->to_after[from->node];
    return node == FAB_NONE ? FAB_NONE : fab_inventory_port(pairs->after, node, from->num);
}

uint32_t pairing_port_before(const struct pairing *pairs, uint32_t port)
{
    const struct pairing back = pairing_turned(pairs);
    return pairing_port_after(&back, port);
}

uint32_t pairing_vote_after(const struct pairing *pairs, uint32_t node)
{
    const struct fab_node *sw = &pairs->before->nodes[node];
    const struct fab_port *after = pairs->after->ports;
    struct majority votes = {.n = 0};
    uint64_t whom;

    for (uint32_t p = sw->first_port; p < sw->first_port + sw->n_ports; p++) {
        uint32_t near = pairs->before->ports[p].peer;
        uint32_t there = near == FAB_NONE ? FAB_NONE : pairing_port_after(pairs, near);
        if (there != FAB_NONE && after[there].peer != FAB_NONE)
            majority_add(&votes, after[after[there].peer].node);
    }
    return majority_elected(&votes, &whom) ? (uint32_t)whom : FAB_NONE;
}

/* Return whether this node is a switch without a pair. */
static bool pairing_is_single(const struct fab_inventory *inv, const uint32_t *pair_of, uint32_t node)
{
    return inv->nodes[node].kind == FAB_SWITCH && pair_of[node] == FAB_NONE;
}

void pairing_switches(const struct pairing *pairs)
{
    const struct pairing back = pairing_turned(pairs);

    for (bool found = true; found;) {
        found = false;
        for (uint32_t b = 0; b < pairs->before->n_nodes; b++) {
            if (!pairing_is_single(pairs->before, pairs->to_after, b))
                continue;
            uint32_t a = pairing_vote_after(pairs, b);
            if (a == FAB_NONE || !pairing_is_single(pairs->after, pairs->to_before, a) ||
                pairing_vote_after(&back, a) != b)
                continue;
            pairs->to_after[b] = a;
            pairs->to_before[a] = b;
            found = true;
        }
    }
}
