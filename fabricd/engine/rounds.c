/*
 * rounds.c - decide the next step of the scheduler:
 * - rounds: a sweep of the fabric and a scan of this host, in parallel
 * - publications with their events
 * - changes by time without a sweep
 * - changed settings.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/publisher.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/process/process.h"
#include "fabricd/serving/rundir.h"

#define SECOND         1000000ll
#define DIRTY_RETRY_MS 5000 /* after a failed sweep of dirty switches */

/* Schedule a decision on the loop, after an activity has ended or become due. */
static void decide_soon(struct scheduler *d)
{
    timer_fire(d->decide);
}

/* ---- status ---------------------------------------------------------------------------------------- */

void scheduler_status(const struct scheduler *d, struct scheduler_status *out)
{
    *out = d->status;
    out->sweeping = d->round;
    out->light_sweeps = d->monitor != NULL;
    out->monitor = (struct monitor_status){0};
    if (out->light_sweeps)
        monitor_status(d->monitor, &out->monitor);
    out->dirty_since = monitoring_since(d);
    host_reports_all(d->nodes, &out->nodes);
    publisher_waits(d->publisher, &out->waits);
}

const char *scheduler_busy(const struct scheduler *d)
{
    const bool reports = d->reports_due && publish_can_without_sweep(d->publisher);
    return d->round || d->pending_round            ? "a sweep"
           : d->publication != NULL                ? "a publication"
           : monitoring_is_due(d)                  ? "a sweep of dirty switches"
           : reports || host_reports_due(d->nodes) ? "the publication of reports"
           : d->host_scan != NULL                  ? "a host scan"
           : d->counter_jobs != NULL               ? "a reading of counters"
           : hooks_busy(d->hooks)                  ? "a hook"
           : exports_busy(d->exports)              ? "an export"
                                                   : NULL;
}

uint64_t scheduler_announced(const struct scheduler *d)
{
    const bool announcing = d->publication != NULL && d->publication->generation == d->status.generation;
    return announcing ? d->status.generation - 1 : d->status.generation;
}

