/* work.h - functions that run on a thread of their own, because they wait or take long. */
#ifndef FABRICD_BASE_WORK_H
#define FABRICD_BASE_WORK_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct work;
typedef void (*work_fn)(void *arg);

/*
 * Call `run` on a new thread, and then `done` on the loop, after which the work is freed. done NULL:
 * work_wait() frees it, and base may be NULL. NULL: there is no thread or no memory, and nothing is called.
 */
struct work *work_run(struct event_base *base, work_fn run, work_fn done, void *arg);

/* Wait until `run` has returned, and free the work; `done` is not called any more. On the loop. NULL allowed.
 */
void work_wait(struct work *work);

/* Call `run` on a new thread, and until it has returned `tend` on this one, again and again; that waits until
 * something happens, or `run` returns. Where there is no thread, `run` is called here. */
void work_beside(work_fn run, void *arg, work_fn tend, void *cbdata);

/*
 * As work_wait(), but wait for so many milliseconds at most. False: `run` goes on, and `ended` is called on
 * its thread when it has returned; nothing else is.
 */
bool work_leave(struct work *work, int64_t milliseconds, work_fn ended);

#endif
