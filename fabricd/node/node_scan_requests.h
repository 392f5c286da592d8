/*
 * node_scan_requests.h - a node's long poll for what the scheduler wants of it, and what that holds of this
 * host.
 *
 * All on the loop.
 */
#ifndef FABRICD_NODE_NODE_SCAN_REQUESTS_H
#define FABRICD_NODE_NODE_SCAN_REQUESTS_H

#include "fabricd/base/timer.h"
#include "fabricd/config/config.h"
#include "fabricd/node/node_queue.h"

struct scan_requests;

struct scan_requests_calls {
    uint64_t (*held)(void *cbdata); /* what the scheduler holds, as far as the node knows */
    /* order: RELAY_SCAN, or "". at_once: it came sooner than a long poll is answered without a reason. */
    void (*take)(const char *order, uint64_t held, bool at_once, void *cbdata);
    void *cbdata;
};

int scan_requests_new(struct event_base *base, const struct config *config, struct loop_queue *queue,
                      const struct scan_requests_calls *calls, struct scan_requests **out);
void scan_requests_free(struct scan_requests *requests); /* NULL allowed */

/* There is a connection, or there is none any more. */
void scan_requests_connected(struct scan_requests *requests, bool connected);

/* Have an event go off after half to one and a half of that time: a thousand nodes do not come back at the
 * same moment. */
void scan_requests_after(struct timer *timer, unsigned milliseconds);

#endif
