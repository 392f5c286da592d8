/*
 * channel.h - interface of the nodes' channel: its messages, a node's end, the scheduler's end.
 * docs/design/channel.md describes the channel. All on the loop.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_H
#define FABRICD_CHANNEL_CHANNEL_H

#include "fabricd/base/counts.h"
#include "fabricd/channel/credential.h"
#include "fabricd/config/config.h"
#include "fabricd/serving/served.h"
#include "topo/model/report.h"

/* ---- messages ------------------------------------------------------------------------------------- */

/* An answer has the type of its request plus CHANNEL_IS_ANSWER. */
#define CHANNEL_IS_ANSWER 0x10
enum channel_type {
    CHANNEL_HELLO = 1,
    CHANNEL_DELIVER,
    CHANNEL_WAIT,
    CHANNEL_FETCH,
    CHANNEL_WELCOME = CHANNEL_HELLO | CHANNEL_IS_ANSWER,
    CHANNEL_ACCEPTED = CHANNEL_DELIVER | CHANNEL_IS_ANSWER, /* has a code, which may be an error */
    CHANNEL_NEWS = CHANNEL_WAIT | CHANNEL_IS_ANSWER,
    CHANNEL_SNAPSHOT = CHANNEL_FETCH | CHANNEL_IS_ANSWER,
    CHANNEL_REFUSED = 0x1f /* in place of any answer; it has no credential */
};

#define CHANNEL_NONCE      16
#define CHANNEL_MAX_WORDS  1024 /* bytes of a body other than a delivery, news or a snapshot */
#define CHANNEL_MAX_PLANES 4096
#define CHANNEL_MAX_NEWS   (64 + CHANNEL_MAX_PLANES * 128)

/* The bodies. A put function returns the number of bytes, a get function PMIXFAB_OK or _CORRUPT. */

struct channel_hello {
    uint8_t nonce[CHANNEL_NONCE];
    char host[FAB_HOST_MAX + 1];
};
size_t channel_put_hello(const struct channel_hello *hello, uint8_t out[CHANNEL_MAX_WORDS]);
int channel_get_hello(const void *body, size_t size, struct channel_hello *out);

/* The answer to a delivery, or a refusal (only the code is used, held is 0). A long reason is truncated. */
struct channel_outcome {
    int code;      /* PMIXFAB_OK, PMIXFAB_ERR_... */
    uint64_t held; /* digest of the stored report of the host; 0: none */
    char reason[512];
};
size_t channel_put_outcome(const struct channel_outcome *outcome, uint8_t out[CHANNEL_MAX_WORDS]);
int channel_get_outcome(const void *body, size_t size, struct channel_outcome *out);

struct channel_wait {
    uint64_t held; /* digest of the report that the node takes for acknowledged */
    uint64_t generation;
    int64_t published;
    /* the last state that was sent to the node; at_once: answer without waiting for a change */
    bool stale, at_once;
};
size_t channel_put_wait(const struct channel_wait *wait, uint8_t out[CHANNEL_MAX_WORDS]);
int channel_get_wait(const void *body, size_t size, struct channel_wait *out);

struct channel_fetch {
    uint32_t index;
    uint64_t generation;
};
size_t channel_put_fetch(const struct channel_fetch *fetch, uint8_t out[CHANNEL_MAX_WORDS]);
int channel_get_fetch(const void *body, size_t size, struct channel_fetch *out);

struct channel_plane {
    uint32_t index;
    uint64_t generation;
    int64_t published;
    uint64_t size; /* of its snapshot, in bytes */
    char name[64];
};
struct channel_news {
    uint64_t held, generation;
    int64_t published;
    bool stale, scan; /* stale: the scheduler's sweeps fail; scan: this host has to be scanned */
    uint32_t n;
    struct channel_plane *planes; /* free() */
};
/* Encode news. *out: free(). PMIXFAB_ERR_NOMEM, _RANGE (too many planes). */
int channel_put_news(const struct channel_news *news, void **out, size_t *size);
int channel_get_news(const void *body, size_t size, struct channel_news *out); /* also PMIXFAB_ERR_NOMEM */

/* ---- a node's end: one connection to one of the configured schedulers ----------------------------- */

struct channel_client;

