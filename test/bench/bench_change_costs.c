/*
 * bench_change_costs - costs of a plane of which one link changed: from those before, and from nothing.
 *
 * Both start from the changed plane and end with the compact costs, in turn, by one thread. What was before
 * is an open snapshot, as the publisher has it. Links of every class of a three-level fat tree are pulled and
 * put back, in the tree as it was built (all of one speed, where a search from nothing is cheapest) and in
 * one of which a leaf's cable upwards has fallen back to a lower speed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "topo/snapshot.h"

#define FABRIC  "fattree3:34"
#define ROUNDS  31
#define CLASSES 3
#define LINKS   3

struct link {
    const char *node;
    unsigned port;
};

/* Ports of a leaf: 1 to 17 hosts, 18 to 34 middles; of a middle: 1 to 17 leaves, 18 to 34 cores. */
static const struct {
    const char *name;
    struct link links[LINKS];
} classes[CLASSES] = {
    {"leaf to middle", {{"leaf0-0", 18}, {"leaf17-9", 30}, {"leaf33-16", 34}}},
    {"middle to core", {{"mid0-0", 18}, {"mid15-3", 25}, {"mid33-16", 34}}},
    {"host link", {{"leaf0-1", 1}, {"leaf12-2", 9}, {"leaf33-16", 17}}},
};

/* A state of the fabric, and its first plane as it is published. */
struct state {
    struct fab_inventory inv;
    struct fab_planes planes;
    struct pmixfab *fab;
    void *bytes;
};

static void state_free(struct state *state)
{
    pmixfab_close(state->fab);
    free(state->bytes);
    fab_planes_destroy(&state->planes);
    fab_inventory_destroy(&state->inv);
}

/* Planes and snapshot of state->inv. */
static int state_publish(struct state *state)
{
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    const struct fab_snapshot_meta meta = {.name = "ib0"};
    size_t size = 0;
    int rc = fab_planes_build(&state->inv, FAB_COST_RATE, &state->planes, NULL);
    if (rc != PMIXFAB_OK)
        return rc;
    const struct fab_plane *plane = &state->planes.planes[0];
    rc = fab_costs_compute(plane, 0, &costs);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_compute(plane, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(plane, &geometry, FAB_GROUP_LEAF, &groups);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(plane, &costs, &geometry, &groups, NULL, &meta, &state->bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_borrow(state->bytes, size, &state->fab, NULL);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    return rc;
}

static int same(const struct fab_costs *a, const struct fab_costs *b)
{
    const struct fab_cost_view *x = &a->view, *y = &b->view;
    return x->n_devices == y->n_devices && x->n_edges == y->n_edges &&
           memcmp(x->edge, y->edge, x->n_devices * sizeof(*x->edge)) == 0 &&
           memcmp(x->access, y->access, x->n_devices * sizeof(*x->access)) == 0 &&
           memcmp(x->dist, y->dist, (size_t)x->n_edges * x->n_edges * sizeof(*x->dist)) == 0;
}

/* Medians in milliseconds of one change. */
static int measure(const struct state *before, const struct state *after, double *from_before,
                   double *from_nothing)
{
    double update[ROUNDS], compute[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) { /* two rounds to warm up */
        int at = i < 0 ? 0 : i;
        struct fab_costs all, part;
        double start = bench_now();
        int rc = fab_costs_compute(&after->planes.planes[0], 1, &all);
        compute[at] = bench_now() - start;
        if (rc != PMIXFAB_OK)
            return rc;
        start = bench_now();
        rc = fab_costs_update(&after->planes.planes[0], before->fab, 1, &part);
        update[at] = bench_now() - start;
        if (rc == PMIXFAB_OK && !same(&all, &part))
            rc = PMIXFAB_ERR_CONFLICT;
        fab_costs_destroy(&all);
        fab_costs_destroy(&part);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    *from_before = bench_median(update, ROUNDS);
    *from_nothing = bench_median(compute, ROUNDS);
    return PMIXFAB_OK;
}

static void report(const char *figure, const char *fabric, double value, double baseline, double to_reach)
{
    char text[128];
    snprintf(text, sizeof(text), "%s, %s", fabric, figure);
    bench_report(&(struct bench_figure){.bench = "change",
                                        .figure = text,
                                        .value = value,
                                        .unit = "ms",
                                        .baseline = "from nothing",
                                        .baseline_value = baseline,
                                        .to_reach = to_reach,
                                        .at_least = true});
}

struct totals {
    double update[CLASSES * LINKS * 2], compute[CLASSES * LINKS * 2];
    unsigned n;
};

static int bench_link(const struct state *whole, const struct link *link, struct totals *totals)
{
    struct state pulled = {.fab = NULL};
    int rc = fab_inventory_copy(&pulled.inv, &whole->inv);
    if (rc == PMIXFAB_OK)
        rc = fabric_unlink(&pulled.inv, link->node, link->port);
    if (rc == PMIXFAB_OK)
        rc = state_publish(&pulled);
    for (int back = 0; back < 2 && rc == PMIXFAB_OK; back++, totals->n++)
        rc = measure(back ? &pulled : whole, back ? whole : &pulled, &totals->update[totals->n],
                     &totals->compute[totals->n]);
    state_free(&pulled);
    return rc;
}

/* The worst and the median of all classes have the goal. */
static int bench_state(const char *name, struct state *whole)
{
    struct totals all = {.n = 0};
    uint32_t worst = 0;
    int rc = state_publish(whole);
    for (int c = 0; c < CLASSES && rc == PMIXFAB_OK; c++) {
        uint32_t first = all.n, most = all.n;
        for (int l = 0; l < LINKS && rc == PMIXFAB_OK; l++)
            rc = bench_link(whole, &classes[c].links[l], &all);
        if (rc != PMIXFAB_OK)
            break;
        for (uint32_t i = first; i < all.n; i++)
            most = all.update[i] > all.update[most] ? i : most;
        worst = all.update[most] > all.update[worst] ? most : worst;
        report(classes[c].name, name, all.update[most], all.compute[most], 0);
    }
    if (rc != PMIXFAB_OK)
        return rc;
    report("the slowest", name, all.update[worst], all.compute[worst], 20);
    double update = bench_median(all.update, all.n), compute = bench_median(all.compute, all.n);
    report("median", name, update, compute, 20);
    return PMIXFAB_OK;
}

int main(int argc, char **argv)
{
    struct state even = {.fab = NULL}, mixed = {.fab = NULL};
    bench_init(&argc, argv);
    int rc = fabric_parse(FABRIC, &even.inv);
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_copy(&mixed.inv, &even.inv);
    if (rc == PMIXFAB_OK)
        rc = fabric_set_rate(&mixed.inv, "leaf5-5", 20, 4, FAB_EDR);
    if (rc == PMIXFAB_OK)
        rc = bench_state("one speed", &even);
    if (rc == PMIXFAB_OK)
        rc = bench_state("one cable slower", &mixed);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "bench_change_costs: %s\n", pmixfab_strerror(rc));
    state_free(&even);
    state_free(&mixed);
    return rc == PMIXFAB_OK ? 0 : 1;
}
