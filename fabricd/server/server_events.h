/* server_events.h - PMIX_FABRIC_UPDATE_PENDING and PMIX_FABRIC_UPDATED, in pairs, around each published
 * change. */
#ifndef FABRICD_SERVER_SERVER_EVENTS_H
#define FABRICD_SERVER_SERVER_EVENTS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "pmix/rundir/event_order.h"

/*
 * Called on the event loop when the handler inside this process has finished, or had five seconds. Of several
 * the library (4.2.2) waits for the first only: fabricd has at most one.
 */
typedef void (*events_done_fn)(void *cbdata);

/*
 * Raise the event of each change for every connected tool and every handler of this process. One
 * announcement at a time. done may be called
 * before this returns, when there is nothing to wait for.
 */
void events_announce(struct event_base *base, bool pending, const struct order_change *changes, uint32_t n,
                     events_done_fn done, void *cbdata);

#define EVENTS_DEADLINE_S 5

#endif
