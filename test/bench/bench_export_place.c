/*
 * bench_export_place - a job of 512 hosts placed in a fabric of which 30 % are free, and all hosts ordered.
 *
 * Against what no choice can be below; in a tree also against a best fit, as schedulers do it, and elsewhere
 * against what a search of a minute finds: simulated annealing over single hosts, half of it from anywhere
 * and half of it from our own choice.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/bench/bench.h"
#include "test/fabrics/best_fit.h"
#include "test/fabrics/fabrics.h"
#include "test/fabrics/snapshot.h"

#define ROUNDS    15
#define JOB       512
#define SEARCH_MS 60000.0

struct job {
    const char *name;
    struct pmixfab *fab;
    uint32_t n_hosts, n_from;
    uint32_t *from, *hosts;
    uint64_t dice;
};

static bool job_open(struct job *job, const char *name, const char *kind)
{
    const struct fab_snapshot_meta meta = {
        .name = "ib0", .vendor = "", .identifier = "", .index = 1, .is_default = 1};
    struct pmixfab_plane plane;
    void *bytes = NULL;
    size_t size;

    *job = (struct job){.name = name, .dice = 7};
    if (fabric_snapshot(kind, &meta, &bytes, &size) != 0)
        return false;
    const int rc = pmixfab_open_memory(bytes, size, &job->fab);
    free(bytes);
    if (rc != 0 || pmixfab_plane(job->fab, &plane) != 0)
        return false;
    job->n_hosts = plane.n_hosts;
    job->from = calloc(plane.n_hosts, sizeof(*job->from));
    job->hosts = calloc(plane.n_hosts, sizeof(*job->hosts));
    for (uint32_t h = 0; h < plane.n_hosts && job->from != NULL; h++)
        if (fabric_random_next(&job->dice) % 100 < 30)
            job->from[job->n_from++] = h;
    return job->from != NULL && job->hosts != NULL;
}

static void job_close(struct job *job)
{
    pmixfab_close(job->fab);
    free(job->from);
    free(job->hosts);
}

static void job_report(const struct job *job, const char *what, double value, const char *unit,
                       const char *baseline, double baseline_value, double to_reach)
{
    char figure[96];
    snprintf(figure, sizeof(figure), "%s, %s", job->name, what);
    bench_report(&(struct bench_figure){.bench = "export_place",
                                        .figure = figure,
                                        .value = value,
                                        .unit = unit,
                                        .baseline = baseline,
                                        .baseline_value = baseline_value,
                                        .to_reach = to_reach});
}

/* ---- a search ---- */

struct anneal {
    struct job *job;
    uint16_t *costs;   /* n_from x n_from */
    uint32_t *joining; /* per free host: what it costs with all that are chosen */
    uint32_t *list;    /* the chosen ones, then the others */
    double value;
};

static void anneal_begin(struct anneal *a)
{
    const uint32_t n = a->job->n_from;
    memset(a->joining, 0, n * sizeof(*a->joining));
    a->value = 0;
    for (uint32_t i = 0; i < JOB; i++) {
        a->value += a->joining[a->list[i]];
        for (uint32_t h = 0; h < n; h++)
            a->joining[h] += a->costs[(size_t)a->list[i] * n + h];
    }
}

static void anneal_exchange(struct anneal *a, uint32_t i, uint32_t j)
{
    const uint32_t n = a->job->n_from, out = a->list[i], in = a->list[j];
    const uint16_t *from_out = a->costs + (size_t)out * n, *from_in = a->costs + (size_t)in * n;
    for (uint32_t h = 0; h < n; h++)
        a->joining[h] += from_in[h] - (uint32_t)from_out[h];
    a->list[i] = in;
    a->list[j] = out;
}

