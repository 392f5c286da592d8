#include "fabricd/server/long_poll.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "pmix/relay/relay.h"
#include "pmix/relay/thread.h"

#define MAX_WAITERS 65536

static time_t long_poll_now(void)
{
    return (time_t)(clock_now(CLOCK_MONOTONIC) / 1000000);
}

static pthread_mutex_t polls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct long_poll *polls; /* the started polls */

/* ---- waiters by process: the lock is held -------------------------------------------------------- */

struct long_poll_owner {
    UT_hash_handle hh;
    pmix_proc_t who; /* compared bytewise */
    struct long_poll_waiter *waiters;
    unsigned n;
};

static struct long_poll_owner *long_poll_find_owner(const struct long_poll *poll, const pmix_proc_t *who)
{
    struct long_poll_owner *owner;
    pmix_proc_t key;
    memset(&key, 0, sizeof(key));
    PMIX_LOAD_PROCID(&key, who->nspace, who->rank);
    HASH_FIND(hh, poll->owners, &key, sizeof(key), owner);
    return owner;
}

static struct long_poll_owner *long_poll_get_owner(struct long_poll *poll, const pmix_proc_t *who)
{
    struct long_poll_owner *owner = long_poll_find_owner(poll, who);
    if (owner != NULL || (owner = calloc(1, sizeof(*owner))) == NULL)
        return owner;
    PMIX_LOAD_PROCID(&owner->who, who->nspace, who->rank);
    HASH_ADD(hh, poll->owners, who, sizeof(owner->who), owner);
    return owner;
}

static void long_poll_disown(struct long_poll *poll, struct long_poll_waiter *waiter)
{
    struct long_poll_owner *owner = waiter->owner;
    DL_DELETE2(owner->waiters, waiter, prev_own, next_own);
    if (--owner->n > 0)
        return;
    /* NOLINTNEXTLINE(clang-analyzer-*): no link to the freed entry is left, and there is an entry */
    HASH_DEL(poll->owners, owner);
    free(owner);
}

/* ---- waiting ------------------------------------------------------------------------------------ */

bool long_poll_open(const struct long_poll *poll, const pmix_proc_t *who)
{
    const struct long_poll_owner *owner = long_poll_find_owner(poll, who);
    return poll->timer != NULL && poll->n < MAX_WAITERS && (owner == NULL || owner->n < LONG_POLL_MOST);
}

static void long_poll_time_out_in(struct long_poll *poll, time_t seconds)
{
    timer_after(poll->timer, (int64_t)seconds * 1000);
}

bool long_poll_add(struct long_poll *poll, struct long_poll_waiter *waiter, const pmix_proc_t *who)
{
    waiter->owner = long_poll_get_owner(poll, who);
    if (waiter->owner == NULL)
        return false;
    DL_APPEND2(waiter->owner->waiters, waiter, prev_own, next_own);
    waiter->owner->n++;
    waiter->poll = poll;
    waiter->until = long_poll_now() + RELAY_SUBSCRIBE_SECONDS;
    if (poll->waiters == NULL)
        long_poll_time_out_in(poll, RELAY_SUBSCRIBE_SECONDS);
    DL_APPEND(poll->waiters, waiter);
    poll->n++;
    return true;
}

void long_poll_take(struct long_poll *poll, struct long_poll_waiter *waiter, struct long_poll_waiter **due)
{
    DL_DELETE(poll->waiters, waiter);
    long_poll_disown(poll, waiter);
    DL_APPEND(*due, waiter);
    poll->n--;
}

static void long_poll_expire(struct long_poll *poll, struct long_poll_waiter *waiter,
                             struct long_poll_waiter **due)
{
    if (poll->expire != NULL)
        poll->expire(waiter, due);
    else
        long_poll_take(poll, waiter, due);
}

/* Answer the waiters whose time is over: there is nothing new. */
static void long_poll_on_timeout(void *arg)
{
    struct long_poll *poll = arg;
    struct long_poll_waiter *due = NULL;
    const time_t now = long_poll_now();
    pthread_mutex_lock(&poll->lock);
    while (poll->waiters != NULL && poll->waiters->until <= now)
        long_poll_expire(poll, poll->waiters, &due);
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

void long_poll_left(const pmix_proc_t *who)
{
    struct long_poll_waiter *due = NULL;
    pthread_mutex_lock(&polls_lock);
    for (struct long_poll *poll = polls; poll != NULL; poll = poll->next) {
        pthread_mutex_lock(&poll->lock);
        struct long_poll_owner *owner = long_poll_find_owner(poll, who);
        for (unsigned n = owner == NULL ? 0 : owner->n; n > 0; n--)
            long_poll_expire(poll, owner->waiters, &due);
        pthread_mutex_unlock(&poll->lock);
    }
    pthread_mutex_unlock(&polls_lock);
    long_poll_on_refused(PMIX_SUCCESS, due); /* makes the library drop the questions, too */
}

/* ---- start and stop ----------------------------------------------------------------------------- */

int long_poll_start(struct long_poll *poll, struct event_base *base)
{
    struct timer *made = timer_new(base, long_poll_on_timeout, poll);
    if (made == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_lock(&poll->lock);
    poll->timer = made;
    pthread_mutex_unlock(&poll->lock);
    pthread_mutex_lock(&polls_lock);
    LL_PREPEND(polls, poll);
    pthread_mutex_unlock(&polls_lock);
    return PMIXFAB_OK;
}

/* Remove the poll from the list; it may not be in it. */
static void long_poll_forget(struct long_poll *poll)
{
    pthread_mutex_lock(&polls_lock);
    for (struct long_poll **link = &polls; *link != NULL; link = &(*link)->next)
        if (*link == poll) {
            *link = poll->next;
            break;
        }
    pthread_mutex_unlock(&polls_lock);
}

void long_poll_stop(struct long_poll *poll)
{
    struct long_poll_waiter *due = NULL;
    long_poll_forget(poll);
    pthread_mutex_lock(&poll->lock);
    struct timer *old = poll->timer;
    poll->timer = NULL;
    while (poll->waiters != NULL)
        long_poll_expire(poll, poll->waiters, &due);
    pthread_mutex_unlock(&poll->lock);
    timer_free(old);
    if (due != NULL) {
        fab_on_pmix_thread(long_poll_on_refused, due);
        fab_wait_for_pmix_thread();
    }
}
