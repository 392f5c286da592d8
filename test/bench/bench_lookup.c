/* bench_lookup - the cost of a random pair through the public call, without any matrix. */
#include <stdio.h>
#include <stdlib.h>

#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "test/fabrics/snapshot.h"

#define PAIRS  (1u << 20)
#define ROUNDS 15

/* The plane's snapshot, opened as a reader would. */
static int open_fabric(const char *kind, struct pmixfab **fab)
{
    const struct fab_snapshot_meta meta = {
        .generation = 1, .index = 1, .is_default = 1, .name = "bench", .vendor = "", .identifier = ""};
    void *bytes = NULL;
    size_t size = 0;
    int rc = fabric_snapshot(kind, &meta, &bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = pmixfab_open_memory(bytes, size, fab);
    free(bytes);
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
