/*
 * side.h - inside the front: the process that hosts the PMIx server. Its loop talks to fabricd; the library's
 * thread answers from the served set, which this process maps.
 */
#ifndef FABRICD_FRONT_SIDE_SIDE_H
#define FABRICD_FRONT_SIDE_SIDE_H

#include <event2/event.h>
#include <pmix_server.h>

#include "fabricd/front/channel.h"
#include "fabricd/serving/served.h"

/* ---- side_channel.c ---- */

/* Before all else: where fabricd reads on whose message this process died. */
void side_take_note(void);
int side_listen(struct event_base *base, const struct channel_fns *fns);
/* To fabricd, from any thread. */
void side_say(const struct front_message *message);

/* ---- side_served.c ---- */

/* Serve this set: planes that are new are mapped. */
void side_serve(const char *rundir, struct served *served, const struct front_message *message);

/* ---- side_deliveries.c: what nodes deliver goes to fabricd, and its answer back ---- */

/* RELAY_DELIVER, on PMIx's thread. */
pmix_status_t side_deliver(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                           pmix_lookup_cbfunc_t cbfunc, void *cbdata);
void side_answer(const struct front_message *message); /* FRONT_ANSWER, FRONT_NOBODY */
void side_refuse_all(void);                            /* those that wait, and all that come */

/* ---- scan_requests.c: what the scheduler wants of nodes ---- */

/* RELAY_SCAN_REQUESTS, on PMIx's thread: a node waits for a scan request; answered when there is one, or
 * after RELAY_SUBSCRIBE_SECONDS. */
pmix_status_t side_scan_requests(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                                 pmix_lookup_cbfunc_t cbfunc, void *cbdata);

/* A node (NULL: every one) is to scan. How many were waiting for an order. On the loop. */
unsigned side_request_scan(const char *host);
/* Digest that is held of a host; 0: nothing. */
void side_held(const char *host, uint64_t digest);

int scan_requests_start_all(struct event_base *base);
void scan_requests_stop_all(void); /* refuses who waits */

#endif
