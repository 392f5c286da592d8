/* channel_server.c - requests of nodes, and the answers. */
#include "fabricd/channel/channel_server.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/address.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/channel/channel_peers.h"
#include "topo/model/report.h"

#define MOST_SNAPSHOTS 64       /* that are being sent at once; others wait */
#define SILENCE_MS     20000    /* a question for news is answered then at the latest */
#define SCAN_US        40000000 /* so long a scan request waits for its node */

struct channel_request {
    struct channel_request *prev, *next;             /* of the node */
    struct channel_request *prev_fetch, *next_fetch; /* that waits for others */
    struct channel_server *server;
    struct peer *peer; /* NULL: it is gone, and nobody hears the answer */
    uint8_t type;
    uint32_t number;
    struct credential_job *job;
    uint8_t *body; /* of the request, then of the answer; free() */
    size_t size;
    size_t counted;             /* of the server's bytes */
    bool fetching, queued;      /* it is one of the snapshots that are being sent; it waits to be */
    struct served_plane *plane; /* that is the answer */
    uint8_t digest[CHANNEL_DIGEST];
};

/* The SHA-256 of a snapshot that was asked for: it is computed once. */
struct known_digest {
    UT_hash_handle hh;
    struct served_plane *plane;
    uint8_t digest[CHANNEL_DIGEST];
};

static void request_seal(struct channel_request *request, enum channel_type type, uint8_t *body, size_t size);
static void peer_look(struct peer *peer);
static void fetch_next(struct channel_server *server);

/* ---- who may be a node ---------------------------------------------------------------------------- */

int channel_user_find(const struct config *config, struct channel_user *out, struct fab_err *err)
{
    *out = (struct channel_user){.name = ""};
    if (config->node_user == NULL)
        return PMIXFAB_OK;
    const struct passwd *user = getpwnam(config->node_user);
    if (user == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "[nodes] user: there is no user \"%.60s\" on this host",
                        config->node_user);
    snprintf(out->name, sizeof(out->name), "%s", config->node_user);
    out->uid = user->pw_uid;
    return PMIXFAB_OK;
}

int channel_user_check(const struct channel_user *user, const struct credential_maker *maker,
                       const char *host, struct fab_err *err)
{
    if (maker->uid == 0 || (user->name[0] != '\0' && maker->uid == user->uid))
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_PERM,
                    "%s: uid %u on %s may not describe a host: that is for root%s%.60s", host,
                    (unsigned)maker->uid, credential_address_text(maker->origin).text,
                    user->name[0] == '\0' ? "" : " and ", user->name);
}

/* ---- requests ------------------------------------------------------------------------------------- */

static void request_free(struct channel_request *request)
{
    struct channel_server *server = request->server;
    if (request->peer != NULL) {
        DL_DELETE(request->peer->requests, request);
        request->peer->n_requests--;
        if (request->peer->waiting == request)
            request->peer->waiting = NULL;
    }
    if (request->queued)
        DL_DELETE2(server->fetches, request, prev_fetch, next_fetch);
    server->n_fetching -= request->fetching;
    server->bytes -= request->counted;
    const bool next = request->fetching;
    served_plane_put(request->plane);
    free(request->body);
    free(request);
    if (next)
        timer_fire(server->look);
}

/* Its node is gone. What others work on is freed by them. */
static void request_orphan(struct channel_request *request)
{
    struct peer *peer = request->peer;
    DL_DELETE(peer->requests, request);
    peer->n_requests--;
    request->peer = NULL;
    if (request->job != NULL) {
        credential_cancel(request->job);
        request->job = NULL;
        request->body = NULL;  /* the job's, which lets it go, */
        request->plane = NULL; /* as this */
        request_free(request);
    } else if (request->type != CHANNEL_DELIVER) {
        request_free(request);
    }
}

/* (of peer_calls) */
static void requests_gone(struct peer *peer)
{
    struct channel_request *request, *next;
    DL_FOREACH_SAFE(peer->requests, request, next)
    {
        request_orphan(request);
    }
}

