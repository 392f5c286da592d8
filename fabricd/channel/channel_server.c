/* channel_server.c - the scheduler's end: connections and their limits, requests and their answers. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "fabricd/base/address.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/rate.h"
#include "fabricd/base/timer.h"
#include "fabricd/channel/channel_priv.h"
#include "topo/model/delivery.h"

#define MOST_NODES      16384              /* verified connections */
#define MOST_UNPROVEN   1024               /* unverified connections */
#define UNPROVEN_OF_ONE 16                 /* ... of one address */
#define MOST_OF_HOST    4                  /* verified connections of one host */
#define MOST_REQUESTS   16                 /* of a connection, until their answers are sent */
#define MOST_REFUSED    1024               /* the same, including refused requests */
#define MOST_BYTES      ((size_t)64 << 20) /* total of the deliveries that are received or not answered */

#define HELLO_MS   10000    /* until the first frame of a connection is complete */
#define SLOW_MS    60000    /* for any other frame, and for a peer that does not read its answers */
#define IDLE_MS    300000   /* longest time without a request of a node */
#define FINISH_MS  5000     /* longest time to send the reason of a disconnection */
#define SILENCE_MS 20000    /* a request for news is answered after that time at the latest */
#define SCAN_US    40000000 /* how long a scan request waits for its node */

/* A connection. */
struct peer {
    struct link link;
    struct peer *prev, *next; /* in the list of its host, or of unverified peers; the oldest first */
    struct channel_server *server;
    char address[CHANNEL_ADDRESS];
    bool hello;              /* its HELLO has arrived, perhaps not verified yet */
    struct named_host *host; /* NULL: not verified */
    struct timer *late, *silence;
    size_t unsent; /* at the start of `late` */
    size_t coming; /* bytes of the delivery that is being received */
    uint32_t highest;
    uint64_t seen;                   /* bit n: the number highest - n was used */
    unsigned n_requests;             /* requests without a sent answer */
    struct channel_request *waiting; /* the open request for news; NULL: none */
    struct channel_wait known;       /* the state in that request */
    bool look;                       /* there may be news */
    int64_t scanned;                 /* scan_until of the last scan request that was sent */
};

/* A request, until its answer is sent. */
struct channel_request {
    struct exchange x; /* link NULL: its node is gone, and the answer is dropped */
    struct channel_server *server;
    size_t size;         /* part of the server's bytes */
    bool lent, answered; /* lent: the scheduler processes it; answered: the answer is written */
};

/* A host that is connected, or was until a moment ago and has to scan. */
struct named_host {
    UT_hash_handle hh;
    struct peer *nodes;
    int64_t scan_until; /* end of a scan request, microseconds of CLOCK_MONOTONIC; 0: none */
    char name[];
};

struct channel_server {
    struct event_base *base;
    struct credential_worker *worker;
    struct stream_listener *listener;
    struct served *served;
    struct counts *counts;
    char user[64]; /* user of nodes beside root; "": none */
    uid_t uid;     /* of that user */
    struct channel_server_calls calls;
    struct peer *unproven; /* unverified connections; the verified ones are in the lists of the hosts */
    struct named_host *hosts;
    unsigned n_nodes, n_unproven; /* numbers of verified and unverified connections */
    size_t bytes;
    struct timer *look;
    struct log_limit said;
};

/* ---- permitted users ------------------------------------------------------------------------------ */

static int find_user(struct channel_server *server, const struct config *config, struct fab_err *err)
{
    if (config->node_user == NULL)
        return PMIXFAB_OK;
    const struct passwd *user = getpwnam(config->node_user);
    if (user == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "[nodes] user: there is no user \"%.60s\" on this host",
                        config->node_user);
    snprintf(server->user, sizeof(server->user), "%s", config->node_user);
    server->uid = user->pw_uid;
    return PMIXFAB_OK;
}

static int check_user(const struct channel_server *server, const struct credential_maker *maker,
                      const char *host, struct fab_err *err)
{
    if (maker->uid == 0 || (server->user[0] != '\0' && maker->uid == server->uid))
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_PERM, "%s: uid %u on %s may not report for a host: only root%s%.60s may",
                    host, (unsigned)maker->uid, credential_address_text(maker->origin).text,
                    server->user[0] == '\0' ? "" : " and ", server->user);
}

