/* match.c - which node of the one inventory is which of the other. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/changes/correlation.h"

static void match_pair(struct correlation *s, uint32_t before, uint32_t after)
{
    s->to_after[before] = after;
    s->to_before[after] = before;
}

/* ---- the same GUID, where there is no doubt ------------------------------------------------------- */

static bool match_same_name(const struct correlation *s, uint32_t b, uint32_t a)
{
    const struct fab_node *x = &s->before->nodes[b], *y = &s->after->nodes[a];
    return strcmp(fab_str(s->before, x->host), fab_str(s->after, y->host)) == 0 &&
           strcmp(fab_str(s->before, x->name), fab_str(s->after, y->name)) == 0;
}

/* The same port of the same GUID at the other end. */
static bool same_peer(const struct correlation *s, const struct fab_port *b, const struct fab_port *a)
{
    if (b->peer == FAB_NONE || a->peer == FAB_NONE)
        return false;
    const struct fab_port *x = &s->before->ports[b->peer], *y = &s->after->ports[a->peer];
    return x->num == y->num && s->before->nodes[x->node].guid == s->after->nodes[y->node].guid;
}

/* How many cables a node has in either inventory, and how many of them are where they were. */
struct cables {
    uint32_t before, after, kept;
};

static struct cables match_count_cables(const struct correlation *s, const struct fab_node *b,
                                        const struct fab_node *a)
{
    const struct fab_port *x = s->before->ports + b->first_port, *y = s->after->ports + a->first_port;
    struct cables n = {0};
    uint32_t i = 0, k = 0;

    while (i < b->n_ports || k < a->n_ports) {
        bool has_b = i < b->n_ports && (k >= a->n_ports || x[i].num <= y[k].num);
        bool has_a = k < a->n_ports && (i >= b->n_ports || y[k].num <= x[i].num);
        n.before += has_b && x[i].peer != FAB_NONE;
        n.after += has_a && y[k].peer != FAB_NONE;
        n.kept += has_b && has_a && same_peer(s, &x[i], &y[k]);
        i += has_b;
        k += has_a;
    }
    return n;
}

/* An HCA that has neither its name nor its place may be another host's now; a switch that has none of its
 * cables may be where another one was. */
static bool is_certain(const struct correlation *s, uint32_t b, uint32_t a)
{
    const struct fab_node *x = &s->before->nodes[b], *y = &s->after->nodes[a];

    if (x->kind != FAB_HCA && x->kind != FAB_SWITCH)
        return true;
    if (x->kind == FAB_HCA && match_same_name(s, b, a))
        return true;
    struct cables n = match_count_cables(s, x, y);
    return n.kept > 0 || (x->kind == FAB_SWITCH && (n.before == 0 || n.after == 0));
}

static void match_by_guid(struct correlation *s,
                          bool (*accept)(const struct correlation *, uint32_t, uint32_t))
{
    for (uint32_t b = 0, at = 0; b < s->before->n_nodes; b++) {
        const struct fab_node *node = &s->before->nodes[b];
        uint32_t a =
            s->to_after[b] == FAB_NONE ? fab_inventory_find_next(s->after, node->guid, &at) : FAB_NONE;
        if (a != FAB_NONE && is_kind(s->after, a, node->kind) && s->to_before[a] == FAB_NONE &&
            accept(s, b, a))
            match_pair(s, b, a);
    }
}

static bool match_is_hca(const struct correlation *s, uint32_t b, uint32_t a)
{
    (void)a;
    return is_kind(s->before, b, FAB_HCA);
}

static bool match_is_switch(const struct correlation *s, uint32_t b, uint32_t a)
{
    (void)a;
    return is_kind(s->before, b, FAB_SWITCH);
}

/* ---- HCAs by name -------------------------------------------------------------------------------- */

int correlation_compare_named(const void *a, const void *b)
{
    const struct correlation_named *x = a, *y = b;
    return strcmp(x->host, y->host) ?: strcmp(x->name, y->name);
}

