/*
 * node_wait.h - a node's long poll for news: what the scheduler publishes, what it holds of this host, and
 * whether the host is to be scanned.
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
    uint64_t (*acked)(void *cbdata); /* what the scheduler holds, as far as the node knows */
    /* at_once: it came sooner than a question is answered without a reason. */
    void (*news)(const struct channel_news *news, bool at_once, void *cbdata);
    void *cbdata;
};

int node_wait_new(struct event_base *base, struct channel_client *client, const struct node_wait_calls *calls,
                  struct node_wait **out);
void node_wait_free(struct node_wait *wait); /* after the client; NULL allowed */

/* There is a connection, or there is none any more. */
void node_wait_connected(struct node_wait *wait, bool connected);

/* Have a timer go off after half to one and a half of that time: a thousand nodes do not come back at the
 * same moment. */
static inline void wait_at_random(struct timer *timer, unsigned milliseconds)
{
    timer_after(timer, milliseconds / 2 + chance_below(milliseconds + 1));
}

#endif
