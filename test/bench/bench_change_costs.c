/*
 * bench_change_costs - the matrix of a plane of which one link changed: from the one before, and from
 * nothing.
 *
 * One thread brings the matrix of 9,826 x 9,826 devices up to date from the changed snapshot, as who holds
 * one does, in memory that is there already, which spares "from nothing" the taking of 190 MB of pages.
 * Before each step the matrix was written or gone through, so no cache holds it.
 *
 * Links of every class of a three-level fat tree are changed and put back, in the tree as it was built (all
 * of one speed) and in one of which a leaf's cable upwards has fallen back to a lower speed. A host whose
 * link is lost keeps its device for ten minutes, at the same costs; when it is given up every row of the
 * matrix starts elsewhere, and there is nothing to go out from: that is written down, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "test/fabrics/snapshot.h"
#include "topo/snapshot/cost_matrix.h"
#include "topo/snapshot/reader.h"

#define FABRIC  "fattree3:34"
#define ROUNDS  15
#define CLASSES 4
#define LINKS   3

struct link {
    const char *node;
    unsigned port;
};

/* Ports of a leaf: 1 to 17 hosts, 18 to 34 middles; of a middle: 1 to 17 leaves, 18 to 34 cores. */
static const struct {
    const char *name;
    bool slow; /* the link falls back to a lower speed; else it is pulled */
    bool same; /* as many devices as before: the matrix keeps its size */
    struct link links[LINKS];
} classes[CLASSES] = {
    {"leaf to middle", false, true, {{"leaf0-0", 18}, {"leaf17-9", 30}, {"leaf33-16", 34}}},
    {"middle to core", false, true, {{"mid0-0", 18}, {"mid15-3", 25}, {"mid33-16", 34}}},
    {"host link slower", true, true, {{"leaf0-1", 1}, {"leaf12-2", 9}, {"leaf33-16", 17}}},
    {"device gone", false, false, {{"leaf0-1", 1}, {"leaf12-2", 9}, {"leaf33-16", 17}}},
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
    const struct fab_snapshot_meta meta = {.name = "ib0"};
    size_t size = 0;
    int rc = fab_planes_build(&state->inv, FAB_COST_RATE, &state->planes, NULL);
    if (rc == PMIXFAB_OK)
        rc = fabric_plane_snapshot(&state->planes.planes[0], NULL, &meta, &state->bytes, &size);
    return rc == PMIXFAB_OK ? fab_snapshot_borrow(state->bytes, size, &state->fab, NULL) : rc;
}

/* Milliseconds from before and from nothing. */
struct spent {
    double update, compute;
};

/* Matrices: what is brought up to date, and what it must be. */
static uint16_t *cells, *want;

/* cells hold the matrix of `before`, and hold it again at the end. Of another size it is written anew. */
static int matrix_once(const struct state *before, const struct state *after, struct spent *spent)
{
    const struct fab_cost_view *was = &before->fab->costs, *now = &after->fab->costs;
    bool in_place = was->n_devices == now->n_devices;
    double start = bench_now();
    int rc = fab_cost_matrix(now, want, 1);
    spent->compute = bench_now() - start;
    start = bench_now();
    if (rc == PMIXFAB_OK)
        rc = in_place ? fab_cost_matrix_update(was, now, cells, 1, NULL) : fab_cost_matrix(now, cells, 1);
    spent->update = bench_now() - start;
    if (rc == PMIXFAB_OK && memcmp(cells, want, sizeof(*cells) * now->n_devices * now->n_devices) != 0)
        rc = PMIXFAB_ERR_CONFLICT;
    if (rc == PMIXFAB_OK)
        rc = in_place ? fab_cost_matrix_update(now, was, cells, 1, NULL) : fab_cost_matrix(was, cells, 1);
    return rc;
}

/* Medians of one change. */
static int measure(const struct state *before, const struct state *after, struct spent *out)
{
    double update[ROUNDS], compute[ROUNDS];
    int rc = fab_cost_matrix(&before->fab->costs, cells, 1);
    for (int i = -1; i < ROUNDS && rc == PMIXFAB_OK; i++) { /* one round to warm up */
        struct spent spent = {0};
        rc = matrix_once(before, after, &spent);
        update[i < 0 ? 0 : i] = spent.update;
        compute[i < 0 ? 0 : i] = spent.compute;
    }
    if (rc == PMIXFAB_OK)
        *out = (struct spent){bench_median(update, ROUNDS), bench_median(compute, ROUNDS)};
    return rc;
}

static void report(const char *fabric, const char *figure, const struct spent *spent, double to_reach)
{
    char text[128];
    snprintf(text, sizeof(text), "%s, %s: matrix", fabric, figure);
    bench_report(&(struct bench_figure){.bench = "change",
                                        .figure = text,
                                        .value = spent->update,
                                        .unit = "ms",
                                        .baseline = "from nothing",
                                        .baseline_value = spent->compute,
                                        .to_reach = to_reach,
                                        .at_least = true});
}

static int bench_link(const struct state *whole, int class, const struct link *link, struct spent *out)
{
    struct state changed = {.fab = NULL};
    int rc = fab_inventory_copy(&changed.inv, &whole->inv);
    if (rc == PMIXFAB_OK && classes[class].slow)
        rc = fabric_set_rate(&changed.inv, link->node, link->port, 4, FAB_EDR);
    else if (rc == PMIXFAB_OK)
        rc = fabric_unlink(&changed.inv, link->node, link->port);
    if (rc == PMIXFAB_OK)
        rc = state_publish(&changed);
    if (rc == PMIXFAB_OK)
        rc = measure(whole, &changed, &out[0]);
    if (rc == PMIXFAB_OK)
        rc = measure(&changed, whole, &out[1]);
    state_free(&changed);
    return rc;
}

/* The slowest link of each class, and the median of those after which the matrix has the same size. */
static int bench_state(const char *name, struct state *whole)
{
    struct spent of[LINKS * 2];
    double update[CLASSES * LINKS * 2], compute[CLASSES * LINKS * 2];
    unsigned n = 0;
    int rc = state_publish(whole);
    for (int c = 0; c < CLASSES && rc == PMIXFAB_OK; c++) {
        int most = 0;
        for (int l = 0; l < LINKS && rc == PMIXFAB_OK; l++)
            rc = bench_link(whole, c, &classes[c].links[l], &of[2 * l]);
        for (int i = 0; i < LINKS * 2 && rc == PMIXFAB_OK; i++) {
            most = of[i].update > of[most].update ? i : most;
            if (!classes[c].same)
                continue;
            update[n] = of[i].update;
            compute[n++] = of[i].compute;
        }
        if (rc == PMIXFAB_OK)
            report(name, classes[c].name, &of[most], classes[c].same ? 20 : 0);
    }
    if (rc == PMIXFAB_OK)
        report(name, "median", &(struct spent){bench_median(update, n), bench_median(compute, n)}, 20);
    return rc;
}

static int matrices(const struct fab_inventory *inv)
{
    size_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        n += inv->nodes[i].kind == FAB_HCA;
    cells = calloc(n * n + 1, sizeof(*cells));
    want = calloc(n * n + 1, sizeof(*want));
    return cells != NULL && want != NULL ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

int main(int argc, char **argv)
{
    struct state even = {.fab = NULL}, mixed = {.fab = NULL};
    bench_init(&argc, argv);
    int rc = fabric_parse(FABRIC, &even.inv);
    if (rc == PMIXFAB_OK)
        rc = matrices(&even.inv);
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
    free(cells);
    free(want);
    return rc == PMIXFAB_OK ? 0 : 1;
}
