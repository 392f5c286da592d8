/*
 * round_timers.c - what time brings without a sweep: what has been missing for too long is retired, a cable
 * that was suppressed is looked at again.
 */
#include "fabricd/base/timer.h"
#include "fabricd/engine/scheduler_state.h"

#define SECOND 1000000ll

/* While sweeps fail, or see a part only, nobody knows who is missing. */
static bool is_good(const struct scheduler *d)
{
    return d->status.code == PMIXFAB_OK && !d->status.stale && !d->status.partial;
}

bool round_timers_may_retire(const struct scheduler *d)
{
    return is_good(d) && !d->round;
}

void round_timers_plan(struct scheduler *d)
{
    struct publisher_waits waits;
    int64_t wait = -1;
    if (d->retain_timer == NULL || d->config->once)
        return;
    publisher_waits(d->publisher, &waits);
    if (waits.retire >= 0 && round_timers_may_retire(d))
        wait = waits.retire < SECOND ? SECOND : waits.retire; /* what fails is not tried again at once */
    if (waits.release >= 0 && (wait < 0 || waits.release < wait))
        wait = waits.release;
    if (wait < 0) {
        timer_cancel(d->retain_timer);
        return;
    }
    timer_after_us(d->retain_timer, wait);
}

static void round_timer_on_timeout(void *arg)
{
    struct scheduler *d = arg;
    if (publisher_release(d->publisher))
        scheduler_refresh(d, NULL, false); /* which may see what would be retired now */
    else
        d->reports_due = true; /* what is to be retired is published without a sweep */
    scheduler_go_on(d);
}

int round_timers_start(struct scheduler *d, struct fab_err *err)
{
    d->retain_timer = timer_new(d->base, round_timer_on_timeout, d);
    return d->retain_timer == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory") : PMIXFAB_OK;
}

void round_timers_stop(struct scheduler *d)
{
    timer_free(d->retain_timer);
}