/* Snapshots that were on their way are there. (of peer_calls) */
static void requests_sent(struct peer *peer)
{
    struct channel_request *request, *next;
    DL_FOREACH_SAFE(peer->requests, request, next)
    {
        if (request->fetching && request->job == NULL)
            request_free(request);
    }
}

/* ---- frames go ------------------------------------------------------------------------------------ */

static void peer_write(struct peer *peer, const struct channel_request *request, enum channel_type type,
                       const char *credential)
{
    struct evbuffer *out = stream_out(peer->stream);
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = (uint8_t)type,
                                      .request = request->number,
                                      .credential = (uint32_t)strlen(credential),
                                      .body = (uint32_t)request->size};
    if (channel_put(out, &head, credential, request->body) != PMIXFAB_OK)
        log_error("nodes: out of memory");
}

static void snapshot_on_sent(const void *bytes, size_t size, void *plane)
{
    (void)bytes, (void)size;
    served_plane_put(plane);
}

/* The bytes stay the set's: they are lent, and not copied. */
static void peer_write_snapshot(struct peer *peer, struct channel_request *request, const char *credential)
{
    struct evbuffer *out = stream_out(peer->stream);
    struct served_plane *plane = request->plane;
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = CHANNEL_SNAPSHOT,
                                      .request = request->number,
                                      .credential = (uint32_t)strlen(credential),
                                      .body = (uint32_t)plane->size};
    request->plane = NULL;
    if (channel_put_head(out, &head, credential) != PMIXFAB_OK ||
        evbuffer_add_reference(out, plane->bytes, plane->size, snapshot_on_sent, plane) != 0) {
        served_plane_put(plane);
        log_error("nodes: out of memory");
    }
}

/* ---- answers -------------------------------------------------------------------------------------- */

static void request_refuse(struct channel_request *request, int code, const char *reason)
{
    if (request->peer != NULL) {
        peer_refuse(request->peer, request->number, code, reason);
        peer_set_late(request->peer);
    }
    request_free(request);
}

/* ingest.h says the reasons of deliveries in the log; others are said here. */
static void request_refuse_and_log(struct channel_request *request, int code, const char *reason)
{
    char again[LOG_LIMIT_AGAIN];
    count(request->server->counts, count_of_refused(code));
    if (log_limit_may(&request->server->said, reason, again))
        log_warning("intake: refused: %s%s", reason, again);
    request_refuse(request, code, reason);
}

static void known_digest_keep(struct channel_server *server, struct served_plane *plane,
                              const uint8_t digest[CHANNEL_DIGEST])
{
    struct known_digest *known;
    HASH_FIND_PTR(server->digests, &plane, known);
    if (known != NULL || (known = calloc(1, sizeof(*known))) == NULL)
        return;
    known->plane = served_plane_ref(plane);
    memcpy(known->digest, digest, CHANNEL_DIGEST);
    HASH_ADD_PTR(server->digests, plane, known);
}

static void request_on_sealed(const struct credential_result *result, void *cbdata)
{
    struct channel_request *request = cbdata;
    struct peer *peer = request->peer;
    struct fab_err err = {""};
    request->job = NULL;
    const int rc = credential_explain(result, "the scheduler's host", &err);
    if (rc != PMIXFAB_OK || strlen(result->text) > CHANNEL_MAX_CREDENTIAL) {
        const bool hello = request->type == CHANNEL_HELLO;
        request_refuse(request, PMIXFAB_ERR_UNREACH, err.text);
        if (hello)
            peer_free(peer, true);
        return;
    }
    if (request->plane != NULL) {
        known_digest_keep(request->server, request->plane, result->digest);
        peer_write_snapshot(peer, request, result->text);
        peer_set_late(peer); /* it is one of those that are being sent until all of it is */
        return;
    }
    peer_write(peer, request, (enum channel_type)(request->type | CHANNEL_IS_ANSWER), result->text);
    if (request->type == CHANNEL_HELLO && !peer_become_proven(peer)) {
        peer_free(peer, false);
        return;
    }
    request_free(request);
    peer_set_late(peer);
}

