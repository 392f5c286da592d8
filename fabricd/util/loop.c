#include "fabricd/util/loop.h"

#include <event2/thread.h>
#include <signal.h>

#include "fabricd/util/log.h"
#include "fabricd/util/notify.h"

static void loop_on_signal(evutil_socket_t signo, short what, void *arg)
{
    struct loop *loop = arg;
    (void)what;
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
static void loop_on_alive(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    notify_send(NOTIFY_ALIVE);
}

static bool loop_watch(struct loop *loop)
{
    const int64_t half = notify_watchdog() / 2;
    const struct timeval time = {.tv_sec = half / 1000000, .tv_usec = (suseconds_t)(half % 1000000)};
    if (half == 0)
        return true;
    loop->alive = event_new(loop->base, -1, EV_PERSIST, loop_on_alive, NULL);
    return loop->alive != NULL && event_add(loop->alive, &time) == 0;
}

int loop_new(struct loop *loop)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
    evthread_use_pthreads();
    loop->base = event_base_new();
    bool ok = loop->base != NULL;
    for (size_t i = 0; ok && i < 3; i++) {
        loop->signals[i] = evsignal_new(loop->base, signals[i], loop_on_signal, loop);
        ok = loop->signals[i] != NULL && event_add(loop->signals[i], NULL) == 0;
    }
    signal(SIGPIPE, SIG_IGN);
    return ok && loop_watch(loop) ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

void loop_free(struct loop *loop)
{
    for (size_t i = 0; i < 3; i++)
        loop_event_free(loop->signals[i]);
    loop_event_free(loop->alive);
    if (loop->base != NULL)
        event_base_free(loop->base);
}
