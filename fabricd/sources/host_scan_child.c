/*
 * host_scan_child.c - the child of one local probe. It loads the probe, scans, and writes the report to the
 * pipe.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/process/child.h"
#include "fabricd/sources/host_scan.h"
#include "probes/registry.h"

static int scan_run_probe(const char *spec, const char *host, struct fab_report *report, struct fab_err *err)
{
    const struct probe_sink sink = {.note = child_note};
    struct probe_config config = {.arg = NULL};
    const struct probe *probe = probe_find(spec, &config.arg);
    if (probe == NULL || !probe_is_local(probe))
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "there is no probe %s of this host", spec);
    probe = probe_load(probe, err);
    if (probe == NULL) /* not built in, or its library is not installed */
        return PMIXFAB_ERR_UNSUPPORTED;
    int rc = fab_report_host(report, host, err);
    if (rc == PMIXFAB_OK)
        rc = probe->scan(&config, &sink, report, err);
    return rc == PMIXFAB_OK ? fab_report_finish(report, err) : rc;
}

/* argv: fabricd --scan-child PID_OF_THE_DAEMON PROBE HOST */
int host_scan_child(int argc, char **argv)
{
    struct fab_err err = {""};
    struct fab_report report;
    void *bytes = NULL;
    size_t size = 0;
    if (argc != 5)
        return 2;
    if (!child_begin(argv[2]))
        return 1;
    fab_report_init(&report);
    int rc = scan_run_probe(argv[3], argv[4], &report, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_report_encode(&report, &bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = child_write(bytes, size);
    if (rc != PMIXFAB_OK)
        child_note(PMIXFAB_LOG_ERROR, err.text[0] != '\0' ? err.text : pmixfab_strerror(rc), NULL);
    free(bytes);
    fab_report_destroy(&report);
    fflush(stderr);
    return rc == PMIXFAB_OK ? 0 : rc == PMIXFAB_ERR_UNSUPPORTED ? CHILD_NOTHING : 1;
}