static void release_plane(void *plane)
{
    served_plane_put(plane);
}

/* Takes the body. */
static void request_seal(struct channel_request *request, enum channel_type type, uint8_t *body, size_t size)
{
    struct channel_seal seal = request->peer->nonces;
    const struct known_digest *known = NULL;
    struct credential_body sealed = {.bytes = body, .size = size, .release = free, .owner = body};
    seal.type = (uint8_t)type;
    seal.request = request->number;
    request->body = body;
    request->size = size;
    if (request->plane != NULL) {
        HASH_FIND_PTR(request->server->digests, &request->plane, known);
        sealed = (struct credential_body){.bytes = request->plane->bytes,
                                          .size = request->plane->size,
                                          .release = release_plane,
                                          .owner = request->plane,
                                          .digest = known == NULL ? NULL : known->digest};
    }
    request->job = credential_seal(request->server->worker, &seal, &sealed, request_on_sealed, request);
    if (request->job == NULL)
        request_refuse(request, PMIXFAB_ERR_BUSY, "too many nodes are answered already: come again later");
}

void channel_answer(struct channel_request *request, int code, uint64_t held, const char *reason)
{
    struct channel_outcome outcome = {.code = code, .held = held};
    if (request->peer == NULL) {
        request_free(request);
        return;
    }
    if (code > 0) {
        request_refuse(request, PMIXFAB_ERR_BUSY, reason);
        return;
    }
    if (request->peer->waiting != NULL && code == PMIXFAB_OK)
        request->peer->known.held = held; /* the node hears it from this answer */
    snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
    uint8_t *body = malloc(CHANNEL_MAX_WORDS);
    free(request->body);
    request->body = NULL;
    if (body == NULL)
        request_refuse(request, PMIXFAB_ERR_NOMEM, "out of memory");
    else
        request_seal(request, CHANNEL_ACCEPTED, body, channel_put_outcome(&outcome, body));
}

/* ---- news ----------------------------------------------------------------------------------------- */

static void peer_send_news(struct peer *peer, struct served_set *set, uint64_t held)
{
    struct channel_request *request = peer->waiting;
    struct channel_news news = {
        .held = held, .stale = served_is_stale(peer->server->served), .scan = peer->scan};
    void *body = NULL;
    size_t size = 0;
    int rc = PMIXFAB_ERR_NOMEM;
    if (set != NULL) {
        news.generation = set->generation;
        news.published = set->published;
        news.n = set->n;
    }
    news.planes = calloc((size_t)news.n + 1, sizeof(*news.planes));
    for (uint32_t i = 0; news.planes != NULL && i < news.n; i++) {
        const struct served_plane *plane = set->planes[i];
        struct channel_plane *told = &news.planes[i];
        told->index = plane->info.index;
        told->generation = plane->info.generation;
        told->published = plane->info.published;
        told->size = plane->size;
        snprintf(told->name, sizeof(told->name), "%s", plane->info.name);
    }
    if (news.planes != NULL)
        rc = channel_put_news(&news, &body, &size);
    free(news.planes);
    peer->waiting = NULL;
    peer->scan = false;
    timer_cancel(peer->silence);
    if (rc != PMIXFAB_OK)
        request_refuse(request, rc, pmixfab_strerror(rc));
    else
        request_seal(request, CHANNEL_NEWS, body, size);
}

/* Is there something to tell? */
static void peer_look(struct peer *peer)
{
    struct channel_server *server = peer->server;
    peer->look = false;
    if (peer->waiting == NULL)
        return;
    struct served_set *set = served_get(server->served);
    const uint64_t held =
        server->calls.held == NULL ? 0 : server->calls.held(peer->name, server->calls.cbdata);
    const struct channel_wait *known = &peer->known;
    if (known->at_once || peer->scan || known->held != held ||
        known->generation != (set == NULL ? 0 : set->generation) ||
        known->published != (set == NULL ? 0 : set->published) ||
        known->stale != served_is_stale(server->served))
        peer_send_news(peer, set, held);
    served_set_put(set);
}