/* ---- hosts ---------------------------------------------------------------------------------------- */

static struct named_host *host_find(const struct channel_server *server, const char *name)
{
    struct named_host *host;
    HASH_FIND_STR(server->hosts, name, host);
    return host;
}

/* Return the entry of this host; a new one if there is none. NULL: no memory. */
static struct named_host *host_add(struct channel_server *server, const char *name)
{
    struct named_host *host = host_find(server, name);
    const size_t size = strlen(name) + 1;
    if (host != NULL || (host = calloc(1, sizeof(*host) + size)) == NULL)
        return host;
    memcpy(host->name, name, size);
    HASH_ADD_STR(server->hosts, name, host);
    return host;
}

/* Remove the entry if the host is not connected and has no scan request. */
static void host_drop(struct channel_server *server, struct named_host *host)
{
    if (host->nodes != NULL || host->scan_until > clock_now(CLOCK_MONOTONIC))
        return;
    /* NOLINT(clang-analyzer-unix.Malloc): no link to the freed entry is left */
    HASH_DEL(server->hosts, host);
    free(host);
}

/* ---- the end -------------------------------------------------------------------------------------- */

static struct peer *peer_of(const struct channel_request *request)
{
    return (struct peer *)request->x.link;
}

/* Remove a request from its peer: the node is gone, or has its answer. */
static void request_leave(struct channel_request *request)
{
    struct peer *peer = peer_of(request);
    if (peer == NULL)
        return;
    DL_DELETE(peer->link.exchanges, &request->x);
    peer->n_requests--;
    if (peer->waiting == request)
        peer->waiting = NULL;
    request->x.link = NULL;
}

static void request_free(struct channel_request *request)
{
    struct channel_server *server = request->server;
    request_leave(request);
    server->bytes -= request->size;
    free(request);
}

/* Drop all requests and answers of a peer. */
static void peer_leave(struct peer *peer)
{
    struct exchange *exchange, *next;
    link_finish(&peer->link);
    timer_cancel(peer->silence);
    DL_FOREACH_SAFE(peer->link.exchanges, exchange, next)
    {
        struct channel_request *request = (struct channel_request *)exchange;
        if (request->lent)
            request_leave(request);
        else
            request_free(request);
    }
    peer->server->bytes -= peer->coming;
    peer->coming = 0;
}

static void peer_free(struct peer *peer)
{
    struct channel_server *server = peer->server;
    peer_leave(peer);
    if (peer->host != NULL) {
        DL_DELETE(peer->host->nodes, peer);
        server->n_nodes--;
        host_drop(server, peer->host);
    } else {
        DL_DELETE(server->unproven, peer);
        server->n_unproven--;
    }
    link_close(&peer->link);
    timer_free(peer->late);
    timer_free(peer->silence);
    free(peer);
}

/* Log a message about a peer. Strangers can cause these at any rate, so equal lines are logged once a minute.
 */
static void peer_log(struct peer *peer, const char *what)
{
    char line[700], again[LOG_LIMIT_AGAIN];
    snprintf(line, sizeof(line), "nodes: %s%s%s: %s", peer->address, peer->host == NULL ? "" : " ",
             peer->host == NULL ? "" : peer->host->name, what);
    if (log_limit_may(&peer->server->said, line, again))
        log_warning("%s%s", line, again);
    else
        log_debug("%s", line);
}

/* Log the reason, send it to the peer, and close the connection when it is sent. */
static void peer_end(struct peer *peer, int code, const char *reason)
{
    peer_log(peer, reason);
    if (code == PMIXFAB_ERR_FOREIGN) {
        peer_free(peer);
        return;
    }
    link_refuse(&peer->link, 0, code, reason);
    peer_leave(peer);
    timer_after(peer->late, FINISH_MS);
}

/* Set the timer for the next event that the peer owes. */
static void peer_set_late(struct peer *peer)
{
    peer->unsent = evbuffer_get_length(stream_out(peer->link.stream));
    if (!peer->hello)
        return; /* the timer was set at the accept */
    if (peer->unsent > 0 || peer->link.frame.begun)
        timer_after(peer->late, SLOW_MS);
    else if (peer->n_requests == 0)
        timer_after(peer->late, IDLE_MS);
    else
        timer_cancel(peer->late);
}

