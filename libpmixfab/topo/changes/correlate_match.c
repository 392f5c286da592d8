/* correlate_match.c - match nodes of the past, present or lost then, with nodes of the inventory after. */
#include <stdlib.h>

#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/changes/changes_private.h"

/* A range of past nodes: those of before, or those that were lost. */
struct range {
    uint32_t first, end;
};

static void match_pair(struct correlation *s, uint32_t past, uint32_t after)
{
    s->to_after[past] = after;
    *(past < s->before->n_nodes ? &s->to_before[after] : &s->to_lost[after]) = past;
}

bool is_new(const struct correlation *s, uint32_t after)
{
    return s->to_before[after] == FAB_NONE && s->to_lost[after] == FAB_NONE;
}

/* ---- places then and now --------------------------------------------------------------------------- */

static struct pairing seen_pairs(const struct correlation *s)
{
    return (struct pairing){s->before, s->after, s->to_after, s->to_before};
}

uint32_t port_after(const struct correlation *s, uint32_t port)
{
    const struct pairing pairs = seen_pairs(s);
    return pairing_port_after(&pairs, port);
}

static uint32_t port_before(const struct correlation *s, uint32_t port)
{
    const struct pairing pairs = seen_pairs(s);
    return pairing_port_before(&pairs, port);
}

uint32_t node_now(const struct correlation *s, uint64_t guid)
{
    const uint32_t lost = fab_lost_find(s->lost, guid);
    if (lost != FAB_NONE && s->to_after[s->before->n_nodes + lost] != FAB_NONE)
        return s->to_after[s->before->n_nodes + lost];
    const uint32_t before = fab_inventory_find(s->before, guid);
    return before == FAB_NONE ? FAB_NONE : s->to_after[before];
}

uint64_t guid_then(const struct correlation *s, uint32_t after)
{
    const uint32_t past = s->to_lost[after] != FAB_NONE ? s->to_lost[after] : s->to_before[after];
    return past == FAB_NONE ? s->after->nodes[after].guid : past_of(s, past).guid;
}

uint32_t lost_ends_from(const struct correlation *s, uint64_t guid, uint32_t num)
{
    const struct lost_end *ends = s->ends;
    return FAB_LOWER_BOUND(0, s->n_ends, i, ends[i].guid != guid ? ends[i].guid < guid : ends[i].num < num);
}

const struct lost_end *lost_at(const struct correlation *s, uint64_t guid, uint32_t num)
{
    const uint32_t at = lost_ends_from(s, guid, num);
    return at < s->n_ends && s->ends[at].guid == guid && s->ends[at].num == num ? &s->ends[at] : NULL;
}

static uint32_t lost_end_now(const struct correlation *s, const struct fab_lost_item *cable, int side)
{
    const uint32_t node = node_now(s, cable->end[side].guid);
    return node == FAB_NONE ? FAB_NONE : fab_inventory_port(s->after, node, cable->end[side].num);
}

uint32_t back_at(const struct correlation *s, const struct fab_lost_item *cable, int side)
{
    const uint32_t near = lost_end_now(s, cable, side), far = lost_end_now(s, cable, !side);
    return near != FAB_NONE && far != FAB_NONE && s->after->ports[near].peer == far ? near : FAB_NONE;
}

/* ---- by GUID ----------------------------------------------------------------------------------------- */

/* The number of a node's cables in either inventory, and of those in the same place. */
struct cables {
    uint32_t before, after, kept;
};

static struct cables count_kept_cables(const struct correlation *s, const struct fab_node *b,
                                       const struct fab_node *a)
{
    const struct fab_port *x = s->before->ports + b->first_port, *y = s->after->ports + a->first_port;
    struct cables n = {0};

    for (uint32_t i = 0, k = 0; i < b->n_ports || k < a->n_ports;) {
        const bool has_b = i < b->n_ports && (k >= a->n_ports || x[i].num <= y[k].num);
        const bool has_a = k < a->n_ports && (i >= b->n_ports || y[k].num <= x[i].num);
        const bool cabled_b = has_b && x[i].peer != FAB_NONE, cabled_a = has_a && y[k].peer != FAB_NONE;
        n.before += cabled_b;
        n.after += cabled_a;
        if (cabled_b && cabled_a) {
            const struct fab_told_end was = port_end(s->before, x[i].peer),
                                      is = port_end(s->after, y[k].peer);
            n.kept += was.guid == is.guid && was.port == is.port;
        }
        i += has_b;
        k += has_a;
    }
    return n;
}

