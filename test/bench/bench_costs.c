/*
 * bench_costs - from a plane to its compact costs and the full matrix in warm memory.
 *
 * Against memset of the same bytes, timed in turn with it, and against igraph's all-pairs distances between
 * the same hosts in the same graph.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_IGRAPH
#include <igraph/igraph.h>
#endif

#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "topo/plane/cost.h"
#include "topo/snapshot/cost_matrix.h"

#define ROUNDS 15

struct half {
    uint16_t *cells;
    size_t size;
    int value;
};

static void *set_half(void *arg)
{
    struct half *half = arg;
    memset(half->cells, half->value, half->size);
    return NULL;
}

/* memset by one thread or by two, each its half. */
static double time_memset(uint16_t *cells, size_t size, int value, unsigned threads)
{
    double start = bench_now();
    if (threads == 1) {
        memset(cells, value, size);
        return bench_now() - start;
    }
    pthread_t thread;
    struct half half = {cells, size / 4 * 2, value};
    bool started = pthread_create(&thread, NULL, set_half, &half) == 0;
    memset((char *)cells + half.size, value, size - half.size);
    if (started)
        pthread_join(thread, NULL);
    return bench_now() - start;
}

struct times {
    double compute[ROUNDS], both[ROUNDS], memset_one[ROUNDS], memset_two[ROUNDS];
};

static int measure(const struct fab_plane *plane, uint16_t *cells, size_t size, unsigned threads,
                   struct times *times)
{
    for (int i = -2; i < ROUNDS; i++) { /* two rounds to warm up */
        int at = i < 0 ? 0 : i;
        struct fab_costs costs;
        times->memset_one[at] = time_memset(cells, size, i, 1);
        times->memset_two[at] = time_memset(cells, size, i, 2);
        double start = bench_now();
        int rc = fab_costs_compute(plane, threads, &costs);
        times->compute[at] = bench_now() - start;
        if (rc == PMIXFAB_OK)
            rc = fab_cost_matrix(&costs.view, cells, threads);
        times->both[at] = bench_now() - start;
        fab_costs_destroy(&costs);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return PMIXFAB_OK;
}

static void report(const char *name, unsigned threads, struct times *times, double *ours)
{
    char figure[96];
    double one = bench_median(times->memset_one, ROUNDS), two = bench_median(times->memset_two, ROUNDS);
    double both = bench_median(times->both, ROUNDS);
    const char *plural = threads == 1 ? "" : "s";
    snprintf(figure, sizeof(figure), "%s, %u thread%s", name, threads, plural);
    bench_report(&(struct bench_figure){.bench = "costs",
                                        .figure = figure,
                                        .value = both,
                                        .unit = "ms",
                                        .baseline = "memset",
                                        .baseline_value = one,
                                        .to_reach = threads == 1 ? 2.2 : 1.2});
    snprintf(figure, sizeof(figure), "%s, %u thread%s, compact form only", name, threads, plural);
    bench_report(&(struct bench_figure){.bench = "costs",
                                        .figure = figure,
                                        .value = bench_median(times->compute, ROUNDS),
                                        .unit = "ms",
                                        .baseline = "memset",
                                        .baseline_value = one});
    if (threads == 2) {
        snprintf(figure, sizeof(figure), "%s, memset by 2 threads", name);
        bench_report(&(struct bench_figure){.bench = "costs",
                                            .figure = figure,
                                            .value = two,
                                            .unit = "ms",
                                            .baseline = "memset",
                                            .baseline_value = one});
    }
    *ours = both;
}

#ifdef HAVE_IGRAPH
/* Hosts are the vertices 0..n-1, switches follow. */
static int make_igraph(const struct fab_plane *plane, igraph_t *graph)
{
    igraph_vector_int_t edges;
    if (igraph_vector_int_init(&edges, 0) != IGRAPH_SUCCESS)
        return -1;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        igraph_vector_int_push_back(&edges, i);
        igraph_vector_int_push_back(&edges, plane->n_devices + plane->devices[i].sw);
    }
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        const struct fab_vertex *v = &plane->switches[s];
        for (uint32_t e = v->adj_first; e < v->adj_first + v->n_adj; e++) {
            if (plane->adj[e].to < s)
                continue;
            igraph_vector_int_push_back(&edges, plane->n_devices + s);
            igraph_vector_int_push_back(&edges, plane->n_devices + plane->adj[e].to);
        }
    }
    int rc = igraph_create(graph, &edges, plane->n_devices + plane->n_switches, IGRAPH_UNDIRECTED);
    igraph_vector_int_destroy(&edges);
    return rc == IGRAPH_SUCCESS ? 0 : -1;
}

