#include "fabricd/base/watch.h"

#include <stdlib.h>

struct watch {
    struct event *event;
    watch_fn fn;
    void *cbdata;
};

static void watch_on_event(evutil_socket_t fd, short what, void *arg)
{
    const struct watch *watch = arg;
    (void)what;
    watch->fn(fd, watch->cbdata);
}

static struct watch *watch_make(struct event_base *base, int fd, short events, watch_fn fn, void *cbdata)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return NULL;
    *watch = (struct watch){.fn = fn, .cbdata = cbdata};
    watch->event = event_new(base, fd, events | EV_PERSIST, watch_on_event, watch);
    if (watch->event != NULL && event_add(watch->event, NULL) == 0)
        return watch;
    watch_free(watch);
    return NULL;
}

struct watch *watch_new(struct event_base *base, int fd, enum watch_for ready, watch_fn fn, void *cbdata)
{
    return watch_make(base, fd, ready == WATCH_READ ? EV_READ : EV_WRITE, fn, cbdata);
}

struct watch *watch_signal(struct event_base *base, int number, watch_fn fn, void *cbdata)
{
    return watch_make(base, number, EV_SIGNAL, fn, cbdata);
}

void watch_pause(struct watch *watch)
{
    event_del(watch->event);
}

void watch_resume(struct watch *watch)
{
    event_add(watch->event, NULL);
}

int watch_fd(const struct watch *watch)
{
    return (int)event_get_fd(watch->event);
}

void watch_free(struct watch *watch)
{
    if (watch == NULL)
        return;
    if (watch->event != NULL)
        event_free(watch->event);
    free(watch);
}
