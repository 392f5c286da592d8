/* round.c - rounds: a sweep of the fabric and a scan of this host, side by side. */
#include <stdio.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/process/process.h"
#include "fabricd/serving/rundir.h"

#define DIRTY_RETRY_MS 5000 /* after a sweep of what was dirty that failed */

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

/* ---- the end ------------------------------------------------------------------------------------- */

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
        /* What was dirty is not lost: soon it is swept with everything else. */
        timer_after(d->timer, wait == 0 || wait > DIRTY_RETRY_MS ? DIRTY_RETRY_MS : wait);
        return;
    }
    if (!d->pending_round && (d->config->interval == 0 || timer_pending(d->timer)))
        return; /* a round of what was dirty does not put off the next one of everything */
    timer_after(d->timer, wait);
}

/* The text goes to people and into JSON: what is not printable ASCII does not. */
void round_set_reason(struct scheduler *d, const char *text)
{
    snprintf(d->status.stale_reason, sizeof(d->status.stale_reason), "%s", text);
    for (char *p = d->status.stale_reason; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = '?';
}

static void take_code(struct scheduler *d, int code, const char *message)
{
    d->status.code = code;
    d->status.partial = code == PMIXFAB_ERR_PARTIAL || (code == PMIXFAB_OK && d->partial);
    if (code == PMIXFAB_OK) {
        if (d->status.stale)
            log_info("sweep: the fabric answers again");
        d->status.stale = false;
        d->status.stale_since = 0;
    } else {
        round_set_reason(d, message);
        log_error("%s", message);
        if (!d->status.stale)
            d->status.stale_since = clock_now(CLOCK_REALTIME);
        d->status.stale = true;
    }
    struct served *served = publisher_served(d->publisher);
    if (served_is_stale(served) != d->status.stale) {
        rundir_set_stale(d->config->rundir, served, d->status.stale);
        channel_server_tell(d->channel);
    }
}

/* ---- how it goes ---------------------------------------------------------------------------------- */

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

/* Without memory for it nobody is told. */
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

static void progress_end(struct scheduler *d)
{
    if (d->progress != NULL)
        timer_cancel(d->progress);
}

void round_end(struct scheduler *d, int code, const char *message, bool changed)
{
    d->round = false;
    d->ends_round = false;
    progress_end(d);
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

/* ---- the answers --------------------------------------------------------------------------------- */

static void round_on_swept(struct sweep_result *result, void *arg)
{
    struct scheduler *d = arg;
    d->sweep = NULL;
    d->swept = *result;
    fab_inventory_init(&result->inv); /* taken over */
    d->status.last_sweep = clock_now(CLOCK_REALTIME);
    d->status.sweep_ms = result->milliseconds;
    if (result->code == PMIXFAB_OK && (!d->part || result->whole))
        d->whole_ms = result->milliseconds;
    if (d->part && result->whole && d->why_full.text[0] == '\0')
        d->why_full = result->why;
    monitoring_swept(d, result);
    d->swept.bytes = NULL; /* not ours */
    scheduler_go_on(d);
}

/* Without a sweep the round is as good as its scan: where no probe could say anything, it failed. */
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
    scheduler_go_on(d);
}

bool round_answered(const struct scheduler *d)
{
    bool waits = !d->scan_failed || d->config->once || !sweep_wanted(d->config);
    return d->round && d->sweep == NULL && (d->host_scan == NULL || !waits);
}

/* ---- the beginning ------------------------------------------------------------------------------- */

/* Somebody removed the run directory: make it anew, so that callers find us again. Its snapshots follow when
 * the sweep is done. */
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
        log_warning("run directory: %s was removed, made anew", d->config->rundir);
    else
        log_error("run directory: it was removed, and cannot be made anew: %s", err.text);
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

static void start_sweep(struct scheduler *d)
{
    struct partial_sweep parts;
    const bool part = d->part && monitoring_scope(d, &parts, &d->why_full);
    if (sweep_start(d->base, d->config, part ? &parts : NULL, round_on_swept, d, &d->sweep, &d->swept.err) !=
        PMIXFAB_OK)
        d->swept.code = PMIXFAB_ERR_IO;
    monitoring_covered(d);
}

void round_start(struct scheduler *d, bool part)
{
    round_repair_rundir(d);
    d->part = part;
    d->why_full.text[0] = '\0';
    if (d->scope_asked && !part)
        snprintf(d->why_full.text, sizeof(d->why_full.text), "that was due");
    d->scope_asked = false;
    d->accept_partial = !part && d->pending_accept;
    if (!part)
        d->pending_round = d->pending_accept = false;
    d->number++;
    d->round = true;
    progress_begin(d);
    memset(&d->swept, 0, sizeof(d->swept));
    fab_inventory_init(&d->swept.inv);
    if (sweep_wanted(d->config))
        start_sweep(d);
    if (!part)
        round_start_host_scan(d);
    scheduler_go_on(d); /* neither may have been started */
}

void round_cancel(struct scheduler *d)
{
    sweep_cancel(d->sweep);
    host_scan_cancel(d->host_scan);
    timer_free(d->progress);
    d->progress = NULL;
    fab_inventory_destroy(&d->swept.inv);
}
