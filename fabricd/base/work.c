#include "fabricd/base/work.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "fabricd/base/timer.h"

struct work {
    work_fn run, done, ended; /* ended: the loop has left it */
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
