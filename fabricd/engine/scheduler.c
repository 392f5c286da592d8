/* scheduler.c - what is next, and what is known of it. */
#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/serving/rundir.h"

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
           : monitoring_is_due(d)                  ? "a sweep of what light sweeps found"
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

void scheduler_take_over(struct scheduler *d)
{
    struct served *served = publisher_served(d->publisher);
    struct served_set *set = served_get(served);
    const char *why = publisher_stale_why(d->publisher);
    d->status.generation = set->generation;
    d->status.published = set->published;
    served_set_put(set);
    d->status.stale = why[0] != '\0';
    rundir_set_stale(d->config->rundir, served, d->status.stale);
    if (!d->status.stale)
        return;
    d->status.stale_since = clock_now(CLOCK_REALTIME);
    round_set_reason(d, why);
}

void scheduler_tell_manager(const struct scheduler *d)
{
    notify_status("serving generation %llu%s%s", (unsigned long long)d->status.generation,
                  d->status.stale ? ", stale: " : "", d->status.stale ? d->status.stale_reason : "");
}

uint32_t scheduler_forget(struct scheduler *d, const char *host, bool *there)
{
    uint32_t n = publisher_forget(d->publisher, host, there);
    if (n > 0) {
        d->reports_due = true;
        scheduler_go_on(d);
    }
    return n;
}

/* ---- what is next -------------------------------------------------------------------------------- */

static void scheduler_on_decide(void *arg)
{
    struct scheduler *d = arg;
    if (d->publication != NULL)
        return;
    if (round_answered(d))
        publish_round(d);
    if (d->publication == NULL && d->reports_due && publish_can_without_sweep(d->publisher))
        publish_reports(d);
    round_timers_plan(d);
    scheduler_tell_manager(d);
}

void scheduler_on_reports(void *arg)
{
    struct scheduler *d = arg;
    d->reports_due = true;
    scheduler_go_on(d);
}

/* ---- events of the loop ------------------------------------------------------------------------- */

static void scheduler_on_timeout(void *arg)
{
    struct scheduler *d = arg;
    if (d->round) /* of what was dirty: then everything */
        d->pending_round = true;
    else
        round_start(d, false);
}

/* It is time to sweep what is dirty. What waits for a round, or is about to be swept with everything else,
 * need not be started. */
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
    d->trim = timer_new(d->base, publish_on_trim, d);
    return d->timer == NULL || d->decide == NULL || d->trim == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

int scheduler_monitor(struct scheduler *d, struct fab_err *err)
{
    int rc = monitoring_start(d, scheduler_on_dirty_due, err);
    if (rc == PMIXFAB_OK)
        rc = counters_begin(d, err);
    if (rc == PMIXFAB_OK && all_counters_begin(d) != PMIXFAB_OK)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (rc == PMIXFAB_OK)
        rc = scheduler_look_start(d, err);
    return rc == PMIXFAB_OK ? round_timers_start(d, err) : rc;
}

void scheduler_free_events(struct scheduler *d)
{
    struct timer *timers[] = {d->timer, d->decide, d->trim, d->look};
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        timer_free(timers[i]);
}

/* ---- settings that change ------------------------------------------------------------------------ */

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
    round_timers_plan(d);
    if (config_reload_has(reload, "check", "counters_round"))
        all_counters_again(d);
    /* A round of everything waits anew when it ends; what was asked for waits for nothing. */
    if (!config_reload_has(reload, "fabricd", "interval") || d->pending_round || (d->round && !d->part))
        return;
    timer_cancel(d->timer);
    if (d->config->interval > 0)
        timer_after(d->timer, d->config->interval * 1000ll);
}
