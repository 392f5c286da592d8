/*
 * cost_walk.c - searches in a switch graph that is on its way from what it was to what it is.
 *
 * Most switches have the neighbours that the new plane says. Those that changes are about have a list of
 * their own, as long as the changes are made one after the other.
 */
#include "topo/cost/cost_update.h"

#include <stdlib.h>
#include <string.h>

/* ---- the graph ---------------------------------------------------------------------------------- */

static const struct fab_edge *edges_of(const struct fab_walk *walk, uint32_t s, uint32_t *n)
{
    if (walk->own_first[s] != FAB_NONE) {
        *n = walk->own_n[s];
        return walk->own + walk->own_first[s];
    }
    *n = walk->plane->switches[s].n_adj;
    return walk->plane->adj + walk->plane->switches[s].adj_first;
}

static uint32_t plane_edges(const struct fab_plane *plane, uint32_t s)
{
    return s < plane->n_switches ? plane->switches[s].n_adj : 0;
}

/* Lists for both ends of all changes, with room for all that the old or the new graph has there. */
static int make_lists(struct fab_walk *walk, const struct fab_changes *changes)
{
    size_t total = 0;
    for (uint32_t i = 0; i < changes->n; i++) {
        const uint32_t ends[2] = {changes->list[i].a, changes->list[i].b};
        for (int e = 0; e < 2; e++) {
            uint32_t s = ends[e];
            if (walk->own_first[s] == FAB_NONE) {
                walk->own_first[s] = 0;
                walk->own_n[s] = plane_edges(walk->plane, s);
            }
            walk->own_n[s]++;
        }
    }
    for (uint32_t s = 0; s < walk->n; s++) {
        if (s < walk->plane->n_switches && walk->own_first[s] == FAB_NONE)
            continue;
        walk->own_first[s] = (uint32_t)total;
        total += walk->own_n[s];
    }
    walk->own = calloc(total + 1, sizeof(*walk->own));
    if (walk->own == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = 0; s < walk->n; s++) {
        if (walk->own_first[s] == FAB_NONE)
            continue;
        walk->own_n[s] = plane_edges(walk->plane, s);
        if (walk->own_n[s] > 0)
            memcpy(walk->own + walk->own_first[s], walk->plane->adj + walk->plane->switches[s].adj_first,
                   walk->own_n[s] * sizeof(*walk->own));
    }
    return PMIXFAB_OK;
}

static void set_one(struct fab_walk *walk, uint32_t s, uint32_t to, uint16_t cost)
{
    struct fab_edge *list = walk->own + walk->own_first[s];
    uint32_t at = 0;
    while (at < walk->own_n[s] && list[at].to != to)
        at++;
    if (cost == 0 && at < walk->own_n[s])
        list[at] = list[--walk->own_n[s]];
    else if (at < walk->own_n[s])
        list[at].cost = cost;
    else if (cost != 0)
        list[walk->own_n[s]++] = (struct fab_edge){to, cost, 1};
}

void fab_affected_set(struct fab_walk *walk, uint32_t a, uint32_t b, uint16_t cost)
{
    set_one(walk, a, b, cost);
    set_one(walk, b, a, cost);
}

int fab_affected_begin(struct fab_walk *walk, const struct fab_plane *plane,
                       const struct fab_changes *changes)
{
    size_t n = changes->n_switches + (size_t)1;
    *walk = (struct fab_walk){.plane = plane, .n = changes->n_switches, .uniform = changes->uniform};
    /* A switch waits once for each time that a shorter way to it was found. */
    size_t most = walk->uniform ? n : n + plane->n_adj + 2 * (size_t)changes->n;
    while (walk->mask < changes->dearest)
        walk->mask = 2 * walk->mask + 1;
    walk->own_first = malloc(n * sizeof(*walk->own_first));
    walk->own_n = calloc(n, sizeof(*walk->own_n));
    walk->dist = malloc(n * sizeof(*walk->dist));
    walk->only = malloc(n * sizeof(*walk->only));
    walk->found = malloc(n * sizeof(*walk->found));
    walk->entries = malloc(most * sizeof(*walk->entries));
    walk->heads = malloc((walk->mask + (size_t)1) * sizeof(*walk->heads));
    int rc = PMIXFAB_ERR_NOMEM;
    if (walk->own_first != NULL && walk->own_n != NULL && walk->dist != NULL && walk->only != NULL &&
        walk->found != NULL && walk->entries != NULL && walk->heads != NULL) {
        memset(walk->own_first, 0xff, n * sizeof(*walk->own_first));
        rc = make_lists(walk, changes);
    }
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < changes->n; i++)
        fab_affected_set(walk, changes->list[i].a, changes->list[i].b, changes->list[i].was);
    if (rc != PMIXFAB_OK)
        fab_affected_destroy(walk);
    return rc;
}

