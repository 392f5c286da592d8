/*
 * stock_load.c - one of many tools: connects, says "ready", and does what it is told on standard input.
 *
 *   rounds N   N times PMIx_Fabric_register, PMIx_Fabric_update and a PMIx_Query_info: "errors E", then the
 *              microseconds that each answer took, all in one line
 *   quit
 *
 * Each PMIX_FABRIC_UPDATED is a line: "updated", its generation, and microseconds since 1970 at its arrival.
 * Knows only the stock PMIx library.
 */
#include <pmix_tool.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double microseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t n, pmix_info_t *results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    double now = microseconds(CLOCK_REALTIME);
    (void)handler, (void)status, (void)source, (void)results, (void)nresults;
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], "pmixfab.generation"))
            printf("updated %lu %.0f\n", (unsigned long)info[i].value.data.uint64, now);
    fflush(stdout);
    if (cbfunc != NULL)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static pmix_status_t ask(void)
{
    pmix_query_t *query;
    pmix_info_t *results = NULL;
    size_t n = 0;
    bool yes = true;
    pmix_status_t rc;
    PMIX_QUERY_CREATE(query, 1);
    PMIX_ARGV_APPEND(rc, query->keys, PMIX_FABRIC_NUM_DEVICES);
    PMIX_QUERY_QUALIFIERS_CREATE(query, 1);
    PMIX_INFO_LOAD(&query->qualifiers[0], PMIX_QUERY_REFRESH_CACHE, &yes, PMIX_BOOL);
    rc = PMIx_Query_info(query, 1, &results, &n);
    PMIX_QUERY_FREE(query, 1);
    if (results != NULL)
        PMIX_INFO_FREE(results, n);
    return rc == PMIX_SUCCESS && n != 1 ? PMIX_ERROR : rc;
}

static void rounds(unsigned n)
{
    double *took = calloc(3 * (size_t)n + 1, sizeof(*took));
    unsigned errors = 0;
    for (unsigned i = 0; took != NULL && i < n; i++) {
        pmix_fabric_t fabric;
        PMIX_FABRIC_CONSTRUCT(&fabric);
        double t[4] = {microseconds(CLOCK_MONOTONIC)};
        errors += PMIx_Fabric_register(&fabric, NULL, 0) != PMIX_SUCCESS || fabric.ninfo == 0;
        t[1] = microseconds(CLOCK_MONOTONIC);
        PMIX_INFO_FREE(fabric.info, fabric.ninfo); /* an update does not free them */
        errors += PMIx_Fabric_update(&fabric) != PMIX_SUCCESS || fabric.ninfo == 0;
        t[2] = microseconds(CLOCK_MONOTONIC);
        errors += ask() != PMIX_SUCCESS;
        t[3] = microseconds(CLOCK_MONOTONIC);
        PMIX_INFO_FREE(fabric.info, fabric.ninfo);
        for (unsigned k = 0; k < 3; k++)
            took[3 * i + k] = t[k + 1] - t[k];
    }
    printf("errors %u", errors);
    for (unsigned i = 0; took != NULL && i < 3 * n; i++)
        printf(" %.0f", took[i]);
    printf("\n");
    fflush(stdout);
    free(took);
}

int main(int argc, char **argv)
{
    pmix_status_t updated = PMIX_FABRIC_UPDATED;
    char line[64];
    pmix_proc_t self;
    pmix_info_t info;
    if (argc != 2)
        return 2;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_URI, argv[1], PMIX_STRING);
    if (PMIx_tool_init(&self, &info, 1) != PMIX_SUCCESS ||
        PMIx_Register_event_handler(&updated, 1, NULL, 0, on_event, NULL, NULL) < 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "quit\n") != 0)
        if (strncmp(line, "rounds ", 7) == 0)
            rounds((unsigned)strtoul(line + 7, NULL, 10));
    PMIx_tool_finalize();
    return 0;
}