/*
 * Return whether equal GUIDs prove that the nodes are the same. An HCA with another name and another place
 * may belong to another host now. A switch without any of its cables may be in the place of another switch.
 */
static bool is_certain(const struct correlation *s, uint32_t past, uint32_t a)
{
    const struct past_node was = past_of(s, past);
    const struct fab_node *is = &s->after->nodes[a];
    const bool same_name = strcmp(was.host, fab_str(s->after, is->host)) == 0 &&
                           strcmp(was.name, fab_str(s->after, is->name)) == 0;

    if ((was.kind != FAB_HCA && was.kind != FAB_SWITCH) || (was.kind == FAB_HCA && same_name))
        return true;
    if (was.lost != NULL)
        return was.kind == FAB_SWITCH;
    const struct cables n = count_kept_cables(s, &s->before->nodes[past], is);
    return n.kept > 0 || (was.kind == FAB_SWITCH && (n.before == 0 || n.after == 0));
}

/*
 * Match nodes of a kind or, with kind 0, those that are certain. Both sides are in the order of their GUIDs.
 */
static void match_by_guid(struct correlation *s, struct range of, unsigned kind)
{
    for (uint32_t p = of.first, at = 0; p < of.end; p++) {
        const struct past_node was = past_of(s, p);
        uint32_t a = s->to_after[p] == FAB_NONE ? fab_inventory_find_next(s->after, was.guid, &at) : FAB_NONE;
        if (a != FAB_NONE && is_kind(s->after, a, was.kind) && is_new(s, a) &&
            (kind != 0 ? was.kind == kind : is_certain(s, p, a)))
            match_pair(s, p, a);
    }
}

/* ---- HCAs by name -------------------------------------------------------------------------------- */

struct named named_node(const struct fab_inventory *inv, uint32_t node)
{
    return (struct named){fab_str(inv, inv->nodes[node].host), fab_str(inv, inv->nodes[node].name), node};
}

int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return strcmp(x->host, y->host) ?: strcmp(x->name, y->name);
}

/* Equal names keep their order. */
static int compare_in_list(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return compare_named(a, b) ?: FAB_ORDER(x->node, y->node);
}

struct named *list_named(const struct fab_inventory *inv, uint32_t *n)
{
    struct named *list = malloc((inv->n_nodes + 1u) * sizeof(*list));

    *n = 0;
    for (uint32_t i = 0; list != NULL && i < inv->n_nodes; i++) {
        if (is_kind(inv, i, FAB_HCA))
            list[(*n)++] = named_node(inv, i);
    }
    if (*n > 1)
        qsort(list, *n, sizeof(*list), compare_in_list);
    return list;
}

/* Return how many entries from `at` on have its name. */
static uint32_t name_run(const struct named *list, uint32_t n, uint32_t at)
{
    uint32_t end = at + 1;
    while (end < n && compare_named(&list[at], &list[end]) == 0)
        end++;
    return end - at;
}

/* Match by name. A name that two nodes have matches neither. */
static void match_by_name(struct correlation *s, struct range of)
{
    struct named *was = malloc((of.end - of.first + 1u) * sizeof(*was));
    struct named *is = malloc((s->after->n_nodes + 1u) * sizeof(*is));
    uint32_t n_was = 0, n_is = 0;

    if (was == NULL || is == NULL) {
        s->out.rc = PMIXFAB_ERR_NOMEM;
        goto cleanup;
    }
    for (uint32_t p = of.first; p < of.end; p++) {
        const struct past_node node = past_of(s, p);
        if (node.kind == FAB_HCA && s->to_after[p] == FAB_NONE)
            was[n_was++] = (struct named){node.host, node.name, p};
    }
    for (uint32_t a = 0; a < s->after->n_nodes && n_was > 0; a++) {
        if (is_kind(s->after, a, FAB_HCA) && is_new(s, a))
            is[n_is++] = named_node(s->after, a);
    }
    if (n_is == 0)
        goto cleanup;
    qsort(was, n_was, sizeof(*was), compare_named);
    qsort(is, n_is, sizeof(*is), compare_named);
    for (uint32_t b = 0, a = 0; b < n_was && a < n_is;) {
        const int order = compare_named(&was[b], &is[a]);
        const uint32_t run_b = order <= 0 ? name_run(was, n_was, b) : 0;
        const uint32_t run_a = order >= 0 ? name_run(is, n_is, a) : 0;
        if (run_b == 1 && run_a == 1)
            match_pair(s, was[b].node, is[a].node);
        b += run_b;
        a += run_a;
    }
cleanup:
    free(was);
    free(is);
}

