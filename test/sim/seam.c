/* seam.c - fabricd/base as the simulation plays it: virtual clocks, one list of timers, one run queue. */
#include <stdlib.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/work.h"
#include "test/fabrics/fabrics.h"
#include "test/sim/played.h"

#define BEGIN     (INT64_C(1700000000) * SIM_SECOND) /* of the real-time clock */
#define MONOTONIC (INT64_C(1000) * SIM_SECOND)

/* Something that is to be called: a timer, or a work's two functions. */
struct timer {
    struct timer *prev, *next;         /* in `set`, by time; */
    struct timer *prev_due, *next_due; /* in `due` */
    timer_fn fn;
    void *cbdata;
    struct event_base *base;
    int64_t at; /* -1: not set */
    bool is_due;
};

struct work {
    struct timer *timer;
    work_fn run, done;
    void *arg;
    bool ran, held;
    struct work *prev, *next; /* of those that are held */
};

static struct {
    struct timer *set, *due;
    int64_t now, offset; /* of the monotonic clock; of the real-time clock from it */
    uint64_t random;
    struct event_base *base;
    struct work *held;
    uint64_t nonce; /* random numbers beside the others */
    bool hold, shuffle;
    unsigned points;
    void (*on_point)(void *arg);
    void *point_arg;
} seam;

void seam_begin(uint64_t seed, bool shuffle)
{
    seam.set = seam.due = NULL;
    seam.now = MONOTONIC;
    seam.offset = BEGIN - MONOTONIC;
    seam.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    seam.nonce = ~seam.random;
    seam.shuffle = shuffle;
    seam.points = 0;
    seam.base = NULL;
    seam.held = NULL;
    seam.on_point = NULL;
}

void seam_on_point(void (*fn)(void *arg), void *arg)
{
    seam.on_point = fn;
    seam.point_arg = arg;
}

unsigned seam_points(void)
{
    return seam.points;
}

static void seam_point(void)
{
    seam.points++;
    if (seam.on_point != NULL)
        seam.on_point(seam.point_arg);
}

uint64_t seam_random(void)
{
    return fabric_random_next(&seam.random);
}

uint32_t chance_below(uint32_t below)
{
    return (uint32_t)(seam_random() % below);
}

void chance_bytes(void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(fabric_random_next(&seam.nonce) >> 32);
}

/* ---- clocks
 * ------------------------------------------------------------------------------------------------ */

int64_t clock_now(clockid_t clock)
{
    return clock == CLOCK_REALTIME ? seam.now + seam.offset : seam.now;
}

int64_t seam_monotonic(void)
{
    return seam.now;
}

void seam_jump(int64_t microseconds)
{
    seam.offset += microseconds;
}

/* Whoever sleeps is a thread or a child, for which nobody waits. */
void clock_sleep(int64_t microseconds)
{
    (void)microseconds;
}

int clock_sleep_until(int64_t microseconds)
{
    (void)microseconds;
    return 0;
}

/* ---- timers
 * ------------------------------------------------------------------------------------------------- */

struct timer *timer_new(struct event_base *base, timer_fn fn, void *cbdata)
{
    struct timer *timer = calloc(1, sizeof(*timer));
    if (timer == NULL)
        return NULL;
    *timer = (struct timer){.fn = fn, .cbdata = cbdata, .base = base, .at = -1};
    return timer;
}

static void timer_is_not_due(struct timer *timer)
{
    if (timer->is_due)
        DL_DELETE2(seam.due, timer, prev_due, next_due);
    timer->is_due = false;
}

static void timer_is_not_set(struct timer *timer)
{
    if (timer->at >= 0)
        DL_DELETE(seam.set, timer);
    timer->at = -1;
}

void timer_free(struct timer *timer)
{
    if (timer == NULL)
        return;
    timer_is_not_due(timer);
    timer_is_not_set(timer);
    free(timer);
}

static int timer_order(const struct timer *a, const struct timer *b)
{
    return a->at < b->at ? -1 : 1; /* behind those of the same time */
}