static void peer_on_late(void *arg)
{
    struct peer *peer = arg;
    const size_t unsent = evbuffer_get_length(stream_out(peer->link.stream));
    if (!peer->link.finishing && unsent < peer->unsent) {
        peer_set_late(peer);
        return;
    }
    if (!peer->hello)
        peer_log(peer, "no valid credential in time: closed");
    else if (unsent > 0 || peer->link.frame.begun)
        peer_log(peer, "it reads or sends too slowly: closed");
    peer_free(peer);
}

/* ---- answers -------------------------------------------------------------------------------------- */

static void request_answered(struct channel_request *request)
{
    request->answered = true;
    peer_set_late(peer_of(request));
}

static void request_refuse(struct channel_request *request, int code, const char *reason)
{
    link_refuse(request->x.link, request->x.number, code, reason);
    request_answered(request);
}

static void request_answer(struct channel_request *request, const struct channel_body *body)
{
    if (!link_send(&request->x, request->x.type | CHANNEL_IS_ANSWER, body))
        request_refuse(request, PMIXFAB_ERR_BUSY, "too many nodes are being answered: try again later");
}

/* One of link_calls. */
static void peer_on_sealed(struct exchange *exchange, const struct credential_result *result)
{
    struct channel_request *request = (struct channel_request *)exchange;
    struct fab_err err = {""};
    if (credential_explain(result, "the scheduler's host", &err) == PMIXFAB_OK)
        request_answered(request);
    else if (exchange->type == CHANNEL_HELLO)
        peer_end(peer_of(request), PMIXFAB_ERR_UNREACH, err.text);
    else
        request_refuse(request, PMIXFAB_ERR_UNREACH, err.text);
}

/* One of stream_calls. */
static void peer_on_sent(void *cbdata)
{
    struct peer *peer = cbdata;
    struct exchange *exchange, *next;
    if (peer->link.finishing) {
        peer_free(peer);
        return;
    }
    DL_FOREACH_SAFE(peer->link.exchanges, exchange, next)
    {
        if (((struct channel_request *)exchange)->answered)
            request_free((struct channel_request *)exchange);
    }
    peer_set_late(peer);
}

void channel_answer(struct channel_request *request, int code, uint64_t held, const char *reason)
{
    struct channel_outcome outcome = {.code = code, .held = held};
    struct peer *peer = peer_of(request);
    uint8_t *body = NULL;
    request->lent = false;
    request->server->bytes -= request->size;
    request->size = 0;
    if (peer == NULL) {
        request_free(request);
        return;
    }
    if (peer->waiting != NULL && code == PMIXFAB_OK)
        peer->known.held = held; /* the node gets it with this answer */
    if (code > 0 || (body = malloc(CHANNEL_MAX_WORDS)) == NULL) {
        request_refuse(request, code > 0 ? PMIXFAB_ERR_BUSY : PMIXFAB_ERR_NOMEM, reason);
        return;
    }
    snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
    const struct channel_body sealed = channel_body_of(body, channel_put_outcome(&outcome, body));
    request_answer(request, &sealed);
}

/* ---- news ----------------------------------------------------------------------------------------- */

static void send_news(struct channel_request *request, const struct channel_wait *now, bool scan,
                      const struct served_set *set)
{
    struct channel_news news = {now->held, now->generation, now->published, now->stale, scan, 0, NULL};
    const uint32_t n = set == NULL ? 0 : set->n;
    void *bytes = NULL;
    size_t size = 0;
    int rc = PMIXFAB_ERR_NOMEM;
    news.planes = calloc((size_t)n + 1, sizeof(*news.planes));
    for (; news.planes != NULL && news.n < n; news.n++) {
        const struct served_plane *plane = set->planes[news.n];
        news.planes[news.n] = (struct channel_plane){.index = plane->info.index,
                                                     .generation = plane->info.generation,
                                                     .published = plane->info.published,
                                                     .size = plane->size};
        snprintf(news.planes[news.n].name, sizeof(news.planes[0].name), "%s", plane->info.name);
    }
    if (news.planes != NULL)
        rc = channel_put_news(&news, &bytes, &size);
    free(news.planes);
    const struct channel_body body = channel_body_of(bytes, size);
    if (rc == PMIXFAB_OK)
        request_answer(request, &body);
    else
        request_refuse(request, rc, pmixfab_strerror(rc));
}

