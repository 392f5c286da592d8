#include "fabricd/host/data/kv_waiters.h"

#include <stdint.h>
#include <stdlib.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "pmix/relay/thread.h"
#include "topo/base/error.h"

#define MOST_KV_WAITERS 16384

struct kv_waiter {
    struct kv_waiter *prev, *next;
    int64_t until; /* microseconds, 0: for as long as it takes */
    struct kv_question question;
};

static struct timer *waiters_timer; /* of all: for the one whose time is over first */
static int64_t waiters_soonest;     /* 0: nobody's */
static bool (*waiters_answer)(const struct kv_question *question, bool enough);
static struct kv_waiter *kv_waiters;
static unsigned n_kv_waiters;

static void waiter_free(struct kv_waiter *waiter)
{
    DL_DELETE(kv_waiters, waiter); /* NOLINT(clang-analyzer-core.NullDereference): it is in the list */
    n_kv_waiters--;
    free(waiter);
}

static bool waiters_wake(int64_t until, int64_t now)
{
    const int64_t left = until > now ? until - now : 0;
    if (waiters_soonest != 0 && until >= waiters_soonest)
        return true;
    waiters_soonest = until;
    timer_after_us(waiters_timer, left);
    return true;
}

static void waiters_on_time(pmix_status_t status, void *cbdata)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    struct kv_waiter *waiter, *next;
    (void)status, (void)cbdata;
    waiters_soonest = 0;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        if (waiter->until == 0)
            continue;
        if (waiter->until > now) {
            waiters_wake(waiter->until, now);
            continue;
        }
        waiter->question.cbfunc(PMIX_ERR_TIMEOUT, NULL, 0, waiter->question.cbdata);
        waiter_free(waiter);
    }
}

static void waiters_on_timer(void *arg)
{
    fab_on_pmix_thread(waiters_on_time, arg);
}

int kv_waiters_start(struct event_base *base, bool (*answer)(const struct kv_question *question, bool enough))
{
    waiters_answer = answer;
    waiters_timer = timer_new(base, waiters_on_timer, NULL);
    return waiters_timer == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

pmix_status_t kv_waiters_add(const struct kv_question *question, int seconds)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    struct kv_waiter *waiter = n_kv_waiters < MOST_KV_WAITERS ? calloc(1, sizeof(*waiter)) : NULL;
    if (waiter == NULL)
        return PMIX_ERR_OUT_OF_RESOURCE;
    waiter->question = *question;
    waiter->until = seconds > 0 ? now + (int64_t)seconds * 1000000 : 0;
    if (seconds > 0 && !waiters_wake(waiter->until, now)) {
        free(waiter);
        return PMIX_ERR_NOMEM;
    }
    DL_APPEND(kv_waiters, waiter);
    n_kv_waiters++;
    return PMIX_SUCCESS;
}

void kv_waiters_look(void)
{
    struct kv_waiter *waiter, *next;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        if (waiters_answer(&waiter->question, false))
            waiter_free(waiter);
    }
}

void kv_waiters_ended(const pmix_proc_t *proc)
{
    struct kv_waiter *waiter, *next;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        if (!kv_is_of(&waiter->question.proc, proc))
            continue;
        waiter->question.cbfunc(PMIX_ERR_LOST_CONNECTION, NULL, 0, waiter->question.cbdata);
        waiter_free(waiter);
    }
}

void kv_waiters_stop(void)
{
    struct kv_waiter *waiter, *next;
    DL_FOREACH_SAFE(kv_waiters, waiter, next)
    {
        waiter_free(waiter);
    }
    if (waiters_timer != NULL)
        timer_free(waiters_timer);
    waiters_timer = NULL;
    waiters_soonest = 0;
}
