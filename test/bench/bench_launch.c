/*
 * bench_launch - what the component pmdl/fabricd costs a launcher's process in PMIx_server_register_nspace,
 * in time and memory, beside what the library's own storing of one number a rank costs there; and what the
 * component pnet/fabricd costs a job's starter and its nodes. Each in a process of its own: the library loads
 * its components once.
 */
#include <malloc.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/bench/bench.h"

#define FABRIC "fattree3:34" /* 9,826 hosts */
#define ROUNDS 7
#define LOCAL  64 /* ranks of a node */

/* SETUP: a starter, and a node that has nothing of its own. */
enum manner { PLAIN, NUMBER, OURS, MANNERS, SETUP = MANNERS };

struct cost {
    double ms, mib;
    double local_ms, blob; /* of SETUP */
};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_launch: %s: %s\n", what, why);
    return 1;
}

/* ---- a launcher ------------------------------------------------------------------------------------- */

static int start_launcher(const char *dir, enum manner manner)
{
    static pmix_server_module_t module;
    pmix_info_t info[3];
    if (!bench_components(manner >= OURS))
        return fail("PMIx", "where is it?");
    setenv("PMIX_MCA_pmdl_fabricd_rundir", manner == SETUP ? "/nowhere" : dir, 1);
    setenv("PMIX_MCA_pnet_fabricd_rundir", dir, 1);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, "node0001", PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    pmix_status_t rc = PMIx_server_init(&module, info, 3);
    for (size_t i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    return rc == PMIX_SUCCESS ? 0 : fail("PMIx_server_init", PMIx_Error_string(rc));
}

static void load_maps(pmix_info_t *infos, unsigned nodes)
{
    char *names = malloc(nodes * 16u), *ranks = malloc((size_t)nodes * LOCAL * 8), *regex = NULL;
    char *name = names, *rank = ranks;
    for (unsigned n = 0; n < nodes; n++) {
        name += sprintf(name, n == 0 ? "node%04u" : ",node%04u", n + 1);
        for (unsigned r = 0; r < LOCAL; r++)
            rank += sprintf(rank, r > 0 ? ",%u" : n > 0 ? ";%u" : "%u", n * LOCAL + r);
    }
    PMIx_generate_regex(names, &regex);
    PMIX_INFO_LOAD(&infos[0], PMIX_NODE_MAP, regex, PMIX_STRING);
    free(regex);
    PMIx_generate_ppn(ranks, &regex);
    PMIX_INFO_LOAD(&infos[1], PMIX_PROC_MAP, regex, PMIX_STRING);
    free(regex);
    free(names);
    free(ranks);
}

/* As launchers tell it: maps, and of each rank its application and local rank; with a number more, or not. */
static pmix_info_t *load_job(unsigned nodes, bool number, size_t *n)
{
    pmix_info_t *infos;
    uint32_t app = 0;
    *n = 2 + (size_t)nodes * LOCAL;
    PMIX_INFO_CREATE(infos, *n);
    load_maps(infos, nodes);
    for (unsigned r = 0; r < nodes * LOCAL; r++) {
        pmix_info_t *info = &infos[2 + r], *of_rank;
        uint16_t local = r % LOCAL;
        PMIX_LOAD_KEY(info->key, PMIX_PROC_DATA);
        info->value.type = PMIX_DATA_ARRAY;
        PMIX_DATA_ARRAY_CREATE(info->value.data.darray, number ? 4 : 3, PMIX_INFO);
        of_rank = info->value.data.darray->array;
        PMIX_INFO_LOAD(&of_rank[0], PMIX_RANK, &r, PMIX_PROC_RANK);
        PMIX_INFO_LOAD(&of_rank[1], PMIX_APPNUM, &app, PMIX_UINT32);
        PMIX_INFO_LOAD(&of_rank[2], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
        if (number)
            PMIX_INFO_LOAD(&of_rank[3], PMIX_GLOBAL_RANK, &r, PMIX_PROC_RANK);
    }
    return infos;
}

static double launch_heap(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd) / (1 << 20);
}

static double launch_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* all of it is computing; other programs are not counted */
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Medians over the rounds, the first one of which is not counted: it maps the snapshot. */
static int measure(const char *dir, unsigned nodes, enum manner manner, struct cost *out)
{
    double ms[ROUNDS], mib[ROUNDS];
    size_t n;
    mallopt(M_ARENA_MAX, 1); /* or mallinfo2() would not see what the library's thread takes */
    if (start_launcher(dir, manner) != 0)
        return 1;
    pmix_info_t *infos = load_job(nodes, manner == NUMBER, &n);
    for (int i = -1; i < ROUNDS; i++) {
        pmix_nspace_t job = "";
        snprintf(job, sizeof(job), "job%d", i);
        double heap = launch_heap(), start = launch_now();
        pmix_status_t rc = PMIx_server_register_nspace(job, LOCAL, infos, n, NULL, NULL);
        if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED)
            return fail("PMIx_server_register_nspace", PMIx_Error_string(rc));
        if (i >= 0) {
            ms[i] = launch_now() - start;
            mib[i] = launch_heap() - heap;
        }
        PMIx_server_deregister_nspace(job, NULL, NULL);
    }
    *out = (struct cost){.ms = bench_median(ms, ROUNDS), .mib = bench_median(mib, ROUNDS)};
    return 0;
}