/* Answer the open request for news, if the state has changed. */
static void peer_look(struct peer *peer)
{
    const struct channel_server_calls *calls = &peer->server->calls;
    const struct channel_wait *known = &peer->known;
    struct channel_request *request = peer->waiting;
    peer->look = false;
    if (request == NULL)
        return;
    struct served_set *set = served_get(peer->server->served);
    const struct channel_wait now = {.held = calls->held(peer->host->name, calls->cbdata),
                                     .generation = set == NULL ? 0 : set->generation,
                                     .published = set == NULL ? 0 : set->published,
                                     .stale = served_is_stale(peer->server->served)};
    const int64_t until = peer->host->scan_until;
    const bool scan = until != peer->scanned && until > clock_now(CLOCK_MONOTONIC);
    if (known->at_once || scan || known->held != now.held || known->generation != now.generation ||
        known->published != now.published || known->stale != now.stale) {
        peer->waiting = NULL;
        timer_cancel(peer->silence);
        peer->scanned = until;
        send_news(request, &now, scan, set);
    }
    served_set_put(set);
}

static void peer_on_silence(void *arg)
{
    struct peer *peer = arg;
    peer->known.at_once = true;
    peer_look(peer);
}

static int handle_wait(struct channel_request *request, const struct credential_maker *maker,
                       struct channel_bytes *body, struct fab_err *err)
{
    struct peer *peer = peer_of(request);
    struct channel_wait wait;
    (void)maker;
    if (channel_get_wait(body->bytes, body->size, &wait) != PMIXFAB_OK || peer->waiting != NULL)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "an invalid request for news, or a second one");
    peer->known = wait;
    peer->waiting = request;
    timer_after(peer->silence, SILENCE_MS);
    peer_look(peer);
    return PMIXFAB_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------------ */

static void snapshot_release(const void *bytes, size_t size, void *plane)
{
    (void)bytes, (void)size;
    served_plane_put(plane);
}

static int handle_fetch(struct channel_request *request, const struct credential_maker *maker,
                        struct channel_bytes *body, struct fab_err *err)
{
    struct served_set *set = served_get(request->server->served);
    struct channel_fetch what;
    struct served_plane *plane = NULL;
    int rc = channel_get_fetch(body->bytes, body->size, &what);
    (void)maker;
    if (rc != PMIXFAB_OK) {
        fab_fail(err, rc, "an invalid request for a snapshot");
        goto cleanup;
    }
    plane = set == NULL ? NULL : (struct served_plane *)served_find(set, what.index);
    if (plane == NULL || plane->info.generation != what.generation || plane->size > UINT32_MAX) {
        request_refuse(request, PMIXFAB_ERR_NOTFOUND,
                       "this generation of the plane is not published any more");
        goto cleanup;
    }
    const struct channel_body snapshot = {plane->bytes, plane->size, snapshot_release,
                                          served_plane_ref(plane), &plane->digest};
    request_answer(request, &snapshot);
cleanup:
    served_set_put(set);
    return rc;
}

/* ---- HELLO and deliveries ------------------------------------------------------------------------- */

static bool names_a_host(const char *name)
{
    struct fab_report report;
    fab_report_init(&report);
    const bool good = fab_report_host(&report, name, NULL) == PMIXFAB_OK;
    fab_report_destroy(&report);
    return good;
}

/* Move the peer to the verified ones of its host. With too many of them, the oldest is closed. */
static void peer_prove(struct peer *peer, struct named_host *host)
{
    struct channel_server *server = peer->server;
    struct peer *others;
    unsigned n;
    DL_COUNT(host->nodes, others, n);
    DL_DELETE(server->unproven, peer);
    server->n_unproven--;
    peer->host = host;
    DL_APPEND(host->nodes, peer);
    server->n_nodes++;
    if (n >= MOST_OF_HOST)
        peer_free(host->nodes);
}

