/*
 * counter_rounds.c - the schedule of reading counters, with one child at a time. The children read these
 * counters:
 * - links that changed, at once and repeatedly for an hour
 * - ports on request
 * - all cabled ports in slow rounds, to find a cable with errors whose link never changed.
 *
 * A slow round reads one batch after the other, in the order of GUIDs, with a pause after each. A batch that
 * fails is skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/publisher.h"
#include "fabricd/engine/scheduler_state.h"

#define SECOND      INT64_C(1000000)
#define FIRST_ROUND 90 /* seconds after the start */
#define BATCH_PAUSE 4  /* seconds; this times [check] counters_rate is the size of a batch */

struct counter_job {
    struct counter_job *prev, *next;
    struct probe_reading *list;
    uint32_t n;
    counters_read_fn done; /* NULL: no caller waits */
    void *cbdata;
    bool keep; /* a batch of a round over all ports */
};

static void counters_next(struct scheduler *d);

static void job_end(struct scheduler *d, struct counter_job *job, int code, const struct fab_err *err)
{
    DL_DELETE(d->counter_jobs, job);
    if (job->done != NULL)
        job->done(code, err, job->cbdata);
    else if (code != PMIXFAB_OK)
        log_warning("%s", err->text);
    free(job->list);
    free(job);
}

static void counters_on_done(int code, const struct fab_err *err, const struct probe_reading *list,
                             uint32_t n, void *arg)
{
    struct scheduler *d = arg;
    const int64_t now = clock_now(CLOCK_REALTIME);
    d->counters = NULL;
    for (uint32_t i = 0; i < n; i++)
        counter_watch_read(&d->counter_watch, &list[i], now);
    for (uint32_t i = 0; i < n; i++)
        if (d->counter_jobs->keep)
            counter_watch_keep(&d->all_counters.watch, &list[i], now);
        else
            counter_watch_read(&d->all_counters.watch, &list[i], now);
    job_end(d, d->counter_jobs, code, err);
    scheduler_look_soon(d);
    counters_next(d);
}

/* Start the first job, if none runs. */
static void counters_next(struct scheduler *d)
{
    while (d->counters == NULL && d->counter_jobs != NULL) {
        struct counter_job *job = d->counter_jobs;
        struct fab_err err = {""};
        size_t size;
        const void *parts = monitoring_inventory(d, &size);
        int rc = parts == NULL ? fab_fail(&err, PMIXFAB_ERR_NOTFOUND, "counters: no sweep has succeeded yet")
                               : counters_start(d->base, d->config, job->list, job->n, parts, size,
                                                counters_on_done, d, &d->counters, &err);
        if (rc != PMIXFAB_OK)
            job_end(d, job, rc, &err);
    }
}

/* Append a job that reads n ports; the caller fills its list. NULL: no memory. */
static struct counter_job *queue_job(struct scheduler *d, uint32_t n, counters_read_fn done, void *cbdata)
{
    struct counter_job *job = calloc(1, sizeof(*job));
    struct probe_reading *list = calloc(n + 1, sizeof(*list));
    if (job == NULL || list == NULL) {
        free(job);
        free(list);
        return NULL;
    }
    *job = (struct counter_job){.list = list, .n = n, .done = done, .cbdata = cbdata};
    DL_APPEND(d->counter_jobs, job);
    return job;
}

static struct counter_job *queue_ports(struct scheduler *d, const struct publish_ports *ports,
                                       counters_read_fn done, void *cbdata)
{
    struct counter_job *job = queue_job(d, ports->n, done, cbdata);
    for (uint32_t i = 0; job != NULL && i < ports->n; i++)
        job->list[i] = (struct probe_reading){.guid = ports->ports[i].guid, .num = ports->ports[i].num};
    return job;
}

int scheduler_read_counters(struct scheduler *d, const struct publish_ports *ports, counters_read_fn done,
                            void *cbdata, struct counter_job **out, struct fab_err *err)
{
    const int64_t now = clock_now(CLOCK_REALTIME);
    if (!counters_can(d->config))
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                        "counters: no configured probe can read counters: configure ibnetdisc");
    int rc = PMIXFAB_OK;
    counter_watch_expire(&d->counter_watch, now);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < ports->n; i++)
        rc = counter_watch_add(&d->counter_watch, ports->ports[i].guid, ports->ports[i].num, false, now);
    if (rc == PMIXFAB_ERR_RANGE)
        return fab_fail(err, rc, "counters: too many ports were read within an hour: try again later");
    *out = rc == PMIXFAB_OK ? queue_ports(d, ports, done, cbdata) : NULL;
    if (*out == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "counters: out of memory");
    timer_after(d->counter_timer, 0); /* from the loop, so that the caller gets its job first */
    return PMIXFAB_OK;
}

void scheduler_counters_give_up(struct counter_job *job)
{
    job->done = NULL;
}

const struct counter_watch *scheduler_counters(const struct scheduler *d)
{
    return &d->counter_watch;
}

const struct counter_watch *scheduler_all_counters(const struct scheduler *d, uint64_t *rounds)
{
    *rounds = d->all_counters.rounds;
    return &d->all_counters.watch;
}