/* ---- a starter and a node --------------------------------------------------------------------------- */

static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t setup_done = PTHREAD_COND_INITIALIZER;
static pmix_info_t setup_blob;
static bool setup_answered;

static void on_setup(pmix_status_t status, pmix_info_t info[], size_t n, void *provided,
                     pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)status, (void)provided;
    pthread_mutex_lock(&setup_lock);
    for (size_t i = 0; i < n; i++)
        if (info[i].value.type == PMIX_BYTE_OBJECT)
            PMIX_INFO_XFER(&setup_blob, &info[i]);
    setup_answered = true;
    pthread_cond_signal(&setup_done);
    pthread_mutex_unlock(&setup_lock);
    if (cbfunc != NULL)
        cbfunc(PMIX_SUCCESS, cbdata);
}

static double setup_once(const char *job, pmix_info_t *infos)
{
    double start = launch_now();
    setup_answered = false;
    PMIX_INFO_DESTRUCT(&setup_blob);
    PMIX_INFO_CONSTRUCT(&setup_blob);
    if (PMIx_server_setup_application(job, infos, 2, on_setup, NULL) != PMIX_SUCCESS)
        return -1;
    pthread_mutex_lock(&setup_lock);
    while (!setup_answered)
        pthread_cond_wait(&setup_done, &setup_lock);
    pthread_mutex_unlock(&setup_lock);
    return launch_now() - start;
}

/* Of the node's call: all that it does is done when it returns. */
static int measure_setup(const char *dir, unsigned nodes, struct cost *out)
{
    double ms[ROUNDS], local[ROUNDS];
    size_t n;
    if (start_launcher(dir, SETUP) != 0)
        return 1;
    PMIX_INFO_CONSTRUCT(&setup_blob);
    pmix_info_t *infos = load_job(nodes, false, &n);
    for (int i = -1; i < ROUNDS; i++) {
        pmix_nspace_t job = "";
        snprintf(job, sizeof(job), "job%d", i);
        double taken = setup_once(job, infos);
        pmix_status_t rc = PMIx_server_register_nspace(job, LOCAL, infos, n, NULL, NULL);
        double start = launch_now();
        if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
            rc = PMIx_server_setup_local_support(job, &setup_blob, 1, NULL, NULL);
        if (rc != PMIX_OPERATION_SUCCEEDED || setup_blob.value.type != PMIX_BYTE_OBJECT)
            return fail("PMIx_server_setup_local_support", PMIx_Error_string(rc));
        if (i >= 0) {
            ms[i] = taken;
            local[i] = launch_now() - start;
        }
        PMIx_server_deregister_nspace(job, NULL, NULL);
    }
    *out = (struct cost){.ms = bench_median(ms, ROUNDS),
                         .local_ms = bench_median(local, ROUNDS),
                         .blob = (double)setup_blob.value.data.bo.size / 1024};
    return 0;
}

