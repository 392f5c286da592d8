/*
 * bench_reports - from a node's delivery to the published snapshot and the committed store, as the daemon
 * does it: 1,000 hosts of 8 devices each that all report at once, and one of them that reports another
 * firmware.
 *
 * Run directory and store are on the disk that the benches were built on: commits wait for it. The steps are
 * timed once more one by one; what is left of the whole is the store, the snapshot's file and the handing
 * over.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/publisher.h"
#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "test/fabrics/reports.h"
#include "topo/model/names.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/snapshot.h"

#define FABRIC "fattree2:250,16,32"
#define HOSTS  1000
#define RAILS  8 /* devices of a host */
#define ROUNDS 21

enum step { AGAIN, JOIN, PLANES, COSTS, SHAPE, SNAPSHOT, NUMBER, N_STEPS };
static const char *const step_names[N_STEPS] = {
    "of it joining",
    "joining anew",
    "of it graph and planes",
    "of it costs",
    "of it coordinates and groups",
    "of it snapshot",
    "of it planes, all in all",
};

struct bench {
    char dir[4096];
    struct config config;
    struct publisher *publisher;
    struct fab_join_cache *joins;
    struct fab_inventory fabric;
    struct node_report nodes[HOSTS], other; /* the last host's before or after its change */
    const struct node_report *list[HOSTS];
    double whole[ROUNDS], steps[N_STEPS][ROUNDS];
};

static void remove_folder(const char *dir)
{
    static const char *const files[] = {"fabricd.db", "fabricd.db-wal", "fabricd.db-shm", "fabricd.db.lock",
                                        "ib0.snap"};
    char path[4096 + 32];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* ---- hosts and what they report ----------------------------------------------------------------------- */

/* Device d of host h is the fabric's HCA number d * HOSTS + h: a rail each. */
static const struct fab_node *hca(const struct fab_inventory *inv, unsigned h, unsigned d)
{
    unsigned want = d * HOSTS + h;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && want-- == 0)
            return &inv->nodes[i];
    return NULL;
}

static int name_hosts(struct fab_inventory *inv)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        char text[64];
        if (inv->nodes[i].kind != FAB_HCA)
            continue;
        int len = snprintf(text, sizeof(text), "node%04u mlx5_%u", 1 + n % HOSTS, n / HOSTS);
        inv->nodes[i].desc = fab_inventory_string(inv, text, (size_t)len);
        if (inv->nodes[i].desc == FAB_NONE)
            return PMIXFAB_ERR_NOMEM;
        n++;
    }
    return n == HOSTS * RAILS ? PMIXFAB_OK : PMIXFAB_ERR_INVAL;
}

static int make_report(const struct fab_inventory *inv, unsigned h, const char *firmware,
                       struct node_report *out, struct fab_err *err)
{
    struct host_hca hcas[RAILS];
    char host[32];
    for (unsigned d = 0; d < RAILS; d++) {
        const struct fab_node *node = hca(inv, h, d);
        hcas[d] = (struct host_hca){node->guid, inv->ports[node->first_port].guid};
    }
    snprintf(host, sizeof(host), "node%04u", 1 + h);
    int rc = host_report(host, hcas, RAILS, firmware, &out->report, err);
    out->digest = fab_report_digest(&out->report);
    out->received = 1;
    return rc;
}

