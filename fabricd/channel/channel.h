/*
 * channel.h - the nodes' channel, for those who use it: what its messages say, a node's end, the scheduler's
 * end. docs/design/channel.md describes it. All on the loop.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_H
#define FABRICD_CHANNEL_CHANNEL_H

#include "fabricd/base/counts.h"
#include "fabricd/channel/credential.h"
#include "fabricd/config/config.h"
#include "fabricd/serving/served.h"
#include "topo/model/report.h"

/* ---- messages ------------------------------------------------------------------------------------- */

/* An answer is its request and CHANNEL_IS_ANSWER. */
#define CHANNEL_IS_ANSWER 0x10
enum channel_type {
    CHANNEL_HELLO = 1,
    CHANNEL_DELIVER,
    CHANNEL_WAIT,
    CHANNEL_FETCH,
    CHANNEL_WELCOME = CHANNEL_HELLO | CHANNEL_IS_ANSWER,
    CHANNEL_ACCEPTED = CHANNEL_DELIVER | CHANNEL_IS_ANSWER, /* or not: it has a code */
    CHANNEL_NEWS = CHANNEL_WAIT | CHANNEL_IS_ANSWER,
    CHANNEL_SNAPSHOT = CHANNEL_FETCH | CHANNEL_IS_ANSWER,
    CHANNEL_REFUSED = 0x1f /* instead of any answer; it has no credential */
};

#define CHANNEL_NONCE      16
#define CHANNEL_MAX_WORDS  1024 /* bytes of a body that is neither a delivery, nor news, nor a snapshot */
#define CHANNEL_MAX_PLANES 4096
#define CHANNEL_MAX_NEWS   (64 + CHANNEL_MAX_PLANES * 128)

/* Their bodies: a put returns the number of bytes, a get PMIXFAB_OK or _CORRUPT. */

struct channel_hello {
    uint8_t nonce[CHANNEL_NONCE];
    char host[FAB_HOST_MAX + 1];
};
size_t channel_put_hello(const struct channel_hello *hello, uint8_t out[CHANNEL_MAX_WORDS]);
int channel_get_hello(const void *body, size_t size, struct channel_hello *out);

/* The answer to a delivery, and (code alone, held 0) a refusal. The reason is cut where it is too long. */
struct channel_outcome {
    int code;      /* PMIXFAB_OK, PMIXFAB_ERR_... */
    uint64_t held; /* digest of the host's report that is stored; 0: there is none */
    char reason[512];
};
size_t channel_put_outcome(const struct channel_outcome *outcome, uint8_t out[CHANNEL_MAX_WORDS]);
int channel_get_outcome(const void *body, size_t size, struct channel_outcome *out);

struct channel_wait {
    uint64_t held; /* digest of the report that the scheduler has acknowledged, as the node knows it */
    uint64_t generation;
    int64_t published;
    bool stale, at_once; /* as the node was told; the answer does not wait for anything else */
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
    uint64_t size; /* bytes of its snapshot */
    char name[64];
};
struct channel_news {
    uint64_t held, generation;
    int64_t published;
    bool stale, scan; /* the scheduler's sweeps fail; this host is to be scanned */
    uint32_t n;
    struct channel_plane *planes; /* free() */
};
/* *out: free(). PMIXFAB_ERR_NOMEM, _RANGE (too many planes). */
int channel_put_news(const struct channel_news *news, void **out, size_t *size);
int channel_get_news(const void *body, size_t size, struct channel_news *out); /* _NOMEM, too */

/* ---- a node's end: one connection to one of the schedulers that are configured -------------------- */

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

/* ---- the scheduler's end: who is connected, and the answers --------------------------------------- */

struct channel_server;
struct channel_request; /* a delivery that is not answered yet */

struct channel_server_calls {
    /* The digest of this host's report that is stored; 0: there is none. */
    uint64_t (*held)(const char *host, void *cbdata);
    /*
     * A delivery in a good credential of this maker, who may be a node of any host. bytes: free(). It is
     * answered by channel_answer(), perhaps before this returns.
     */
    void (*deliver)(const struct credential_maker *maker, void *bytes, size_t size,
                    struct channel_request *request, void *cbdata);
    void *cbdata;
};

/* It listens nowhere yet. NULL: no memory. */
struct channel_server *channel_server_new(struct event_base *base, struct credential_worker *worker);
void channel_server_free(struct channel_server *server); /* NULL allowed */

/*
 * Listen where [nodes] listen says, or with [security] remote = yes at all addresses; else nowhere. served:
 * what is published. PMIXFAB_ERR_IO, _NOTFOUND (no such interface, no such user), _NOMEM.
 */
int channel_server_start(struct channel_server *server, const struct channel_server_calls *calls,
                         const struct config *config, struct served *served, struct counts *counts,
                         struct fab_err *err);
/* Close all connections: nodes come again by themselves. The worker is needed no more. */
void channel_server_stop(struct channel_server *server);

/* code 0: it is stored; `held`: of its host now; reason: "" for 0. code 1: nobody takes it now. Frees the
 * request. */
void channel_answer(struct channel_request *request, int code, uint64_t held, const char *reason);

/* Something else is published, or it is stale, or it is not: nodes are told. */
void channel_server_tell(struct channel_server *server);
/* What is held of a host is another report. */
void channel_server_held(struct channel_server *server, const char *host);
/* A node (NULL: every one that is connected) is to scan its devices and deliver, changed or not. A node that
 * is not connected is asked when it comes within 40 s. */
void channel_server_scan(struct channel_server *server, const char *host);

struct channel_server_status {
    bool listening;
    uint16_t port;
    unsigned connected; /* nodes */
    unsigned unproven;  /* connections that have not shown who they are */
};
void channel_server_status(const struct channel_server *server, struct channel_server_status *out);

#endif
