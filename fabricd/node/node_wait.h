/*
 * node_wait.h - a node's long poll for news of the scheduler. The news are the published generation, the
 * digest of this host's stored report, and whether the scheduler requests a scan.
 *
 * All on the loop.
 */
#ifndef FABRICD_NODE_NODE_WAIT_H
#define FABRICD_NODE_NODE_WAIT_H

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/channel/channel.h"

struct node_wait;

struct node_wait_calls {
    uint64_t (*acked)(void *cbdata); /* returns the digest that the scheduler is known to hold */
    /* Called for each answer. at_once: it came sooner than an answer without news. */
    void (*news)(const struct channel_news *news, bool at_once, void *cbdata);
    void *cbdata;
};

int node_wait_new(struct event_base *base, struct channel_client *client, const struct node_wait_calls *calls,
                  struct node_wait **out);
void node_wait_free(struct node_wait *wait); /* after the client; NULL allowed */

/* Note that a connection was made, or lost. */
void node_wait_connected(struct node_wait *wait, bool connected);

/* Start a timer with 0.5 to 1.5 times that time, so that a thousand nodes do not come back at the same
 * moment. */
static inline void wait_at_random(struct timer *timer, unsigned milliseconds)
{
    timer_after(timer, milliseconds / 2 + chance_below(milliseconds + 1));
}

#endif
