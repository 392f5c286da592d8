/*
 * credential.h - munge and the resolver, asked beside the loop.
 *
 * Both are called on threads: two for munge, and two others for names, with a bounded queue each. munged that
 * hangs is waited for until its library gives up (10 s); who asks within a second after that hears at once
 * that there is none. A name that is not resolved after 10 s is EAI_AGAIN. Functions are for the loop, which
 * also calls `done`, once and never from within the call that asks. What is cancelled before that is dropped:
 * a thread that still waits ends by itself.
 */
#ifndef FABRICD_CHANNEL_CREDENTIAL_H
#define FABRICD_CHANNEL_CREDENTIAL_H

#include <event2/event.h>
#include <munge.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "topo/base/error.h"

/* ---- the calls that may take long: a test has others ---- */

/* Who made a credential, and where. */
struct credential_maker {
    uid_t uid;
    gid_t gid;
    struct in_addr origin; /* INADDR_ANY: not known */
};
struct credential_payload {
    struct credential_maker maker;
    void *bytes; /* free(); may be there where munge refuses it, too */
    int size;
};

union credential_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
struct credential_addresses {
    uint32_t n;
    union credential_address at[64];
};

struct credential_calls {
    munge_err_t (*encode)(const void *bytes, size_t size, char **text);
    munge_err_t (*decode)(const char *text, struct credential_payload *out);
    int (*resolve)(const char *host, int family, struct credential_addresses *out); /* getaddrinfo's codes */
};
extern const struct credential_calls *credential_calls; /* what a job takes when it is asked for */

/* ---- the worker ---- */

struct credential_worker;
struct credential_worker *credential_worker_new(struct event_base *base); /* NULL: no memory */
/* What is not done is cancelled. Threads that hang are not waited for. NULL allowed. */
void credential_worker_free(struct credential_worker *worker);

/* Is munge being asked, or does somebody wait for that? */
bool credential_worker_is_busy(const struct credential_worker *worker);

struct credential_result {
    munge_err_t munge;
    char *text;                    /* sealed: the credential; gone when `done` returns */
    struct credential_maker maker; /* opened: who made it */
    int code;           /* opened: PMIXFAB_OK, or what is wrong with a credential that munge takes */
    struct fab_err err; /* and in words, for which credential_explain() is enough */
    bool is_ours;
    int error; /* resolved: 0, or what getaddrinfo() says; addresses: as long as `done` runs */
    const struct credential_addresses *addresses;
};

/* NULL: the queue is full, or there is no memory. */
struct credential_job;
typedef void (*credential_done_fn)(const struct credential_result *result, void *cbdata);
/* Are credentials that this host's munged makes of this origin? */
struct credential_job *credential_is_ours(struct credential_worker *worker, struct in_addr address,
                                          credential_done_fn done, void *cbdata);
struct credential_job *credential_resolve(struct credential_worker *worker, const char *host, int family,
                                          credential_done_fn done, void *cbdata);
void credential_cancel(struct credential_job *job); /* NULL allowed */

/* Loopback and no address at all are what some munged says of its host. */
bool credential_is_anywhere(struct in_addr address);
struct credential_where {
    char text[INET_ADDRSTRLEN];
};
struct credential_where credential_address_text(struct in_addr address);

#endif
