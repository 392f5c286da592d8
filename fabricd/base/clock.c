/*
 * clock.c - the part of the seam (clock.h) that a simulation replaces as a whole: time, random numbers,
 * timers and functions on threads. Nothing else may be defined in this file.
 */
#include <errno.h>
#include <event2/util.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/work.h"

int64_t clock_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void clock_sleep(int64_t microseconds)
{
    struct timespec left = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

int clock_sleep_until(int64_t microseconds)
{
    const struct timespec then = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
}

uint32_t chance_below(uint32_t below)
{
    uint32_t chance;
    evutil_secure_rng_get_bytes(&chance, sizeof(chance));
    return chance % below;
}

void chance_bytes(void *bytes, size_t n)
{
    evutil_secure_rng_get_bytes(bytes, n);
}

/* ---- timers ---- */

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

/* ---- threads ---- */

struct work {
    work_fn run, done, ended; /* ended: called when the loop has abandoned the work */
    void *arg;
    pthread_t thread;
    struct timer *finished; /* NULL: no `done` is called */
    pthread_mutex_t lock;
    bool returned, left;
};

static void work_free(struct work *work)
{
    timer_free(work->finished);
    pthread_mutex_destroy(&work->lock);
    free(work);
}

static void *work_thread(void *arg)
{
    struct work *work = arg;
    work->run(work->arg);
    pthread_mutex_lock(&work->lock);
    work->returned = true;
    const bool left = work->left;
    if (!left && work->finished != NULL)
        timer_fire(work->finished);
    pthread_mutex_unlock(&work->lock);
    if (left) {
        work->ended(work->arg);
        work_free(work);
    }
    return NULL;
}

static void work_on_finished(void *arg)
{
    struct work *work = arg;
    const work_fn done = work->done;
    void *of_done = work->arg;
    pthread_join(work->thread, NULL);
    work_free(work);
    done(of_done);
}

struct work *work_run(struct event_base *base, work_fn run, work_fn done, void *arg)
{
    struct work *work = calloc(1, sizeof(*work));
    if (work == NULL)
        return NULL;
    *work = (struct work){.run = run, .done = done, .arg = arg};
    pthread_mutex_init(&work->lock, NULL);
    if (done != NULL)
        work->finished = timer_new(base, work_on_finished, work);
    if ((done == NULL || work->finished != NULL) &&
        pthread_create(&work->thread, NULL, work_thread, work) == 0)
        return work;
    work_free(work);
    return NULL;
}

void work_wait(struct work *work)
{
    if (work == NULL)
        return;
    pthread_join(work->thread, NULL);
    work_free(work);
}

void work_beside(work_fn run, void *arg, work_fn tend, void *cbdata)
{
    struct work *work = work_run(NULL, run, NULL, arg);
    if (work == NULL) {
        run(arg);
        return;
    }
    for (bool returned = false; !returned;) {
        tend(cbdata);
        pthread_mutex_lock(&work->lock);
        returned = work->returned;
        pthread_mutex_unlock(&work->lock);
    }
    work_wait(work);
}

bool work_leave(struct work *work, int64_t milliseconds, work_fn ended)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    const int64_t nanoseconds = limit.tv_nsec + milliseconds % 1000 * 1000000;
    limit.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
    limit.tv_nsec = nanoseconds % 1000000000;
    if (pthread_timedjoin_np(work->thread, NULL, &limit) == 0) {
        work_free(work);
        return true;
    }
    pthread_mutex_lock(&work->lock);
    const bool returned = work->returned;
    work->left = !returned;
    work->ended = ended;
    if (!returned) {
        timer_free(work->finished);
        work->finished = NULL;
        pthread_detach(work->thread);
    }
    pthread_mutex_unlock(&work->lock);
    if (returned)
        work_wait(work);
    return returned;
}
