/* loop.h - the event loop of a role, and the signals that it takes: SIGTERM and SIGINT end it. */
#ifndef FABRICD_UTIL_LOOP_H
#define FABRICD_UTIL_LOOP_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

struct loop {
    struct event_base *base;
    struct event *signals[3];
    bool ended;                      /* by a signal */
    struct event *alive;             /* says so to the service manager; NULL: it does not ask */
    void (*on_hangup)(void *cbdata); /* at SIGHUP */
    void *cbdata;
};

/* on_hangup and cbdata are set. Other threads may use its events. PMIXFAB_ERR_NOMEM; loop_free() follows. */
int loop_new(struct loop *loop);
void loop_free(struct loop *loop); /* when all other events of it are freed */

/* Have it go off after that time, from now. */
static inline void loop_after(struct event *event, int64_t milliseconds)
{
    const struct timeval time = {.tv_sec = milliseconds / 1000,
                                 .tv_usec = (suseconds_t)(milliseconds % 1000) * 1000};
    event_add(event, &time);
}

/* NULL allowed. */
static inline void loop_event_free(struct event *event)
{
    if (event != NULL)
        event_free(event);
}

#endif
