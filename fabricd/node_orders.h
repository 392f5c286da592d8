/*
 * node_orders.h - a node's long poll for what the scheduler wants of it, and what that holds of this host.
 *
 * All on the loop.
 */
#ifndef FABRICD_NODE_ORDERS_H
#define FABRICD_NODE_ORDERS_H

#include "fabricd/config.h"
#include "fabricd/node_mail.h"

struct orders;

struct orders_calls {
    uint64_t (*held)(void *cbdata); /* what the scheduler holds, as far as the node knows */
    /* order: RELAY_LOOK, or "". at_once: it came sooner than a long poll is answered without a reason. */
    void (*take)(const char *order, uint64_t held, bool at_once, void *cbdata);
    void *cbdata;
};

int orders_new(struct event_base *base, const struct config *config, struct mail *mail,
               const struct orders_calls *calls, struct orders **out);
void orders_free(struct orders *orders); /* NULL allowed */

/* There is a connection, or there is none any more. */
void orders_connected(struct orders *orders, bool connected);

/* Have an event go off after half to one and a half of that time: a thousand nodes do not come back at the
 * same moment. */
void orders_after(struct event *event, unsigned milliseconds);

#endif
