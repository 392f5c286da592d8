#include "fabricd/base/timer.h"

#include <stdlib.h>

struct timer {
    struct event *event;
    timer_fn fn;
    void *cbdata;
};

static void timer_on_event(evutil_socket_t fd, short what, void *arg)
{
    const struct timer *timer = arg;
    (void)fd, (void)what;
    timer->fn(timer->cbdata);
}

struct timer *timer_new(struct event_base *base, timer_fn fn, void *cbdata)
{
    struct timer *timer = calloc(1, sizeof(*timer));
    if (timer == NULL || (timer->event = evtimer_new(base, timer_on_event, timer)) == NULL) {
        free(timer);
        return NULL;
    }
    timer->fn = fn;
    timer->cbdata = cbdata;
    return timer;
}

void timer_free(struct timer *timer)
{
    if (timer == NULL)
        return;
    event_free(timer->event);
    free(timer);
}

void timer_after_us(struct timer *timer, int64_t microseconds)
{
    const struct timeval time = {.tv_sec = microseconds / 1000000,
                                 .tv_usec = (suseconds_t)(microseconds % 1000000)};
    event_add(timer->event, &time);
}

void timer_after(struct timer *timer, int64_t milliseconds)
{
    timer_after_us(timer, milliseconds * 1000);
}

void timer_fire(struct timer *timer)
{
    event_active(timer->event, EV_TIMEOUT, 0);
}

void timer_cancel(struct timer *timer)
{
    if (timer != NULL)
        event_del(timer->event);
}

bool timer_pending(const struct timer *timer)
{
    return event_pending(timer->event, EV_TIMEOUT, NULL) != 0;
}
