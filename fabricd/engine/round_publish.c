/* round_publish.c - publishing, with the events around it: for a round, or for reports alone. */
#include <malloc.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/pmix/pmix_server.h"

/* Memory that is freed stays for what comes next, since pages that are new cost more than what is done in
 * them: from a publication of reports until the trim a second later. */
static void publish_retain_memory(bool keep)
{
    mallopt(M_MMAP_THRESHOLD, keep ? 32 << 20 : 4 << 20);
    mallopt(M_TRIM_THRESHOLD, keep ? 64 << 20 : 8 << 20);
}

/* Else a sweep's peak would stay resident for years. Not at once: the events, what is looked for then, and a
 * publication that follows need it again, and are quicker with it. */
void publish_on_trim(void *arg)
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
    scheduler_go_on(d);
}

/* Who is connected was told that a change comes: put the new content in place. */
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

static void round_announce(struct scheduler *d, struct publication *publication, bool ends_round)
{
    d->publication = publication;
    d->ends_round = ends_round;
    round_send_events(d, true, after_pending);
}

/* Up to the commit. inv NULL: with the fabric as it was swept last. */
static int round_prepare(struct scheduler *d, struct fab_inventory *inv, struct publication **publication,
                         struct sweep_findings *report, struct fab_err *err)
{
    struct publish_request input = {.inv = inv,
                                    .accept_partial = d->accept_partial,
                                    .retire = inv == NULL && round_timers_may_retire(d),
                                    .unmanaged = managers_any_gone(d)};
    if (inv != NULL) {
        input.swept = d->status.last_sweep;
        input.seen = monitoring_covered_since(d);
    }
    input.reports = host_reports_all(d->nodes, &input.n_reports);
    d->publish_began = clock_now(CLOCK_MONOTONIC);
    int rc = publish_prepare(d->publisher, &input, publication, report, err);
    if (rc == PMIXFAB_OK) {
        d->reports_due = false;
        host_reports_published(d->nodes);
    } else if (err->text[0] == '\0') {
        fab_fail(err, rc, "publish: %s", pmixfab_strerror(rc));
    }
    return rc;
}

/* What a sweep found out is said when it changes, not at each sweep. */
static void take_findings(struct scheduler *d, const struct sweep_findings *report)
{
    d->partial = report->dangling > 0;
    d->status.findings = *report;
    if (report->nowhere > 0 && d->status.dangling != report->nowhere)
        log_warning("sweep: %u port%s up and lead%s nowhere, or did not answer", report->nowhere,
                    report->nowhere == 1 ? " is" : "s are", report->nowhere == 1 ? "s" : "");
    d->status.dangling = report->nowhere;
    d->status.unnamed = report->unnamed;
    if (report->inactive > 0 && d->status.inactive != report->inactive)
        log_warning("sweep: %u cabled port%s not active: does a subnet manager run?", report->inactive,
                    report->inactive == 1 ? " is" : "s are");
    d->status.inactive = report->inactive;
}

void publish_round(struct scheduler *d)
{
    struct fab_err err = d->swept.err;
    struct publication *publication = NULL;
    struct sweep_findings report = {0};
    bool swept = sweep_wanted(d->config);
    int rc = d->swept.code;
    if (rc == PMIXFAB_OK) {
        rc = round_prepare(d, swept ? &d->swept.inv : NULL, &publication, &report, &err);
        if (swept)
            take_findings(d, &report);
    }
    timer_after(d->trim, 1000);
    log_debug("sweep %llu: %.1f ms, %s", (unsigned long long)d->number, d->swept.milliseconds,
              pmixfab_strerror(rc));
    if (rc == PMIXFAB_OK && publication != NULL)
        round_announce(d, publication, true);
    else
        round_end(d, rc, err.text, false);
}

void publish_reports(struct scheduler *d)
{
    struct fab_err err = {""};
    struct publication *publication = NULL;
    publish_retain_memory(true);
    d->reports_due = false; /* so that what fails is tried again at the next occasion, not at once */
    int rc = round_prepare(d, NULL, &publication, NULL, &err);
    timer_after(d->trim, 1000);
    if (rc != PMIXFAB_OK) {
        log_error("reports: %s", err.text);
    } else if (publication != NULL) {
        round_announce(d, publication, false);
    }
}
