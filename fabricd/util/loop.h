/* loop.h - the event loop of a role, and the signals that it takes: SIGTERM and SIGINT end it. */
#ifndef FABRICD_UTIL_LOOP_H
#define FABRICD_UTIL_LOOP_H

#include <event2/event.h>

struct loop {
    struct event_base *base;
    struct event *signals[3];
    void (*on_hangup)(void *cbdata); /* at SIGHUP */
    void *cbdata;
};

/* on_hangup and cbdata are set. Other threads may use its events. PMIXFAB_ERR_NOMEM: loop_free() follows,
 * too.
 */
int loop_new(struct loop *loop);
void loop_free(struct loop *loop); /* when all other events of it are freed */

#endif
