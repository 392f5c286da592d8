/*
 * channel_frame.h - the bytes of the nodes' channel: frames, what stands in them, and what their credentials
 * seal. docs/design/channel.md describes them.
 *
 * A frame is a head, a munge credential and a body in clear text. The payload of the credential (the seal)
 * names the frame and has the SHA-256 of its body. The head, the seal and CHANNEL_REFUSED are the same in all
 * versions of the protocol. Everything here is pure.
 */
#ifndef FABRICD_CHANNEL_CHANNEL_FRAME_H
#define FABRICD_CHANNEL_CHANNEL_FRAME_H

#include <event2/buffer.h>
#include <stdbool.h>
#include <stdint.h>

#include "topo/base/error.h"
#include "topo/model/report.h"

#define CHANNEL_VERSION 1

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

#define CHANNEL_HEAD           24
#define CHANNEL_NONCE          16
#define CHANNEL_DIGEST         32
#define CHANNEL_SEAL           80
#define CHANNEL_MAX_CREDENTIAL 4096 /* bytes; munged makes some 250 of a seal */
#define CHANNEL_MAX_WORDS      1024 /* bytes of a body that is neither a delivery, nor news, nor a snapshot */
#define CHANNEL_MAX_PLANES     4096
#define CHANNEL_MAX_NEWS       (64 + CHANNEL_MAX_PLANES * 128)

/* ---- frames ---- */

struct channel_head {
    uint16_t version;
    uint8_t type;                       /* enum channel_type, unless the version is another one */
    uint32_t request, credential, body; /* its number; sizes in bytes */
};

/* Appends a whole frame; body is copied. PMIXFAB_ERR_NOMEM. */
int channel_put(struct evbuffer *out, const struct channel_head *head, const char *credential,
                const void *body);
/* The same without the body, which the caller appends. */
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

/* ---- seals ---- */

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

/* ---- bodies: a put returns the number of bytes, a get PMIXFAB_OK or _CORRUPT ---- */

struct channel_hello {
    uint8_t nonce[CHANNEL_NONCE];
    char host[FAB_HOST_MAX + 1];
};
size_t channel_put_hello(const struct channel_hello *hello, uint8_t out[CHANNEL_MAX_WORDS]);
int channel_get_hello(const void *body, size_t size, struct channel_hello *out);

/* The answer to a delivery, and (code alone, held 0) a refusal. The reason is cut where it is too long. */
struct channel_outcome {
    int code;      /* PMIXFAB_OK, PMIXFAB_ERR_... */
    uint64_t held; /* digest of what is held of the host now; 0: nothing */
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

#endif