/* The best that was met until then, from the hottest on. */
static double anneal_run(struct anneal *a, double until, double hot)
{
    const uint32_t n = a->job->n_from;
    const double start = bench_now();
    double best = a->value, heat = hot;
    for (uint64_t round = 0;; round++) {
        if (round % 4096 == 0) {
            const double part = (bench_now() - start) / (until - start);
            if (part >= 1)
                return best;
            heat = hot * pow(0.5 / hot, part);
        }
        const uint32_t i = (uint32_t)(fabric_random_next(&a->job->dice) % JOB);
        const uint32_t j = JOB + (uint32_t)(fabric_random_next(&a->job->dice) % (n - JOB));
        const double more = (double)a->joining[a->list[j]] - a->costs[(size_t)a->list[i] * n + a->list[j]] -
                            a->joining[a->list[i]];
        const double chance = (double)(fabric_random_next(&a->job->dice) % 1000000) / 1e6;
        if (more > 0 && chance >= exp(-more / heat))
            continue;
        anneal_exchange(a, i, j);
        a->value += more;
        best = a->value < best ? a->value : best;
    }
}

/* What our choice has to the front of the list. */
static void anneal_ours(struct anneal *a)
{
    const struct job *job = a->job;
    for (uint32_t i = 0; i < JOB; i++)
        for (uint32_t j = i; j < job->n_from; j++)
            if (job->from[a->list[j]] == job->hosts[i]) {
                const uint32_t h = a->list[j];
                a->list[j] = a->list[i];
                a->list[i] = h;
                break;
            }
}

/* 0: without memory. */
static double search_a_minute(struct job *job)
{
    const size_t n = job->n_from;
    struct anneal a = {.job = job,
                       .costs = malloc(n * n * sizeof(*a.costs)),
                       .joining = malloc(n * sizeof(*a.joining)),
                       .list = malloc(n * sizeof(*a.list))};
    double best = 0;
    if (a.costs != NULL && a.joining != NULL && a.list != NULL &&
        pmixfab_host_costs(job->fab, job->from, n, a.costs) == 0) {
        const double start = bench_now();
        for (uint32_t h = 0; h < n; h++)
            a.list[h] = h;
        anneal_begin(&a);
        const double any = anneal_run(&a, start + SEARCH_MS / 2, 2000);
        anneal_ours(&a);
        anneal_begin(&a);
        const double ours = anneal_run(&a, start + SEARCH_MS, 200);
        best = any < ours ? any : ours;
    }
    free(a.costs);
    free(a.joining);
    free(a.list);
    return best;
}

/* ---- what is measured ---- */

static int measure_places(struct job *job, bool tree)
{
    static const char *const figures[] = {"512 of 30 % free, sum", "512 of 30 % free, max",
                                          "512 of 30 % free, switches"};
    struct pmixfab_placement placement, by_sum = {0};
    struct pmixfab_spread spread;
    double took[ROUNDS];
    for (int o = 2; o >= 0; o--) { /* the last one's hosts are compared below */
        for (int i = 0; i < ROUNDS; i++) {
            const double start = bench_now();
            if (pmixfab_place(job->fab, job->from, job->n_from, JOB, (enum pmixfab_objective)o, job->hosts,
                              &placement) != 0)
                return -1;
            took[i] = bench_now() - start;
        }
        by_sum = placement;
        job_report(job, figures[o], bench_median(took, ROUNDS), "ms", NULL, 0, tree ? 20 : 0);
    }
    job_report(job, "sum of costs", (double)by_sum.value, "", "least possible", (double)by_sum.bound,
               tree ? 1.03 : 0);
    if (!tree) {
        job_report(job, "sum of costs", (double)by_sum.value, "", "search of 60 s", search_a_minute(job),
                   1.03);
        return 0;
    }
    if (fabric_best_fit(job->fab, job->from, job->n_from, JOB, job->hosts) != 0 ||
        pmixfab_spread(job->fab, job->hosts, JOB, &spread) != 0)
        return -1;
    job_report(job, "sum of costs", (double)by_sum.value, "", "best fit", (double)spread.cost, 1);
    return 0;
}