static void peer_on_silence(void *arg)
{
    struct peer *peer = arg;
    peer->known.at_once = true;
    peer_look(peer);
}

static void server_on_look(void *arg)
{
    struct channel_server *server = arg;
    struct peer *peer, *next;
    fetch_next(server);
    DL_FOREACH_SAFE(server->nodes, peer, next)
    {
        if (peer->look)
            peer_look(peer);
    }
}

static void handle_wait(struct channel_request *request)
{
    struct peer *peer = request->peer;
    struct named_host *host = peer->host;
    struct channel_wait wait;
    if (channel_get_wait(request->body, request->size, &wait) != PMIXFAB_OK || peer->waiting != NULL) {
        request_refuse(request, PMIXFAB_ERR_CORRUPT, "a question for news that is none, or the second one");
        return;
    }
    free(request->body);
    request->body = NULL;
    peer->known = wait;
    peer->waiting = request;
    peer->scan |= host->scan_until > clock_now(CLOCK_MONOTONIC);
    host->scan_until = 0;
    timer_after(peer->silence, SILENCE_MS);
    peer_look(peer);
}

/* ---- snapshots ------------------------------------------------------------------------------------ */

/* Its plane as it is now: it may have changed while the request waited. */
static void fetch_start(struct channel_request *request)
{
    struct channel_fetch fetch;
    struct served_set *set = served_get(request->server->served);
    const int rc = channel_get_fetch(request->body, request->size, &fetch);
    const struct served_plane *plane = rc != PMIXFAB_OK || set == NULL ? NULL : served_find(set, fetch.index);
    if (plane != NULL && plane->info.generation == fetch.generation && plane->size <= UINT32_MAX)
        request->plane = served_plane_ref((struct served_plane *)plane);
    served_set_put(set);
    free(request->body);
    request->body = NULL;
    if (request->plane == NULL) {
        request_refuse(request, rc != PMIXFAB_OK ? rc : PMIXFAB_ERR_NOTFOUND,
                       "this generation of the plane is not published any more");
        return;
    }
    request->fetching = true;
    request->server->n_fetching++;
    request_seal(request, CHANNEL_SNAPSHOT, NULL, 0);
}

static void fetch_next(struct channel_server *server)
{
    while (server->fetches != NULL && server->n_fetching < MOST_SNAPSHOTS) {
        struct channel_request *request = server->fetches;
        DL_DELETE2(server->fetches, request, prev_fetch, next_fetch);
        request->queued = false;
        fetch_start(request);
    }
}

static void handle_fetch(struct channel_request *request)
{
    struct channel_server *server = request->server;
    DL_APPEND2(server->fetches, request, prev_fetch, next_fetch);
    request->queued = true;
    fetch_next(server);
}

/* Planes that are served no more. */
static void known_digests_trim(struct channel_server *server, bool all)
{
    struct served_set *set = all || server->served == NULL ? NULL : served_get(server->served);
    struct known_digest *known, *next;
    HASH_ITER(hh, server->digests, known, next)
    {
        if (set != NULL && served_find(set, known->plane->info.index) == known->plane)
            continue;
        HASH_DEL(server->digests,
                 known); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
        served_plane_put(known->plane);
        free(known);
    }
    served_set_put(set);
}

/* ---- requests come -------------------------------------------------------------------------------- */

static bool names_a_host(const char *name)
{
    struct fab_report report;
    fab_report_init(&report);
    const bool good = fab_report_host(&report, name, NULL) == PMIXFAB_OK;
    fab_report_destroy(&report);
    return good;
}

