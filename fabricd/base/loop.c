#include "fabricd/base/loop.h"

#include <event2/thread.h>
#include <signal.h>

#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"

static void loop_on_signal(int signo, void *arg)
{
    struct loop *loop = arg;
    if (signo == SIGHUP) {
        loop->on_hangup(loop->cbdata);
        return;
    }
    log_info("%s: stopping", signo == SIGTERM ? "SIGTERM" : "SIGINT");
    loop->ended = true;
    notify_send("STOPPING=1");
    event_base_loopbreak(loop->base);
}

/* From the loop itself: one that hangs falls silent, and the manager starts fabricd anew. */
static void loop_on_alive(void *arg)
{
    const struct loop *loop = arg;
    notify_send(NOTIFY_ALIVE);
    timer_after_us(loop->alive, notify_watchdog() / 2);
}

static bool loop_watch(struct loop *loop)
{
    if (notify_watchdog() == 0)
        return true;
    loop->alive = timer_new(loop->base, loop_on_alive, loop);
    if (loop->alive != NULL)
        timer_after_us(loop->alive, notify_watchdog() / 2);
    return loop->alive != NULL;
}

int loop_new(struct loop *loop)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
    evthread_use_pthreads();
    loop->base = event_base_new();
    bool ok = loop->base != NULL;
    for (size_t i = 0; ok && i < 3; i++) {
        loop->signals[i] = watch_signal(loop->base, signals[i], loop_on_signal, loop);
        ok = loop->signals[i] != NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    return ok && loop_watch(loop) ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

void loop_run(struct loop *loop)
{
    while (event_base_loop(loop->base, EVLOOP_ONCE) == 0 && !event_base_got_break(loop->base) &&
           !event_base_got_exit(loop->base))
        if (loop->on_turn != NULL)
            loop->on_turn(loop->cbdata);
}

void loop_free(struct loop *loop)
{
    for (size_t i = 0; i < 3; i++)
        watch_free(loop->signals[i]);
    timer_free(loop->alive);
    if (loop->base != NULL)
        event_base_free(loop->base);
}
