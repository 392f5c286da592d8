/*
 * node_mail.h - what the relay's threads have to tell the node's loop.
 *
 * Answers of the scheduler and news of the connection arrive on threads of the PMIx library and of the relay.
 * They are put into a box, which the loop empties.
 */
#ifndef FABRICD_NODE_MAIL_H
#define FABRICD_NODE_MAIL_H

#include <event2/event.h>

#include "pmix/relay.h"

struct mail;

int mail_new(struct event_base *base, struct mail **out);
/* After the relay was closed: nobody writes any more. What was not read is dropped. NULL allowed. */
void mail_free(struct mail *mail);

/* A scheduler's answer. Values may be taken out of data; the rest is freed afterwards. */
struct mail_answer {
    pmix_status_t status;
    pmix_pdata_t *data;
    size_t n;
};
typedef void (*mail_answer_fn)(struct mail_answer *answer, void *cbdata);

/*
 * relay_ask(), with the answer on the loop. fn is called once; or, where an error is returned or the box is
 * freed before, not at all.
 */
int mail_ask(struct mail *mail, const char *op, const pmix_info_t *info, size_t n, unsigned deadline_ms,
             mail_answer_fn fn, void *cbdata);

/* The value of a key in its type; NULL. */
pmix_value_t *mail_value(struct mail_answer *answer, const char *key, pmix_data_type_t type);

/* relay_on_news(), on the loop. To be called before the relay is opened. */
typedef void (*mail_news_fn)(bool connected, const struct relay_news *news, void *cbdata);
void mail_on_news(struct mail *mail, mail_news_fn fn, void *cbdata);

#endif
