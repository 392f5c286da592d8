/* bench_lookup - the cost of a random pair through the public call, without any matrix. */
#include <stdio.h>
#include <stdlib.h>

#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "topo/compile/compile.h"
#include "topo/snapshot/snapshot.h"

#define PAIRS  (1u << 20)
#define ROUNDS 15

/* The plane's snapshot, opened as a reader would. */
static int open_fabric(const char *kind, struct pmixfab **fab)
{
    struct fab_inventory inv;
    struct fab_planes planes = {NULL, 0};
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    void *bytes = NULL;
    size_t size = 0;
    const struct fab_snapshot_meta meta = {
        .generation = 1, .is_default = 1, .name = "bench", .vendor = "", .identifier = ""};
    int rc = fabric_parse(kind, &inv);
    if (rc == PMIXFAB_OK)
        rc = fab_planes_build(&inv, FAB_COST_RATE, &planes, NULL);
    if (rc == PMIXFAB_OK)
        rc = fab_costs_compute(&planes.planes[0], 1, &costs);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_settle(&planes.planes[0], NULL, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(&planes.planes[0], &geometry, FAB_GROUP_LEAF, &groups);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(&planes.planes[0], &costs, &geometry, &groups, NULL, &meta, &bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = pmixfab_open_memory(bytes, size, fab);
    free(bytes);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);
    return rc;
}

/* Nanoseconds a call. */
static double time_lookups(const struct pmixfab *fab, const uint32_t *pairs, uint64_t *sum)
{
    uint64_t total = 0;
    double start = bench_now();
    for (const uint32_t *pair = pairs; pair < pairs + (size_t)2 * PAIRS; pair += 2) {
        uint16_t cost = 0;
        pmixfab_cost(fab, pair[0], pair[1], &cost);
        total += cost;
    }
    *sum += total;
    return (bench_now() - start) * 1e6 / PAIRS;
}

/* The same where each pair depends on the cost before it, so that no two calls overlap. */
static double time_chained(const struct pmixfab *fab, const uint32_t *pairs, uint64_t *sum)
{
    uint32_t swapped = 0;
    double start = bench_now();
    for (const uint32_t *pair = pairs; pair < pairs + (size_t)2 * PAIRS; pair += 2) {
        uint16_t cost = 0;
        pmixfab_cost(fab, pair[swapped], pair[1 - swapped], &cost);
        swapped = cost & 1;
    }
    *sum += swapped;
    return (bench_now() - start) * 1e6 / PAIRS;
}

int main(int argc, char **argv)
{
    bench_init(&argc, argv);
    struct pmixfab *fab = NULL;
    struct pmixfab_plane plane;
    double apart[ROUNDS], chained[ROUNDS];
    uint64_t dice = 1, sum = 0;
    uint32_t *pairs = malloc(2 * sizeof(*pairs) * PAIRS);
    int rc = open_fabric("fattree3:34", &fab);
    if (rc == PMIXFAB_OK)
        rc = pairs == NULL ? PMIXFAB_ERR_NOMEM : pmixfab_plane(fab, &plane);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    for (size_t i = 0; i < (size_t)2 * PAIRS; i++)
        pairs[i] = (uint32_t)(fabric_random_next(&dice) % plane.n_devices);
    for (int i = -2; i < ROUNDS; i++) {
        apart[i < 0 ? 0 : i] = time_lookups(fab, pairs, &sum);
        chained[i < 0 ? 0 : i] = time_chained(fab, pairs, &sum);
    }
    if (sum == 0) /* also keeps the calls from being optimised away */
        rc = PMIXFAB_ERR_CORRUPT;
    bench_report(&(struct bench_figure){.bench = "lookup",
                                        .figure = "random pair, fat tree 9826",
                                        .value = bench_median(apart, ROUNDS),
                                        .unit = "ns",
                                        .to_reach = 10});
    bench_report(&(struct bench_figure){.bench = "lookup",
                                        .figure = "each pair waits for the one before",
                                        .value = bench_median(chained, ROUNDS),
                                        .unit = "ns"});
cleanup:
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "bench_lookup: %s\n", pmixfab_strerror(rc));
    pmixfab_close(fab);
    free(pairs);
    return rc == PMIXFAB_OK ? 0 : 1;
}
