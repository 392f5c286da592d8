/*
 * entry.h - inside the intake: a delivery on its way, and what the files of the room share.
 */
#ifndef FABRICD_SOURCES_ENTRY_H
#define FABRICD_SOURCES_ENTRY_H

#include <netinet/in.h>
#include <stdbool.h>

#include "fabricd/sources/ingest.h"

#define INGEST_MAX_ITEMS 4096               /* taken in and not yet answered */
#define INGEST_MAX_BYTES ((size_t)64 << 20) /* of them */
#define INGEST_BURST     8                  /* deliveries of a host at once, */
#define INGEST_REFILL_MS 1000               /* and one more each time */

/* ---- ingest_auth.c: may the maker of a delivery describe that host? ------------------------------- */

/* Of a name. */
struct ingest_addresses {
    uint32_t n;
    struct in_addr at[64];
};

/* A delivery that is being examined: one question after the other to munge or the resolver. */
struct ingest_check {
    enum ingest_ask { INGEST_NOTHING, INGEST_IS_OURS, INGEST_RESOLVE } ask; /* the next one */
    struct credential_maker maker;
    void *bytes; /* free() */
    size_t size;
    struct fab_delivery delivery; /* its body is inside the bytes */
    bool is_ours;                 /* the answers */
    struct ingest_addresses addresses;
    int error;
    int64_t began; /* when the name was asked for, milliseconds */
};

/*
 * own: this host, as it is configured. True: the question check->ask is to be asked, and its answer put into
 * the check. Else *rc is the result: 0, PMIXFAB_ERR_PERM (another host), _BUSY (names cannot be resolved
 * now), or the error of the bytes; err names uid, origin and host where they are known. now: monotonic
 * milliseconds.
 */
struct ingest_names;
bool ingest_check_next(struct ingest_check *check, const char *own, struct ingest_names *names, int64_t now,
                       int *rc, struct fab_err *err);

/* ---- ingest_resolve.c ------------------------------------------------------------------------------- */

/* Names and what the resolver said of them. Begins as zeros. */
struct ingest_names {
    struct resolved_name *names;
    struct resolved_origin *origins;
    int64_t away_until; /* the name server does not answer */
    int away;           /* what the resolver said then */
};

struct ingest_name {
    enum {
        NAME_RIGHT,  /* the address is one of that host's */
        NAME_WRONG,  /* it is not; `first` is, if it has any */
        NAME_FAILED, /* the resolver says `error`, EAI_... */
        NAME_LATER,  /* the address has just named one that took long and came to nothing */
    } state;
    struct in_addr first;
    int error;
};

/* Is this host's name that of the address, by what was resolved before? now: milliseconds. False: the name is
 * to be resolved. */
bool ingest_name_known(const struct ingest_names *names, const char *host, struct in_addr origin, int64_t now,
                       struct ingest_name *out);

/* The same, by what the resolver has said between these times: `error`, or all addresses. */
struct ingest_name ingest_name_learn(struct ingest_names *names, const char *host, struct in_addr origin,
                                     int error, const struct ingest_addresses *all, int64_t began,
                                     int64_t now);

/* Does an error say something of the resolver, and not of the name? */
bool ingest_names_may_pass(int error);

void ingest_names_clear(struct ingest_names *names);

#endif
