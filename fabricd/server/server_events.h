/* server_events.h - PMIX_FABRIC_UPDATE_PENDING and PMIX_FABRIC_UPDATED, in pairs, around each published
 * change. */
#ifndef FABRICD_SERVER_SERVER_EVENTS_H
#define FABRICD_SERVER_SERVER_EVENTS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "pmix/rundir/event_order.h"

/*
 * Called on the event loop when the handler in this process has finished, or after five seconds. With several
 * handlers the library (4.2.2) waits only for the first: fabricd has one at most.
 */
typedef void (*events_done_fn)(void *cbdata);

/*
 * Raise the event of each change for all connected tools and the handlers of this process. One announcement
 * at a time. Without a handler to wait for, done may be called before this returns.
 */
void events_announce(struct event_base *base, bool pending, const struct order_change *changes, uint32_t n,
                     events_done_fn done, void *cbdata);

#define EVENTS_DEADLINE_S 5

#endif
