#include "fabricd/sources/host_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/process/child.h"
#include "probes/core/probe.h"
#include "probes/registry.h"

/* A probe in its child. */
struct asked {
    struct host_scan *scan;
    struct child *child;    /* NULL: it has answered */
    enum fab_source source; /* FAB_SOURCES: not a known source */
    char what[64];
};

struct host_scan {
    struct host_scan_result result;
    struct fab_report before; /* the previous report; empty: none */
    uint32_t unknown;         /* sources whose data it lacks */
    int64_t start;            /* microseconds */
    host_scan_done_fn done;
    void *cbdata;
    unsigned open; /* probes without an answer */
    struct asked asked[CONFIG_MAX_LIST];
};

/* ---- configured probes -------------------------------------------------------------------------- */

static unsigned count_probes(const struct config *config, bool local)
{
    unsigned n = 0;
    for (unsigned i = 0; i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        n += probe != NULL && probe_is_local(probe) == local;
    }
    return n;
}

bool host_scan_wanted(const struct config *config)
{
    return count_probes(config, true) > 0;
}

bool sweep_wanted(const struct config *config)
{
    return count_probes(config, false) > 0;
}

/* ---- the answers -------------------------------------------------------------------------------- */

/* Note that a module or the hardware is missing: logged once, since that will not change soon. */
static void has_nothing(const struct asked *asked, const char *reason)
{
    static bool said[FAB_SOURCES];
    if (asked->source < FAB_SOURCES && !said[asked->source]) {
        said[asked->source] = true;
        log_info("%s", reason);
    } else {
        log_debug("%s", reason);
    }
}

static int take_report(struct host_scan *scan, const struct child_result *child, struct fab_err *err)
{
    struct fab_report report;
    int rc = fab_report_decode(child->bytes, child->size, &report, err);
    if (rc == PMIXFAB_OK)
        rc = fab_report_merge(&scan->result.report, &report);
    fab_report_destroy(&report);
    return rc;
}

/* Keep the facts of the previous report, so that devices do not vanish when a probe fails. */
static void keep_before(struct host_scan *scan, const struct asked *asked, const struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    log_warning("%s", err->text);
    if (scan->result.failed++ == 0)
        scan->result.err = *err;
    if (asked->source >= FAB_SOURCES)
        return;
    scan->result.failed_sources |= 1u << asked->source;
    if (scan->before.finished)
        rc = fab_report_merge_source(&scan->result.report, &scan->before, asked->source);
    if (rc != PMIXFAB_OK)
        log_warning("%s: its earlier data is lost: %s", asked->what, pmixfab_strerror(rc));
}

static void host_scan_free(struct host_scan *scan)
{
    fab_report_destroy(&scan->result.report);
    fab_report_destroy(&scan->before);
    free(scan);
}

static uint32_t sources_asked(const struct host_scan *scan)
{
    uint32_t sources = 0;
    for (unsigned i = 0; i < scan->result.asked; i++)
        sources |= scan->asked[i].source < FAB_SOURCES ? 1u << scan->asked[i].source : 0;
    return sources;
}

static void host_scan_finish(struct host_scan *scan)
{
    scan->result.milliseconds = (double)(clock_now(CLOCK_MONOTONIC) - scan->start) / 1e3;
    struct fab_err err = {""};
    if (fab_report_finish(&scan->result.report, &err) != PMIXFAB_OK) {
        /* Each part was a valid report, so together they are too large. */
        char host[FAB_HOST_MAX + 1];
        memcpy(host, scan->result.report.host, sizeof(host));
        log_error("host scan: the probes found more than a report can hold: %s", err.text);
        fab_report_destroy(&scan->result.report);
        int rc = fab_report_host(&scan->result.report, host, NULL);
        if (rc == PMIXFAB_OK && scan->before.finished)
            rc = fab_report_merge(&scan->result.report, &scan->before);
        if (rc == PMIXFAB_OK)
            rc = fab_report_finish(&scan->result.report, NULL);
        if (rc != PMIXFAB_OK)
            log_warning("host scan: the earlier data of the probes is lost: %s", pmixfab_strerror(rc));
        scan->result.failed = scan->result.asked;
        scan->result.failed_sources = sources_asked(scan);
        scan->result.err = err;
    }
    scan->result.unknown = scan->unknown & scan->result.failed_sources;
    scan->done(&scan->result, scan->cbdata);
    host_scan_free(scan);
}

