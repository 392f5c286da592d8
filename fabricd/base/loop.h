/* loop.h - the event loop of a role, and its signals: SIGTERM and SIGINT end it. */
#ifndef FABRICD_BASE_LOOP_H
#define FABRICD_BASE_LOOP_H

#include <event2/event.h>
#include <stdbool.h>

#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"

struct loop {
    struct event_base *base;
    struct watch *signals[3];
    bool ended;                      /* by a signal */
    struct timer *alive;             /* sends NOTIFY_ALIVE to the service manager; NULL: no watchdog */
    void (*on_hangup)(void *cbdata); /* called at SIGHUP */
    void (*on_turn)(
        void *cbdata); /* called after each turn of loop_run(), when all due events are done; NULL: nothing */
    void *cbdata;
};

/* Initialize; the caller has set on_hangup and cbdata. Other threads may use its events. PMIXFAB_ERR_NOMEM;
 * call loop_free() also then. */
int loop_new(struct loop *loop);

/* Run until the loop is left. */
void loop_run(struct loop *loop);
void loop_free(struct loop *loop); /* after all other events of the loop are freed */

#endif
