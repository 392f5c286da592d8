/*
 * node_queue.h - what the relay's threads have to tell the node's loop.
 *
 * Answers of the scheduler and news of the connection arrive on threads of the PMIx library and of the relay.
 * They are put into a box, which the loop empties.
 */
#ifndef FABRICD_NODE_NODE_QUEUE_H
#define FABRICD_NODE_NODE_QUEUE_H

#include <event2/event.h>

#include "pmix/relay/relay.h"

struct loop_queue;

int loop_queue_new(struct event_base *base, struct loop_queue **out);
/* After the relay was closed: nobody writes any more. What was not read is dropped. NULL allowed. */
void loop_queue_free(struct loop_queue *queue);

/* A scheduler's answer. Values may be taken out of data; the rest is freed afterwards. */
struct loop_queue_answer {
    pmix_status_t status;
    pmix_pdata_t *data;
    size_t n;
};
typedef void (*loop_queue_answer_fn)(struct loop_queue_answer *answer, void *cbdata);

/*
 * relay_ask(), with the answer on the loop. fn is called once; or, where an error is returned or the box is
 * freed before, not at all.
 */
int loop_queue_ask(struct loop_queue *queue, const char *op, const pmix_info_t *info, size_t n,
                   unsigned deadline_ms, loop_queue_answer_fn fn, void *cbdata);

/* The value of a key in its type; NULL. (node_answer.c, for who has no relay.) */
pmix_value_t *loop_queue_value(struct loop_queue_answer *answer, const char *key, pmix_data_type_t type);

/* relay_on_news(), on the loop. To be called before the relay is opened. */
typedef void (*loop_queue_news_fn)(bool connected, const struct relay_news *news, void *cbdata);
void loop_queue_on_news(struct loop_queue *queue, loop_queue_news_fn fn, void *cbdata);

#endif
