/*
 * channel_client.h - a node's end of the nodes' channel: one connection to one of the schedulers that are
 * configured, made again with growing pauses, and the requests on it.
 *
 * All on the loop.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_CLIENT_H
#define FABRICD_CHANNEL_CHANNEL_CLIENT_H

#include "fabricd/channel/credential.h"
#include "fabricd/config/config.h"

struct channel_client;

struct channel_client_calls {
    /* There is a connection, and it is the scheduler's; or there is none any more. */
    void (*connected)(bool connected, void *cbdata);
    /* No connection is made, because of this; another attempt follows. Each reason is told once in a row. */
    void (*failed)(int code, const char *reason, void *cbdata);
    void *cbdata;
};

/* By scheduler, host and scheduler_user of the configuration, which outlives the client. PMIXFAB_ERR_SYNTAX,
 * _NOMEM. */
int channel_client_new(struct event_base *base, const struct config *config,
                       const struct channel_client_calls *calls, struct channel_client **out,
                       struct fab_err *err);
void channel_client_free(struct channel_client *client); /* NULL allowed; nothing is answered any more */

/* Connect, now and whenever there is no connection. */
void channel_client_start(struct channel_client *client);
/* The connection is of no use: make another one. */
void channel_client_reset(struct channel_client *client);

struct channel_reply {
    int code;           /* PMIXFAB_OK: it is the answer; else nothing else is there but the reason */
    const char *reason; /* as long as fn runs */
    bool away;     /* it is not the scheduler's word: it was not reached, or munge of this host was not */
    uint8_t *body; /* free()d afterwards, unless it is taken (set to NULL) */
    size_t size;
};
typedef void (*channel_reply_fn)(struct channel_reply *reply, void *cbdata);

/*
 * Ask. Takes the body (malloc'ed), also on error. Waits for a connection while the deadline lasts, and is
 * sent once. most: bytes of the answer's body. fn is called once, never from within: with PMIXFAB_ERR_UNREACH
 * where there is no connection or it is lost, _TIMEOUT. PMIXFAB_ERR_NOMEM: it is not called.
 */
int channel_client_ask(struct channel_client *client, enum channel_type type, void *body, size_t size,
                       size_t most, unsigned deadline_ms, channel_reply_fn fn, void *cbdata);

#endif