/*
 * ---- lost switches by their neighbours ------------------------------------------------------------------
 */

/* Return the cable that a port of after had last, if it was lost since then, else NULL. */
static const struct lost_end *lost_before(const struct correlation *s, uint32_t port)
{
    const struct fab_port *at = &s->after->ports[port];
    return lost_at(s, guid_then(s, at->node), at->num);
}

/* Return the port at the other end of the cable that this port of after had in before, or FAB_NONE. */
static uint32_t peer_before(const struct correlation *s, uint32_t port)
{
    const uint32_t before = port_before(s, port);
    return before == FAB_NONE ? FAB_NONE : s->before->ports[before].peer;
}

/* Return the switch to which most ports that led to a lost switch lead now. */
static uint32_t vote_now(const struct correlation *s, uint64_t guid)
{
    struct majority votes = {.n = 0};
    uint64_t whom;

    for (uint32_t i = lost_ends_from(s, guid, 0); i < s->n_ends && s->ends[i].guid == guid; i++) {
        const uint32_t far = lost_end_now(s, s->ends[i].cable, !s->ends[i].side);
        if (far != FAB_NONE && s->after->ports[far].peer != FAB_NONE)
            majority_add(&votes, peer_node(s->after, far));
    }
    return majority_elected(&votes, &whom) ? (uint32_t)whom : FAB_NONE;
}

/*
 * Look at the ports that lead to this switch now. Return the GUID of the switch to which most of them led
 * last; 0: none.
 */
static uint64_t vote_then(const struct correlation *s, uint32_t after)
{
    const struct fab_node *node = &s->after->nodes[after];
    struct majority votes = {.n = 0};
    uint64_t whom;

    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const uint32_t far = s->after->ports[p].peer;
        if (far == FAB_NONE)
            continue;
        const uint32_t before = peer_before(s, far);
        const struct lost_end *end = lost_before(s, far);
        if (before != FAB_NONE)
            majority_add(&votes, port_end(s->before, before).guid);
        else if (end != NULL)
            majority_add(&votes, end->cable->end[!end->side].guid);
    }
    return majority_elected(&votes, &whom) ? whom : 0;
}

/* As pairing_switches(): each match adds information about its neighbours. */
static void match_lost_switches(struct correlation *s, struct range lost)
{
    for (bool found = true; found;) {
        found = false;
        for (uint32_t p = lost.first; p < lost.end; p++) {
            const struct past_node was = past_of(s, p);
            if (was.kind != FAB_SWITCH || s->to_after[p] != FAB_NONE)
                continue;
            const uint32_t a = vote_now(s, was.guid);
            if (a == FAB_NONE || !is_kind(s->after, a, FAB_SWITCH) || !is_new(s, a) ||
                vote_then(s, a) != was.guid)
                continue;
            match_pair(s, p, a);
            found = true;
        }
    }
}

/* ---- HCAs by place -------------------------------------------------------------------------------- */

/* Return the HCA of after at the switch port where this one was. */
static uint32_t in_its_place(const struct correlation *s, const struct fab_node *hca)
{
    for (uint32_t p = hca->first_port; p < hca->first_port + hca->n_ports; p++) {
        const uint32_t port = s->before->ports[p].peer;
        const uint32_t now = port == FAB_NONE ? FAB_NONE : port_after(s, port);
        const uint32_t node = now == FAB_NONE ? FAB_NONE : peer_node(s->after, now);
        if (node != FAB_NONE && is_kind(s->after, node, FAB_HCA) && s->to_before[node] == FAB_NONE)
            return node;
    }
    return FAB_NONE;
}

