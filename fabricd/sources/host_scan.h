/*
 * host_scan.h - this host's own devices: every local probe in a child of its own, side by side, one report.
 *
 * A probe that fails or hangs costs its own facts only: what it said last time stands in the report again (of
 * `before`), and the log says so.
 */
#ifndef FABRICD_SOURCES_HOST_SCAN_H
#define FABRICD_SOURCES_HOST_SCAN_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "topo/model/report.h"

struct host_scan_result {
    struct fab_report report; /* finished, of config->host; whose owner may take it (and init it again) */
    unsigned asked, failed;   /* probes */
    uint32_t failed_sources;  /* the same as bits, 1 << enum fab_source */
    uint32_t unknown;         /* those of them of which `before` did not know either what they said */
    struct fab_err err;       /* the first failure */
    double milliseconds;
};

struct host_scan;

typedef void (*host_scan_done_fn)(struct host_scan_result *result, void *cbdata); /* once, on the loop */

/* The local probes of config->probes. before: finished, or NULL; need not outlive the call; unknown: sources
 * of which it does not say what they said last, as in host_scan_result. */
int host_scan_start(struct event_base *base, const struct config *config, const struct fab_report *before,
                    uint32_t unknown, host_scan_done_fn done, void *cbdata, struct host_scan **out,
                    struct fab_err *err);
void host_scan_cancel(struct host_scan *scan); /* NULL allowed; `done` is not called any more */

/* Are there any local probes in the configuration? And any of the fabric? */
bool host_scan_wanted(const struct config *config);
bool sweep_wanted(const struct config *config);

/*
 * fabricd --record: scan once with the local probes of the configuration (none there: all that are known) and
 * write config->record. Returns the exit status.
 */
int host_scan_record(struct config *config);

/* Ask all local probes that are known. PMIXFAB_ERR_NOMEM, _RANGE. */
int host_scan_default_probes(struct config *config);

/*
 * What this host has, for a PMIx server that has no node daemon: argv is
 * "fabricd --inventory-child PID HOST SECONDS [PROBE...]"; writes a delivery of the whole to descriptor 3.
 * What a probe that fails would have said is missing, and the delivery says so: what was held of it stands.
 */
int host_scan_inventory_child(int argc, char **argv);
#define INVENTORY_CHILD_OPTION "--inventory-child"

/* The child: argv is "fabricd --host-scan-child PID PROBE HOST"; writes an encoded report to descriptor 3. */
int host_scan_child(int argc, char **argv);
#define HOST_SCAN_CHILD_OPTION "--host-scan-child"

#endif