/* Milliseconds for the first n hosts to all hosts; checks a few of the distances against ours. */
static double time_igraph(const igraph_t *graph, const struct fab_plane *plane, uint32_t n,
                          const uint16_t *cells)
{
    igraph_matrix_t distances;
    if (igraph_matrix_init(&distances, 0, 0) != IGRAPH_SUCCESS)
        return -1;
    double start = bench_now();
    int rc = igraph_distances(graph, &distances, igraph_vss_range(0, n),
                              igraph_vss_range(0, plane->n_devices), IGRAPH_ALL);
    double took = bench_now() - start;
    for (uint32_t i = 0; i < n && rc == IGRAPH_SUCCESS; i += 101)
        for (uint32_t j = 0; j < plane->n_devices; j++)
            if (10 * MATRIX(distances, i, j) != cells[(size_t)i * plane->n_devices + j])
                took = -1;
    igraph_matrix_destroy(&distances);
    return rc == IGRAPH_SUCCESS ? took : -1;
}

/* In full, or scaled from as many sources as take 15 s. */
static int compare_igraph(const char *name, const struct fab_plane *plane, const uint16_t *cells, double ours)
{
    igraph_t graph;
    char figure[96];
    uint32_t n = plane->n_devices, sources = n < 200 ? n : 200;
    if (make_igraph(plane, &graph) != 0)
        return -1;
    double took = time_igraph(&graph, plane, sources, cells), per_source = took / sources;
    if (took >= 0 && per_source * n <= 15000)
        sources = n;
    else if (took >= 0)
        sources = (uint32_t)(15000 / per_source) + 1;
    took = took < 0 ? took : time_igraph(&graph, plane, sources, cells);
    igraph_destroy(&graph);
    if (took < 0)
        return -1;
    if (sources == n)
        snprintf(figure, sizeof(figure), "%s, 1 thread, igraph", name);
    else
        snprintf(figure, sizeof(figure), "%s, 1 thread, igraph scaled from %u", name, sources);
    bench_report(&(struct bench_figure){.bench = "costs",
                                        .figure = figure,
                                        .value = ours,
                                        .unit = "ms",
                                        .baseline = "igraph_distances",
                                        .baseline_value = took * n / sources,
                                        .to_reach = 150,
                                        .at_least = true});
    return 0;
}
#else
static int compare_igraph(const char *name, const struct fab_plane *plane, const uint16_t *cells, double ours)
{
    (void)plane;
    (void)cells;
    (void)ours;
    fprintf(stderr, "bench_costs: %s: built without libigraph, no comparison with it\n", name);
    return 0;
}
#endif

static int bench_fabric(const char *name, const char *kind)
{
    struct fab_inventory inv;
    struct fab_planes planes = {NULL, 0};
    struct times times;
    uint16_t *cells = NULL;
    double ours = 0, unused;
    int rc = fabric_parse(kind, &inv);
    if (rc == PMIXFAB_OK)
        rc = fab_planes_build(&inv, FAB_COST_RATE, &planes, NULL);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    const struct fab_plane *plane = &planes.planes[0];
    size_t size = (size_t)plane->n_devices * plane->n_devices * sizeof(*cells);
    rc = PMIXFAB_ERR_NOMEM;
    if ((cells = malloc(size)) == NULL)
        goto cleanup;
    for (unsigned threads = 1; threads <= 2; threads++) {
        if ((rc = measure(plane, cells, size, threads, &times)) != PMIXFAB_OK)
            goto cleanup;
        report(name, threads, &times, threads == 1 ? &ours : &unused);
    }
    rc = compare_igraph(name, plane, cells, ours) == 0 ? PMIXFAB_OK : PMIXFAB_ERR_CONFLICT;
cleanup:
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "bench_costs: %s: failed (%d)\n", name, rc);
    free(cells);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);
    return rc;
}

int main(int argc, char **argv)
{
    bench_init(&argc, argv);
    int rc = bench_fabric("fat tree 9826", "fattree3:34");
    if (rc == PMIXFAB_OK)
        rc = bench_fabric("dragonfly 16512", "dragonfly:8,16,8");
    return rc == PMIXFAB_OK ? 0 : 1;
}