void fab_affected_destroy(struct fab_walk *walk)
{
    free(walk->own);
    free(walk->own_first);
    free(walk->own_n);
    free(walk->dist);
    free(walk->only);
    free(walk->entries);
    free(walk->heads);
    free(walk->found);
    *walk = (struct fab_walk){0};
}

/* ---- the queue ---------------------------------------------------------------------------------- */

static void affected_push(struct fab_walk *walk, uint32_t dist, uint32_t s)
{
    uint32_t *head = &walk->heads[dist & walk->mask];
    walk->entries[walk->n_entries] = (struct fab_waiting){s, *head};
    *head = walk->n_entries++;
    walk->n_waiting++;
}

/* The next switch and, in walk->now, the distance at which it was put here; some are waiting. */
static uint32_t affected_pop(struct fab_walk *walk)
{
    while (walk->heads[walk->now & walk->mask] == FAB_NONE)
        walk->now++;
    uint32_t *head = &walk->heads[walk->now & walk->mask], entry = *head;
    *head = walk->entries[entry].next;
    walk->n_waiting--;
    return walk->entries[entry].sw;
}

static bool affected_spend(struct fab_walk *walk, uint32_t cables)
{
    if (walk->budget < cables)
        return false;
    walk->budget -= cables;
    return true;
}

static void affected_start(struct fab_walk *walk, uint32_t from)
{
    memset(walk->dist, 0xff, walk->n * sizeof(*walk->dist));
    memset(walk->heads, 0xff, (walk->mask + (size_t)1) * sizeof(*walk->heads));
    walk->n_entries = walk->n_waiting = walk->now = 0;
    walk->dist[from] = 0;
    affected_push(walk, 0, from);
}

/* ---- searches ----------------------------------------------------------------------------------- */

/* What is still to be found: where all cables cost the same, the first way to a switch is a shortest one. */
bool fab_affected_search(struct fab_walk *walk, uint32_t from, const uint32_t *edge_of, uint32_t n)
{
    uint32_t missing = n, switches = walk->plane->n_switches;
    affected_start(walk, from);
    missing -= walk->uniform && from < switches && edge_of[from] != FAB_NONE;
    while (walk->n_waiting > 0 && missing > 0) {
        uint32_t s = affected_pop(walk), dist = walk->now, n_edges;
        if (dist > walk->dist[s])
            continue; /* a shorter way was found meanwhile */
        missing -= !walk->uniform && s < switches && edge_of[s] != FAB_NONE;
        const struct fab_edge *edges = edges_of(walk, s, &n_edges);
        if (!affected_spend(walk, n_edges))
            return false;
        for (uint32_t e = 0; e < n_edges; e++) {
            uint32_t to = edges[e].to, sum = dist + edges[e].cost;
            if (sum >= walk->dist[to])
                continue;
            walk->dist[to] = sum;
            affected_push(walk, sum, to);
            missing -= walk->uniform && to < switches && edge_of[to] != FAB_NONE;
        }
    }
    return true;
}

/*
 * A switch is reached through the cable only, if all switches from which a shortest way comes to it are (or
 * if it comes directly). They are all nearer, so when a switch's turn comes, that is settled. Nobody further
 * away can be reached through the cable only as soon as none is waiting that is: there the search ends, in
 * most fabrics after a few steps.
 */
bool fab_affected_affected(struct fab_walk *walk, uint32_t from, uint32_t to, const uint8_t *wanted)
{
    uint32_t waiting = 0; /* of those that are to be looked at, reached through the cable only */
    walk->n_found = 0;
    affected_start(walk, from);
    walk->only[from] = 0;
    do {
        uint32_t s = affected_pop(walk), dist = walk->now, n;
        if (dist > walk->dist[s])
            continue;
        if (walk->only[s]) {
            waiting--;
            if (wanted[s])
                walk->found[walk->n_found++] = s;
        }
        const struct fab_edge *edges = edges_of(walk, s, &n);
        if (!affected_spend(walk, n))
            return false;
        for (uint32_t e = 0; e < n; e++) {
            uint32_t next = edges[e].to, sum = dist + edges[e].cost;
            if (sum > walk->dist[next])
                continue;
            uint8_t only = s == from ? next == to : walk->only[s];
            if (sum == walk->dist[next]) {
                waiting -= walk->only[next] && !only;
                walk->only[next] &= only;
                continue;
            }
            waiting += only;
            if (walk->dist[next] != FAB_NONE)
                waiting -= walk->only[next];
            walk->dist[next] = sum;
            walk->only[next] = only;
            affected_push(walk, sum, next);
        }
    } while (waiting > 0);
    return true;
}
