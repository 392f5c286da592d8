/*
 * channel_priv.h - inside the nodes' channel: frames and their seals, TCP, and the end of a connection that a
 * node and the scheduler have alike.
 *
 * A frame is a head, a munge credential and a body in clear text. The payload of the credential (the seal)
 * names the frame and has the SHA-256 of its body.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_PRIV_H
#define FABRICD_CHANNEL_CHANNEL_PRIV_H

#include <event2/buffer.h>

#include "fabricd/channel/channel.h"

#define CHANNEL_VERSION        1
#define CHANNEL_HEAD           24
#define CHANNEL_DIGEST         SERVED_DIGEST
#define CHANNEL_SEAL           80
#define CHANNEL_MAX_CREDENTIAL 4096 /* bytes; munged makes some 250 of a seal */

/* ---- channel_frame.c: the bytes. Pure ------------------------------------------------------------- */

struct channel_head {
    uint16_t version;
    uint8_t type;                       /* enum channel_type, unless the version is another one */
    uint32_t request, credential, body; /* its number; sizes in bytes */
};

/* Appends a head and a credential; behind them comes the body. PMIXFAB_ERR_NOMEM. */
int channel_put_head(struct evbuffer *out, const struct channel_head *head, const char *credential);

/* A frame that is being read. Begins as zeros. */
struct channel_frame {
    struct channel_head head;
    char *credential; /* ends with a 0 */
    uint8_t *body;    /* free(); NULL: it was skipped */
    size_t got;       /* bytes behind the head */
    bool begun;
};

/*
 * The decision on a frame whose head is there, before memory is reserved for it: PMIXFAB_OK, CHANNEL_SKIP
 * (its body is thrown away as it comes), or an error, which ends the reading.
 */
#define CHANNEL_SKIP 2
typedef int (*channel_allow_fn)(const struct channel_head *head, void *cbdata, struct fab_err *err);

/*
 * Read on. PMIXFAB_OK: the frame is whole; the caller takes its memory or clears it, and clears the frame.
 * CHANNEL_MORE: bytes are missing. PMIXFAB_ERR_FOREIGN: the bytes are of another protocol; err says of which,
 * where they show it. _OLDER, _NEWER: of another version of this one. _CORRUPT: a head that contradicts
 * itself; _RANGE: a credential that is too large; _NOMEM; and the errors of `allow`.
 */
#define CHANNEL_MORE 1
int channel_take(struct channel_frame *frame, struct evbuffer *in, channel_allow_fn allow, void *cbdata,
                 struct fab_err *err);
void channel_frame_clear(struct channel_frame *frame);

struct channel_seal {
    uint8_t type;
    uint32_t request;
    uint8_t node[CHANNEL_NONCE];      /* the node's nonce of this connection */
    uint8_t scheduler[CHANNEL_NONCE]; /* the scheduler's; zeros in a HELLO */
};

void channel_digest(const void *body, size_t size, uint8_t digest[CHANNEL_DIGEST]);
void channel_seal_put(const struct channel_seal *seal, const uint8_t digest[CHANNEL_DIGEST],
                      uint8_t out[CHANNEL_SEAL]);
/* PMIXFAB_ERR_FOREIGN: the payload is no seal; _PERM: it seals another frame, of another connection, or
 * another body. */
int channel_seal_check(const struct channel_seal *seal, const uint8_t digest[CHANNEL_DIGEST],
                       const void *payload, size_t size, struct fab_err *err);

/* ---- credential.c: seals become credentials, and are read out of them ----------------------------- */

/*
 * A body that munge is asked for. When the call is cancelled it is released, on any thread; when `done` is
 * called it is its caller's again.
 */
struct channel_body {
    const void *bytes;
    size_t size;
    evbuffer_ref_cleanup_cb release;
    void *owner;
    struct served_digest *digest; /* kept with the owner, so that it is computed once; or NULL */
};

/*
 * text NULL: make a credential of the seal. Else open this one (free(), taken also where NULL is returned),
 * and compare. NULL: the queue is full, or there is no memory; the body stays the caller's.
 */
struct credential_job *credential_munge(struct credential_worker *worker, const struct channel_seal *seal,
                                        char *text, const struct channel_body *body, credential_done_fn done,
                                        void *cbdata);
