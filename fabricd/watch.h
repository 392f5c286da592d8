/*
 * watch.h - the server side of the long poll: a watcher is answered when something newer is published, or
 * what is has become stale.
 *
 * Each is answered exactly once: at once when it does not know what is served, when something else is
 * published, after RELAY_WATCH_SECONDS, or (PMIX_ERR_NOT_AVAILABLE) at the stop.
 */
#ifndef FABRICD_WATCH_H
#define FABRICD_WATCH_H

#include <event2/event.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stdint.h>

/* On the loop's thread, before the server starts and after it was last called. */
int watch_start(struct event_base *base);
/* Refuse all, and those that come later. */
void watch_stop(void);

/* What a watcher knows. `any` false: nothing. */
struct watch_known {
    bool any;
    uint64_t generation;
    int64_t published;
    bool says_stale; /* it says whether it is stale */
    bool stale;
};

/* PMIX_SUCCESS: it is answered through cbfunc, perhaps before this returns. On the library's thread. */
pmix_status_t watch_add(const struct watch_known *known, pmix_lookup_cbfunc_t cbfunc, void *cbdata);

/* Another set is being served, or it has become stale, or is it no more. */
void watch_published(void);

/* How many wait. */
unsigned watch_count(void);

#endif
