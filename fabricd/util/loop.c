#include "fabricd/util/loop.h"

#include <event2/thread.h>
#include <signal.h>

#include "fabricd/util/log.h"

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
    event_base_loopbreak(loop->base);
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
    return ok ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

void loop_free(struct loop *loop)
{
    for (size_t i = 0; i < 3; i++)
        loop_event_free(loop->signals[i]);
    if (loop->base != NULL)
        event_base_free(loop->base);
}
