/* loop.h - the event loop of a role, and the signals that it takes: SIGTERM and SIGINT end it. */
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
    struct timer *alive;             /* says so to the service manager; NULL: it does not ask */
    void (*on_hangup)(void *cbdata); /* at SIGHUP */
    void (*on_turn)(
        void *cbdata); /* after each turn of loop_run(): all that was due is done; NULL: nothing */
    void *cbdata;
};

/* on_hangup and cbdata are set. Other threads may use its events. PMIXFAB_ERR_NOMEM; loop_free() follows. */
int loop_new(struct loop *loop);

/* Run until the loop is left. */
void loop_run(struct loop *loop);
void loop_free(struct loop *loop); /* when all other events of it are freed */

#endif
