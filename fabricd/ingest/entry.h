/*
 * entry.h - inside the intake: a delivery on its way, and what the files of the room share.
 */
#ifndef FABRICD_INGEST_ENTRY_H
#define FABRICD_INGEST_ENTRY_H

#include <munge.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "fabricd/ingest/ingest.h"

#define INGEST_MAX_CREDENTIAL ((size_t)2 * FAB_DELIVERY_MAX) /* bytes; base64 makes 4 of 3 */
#define INGEST_MAX_ITEMS      4096                           /* taken in and not yet answered */
#define INGEST_MAX_BYTES      ((size_t)64 << 20)             /* of their credentials */
#define INGEST_BURST          8                              /* deliveries of a host at once, */
#define INGEST_REFILL_MS      1000                           /* and one more each time */

/* ---- ingest.c ----------------------------------------------------------------------------------- */

/* A delivery on its way. It is in one place at a time: queue -> the thread's hands -> ready -> the loop ->
 * answered; whoever has it answers it, or passes it on. */
struct ingest_entry {
    struct ingest_item item; /* the first member */
    char *credential;        /* until it is opened */
    void *bytes;             /* what was in it */
    size_t size;             /* what it counts for in the bounds */
    ingest_done_fn done;
    void *cbdata;
    int32_t code;
    uint64_t held;
    struct fab_err reason;
};

struct ingest_entry *ingest_new(void); /* counted; NULL: no memory */
void ingest_free(struct ingest_entry *entry);

/* Is there room for so many bytes more? Counts them. PMIXFAB_ERR_BUSY. */
int ingest_room(struct ingest_entry *entry, size_t size, struct fab_err *err);

/* On to the thread with its credential, or, without one, to the loop. False: nobody is there. */
bool ingest_queue(struct ingest_entry *entry);

/* ingest_start(), but for the doors. */
int ingest_start_thread(struct event_base *base, const struct config *config, ingest_fn fn, void *cbdata,
                        struct fab_err *err);

/* Answer at once, on the loop: with a reason; because nobody is there. */
void ingest_refuse(struct ingest_entry *entry, int code, const char *reason);
void ingest_turn_away(struct ingest_entry *entry);

/* ---- ingest_auth.c ----------------------------------------------------------------------------- */

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

/* What is asked of the checker, which asks munged and the resolver, and of the kernel: a test has others. */
struct ingest_calls {
    munge_err_t (*decode)(const char *credential, struct ingest_credential *out);
    int (*resolve)(const char *host, struct ingest_addresses *out); /* the code is getaddrinfo's */
    bool (*is_ours)(struct in_addr address); /* of an interface of this host, or what its munged says */
    unsigned patience;                       /* seconds that the stop waits for one of them */
    int64_t (*milliseconds)(void);           /* NULL: of the monotonic clock */
};
extern const struct ingest_calls ingest_real_calls;
extern const struct ingest_calls *ingest_calls; /* what ingest_start() takes: these, but in tests */

struct ingest_rules {
    const struct ingest_calls *calls;
    const char *host;      /* this host, as it is configured */
    const char *node_user; /* NULL: only root */
    uid_t node_uid;
};

/*
 * Open a credential: on success *delivery is decoded, its body inside *bytes (free() in any case). Refused:
 * PMIXFAB_ERR_PERM (another user, another host, an old, altered or foreign credential), _UNREACH (no munged),
 * _BUSY (names cannot be resolved now), or what is wrong with the bytes; err names uid, origin and host as
 * far as they are known.
 */
int ingest_open(const struct ingest_rules *rules, const char *credential, struct fab_delivery *delivery,
                void **bytes, unsigned *uid, struct fab_err *err);

#define INGEST_NO_MUNGED "no munged answers on the scheduler's host: nobody can be believed without it"

/* ---- ingest_resolve.c: any thread ----------------------------------------------------------------- */

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
struct ingest_name ingest_name_check(const struct ingest_calls *calls, const char *host,
                                     struct in_addr origin);

/* Does an error say something of the resolver, and not of the name? */
bool ingest_names_may_pass(int error);

void ingest_names_clear(void);

/* ---- ingest_rate.c: any thread ---------------------------------------------------------------- */

/* May this host deliver now? now: monotonic milliseconds. */
bool ingest_allow(const char *host, int64_t now);

/* Has this line not been said within a minute? *unsaid: how many were not, since it was last said. */
bool ingest_say(const char *line, int64_t now, unsigned *unsaid);

void ingest_limits_clear(void);

#endif
