/*
 * host_scan.h - scan of this host's own devices: each local probe in a child of its own, in parallel, one
 * report.
 *
 * A probe that fails or hangs loses only its own facts: those of the previous report (`before`) are kept, and
 * the failure is logged.
 */
#ifndef FABRICD_SOURCES_HOST_SCAN_H
#define FABRICD_SOURCES_HOST_SCAN_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "topo/model/report.h"

struct host_scan_result {
    struct fab_report report; /* finished, of config->host; `done` may take it (and init it again) */
    unsigned asked, failed;   /* numbers of probes */
    uint32_t failed_sources;  /* the failed ones as bits, 1 << enum fab_source */
    uint32_t unknown;         /* those of them whose data `before` lacks, too */
    struct fab_err err;       /* the first failure */
    double milliseconds;
};

struct host_scan;

typedef void (*host_scan_done_fn)(struct host_scan_result *result, void *cbdata); /* once, on the loop */

/*
 * Start the local probes of config->probes. before: a finished report, or NULL. It may be freed after the
 * call. unknown: sources whose data this report lacks, as in host_scan_result.
 */
int host_scan_start(struct event_base *base, const struct config *config, const struct fab_report *before,
                    uint32_t unknown, host_scan_done_fn done, void *cbdata, struct host_scan **out,
                    struct fab_err *err);
void host_scan_cancel(struct host_scan *scan); /* NULL allowed; `done` is not called any more */

/*
 * Return whether the configuration has local probes. The second function returns whether it has probes of
 * the fabric.
 */
bool host_scan_wanted(const struct config *config);
bool sweep_wanted(const struct config *config);

/*
 * Run fabricd --record: scan once with the configured local probes (default: all) and write config->record.
 * Returns the exit status.
 */
int host_scan_record(struct config *config);

/* Configure all available local probes. PMIXFAB_ERR_NOMEM, _RANGE. */
int host_scan_default_probes(struct config *config);

/*
 * Report this host's devices for a PMIx server without a node daemon. Run as "fabricd --inventory-child PID
 * HOST SECONDS [PROBE...]"; writes a full delivery to descriptor 3. Facts of failed probes are missing; the
 * delivery marks them, so the receiver keeps the ones it has.
 */
int host_scan_inventory_child(int argc, char **argv);
#define INVENTORY_CHILD_OPTION "--inventory-child"

/* The child, run as "fabricd --host-scan-child PID PROBE HOST"; writes an encoded report to descriptor 3. */
int host_scan_child(int argc, char **argv);
#define HOST_SCAN_CHILD_OPTION "--host-scan-child"

#endif
