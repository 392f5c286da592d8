/*
 * message.h - the words between fabricd and its front, the process that strangers meet: one form for all.
 *
 * A message is three numbers, two texts and a list of planes; its kind says what they mean, and all that a
 * kind does not use is zero and empty. What the front says is hostile until it is decoded: a stranger may
 * have taken it over. The format is not kept across versions: both ends are the same program.
 */
#ifndef FABRICD_FRONT_MESSAGE_H
#define FABRICD_FRONT_MESSAGE_H

#include <event2/buffer.h>

#include "fabricd/serving/plane_ref.h"
#include "topo/base/error.h"

enum front_kind {
    /* ---- fabricd to the front ---- */
    FRONT_BEGIN = 1, /* c: the first number of a tool's name. Serve: what came before this is there */
    FRONT_SERVE, /* a: generation, b: published; all planes with their generations: their files are there */
    FRONT_STALE, /* a: is what is served stale? */
    FRONT_ANNOUNCE, /* a: pending?, b: generation, c: number of the announcement; its planes */
    FRONT_ALIVE,    /* a: number of the question */
    FRONT_LOG,      /* a: level */
    FRONT_CHECKED,  /* a: number of a credential, b: is it good?, c: its uid, and its gid in the upper half */
    /* Before all others. a: role, b: port (0: any) and FRONT_REMOTE, c: uid of the nodes' user plus 1 (0:
     * there is none); run directory, host */
    FRONT_SETTINGS,
    FRONT_LISTEN, /* where to listen, before FRONT_BEGIN: interface, network or address */
    FRONT_REFUSE, /* a: seconds, b: uid plus 1 (0: another host); its address, as IPv6 */
    /* ---- the front to fabricd ---- */
    FRONT_READY,     /* a: what it forbids itself (front.h); URI */
    FRONT_FAILED,    /* a: code (negated); reason */
    FRONT_ANNOUNCED, /* c: number of the announcement */
    FRONT_LIVES,     /* a: number of the question, b: subscribers, c: connections */
    FRONT_NAMED,     /* c: the first number that no tool has in its name */
    FRONT_CHECK,     /* a: number; credential of a connection that is being made */
    FRONT_MEMORY,    /* a: kB of memory that is its own */
    /* ---- both ways: which plane somebody means by index 0 ---- */
    FRONT_MEANT, /* a: rank, b: index; namespace */
    FRONT_KINDS
};

#define FRONT_REMOTE      (UINT64_C(1) << 16) /* in FRONT_SETTINGS: it takes connections of other hosts */
#define FRONT_MAX_PLANES  4096
#define FRONT_MAX_CHECKED 4096 /* bytes of a credential in FRONT_CHECK */
#define FRONT_HEAD        4    /* bytes of the length, which stands in front of each message */

struct front_message {
    enum front_kind kind;
    uint64_t a, b, c;
    const char *text, *more; /* to be put: NULL is empty; received: never NULL */
    uint32_t n;
    const struct event_plane *planes;
    const uint64_t *generations; /* of the planes; NULL: all zero */
};

/* Append it, with its length. PMIXFAB_ERR_NOMEM: nothing is appended. */
int front_message_put(struct evbuffer *out, const struct front_message *message);

/* One that was decoded; its texts stand in the bytes. */
struct front_received {
    struct front_message message;
    struct event_plane *planes;
    uint64_t *generations;
};

/* From the bytes behind the length. PMIXFAB_ERR_CORRUPT: it is none, NOMEM. */
int front_message_read(const void *bytes, size_t size, struct front_received *out);
void front_message_free(struct front_received *received);

#endif