/* True: it goes on. */
static bool handle_hello(struct channel_request *request, const struct credential_maker *maker,
                         struct fab_err *err, int *code)
{
    struct peer *peer = request->peer;
    struct channel_hello hello;
    *code = channel_get_hello(request->body, request->size, &hello);
    if (*code != PMIXFAB_OK || !names_a_host(hello.host)) {
        *code = fab_fail(err, PMIXFAB_ERR_CORRUPT, "its first message names no host");
        return false;
    }
    *code = channel_user_check(&peer->server->user, maker, hello.host, err);
    if (*code == PMIXFAB_OK && peer->server->n_nodes >= MOST_NODES)
        *code = fab_fail(err, PMIXFAB_ERR_BUSY, "too many nodes are connected already: come again later");
    if (*code != PMIXFAB_OK)
        return false;
    uint8_t *body = malloc(CHANNEL_NONCE);
    free(request->body);
    request->body = NULL;
    if (body == NULL) {
        *code = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        return false;
    }
    memcpy(peer->name, hello.host, sizeof(peer->name));
    chance_bytes(peer->nonces.scheduler, CHANNEL_NONCE);
    memcpy(body, peer->nonces.scheduler, CHANNEL_NONCE);
    request_seal(request, CHANNEL_WELCOME, body, CHANNEL_NONCE);
    return true;
}

static void handle_deliver(struct channel_request *request, const struct credential_maker *maker)
{
    struct channel_server *server = request->server;
    void *bytes = request->body;
    request->body = NULL;
    if (server->calls.deliver != NULL) {
        server->calls.deliver(maker, bytes, request->size, request, server->calls.cbdata);
        return;
    }
    free(bytes);
    request_refuse(request, PMIXFAB_ERR_BUSY, "the scheduler takes no deliveries now");
}

static void request_on_opened(const struct credential_result *result, void *cbdata)
{
    struct channel_request *request = cbdata;
    struct peer *peer = request->peer;
    struct fab_err err = {""};
    request->job = NULL;
    int rc = credential_explain(result, "the scheduler's host", &err);
    if (request->type == CHANNEL_HELLO) {
        if (rc != PMIXFAB_OK || !handle_hello(request, &result->maker, &err, &rc)) {
            count(peer->server->counts, count_of_refused(rc));
            peer_end(peer, rc == PMIXFAB_ERR_FOREIGN ? PMIXFAB_ERR_PERM : rc, err.text);
        }
        return;
    }
    if (rc == PMIXFAB_OK && request->type != CHANNEL_DELIVER)
        rc = channel_user_check(&peer->server->user, &result->maker, peer->name, &err);
    if (rc != PMIXFAB_OK)
        request_refuse_and_log(request, rc, err.text);
    else if (request->type == CHANNEL_DELIVER)
        handle_deliver(request, &result->maker);
    else if (request->type == CHANNEL_WAIT)
        handle_wait(request);
    else
        handle_fetch(request);
}

/* (of peer_calls) */
static void request_take(struct peer *peer)
{
    struct channel_frame *frame = &peer->frame;
    struct channel_request *request = calloc(1, sizeof(*request));
    struct channel_seal seal = peer->nonces;
    if (request == NULL) {
        peer_refuse(peer, frame->head.request, PMIXFAB_ERR_NOMEM, "out of memory");
        channel_frame_clear(frame);
        return;
    }
    *request = (struct channel_request){.server = peer->server,
                                        .peer = peer,
                                        .type = frame->head.type,
                                        .number = frame->head.request,
                                        .body = frame->body,
                                        .size = frame->head.body};
    DL_APPEND(peer->requests, request);
    peer->n_requests++;
    if (request->type == CHANNEL_DELIVER)
        peer->server->bytes += request->counted = request->size;
    seal.type = request->type;
    seal.request = request->number;
    const struct credential_body body = {
        .bytes = frame->body, .size = frame->head.body, .release = free, .owner = frame->body};
    request->job =
        credential_verify(peer->server->worker, &seal, frame->credential, &body, request_on_opened, request);
    *frame = (struct channel_frame){.begun = false};
    if (request->job == NULL)
        request_refuse(request, PMIXFAB_ERR_BUSY, "too many nodes are answered already: come again later");
}

