/*
 * entry.h - inside the intake: a delivery on its way, and what the files of the room share.
 */
#ifndef FABRICD_SOURCES_ENTRY_H
#define FABRICD_SOURCES_ENTRY_H

#include <munge.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "fabricd/base/bucket.h"
#include "fabricd/base/work.h"
#include "fabricd/sources/ingest.h"

#define INGEST_MAX_CREDENTIAL ((size_t)2 * FAB_DELIVERY_MAX) /* bytes; base64 makes 4 of 3 */
#define INGEST_MAX_ITEMS      4096                           /* taken in and not yet answered */
#define INGEST_MAX_BYTES      ((size_t)64 << 20)             /* of their credentials */
#define INGEST_BURST          8                              /* deliveries of a host at once, */
#define INGEST_REFILL_MS      1000                           /* and one more each time */

/* ---- ingest_auth.c: is a credential good, and may its maker describe that host? ------------------- */

struct ingest_credential {
    void *bytes; /* what is inside; free(); may be there where it is refused, too */
    int size;
    uid_t uid; /* who made it, ... */
    gid_t gid;
    struct in_addr origin; /* ... and on the host with this address */
};

/* Of a name. */
struct ingest_addresses {
    uint32_t n;
    struct in_addr at[64];
};

/* The calls that may take long, each made on a thread: a test has others. */
struct ingest_calls {
    munge_err_t (*decode)(struct checker *checker, const char *credential, struct ingest_credential *out);
    /* the code is getaddrinfo's */
    int (*resolve)(struct checker *checker, const char *host, struct ingest_addresses *out);
    /* of an interface of this host, or what its munged says */
    bool (*is_ours)(struct checker *checker, struct in_addr address);
    unsigned patience;             /* seconds that the stop waits for one of them */
    int64_t (*milliseconds)(void); /* NULL: of the monotonic clock */
};
extern const struct ingest_calls ingest_real_calls;
extern const struct ingest_calls *ingest_calls; /* what ingest_start() takes: these, but in tests */

struct ingest_rules {
    char host[FAB_HOST_MAX + 1]; /* this host, as it is configured */
    char node_user[64];          /* "": only root */
    uid_t node_uid;
};

/* A credential that is being examined: one call after the other, and after each one the loop. */
struct ingest_check {
    const struct ingest_calls *calls;
    struct checker *checker;
    enum ingest_call { INGEST_DECODE, INGEST_IS_OURS, INGEST_RESOLVE } call; /* the next one */
    char *credential;                                                        /* free() */
    struct ingest_credential made;
    struct fab_delivery delivery; /* its body is inside made.bytes */
    munge_err_t munge;            /* what the calls returned */
    bool is_ours;
    struct ingest_addresses addresses;
    int error;
    int64_t began, ended; /* of the last call, milliseconds of `calls` */
};

/* Make the next call. On a thread: nothing but the check is used, and its checker. */
void ingest_check_call(struct ingest_check *check);

/*
 * On the loop, after a call. True: another one is to be made. Else *rc is the result: 0, PMIXFAB_ERR_PERM
 * (another user, another host, an old, altered or foreign credential), _UNREACH (no munged), _BUSY (names
 * cannot be resolved now), or the error of the bytes; err names uid, origin and host where they are known.
 */
struct ingest_names;
bool ingest_check_next(struct ingest_check *check, const struct ingest_rules *rules,
                       struct ingest_names *names, int *rc, struct fab_err *err);

int64_t ingest_check_now(const struct ingest_calls *calls);

#define INGEST_NO_MUNGED "no munged answers on the scheduler's host: nobody can be believed without it"

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

/* ---- ingest.c ----------------------------------------------------------------------------------- */

/* A delivery on its way. It is in one place at a time: queue -> working -> ready -> the receiver's hands ->
 * answered. */
struct ingest_entry {
    struct ingest_item item; /* the first member */
    struct ingest *ingest;
    struct work *work;         /* makes a call of the check */
    struct ingest_check check; /* its bytes are the delivery's, also where there is no credential */
    size_t size;               /* what it counts for in the bounds */
    ingest_done_fn done;
    void *cbdata;
};

struct ingest {
    struct ingest_parts parts;
    const struct ingest_calls *calls;
    struct ingest_rules rules;
    bool stopping;
    struct ingest_item *queue;   /* waits for a thread */
    struct ingest_item *working; /* on a thread */
    unsigned n_working;
    struct ingest_item *ready; /* waits to be received, with others */
    unsigned n;                /* in all of them, and in the receiver's hands */
    size_t bytes;
    int64_t munged_away; /* until then */
    struct timer *gather;
    ingest_fn fn;
    void *cbdata;
    struct ingest_names names;
    struct buckets hosts;
    struct said_lines said;
};

struct ingest_entry *ingest_new(struct ingest *ingest); /* counted; NULL: no memory */
void ingest_free(struct ingest_entry *entry);

/* Is there room for so many bytes more? Counts them. PMIXFAB_ERR_BUSY. */
int ingest_room(struct ingest_entry *entry, size_t size, struct fab_err *err);

/* On with its credential, or, without one, as ready. */
void ingest_queue(struct ingest_entry *entry);

/* ingest_start(), but for the front. */
int ingest_start_alone(const struct ingest_parts *parts, ingest_fn fn, void *cbdata, struct ingest **out,
                       struct fab_err *err);
void ingest_stop_alone(struct ingest *ingest);

/* Answer at once: with a reason; because nobody is there. */
void ingest_refuse(struct ingest_entry *entry, int code, const char *reason);
void ingest_turn_away(struct ingest_entry *entry);

#define INGEST_STOPPED "the scheduler's fabricd is being stopped"

#endif