/* Read all watched ports, and set the timer again. */
static void counters_on_timer(void *arg)
{
    struct scheduler *d = arg;
    struct counter_watch *watch = &d->counter_watch;
    const int64_t now = clock_now(CLOCK_REALTIME);
    const int64_t pace = d->config->counters * INT64_C(1000000);
    counter_watch_expire(watch, now);
    if (pace > 0 && watch->n > 0) {
        if (now >= d->counters_due || now < d->counters_due - pace) {
            d->counters_due = now + pace;
            struct counter_job *job = queue_job(d, watch->n, NULL, NULL);
            for (uint32_t i = 0; job != NULL && i < watch->n; i++)
                job->list[i] = (struct probe_reading){.guid = watch->ports[i].last.guid,
                                                      .num = watch->ports[i].last.num};
        }
        timer_after(d->counter_timer, (d->counters_due - now) / 1000 + 1);
    }
    counters_next(d);
}

void counters_changed(struct scheduler *d, const struct publish_ports *ports)
{
    const int64_t now = clock_now(CLOCK_REALTIME);
    for (uint32_t i = 0; i < ports->n; i++)
        counter_watch_changed(&d->all_counters.watch, ports->ports[i].guid, ports->ports[i].num);
    if (d->counter_timer == NULL || d->config->counters == 0 || ports->n == 0 || !counters_can(d->config))
        return;
    for (uint32_t i = 0; i < ports->n; i++)
        counter_watch_add(&d->counter_watch, ports->ports[i].guid, ports->ports[i].num, true, now);
    d->counters_due = now;
    timer_after(d->counter_timer, 0);
}

/* ---- all cabled ports ------------------------------------------------------------------------------ */

static void all_counters_later(struct scheduler *d, int64_t wait)
{
    timer_after(d->all_counters.timer, (wait < 0 ? 0 : wait) / 1000 + 1);
}

static void all_counters_end_round(struct scheduler *d, int64_t now)
{
    struct all_counters *all = &d->all_counters;
    const int64_t round = d->config->counters_round * SECOND;
    const int64_t left = now < all->began ? round : all->began + round - now; /* a clock that was set back */
    counter_watch_expire(&all->watch, now);
    all->rounds += all->at.guid != 0; /* before the first sweep there is nothing to read */
    all->at = (struct publish_port){0};
    all->under_way = false;
    all_counters_later(d, left < BATCH_PAUSE * SECOND ? BATCH_PAUSE * SECOND : left);
}

static void all_counters_on_read(int code, const struct fab_err *err, void *arg)
{
    struct scheduler *d = arg;
    if (code != PMIXFAB_OK)
        log_debug("counters of all ports: %s", err->text);
    all_counters_later(d, BATCH_PAUSE * SECOND);
}

static void all_counters_on_timer(void *arg)
{
    struct scheduler *d = arg;
    struct all_counters *all = &d->all_counters;
    const int64_t now = clock_now(CLOCK_REALTIME);
    const uint32_t most = d->config->counters_rate * BATCH_PAUSE;
    struct publish_ports ports = {0};
    if (d->config->counters_round == 0) {
        counter_watch_free(&all->watch);
        *all = (struct all_counters){.timer = all->timer, .watch.most = COUNTERS_ALL_MAX};
        return;
    }
    if (!all->under_way)
        all->began = now;
    all->under_way = true;
    int rc =
        publisher_ports_behind(d->publisher, &all->at, most > COUNTERS_MAX ? COUNTERS_MAX : most, &ports);
    if (rc != PMIXFAB_OK) {
        all_counters_later(d, FIRST_ROUND * SECOND);
    } else if (ports.n == 0) {
        all_counters_end_round(d, now);
    } else {
        struct counter_job *job = queue_ports(d, &ports, all_counters_on_read, d);
        all->at = ports.ports[ports.n - 1];
        if (job != NULL) {
            job->keep = true;
            timer_after(d->counter_timer, 0);
        } else {
            all_counters_later(d, FIRST_ROUND * SECOND);
        }
    }
    publish_ports_free(&ports);
}

void counters_again(struct scheduler *d)
{
    if (d->all_counters.timer != NULL && counters_can(d->config))
        all_counters_later(d, FIRST_ROUND * SECOND);
}

int counters_begin(struct scheduler *d, struct fab_err *err)
{
    d->counter_timer = timer_new(d->base, counters_on_timer, d);
    d->all_counters.timer = timer_new(d->base, all_counters_on_timer, d);
    if (d->counter_timer == NULL || d->all_counters.timer == NULL)
        return no_memory(err);
    d->all_counters.watch.most = COUNTERS_ALL_MAX;
    counters_again(d);
    return PMIXFAB_OK;
}

void counters_end(struct scheduler *d)
{
    static const struct fab_err over = {"counters: fabricd ends"};
    counters_cancel(d->counters);
    d->counters = NULL;
    while (d->counter_jobs != NULL) {
        d->counter_jobs->done = NULL;
        job_end(d, d->counter_jobs, PMIXFAB_OK, &over);
    }
    timer_free(d->counter_timer);
    timer_free(d->all_counters.timer);
    counter_watch_free(&d->counter_watch);
    counter_watch_free(&d->all_counters.watch);
    d->all_counters = (struct all_counters){0};
}