/* Store the reason for users and JSON, with only printable ASCII characters. */
static void set_stale_reason(struct scheduler *d, const char *text)
{
    snprintf(d->status.stale_reason, sizeof(d->status.stale_reason), "%s", text);
    for (char *p = d->status.stale_reason; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = '?';
}

/* why NULL: the served state is not known to be old. */
static void mark_stale(struct scheduler *d, const char *why)
{
    const bool was = d->status.stale;
    d->status.stale = why != NULL;
    if (why != NULL)
        set_stale_reason(d, why);
    if (why == NULL || !was)
        d->status.stale_since = why == NULL ? 0 : clock_now(CLOCK_REALTIME);
}

void scheduler_take_over(struct scheduler *d)
{
    struct served *served = publisher_served(d->publisher);
    struct served_set *set = served_get(served);
    const char *why = d->publisher->stale_why;
    d->status.generation = set->generation;
    d->status.published = set->published;
    served_set_put(set);
    mark_stale(d, why[0] != '\0' ? why : NULL);
    rundir_set_stale(d->config->rundir, served, d->status.stale);
}

/* While sweeps fail, or are partial, missing devices are not known. */
static bool may_retire(const struct scheduler *d)
{
    return d->status.code == PMIXFAB_OK && !d->status.stale && !d->status.partial && !d->round;
}

void scheduler_tell_service(const struct scheduler *d)
{
    notify_status("serving generation %llu%s%s", (unsigned long long)d->status.generation,
                  d->status.stale ? ", stale: " : "", d->status.stale ? d->status.stale_reason : "");
}

/* ---- the end of a round ---------------------------------------------------------------------------- */

static void round_wait_for_next(struct scheduler *d)
{
    int64_t wait = d->config->interval * 1000ll;
    if (d->config->once) {
        event_base_loopbreak(d->base);
        return;
    }
    if (d->pending_round)
        wait = 0;
    monitoring_round_ended(d);
    if (d->part && d->status.code != PMIXFAB_OK && !d->pending_round) {
        /* The dirty switches are not lost: the next sweep, of everything, comes soon. */
        timer_after(d->timer, wait == 0 || wait > DIRTY_RETRY_MS ? DIRTY_RETRY_MS : wait);
        return;
    }
    if (!d->pending_round && (d->config->interval == 0 || timer_pending(d->timer)))
        return; /* a round of dirty switches does not delay the next full one */
    timer_after(d->timer, wait);
}

static void take_code(struct scheduler *d, int code, const char *message)
{
    d->status.code = code;
    d->status.partial =
        code == PMIXFAB_ERR_PARTIAL || (code == PMIXFAB_OK && d->status.findings.dangling > 0);
    if (code != PMIXFAB_OK)
        log_error("%s", message);
    else if (d->status.stale)
        log_info("sweep: the fabric answers again");
    mark_stale(d, code != PMIXFAB_OK ? message : NULL);
    struct served *served = publisher_served(d->publisher);
    if (served_is_stale(served) != d->status.stale) {
        rundir_set_stale(d->config->rundir, served, d->status.stale);
        channel_server_tell(d->channel);
    }
}

/* ---- progress -------------------------------------------------------------------------------------- */

void scheduler_progress_text(const struct scheduler *d, int64_t since, char text[SCHEDULER_PROGRESS_TEXT])
{
    const double seconds = (double)(clock_now(CLOCK_REALTIME) - since) / 1e6;
    int n = snprintf(text, SCHEDULER_PROGRESS_TEXT, "sweeping for %.0f s", seconds > 0 ? seconds : 0);
    if (d->whole_ms > 0 && n < SCHEDULER_PROGRESS_TEXT)
        snprintf(text + n, (size_t)(SCHEDULER_PROGRESS_TEXT - n), "; the last sweep took %.1f s",
                 d->whole_ms / 1e3);
}

static void round_on_progress(void *arg)
{
    struct scheduler *d = arg;
    char text[SCHEDULER_PROGRESS_TEXT];
    scheduler_progress_text(d, d->round_began, text);
    timer_after(d->progress, SCHEDULER_PROGRESS_MS);
    control_progress(d->control, text);
}

/* Without memory there are no progress lines. */
static void progress_begin(struct scheduler *d)
{
    d->round_began = clock_now(CLOCK_REALTIME);
    if (d->control == NULL)
        return;
    if (d->progress == NULL)
        d->progress = timer_new(d->base, round_on_progress, d);
    if (d->progress != NULL)
        timer_after(d->progress, SCHEDULER_FIRST_PROGRESS_MS);
}

static void round_end(struct scheduler *d, int code, const char *message, bool changed)
{
    d->round = false;
    d->ends_round = false;
    timer_cancel(d->progress);
    fab_inventory_destroy(&d->swept.inv);
    take_code(d, code, message);
    count(d->counts, d->status.partial    ? COUNT_SWEEPS_PARTIAL
                     : code == PMIXFAB_OK ? COUNT_SWEEPS_OK
                                          : COUNT_SWEEPS_FAILED);
    metrics_write(d->metrics);
    if (d->control != NULL) {
        struct publisher_waits waits;
        publisher_waits(d->publisher, &waits);
        const struct swept swept = {.number = d->number,
                                    .code = code,
                                    .message = d->status.stale_reason,
                                    .generation = d->status.generation,
                                    .changed = changed,
                                    .partial = d->status.partial,
                                    .part = d->part && !d->swept.whole,
                                    .why_full = d->why_full.text,
                                    .suppressed = waits.suppressed,
                                    .suppressed_switches = waits.suppressed_switches};
        control_swept(d->control, &swept);
    }
    scheduler_look_soon(d);
    round_wait_for_next(d);
}

/* ---- results of sweep and scan --------------------------------------------------------------------- */

static void round_on_swept(struct sweep_result *result, void *arg)
{
    struct scheduler *d = arg;
    d->sweep = NULL;
    d->swept = *result;
    fab_inventory_init(&result->inv); /* ownership moved */
    d->status.last_sweep = clock_now(CLOCK_REALTIME);
    d->status.sweep_ms = result->milliseconds;
    if (result->code == PMIXFAB_OK && (!d->part || result->whole))
        d->whole_ms = result->milliseconds;
    if (d->part && result->whole && d->why_full.text[0] == '\0')
        d->why_full = result->why;
    monitoring_swept(d, result);
    d->swept.bytes = NULL; /* ownership moved */
    decide_soon(d);
}

/* Without a sweep the scan determines the round: it fails if no probe had a result. */
static void round_on_host_scan(struct host_scan_result *result, void *arg)
{
    struct scheduler *d = arg;
    struct fab_err err = {""};
    d->host_scan = NULL;
    d->scan_failed = result->failed > 0;
    if (!sweep_wanted(d->config)) {
        d->swept.code = result->failed == result->asked ? PMIXFAB_ERR_IO : PMIXFAB_OK;
        d->swept.err = result->err;
        d->swept.milliseconds = result->milliseconds;
        d->status.last_sweep = clock_now(CLOCK_REALTIME);
        d->status.sweep_ms = result->milliseconds;
    }
    const uint32_t failed = result->failed_sources;
    if (host_reports_own(d->nodes, &result->report, &err))
        d->reports_due = true;
    else if (err.text[0] != '\0')
        log_error("host scan: %s", err.text);
    host_reports_failed(d->nodes, d->config->host, failed);
    decide_soon(d);
}

/* ---- start of a round ------------------------------------------------------------------------------ */

/* Make a removed run directory again, so that callers find the daemon. Its snapshots follow after the sweep.
 */
bool round_repair_rundir(struct scheduler *d)
{
    struct fab_err err = {""};
    if (d->control == NULL || !process_lost(d->config, d->lock))
        return false;
    process_unlock(d->lock);
    int rc = process_lock(d->config, &d->lock, &err);
    if (rc == PMIXFAB_OK)
        rc = control_listen(d->control, &err);
    if (rc == PMIXFAB_OK)
        pmix_server_repair(d->pmix);
    if (rc == PMIXFAB_OK)
        log_warning("run directory: %s was removed: created again", d->config->rundir);
    else
        log_error("run directory: it was removed and cannot be created again: %s", err.text);
    return true;
}

static void round_start_host_scan(struct scheduler *d)
{
    struct fab_err err = {""};
    const struct node_report *before = host_reports_find(d->nodes, d->config->host);
    if (!host_scan_wanted(d->config) || d->host_scan != NULL)
        return;
    int rc = host_scan_start(d->base, d->config, before == NULL ? NULL : &before->report, 0,
                             round_on_host_scan, d, &d->host_scan, &err);
    if (rc == PMIXFAB_OK)
        return;
    log_error("%s", err.text);
    if (!sweep_wanted(d->config)) {
        d->swept.code = rc;
        d->swept.err = err;
    }
}

static void round_start(struct scheduler *d, bool part)
{
    round_repair_rundir(d);
    d->part = part;
    d->why_full.text[0] = '\0';
    if (d->scope_asked && !part)
        snprintf(d->why_full.text, sizeof(d->why_full.text), "a full sweep was due");
    d->scope_asked = false;
    d->accept_partial = !part && d->pending_accept;
    if (!part)
        d->pending_round = d->pending_accept = false;
    d->number++;
    d->round = true;
    progress_begin(d);
    memset(&d->swept, 0, sizeof(d->swept));
    fab_inventory_init(&d->swept.inv);
    if (sweep_wanted(d->config)) {
        struct switch_sweep parts;
        const bool scoped = part && monitoring_scope(d, &parts, &d->why_full);
        if (sweep_start(d->base, d->config, scoped ? &parts : NULL, round_on_swept, d, &d->sweep,
                        &d->swept.err) != PMIXFAB_OK)
            d->swept.code = PMIXFAB_ERR_IO;
        monitoring_covered(d);
    }
    if (!part)
        round_start_host_scan(d);
    decide_soon(d); /* perhaps nothing was started */
}

/* ---- publishing ------------------------------------------------------------------------------------ */

/* Keep freed memory from a publication of reports until the trim a second later, since new pages cost more
 * than the work in them. */
static void publish_retain_memory(bool keep)
{
    mallopt(M_MMAP_THRESHOLD, keep ? 32 << 20 : 4 << 20);
    mallopt(M_TRIM_THRESHOLD, keep ? 64 << 20 : 8 << 20);
}

/* Return free memory to the system; otherwise a sweep's peak stays resident. Not at once: the events, the
 * next check and a following publication reuse it. */
static void on_trim(void *arg)
{
    (void)arg;
    publish_retain_memory(false);
    malloc_trim(0);
}

static void round_send_events(struct scheduler *d, bool pending, void (*next)(void *scheduler))
{
    const struct publication *p = d->publication;
    if (d->control != NULL)
        for (uint32_t i = 0; i < p->n; i++)
            control_event(d->control, pending, &p->planes[i], p->generation);
    if (pending)
        next(d);
    else
        pmix_server_wait(d->pmix, p->generation, next, d);
}

static void after_updated(void *arg)
{
    struct scheduler *d = arg;
    struct publication *p = d->publication;
    if (d->control != NULL)
        control_published(d->control, p->generation);
    trim_soon(d->trimmer);
    counters_changed(d, &p->changed);
    d->publication = NULL;
    if (d->ends_round)
        round_end(d, PMIXFAB_OK, "", true);
    else
        metrics_write(d->metrics);
    scheduler_look_soon(d);
    if (hooks_wanted(d->hooks))
        hooks_tell(d->hooks, &(struct hook_news){.generation = p->generation,
                                                 .published = d->status.published,
                                                 .changed = true,
                                                 .planes = p->planes,
                                                 .n = p->n,
                                                 .findings = scheduler_look_now(d)});
    exports_tell(d->exports, p->generation);
    publication_free(p);
    decide_soon(d);
}

/* Pending was announced: put the new state in place. */
static void after_pending(void *arg)
{
    struct scheduler *d = arg;
    d->status.generation = d->publication->generation;
    d->status.published = d->publication->set->published;
    publish_finish(d->publisher, d->publication);
    channel_server_tell(d->channel);
    d->status.publish_s = (double)(clock_now(CLOCK_MONOTONIC) - d->publish_began) / 1e6;
    count(d->counts, COUNT_PUBLISHED);
    round_send_events(d, false, after_updated);
}

/* The slow part, up to the commit. */
struct preparing {
    struct scheduler *scheduler;
    const struct publish_request *input;
    struct sweep_findings *report;
    struct fab_err *err;
    int rc;
};

static void round_prepare(void *arg)
{
    struct preparing *p = arg;
    p->rc = publish_prepare(p->scheduler->publisher, p->input, &p->scheduler->publication, p->report, p->err);
}

/*
 * Prepare a publication up to the commit, and continue with d->publication. inv NULL: use the fabric of the
 * last sweep.
 */
static int round_publish(struct scheduler *d, struct fab_inventory *inv, struct sweep_findings *report,
                         struct fab_err *err)
{
    struct publish_request input = {.inv = inv,
                                    .accept_partial = d->accept_partial,
                                    .retire = inv == NULL && may_retire(d),
                                    .unmanaged = managers_any_gone(d)};
    if (inv != NULL) {
        input.swept = d->status.last_sweep;
        input.seen = monitoring_covered_since(d);
    }
    input.reports = host_reports_all(d->nodes, &input.n_reports);
    d->publish_began = clock_now(CLOCK_MONOTONIC);
    struct preparing preparing = {d, &input, report, err, PMIXFAB_OK};
    scheduler_beside(d, inv != NULL ? inv->n_nodes : 0, round_prepare, &preparing);
    const int rc = preparing.rc;
    if (rc != PMIXFAB_OK)
        return err->text[0] != '\0' ? rc : fab_fail(err, rc, "publish: %s", pmixfab_strerror(rc));
    d->reports_due = false;
    host_reports_published(d->nodes);
    return rc;
}

/* Log results of a sweep when they change, not at each sweep. */
static void take_findings(struct scheduler *d, const struct sweep_findings *report)
{
    const struct sweep_findings before = d->status.findings;
    d->status.findings = *report;
    if (report->nowhere > 0 && before.nowhere != report->nowhere)
        log_warning("sweep: %u port%s up and lead%s nowhere, or did not answer", report->nowhere,
                    report->nowhere == 1 ? " is" : "s are", report->nowhere == 1 ? "s" : "");
    if (report->inactive > 0 && before.inactive != report->inactive)
        log_warning("sweep: %u cabled port%s not active: check that a subnet manager runs", report->inactive,
                    report->inactive == 1 ? " is" : "s are");
}

static void publish_round(struct scheduler *d)
{
    struct fab_err err = d->swept.err;
    struct sweep_findings report = {0};
    const bool swept = sweep_wanted(d->config);
    int rc = d->swept.code;
    if (rc == PMIXFAB_OK) {
        rc = round_publish(d, swept ? &d->swept.inv : NULL, &report, &err);
        if (swept)
            take_findings(d, &report);
    }
    timer_after(d->trim, 1000);
    log_debug("sweep %llu: %.1f ms, %s", (unsigned long long)d->number, d->swept.milliseconds,
              pmixfab_strerror(rc));
    d->ends_round = d->publication != NULL;
    if (d->ends_round)
        round_send_events(d, true, after_pending);
    else
        round_end(d, rc, err.text, false);
}

static void publish_reports(struct scheduler *d)
{
    struct fab_err err = {""};
    publish_retain_memory(true);
    d->reports_due = false; /* a failed publication is repeated at the next occasion, not at once */
    int rc = round_publish(d, NULL, NULL, &err);
    timer_after(d->trim, 1000);
    if (rc != PMIXFAB_OK)
        log_error("reports: %s", err.text);
    else if (d->publication != NULL)
        round_send_events(d, true, after_pending);
}

/* ---- requests -------------------------------------------------------------------------------------- */

uint32_t scheduler_forget(struct scheduler *d, const char *host, bool *there)
{
    uint32_t n = publisher_forget(d->publisher, host, there);
    if (n > 0) {
        d->reports_due = true;
        decide_soon(d);
    }
    return n;
}

uint64_t scheduler_refresh(struct scheduler *d, const char *sw, bool accept_partial)
{
    if (sw != NULL) {
        monitoring_ask(d, sw);
    } else {
        d->pending_round = true;
        d->pending_accept |= accept_partial;
        if (!d->round)
            timer_after(d->timer, 0);
    }
    return d->number + 1;
}

/* ---- changes by time ------------------------------------------------------------------------------- */

static void plan_timers(struct scheduler *d)
{
    struct publisher_waits waits;
    int64_t wait = -1;
    if (d->retain_timer == NULL || d->config->once)
        return;
    publisher_waits(d->publisher, &waits);
    if (waits.retire >= 0 && may_retire(d))
        wait = waits.retire < SECOND ? SECOND : waits.retire; /* do not retry at once */
    if (waits.release >= 0 && (wait < 0 || waits.release < wait))
        wait = waits.release;
    if (wait < 0) {
        timer_cancel(d->retain_timer);
        return;
    }
    timer_after_us(d->retain_timer, wait);
}

static void on_retain_timer(void *arg)
{
    struct scheduler *d = arg;
    if (publisher_release(d->publisher))
        scheduler_refresh(d, NULL, false); /* the sweep may see devices that are due for retirement */
    else
        d->reports_due = true; /* a retirement is published without a sweep */
    decide_soon(d);
}

/* ---- the decision ---------------------------------------------------------------------------------- */

static void scheduler_on_decide(void *arg)
{
    struct scheduler *d = arg;
    if (d->publication != NULL)
        return;
    const bool waits = !d->scan_failed || d->config->once || !sweep_wanted(d->config); /* for the host scan */
    if (d->round && d->sweep == NULL && (d->host_scan == NULL || !waits))
        publish_round(d);
    if (d->publication == NULL && d->reports_due && publish_can_without_sweep(d->publisher))
        publish_reports(d);
    plan_timers(d);
    scheduler_tell_service(d);
}

void scheduler_on_reports(void *arg)
{
    struct scheduler *d = arg;
    d->reports_due = true;
    decide_soon(d);
}

/* ---- events of the loop ---------------------------------------------------------------------------- */

static void scheduler_on_timeout(void *arg)
{
    struct scheduler *d = arg;
    if (d->round) /* of dirty switches: then sweep everything */
        d->pending_round = true;
    else
        round_start(d, false);
}

/* Sweep the dirty switches, unless a round runs or everything is about to be swept. */
static void scheduler_on_dirty_due(void *arg)
{
    struct scheduler *d = arg;
    if (!d->round && !d->pending_round && monitoring_is_due(d))
        round_start(d, true);
}

int scheduler_new_events(struct scheduler *d)
{
    d->timer = timer_new(d->base, scheduler_on_timeout, d);
    d->decide = timer_new(d->base, scheduler_on_decide, d);
    d->trim = timer_new(d->base, on_trim, d);
    return d->timer == NULL || d->decide == NULL || d->trim == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

int scheduler_monitor(struct scheduler *d, struct fab_err *err)
{
    int rc = monitoring_start(d, scheduler_on_dirty_due, err) ?: counters_begin(d, err)
             ?: scheduler_look_start(d, err);
    if (rc != PMIXFAB_OK)
        return rc;
    d->retain_timer = timer_new(d->base, on_retain_timer, d);
    return d->retain_timer == NULL ? no_memory(err) : PMIXFAB_OK;
}

void scheduler_free_events(struct scheduler *d)
{
    struct timer *timers[] = {d->retain_timer, d->progress, d->timer, d->decide, d->trim, d->look};
    sweep_cancel(d->sweep);
    host_scan_cancel(d->host_scan);
    fab_inventory_destroy(&d->swept.inv);
    counters_end(d);
    monitoring_stop(d);
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        timer_free(timers[i]);
}

/* ---- changed settings ------------------------------------------------------------------------------ */

void scheduler_reconfigured(struct scheduler *d, const struct config_reload *reload)
{
    static const char *const of_light_sweeps[][2] = {{"changes", "light_sweep"},
                                                     {"ibnetdisc", "max_smps"},
                                                     {"ibnetdisc", "timeout_ms"},
                                                     {"ibnetdisc", "retries"},
                                                     {"sweep.env", NULL}};
    bool again = false;
    for (size_t i = 0; i < sizeof(of_light_sweeps) / sizeof(of_light_sweeps[0]); i++)
        again |= config_reload_has(reload, of_light_sweeps[i][0], of_light_sweeps[i][1]);
    if (again)
        monitoring_again(d);
    d->debounce.quiet = (int64_t)d->config->debounce * 1000;
    d->debounce.debounce_max = (int64_t)d->config->debounce_max * 1000;
    plan_timers(d);
    if (config_reload_has(reload, "check", "counters_round"))
        counters_again(d);
    /* The interval restarts; a full round restarts it at its end, and a requested round does not wait. */
    if (!config_reload_has(reload, "fabricd", "interval") || d->pending_round || (d->round && !d->part))
        return;
    timer_cancel(d->timer);
    if (d->config->interval > 0)
        timer_after(d->timer, d->config->interval * 1000ll);
}
