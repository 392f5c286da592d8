/*
 * long_poll.h - questions that are kept open until there is something to say.
 *
 * A waiter is answered exactly once, on the library's thread: when it is taken out, after
 * RELAY_SUBSCRIBE_SECONDS, or (PMIX_ERR_NOT_AVAILABLE) at the stop, or when who asked has gone.
 */
#ifndef FABRICD_SERVER_LONG_POLL_H
#define FABRICD_SERVER_LONG_POLL_H

#include <event2/event.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "fabricd/base/timer.h"

struct long_poll;

/* The first member of what the owner knows of a waiter, which is calloc()ed; cbfunc and cbdata are the
 * owner's to fill in. */
struct long_poll_waiter {
    struct long_poll_waiter *prev, *next;
    struct long_poll_waiter *prev_own, *next_own; /* of the same process */
    struct long_poll_owner *owner;
    const struct long_poll *poll;
    time_t until; /* monotonic seconds; the list is in this order */
    pmix_lookup_cbfunc_t cbfunc;
    void *cbdata;
};

struct long_poll {
    pthread_mutex_t lock; /* of what follows, and of what the owner keeps beside */
    struct long_poll_waiter *waiters;
    struct long_poll_owner *owners; /* those who wait, by their names */
    struct long_poll *next;         /* of those that are started */
    unsigned n;
    struct timer *timer; /* NULL: not started, or stopped */
    /* Call cbfunc with what is to be said. */
    void (*answer)(const struct long_poll_waiter *waiter);
    /* Take out one that has waited long enough, and what the owner keeps for it. The lock is held. NULL: as
     * long_poll_take(). */
    void (*expire)(struct long_poll_waiter *waiter, struct long_poll_waiter **due);
};

/* On the loop's thread, before the server starts and after it was last called. */
int long_poll_start(struct long_poll *poll, struct event_base *base);
/* Refuse all, and those that come later. */
void long_poll_stop(struct long_poll *poll);

/* On the library's thread: nobody of this name is connected any more. What it waits for has ended, in all
 * polls. */
void long_poll_left(const pmix_proc_t *who);

/* ---- the lock is held ---- */

/* Can one more wait? No process waits more than LONG_POLL_MOST times. */
#define LONG_POLL_MOST 8
bool long_poll_open(const struct long_poll *poll, const pmix_proc_t *who);
/* False: no memory. */
bool long_poll_add(struct long_poll *poll, struct long_poll_waiter *waiter, const pmix_proc_t *who);
/* From those who wait to those who are answered. */
void long_poll_take(struct long_poll *poll, struct long_poll_waiter *waiter, struct long_poll_waiter **due);

/* ---- it is not: answer and free ---- */

/* On the library's thread. NULL: nobody. */
void long_poll_answer(struct long_poll_waiter *due);
/* On any. */
void long_poll_answer_soon(struct long_poll_waiter *due);

#endif