static int make_nodes(struct bench *b, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (unsigned h = 0; rc == PMIXFAB_OK && h < HOSTS; h++) {
        rc = make_report(&b->fabric, h, "20.31.1014", &b->nodes[h], err);
        b->list[h] = &b->nodes[h];
    }
    return rc == PMIXFAB_OK ? make_report(&b->fabric, HOSTS - 1, "20.40.2000", &b->other, err) : rc;
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

/* As a delivery is stored. */
static int put(struct bench *b, unsigned first, unsigned n, struct fab_err *err)
{
    struct store_report *rows = calloc(n, sizeof(*rows));
    int rc = rows == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (unsigned i = 0; rc == PMIXFAB_OK && i < n; i++) {
        const struct node_report *node = b->list[first + i];
        void *bytes;
        rows[i] = (struct store_report){.host = node->report.host, .digest = node->digest};
        rc = fab_report_encode(&node->report, &bytes, &rows[i].size);
        rows[i].bytes = bytes;
    }
    if (rc == PMIXFAB_OK)
        rc = store_reports_put(publisher_store(b->publisher), rows, n, err);
    for (unsigned i = 0; rows != NULL && i < n; i++)
        free((void *)rows[i].bytes);
    free(rows);
    return rc;
}

static int publish(struct bench *b, struct fab_inventory *inv, struct fab_err *err)
{
    struct publication *publication = NULL;
    struct sweep_findings report;
    const struct publish_request input = {
        .inv = inv, .accept_partial = true, .reports = b->list, .n_reports = HOSTS};
    int rc = publish_prepare(b->publisher, &input, &publication, &report, err);
    if (rc == PMIXFAB_OK && publication == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_CONFLICT, "nothing changed");
    if (rc == PMIXFAB_OK)
        publish_finish(b->publisher, publication);
    publication_free(publication);
    return rc;
}

static int change_one(struct bench *b, unsigned round, struct fab_err *err)
{
    b->list[HOSTS - 1] = round % 2 == 0 ? &b->other : &b->nodes[HOSTS - 1];
    double start = bench_now();
    int rc = put(b, HOSTS - 1, 1, err);
    if (rc == PMIXFAB_OK)
        rc = publish(b, NULL, err);
    b->whole[round] = bench_now() - start;
    return rc;
}

/* ---- step by step ------------------------------------------------------------------------------------- */

/* Time since *start, which moves on. */
static double lap(double *start)
{
    double before = *start;
    *start = bench_now();
    return *start - before;
}

static int plane_steps(struct bench *b, const struct fab_joined *joined, unsigned round)
{
    struct fab_planes planes = {NULL, 0};
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    void *bytes = NULL;
    size_t size;
    const struct fab_snapshot_meta meta = {.name = "ib0"};
    double start = bench_now();
    int rc = fab_planes_build(&joined->inv, FAB_COST_RATE, &planes, NULL);
    b->steps[PLANES][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_costs_compute(&planes.planes[0], 0, &costs);
    b->steps[COSTS][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_settle(&planes.planes[0], NULL, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(&planes.planes[0], &geometry, FAB_GROUP_LEAF, &groups);
    b->steps[SHAPE][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(&planes.planes[0], &costs, &geometry, &groups, &joined->details, &meta,
                                &bytes, &size);
    b->steps[SNAPSHOT][round] = lap(&start);
    free(bytes);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    fab_planes_destroy(&planes);
    return rc;
}

static int time_steps(struct bench *b, const struct fab_inventory *swept, unsigned round)
{
    static const struct fab_report *reports[HOSTS];
    static uint64_t digests[HOSTS];
    struct fab_joined joined;
    struct built built = {0};
    b->list[HOSTS - 1] = round % 2 == 0 ? &b->other : &b->nodes[HOSTS - 1];
    for (unsigned h = 0; h < HOSTS; h++) {
        reports[h] = &b->list[h]->report;
        digests[h] = b->list[h]->digest;
    }
    double start = bench_now();
    int rc = fab_join(b->joins,
                      &(struct fab_join_input){swept, reports, digests, HOSTS, NULL, 0, NULL, NULL, NULL},
                      &joined, NULL);
    b->steps[AGAIN][round] = lap(&start);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_joined_destroy(&joined);
    start = bench_now();
    rc = fab_join(NULL, &(struct fab_join_input){swept, reports, NULL, HOSTS, NULL, 0, NULL, NULL, NULL},
                  &joined, NULL);
    b->steps[JOIN][round] = lap(&start);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = compute_planes(&joined, &b->config, NULL, 0, &built, NULL);
    b->steps[NUMBER][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = plane_steps(b, &joined, round);
    built_destroy(&built);
    fab_joined_destroy(&joined);
    return rc;
}

/* ---- the bench ---------------------------------------------------------------------------------------- */

static int measure(struct bench *b, struct fab_err *err)
{
    struct fab_inventory swept;
    double first = 0, start;
    int rc = fabric_parse(FABRIC, &b->fabric);
    if (rc == PMIXFAB_OK)
        rc = name_hosts(&b->fabric);
    if (rc == PMIXFAB_OK)
        rc = make_nodes(b, err);
    if (rc == PMIXFAB_OK)
        rc = publisher_new(&b->config, NULL, &b->publisher, err);
    start = bench_now();
    if (rc == PMIXFAB_OK)
        rc = put(b, 0, HOSTS, err);
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_copy(&swept, &b->fabric);
    if (rc == PMIXFAB_OK)
        rc = publish(b, &swept, err);
    first = bench_now() - start;
    for (unsigned i = 0; rc == PMIXFAB_OK && i < ROUNDS; i++)
        rc = change_one(b, i, err);
    struct fab_names *names = NULL;
    if (rc == PMIXFAB_OK)
        rc = publisher_names(&b->config, &names, err);
    if (rc == PMIXFAB_OK)
        rc = fab_names_apply(names, &b->fabric, err);
    for (unsigned i = 0; rc == PMIXFAB_OK && i < ROUNDS; i++)
        rc = time_steps(b, &b->fabric, i);
    fab_names_free(names);
    if (rc != PMIXFAB_OK)
        return rc;
    bench_report(&(struct bench_figure){.bench = "reports",
                                        .figure = "one changed host of 1000, 8 devices each",
                                        .value = bench_median(b->whole, ROUNDS),
                                        .unit = "ms",
                                        .to_reach = 40}); /* of 50, with the quiet time of 5 and the way */
    bench_report(&(struct bench_figure){
        .bench = "reports", .figure = "slowest of them", .value = b->whole[ROUNDS - 1], .unit = "ms"});
    for (int i = 0; i < N_STEPS; i++)
        bench_report(&(struct bench_figure){.bench = "reports",
                                            .figure = step_names[i],
                                            .value = bench_median(b->steps[i], ROUNDS),
                                            .unit = "ms"});
    bench_report(&(struct bench_figure){.bench = "reports",
                                        .figure = "all of them and the fabric, the first time",
                                        .value = first,
                                        .unit = "ms"});
    return rc;
}

static int configure(struct bench *b)
{
    char path[4096 + 32];
    config_init(&b->config);
    snprintf(path, sizeof(path), "%s/fabricd.db", b->dir);
    int rc = config_text(&b->config.store, path);
    if (rc == PMIXFAB_OK)
        rc = config_append(&b->config.probes, "file:fabric");
    return rc == PMIXFAB_OK ? config_text(&b->config.rundir, b->dir) : rc;
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct fab_err err = {""};
    bench_init(&argc, argv);
    log_open(PMIXFAB_LOG_WARNING, 0);
    fab_inventory_init(&b.fabric);
    b.joins = fab_join_cache_new(); /* NULL: each joining is anew, and its figure shows it */
    if (!bench_folder("bench-reports", b.dir, sizeof(b.dir))) {
        fprintf(stderr, "bench_reports: no folder beside the program: %s\n", strerror(errno));
        return 1;
    }
    int rc = configure(&b);
    if (rc == PMIXFAB_OK)
        rc = measure(&b, &err);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "bench_reports: %s\n", err.text[0] != '\0' ? err.text : pmixfab_strerror(rc));
    publisher_free(b.publisher);
    fab_join_cache_free(b.joins);
    for (unsigned h = 0; h < HOSTS; h++)
        fab_report_destroy(&b.nodes[h].report);
    fab_report_destroy(&b.other.report);
    fab_inventory_destroy(&b.fabric);
    config_destroy(&b.config);
    remove_folder(b.dir);
    return rc == PMIXFAB_OK ? 0 : 1;
}
