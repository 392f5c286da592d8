/*
 * cost_update.c - costs of a changed plane from those of the plane as it was.
 *
 * The changes of the switch graph are made one after the other, and for each it is asked whose distances it
 * can change. Let a cable between u and v be lost or become dearer, and let F(u) be the switches to which all
 * shortest ways from u begin with that cable, F(v) the same from v. If the distance from s to t grows, all
 * shortest ways between them use the cable, say as s .. u v .. t (else turn s and t round). Then s is in
 * F(v): a shortest way from s to v without the cable, continued by v .. t, which does not come by the cable
 * again, would be a shortest way from s to t without it. In the same way t is in F(u). So where F(u) or F(v)
 * has no edge switch no cost changes, and otherwise each one that changes has an end in the smaller of the
 * two. A cable that comes or becomes cheaper is the same read backwards: F is then of the graph that has it.
 *
 * A cost that is another one after all changes was changed by one of them, so it stands in a row or in a
 * column of the edge switches that were collected. These rows are searched in the new graph, with those of
 * switches that had none before; all others are as they were. Costs are compared as sums, before they
 * saturate.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/cost/cost_update.h"

static atomic_bool always;

void fab_costs_update_always(bool value)
{
    atomic_store(&always, value);
}

bool fab_costs_update_unlimited(void)
{
    return atomic_load(&always);
}

struct update {
    const struct fab_plane *plane;
    const struct pmixfab *before;
    struct fab_costing *costing;
    struct fab_changes changes;
    struct fab_walk walk;
    uint32_t *from;  /* per edge: its row before; FAB_NONE: it had none */
    uint8_t *wanted; /* per switch of both planes: an edge switch before and now */
    uint32_t *rows;  /* edges to be searched */
    uint8_t *listed; /* per edge: is it among them? */
    uint32_t n_rows;
    bool in_place;   /* every edge has the row that it had */
    uint16_t *found; /* n_rows x n_edges: what was searched */
};

/* What a search from nothing takes, in cables that fab_affected_search() looks at in the same time. Measured:
 * it does all sources of a vector at once, and then writes what it found. */