static void host_scan_on_child(struct child_result *child, void *arg)
{
    struct asked *asked = arg;
    struct host_scan *scan = asked->scan;
    struct fab_err err = child->err, why = {""};
    int rc = child->code;
    asked->child = NULL;
    log_debug("%s: %.1f ms, %s", asked->what, child->milliseconds, pmixfab_strerror(rc));
    if (rc == PMIXFAB_OK) {
        rc = take_report(scan, child, &why);
        if (rc != PMIXFAB_OK)
            fab_fail(&err, rc, "%s: %s", asked->what, why.text[0] != '\0' ? why.text : pmixfab_strerror(rc));
    } else if (rc == PMIXFAB_ERR_UNSUPPORTED) {
        has_nothing(asked, err.text);
        rc = PMIXFAB_OK;
    }
    if (rc != PMIXFAB_OK)
        keep_before(scan, asked, &err);
    if (--scan->open == 0)
        host_scan_finish(scan);
}

/* ---- the start ---------------------------------------------------------------------------------- */

void host_scan_cancel(struct host_scan *scan)
{
    if (scan == NULL)
        return;
    for (unsigned i = 0; i < scan->result.asked; i++)
        child_cancel(scan->asked[i].child);
    host_scan_free(scan);
}

static int host_scan_start_child(struct host_scan *scan, struct event_base *base, const struct config *config,
                                 const struct probe *probe, char *spec, struct fab_err *err)
{
    char daemon[16];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    char *argv[] = {"fabricd", HOST_SCAN_CHILD_OPTION, daemon, spec, config->host, NULL};
    struct asked *asked = &scan->asked[scan->result.asked];
    asked->scan = scan;
    asked->source = fab_source_parse(probe->name);
    snprintf(asked->what, sizeof(asked->what), "scan %.40s", probe->name);
    const struct child_order order = {.what = asked->what,
                                      .argv = argv,
                                      .env = &config->sweep_env,
                                      .deadline = config->deadline,
                                      .limit = FAB_REPORT_MAX_SIZE,
                                      .done = host_scan_on_child,
                                      .cbdata = asked};
    int rc = child_start(base, &order, &asked->child, err);
    if (rc != PMIXFAB_OK)
        return rc;
    scan->open++;
    scan->result.asked++;
    return PMIXFAB_OK;
}

int host_scan_start(struct event_base *base, const struct config *config, const struct fab_report *before,
                    uint32_t unknown, host_scan_done_fn done, void *cbdata, struct host_scan **out,
                    struct fab_err *err)
{
    *out = NULL;
    struct host_scan *scan = calloc(1, sizeof(*scan));
    if (scan == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "host scan: out of memory");
    scan->unknown = before == NULL ? UINT32_MAX : unknown;
    scan->done = done;
    scan->cbdata = cbdata;
    scan->start = clock_now(CLOCK_MONOTONIC);
    fab_report_init(&scan->before);
    fab_report_init(&scan->result.report);
    int rc = fab_report_host(&scan->result.report, config->host, err);
    if (rc == PMIXFAB_OK && before != NULL && fab_report_copy(&scan->before, before) != PMIXFAB_OK)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "host scan: out of memory");
    for (unsigned i = 0; rc == PMIXFAB_OK && i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        if (probe != NULL && probe_is_local(probe))
            rc = host_scan_start_child(scan, base, config, probe, config->probes.items[i], err);
    }
    if (rc == PMIXFAB_OK && scan->result.asked == 0)
        rc = fab_fail(err, PMIXFAB_ERR_NOTFOUND, "host scan: no probe of this host is configured");
    if (rc != PMIXFAB_OK) {
        host_scan_cancel(scan);
        return rc;
    }
    *out = scan;
    return PMIXFAB_OK;
}
