#include "fabricd-pmix/pmix_fresh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "topo/snapshot/snapshot.h"

#define LOOK_MS 1000

struct pmix_fresh {
    struct event_base *base;
    const char *rundir;
    void (*changed)(bool stale, void *cbdata);
    void *cbdata;
    struct timer *timer;
    struct watch *watch;
    int fd;        /* an open question; -1: none */
    int64_t asked; /* time of the question, microseconds of the monotonic clock */
    bool stale, known;
};

static void fresh_close(struct pmix_fresh *fresh)
{
    watch_free(fresh->watch);
    fresh->watch = NULL;
    if (fresh->fd >= 0)
        close(fresh->fd);
    fresh->fd = -1;
}

static void fresh_set(struct pmix_fresh *fresh, bool stale)
{
    if (fresh->known && fresh->stale == stale)
        return;
    fresh->known = true;
    fresh->stale = stale;
    fresh->changed(stale, fresh->cbdata);
}

static bool fresh_is_marked(const struct pmix_fresh *fresh)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/" FAB_RUNDIR_STALE, fresh->rundir);
    return access(path, F_OK) == 0;
}

/* Any answer, also the end of the connection, shows that fabricd's loop runs. */
static void fresh_on_answer(int fd, void *arg)
{
    struct pmix_fresh *fresh = arg;
    (void)fd;
    fresh_close(fresh);
    fresh_set(fresh, fresh_is_marked(fresh));
}

/* False: no process listens. */
static bool fresh_ask(struct pmix_fresh *fresh)
{
    static const char question[] = "{\"op\":\"ping\"}\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", fresh->rundir);
    if (n < 0 || (size_t)n >= sizeof(address.sun_path) ||
        (fresh->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
        return true; /* no error is known */
    fresh->asked = clock_now(CLOCK_MONOTONIC);
    const bool connected =
        connect(fresh->fd, (const struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
    if (connected) {
        (void)!send(fresh->fd, question, sizeof(question) - 1, MSG_NOSIGNAL);
        fresh->watch = watch_new(fresh->base, fresh->fd, WATCH_READ, fresh_on_answer, fresh);
    }
    if (fresh->watch == NULL)
        fresh_close(fresh);
    return connected;
}

void pmix_fresh_look(struct pmix_fresh *fresh)
{
    if (fresh_is_marked(fresh) || (fresh->fd < 0 && (fresh->stale || !fresh->known) && !fresh_ask(fresh)))
        fresh_set(fresh, true);
}

static void fresh_on_timer(void *arg)
{
    struct pmix_fresh *fresh = arg;
    timer_after(fresh->timer, LOOK_MS);
    if (fresh_is_marked(fresh)) {
        fresh_set(fresh, true);
    } else if (fresh->fd < 0) {
        if (!fresh_ask(fresh))
            fresh_set(fresh, true);
    } else if (clock_now(CLOCK_MONOTONIC) - fresh->asked > FRESH_SILENCE_S * INT64_C(1000000)) {
        if (!fresh->stale)
            log_warning("fabricd has not answered for %d s: the served data is marked as stale",
                        FRESH_SILENCE_S);
        fresh_set(fresh, true);
    }
}

int pmix_fresh_start(struct event_base *base, const char *rundir, bool runs,
                     void (*changed)(bool stale, void *cbdata), void *cbdata, struct pmix_fresh **out,
                     struct fab_err *err)
{
    struct pmix_fresh *fresh = *out = calloc(1, sizeof(*fresh));
    if (fresh == NULL || (fresh->timer = timer_new(base, fresh_on_timer, fresh)) == NULL) {
        free(fresh);
        *out = NULL;
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    fresh->base = base;
    fresh->rundir = rundir;
    fresh->changed = changed;
    fresh->cbdata = cbdata;
    fresh->fd = -1;
    if (runs)
        fresh_set(fresh, fresh_is_marked(fresh));
    else
        pmix_fresh_look(fresh);
    timer_after(fresh->timer, LOOK_MS);
    return PMIXFAB_OK;
}
