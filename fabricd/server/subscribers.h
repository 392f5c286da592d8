/*
 * subscribers.h - the server side of the long poll. A subscriber gets an answer when a newer generation is
 * published, or when the served generation becomes stale.
 *
 * Each subscriber gets exactly one answer, at the first of these times:
 * - at once, if it does not have the served state
 * - at the next publication
 * - after RELAY_SUBSCRIBE_SECONDS
 * - at the stop (PMIX_ERR_NOT_AVAILABLE).
 */
#ifndef FABRICD_SERVER_SUBSCRIBERS_H
#define FABRICD_SERVER_SUBSCRIBERS_H

#include <event2/event.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabricd/serving/served.h"

/* Start before the server starts, and stop after the library's last call. Both on the loop's thread. */
int subscribers_start(struct event_base *base, struct served *served);
/* Refuse all subscribers, and those that come later. */
void subscribers_stop(void);

/* The state that a subscriber has. `any` false: none. */
struct subscriber_knows {
    bool any;
    uint64_t generation;
    int64_t published;
    bool says_stale; /* it reports whether it is stale */
    bool stale;
};

/* Add a subscriber. PMIX_SUCCESS: the answer goes through cbfunc, perhaps before this returns. On the
 * library's thread. */
pmix_status_t subscriber_add(const pmix_proc_t *who, const struct subscriber_knows *known,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata);

/* Note that another set is served, or that its stale state has changed. */
void subscribers_notify(void);

/* Return the number of waiting subscribers. */
unsigned subscribers_count(void);

#endif
