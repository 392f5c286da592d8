/* scheduler_findings.c - what looks wrong by what the scheduler knows: sweeps that were not good, what is
 * suppressed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/jobs/history_check.h"
#include "fabricd/pmix/pmix_server.h"
#include "probes/registry.h"

#define SECOND INT64_C(1000000)

static void time_text(int64_t microseconds, char text[32])
{
    struct tm utc;
    const time_t seconds = (time_t)(microseconds / 1000000);
    gmtime_r(&seconds, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* What is suppressed now, which changes without anything being published. */
static int tell_suppressed(struct scheduler *d)
{
    struct publisher_suppressed suppressed;
    struct fab_findings list = {0};
    int rc = PMIXFAB_OK;
    for (uint32_t at = 0; rc == PMIXFAB_OK && publisher_next_suppressed(d->publisher, &at, &suppressed);) {
        char where[24], since[32], until[32], what[160];
        snprintf(where, sizeof(where), "0x%016" PRIx64, suppressed.about.end[0].guid);
        time_text(suppressed.since, since);
        time_text(suppressed.until, until);
        snprintf(what, sizeof(what), "it came or went %u times since %s; suppressed until %s",
                 suppressed.changes, since, until);
        rc = fab_findings_add(&list, FAB_CHECK_FLAPPING, suppressed.about,
                              suppressed.what[0] != '\0' ? suppressed.what : where, what);
    }
    if (rc == PMIXFAB_OK)
        rc = publisher_find_causes(d->publisher, &list);
    findings_replace(d->findings, FAB_CHECK_FLAPPING, &list);
    return rc;
}

static int tell_partial(struct scheduler *d)
{
    const bool partial = d->status.stale && d->status.code == PMIXFAB_ERR_PARTIAL;
    const uint32_t n = partial ? d->status.findings.dangling : 0;
    struct fab_findings list = {0};
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n && i < PUBLISH_NAMED; i++) {
        const struct publish_nowhere *named = &d->status.findings.named[i];
        char what[200], more[48] = "";
        if (n > PUBLISH_NAMED && i == PUBLISH_NAMED - 1)
            snprintf(more, sizeof(more), "; and %u more", (unsigned)(n - PUBLISH_NAMED));
        snprintf(what, sizeof(what), "leads nowhere now, or did not answer%s%s%s",
                 named->was[0] != '\0' ? "; served as leading to " : "", named->was, more);
        rc = fab_findings_add(&list, FAB_CHECK_PARTIAL, fab_about_text(named->port), named->port, what);
    }
    findings_replace(d->findings, FAB_CHECK_PARTIAL, &list);
    return rc;
}

static int tell_stale(struct scheduler *d)
{
    struct fab_findings list = {0};
    int rc = d->status.stale ? fab_findings_add(&list, FAB_CHECK_STALE, fab_about_text("sweep"), "sweep",
                                                d->status.stale_reason)
                             : PMIXFAB_OK;
    findings_replace(d->findings, FAB_CHECK_STALE, &list);
    return rc;
}

static int tell_no_cable(struct scheduler *d)
{
    const struct fab_inventory *inv = publisher_inventory(d->publisher);
    struct fab_findings list = {0};
    char what[96];
    snprintf(what, sizeof(what), "the sweep sees %u node%s and not one cable", inv->n_nodes,
             inv->n_nodes == 1 ? "" : "s");
    int rc = publisher_sees_no_cable(d->publisher)
                 ? fab_findings_add(&list, FAB_CHECK_NO_CABLE, fab_about_text(""), "the fabric", what)
                 : PMIXFAB_OK;
    findings_replace(d->findings, FAB_CHECK_NO_CABLE, &list);
    return rc;
}

/* The subnet managers that are gone, and those that are not the usual ones. */
static int tell_managers(struct scheduler *d)
{
    struct fab_findings gone = {0}, changed = {0};
    const struct manager *manager;
    const char *probe;
    int rc = PMIXFAB_OK;
    for (unsigned i = 0; rc == PMIXFAB_OK && (manager = scheduler_manager(d, i, &probe)) != NULL; i++) {
        char where[80], name[SCHEDULER_MANAGER_TEXT], since[32], what[SCHEDULER_MANAGER_TEXT + 160];
        struct fab_about about = fab_about_text(probe);
        snprintf(where, sizeof(where), "subnet of %.60s", probe);
        scheduler_manager_text(d, &manager->now, name);
        time_text(manager_is_gone(manager) ? manager->missed_since : manager->since, since);
        about.state = manager->now.guid;
        if (manager_is_gone(manager)) {
            snprintf(what, sizeof(what), "no subnet manager answers since %s; the last one is %s", since,
                     name);
            rc = fab_findings_add(&gone, FAB_CHECK_MANAGER_GONE, about, where, what);
        } else if (manager_is_another(manager)) {
            snprintf(what, sizeof(what), "%s took over at %s; it is not the usual one", name, since);
            rc = fab_findings_add(&changed, FAB_CHECK_MANAGER_CHANGED, about, where, what);
        }
    }
    findings_replace(d->findings, FAB_CHECK_MANAGER_GONE, &gone);
    findings_replace(d->findings, FAB_CHECK_MANAGER_CHANGED, &changed);
    return rc;
}

