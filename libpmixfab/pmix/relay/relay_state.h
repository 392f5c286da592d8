/*
 * relay_state.h - private parts of the relay: requests, the connection, the subscription. One relay for each
 * process.
 *
 * Two threads use this state. PMIx's progress thread delivers requests, answers and the loss of a connection.
 * The keeper, a thread of the relay, does slow and timed work (connect, notify, deadlines). PMIx functions
 * are called without the lock, because the library may call back, or hold a lock of its own.
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
    pmix_status_t outcome; /* if the scheduler does not answer */
    const char *op;
    pmix_info_t *info;
    size_t n;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

struct relay_subscription {
    uint64_t id;     /* of the subscription under way; 0: none */
    int64_t due;     /* time of the next request, or of giving the connection up if one is under way */
    int64_t asked;   /* time of the last request */
    bool known_any;  /* known holds something */
    bool confirmed;  /* there was an answer on this connection: known is the scheduler's present state */
    bool news_ready; /* news waits to be handled */
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
    bool poked;                /* an event that the keeper has not handled yet */
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
    size_t waiting;   /* requests of the list that are not sent */
    int64_t wakes_at; /* next wake-up of the keeper */
    struct relay_subscription subscription;
    /* of a run directory (relay_local.c); else NULL */
    struct rundir_snapshots *snapshots;
    struct dir_watch *watch;
    bool look; /* there may be a change */
};
extern struct relay fab_relay;

/*
 * Return between half and one and a half of the pause, at random: a thousand servers must not reconnect at
 * the same moment.
 */
int64_t relay_with_jitter(unsigned pause);
/* Lock held: wake the keeper. */
void relay_poke(struct relay *relay);
/* Lock held: the connection is lost; requests under way wait again. */
void relay_lost(struct relay *relay);
/* Lock held: the request is no longer under way. */
void relay_forget_attempt(struct relay *relay, struct relay_request *request);

/* ---- relay_requests.c: with the lock held, which they may release meanwhile ------------------------ */

/* Send the waiting requests. */
void relay_send_waiting(struct relay *relay);
/* Answer all requests past their deadline (all: every one) and return the next deadline; INT64_MAX: none. */
int64_t relay_expire(struct relay *relay, int64_t now, bool all);

/*
 * Before 6.0 the library does not pass the error of a query to a client (docs/relay.md): the answer then has
 * no value instead.
 */
static inline pmix_status_t relay_error_of_query(pmix_status_t status)
{
    return PMIX_VERSION_MAJOR < 6 ? PMIX_SUCCESS : status;
}

/* ---- relay_local.c: where a run directory has snapshots, and no server's URI ---------------------- */

int relay_local_open(struct relay *relay);
void relay_local_close(struct relay *relay);
/* Lock held, on the keeper only: store news if something has changed. */
void relay_local_look(struct relay *relay);
/* Return false if it is not answered here. Lock not held. */
bool relay_local_answer(const pmix_proc_t *requestor, pmix_fabric_operation_t op,
                        const pmix_info_t *directives, const pmix_query_t *queries, size_t n,
                        pmix_info_cbfunc_t cbfunc, void *cbdata);

/* ---- relay_link.c -------------------------------------------------------------------------------- */

/* Make one attempt; close its result. Lock not held; on the keeper only. */
bool relay_link_connect(struct relay *relay);
void relay_link_close(struct relay *relay);
/* Sleep until a wake-up, the loss of the connection, or the timeout (-1: none). Lock held. */
void relay_wait(struct relay *relay, int milliseconds);
/* Return whether it is a PMIx URI (and not a run directory). */
bool relay_is_uri(const char *where);

/* ---- relay_subscription.c: lock held, as above --------------------------------------------------- */

/* Do the work that is due; return the time of the next one. */
int64_t relay_subscription_step(struct relay *relay, int64_t now);
void relay_subscription_reset(struct relay *relay);

/* ---- relay_owner.c ---- */

struct addrinfo;
/* Return whether the socket of this host at a run directory's address belongs to root or fabricd. */
bool relay_owner_is_trusted(const char *rundir, const struct addrinfo *address);

#endif