struct channel_client_calls {
    /* A connection to a verified scheduler was made, or it was lost. */
    void (*connected)(bool connected, void *cbdata);
    /* An attempt to connect has failed for this reason; another one follows. Equal reasons in a row are
     * reported once. */
    void (*failed)(int code, const char *reason, void *cbdata);
    void *cbdata;
};

/* Create a client from scheduler, host and scheduler_user of the configuration, which outlives it.
 * PMIXFAB_ERR_SYNTAX, _NOMEM. */
int channel_client_new(struct event_base *base, const struct config *config,
                       const struct channel_client_calls *calls, struct channel_client **out,
                       struct fab_err *err);
void channel_client_free(struct channel_client *client); /* NULL allowed; open requests get no answer */

/* Connect now, and again whenever the connection is lost. */
void channel_client_start(struct channel_client *client);
/* Close the connection and make another one. */
void channel_client_reset(struct channel_client *client);

struct channel_reply {
    int code;           /* PMIXFAB_OK: `body` is the answer; else only `reason` is set */
    const char *reason; /* valid while fn runs */
    bool away;     /* the failure is local: the scheduler was not reached, or munge of this host failed */
    uint8_t *body; /* freed after fn, unless fn sets it to NULL */
    size_t size;
};
typedef void (*channel_reply_fn)(struct channel_reply *reply, void *cbdata);

/*
 * Send a request. Takes the body (malloc'ed), also on error. The request waits for a connection until the
 * deadline, and is sent once. most: limit of the answer's body in bytes. fn is called once, never during this
 * call: with PMIXFAB_ERR_UNREACH without a connection or when it is lost, _TIMEOUT. Returns
 * PMIXFAB_ERR_NOMEM: fn is not called.
 */
int channel_client_ask(struct channel_client *client, enum channel_type type, void *body, size_t size,
                       size_t most, unsigned deadline_ms, channel_reply_fn fn, void *cbdata);

/* ---- the scheduler's end: connected nodes, and the answers ---------------------------------------- */

struct channel_server;
struct channel_request; /* a delivery without an answer yet */

struct channel_server_calls {
    /* Return the digest of the stored report of this host; 0: none. */
    uint64_t (*held)(const char *host, void *cbdata);
    /*
     * Process a delivery with a valid credential of this maker, which may be a node of any host. bytes:
     * free(). channel_answer() sends the answer, perhaps before this returns.
     */
    void (*deliver)(const struct credential_maker *maker, void *bytes, size_t size,
                    struct channel_request *request, void *cbdata);
    void *cbdata;
};

/* Create a server that does not listen yet. NULL: no memory. */
struct channel_server *channel_server_new(struct event_base *base, struct credential_worker *worker);
void channel_server_free(struct channel_server *server); /* NULL allowed */

/*
 * Listen at the addresses of [nodes] listen. If this is not set, listen at all addresses with [security]
 * remote = yes, else nowhere. served: the published planes. PMIXFAB_ERR_IO, _NOTFOUND (no such interface, no
 * such user), _NOMEM.
 */
int channel_server_start(struct channel_server *server, const struct channel_server_calls *calls,
                         const struct config *config, struct served *served, struct counts *counts,
                         struct fab_err *err);
/* Close all connections; nodes connect again by themselves. The worker is not used any more. */
void channel_server_stop(struct channel_server *server);

/*
 * Answer a delivery and free the request. code 0: the delivery is stored, `held` is the digest now stored
 * for its host, and the reason is "". code 1: the delivery cannot be processed now.
 */
void channel_answer(struct channel_request *request, int code, uint64_t held, const char *reason);

/* Send news to the nodes: the published planes or their stale state have changed. */
void channel_server_tell(struct channel_server *server);
/* Note that another report is now stored for this host. */
void channel_server_held(struct channel_server *server, const char *host);
/* Request a scan of a node's devices and their delivery, changed or not. host NULL: all connected nodes. The
 * request to a node that is not connected waits for 40 s. */
void channel_server_scan(struct channel_server *server, const char *host);

struct channel_server_status {
    bool listening;
    uint16_t port;
    unsigned connected; /* nodes */
    unsigned unproven;  /* connections without a verified credential */
};
void channel_server_status(const struct channel_server *server, struct channel_server_status *out);

#endif
