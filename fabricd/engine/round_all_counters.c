/*
 * round_all_counters.c - slow rounds that read the counters of all cabled ports, so that a cable that
 * collects errors is found although its link never changed.
 *
 * A round reads one batch after the other, in the order of GUIDs, with a pause behind each. A batch that
 * fails is left out.
 */
#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/scheduler_state.h"

#define SECOND      INT64_C(1000000)
#define FIRST_ROUND 90 /* seconds after the start */
#define BATCH_PAUSE 4  /* seconds; so many times [check] counters_rate ports are read at once */

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
        all->at = ports.ports[ports.n - 1];
        if (counters_read_batch(d, &ports, all_counters_on_read, d) != PMIXFAB_OK)
            all_counters_later(d, FIRST_ROUND * SECOND);
    }
    publish_ports_free(&ports);
}

int all_counters_begin(struct scheduler *d)
{
    d->all_counters.timer = timer_new(d->base, all_counters_on_timer, d);
    if (d->all_counters.timer == NULL)
        return PMIXFAB_ERR_NOMEM;
    d->all_counters.watch.most = COUNTERS_ALL_MAX;
    all_counters_again(d);
    return PMIXFAB_OK;
}

void all_counters_again(struct scheduler *d)
{
    if (d->all_counters.timer != NULL && counters_can(d->config))
        all_counters_later(d, FIRST_ROUND * SECOND);
}

void all_counters_end(struct scheduler *d)
{
    timer_free(d->all_counters.timer);
    counter_watch_free(&d->all_counters.watch);
    d->all_counters = (struct all_counters){0};
}
