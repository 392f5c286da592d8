/*
 * bench_pnet - PMIx_Fabric_register in a scheduler's own process, through the stock library and the
 * component, until the caller has the matrix's pointer in hand. The baseline of the first one is the writing
 * of that matrix alone, by pmixfab_matrix_alloc(), taken in turn with it.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pmix.h>
#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/bench/bench.h"
#include "test/fabrics/fabrics.h"
#include "topo/compile/compile.h"
#include "topo/snapshot/snapshot.h"

#define FABRIC "fattree3:34" /* 9,826 devices */
#define ROUNDS 21
#define LATER  1001

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_pnet: %s: %s\n", what, why);
    return 1;
}

/* ---- a run directory -------------------------------------------------------------------------------- */

static int build_snapshot(void **bytes, size_t *size)
{
    struct fab_inventory inv;
    struct fab_planes planes = {NULL, 0};
    struct fab_costs costs = {0};
    struct fab_geometry geometry = {0};
    struct fab_groups groups = {0};
    const struct fab_snapshot_meta meta = {
        .generation = 1, .is_default = 1, .name = "ib0", .vendor = "bench", .identifier = "bench"};
    int rc = fabric_parse(FABRIC, &inv);
    if (rc == PMIXFAB_OK)
        rc = fab_planes_build(&inv, FAB_COST_RATE, &planes, NULL);
    if (rc == PMIXFAB_OK)
        rc = fab_costs_compute(&planes.planes[0], 0, &costs);
    if (rc == PMIXFAB_OK)
        rc = fab_geometry_settle(&planes.planes[0], NULL, &geometry);
    if (rc == PMIXFAB_OK)
        rc = fab_groups_compute(&planes.planes[0], &geometry, FAB_GROUP_LEAF, &groups);
    if (rc == PMIXFAB_OK)
        rc = fab_snapshot_build(&planes.planes[0], &costs, &geometry, &groups, NULL, &meta, bytes, size);
    fab_groups_destroy(&groups);
    fab_geometry_destroy(&geometry);
    fab_costs_destroy(&costs);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);
    return rc;
}

static int write_snapshot(const char *path)
{
    void *bytes = NULL;
    size_t size = 0;
    FILE *file = NULL;
    int rc = build_snapshot(&bytes, &size);
    if (rc == PMIXFAB_OK && (file = fopen(path, "wb")) == NULL)
        rc = PMIXFAB_ERR_IO;
    if (rc == PMIXFAB_OK && fwrite(bytes, 1, size, file) != size)
        rc = PMIXFAB_ERR_IO;
    if (file != NULL && fclose(file) != 0)
        rc = PMIXFAB_ERR_IO;
    free(bytes);
    return rc;
}

/* ---- a scheduler ------------------------------------------------------------------------------------ */

/* The folder of a file, with more behind it. */
static void beside(char *out, const char *file, const char *more)
{
    char path[PATH_MAX] = "";
    if (realpath(file, path) == NULL)
        path[0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(out, 2 * PATH_MAX, "%s%s", path, more);
}

static int start_scheduler(const char *dir)
{
    static pmix_server_module_t module;
    char ours[2 * PATH_MAX], theirs[2 * PATH_MAX], both[4 * PATH_MAX + 2];
    Dl_info library;
    pmix_info_t info[3];
    bool yes = true;
    if (dladdr((void *)PMIx_server_init, &library) == 0)
        return fail("PMIx", "where is it?");
    beside(ours, "/proc/self/exe", "/../lib/pmix");
    beside(theirs, library.dli_fname, "/pmix");
    snprintf(both, sizeof(both), "%s:%s", ours, theirs);
    setenv("PMIX_MCA_mca_base_component_path", both, 1);
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
    int failed = write_snapshot(path) != PMIXFAB_OK ? fail(path, "cannot be written") : start_scheduler(dir);
    if (!failed) {
        failed = time_first(path) != 0 || time_later() != 0;
        PMIx_server_finalize();
    }
    unlink(path);
    rmdir(dir);
    return failed;
}
