/*
 * cost_change.c - how the switch graph of a plane differs from that in a snapshot.
 *
 * Both list a switch's cables to those behind it, the snapshot by port, the plane by neighbour. Where nothing
 * changed and ports are cabled in the order of the neighbours, both say the same in the same order: that is
 * looked at first, since it holds for nearly all switches of a large fabric.
 */
#include "topo/cost_update.h"

#include <stdlib.h>
#include <string.h>

/* Beyond that many a search from nothing is as fast. */
#define MOST_CHANGES 1024u

struct comparison {
    const struct fab_plane *plane;
    const struct pmixfab *before;
    struct fab_changes *out;
    uint16_t *cost; /* per switch: what its cable to the one that is looked at cost; 0: none */
};

static bool is_switch(uint32_t end)
{
    return (end & SNAP_END_KIND) == SNAP_END_SWITCH;
}

/* Both are sorted by GUID: number what is in one only or in both. */
static int number_switches(const struct comparison *c)
{
    const struct fab_plane *plane = c->plane;
    const struct pmixfab *before = c->before;
    struct fab_changes *out = c->out;
    uint32_t n_old = before->meta->n_switches, n = plane->n_switches;
    out->n_switches = n;
    out->number = malloc((n_old + (size_t)1) * sizeof(*out->number));
    out->old_of = malloc((n + (size_t)1) * sizeof(*out->old_of));
    if (out->number == NULL || out->old_of == NULL)
        return PMIXFAB_ERR_NOMEM;
    uint32_t s = 0;
    for (uint32_t o = 0; o < n_old; o++) {
        uint64_t guid = before->switches[o].guid;
        for (; s < n && plane->inv->nodes[plane->switches[s].node].guid < guid; s++)
            out->old_of[s] = FAB_NONE;
        if (s < n && plane->inv->nodes[plane->switches[s].node].guid == guid) {
            out->old_of[s] = o;
            out->number[o] = s++;
        } else {
            out->number[o] = out->n_switches++;
        }
    }
    for (; s < n; s++)
        out->old_of[s] = FAB_NONE;
    return PMIXFAB_OK;
}

static int add_change(struct fab_changes *out, uint32_t a, uint32_t b, uint16_t was, uint16_t now)
{
    if (out->n == MOST_CHANGES && !fab_costs_update_unlimited())
        return PMIXFAB_ERR_RANGE;
    if (out->n == out->cap) {
        uint32_t cap = out->cap == 0 ? 32 : 2 * out->cap;
        struct fab_change *grown = realloc(out->list, cap * sizeof(*grown));
        if (grown == NULL)
            return PMIXFAB_ERR_NOMEM;
        out->list = grown;
        out->cap = cap;
    }
    out->list[out->n++] = (struct fab_change){a < b ? a : b, a < b ? b : a, was, now};
    return PMIXFAB_OK;
}

/* Do links and edges say the same in the same order? Of parallel cables the cheapest may come first only. */
static bool same_cables(const struct comparison *c, const struct snap_link *link, const struct snap_link *end,
                        const struct fab_edge *edge, const struct fab_edge *edge_end)
{
    const struct fab_edge *last = NULL;
    for (; link < end; link++) {
        if (!is_switch(link->b))
            continue;
        uint32_t to = c->out->number[link->b & ~SNAP_END_KIND];
        if (edge < edge_end && edge->to == to && edge->cost == link->cost)
            last = edge++;
        else if (last == NULL || last->to != to || link->cost < last->cost)
            return false;
    }
    return edge == edge_end;
}

