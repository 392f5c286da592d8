/*
 * channel_priv.h - internals of the nodes' channel: frames and their seals, TCP, and the connection code that
 * a node and the scheduler share.
 *
 * A frame is a head, a munge credential and a body in clear text. The payload of the credential (the seal)
 * identifies the frame and has the SHA-256 of its body.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_PRIV_H
#define FABRICD_CHANNEL_CHANNEL_PRIV_H

#include <event2/buffer.h>

#include "fabricd/channel/channel.h"

#define CHANNEL_VERSION        1
#define CHANNEL_HEAD           24
#define CHANNEL_DIGEST         SERVED_DIGEST
#define CHANNEL_SEAL           80
#define CHANNEL_MAX_CREDENTIAL 4096 /* bytes; munged makes about 250 for a seal */

/* ---- channel_frame.c: encoding. Pure functions ---------------------------------------------------- */

struct channel_head {
    uint16_t version;
    uint8_t type;                       /* enum channel_type, if the version is ours */
    uint32_t request, credential, body; /* number of the request; sizes in bytes */
};

/* Append a head and a credential; the body follows. PMIXFAB_ERR_NOMEM. */
int channel_put_head(struct evbuffer *out, const struct channel_head *head, const char *credential);

/* A frame while it is read. Begins as zeros. */
struct channel_frame {
    struct channel_head head;
    char *credential; /* terminated by a 0 */
    uint8_t *body;    /* free(); NULL: it was skipped */
    size_t got;       /* bytes read after the head */
    bool begun;
};

/*
 * Decide about a frame by its head, before memory is reserved: PMIXFAB_OK, CHANNEL_SKIP (its body is
 * discarded), or an error, which ends the reading.
 */
#define CHANNEL_SKIP 2
typedef int (*channel_allow_fn)(const struct channel_head *head, void *cbdata, struct fab_err *err);

/*
 * Continue to read a frame. Return one of these, or an error of `allow`:
 * - PMIXFAB_OK: the frame is complete. The caller takes its memory or frees it, and clears the frame.
 * - CHANNEL_MORE: bytes are missing.
 * - PMIXFAB_ERR_FOREIGN: the bytes belong to another protocol. err names it, if known.
 * - PMIXFAB_ERR_OLDER, _NEWER: another version of this protocol.
 * - PMIXFAB_ERR_CORRUPT: the head is inconsistent.
 * - PMIXFAB_ERR_RANGE: the credential is too large.
 * - PMIXFAB_ERR_NOMEM.
 */
#define CHANNEL_MORE 1
int channel_take(struct channel_frame *frame, struct evbuffer *in, channel_allow_fn allow, void *cbdata,
                 struct fab_err *err);
void channel_frame_clear(struct channel_frame *frame);

struct channel_seal {
    uint8_t type;
    uint32_t request;
    uint8_t node[CHANNEL_NONCE];      /* the node's nonce of this connection */
    uint8_t scheduler[CHANNEL_NONCE]; /* the scheduler's nonce; zeros in a HELLO */
};

void channel_digest(const void *body, size_t size, uint8_t digest[CHANNEL_DIGEST]);
void channel_seal_put(const struct channel_seal *seal, const uint8_t digest[CHANNEL_DIGEST],
                      uint8_t out[CHANNEL_SEAL]);
/* Compare the payload of a credential with the seal. PMIXFAB_ERR_FOREIGN: the payload is not a seal; _PERM:
 * it seals another frame, a frame of another connection, or another body. */
int channel_seal_check(const struct channel_seal *seal, const uint8_t digest[CHANNEL_DIGEST],
                       const void *payload, size_t size, struct fab_err *err);

/* ---- credential.c: credentials that contain seals ------------------------------------------------- */

/*
 * A body whose seal munge processes. If the call is cancelled, `release` is called, on any thread; when
 * `done` is called, the caller owns the body again.
 */
struct channel_body {
    const void *bytes;
    size_t size;
    evbuffer_ref_cleanup_cb release;
    void *owner;
    struct served_digest *digest; /* stored with the owner, so that it is computed once; or NULL */
};

/*
 * Make a credential of the seal (text NULL), or open the credential `text` and compare its seal. `text` is
 * always freed. NULL: the queue is full, or there is no memory. The caller then keeps the body.
 */
struct credential_job *credential_munge(struct credential_worker *worker, const struct channel_seal *seal,
                                        char *text, const struct channel_body *body, credential_done_fn done,
                                        void *cbdata);
