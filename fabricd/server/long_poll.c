#include "fabricd/server/long_poll.h"

#include <stdlib.h>
#include <utlist.h>

#include "fabricd/util/now.h"
#include "pmix/relay/relay.h"
#include "pmix/relay/thread.h"

#define MAX_WAITERS 65536

time_t long_poll_now(void)
{
    return (time_t)(microseconds_now(CLOCK_MONOTONIC) / 1000000);
}

/* ---- waiting ------------------------------------------------------------------------------------ */

bool long_poll_open(const struct long_poll *poll)
{
    return poll->timer != NULL && poll->n < MAX_WAITERS;
}

static void long_poll_time_out_in(struct long_poll *poll, time_t seconds)
{
    const struct timeval rest = {.tv_sec = seconds};
    event_add(poll->timer, &rest);
}

void long_poll_add(struct long_poll *poll, struct long_poll_waiter *waiter)
{
    waiter->poll = poll;
    waiter->until = long_poll_now() + RELAY_SUBSCRIBE_SECONDS;
    if (poll->waiters == NULL)
        long_poll_time_out_in(poll, RELAY_SUBSCRIBE_SECONDS);
    DL_APPEND(poll->waiters, waiter);
    poll->n++;
}

void long_poll_take(struct long_poll *poll, struct long_poll_waiter *waiter, struct long_poll_waiter **due)
{
    DL_DELETE(poll->waiters, waiter);
    DL_APPEND(*due, waiter);
    poll->n--;
}

static void long_poll_expire(struct long_poll *poll, struct long_poll_waiter **due)
{
    if (poll->expire != NULL)
        poll->expire(poll->waiters, due);
    else
        long_poll_take(poll, poll->waiters, due);
}

/* Those that have waited long enough hear that there is nothing new. */
static void long_poll_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct long_poll *poll = arg;
    struct long_poll_waiter *due = NULL;
    const time_t now = long_poll_now();
    (void)fd, (void)what;
    pthread_mutex_lock(&poll->lock);
    while (poll->waiters != NULL && poll->waiters->until <= now)
        long_poll_expire(poll, &due);
    if (poll->waiters != NULL && poll->timer != NULL)
        long_poll_time_out_in(poll, poll->waiters->until - now);
    pthread_mutex_unlock(&poll->lock);
    long_poll_answer_soon(due);
}

/* ---- the answer --------------------------------------------------------------------------------- */

void long_poll_answer(struct long_poll_waiter *due)
{
    struct long_poll_waiter *waiter, *next;
    DL_FOREACH_SAFE(due, waiter, next)
    {
        waiter->poll->answer(waiter);
        free(waiter);
    }
}

static void long_poll_on_due(pmix_status_t status, void *due)
{
    (void)status;
    long_poll_answer(due);
}

void long_poll_answer_soon(struct long_poll_waiter *due)
{
    if (due != NULL)
        fab_on_pmix_thread(long_poll_on_due, due);
}

static void long_poll_on_refused(pmix_status_t status, void *due)
{
    struct long_poll_waiter *waiter, *next;
    (void)status;
    DL_FOREACH_SAFE((struct long_poll_waiter *)due, waiter, next)
    {
        waiter->cbfunc(PMIX_ERR_NOT_AVAILABLE, NULL, 0, waiter->cbdata);
        free(waiter);
    }
}

/* ---- life --------------------------------------------------------------------------------------- */

int long_poll_start(struct long_poll *poll, struct event_base *base)
{
    struct event *made = evtimer_new(base, long_poll_on_timeout, poll);
    if (made == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_lock(&poll->lock);
    poll->timer = made;
    pthread_mutex_unlock(&poll->lock);
    return PMIXFAB_OK;
}

void long_poll_stop(struct long_poll *poll)
{
    struct long_poll_waiter *due = NULL;
    pthread_mutex_lock(&poll->lock);
    struct event *old = poll->timer;
    poll->timer = NULL;
    while (poll->waiters != NULL)
        long_poll_expire(poll, &due);
    pthread_mutex_unlock(&poll->lock);
    if (old != NULL)
        event_free(old);
    if (due != NULL) {
        fab_on_pmix_thread(long_poll_on_refused, due);
        fab_wait_for_pmix_thread();
    }
}
