/*
 * subscribers.h - the server side of the long poll: a subscriber is answered when something newer is
 * published, or what is has become stale.
 *
 * Each is answered exactly once: at once when it does not know what is served, when something else is
 * published, after RELAY_SUBSCRIBE_SECONDS, or (PMIX_ERR_NOT_AVAILABLE) at the stop.
 */
#ifndef FABRICD_SERVER_SUBSCRIBERS_H
#define FABRICD_SERVER_SUBSCRIBERS_H

#include <event2/event.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabricd/serving/served.h"

/* On the loop's thread, before the server starts and after it was last called. */
int subscribers_start(struct event_base *base, struct served *served);
/* Refuse all, and those that come later. */
void subscribers_stop(void);

/* What a subscriber knows. `any` false: nothing. */
struct subscriber_knows {
    bool any;
    uint64_t generation;
    int64_t published;
    bool says_stale; /* it says whether it is stale */
    bool stale;
};

/* PMIX_SUCCESS: it is answered through cbfunc, perhaps before this returns. On the library's thread. */
pmix_status_t subscriber_add(const pmix_proc_t *who, const struct subscriber_knows *known,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata);

/* Another set is being served, or it has become stale, or is it no more. */
void subscribers_notify(void);

/* How many wait. */
unsigned subscribers_count(void);

#endif
