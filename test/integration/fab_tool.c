/*
 * fab_tool.c - a tool that reads a fabric through libpmixfab, over PMIx.
 *
 *   fab_tool URI show      the plane, and the cost between its first and its last device, a line each
 *   fab_tool URI time N    median time, in microseconds, of N times open, first cost, close
 */
#include <pmix_tool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmixfab.h"
#include "test/integration/stock_status.h"

static int fail(const char *what, int rc)
{
    fprintf(stderr, "%s: %s (%d)\n", what, pmixfab_strerror(rc), rc);
    return 1;
}

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* To a usable cost: of the pair that is farthest apart in the order of devices. */
static int open_and_ask(struct pmixfab **fab, struct pmixfab_plane *plane, uint16_t *cost)
{
    int rc = pmixfab_open_pmix(NULL, 0, fab);
    if (rc == PMIXFAB_OK)
        rc = pmixfab_plane(*fab, plane);
    if (rc == PMIXFAB_OK)
        rc = plane->n_devices == 0 ? PMIXFAB_ERR_NOTFOUND : pmixfab_cost(*fab, 0, plane->n_devices - 1, cost);
    return rc;
}

static int do_show(void)
{
    struct pmixfab *fab = NULL;
    struct pmixfab_plane plane;
    uint16_t cost = 0;
    int rc = open_and_ask(&fab, &plane, &cost);
    if (rc == PMIXFAB_OK)
        printf("plane %s\ngeneration %llu\ndevices %u\ncost %u\n", plane.name,
               (unsigned long long)plane.generation, plane.n_devices, cost);
    pmixfab_close(fab);
    return rc == PMIXFAB_OK ? 0 : fail("open", rc);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int do_time(unsigned n)
{
    double *times = calloc(n + 1, sizeof(*times));
    int rc = times == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (unsigned i = 0; rc == PMIXFAB_OK && i < n; i++) {
        struct pmixfab *fab = NULL;
        struct pmixfab_plane plane;
        uint16_t cost = 0;
        double start = microseconds();
        rc = open_and_ask(&fab, &plane, &cost);
        pmixfab_close(fab);
        times[i] = microseconds() - start;
    }
    if (rc == PMIXFAB_OK) {
        qsort(times, n, sizeof(*times), by_value);
        printf("%.1f\n", times[n / 2]);
    }
    free(times);
    return rc == PMIXFAB_OK ? 0 : fail("open", rc);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: fab_tool URI show|time [N]\n");
        return 2;
    }
    pmix_proc_t self;
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
    pmix_status_t rc = PMIx_tool_init(&self, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    if (rc != PMIX_SUCCESS) {
        fprintf(stderr, "connect: %s (%d)\n", stock_status(rc), rc);
        return 1;
    }
    int status = 2;
    if (strcmp(argv[2], "show") == 0)
        status = do_show();
    else if (strcmp(argv[2], "time") == 0)
        status = do_time(argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 100);
    fflush(stdout);
    PMIx_tool_finalize();
    return status;
}