static int tell_growth(struct scheduler *d, const struct watched_port *port, struct fab_findings *list)
{
    char where[FAB_PORT_TEXT], peer[FAB_PORT_TEXT], grown[COUNTERS_TEXT];
    char what[FAB_PORT_TEXT + COUNTERS_TEXT + 80], since[32];
    struct fab_about about = {.end = {{port->last.guid, port->last.num}}};
    if (!publisher_port_texts(d->publisher, port->last.guid, port->last.num, where, peer))
        return PMIXFAB_OK;
    for (unsigned c = 0; c < PROBE_COUNTERS; c++)
        about.state |= (uint64_t)(port->grown[c] > 0) << c;
    counter_growth_text(port, grown);
    time_text(port->grows_since, since);
    snprintf(what, sizeof(what), "%s since %s%s%s", grown, since,
             peer[0] != '\0' ? "; its cable leads to " : "", peer);
    return fab_findings_add(list, FAB_CHECK_COUNTERS, about, where, what);
}

/* Ports whose error counters grow: any growth behind a change, else more than is usual. */
static int tell_counters(struct scheduler *d)
{
    const struct counter_watch *watch = &d->counter_watch, *all = &d->all_counters.watch;
    struct fab_findings list = {0};
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < watch->n; i++)
        if (watch->ports[i].grows_since != 0)
            rc = tell_growth(d, &watch->ports[i], &list);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < all->n; i++) {
        const struct watched_port *port = &all->ports[i], *same;
        if (port->grows_since == 0 || counter_level(port->grown) <= 1)
            continue;
        same = counter_watch_find(watch, port->last.guid, port->last.num);
        if (same == NULL || same->grows_since == 0)
            rc = tell_growth(d, port, &list);
    }
    findings_replace(d->findings, FAB_CHECK_COUNTERS, &list);
    return rc;
}

#define PMIX_TOLD (3600 * SECOND) /* so long a PMIx server that was lost is a finding */

/* For so many microseconds the last one still is; 0 or less: it is not. */
static int64_t pmix_told_for(const struct pmix_server_status *pmix)
{
    return pmix->last == 0 ? 0 : pmix->last + PMIX_TOLD - clock_now(CLOCK_REALTIME);
}

static int tell_names(struct scheduler *d)
{
    const char *fault = publisher_names_fault(d->publisher);
    struct fab_findings list = {0};
    int rc = fault[0] != '\0'
                 ? fab_findings_add(&list, FAB_CHECK_NAME_MAP, fab_about_text("names"), "[names]", fault)
                 : PMIXFAB_OK;
    findings_replace(d->findings, FAB_CHECK_NAME_MAP, &list);
    return rc;
}

/* Generations that were given out and are not in the store. */
static int tell_history_gone(struct scheduler *d)
{
    struct fab_findings list = {0};
    uint32_t n;
    int rc = PMIXFAB_OK;
    const struct store_gone *gone = publisher_gone(d->publisher, &n);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        char where[64];
        snprintf(where, sizeof(where), "generations %" PRIu64 " to %" PRIu64, gone[i].above + 1,
                 gone[i].newest);
        rc = fab_findings_add(&list, FAB_CHECK_HISTORY_GONE, fab_about_text(where), where, gone[i].why);
    }
    findings_replace(d->findings, FAB_CHECK_HISTORY_GONE, &list);
    return rc;
}

/* What is served as history is not what was published. */
static int tell_history_changed(struct scheduler *d)
{
    const char *fault = history_check_fault(d->history_check);
    struct fab_findings list = {0};
    int rc = fault != NULL ? fab_findings_add(&list, FAB_CHECK_HISTORY_CHANGED, fab_about_text("history"),
                                              "store", fault)
                           : PMIXFAB_OK;
    findings_replace(d->findings, FAB_CHECK_HISTORY_CHANGED, &list);
    return rc;
}

/* A PMIx server was lost lately. */
static int tell_pmix(struct scheduler *d)
{
    struct fab_findings list = {0};
    struct fab_about about = fab_about_text("pmix");
    struct pmix_server_status pmix;
    char what[420], last[32];
    int rc = PMIXFAB_OK;
    pmix_server_status(d->pmix, &pmix);
    about.state = pmix.replaced;
    time_text(pmix.last, last);
    pmix.why += strncmp(pmix.why, "pmix: ", 6) == 0 ? 6 : 0;
    snprintf(what, sizeof(what), "%s at %s; %u since the start", pmix.why, last, pmix.replaced);
    if (pmix_told_for(&pmix) > 0)
        rc = fab_findings_add(&list, FAB_CHECK_PMIX_REPLACED, about, "pmix", what);
    findings_replace(d->findings, FAB_CHECK_PMIX_REPLACED, &list);
    return rc;
}