/* What is wrong: PMIXFAB_OK, PMIXFAB_ERR_UNREACH (no munged), _PERM, _FOREIGN, _NOMEM. here: "this host". */
int credential_explain(const struct credential_result *result, const char *here, struct fab_err *err);

/* ---- channel_stream.c: TCP. The simulation plays this file ---------------------------------------- */

struct stream;
struct stream_calls {
    void (*connected)(void *cbdata);                  /* of stream_connect() alone */
    void (*bytes)(struct evbuffer *in, void *cbdata); /* there are some; what is left in it waits for more */
    void (*sent)(void *cbdata);                       /* all that was written; NULL allowed */
    void (*lost)(const char *why, void *cbdata);      /* once; the stream is still to be closed */
};

/* Never calls back from within. NULL: no memory, or no descriptor. */
struct stream *stream_connect(struct event_base *base, const union credential_address *to,
                              const struct stream_calls *calls, void *cbdata);
void stream_use(struct stream *stream, const struct stream_calls *calls, void *cbdata); /* of one accepted */
struct evbuffer *stream_out(struct stream *stream); /* where to append what is to be sent */
void stream_close(struct stream *stream); /* drops what is not sent; calls back no more; NULL allowed */

#define CHANNEL_ADDRESS 64 /* bytes of one as text */
struct stream_listener;
/* from: of the other end. The stream is the receiver's. */
typedef void (*stream_accept_fn)(struct stream *stream, const char *from, void *cbdata);
/* address NULL: all of this host. port 0: one that the system chooses. err says what to do. */
int stream_listen(struct event_base *base, const char *address, uint16_t port, stream_accept_fn accept,
                  void *cbdata, struct stream_listener **out, struct fab_err *err);
uint16_t stream_port(const struct stream_listener *listener);
void stream_listener_free(struct stream_listener *listener); /* NULL allowed */

/* ---- channel_link.c: an end of a connection, with the requests on it ------------------------------ */

/* A request and its answer: the first member of an end's own struct for it. */
struct exchange {
    struct exchange *prev, *next; /* of the link */
    struct link *link;
    uint8_t type;    /* of the request */
    uint32_t number; /* 0: it is not sent */
    /* While munge is asked for a message of it: */
    struct credential_job *job; /* NULL: it is not */
    uint8_t asked;              /* its type */
    struct channel_body body;
};

/* A body that came; free()d afterwards, unless it is taken (set to NULL). */
struct channel_bytes {
    uint8_t *bytes;
    size_t size;
};

/* What an end does. Each is given the link, and may close it. */
struct link_calls {
    struct stream_calls stream; /* bytes: link_on_bytes() */
    channel_allow_fn allow;
    /* A frame is whole. PMIXFAB_OK: its credential is opened for *exchange; CHANNEL_SKIP: it is thrown away;
     * or an error, which ends the connection. */
    int (*came)(const struct channel_frame *frame, struct link *link, struct exchange **exchange,
                struct fab_err *err);
    void (*opened)(struct exchange *exchange, const struct credential_result *result,
                   struct channel_bytes *body);
    /* It is written, or munge does not make its credential. */
    void (*sealed)(struct exchange *exchange, const struct credential_result *result);
    void (*ended)(struct link *link, int code, const char *why); /* for what came; it is still to be closed */
};

/* The first member of an end. It begins as zeros but for these two and the stream. */
struct link {
    const struct link_calls *calls;
    struct credential_worker *worker;
    struct stream *stream; /* NULL: it is closed */
    struct channel_seal nonces;
    struct channel_frame frame;
    struct exchange *exchanges; /* of the owner, who frees them */
    bool finishing;
    bool *closed; /* where bytes are taken from it */
};

void link_on_bytes(struct evbuffer *in, void *link);
/* Seal and send a message of this type. Takes the body, also on error. False: munge cannot be asked. */
bool link_send(struct exchange *exchange, uint8_t type, const struct channel_body *body);
struct channel_body channel_body_of(void *bytes, size_t size); /* of malloc() */
/* Send without a credential. */
void link_refuse(struct link *link, uint32_t number, int code, const char *reason);
/* Munge is asked for nothing more, and nothing is read; what was written is still sent. */
void link_finish(struct link *link);
/* The same, and nothing is sent or called. What it was is zeros again. */
void link_close(struct link *link);

#endif
