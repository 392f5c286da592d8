/*
 * channel_stream.h - TCP connections of the nodes' channel, on the loop. The simulation plays this file.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_STREAM_H
#define FABRICD_CHANNEL_CHANNEL_STREAM_H

#include <event2/buffer.h>
#include <event2/event.h>

#include "fabricd/channel/credential.h"

struct stream;

struct stream_calls {
    void (*connected)(void *cbdata);                  /* of stream_connect() alone */
    void (*bytes)(struct evbuffer *in, void *cbdata); /* there are some; what is left in it waits for more */
    void (*sent)(void *cbdata);                       /* all that was written */
    void (*lost)(const char *why, void *cbdata);      /* once; the stream is still to be closed */
};

/* Never calls back from within. NULL: no memory, or no descriptor. */
struct stream *stream_connect(struct event_base *base, const union credential_address *to,
                              const struct stream_calls *calls, void *cbdata);
void stream_use(struct stream *stream, const struct stream_calls *calls, void *cbdata); /* of one accepted */

/* Where to append what is to be sent. */
struct evbuffer *stream_out(struct stream *stream);

/* Drops what is not sent; calls back no more. NULL allowed. */
void stream_close(struct stream *stream);
/* Close it when all is sent, or after 5 s. */
void stream_finish(struct stream *stream);

/* ---- the scheduler's side ---- */

struct stream_listener;
/* from: of the other end. The stream is the receiver's. */
typedef void (*stream_accept_fn)(struct stream *stream, const union credential_address *from, void *cbdata);

/* address NULL: all of this host. port 0: one that the system chooses. err says what to do. */
int stream_listen(struct event_base *base, const char *address, uint16_t port, stream_accept_fn accept,
                  void *cbdata, struct stream_listener **out, struct fab_err *err);
uint16_t stream_port(const struct stream_listener *listener);
void stream_listener_free(struct stream_listener *listener); /* NULL allowed */

#endif