/* Links of the old switch and edges of the new one to those behind it, in any order. */
static int compare_cables(const struct comparison *c, uint32_t sw, const struct snap_link *link,
                          const struct snap_link *end, const struct fab_edge *edge,
                          const struct fab_edge *edge_end)
{
    int rc = PMIXFAB_OK;
    for (const struct snap_link *l = link; l < end; l++) {
        if (!is_switch(l->b))
            continue;
        uint16_t *cost = &c->cost[c->out->number[l->b & ~SNAP_END_KIND]];
        if (*cost == 0 || l->cost < *cost)
            *cost = l->cost;
    }
    for (; edge < edge_end && rc == PMIXFAB_OK; edge++) {
        if (c->cost[edge->to] != edge->cost)
            rc = add_change(c->out, sw, edge->to, c->cost[edge->to], edge->cost);
        c->cost[edge->to] = 0;
    }
    for (const struct snap_link *l = link; l < end && rc == PMIXFAB_OK; l++) {
        if (!is_switch(l->b))
            continue;
        uint32_t to = c->out->number[l->b & ~SNAP_END_KIND];
        if (c->cost[to] != 0)
            rc = add_change(c->out, sw, to, c->cost[to], 0);
        c->cost[to] = 0;
    }
    return rc;
}

/* A switch of the new plane (or FAB_NONE) and its links in the old one (or none). */
static int compare_switch(const struct comparison *c, uint32_t s, uint32_t number,
                          const struct snap_link *link, const struct snap_link *end)
{
    const struct fab_edge *edge = NULL, *edge_end = NULL;
    if (s != FAB_NONE) {
        const struct fab_vertex *v = &c->plane->switches[s];
        edge = c->plane->adj + v->adj_first;
        edge_end = edge + v->n_adj;
        while (edge < edge_end && edge->to < s)
            edge++;
    }
    if (same_cables(c, link, end, edge, edge_end))
        return PMIXFAB_OK;
    return compare_cables(c, number, link, end, edge, edge_end);
}

/* The links whose first end is this switch; *at moves behind them. Links are in the order of their first
 * ends, by GUID. */
static const struct snap_link *links_of(const struct pmixfab *before, uint32_t o, const struct snap_link **at)
{
    const struct snap_link *end = before->links + before->meta->n_links;
    while (*at < end && (!is_switch((*at)->a) || ((*at)->a & ~SNAP_END_KIND) < o))
        ++*at;
    const struct snap_link *first = *at;
    while (*at < end && (*at)->a == (SNAP_END_SWITCH | o))
        ++*at;
    return first;
}

static int compare(const struct comparison *c)
{
    const struct fab_changes *numbers = c->out;
    uint32_t n = c->plane->n_switches, n_old = c->before->meta->n_switches, s = 0;
    const struct snap_link *at = c->before->links, *first;
    int rc = PMIXFAB_OK;
    for (uint32_t o = 0; o < n_old && rc == PMIXFAB_OK; o++) {
        uint32_t number = numbers->number[o];
        for (; number < n && s < number && rc == PMIXFAB_OK; s++)
            rc = compare_switch(c, s, s, NULL, NULL);
        if (rc != PMIXFAB_OK)
            return rc;
        first = links_of(c->before, o, &at);
        rc = compare_switch(c, number < n ? number : FAB_NONE, number, first, at);
        s = number < n ? number + 1 : s;
    }
    for (; s < n && rc == PMIXFAB_OK; s++)
        rc = compare_switch(c, s, s, NULL, NULL);
    return rc;
}

int fab_changes_find(const struct fab_plane *plane, const struct pmixfab *before, struct fab_changes *out)
{
    struct comparison c = {.plane = plane, .before = before, .out = out};
    *out = (struct fab_changes){0};
    int rc = number_switches(&c);
    if (rc == PMIXFAB_OK && (c.cost = calloc(out->n_switches + (size_t)1, sizeof(*c.cost))) == NULL)
        rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK)
        rc = compare(&c);
    free(c.cost);
    if (rc != PMIXFAB_OK)
        fab_changes_destroy(out);
    return rc;
}

void fab_changes_destroy(struct fab_changes *changes)
{
    free(changes->list);
    free(changes->number);
    free(changes->old_of);
    *changes = (struct fab_changes){0};
}
