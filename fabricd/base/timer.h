/* timer.h - functions that an event loop calls later. */
#ifndef FABRICD_BASE_TIMER_H
#define FABRICD_BASE_TIMER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct timer;
typedef void (*timer_fn)(void *cbdata);

/* The loop calls `fn` each time the timer goes off. NULL: no memory. */
struct timer *timer_new(struct event_base *base, timer_fn fn, void *cbdata);

/* The function is not called any more, by whatever thread it was fired. NULL allowed. */
void timer_free(struct timer *timer);

/* Go off once, so many milliseconds (microseconds) from now. A time that was set before does not count any
 * more. */
void timer_after(struct timer *timer, int64_t milliseconds);
void timer_after_us(struct timer *timer, int64_t microseconds);

/* Go off from the loop at once, and not at the time that is set. Any thread, where the loop has locks
 * (util/loop.h). */
void timer_fire(struct timer *timer);

/* Do not go off. NULL allowed. */
void timer_cancel(struct timer *timer);

/* Is a time set? */
bool timer_pending(const struct timer *timer);

#endif
