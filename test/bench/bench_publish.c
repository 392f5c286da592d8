/*
 * bench_publish - from a finished inventory to the published snapshot and the committed store, as the daemon
 * does it, when one cable of a 9,826-host fat tree was pulled or put back.
 *
 * Run directory and store are on the disk that the benches were built on: commits wait for it. The steps are
 * timed once more one by one; what is left of the whole is the store, the snapshot's file and the handing
 * over.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publish.h"
#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "topo/changes/changes.h"
#include "topo/model/names.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/snapshot.h"

#define FABRIC "fattree3:34"
#define ROUNDS 21 /* odd: the last state is the unlinked one */

enum step { NAMES, DIFF, GRAPH, COSTS, GEOMETRY, GROUPS, SNAPSHOT, DISK, N_STEPS };
static const char *const step_names[N_STEPS] = {
    "of it names",       "of it difference", "of it graph and planes", "of it costs",
    "of it coordinates", "of it groups",     "of it snapshot",         "write and sync one file of its size",
};

struct bench {
    char dir[4096];
    struct config config;
    struct publisher *publisher;
    struct fab_inventory states[2]; /* the cable in place, and pulled */
    double whole[ROUNDS], steps[N_STEPS][ROUNDS];
};

static void remove_folder(const char *dir)
{
    static const char *const files[] = {"fabricd.db",      "fabricd.db-wal", "fabricd.db-shm",
                                        "fabricd.db.lock", "ib0.snap",       "plain"};
    char path[4096 + 32];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

static int publish_once(struct bench *b, const struct fab_inventory *state, double *spent,
                        struct fab_err *err)
{
    struct fab_inventory inv;
    struct publication *publication = NULL;
    struct sweep_findings report;
    int rc = fab_inventory_copy(&inv, state);
    if (rc != PMIXFAB_OK)
        return rc;
    double start = bench_now();
    const struct publish_request input = {.inv = &inv, .accept_partial = true};
    rc = publish_prepare(b->publisher, &input, &publication, &report, err);
    if (rc == PMIXFAB_OK && publication == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_CONFLICT, "nothing changed");
    if (rc == PMIXFAB_OK)
        publish_finish(b->publisher, publication);
    *spent = bench_now() - start;
    publication_free(publication);
    fab_inventory_destroy(&inv);
    malloc_trim(0); /* as the daemon a second later: what comes next begins with pages that are new */
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

static int build_steps(struct bench *b, const struct fab_inventory *inv, unsigned round, void **bytes,
                       size_t *size)
{
    struct fab_planes planes = {NULL, 0};
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    const struct fab_snapshot_meta meta = {.name = "ib0", .vendor = "", .identifier = ""};
    double start = bench_now();
    int rc = fab_planes_build(inv, FAB_COST_RATE, &planes, NULL);
    b->steps[GRAPH][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_costs_compute(&planes.planes[0], 0, &costs);
    b->steps[COSTS][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_settle(&planes.planes[0], NULL, &geometry);
    b->steps[GEOMETRY][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(&planes.planes[0], &geometry, FAB_GROUP_AUTO, &groups);
    b->steps[GROUPS][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(&planes.planes[0], &costs, &geometry, &groups, NULL, &meta, bytes, size);
    b->steps[SNAPSHOT][round] = lap(&start);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    fab_planes_destroy(&planes);
    return rc;
}

/* What the disk alone takes for as many bytes. */
static int sync_file(const struct bench *b, const void *bytes, size_t size, double *spent)
{
    char path[4096 + 32];
    snprintf(path, sizeof(path), "%s/plain", b->dir);
    double start = bench_now();
    FILE *f = fopen(path, "we");
    if (f == NULL)
        return PMIXFAB_ERR_IO;
    int ok = fwrite(bytes, 1, size, f) == size && fflush(f) == 0 && fdatasync(fileno(f)) == 0;
    ok &= fclose(f) == 0;
    *spent = bench_now() - start;
    return ok ? PMIXFAB_OK : PMIXFAB_ERR_IO;
}

static int time_steps(struct bench *b, unsigned round)
{
    const struct fab_inventory *before = &b->states[round % 2], *after = &b->states[1 - round % 2];
    struct fab_inventory inv;
    struct fab_names *names = NULL;
    struct fab_diff diff = {0};
    void *bytes = NULL;
    size_t size = 0;
    int rc = fab_inventory_copy(&inv, after);
    if (rc == PMIXFAB_OK)
        rc = fab_names_new(NULL, &names, NULL);
    double start = bench_now();
    if (rc == PMIXFAB_OK)
        rc = fab_names_apply(names, &inv, NULL);
    b->steps[NAMES][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = fab_diff_compute(before, after, &diff);
    b->steps[DIFF][round] = lap(&start);
    if (rc == PMIXFAB_OK)
        rc = build_steps(b, after, round, &bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = sync_file(b, bytes, size, &b->steps[DISK][round]);
    free(bytes);
    fab_diff_destroy(&diff);
    fab_names_free(names);
    fab_inventory_destroy(&inv);
    return rc;
}

/* ---- the bench ---------------------------------------------------------------------------------------- */

static int measure(struct bench *b, struct fab_err *err)
{
    double first;
    int rc = fabric_parse(FABRIC, &b->states[0]);
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_copy(&b->states[1], &b->states[0]);
    if (rc == PMIXFAB_OK)
        rc = fabric_unlink(&b->states[1], "leaf0-0", 18); /* its first cable upwards */
    if (rc == PMIXFAB_OK)
        rc = publisher_new(&b->config, NULL, &b->publisher, err);
    if (rc == PMIXFAB_OK)
        rc = publish_once(b, &b->states[0], &first, err);
    for (unsigned i = 0; rc == PMIXFAB_OK && i < ROUNDS; i++)
        rc = publish_once(b, &b->states[1 - i % 2], &b->whole[i], err);
    for (unsigned i = 0; rc == PMIXFAB_OK && i < ROUNDS; i++)
        rc = time_steps(b, i);
    if (rc != PMIXFAB_OK)
        return rc;
    bench_report(&(struct bench_figure){.bench = "publish",
                                        .figure = "9826 hosts, one cable changed",
                                        .value = bench_median(b->whole, ROUNDS),
                                        .unit = "ms",
                                        .to_reach = 60});
    bench_report(&(struct bench_figure){
        .bench = "publish", .figure = "slowest of them", .value = b->whole[ROUNDS - 1], .unit = "ms"});
    for (int i = 0; i < N_STEPS; i++)
        bench_report(&(struct bench_figure){.bench = "publish",
                                            .figure = step_names[i],
                                            .value = bench_median(b->steps[i], ROUNDS),
                                            .unit = "ms"});
    bench_report(&(struct bench_figure){
        .bench = "publish", .figure = "the first, into an empty store", .value = first, .unit = "ms"});
    return rc;
}

static int configure(struct bench *b)
{
    char path[4096 + 32];
    config_init(&b->config);
    snprintf(path, sizeof(path), "%s/fabricd.db", b->dir);
    int rc = config_text(&b->config.store, path);
    return rc == PMIXFAB_OK ? config_text(&b->config.rundir, b->dir) : rc;
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct fab_err err = {""};
    bench_init(&argc, argv);
    log_open(PMIXFAB_LOG_WARNING, 0);
    fab_inventory_init(&b.states[0]);
    fab_inventory_init(&b.states[1]);
    if (!bench_folder("bench-publish", b.dir, sizeof(b.dir))) {
        fprintf(stderr, "bench_publish: no folder beside the program: %s\n", strerror(errno));
        return 1;
    }
    int rc = configure(&b);
    if (rc == PMIXFAB_OK)
        rc = measure(&b, &err);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "bench_publish: %s\n", err.text[0] != '\0' ? err.text : pmixfab_strerror(rc));
    publisher_free(b.publisher);
    fab_inventory_destroy(&b.states[0]);
    fab_inventory_destroy(&b.states[1]);
    config_destroy(&b.config);
    remove_folder(b.dir);
    return rc == PMIXFAB_OK ? 0 : 1;
}
