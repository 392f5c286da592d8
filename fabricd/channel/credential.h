/*
 * credential.h - calls of munge and the resolver, without blocking the loop.
 *
 * Two threads call munge, two others the resolver, with a bounded queue each. A munged that hangs is waited
 * for until its library gives up (10 s); calls within a second after that fail at once. A name that is not
 * resolved after 10 s is EAI_AGAIN. All functions are for the loop, which also calls `done`, once and never
 * during the call that starts the job. If a job is cancelled, nobody waits for its thread,
 * which ends after the call.
 */
#ifndef FABRICD_CHANNEL_CREDENTIAL_H
#define FABRICD_CHANNEL_CREDENTIAL_H

#include <event2/event.h>
#include <munge.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "topo/base/error.h"

/* ---- the slow calls; a test replaces them ---- */

/* The maker of a credential, and the host where it was made. */
struct credential_maker {
    uid_t uid;
    gid_t gid;
    struct in_addr origin; /* INADDR_ANY: not known */
};
struct credential_payload {
    struct credential_maker maker;
    void *bytes; /* free(); may be set even when munge rejects the credential */
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
    /* returns getaddrinfo's codes */
    int (*resolve)(const char *host, int family, struct credential_addresses *out);
};
extern const struct credential_calls *credential_calls; /* the calls that new jobs use */

/* ---- the worker ---- */

struct credential_worker;
struct credential_worker *credential_worker_new(struct event_base *base); /* NULL: no memory */
/* Cancel all jobs and free the worker, without waiting for blocked threads. NULL allowed. */
void credential_worker_free(struct credential_worker *worker);

/* Return whether a munge job is running or waiting. */
bool credential_worker_is_busy(const struct credential_worker *worker);

struct credential_result {
    munge_err_t munge;
    char *text;                    /* sealed: the credential; freed after `done` */
    struct credential_maker maker; /* opened: the maker */
    int code;                      /* opened: PMIXFAB_OK, or the error of a credential that munge accepts */
    struct fab_err err;            /* message of that error; credential_explain() covers it */
    bool is_ours;
    int error; /* resolved: 0, or a code of getaddrinfo(); addresses: valid while `done` runs */
    const struct credential_addresses *addresses;
};

/* Start a job. NULL: the queue is full, or there is no memory. */
struct credential_job;
typedef void (*credential_done_fn)(const struct credential_result *result, void *cbdata);
/* Find out whether credentials of this host's munged have this origin. */
struct credential_job *credential_is_ours(struct credential_worker *worker, struct in_addr address,
                                          credential_done_fn done, void *cbdata);
struct credential_job *credential_resolve(struct credential_worker *worker, const char *host, int family,
                                          credential_done_fn done, void *cbdata);
void credential_cancel(struct credential_job *job); /* NULL allowed */

/* Return whether the address is loopback or none: some munged use these as the origin of their host. */
bool credential_is_anywhere(struct in_addr address);
struct credential_where {
    char text[INET_ADDRSTRLEN];
};
struct credential_where credential_address_text(struct in_addr address);

#endif