/* The shares of the best possible time are those of the choice by sum and of our own. */
static int measure_places_for(struct job *job, bool tree)
{
    static const struct {
        const char *name;
        enum pmixfab_pattern pattern;
        enum pmixfab_sharing sharing;
    } goals[] = {{"all to all", PMIXFAB_ALL_TO_ALL, PMIXFAB_ALONE},
                 {"all to all, shared", PMIXFAB_ALL_TO_ALL, PMIXFAB_SHARED},
                 {"neighbours", PMIXFAB_NEIGHBOURS, PMIXFAB_ALONE},
                 {"any", PMIXFAB_ANY_PATTERN, PMIXFAB_ALONE}};
    const struct pmixfab_job all = {.hosts = job->hosts, .n = JOB};
    struct pmixfab_placement placement;
    struct pmixfab_traffic by_sum, ours;
    double took[ROUNDS];
    char what[64];
    for (size_t g = 0; g < sizeof(goals) / sizeof(goals[0]); g++) {
        struct pmixfab_job one = all;
        one.pattern = goals[g].pattern;
        if (pmixfab_place(job->fab, job->from, job->n_from, JOB, PMIXFAB_PLACE_SUM, job->hosts, &placement) !=
                0 ||
            pmixfab_traffic(job->fab, &one, 1, goals[g].sharing, &by_sum) != 0)
            return -1;
        for (int i = 0; i < ROUNDS; i++) {
            const double start = bench_now();
            if (pmixfab_place_for(job->fab, job->from, job->n_from, JOB, goals[g].pattern, goals[g].sharing,
                                  job->hosts, &ours) != 0)
                return -1;
            took[i] = bench_now() - start;
        }
        snprintf(what, sizeof(what), "512 of 30 %% free, for %s", goals[g].name);
        job_report(job, what, bench_median(took, ROUNDS), "ms", NULL, 0, tree ? 50 : 0);
        snprintf(what, sizeof(what), "time of %s", goals[g].name);
        if (goals[g].pattern == PMIXFAB_ANY_PATTERN)
            job_report(job, "best time / time of the slowest pattern", ours.share, "", "by sum", by_sum.share,
                       0);
        else
            job_report(job, what, ours.seconds * 1e3, "ms", "by sum", by_sum.seconds * 1e3, 1);
    }
    return 0;
}

static int measure_order(struct job *job, bool tree)
{
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        for (uint32_t h = 0; h < job->n_hosts; h++) /* 7919 is a prime, so that each one is there once */
            job->hosts[h] = (uint32_t)((uint64_t)h * 7919 % job->n_hosts);
        const double start = bench_now();
        if (pmixfab_order(job->fab, job->hosts, job->n_hosts) != 0)
            return -1;
        took[i] = bench_now() - start;
    }
    job_report(job, "order of all", bench_median(took, ROUNDS), "ms", NULL, 0, tree ? 50 : 0);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *kind;
        bool tree;
    } fabrics[] = {{"fat tree 9826", "fattree3:34", true},
                   {"fat tree 9800 3:1", "fattree2:200,16,49", true},
                   {"dragonfly 16512", "dragonfly:8,16,8", false}};
    int rc = 0;

    bench_init(&argc, argv);
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]) && rc == 0; f++) {
        struct job job;
        rc = job_open(&job, fabrics[f].name, fabrics[f].kind) ? 0 : -1;
        if (rc == 0)
            rc = measure_places_for(&job, fabrics[f].tree);
        if (rc == 0)
            rc = measure_places(&job, fabrics[f].tree);
        if (rc == 0)
            rc = measure_order(&job, fabrics[f].tree);
        job_close(&job);
    }
    if (rc != 0)
        fprintf(stderr, "bench_export_place: the fabric cannot be made, or its jobs not be placed\n");
    return rc == 0 ? 0 : 1;
}