static int handle_hello(struct channel_request *request, const struct credential_maker *maker,
                        struct channel_bytes *body, struct fab_err *err)
{
    struct channel_server *server = request->server;
    struct peer *peer = peer_of(request);
    struct channel_hello hello;
    struct named_host *host;
    uint8_t *nonce;
    if (channel_get_hello(body->bytes, body->size, &hello) != PMIXFAB_OK || !names_a_host(hello.host))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "its first message names no host");
    const int rc = check_user(server, maker, hello.host, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (server->n_nodes >= MOST_NODES)
        return fab_fail(err, PMIXFAB_ERR_BUSY, "too many nodes are connected: try again later");
    if ((host = host_add(server, hello.host)) == NULL || (nonce = malloc(CHANNEL_NONCE)) == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    peer_prove(peer, host);
    chance_bytes(nonce, CHANNEL_NONCE);
    memcpy(peer->link.nonces.scheduler, nonce, CHANNEL_NONCE);
    const struct channel_body welcome = channel_body_of(nonce, CHANNEL_NONCE);
    request_answer(request, &welcome);
    return PMIXFAB_OK;
}

static int handle_deliver(struct channel_request *request, const struct credential_maker *maker,
                          struct channel_bytes *body, struct fab_err *err)
{
    const struct channel_server_calls *calls = &request->server->calls;
    void *bytes = body->bytes;
    (void)err;
    body->bytes = NULL;
    request->lent = true;
    calls->deliver(maker, bytes, body->size, request, calls->cbdata);
    return PMIXFAB_OK;
}

/* ---- incoming requests ---------------------------------------------------------------------------- */

static const struct {
    size_t most; /* bytes */
    int (*handle)(struct channel_request *request, const struct credential_maker *maker,
                  struct channel_bytes *body, struct fab_err *err);
} kinds[] = {
    [CHANNEL_HELLO] = {CHANNEL_MAX_WORDS, handle_hello},
    [CHANNEL_DELIVER] = {FAB_DELIVERY_MAX, handle_deliver},
    [CHANNEL_WAIT] = {CHANNEL_MAX_WORDS, handle_wait},
    [CHANNEL_FETCH] = {CHANNEL_MAX_WORDS, handle_fetch},
};

/* Return true for a number that was used before, or that is far below the highest. */
static bool peer_has_seen(struct peer *peer, uint32_t number)
{
    if (number > peer->highest) {
        const uint32_t by = number - peer->highest;
        peer->seen = by < 64 ? peer->seen << by | 1 : 1;
        peer->highest = number;
        return false;
    }
    const uint32_t behind = peer->highest - number;
    if (behind >= 64 || (peer->seen >> behind & 1) != 0)
        return true;
    peer->seen |= UINT64_C(1) << behind;
    return false;
}

/* A channel_allow_fn. */
static int peer_allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    struct peer *peer = cbdata;
    struct channel_server *server = peer->server;
    const size_t delivered = head->type == CHANNEL_DELIVER ? head->body : 0;
    if (!peer->hello && head->type != CHANNEL_HELLO)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "its first message is not a HELLO");
    if (peer->hello && (peer->host == NULL || head->type <= CHANNEL_HELLO || head->type > CHANNEL_FETCH))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "an unexpected message of type %u", head->type);
    if (head->body > kinds[head->type].most)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a message of %u bytes: at most %zu are accepted",
                        (unsigned)head->body, kinds[head->type].most);
    if (peer->hello)
        timer_after(peer->late, SLOW_MS);
    if (peer->n_requests >= MOST_REQUESTS || server->bytes + delivered > MOST_BYTES)
        return CHANNEL_SKIP;
    server->bytes += delivered;
    peer->coming = delivered;
    return PMIXFAB_OK;
}

