/* timer.h - functions that an event loop calls later. */
#ifndef FABRICD_BASE_TIMER_H
#define FABRICD_BASE_TIMER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct timer;
typedef void (*timer_fn)(void *cbdata);

/* Create a timer, not set. The loop calls `fn` each time it expires. NULL: no memory. */
struct timer *timer_new(struct event_base *base, timer_fn fn, void *cbdata);

/* Free the timer. `fn` is not called any more, even if another thread fired the timer. NULL allowed. */
void timer_free(struct timer *timer);

/* Expire once, so many milliseconds (microseconds) from now. This replaces a time that was set before. */
void timer_after(struct timer *timer, int64_t milliseconds);
void timer_after_us(struct timer *timer, int64_t microseconds);

/* Expire from the loop at once; a time that is set is dropped. Any thread, if the loop has locks
 * (base/loop.h). */
void timer_fire(struct timer *timer);

/* Do not expire. NULL allowed. */
void timer_cancel(struct timer *timer);

/* Return whether a time is set. */
bool timer_pending(const struct timer *timer);

#endif