/* ---- apart ------------------------------------------------------------------------------------------ */

static int measure_apart(const char *dir, unsigned nodes, enum manner manner, struct cost *out)
{
    int ends[2], status = 1;
    if (pipe(ends) != 0)
        return fail("pipe", "none");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int failed = manner == SETUP ? measure_setup(dir, nodes, out) : measure(dir, nodes, manner, out);
        if (failed == 0)
            failed = write(ends[1], out, sizeof(*out)) != sizeof(*out);
        _exit(failed); /* without the library's end, which is not measured */
    }
    close(ends[1]);
    ssize_t got = read(ends[0], out, sizeof(*out));
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || got != sizeof(*out))
        return fail("a launcher", "failed");
    return 0;
}

static int compare(const char *dir, unsigned nodes, double limit)
{
    struct cost costs[MANNERS];
    char what[64];
    for (int manner = 0; manner < MANNERS; manner++)
        if (measure_apart(dir, nodes, (enum manner)manner, &costs[manner]) != 0)
            return 1;
    snprintf(what, sizeof(what), "register_nspace, %u nodes x %d: ours", nodes, LOCAL);
    struct bench_figure figure = {.bench = "launch",
                                  .figure = what,
                                  .value = costs[OURS].ms - costs[PLAIN].ms,
                                  .unit = "ms",
                                  .to_reach = limit};
    bench_report(&figure);
    figure.baseline = "one number a rank";
    figure.baseline_value = costs[NUMBER].ms - costs[PLAIN].ms;
    figure.to_reach = 2;
    if (nodes > 64)
        bench_report(&figure);
    figure.value = costs[OURS].mib - costs[PLAIN].mib;
    figure.baseline_value = costs[NUMBER].mib - costs[PLAIN].mib;
    figure.unit = "MiB";
    figure.to_reach = nodes > 64 ? 2 : 0;
    bench_report(&figure);
    figure = (struct bench_figure){.bench = "launch",
                                   .figure = "the same call without the component",
                                   .value = costs[PLAIN].ms,
                                   .unit = "ms"};
    bench_report(&figure);
    return 0;
}

static int compare_setup(const char *dir, unsigned nodes, double limit)
{
    struct cost cost;
    char what[64];
    if (measure_apart(dir, nodes, SETUP, &cost) != 0)
        return 1;
    snprintf(what, sizeof(what), "setup_application, %u nodes x %d", nodes, LOCAL);
    bench_report(&(struct bench_figure){
        .bench = "launch", .figure = what, .value = cost.ms, .unit = "ms", .to_reach = limit});
    bench_report(&(struct bench_figure){
        .bench = "launch", .figure = "... its blob", .value = cost.blob, .unit = "KiB", .to_reach = 1024});
    bench_report(&(struct bench_figure){.bench = "launch",
                                        .figure = "... setup_local_support on a node of it",
                                        .value = cost.local_ms,
                                        .unit = "ms",
                                        .to_reach = 20});
    return 0;
}

int main(int argc, char **argv)
{
    char dir[2048], path[2080];
    bench_init(&argc, argv);
    if (!bench_folder("bench_launch", dir, sizeof(dir)))
        return fail("a folder", "none");
    snprintf(path, sizeof(path), "%s/ib0.snap", dir);
    int failed = !bench_snapshot(FABRIC, path) ? fail(path, "cannot be written") : 0;
    if (failed == 0)
        failed = compare(dir, 1024, 250);
    if (failed == 0)
        failed = compare(dir, 64, 15);
    if (failed == 0)
        failed = compare_setup(dir, 1024, 100);
    if (failed == 0)
        failed = compare_setup(dir, 64, 5);
    unlink(path);
    rmdir(dir);
    return failed;
}
