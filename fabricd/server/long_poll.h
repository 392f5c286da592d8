/*
 * long_poll.h - requests that stay open until there is news.
 *
 * A waiter gets exactly one answer, on the library's thread. It gets the answer when it is taken out, or
 * after RELAY_SUBSCRIBE_SECONDS. At the stop, or when its process has disconnected, the answer is
 * PMIX_ERR_NOT_AVAILABLE.
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

/* The first member of the owner's struct of a waiter, which is allocated by calloc(). The owner sets cbfunc
 * and cbdata. */
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
    pthread_mutex_t lock; /* protects the following members, and the owner's data beside them */
    struct long_poll_waiter *waiters;
    struct long_poll_owner *owners; /* waiting processes, by their names */
    struct long_poll *next;         /* in the list of started polls */
    unsigned n;
    struct timer *timer; /* NULL: not started, or stopped */
    /* Call cbfunc with the answer. */
    void (*answer)(const struct long_poll_waiter *waiter);
    /* Take out a waiter whose time is over, with the owner's data of it. The lock is held. NULL:
     * long_poll_take(). */
    void (*expire)(struct long_poll_waiter *waiter, struct long_poll_waiter **due);
};

/* Start before the server starts, and stop after the library's last call. Both on the loop's thread. */
int long_poll_start(struct long_poll *poll, struct event_base *base);
/* Refuse all waiters, and those that come later. */
void long_poll_stop(struct long_poll *poll);

/* Refuse the waiters of a process that has disconnected, in all polls. On the library's thread. */
void long_poll_left(const pmix_proc_t *who);

/* ---- with the lock held ---- */

/* Return whether this process may wait once more; LONG_POLL_MOST times at most. */
#define LONG_POLL_MOST 8
bool long_poll_open(const struct long_poll *poll, const pmix_proc_t *who);
/* Add a waiter. False: no memory. */
bool long_poll_add(struct long_poll *poll, struct long_poll_waiter *waiter, const pmix_proc_t *who);
/* Move a waiter to the list of those to answer. */
void long_poll_take(struct long_poll *poll, struct long_poll_waiter *waiter, struct long_poll_waiter **due);

/* ---- without the lock: answer and free ---- */

/* Answer on the library's thread. NULL: none. */
void long_poll_answer(struct long_poll_waiter *due);
/* The same, from any thread. */
void long_poll_answer_soon(struct long_poll_waiter *due);

#endif