/* One of link_calls. */
static int peer_on_came(const struct channel_frame *frame, struct link *link, struct exchange **exchange,
                        struct fab_err *err)
{
    struct peer *peer = (struct peer *)link;
    struct channel_hello hello;
    if (!peer->hello) { /* its nonce seals the HELLO itself, too */
        if (channel_get_hello(frame->body, frame->head.body, &hello) != PMIXFAB_OK)
            return fab_fail(err, PMIXFAB_ERR_CORRUPT, "its first message names no host");
        memcpy(link->nonces.node, hello.nonce, CHANNEL_NONCE);
    }
    peer->hello = true;
    if (peer_has_seen(peer, frame->head.request))
        return fab_fail(err, PMIXFAB_ERR_PERM, "a message whose number was used before");
    if (peer->n_requests >= MOST_REFUSED)
        return fab_fail(err, PMIXFAB_ERR_BUSY, "it sends requests and does not read the answers");
    struct channel_request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    *exchange = &request->x;
    request->x = (struct exchange){.link = link, .type = frame->head.type, .number = frame->head.request};
    request->server = peer->server;
    request->size = peer->coming;
    peer->coming = 0;
    peer->n_requests++;
    DL_APPEND(link->exchanges, &request->x);
    peer_set_late(peer);
    if (frame->body != NULL)
        return PMIXFAB_OK;
    request_refuse(request, PMIXFAB_ERR_BUSY, "too many deliveries are waiting: try again later");
    return CHANNEL_SKIP;
}

/* One of link_calls. */
static void peer_on_opened(struct exchange *exchange, const struct credential_result *result,
                           struct channel_bytes *body)
{
    struct channel_request *request = (struct channel_request *)exchange;
    struct channel_server *server = request->server;
    struct peer *peer = peer_of(request);
    struct fab_err err = {""};
    char again[LOG_LIMIT_AGAIN];
    int rc = credential_explain(result, "the scheduler's host", &err);
    if (rc == PMIXFAB_OK && exchange->type != CHANNEL_HELLO)
        rc = check_user(server, &result->maker, peer->host->name, &err);
    if (rc == PMIXFAB_OK)
        rc = kinds[exchange->type].handle(request, &result->maker, body, &err);
    if (rc == PMIXFAB_OK)
        return;
    count(server->counts, count_of_refused(rc));
    if (exchange->type == CHANNEL_HELLO) {
        peer_end(peer, rc == PMIXFAB_ERR_FOREIGN ? PMIXFAB_ERR_PERM : rc, err.text);
        return;
    }
    if (log_limit_may(&server->said, err.text, again))
        log_warning("intake: refused: %s%s", err.text, again);
    request_refuse(request, rc, err.text);
}

/* One of link_calls. */
static void peer_on_ended(struct link *link, int code, const char *why)
{
    peer_end((struct peer *)link, code, why);
}

/* One of stream_calls. */
static void peer_on_lost(const char *why, void *cbdata)
{
    struct peer *peer = cbdata;
    log_debug("nodes: %s: %s", peer->address, why);
    peer_free(peer);
}

/* ---- new connections ------------------------------------------------------------------------------ */

/* At a limit, close the oldest unverified connection: of this address, or of all. */
static void make_room(struct channel_server *server, const char *from)
{
    struct peer *peer, *oldest = NULL, *silent = NULL;
    unsigned n = 0;
    DL_FOREACH(server->unproven, peer)
    {
        if (strcmp(peer->address, from) != 0)
            continue;
        oldest = oldest == NULL ? peer : oldest;
        silent = silent == NULL && !peer->hello ? peer : silent;
        n++;
    }
    if (n >= UNPROVEN_OF_ONE) {
        peer_log(oldest, "more than 16 connections of this address have no valid credential: one is closed");
        peer_free(silent != NULL ? silent : oldest);
    } else if (server->n_unproven >= MOST_UNPROVEN) {
        peer_free(server->unproven);
    }
}

/* A stream_accept_fn. */
static void server_on_accept(struct stream *stream, const char *from, void *cbdata)
{
    static const struct link_calls calls = {{NULL, link_on_bytes, peer_on_sent, peer_on_lost},
                                            peer_allow,
                                            peer_on_came,
                                            peer_on_opened,
                                            peer_on_sealed,
                                            peer_on_ended};
    struct channel_server *server = cbdata;
    struct peer *peer = calloc(1, sizeof(*peer));
    make_room(server, from);
    if (peer == NULL || (peer->late = timer_new(server->base, peer_on_late, peer)) == NULL ||
        (peer->silence = timer_new(server->base, peer_on_silence, peer)) == NULL) {
        if (peer != NULL)
            timer_free(peer->late);
        free(peer);
        stream_close(stream);
        return;
    }
    peer->link = (struct link){.calls = &calls, .worker = server->worker, .stream = stream};
    peer->server = server;
    peer->seen = 1; /* 0 is not a request number */
    snprintf(peer->address, sizeof(peer->address), "%s", from);
    DL_APPEND(server->unproven, peer);
    server->n_unproven++;
    timer_after(peer->late, HELLO_MS);
    stream_use(stream, &calls.stream, peer);
}