/* Those alike stay in their order. */
static int correlation_compare_in_list(const void *a, const void *b)
{
    const struct correlation_named *x = a, *y = b;
    return correlation_compare_named(a, b) ?: FAB_ORDER(x->node, y->node);
}

struct correlation_named *correlation_list_named(const struct fab_inventory *inv, const uint32_t *matches,
                                                 const uint32_t *others, uint32_t *n)
{
    struct correlation_named *list = malloc((inv->n_nodes + 1u) * sizeof(*list));

    *n = 0;
    for (uint32_t i = 0; list != NULL && i < inv->n_nodes; i++) {
        if (is_kind(inv, i, FAB_HCA) && (matches == NULL || matches[i] == FAB_NONE) &&
            (others == NULL || others[i] == FAB_NONE))
            list[(*n)++] = correlation_name_of(inv, i);
    }
    if (*n > 1)
        qsort(list, *n, sizeof(*list), correlation_compare_in_list);
    return list;
}

/* How many of the list, from `at` on, have its name. */
static uint32_t match_name_run(const struct correlation_named *list, uint32_t n, uint32_t at)
{
    uint32_t end = at + 1;
    while (end < n && correlation_compare_named(&list[at], &list[end]) == 0)
        end++;
    return end - at;
}

void correlation_pair_names(struct correlation *s, const struct correlation_named *before, uint32_t n_before,
                            const struct correlation_named *after, uint32_t n_after,
                            void (*pair)(struct correlation *s, uint32_t before, uint32_t after))
{
    uint32_t b = 0, a = 0;

    while (b < n_before && a < n_after) {
        int order = correlation_compare_named(&before[b], &after[a]);
        uint32_t run_b = order <= 0 ? match_name_run(before, n_before, b) : 0;
        uint32_t run_a = order >= 0 ? match_name_run(after, n_after, a) : 0;
        if (run_b == 1 && run_a == 1)
            pair(s, before[b].node, after[a].node);
        b += run_b;
        a += run_a;
    }
}

static int match_by_name(struct correlation *s)
{
    uint32_t n_before, n_after;
    struct correlation_named *before = correlation_list_named(s->before, s->to_after, NULL, &n_before);
    struct correlation_named *after = correlation_list_named(s->after, s->to_before, NULL, &n_after);
    int rc = before == NULL || after == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;

    if (rc == PMIXFAB_OK)
        correlation_pair_names(s, before, n_before, after, n_after, match_pair);
    free(before);
    free(after);
    return rc;
}

/* ---- HCAs by place -------------------------------------------------------------------------------- */

/* At the switch port where this one was. */
static uint32_t in_its_place(const struct correlation *s, uint32_t hca)
{
    for (uint32_t i = 0; i < s->before->nodes[hca].n_ports; i++) {
        uint32_t port = peer_of(s->before, hca, i);
        uint32_t now = port == FAB_NONE ? FAB_NONE : correlation_port_after(s, port);
        uint32_t end = now == FAB_NONE ? FAB_NONE : s->after->ports[now].peer;
        uint32_t node = end == FAB_NONE ? FAB_NONE : s->after->ports[end].node;
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
        uint32_t node = in_its_place(s, i);
        if (node != FAB_NONE)
            match_pair(s, i, node);
    }
}

int correlation_match(struct correlation *s)
{
    const struct pairing pairs = correlation_pairs(s);

    for (uint32_t i = 0; i < s->before->n_nodes; i++)
        s->to_after[i] = FAB_NONE;
    for (uint32_t i = 0; i < s->after->n_nodes; i++)
        s->to_before[i] = FAB_NONE;
    match_by_guid(s, is_certain);
    int rc = match_by_name(s);
    match_by_guid(s, match_is_hca);
    pairing_switches(&pairs);
    match_by_guid(s, match_is_switch);
    pairing_switches(&pairs);
    match_by_place(s);
    return rc;
}