static void match_by_place(struct correlation *s)
{
    for (uint32_t i = 0; i < s->before->n_nodes; i++) {
        if (!is_kind(s->before, i, FAB_HCA) || s->to_after[i] != FAB_NONE)
            continue;
        const uint32_t node = in_its_place(s, &s->before->nodes[i]);
        if (node != FAB_NONE)
            match_pair(s, i, node);
    }
}

/* Match an HCA at the switch port where a lost one was last. */
static void match_lost_by_place(struct correlation *s)
{
    for (uint32_t p = 0; p < s->after->n_ports; p++) {
        const uint32_t a = s->after->ports[p].node, far = s->after->ports[p].peer;
        if (far == FAB_NONE || !is_kind(s->after, a, FAB_HCA) || !is_new(s, a))
            continue;
        const struct lost_end *end = lost_before(s, far);
        if (end == NULL || peer_before(s, far) != FAB_NONE)
            continue;
        const uint32_t lost = fab_lost_find(s->lost, end->cable->end[!end->side].guid);
        const uint32_t past = s->before->n_nodes + lost;
        if (lost != FAB_NONE && s->lost->nodes.items[lost].kind == FAB_HCA && s->to_after[past] == FAB_NONE)
            match_pair(s, past, a);
    }
}

/* ---- the whole matching ------------------------------------------------------------------------------ */

static int compare_lost_ends(const void *a, const void *b)
{
    const struct lost_end *x = a, *y = b;
    return FAB_ORDER(x->guid, y->guid) ?: FAB_ORDER(x->num, y->num)
           ?: FAB_ORDER(y->generation, x->generation);
}

static void list_lost_ends(struct correlation *s)
{
    for (uint32_t i = 0; s->lost != NULL && i < s->lost->cables.n; i++) {
        struct fab_lost_item *cable = &s->lost->cables.items[i];
        for (int k = 0; k < 2; k++)
            s->ends[s->n_ends++] =
                (struct lost_end){cable->end[k].guid, cable->generation, cable->end[k].num, k, cable};
    }
    if (s->n_ends > 1)
        qsort(s->ends, s->n_ends, sizeof(*s->ends), compare_lost_ends);
}

static bool anything_came(const struct correlation *s)
{
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (came(s->raw->changes[i].kind))
            return true;
    }
    return false;
}

int correlation_match(struct correlation *s)
{
    const size_t n_after = s->after->n_nodes + (size_t)1;
    const size_t n_cables = s->lost == NULL ? 0 : s->lost->cables.n;
    const struct range seen = {0, s->before->n_nodes};

    s->n_past = s->before->n_nodes + (s->lost == NULL ? 0 : s->lost->nodes.n);
    const struct range lost = {seen.end, s->n_past};
    s->to_after = malloc((s->n_past + (size_t)1) * sizeof(*s->to_after));
    s->to_before = malloc(n_after * sizeof(*s->to_before));
    s->to_lost = malloc(n_after * sizeof(*s->to_lost));
    s->ends = malloc((2 * n_cables + 1) * sizeof(*s->ends));
    if (s->to_after == NULL || s->to_before == NULL || s->to_lost == NULL || s->ends == NULL)
        return PMIXFAB_ERR_NOMEM;
    memset(s->to_after, 0xff, (s->n_past + (size_t)1) * sizeof(*s->to_after));
    memset(s->to_before, 0xff, n_after * sizeof(*s->to_before));
    memset(s->to_lost, 0xff, n_after * sizeof(*s->to_lost));
    list_lost_ends(s);
    const struct pairing pairs = seen_pairs(s);
    match_by_guid(s, seen, 0);
    match_by_name(s, seen);
    match_by_guid(s, seen, FAB_HCA);
    pairing_switches(&pairs);
    match_by_guid(s, seen, FAB_SWITCH);
    pairing_switches(&pairs);
    match_by_place(s);
    if (s->lost != NULL && anything_came(s)) {
        match_by_guid(s, lost, 0);
        match_by_name(s, lost);
        match_by_guid(s, lost, FAB_HCA);
        match_lost_switches(s, lost);
        match_lost_by_place(s);
    }
    return s->out.rc;
}