/* ---- for the scheduler ---------------------------------------------------------------------------- */

static void server_on_look(void *arg)
{
    struct channel_server *server = arg;
    struct named_host *host, *next;
    struct peer *peer;
    HASH_ITER(hh, server->hosts, host, next)
    {
        DL_FOREACH(host->nodes, peer)
        {
            if (peer->look)
                peer_look(peer);
        }
    }
}

static void host_look(struct channel_server *server, const struct named_host *host)
{
    struct peer *peer;
    DL_FOREACH(host->nodes, peer)
    {
        peer->look = true;
    }
    timer_fire(server->look);
}

void channel_server_tell(struct channel_server *server)
{
    struct named_host *host, *next;
    if (server == NULL)
        return;
    HASH_ITER(hh, server->hosts, host, next)
    {
        host_look(server, host);
    }
    timer_fire(server->look);
}

void channel_server_held(struct channel_server *server, const char *name)
{
    const struct named_host *host = host_find(server, name);
    if (host != NULL)
        host_look(server, host);
}

void channel_server_scan(struct channel_server *server, const char *name)
{
    struct named_host *host, *next;
    if (name != NULL)
        host_add(server, name);
    HASH_ITER(hh, server->hosts, host, next)
    {
        if (name == NULL ? host->nodes == NULL : strcmp(host->name, name) != 0) {
            host_drop(server, host);
            continue;
        }
        host->scan_until = clock_now(CLOCK_MONOTONIC) + SCAN_US;
        host_look(server, host);
    }
}

void channel_server_status(const struct channel_server *server, struct channel_server_status *out)
{
    const bool listening = server->listener != NULL;
    *out = (struct channel_server_status){.listening = listening,
                                          .port = listening ? stream_port(server->listener) : 0,
                                          .connected = server->n_nodes,
                                          .unproven = server->n_unproven};
}

/* ---- creation and end ----------------------------------------------------------------------------- */

struct channel_server *channel_server_new(struct event_base *base, struct credential_worker *worker)
{
    struct channel_server *server = calloc(1, sizeof(*server));
    if (server == NULL || (server->look = timer_new(base, server_on_look, server)) == NULL) {
        free(server);
        return NULL;
    }
    server->base = base;
    server->worker = worker;
    return server;
}

int channel_server_start(struct channel_server *server, const struct channel_server_calls *calls,
                         const struct config *config, struct served *served, struct counts *counts,
                         struct fab_err *err)
{
    char found[INET_ADDRSTRLEN];
    const char *listen = config->nodes_listen, *address = NULL;
    server->calls = *calls;
    server->served = served;
    server->counts = counts;
    int rc = find_user(server, config, err);
    if (rc != PMIXFAB_OK || (listen == NULL && !config->remote))
        return rc;
    if (listen != NULL && strcmp(listen, "*") != 0) {
        rc = interface_find(listen, found, err);
        address = found;
    }
    if (rc == PMIXFAB_OK)
        rc = stream_listen(server->base, address, (uint16_t)config->nodes_port, server_on_accept, server,
                           &server->listener, err);
    return rc;
}

void channel_server_stop(struct channel_server *server)
{
    struct named_host *host, *next;
    struct peer *peer, *other;
    if (server == NULL)
        return;
    stream_listener_free(server->listener);
    server->listener = NULL;
    DL_FOREACH_SAFE(server->unproven, peer, other)
    {
        peer_free(peer);
    }
    HASH_ITER(hh, server->hosts, host, next)
    {
        host->scan_until = INT64_MAX; /* keeps host_drop() in peer_free() from freeing it */
        DL_FOREACH_SAFE(host->nodes, peer, other)
        {
            peer_free(peer);
        }
        host->scan_until = 0;
        host_drop(server, host);
    }
    log_limit_clear(&server->said);
}

void channel_server_free(struct channel_server *server)
{
    if (server == NULL)
        return;
    channel_server_stop(server);
    timer_free(server->look);
    free(server);
}
