/*
 * cost_change.c - how the switch graph of a plane differs from that in a snapshot.
 *
 * Both list a switch's cables to those behind it, the snapshot by port, the plane by neighbour. Where nothing
 * changed and ports are cabled in the order of the neighbours, both say the same in the same order: that is
 * looked at first, since it holds for nearly all switches of a large fabric.
 */
#include "topo/cost/cost_update.h"

#include <stdlib.h>
#include <string.h>

/* Beyond that many a search from nothing is as fast. */
#define MOST_CHANGES 1024u

struct comparison {
    const struct fab_plane *plane;
    const struct pmixfab *before;
    struct fab_changes *out;
    uint16_t *cost;   /* per switch: what its cable to the one that is looked at cost; 0: none */
    uint16_t one;     /* what the first cable between switches costs */
    uint16_t differs; /* bits in which that of another differs from it */
    uint16_t dearest;
};

static bool link_end_is_switch(uint32_t end)
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

/*
 * Do the links from *at on, as far as they are of the switch whose end is `a`, and the edges say the same in
 * the same order? Of parallel cables the cheapest must come first. *at moves behind the links.
 */
static bool same_cables(struct comparison *c, uint32_t a, const struct snap_link **at,
                        const struct fab_edge *edge, const struct fab_edge *edge_end)
{
    const struct snap_link *link = *at, *end = c->before->links + c->before->meta->n_links;
    const uint32_t *number = c->out->number;
    uint32_t last_to = FAB_NONE;
    uint16_t last_cost = 0, differs = 0, dearest = c->dearest;
    bool same = true;
    for (; link < end && link->a == a; link++) {
        if (!link_end_is_switch(link->b))
            continue;
        uint32_t to = number[link->b & ~SNAP_END_KIND];
        if (c->one == 0)
            c->one = link->cost;
        differs |= link->cost ^ c->one;
        dearest = link->cost > dearest ? link->cost : dearest;
        if (edge < edge_end && edge->to == to && edge->cost == link->cost) {
            last_to = to;
            last_cost = link->cost;
            edge++;
        } else {
            same = same && last_to == to && link->cost >= last_cost;
        }
    }
    *at = link;
    c->differs |= differs;
    c->dearest = dearest;
    return same && edge == edge_end;
}

/* Links of the old switch and edges of the new one to those behind it, in any order. */
static int change_compare_cables(const struct comparison *c, uint32_t sw, const struct snap_link *link,
                                 const struct snap_link *end, const struct fab_edge *edge,
                                 const struct fab_edge *edge_end)
{
    int rc = PMIXFAB_OK;
    for (const struct snap_link *l = link; l < end; l++) {
        if (!link_end_is_switch(l->b))
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
        if (!link_end_is_switch(l->b))
            continue;
        uint32_t to = c->out->number[l->b & ~SNAP_END_KIND];
        if (c->cost[to] != 0)
            rc = add_change(c->out, sw, to, c->cost[to], 0);
        c->cost[to] = 0;
    }
    return rc;
}

/* The edges of a switch to those behind it: edges are in their order. */
static const struct fab_edge *edges_behind(const struct fab_plane *plane, uint32_t s)
{
    const struct fab_edge *low = plane->adj + plane->switches[s].adj_first;
    const struct fab_edge *high = low + plane->switches[s].n_adj;
    if (low == high || low->to > s)
        return low;
    if (high[-1].to < s)
        return high;
    while (low < high) {
        const struct fab_edge *middle = low + (high - low) / 2;
        if (middle->to < s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A switch that is in the new plane only. */
static int compare_new(const struct comparison *c, uint32_t s)
{
    const struct fab_vertex *v = &c->plane->switches[s];
    return change_compare_cables(c, s, NULL, NULL, edges_behind(c->plane, s),
                                 c->plane->adj + v->adj_first + v->n_adj);
}

/* A switch of the old plane, in the new one or not. Links are in the order of their first ends, by GUID; *at
 * moves behind its links. */
static int compare_old(struct comparison *c, uint32_t o, const struct snap_link **at)
{
    const struct snap_link *end = c->before->links + c->before->meta->n_links;
    const struct fab_edge *edge = NULL, *edge_end = NULL;
    uint32_t s = c->out->number[o];
    if (s < c->plane->n_switches) {
        edge = edges_behind(c->plane, s);
        edge_end = c->plane->adj + c->plane->switches[s].adj_first + c->plane->switches[s].n_adj;
    }
    const uint32_t a = SNAP_END_SWITCH | o; /* devices are below all switches, others above */
    while (*at < end && ((*at)->a < a || (*at)->a >= SNAP_END_OTHER))
        ++*at;
    const struct snap_link *first = *at;
    if (same_cables(c, a, at, edge, edge_end))
        return PMIXFAB_OK;
    return change_compare_cables(c, s, first, *at, edge, edge_end);
}

static int cost_change_compare(struct comparison *c)
{
    const struct fab_changes *numbers = c->out;
    uint32_t n = c->plane->n_switches, n_old = c->before->meta->n_switches;
    const struct snap_link *at = c->before->links;
    int rc = PMIXFAB_OK;
    for (uint32_t o = 0; o < n_old && rc == PMIXFAB_OK; o++)
        rc = compare_old(c, o, &at);
    for (uint32_t s = 0; s < n && rc == PMIXFAB_OK; s++)
        if (numbers->old_of[s] == FAB_NONE)
            rc = compare_new(c, s);
    /* What did not change is among the links; what did is listed. */
    for (uint32_t i = 0; i < numbers->n; i++) {
        uint16_t now = numbers->list[i].now;
        c->one = c->one == 0 ? now : c->one;
        c->differs |= now != 0 ? now ^ c->one : 0;
        c->dearest = now > c->dearest ? now : c->dearest;
    }
    c->out->uniform = c->differs == 0;
    c->out->dearest = c->dearest;
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
        rc = cost_change_compare(&c);
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
