/*
 * entry.h - internals of the intake: a delivery in progress, and declarations shared by the files of the
 * room.
 */
#ifndef FABRICD_SOURCES_ENTRY_H
#define FABRICD_SOURCES_ENTRY_H

#include <netinet/in.h>
#include <stdbool.h>

#include "fabricd/sources/ingest.h"

#define INGEST_MAX_ITEMS 4096               /* accepted and not yet answered */
#define INGEST_MAX_BYTES ((size_t)64 << 20) /* total size */
#define INGEST_BURST     8                  /* deliveries of a host at once, */
#define INGEST_REFILL_MS 1000               /* and one more each such time */

/* ---- ingest_auth.c: check that the maker of a delivery may describe that host --------------------- */

/* The addresses of a name. */
struct ingest_addresses {
    uint32_t n;
    struct in_addr at[64];
};

/* A delivery during its check, which queries munge or the resolver, one query at a time. */
struct ingest_check {
    enum ingest_ask { INGEST_NOTHING, INGEST_IS_OURS, INGEST_RESOLVE } ask; /* the next query */
    struct credential_maker maker;
    void *bytes; /* free() */
    size_t size;
    struct fab_delivery delivery; /* its body is part of the bytes */
    bool is_ours;                 /* results of the queries */
    struct ingest_addresses addresses;
    int error;
    int64_t began; /* start of the query for the name, milliseconds */
};

/*
 * Continue the check. own: this host's configured name. now: monotonic milliseconds. True: the caller must
 * run the query check->ask and store its result in the check. False: *rc is the result: 0, PMIXFAB_ERR_PERM
 * (another host), _BUSY (names cannot be resolved now), or the error of the bytes. err names uid, origin and
 * host, as far as known.
 */
struct ingest_names;
bool ingest_check_next(struct ingest_check *check, const char *own, struct ingest_names *names, int64_t now,
                       int *rc, struct fab_err *err);

/* ---- ingest_resolve.c ------------------------------------------------------------------------------- */

/* Cached answers of the resolver. Begins as zeros. */
struct ingest_names {
    struct resolved_name *names;
    struct resolved_origin *origins;
    int64_t away_until; /* the name server does not answer */
    int away;           /* the resolver's error then */
};

struct ingest_name {
    enum {
        NAME_RIGHT,  /* the address belongs to that host */
        NAME_WRONG,  /* it does not; `first` does, if the name has an address */
        NAME_FAILED, /* the resolver's error is `error`, EAI_... */
        NAME_LATER,  /* the address has just named a host whose slow query failed */
    } state;
    struct in_addr first;
    int error;
};

/* Compare a host's name and the address by cached answers. now: milliseconds. False: the name must be
 * resolved. */
bool ingest_name_known(const struct ingest_names *names, const char *host, struct in_addr origin, int64_t now,
                       struct ingest_name *out);

/* Cache the resolver's result of a query between these times, `error` or all addresses, and compare. */
struct ingest_name ingest_name_learn(struct ingest_names *names, const char *host, struct in_addr origin,
                                     int error, const struct ingest_addresses *all, int64_t began,
                                     int64_t now);

/* Return whether the error concerns the resolver, not the name. */
bool ingest_names_may_pass(int error);

void ingest_names_clear(struct ingest_names *names);

#endif