/* A file that stands for the fabric, and nobody writes any more. */
static int tell_captures(struct scheduler *d)
{
    char *specs[CONFIG_MAX_LIST];
    struct fab_findings list = {0};
    struct stat status;
    int rc = PMIXFAB_OK;
    const unsigned n = d->config->capture_seconds == 0 ? 0 : sweep_probes(d->config, specs);
    for (unsigned i = 0; rc == PMIXFAB_OK && i < n; i++) {
        const char *path = NULL;
        const struct probe *probe = probe_find(specs[i], &path);
        const int64_t age = probe != NULL && probe->file && path != NULL && stat(path, &status) == 0
                                ? clock_now(CLOCK_REALTIME) / SECOND - status.st_mtim.tv_sec
                                : 0;
        char what[80], written[32];
        if (age <= (int64_t)d->config->capture_seconds)
            continue;
        time_text(status.st_mtim.tv_sec * SECOND, written);
        snprintf(what, sizeof(what), "it was written at %s", written);
        rc = fab_findings_add(&list, FAB_CHECK_OLD_CAPTURE, fab_about_text(path), path, what);
    }
    findings_replace(d->findings, FAB_CHECK_OLD_CAPTURE, &list);
    return rc;
}

/* Whoever watches the metrics sees nothing new, and cannot tell. */
static int tell_metrics(struct scheduler *d)
{
    struct fab_findings list = {0};
    int rc = PMIXFAB_OK;
    for (unsigned i = 0; rc == PMIXFAB_OK && i < 2; i++) {
        const char *where, *fault = metrics_fault(d->metrics, i, &where);
        if (fault != NULL)
            rc = fab_findings_add(&list, FAB_CHECK_METRICS, fab_about_text(i == 0 ? "file" : "listen"), where,
                                  fault);
    }
    findings_replace(d->findings, FAB_CHECK_METRICS, &list);
    return rc;
}

int scheduler_look(struct scheduler *d, struct fab_err *err)
{
    int (*const tells[])(struct scheduler * d) = {
        tell_stale, tell_no_cable, tell_partial,      tell_suppressed,      tell_managers, tell_counters,
        tell_names, tell_captures, tell_history_gone, tell_history_changed, tell_pmix,     tell_metrics};
    const struct fab_findings *served;
    uint32_t n;
    const struct node_report *const *reports = host_reports_all(d->nodes, &n);
    int rc = publisher_check(d->publisher, reports, n, &served, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (size_t i = 0; rc == PMIXFAB_OK && i < sizeof(tells) / sizeof(tells[0]); i++)
        rc = tells[i](d);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "check: out of memory");
    rc = findings_look(d->findings, served, clock_now(CLOCK_REALTIME), hooks_wanted(d->hooks), err);
    if (findings_changed(d->findings))
        metrics_write(d->metrics);
    return rc;
}

/* ---- when ------------------------------------------------------------------------------------------ */

#define LOOK_AT_AGE (60 * SECOND) /* the age of files */

/* Time goes on without us. */
static void look_later(struct scheduler *d)
{
    int64_t wait = findings_wait(d->findings, clock_now(CLOCK_REALTIME));
    struct pmix_server_status pmix;
    pmix_server_status(d->pmix, &pmix);
    const int64_t told = pmix_told_for(&pmix);
    if (told > 0 && (wait < 0 || wait > told))
        wait = told;
    if (d->config->capture_seconds > 0 && (wait < 0 || wait > LOOK_AT_AGE))
        wait = LOOK_AT_AGE;
    d->look_soon = false;
    if (wait < 0)
        timer_cancel(d->look);
    else
        timer_after(d->look, (wait < SECOND ? SECOND : wait) / 1000); /* by the clock, which may jump */
}

json_t *scheduler_look_now(struct scheduler *d)
{
    struct fab_err err = {""};
    if (d->look == NULL)
        return NULL;
    if (scheduler_look(d, &err) != PMIXFAB_OK)
        log_error("%s", err.text);
    look_later(d);
    return findings_news(d->findings);
}

static void on_look(void *arg)
{
    struct scheduler *d = arg;
    d->look_soon = false;
    if (d->publication != NULL || (d->round && d->sweep == NULL)) {
        scheduler_look_soon(d);
        return;
    }
    hooks_tell(d->hooks, &(struct hook_news){.generation = d->status.generation,
                                             .published = d->status.published,
                                             .findings = scheduler_look_now(d)});
}

uint32_t scheduler_mend(struct scheduler *d)
{
    const uint32_t mended =
        d->publication == NULL ? publisher_mend(d->publisher) : 0; /* else its end does the same */
    return mended;
}

/* What it mapped may have been cut: the next one finds it whole. */
static void look_at_pmix(void *scheduler)
{
    scheduler_mend(scheduler);
    scheduler_look_soon(scheduler);
}

int scheduler_look_start(struct scheduler *d, struct fab_err *err)
{
    pmix_server_on_replaced(d->pmix, look_at_pmix, d);
    d->look = timer_new(d->base, on_look, d);
    return d->look == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory") : PMIXFAB_OK;
}