/* Return the error of a result: PMIXFAB_OK, PMIXFAB_ERR_UNREACH (no munged), _PERM, _FOREIGN, _NOMEM. here:
 * "this host". */
int credential_explain(const struct credential_result *result, const char *here, struct fab_err *err);

/* ---- channel_stream.c: TCP. The simulation replaces this file ------------------------------------- */

struct stream;
struct stream_calls {
    void (*connected)(void *cbdata); /* only for stream_connect() */
    /* bytes have arrived; those left in `in` stay for the next call */
    void (*bytes)(struct evbuffer *in, void *cbdata);
    void (*sent)(void *cbdata);                  /* all output was written; NULL allowed */
    void (*lost)(const char *why, void *cbdata); /* called once; the stream must still be closed */
};

/* Connect. No callback runs during this call. NULL: no memory, or no descriptor. */
struct stream *stream_connect(struct event_base *base, const union credential_address *to,
                              const struct stream_calls *calls, void *cbdata);
/* sets the calls of an accepted stream */
void stream_use(struct stream *stream, const struct stream_calls *calls, void *cbdata);
struct evbuffer *stream_out(struct stream *stream); /* the output buffer, to append to */
void stream_close(struct stream *stream); /* drops pending output; no callback follows; NULL allowed */

#define CHANNEL_ADDRESS 64 /* size of an address as text */
struct stream_listener;
/* from: address of the other end. The callee owns the stream. */
typedef void (*stream_accept_fn)(struct stream *stream, const char *from, void *cbdata);
/* Listen. address NULL: all addresses of this host. port 0: the system's choice. err has advice. */
int stream_listen(struct event_base *base, const char *address, uint16_t port, stream_accept_fn accept,
                  void *cbdata, struct stream_listener **out, struct fab_err *err);
uint16_t stream_port(const struct stream_listener *listener);
void stream_listener_free(struct stream_listener *listener); /* NULL allowed */

/* ---- channel_link.c: an end of a connection, with the requests on it ------------------------------ */

/* A request and its answer: the first member of an end's own struct for it. */
struct exchange {
    struct exchange *prev, *next; /* in the link's list */
    struct link *link;
    uint8_t type;    /* of the request */
    uint32_t number; /* 0: not sent */
    /* While munge processes one of its messages: */
    struct credential_job *job; /* NULL: none */
    uint8_t asked;              /* type of that message */
    struct channel_body body;
};

/* A received body; freed after the call, unless the callee sets `bytes` to NULL. */
struct channel_bytes {
    uint8_t *bytes;
    size_t size;
};

/* Callbacks of an end. Each gets the link, and may close it. */
struct link_calls {
    struct stream_calls stream; /* bytes: link_on_bytes() */
    channel_allow_fn allow;
    /*
     * A frame is complete. PMIXFAB_OK: its credential is opened for *exchange. CHANNEL_SKIP: the frame is
     * discarded. An error ends the connection.
     */
    int (*came)(const struct channel_frame *frame, struct link *link, struct exchange **exchange,
                struct fab_err *err);
    void (*opened)(struct exchange *exchange, const struct credential_result *result,
                   struct channel_bytes *body);
    /* The message is written, or munge failed to make its credential. */
    void (*sealed)(struct exchange *exchange, const struct credential_result *result);
    void (*ended)(struct link *link, int code, const char *why); /* bad input; must still be closed */
};

/* The first member of an end. All fields begin as zeros, except the first two and the stream. */
struct link {
    const struct link_calls *calls;
    struct credential_worker *worker;
    struct stream *stream; /* NULL: closed */
    struct channel_seal nonces;
    struct channel_frame frame;
    struct exchange *exchanges; /* the owner allocates and frees them */
    bool finishing;
    bool *closed; /* set to true at the close, while link_on_bytes() runs */
};

void link_on_bytes(struct evbuffer *in, void *link);
/* Seal and send a message of this type. Takes the body, also on error. False: munge cannot be asked. */
bool link_send(struct exchange *exchange, uint8_t type, const struct channel_body *body);
struct channel_body channel_body_of(void *bytes, size_t size); /* of malloc() */
/* Send a refusal without a credential. */
void link_refuse(struct link *link, uint32_t number, int code, const char *reason);
/* Stop reading, and cancel all calls of munge; pending output is still sent. */
void link_finish(struct link *link);
/* Do the same, drop the output, and call nothing any more. The link is reset to zeros. */
void link_close(struct link *link);

#endif