static uint64_t fair_budget(const struct update *u)
{
    uint64_t n_edges = u->costing->out->view.n_edges, all = n_edges * u->plane->n_adj;
    if (fab_costs_update_unlimited())
        return UINT64_MAX / 2;
    return u->walk.uniform ? all / 320 + n_edges * n_edges / 3 : all / 24;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* Edges were numbered in the order of their first devices. switch_of: per edge of the old plane. */
static void old_edges(const struct pmixfab *before, uint32_t *switch_of)
{
    uint32_t next = 0;
    for (uint32_t e = 0; e < before->costs.n_edges; e++)
        switch_of[e] = FAB_NONE;
    for (uint32_t i = 0; i < before->costs.n_devices && next < before->costs.n_edges; i++)
        if (before->costs.edge[i] == next)
            switch_of[next++] = before->devices[i].sw;
}

static void list_row(struct update *u, uint32_t edge)
{
    if (!u->listed[edge])
        u->rows[u->n_rows++] = edge;
    u->listed[edge] = 1;
}

/* Which row each edge had, and which edges had none. */
static int match_rows(struct update *u)
{
    const struct fab_costing *costing = u->costing;
    uint32_t n = costing->out->view.n_edges, n_old = u->before->costs.n_edges;
    uint32_t n_old_switches = u->before->meta->n_switches;
    uint32_t *switch_of = malloc((n_old + (size_t)1) * sizeof(*switch_of));
    uint32_t *edge_of = malloc((n_old_switches + (size_t)1) * sizeof(*edge_of));
    u->from = calloc(n + (size_t)1, sizeof(*u->from));
    u->rows = malloc((n + (size_t)1) * sizeof(*u->rows));
    u->listed = calloc(n + (size_t)1, sizeof(*u->listed));
    u->wanted = calloc(u->changes.n_switches + (size_t)1, sizeof(*u->wanted));
    int rc = PMIXFAB_ERR_NOMEM;
    if (switch_of == NULL || edge_of == NULL || u->from == NULL || u->rows == NULL || u->listed == NULL ||
        u->wanted == NULL)
        goto cleanup;
    old_edges(u->before, switch_of);
    memset(edge_of, 0xff, n_old_switches * sizeof(*edge_of));
    for (uint32_t e = 0; e < n_old; e++)
        if (switch_of[e] != FAB_NONE)
            edge_of[switch_of[e]] = e;
    u->in_place = n == n_old;
    for (uint32_t e = 0; e < n; e++) {
        uint32_t old = u->changes.old_of[costing->sources[e]];
        u->from[e] = old == FAB_NONE ? FAB_NONE : edge_of[old];
        u->in_place = u->in_place && u->from[e] == e;
        if (u->from[e] == FAB_NONE)
            list_row(u, e);
        else
            u->wanted[costing->sources[e]] = 1;
    }
    rc = PMIXFAB_OK;
cleanup:
    free(switch_of);
    free(edge_of);
    return rc;
}

/* ---- changes ------------------------------------------------------------------------------------- */

static bool update_is_affected(struct update *u, uint32_t from, uint32_t to, uint64_t most)
{
    uint64_t left = u->walk.budget, part = left < most ? left : most;
    u->walk.budget = part;
    bool done = fab_affected_affected(&u->walk, from, to, u->wanted);
    u->walk.budget += left - part;
    return done;
}

static void list_found(struct update *u)
{
    for (uint32_t i = 0; i < u->walk.n_found; i++)
        list_row(u, u->costing->edge_of[u->walk.found[i]]);
}

/*
 * List the shorter one of both ends' lists. From one end it often ends after a few steps, from the other it
 * goes through the whole fabric, so both are given a little, and then more. One row is searched sooner than
 * it is found out that it need not be. False: neither is known for what may be spent.
 */
static bool list_affected(struct update *u, const struct fab_change *change)
{
    uint64_t all = 2 * (uint64_t)u->plane->n_adj + 2 * u->changes.n;
    for (uint64_t most = 2048;; most = most < all ? all : UINT64_MAX) {
        bool a = update_is_affected(u, change->a, change->b, most);
        uint32_t n_a = u->walk.n_found;
        if (a && n_a <= 1)
            break;
        bool b = update_is_affected(u, change->b, change->a, most);
        if (b && (!a || u->walk.n_found <= n_a) && (u->walk.n_found <= 1 || a || most >= all))
            break;
        if (a && (b || most >= all)) {
            if (!update_is_affected(u, change->a, change->b, UINT64_MAX))
                return false;
            break;
        }
        if (most >= all)
            return false;
    }
    list_found(u);
    return true;
}

/* Make one change, and collect whose costs it may change. False: it is no gain to go on. */
static bool update_apply_change(struct update *u, const struct fab_change *change)
{
    bool worse = change->now == 0 || (change->was != 0 && change->now > change->was);
    if (!worse)
        fab_affected_set(&u->walk, change->a, change->b, change->now);
    if (!list_affected(u, change))
        return false;
    if (worse)
        fab_affected_set(&u->walk, change->a, change->b, change->now);
    return true;
}

/* ---- the result ---------------------------------------------------------------------------------- */

/* Search the rows that were listed. False: it is no gain. */
static bool search_rows(struct update *u)
{
    const struct fab_costing *costing = u->costing;
    uint32_t n = costing->out->view.n_edges;
    for (uint32_t i = 0; i < u->n_rows; i++) {
        uint16_t *row = u->found + (size_t)i * n;
        if (!fab_affected_search(&u->walk, costing->sources[u->rows[i]], costing->edge_of,
                                 costing->n_searched))
            return false;
        for (uint32_t e = 0; e < n; e++) {
            uint32_t dist = u->walk.dist[costing->sources[e]];
            row[e] = dist == FAB_NONE      ? FAB_COST_NO_PATH
                     : dist > FAB_COST_MAX ? FAB_COST_MAX
                                           : (uint16_t)dist;
        }
    }
    return true;
}

static bool all_as_before(const struct update *u)
{
    uint32_t n = u->costing->out->view.n_edges;
    if (!u->in_place)
        return false;
    for (uint32_t i = 0; i < u->n_rows; i++)
        if (memcmp(u->found + (size_t)i * n, u->before->costs.dist + (size_t)u->rows[i] * n,
                   n * sizeof(uint16_t)) != 0)
            return false;
    return true;
}

/* Rows and columns from before, runs of edges that stood side by side at once. */
static void copy_rows(const struct update *u, uint16_t *dist)
{
    uint32_t n = u->costing->out->view.n_edges, n_old = u->before->costs.n_edges;
    const uint16_t *old = u->before->costs.dist;
    if (u->in_place) {
        memcpy(dist, old, (size_t)n * n * sizeof(*dist));
        return;
    }
    for (uint32_t e = 0; e < n; e++) {
        if (u->from[e] == FAB_NONE)
            continue;
        const uint16_t *row = old + (size_t)u->from[e] * n_old;
        for (uint32_t f = 0, end; f < n; f = end) {
            for (end = f + 1; end < n && u->from[f] != FAB_NONE && u->from[end] == u->from[end - 1] + 1;)
                end++;
            if (u->from[f] != FAB_NONE)
                memcpy(dist + (size_t)e * n + f, row + u->from[f], (end - f) * sizeof(*dist));
        }
    }
}

static int write_dist(struct update *u)
{
    struct fab_costs *out = u->costing->out;
    uint32_t n = out->view.n_edges;
    out->n_searched = u->n_rows;
    if (all_as_before(u)) {
        out->view.dist = u->before->costs.dist;
        return PMIXFAB_OK;
    }
    int rc = fab_costing_room(u->costing);
    if (rc != PMIXFAB_OK)
        return rc;
    copy_rows(u, out->dist);
    for (uint32_t i = 0; i < u->n_rows; i++) {
        const uint16_t *row = u->found + (size_t)i * n;
        memcpy(out->dist + (size_t)u->rows[i] * n, row, n * sizeof(*row));
        for (uint32_t e = 0; e < n; e++)
            out->dist[(size_t)e * n + u->rows[i]] = row[e];
    }
    return PMIXFAB_OK;
}

/* PMIXFAB_ERR_RANGE: there is nothing to be gained. */
static int update_dist(struct update *u)
{
    int rc = fab_changes_find(u->plane, u->before, &u->changes);
    if (rc == PMIXFAB_OK)
        rc = match_rows(u);
    if (rc == PMIXFAB_OK && (u->changes.n > 0 || u->n_rows > 0)) {
        rc = fab_affected_begin(&u->walk, u->plane, &u->changes);
        if (rc != PMIXFAB_OK)
            return rc;
        u->walk.budget = fair_budget(u);
        for (uint32_t i = 0; i < u->changes.n; i++)
            if (!update_apply_change(u, &u->changes.list[i]))
                return PMIXFAB_ERR_RANGE;
        if ((uint64_t)u->n_rows * u->plane->n_adj > u->walk.budget)
            return PMIXFAB_ERR_RANGE;
        u->found = malloc(((size_t)u->n_rows * u->costing->out->view.n_edges + 1) * sizeof(*u->found));
        if (u->found == NULL)
            return PMIXFAB_ERR_NOMEM;
        if (!search_rows(u))
            return PMIXFAB_ERR_RANGE;
    }
    return rc == PMIXFAB_OK ? write_dist(u) : rc;
}

static void update_release(struct update *u)
{
    fab_changes_destroy(&u->changes);
    fab_affected_destroy(&u->walk);
    free(u->from);
    free(u->wanted);
    free(u->rows);
    free(u->listed);
    free(u->found);
}

/* Only searched rows can be taken over, so there must be switches in both. Ways that do not lead through
 * missing switches are another matter than that of cables; they are few and do not stay, so no use is made.
 */
static bool update_is_comparable(const struct fab_costing *costing, const struct pmixfab *before)
{
    return before != NULL && !costing->plane->unattached && costing->n_searched > 0 &&
           before->meta->n_switches > 0 && costing->plane->n_missing == 0 && before->meta->n_missing == 0;
}

int fab_costs_update(const struct fab_plane *plane, const struct pmixfab *before, unsigned threads,
                     struct fab_costs *out)
{
    struct fab_costing costing;
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    memset(out, 0, sizeof(*out));
    if (plane == NULL)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_costing_begin(&costing, plane, out);
    bool all = true;
    if (rc == PMIXFAB_OK && update_is_comparable(&costing, before)) {
        struct update u = {.plane = plane, .before = before, .costing = &costing};
        rc = update_dist(&u);
        all = rc == PMIXFAB_ERR_RANGE;
        rc = all ? PMIXFAB_OK : rc;
        update_release(&u);
    }
    if (rc == PMIXFAB_OK && all)
        rc = fab_costing_search(&costing, threads);
    fab_costing_end(&costing, rc);
    return rc;
}
