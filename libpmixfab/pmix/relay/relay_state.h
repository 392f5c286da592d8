/*
 * relay_state.h - the relay's parts: requests, the connection, the subscription. One relay a process.
 *
 * Two threads meet here: PMIx's progress thread brings requests, answers and the news of a lost connection;
 * the keeper, a thread of the relay's own, does what takes time (connect, notify) or comes with time
 * (deadlines). PMIx functions are called without the lock, since the library may call back, or hold a lock of
 * its own.
 */
#ifndef FAB_PMIX_RELAY_RELAY_STATE_H
#define FAB_PMIX_RELAY_RELAY_STATE_H

#include <pmix_server.h>
#include <pthread.h>

#include "pmix/relay/relay.h"
#include "topo/base/backoff.h"

/* One request of a client. The list is in the order of deadlines. */
struct relay_request {
    struct relay_request *prev, *next;
    uint64_t id; /* of the latest attempt; 0: not sent */
    unsigned refs;
    int64_t deadline;
    pmix_status_t outcome; /* of one that the scheduler does not answer */
    const char *op;
    pmix_info_t *info;
    size_t n;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

struct relay_subscription {
    uint64_t id;     /* of the subscription under way; 0: none */
    int64_t due;     /* when to ask again, or when to give the connection up if it is under way */
    int64_t asked;   /* when that was sent */
    bool known_any;  /* known holds something */
    bool confirmed;  /* on this connection there was an answer: known is what the scheduler serves */
    bool news_ready; /* news is to be worked off */
    struct relay_news known, news;
    struct relay_plane *changed;
    uint32_t n_changed;
    bool pending_told;
    unsigned telling; /* handlers of this process that have not finished */
    int64_t told_until;
};

struct relay {
    pthread_mutex_t lock;
    pthread_cond_t tried_changed;
    int bell; /* eventfd that wakes the keeper */
    pthread_t keeper;
    bool open, closing, tried; /* tried: the first attempt to connect is over */
    bool poked;                /* something happened that the keeper has not seen */
    char *where;
    unsigned deadline_ms;
    /* the connection */
    bool connected, attached; /* attached: the library has an object for it, connected or not */
    unsigned sending;         /* threads inside PMIx_Lookup_nb() */
    struct backoff pause;     /* milliseconds */
    int64_t try_at;
    pmix_proc_t self, server;
    int socket; /* on the library's connection; -1: none */
    /* requests */
    uint64_t last_id;
    struct relay_request *list;
    size_t waiting;   /* of the list, how many are not on their way */
    int64_t wakes_at; /* when the keeper looks up next */
    struct relay_subscription subscription;
    /* of a run directory (relay_local.c); else NULL */
    struct rundir_snapshots *snapshots;
    struct dir_watch *watch;
    bool look; /* something may be new there */
};
extern struct relay fab_relay;

/* From half of the pause to one and a half, by chance: a thousand servers do not come back at the same
 * moment. */
int64_t relay_with_jitter(unsigned pause);
/* Lock held: the keeper is to look up. */
void relay_poke(struct relay *relay);
/* Lock held: the connection is gone; what was on its way waits again. */
void relay_lost(struct relay *relay);
/* Lock held: it is not on its way any more. */
void relay_forget_attempt(struct relay *relay, struct relay_request *request);

/* ---- relay_requests.c: all with the lock held, and they may give it up meanwhile ----------------- */

/* Send what waits. */
void relay_send_waiting(struct relay *relay);
/* Answer all that are past their deadline (all: every one) and return when the next is; INT64_MAX: none. */
int64_t relay_expire(struct relay *relay, int64_t now, bool all);

/* Before 6.0 the error of a query is not passed on to a client (docs/relay.md): without a value it is said.
 */
static inline pmix_status_t relay_error_of_query(pmix_status_t status)
{
    return PMIX_VERSION_MAJOR < 6 ? PMIX_SUCCESS : status;
}

/* ---- relay_local.c: where a run directory has snapshots, and no server's URI ---------------------- */

int relay_local_open(struct relay *relay);
void relay_local_close(struct relay *relay);
/* Lock held, the keeper only: news that are to be worked off, where something has changed. */
void relay_local_look(struct relay *relay);
/* False: nothing of it is answered here. Lock not held. */
bool relay_local_answer(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                        const pmix_info_t *directives, const pmix_query_t *queries, size_t n,
                        pmix_info_cbfunc_t cbfunc, void *cbdata);

/* ---- relay_link.c -------------------------------------------------------------------------------- */

/* One attempt, and the end of what came of it. Lock not held; the keeper only. */
bool relay_link_connect(struct relay *relay);
void relay_link_close(struct relay *relay);
/* Sleep until the bell rings, the connection is lost, or that time is over (-1: never). Lock held. */
void relay_wait(struct relay *relay, int milliseconds);
/* Is it a PMIx URI (and not a run directory)? */
bool relay_is_uri(const char *where);

/* ---- relay_subscription.c: lock held, as above --------------------------------------------------- */

/* Do what is to be done now; returns when there is more to do. */
int64_t relay_subscription_step(struct relay *relay, int64_t now);
void relay_subscription_reset(struct relay *relay);

/* ---- relay_owner.c ---- */

struct addrinfo;
/* A socket of this host that listens at the address which a run directory names is root's or fabricd's. */
bool relay_owner_is_trusted(const char *rundir, const struct addrinfo *address);

#endif
