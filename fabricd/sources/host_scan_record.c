/* host_scan_record.c - fabricd --record FILE: write the results of the local probes to a file, which the
 * probes can read as their argument. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/sources/host_scan.h"
#include "probes/registry.h"

struct recording {
    const struct config *config;
    struct event_base *base;
    int status;
};

static int write_to(FILE *out, const struct fab_report *report)
{
    int rc = probe_record(report, out);
    return fflush(out) != 0 && rc == PMIXFAB_OK ? PMIXFAB_ERR_IO : rc;
}

static int write_record(const char *path, const struct fab_report *report)
{
    int rc = PMIXFAB_ERR_IO;
    if (strcmp(path, "-") == 0) {
        rc = write_to(stdout, report);
    } else {
        FILE *out = fopen(path, "we");
        if (out != NULL)
            rc = write_to(out, report);
        if (out != NULL && fclose(out) != 0)
            rc = PMIXFAB_ERR_IO;
    }
    if (rc == PMIXFAB_ERR_IO)
        log_error("%s: cannot be written: %s", path, strerror(errno));
    else if (rc != PMIXFAB_OK)
        log_error("%s: cannot be written: %s", path, pmixfab_strerror(rc));
    return rc;
}

static void record_on_scan(struct host_scan_result *result, void *arg)
{
    struct recording *recording = arg;
    if (write_record(recording->config->record, &result->report) == PMIXFAB_OK)
        recording->status = result->failed > 0; /* failures are in the log */
    event_base_loopbreak(recording->base);
}

int host_scan_default_probes(struct config *config)
{
    int rc = PMIXFAB_OK;
    for (size_t i = 0; probe_registry[i]->name != NULL && rc == PMIXFAB_OK; i++)
        if (probe_is_local(probe_registry[i]))
            rc = config_append(&config->probes, probe_registry[i]->name);
    return rc;
}

int host_scan_record(struct config *config)
{
    struct recording recording = {.config = config, .base = event_base_new(), .status = 1};
    struct fab_err err = {"out of memory"};
    struct host_scan *scan = NULL;
    int rc = recording.base == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    signal(SIGPIPE, SIG_IGN);
    if (rc == PMIXFAB_OK && !host_scan_wanted(config))
        rc = host_scan_default_probes(config);
    if (rc == PMIXFAB_OK)
        rc = host_scan_start(recording.base, config, NULL, 0, record_on_scan, &recording, &scan, &err);
    if (rc == PMIXFAB_OK)
        event_base_dispatch(recording.base);
    else
        log_error("%s", err.text);
    if (recording.base != NULL)
        event_base_free(recording.base);
    return recording.status;
}
