/* channel.h - messages over a socket, one end: at fabricd, or at its front. */
#ifndef FABRICD_FRONT_CHANNEL_H
#define FABRICD_FRONT_CHANNEL_H

#include <event2/event.h>
#include <stdbool.h>

#include "fabricd/front/message.h"

struct channel;

struct channel_fns {
    /* On the loop. False: the message is not for this end, which closes the channel. */
    bool (*received)(const struct front_message *message, void *cbdata);
    /* On the loop: the other end is gone, or talks nonsense. Nonsense and an end can both be told. */
    void (*closed)(const char *why, void *cbdata);
    void *cbdata;
};

/* max: bytes of a message that comes. Takes the socket, also on error. PMIXFAB_ERR_NOMEM. */
int channel_new(struct event_base *base, int fd, size_t max, const struct channel_fns *fns,
                struct channel **out);
void channel_free(struct channel *channel); /* NULL allowed; `closed` is not called */

/* Any thread. Without memory, or without an other end, it is lost. NULL allowed. */
void channel_send(struct channel *channel, const struct front_message *message);

/* Bytes that the other end has not taken yet. */
size_t channel_waiting(struct channel *channel);

#endif
