/* work.h - functions that block or take long, run on threads of their own. */
#ifndef FABRICD_BASE_WORK_H
#define FABRICD_BASE_WORK_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct work;
typedef void (*work_fn)(void *arg);

/*
 * Call `run` on a new thread, then `done` on the loop, then free the work. done NULL: work_wait() frees it,
 * and base may be NULL. Returns NULL without a thread or memory; then nothing is called.
 */
struct work *work_run(struct event_base *base, work_fn run, work_fn done, void *arg);

/* Wait until `run` has returned, and free the work; `done` is not called any more. On the loop. NULL allowed.
 */
void work_wait(struct work *work);

/* Call `run` on a new thread. Until it has returned, call `tend` again and again on this thread; `tend` waits
 * for an event or the end of `run`. Without a new thread, `run` is called on this one. */
void work_beside(work_fn run, void *arg, work_fn tend, void *cbdata);

/*
 * Wait like work_wait(), but for so many milliseconds at most. False: `run` still runs. When `run` has
 * returned, only `ended` is called, on the thread of `run`.
 */
bool work_leave(struct work *work, int64_t milliseconds, work_fn ended);

#endif
