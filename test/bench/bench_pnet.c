/*
 * bench_pnet - PMIx_Fabric_register in a scheduler's own process, through the stock library and the
 * component, until the caller has the matrix's pointer in hand. The baseline of the first one is the writing
 * of that matrix alone, by pmixfab_matrix_alloc(), taken in turn with it.
 */
#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmixfab.h"
#include "test/bench/bench.h"

#define FABRIC "fattree3:34" /* 9,826 devices */
#define ROUNDS 21
#define LATER  1001

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_pnet: %s: %s\n", what, why);
    return 1;
}

/* ---- a scheduler ------------------------------------------------------------------------------------ */

static int start_scheduler(const char *dir)
{
    static pmix_server_module_t module;
    pmix_info_t info[3];
    bool yes = true;
    if (!bench_components(true))
        return fail("PMIx", "where is it?");
    setenv("PMIX_MCA_pnet_fabricd_rundir", dir, 1);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_SCHEDULER, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    pmix_status_t rc = PMIx_server_init(&module, info, 3);
    for (size_t i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    return rc == PMIX_SUCCESS ? 0 : fail("PMIx_server_init", PMIx_Error_string(rc));
}

static const uint16_t *matrix_of(const pmix_fabric_t *fabric)
{
    for (size_t i = 0; i < fabric->ninfo; i++)
        if (PMIX_CHECK_KEY(&fabric->info[i], PMIX_FABRIC_COST_MATRIX))
            return fabric->info[i].value.data.ptr;
    return NULL;
}

/* Milliseconds until the pointer is in hand; negative where that failed. */
static double time_register(pmix_fabric_t *fabric)
{
    PMIX_FABRIC_CONSTRUCT(fabric);
    double start = bench_now();
    pmix_status_t rc = PMIx_Fabric_register(fabric, NULL, 0);
    const uint16_t *cells = rc == PMIX_SUCCESS ? matrix_of(fabric) : NULL;
    double spent = bench_now() - start;
    if (rc != PMIX_SUCCESS)
        fail("PMIx_Fabric_register", PMIx_Error_string(rc));
    return cells == NULL ? -1 : spent;
}

/* ---- the figures ------------------------------------------------------------------------------------ */

static int time_first(const char *path)
{
    double first[ROUNDS], writing[ROUNDS];
    struct pmixfab *fab = NULL;
    struct pmixfab_plane plane;
    if (pmixfab_open_file(path, &fab) != PMIXFAB_OK || pmixfab_plane(fab, &plane) != PMIXFAB_OK)
        return fail(path, "cannot be opened");
    for (unsigned i = 0; i < ROUNDS; i++) {
        pmix_fabric_t fabric;
        uint16_t *cells = NULL;
        double start = bench_now();
        int rc = pmixfab_matrix_alloc(fab, 0, &cells);
        writing[i] = bench_now() - start;
        pmixfab_matrix_free(cells, plane.n_devices);
        first[i] = time_register(&fabric);
        if (rc != PMIXFAB_OK || first[i] < 0) {
            pmixfab_close(fab);
            return 1;
        }
        PMIx_Fabric_deregister(&fabric);
    }
    pmixfab_close(fab);
    const struct bench_figure figure = {.bench = "pnet",
                                        .figure = "first register in process, 9826",
                                        .value = bench_median(first, ROUNDS),
                                        .unit = "ms",
                                        .baseline = "matrix alone",
                                        .baseline_value = bench_median(writing, ROUNDS),
                                        .to_reach = 1.3};
    bench_report(&figure);
    return 0;
}

static int time_later(void)
{
    static double later[LATER], update[LATER];
    pmix_fabric_t kept, fabric;
    if (time_register(&kept) < 0)
        return 1;
    for (unsigned i = 0; i < LATER; i++) {
        later[i] = time_register(&fabric);
        if (later[i] < 0 || matrix_of(&fabric) != matrix_of(&kept))
            return fail("register", "the matrix is not shared");
        double start = bench_now();
        PMIx_Fabric_update(&fabric);
        update[i] = bench_now() - start;
        PMIx_Fabric_deregister(&fabric);
    }
    PMIx_Fabric_deregister(&kept);
    const struct bench_figure figures[] = {
        {.bench = "pnet",
         .figure = "later register in process, 9826",
         .value = bench_median(later, LATER),
         .unit = "ms",
         .to_reach = 0.1},
        {.bench = "pnet",
         .figure = "update in process, nothing new, 9826",
         .value = bench_median(update, LATER),
         .unit = "ms"},
    };
    bench_report(&figures[0]);
    bench_report(&figures[1]);
    return 0;
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/bench-pnet.XXXXXX", path[64];
    bench_init(&argc, argv);
    if (mkdtemp(dir) == NULL)
        return fail(dir, "cannot be made");
    snprintf(path, sizeof(path), "%s/ib0.snap", dir);
    int failed = !bench_snapshot(FABRIC, path) ? fail(path, "cannot be written") : start_scheduler(dir);
    if (!failed) {
        failed = time_first(path) != 0 || time_later() != 0;
        PMIx_server_finalize();
    }
    unlink(path);
    rmdir(dir);
    return failed;
}