void timer_after_us(struct timer *timer, int64_t microseconds)
{
    timer_is_not_set(timer);
    timer->at = seam.now + (microseconds > 0 ? microseconds : 0);
    DL_INSERT_INORDER(seam.set, timer, timer_order);
    seam_point();
}

void timer_after(struct timer *timer, int64_t milliseconds)
{
    timer_after_us(timer, milliseconds * SIM_MS);
}

void timer_fire(struct timer *timer)
{
    if (!timer->is_due)
        DL_APPEND2(seam.due, timer, prev_due, next_due);
    timer->is_due = true;
    seam_point();
}

void timer_cancel(struct timer *timer)
{
    if (timer == NULL)
        return;
    timer_is_not_set(timer);
    timer_is_not_due(timer);
}

bool timer_pending(const struct timer *timer)
{
    return timer->at >= 0;
}

/* ---- the run queue
 * -------------------------------------------------------------------------------------------- */

int64_t seam_next(void)
{
    return seam.set == NULL ? -1 : seam.set->at;
}

void seam_set(int64_t monotonic)
{
    seam.now = monotonic;
    while (seam.set != NULL && seam.set->at <= seam.now) {
        struct timer *timer = seam.set;
        timer_is_not_set(timer);
        timer_fire(timer);
    }
}

bool seam_is_due(void)
{
    seam_set(seam.now);
    return seam.due != NULL;
}

void seam_run_one(void)
{
    struct timer *timer = seam.due;
    for (uint64_t skip = seam.shuffle ? seam_random() % 4 : 0; skip > 0 && timer->next_due != NULL; skip--)
        timer = timer->next_due;
    timer_is_not_due(timer);
    timer_is_not_set(timer); /* as libevent does of one that was fired */
    struct event_base *before = seam.base;
    seam.base = timer->base;
    timer->fn(timer->cbdata);
    seam.base = before;
}

struct event_base *seam_base(void)
{
    return seam.base;
}

/* ---- threads
 * ---------------------------------------------------------------------------------------------------- */

static void work_is_not_held(struct work *work)
{
    if (work->held)
        DL_DELETE(seam.held, work);
    work->held = false;
}

static void work_free(struct work *work)
{
    work_is_not_held(work);
    timer_free(work->timer);
    free(work);
}

static void work_begin(struct work *work)
{
    seam.hold = false;
    if (!work->ran && !work->held)
        work->run(work->arg);
    work->ran = true;
    if (seam.hold) {
        work->held = true;
        DL_APPEND(seam.held, work);
    }
    seam.hold = false;
    seam_point();
}

static void work_on_turn(void *arg)
{
    struct work *work = arg;
    if (!work->ran) {
        work_begin(work);
        if (!work->held)
            timer_fire(work->timer); /* the loop hears of its end later */
        return;
    }
    const work_fn done = work->done;
    void *of_done = work->arg;
    if (done == NULL)
        return; /* somebody is going to wait for it */
    work_free(work);
    done(of_done);
}

void seam_hold(void)
{
    seam.hold = true;
}

void seam_release(void)
{
    while (seam.held != NULL) {
        struct work *work = seam.held;
        work_is_not_held(work);
        work->ran = false;
        timer_fire(work->timer);
    }
}

struct work *work_run(struct event_base *base, work_fn run, work_fn done, void *arg)
{
    struct work *work = calloc(1, sizeof(*work));
    if (work == NULL || (work->timer = timer_new(base, work_on_turn, work)) == NULL) {
        free(work);
        return NULL;
    }
    work->run = run;
    work->done = done;
    work->arg = arg;
    timer_fire(work->timer);
    return work;
}

void work_wait(struct work *work)
{
    if (work == NULL)
        return;
    work_begin(work);
    work_free(work);
}

void work_beside(work_fn run, void *arg, work_fn tend, void *cbdata)
{
    run(arg);
    tend(cbdata);
}

bool work_leave(struct work *work, int64_t milliseconds, work_fn ended)
{
    (void)milliseconds, (void)ended;
    work_wait(work);
    return true;
}