/* ---- for the scheduler ---------------------------------------------------------------------------- */

void channel_server_tell(struct channel_server *server)
{
    struct peer *peer;
    if (server == NULL || server->served == NULL)
        return;
    known_digests_trim(server, false);
    DL_FOREACH(server->nodes, peer)
    {
        peer->look = true;
    }
    timer_fire(server->look);
}

void channel_server_held(struct channel_server *server, const char *name)
{
    struct named_host *host = host_find(server, name);
    struct peer *peer;
    DL_FOREACH2(host == NULL ? NULL : host->nodes, peer, next_of_host)
    {
        peer->look = true;
    }
    if (host != NULL)
        timer_fire(server->look);
}

/* Those that wait for news are told; where none does, the next one that asks. */
static void scan_host(struct named_host *host)
{
    struct peer *peer;
    bool heard = false;
    DL_FOREACH2(host->nodes, peer, next_of_host)
    {
        peer->scan = peer->look = peer->waiting != NULL;
        heard |= peer->scan;
    }
    host->scan_until = heard ? 0 : clock_now(CLOCK_MONOTONIC) + SCAN_US;
}

void channel_server_scan(struct channel_server *server, const char *name)
{
    struct named_host *host, *next;
    HASH_ITER(hh, server->hosts, host, next)
    {
        if (host->nodes != NULL && name == NULL)
            scan_host(host);
        else if (name == NULL || strcmp(host->name, name) != 0)
            host_drop(server, host);
    }
    if (name != NULL && (host = host_add(server, name)) != NULL)
        scan_host(host);
    timer_fire(server->look);
}

void channel_server_status(const struct channel_server *server, struct channel_server_status *out)
{
    const bool listening = server->listener != NULL;
    *out = (struct channel_server_status){.listening = listening,
                                          .port = listening ? stream_port(server->listener) : 0,
                                          .connected = server->n_nodes,
                                          .unproven = server->n_unproven};
}

/* ---- life ----------------------------------------------------------------------------------------- */

struct channel_server *channel_server_new(struct event_base *base, struct credential_worker *worker)
{
    struct channel_server *server = calloc(1, sizeof(*server));
    if (server == NULL || (server->look = timer_new(base, server_on_look, server)) == NULL) {
        free(server);
        return NULL;
    }
    server->base = base;
    server->worker = worker;
    server->up = (struct peer_calls){request_take, requests_sent, requests_gone, peer_on_silence};
    return server;
}

void channel_server_on(struct channel_server *server, const struct channel_server_calls *calls)
{
    server->calls = *calls;
}

int channel_server_start(struct channel_server *server, const struct config *config, struct served *served,
                         struct counts *counts, struct fab_err *err)
{
    char found[INET_ADDRSTRLEN];
    const char *listen = config->nodes_listen, *address = NULL;
    server->served = served;
    server->counts = counts;
    int rc = channel_user_find(config, &server->user, err);
    if (rc != PMIXFAB_OK || (listen == NULL && !config->remote))
        return rc;
    if (listen != NULL && strcmp(listen, "*") != 0) {
        rc = interface_find(listen, found, err);
        address = found;
    }
    if (rc == PMIXFAB_OK)
        rc = stream_listen(server->base, address, (uint16_t)config->nodes_port, peers_accept, server,
                           &server->listener, err);
    return rc;
}

void channel_server_stop(struct channel_server *server)
{
    struct named_host *host, *next;
    if (server == NULL)
        return;
    stream_listener_free(server->listener);
    server->listener = NULL;
    while (server->unproven != NULL)
        peer_free(server->unproven, false);
    while (server->nodes != NULL)
        peer_free(server->nodes, false);
    HASH_ITER(hh, server->hosts, host, next)
    {
        host->scan_until = 0;
        host_drop(server, host);
    }
    known_digests_trim(server, true);
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
