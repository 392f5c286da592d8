/* channel_server.c - connections of nodes, their requests and the answers. */
#include "fabricd/channel/channel_server.h"

#include <arpa/inet.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "fabricd/base/chance.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/interface.h"
#include "fabricd/base/log.h"
#include "fabricd/base/log_limit.h"
#include "fabricd/base/timer.h"
#include "fabricd/channel/channel_stream.h"
#include "topo/model/delivery.h"

#define MOST_UNPROVEN   1024  /* connections that have not shown who they are */
#define UNPROVEN_OF_ONE 16    /* of them, of an address */
#define MOST_NODES      16384 /* that have */
#define MOST_OF_HOST    4     /* of them, of a host: the one that has been there for longest goes */
#define MOST_REQUESTS   16    /* of a connection at once */
#define MOST_REFUSED    1024  /* answers that say so and are not sent yet */
#define MOST_SNAPSHOTS  64    /* that are being sent at once; others wait */
#define MOST_BYTES      ((size_t)64 << 20) /* of deliveries that are coming or not answered */

#define HELLO_MS   10000    /* so long a connection may take until its first frame is whole */
#define FRAME_MS   60000    /* so long any other frame may take */
#define SENT_MS    60000    /* so long nothing of what is sent may go away */
#define IDLE_MS    300000   /* so long a node may want nothing */
#define SILENCE_MS 20000    /* a question for news is answered then at the latest */
#define SCAN_US    40000000 /* so long a scan request waits for its node */

struct node {
    struct node *prev, *next; /* of the server: in the order in which they came, or were proven */
    struct node *prev_of_host, *next_of_host; /* of a proven one */
    struct channel_server *server;
    struct stream *stream;
    union credential_address from;
    char address[INET6_ADDRSTRLEN];
    bool proven, hello; /* hello: it has said it, and perhaps it is being checked */
    char name[FAB_HOST_MAX + 1];
    struct named_host *host; /* of a proven one */
    struct channel_seal nonces;
    struct channel_frame frame;
    struct timer *late, *silence;
    size_t unsent; /* when `late` was set */
    uint32_t highest;
    uint64_t seen; /* bit n: the request highest - n was there */
    struct channel_request *requests;
    unsigned n_requests, n_refused;  /* n_refused: without being looked at, since all was sent */
    struct channel_request *waiting; /* the one for news that is not answered; NULL: none */
    struct channel_wait known;       /* of it */
    bool look, scan;                 /* there may be something to tell; it is to scan */
};

/* A host that is connected, or was a moment ago and is to scan. */
struct named_host {
    UT_hash_handle hh;
    struct node *nodes;
    int64_t scan_until; /* microseconds of CLOCK_MONOTONIC; 0: nothing is asked of it */
    char name[];
};

struct channel_request {
    struct channel_request *prev, *next;             /* of the node */
    struct channel_request *prev_fetch, *next_fetch; /* that waits for others */
    struct channel_server *server;
    struct node *node; /* NULL: it is gone, and nobody hears the answer */
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

struct channel_server {
    struct event_base *base;
    struct credential_worker *worker;
    struct stream_listener *listener;
    struct served *served;
    struct counts *counts;
    struct channel_user user;
    struct channel_server_calls calls;
    struct node *nodes, *unproven; /* proven ones; others */
    unsigned n_nodes, n_unproven;
    struct named_host *hosts;
    struct channel_request *fetches; /* that wait */
    unsigned n_fetching;
    struct known_digest *digests;
    size_t bytes;
    struct timer *look;
    struct log_limit said;
};

static void request_seal(struct channel_request *request, enum channel_type type, uint8_t *body, size_t size);
static void node_look(struct node *node);
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

/* ---- hosts ---------------------------------------------------------------------------------------- */

static struct named_host *host_find(const struct channel_server *server, const char *name)
{
    struct named_host *host;
    HASH_FIND_STR(server->hosts, name, host);
    return host;
}

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

static void host_drop(struct channel_server *server, struct named_host *host)
{
    if (host->nodes != NULL || host->scan_until > clock_now(CLOCK_MONOTONIC))
        return;
    HASH_DEL(server->hosts, host); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
    free(host);
}

/* ---- requests ------------------------------------------------------------------------------------- */

static void request_free(struct channel_request *request)
{
    struct channel_server *server = request->server;
    if (request->node != NULL) {
        DL_DELETE(request->node->requests, request);
        request->node->n_requests--;
        if (request->node->waiting == request)
            request->node->waiting = NULL;
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
    struct node *node = request->node;
    DL_DELETE(node->requests, request);
    node->n_requests--;
    request->node = NULL;
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

/* ---- connections ---------------------------------------------------------------------------------- */

static void node_free(struct node *node, bool finish)
{
    struct channel_server *server = node->server;
    struct channel_request *request, *next;
    DL_FOREACH_SAFE(node->requests, request, next)
    {
        request_orphan(request);
    }
    if (node->proven) {
        DL_DELETE(server->nodes, node);
        server->n_nodes--;
        DL_DELETE2(node->host->nodes, node, prev_of_host, next_of_host);
        host_drop(server, node->host);
    } else {
        DL_DELETE(server->unproven, node);
        server->n_unproven--;
    }
    if (finish)
        stream_finish(node->stream);
    else
        stream_close(node->stream);
    channel_frame_clear(&node->frame);
    timer_free(node->late);
    timer_free(node->silence);
    free(node);
}

/* What a stranger can cause again and again is said once a minute. */
static void node_log(struct node *node, const char *what)
{
    char line[700], again[LOG_LIMIT_AGAIN];
    snprintf(line, sizeof(line), "nodes: %s%s%s: %s", node->address, node->proven ? " " : "", node->name,
             what);
    if (log_limit_may(&node->server->said, line, again))
        log_warning("%s%s", line, again);
    else
        log_debug("%s", line);
}

static void node_refuse(struct node *node, uint32_t number, int code, const char *reason)
{
    struct channel_outcome outcome = {.code = code};
    uint8_t body[CHANNEL_MAX_WORDS];
    snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = CHANNEL_REFUSED,
                                      .request = number,
                                      .body = (uint32_t)channel_put_outcome(&outcome, body)};
    if (channel_put(stream_out(node->stream), &head, "", body) != PMIXFAB_OK)
        log_error("nodes: out of memory");
}

/* The end of a connection, with the reason for both. */
static void node_end(struct node *node, int code, const char *reason)
{
    char line[640];
    snprintf(line, sizeof(line), "%s", reason);
    node_log(node, line);
    if (code != PMIXFAB_ERR_FOREIGN)
        node_refuse(node, 0, code, reason);
    node_free(node, code != PMIXFAB_ERR_FOREIGN);
}

/* When is it late? By what is missing now. */
static void node_set_late(struct node *node)
{
    node->unsent = evbuffer_get_length(stream_out(node->stream));
    if (!node->hello)
        return; /* set when it came */
    if (node->unsent > 0)
        timer_after(node->late, SENT_MS);
    else if (node->frame.begun)
        timer_after(node->late, FRAME_MS);
    else if (node->requests == NULL)
        timer_after(node->late, IDLE_MS);
    else
        timer_cancel(node->late);
}

static void node_on_late(void *arg)
{
    struct node *node = arg;
    const size_t unsent = evbuffer_get_length(stream_out(node->stream));
    if (node->unsent > 0 && unsent < node->unsent) {
        node_set_late(node);
        return;
    }
    if (!node->hello)
        node_log(node, "it has not shown who it is in time: closed");
    else if (unsent > 0 || node->frame.begun)
        node_log(node, "it is too slow: closed");
    node_free(node, false);
}

static void node_write(struct node *node, const struct channel_request *request, enum channel_type type,
                       const char *credential)
{
    struct evbuffer *out = stream_out(node->stream);
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
static void node_write_snapshot(struct node *node, struct channel_request *request, const char *credential)
{
    struct evbuffer *out = stream_out(node->stream);
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
    if (request->node != NULL) {
        node_refuse(request->node, request->number, code, reason);
        node_set_late(request->node);
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

/* False: there is no memory. */
static bool node_become_proven(struct node *node)
{
    struct channel_server *server = node->server;
    struct named_host *host = host_add(server, node->name);
    struct node *others;
    unsigned n;
    if (host == NULL)
        return false;
    DL_DELETE(server->unproven, node);
    server->n_unproven--;
    DL_COUNT2(host->nodes, others, n, next_of_host);
    node->proven = true;
    node->host = host;
    DL_APPEND(server->nodes, node);
    server->n_nodes++;
    DL_APPEND2(host->nodes, node, prev_of_host, next_of_host);
    if (n >= MOST_OF_HOST)
        node_free(host->nodes, false);
    return true;
}

static void request_on_sealed(const struct credential_result *result, void *cbdata)
{
    struct channel_request *request = cbdata;
    struct node *node = request->node;
    struct fab_err err = {""};
    request->job = NULL;
    const int rc = credential_explain(result, "the scheduler's host", &err);
    if (rc != PMIXFAB_OK || strlen(result->text) > CHANNEL_MAX_CREDENTIAL) {
        const bool hello = request->type == CHANNEL_HELLO;
        request_refuse(request, PMIXFAB_ERR_UNREACH, err.text);
        if (hello)
            node_free(node, true);
        return;
    }
    if (request->plane != NULL) {
        known_digest_keep(request->server, request->plane, result->digest);
        node_write_snapshot(node, request, result->text);
        node_set_late(node); /* it is one of those that are being sent until all of it is */
        return;
    }
    node_write(node, request, (enum channel_type)(request->type | CHANNEL_IS_ANSWER), result->text);
    if (request->type == CHANNEL_HELLO && !node_become_proven(node)) {
        node_free(node, false);
        return;
    }
    request_free(request);
    node_set_late(node);
}

static void release_plane(void *plane)
{
    served_plane_put(plane);
}

/* Takes the body. */
static void request_seal(struct channel_request *request, enum channel_type type, uint8_t *body, size_t size)
{
    struct channel_seal seal = request->node->nonces;
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
    if (request->node == NULL) {
        request_free(request);
        return;
    }
    if (code > 0) {
        request_refuse(request, PMIXFAB_ERR_BUSY, reason);
        return;
    }
    if (request->node->waiting != NULL && code == PMIXFAB_OK)
        request->node->known.held = held; /* the node hears it from this answer */
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

static void node_send_news(struct node *node, struct served_set *set, uint64_t held)
{
    struct channel_request *request = node->waiting;
    struct channel_news news = {
        .held = held, .stale = served_is_stale(node->server->served), .scan = node->scan};
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
    node->waiting = NULL;
    node->scan = false;
    timer_cancel(node->silence);
    if (rc != PMIXFAB_OK)
        request_refuse(request, rc, pmixfab_strerror(rc));
    else
        request_seal(request, CHANNEL_NEWS, body, size);
}

/* Is there something to tell? */
static void node_look(struct node *node)
{
    struct channel_server *server = node->server;
    node->look = false;
    if (node->waiting == NULL)
        return;
    struct served_set *set = served_get(server->served);
    const uint64_t held =
        server->calls.held == NULL ? 0 : server->calls.held(node->name, server->calls.cbdata);
    const struct channel_wait *known = &node->known;
    if (known->at_once || node->scan || known->held != held ||
        known->generation != (set == NULL ? 0 : set->generation) ||
        known->published != (set == NULL ? 0 : set->published) ||
        known->stale != served_is_stale(server->served))
        node_send_news(node, set, held);
    served_set_put(set);
}

static void node_on_silence(void *arg)
{
    struct node *node = arg;
    node->known.at_once = true;
    node_look(node);
}

static void server_on_look(void *arg)
{
    struct channel_server *server = arg;
    struct node *node, *next;
    fetch_next(server);
    DL_FOREACH_SAFE(server->nodes, node, next)
    {
        if (node->look)
            node_look(node);
    }
}

static void handle_wait(struct channel_request *request)
{
    struct node *node = request->node;
    struct named_host *host = node->host;
    struct channel_wait wait;
    if (channel_get_wait(request->body, request->size, &wait) != PMIXFAB_OK || node->waiting != NULL) {
        request_refuse(request, PMIXFAB_ERR_CORRUPT, "a question for news that is none, or the second one");
        return;
    }
    free(request->body);
    request->body = NULL;
    node->known = wait;
    node->waiting = request;
    node->scan |= host->scan_until > clock_now(CLOCK_MONOTONIC);
    host->scan_until = 0;
    timer_after(node->silence, SILENCE_MS);
    node_look(node);
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

static bool is_host_name(const char *name)
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
    struct node *node = request->node;
    struct channel_hello hello;
    *code = channel_get_hello(request->body, request->size, &hello);
    if (*code != PMIXFAB_OK || !is_host_name(hello.host)) {
        *code = fab_fail(err, PMIXFAB_ERR_CORRUPT, "its first message names no host");
        return false;
    }
    *code = channel_user_check(&node->server->user, maker, hello.host, err);
    if (*code == PMIXFAB_OK && node->server->n_nodes >= MOST_NODES)
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
    memcpy(node->name, hello.host, sizeof(node->name));
    chance_bytes(node->nonces.scheduler, CHANNEL_NONCE);
    memcpy(body, node->nonces.scheduler, CHANNEL_NONCE);
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
    struct node *node = request->node;
    struct fab_err err = {""};
    request->job = NULL;
    int rc = credential_explain(result, "the scheduler's host", &err);
    if (request->type == CHANNEL_HELLO) {
        if (rc != PMIXFAB_OK || !handle_hello(request, &result->maker, &err, &rc)) {
            count(node->server->counts, count_of_refused(rc));
            node_end(node, rc == PMIXFAB_ERR_FOREIGN ? PMIXFAB_ERR_PERM : rc, err.text);
        }
        return;
    }
    if (rc == PMIXFAB_OK && request->type != CHANNEL_DELIVER)
        rc = channel_user_check(&node->server->user, &result->maker, node->name, &err);
    if (rc != PMIXFAB_OK)
        request_refuse_and_log(request, rc, err.text);
    else if (request->type == CHANNEL_DELIVER)
        handle_deliver(request, &result->maker);
    else if (request->type == CHANNEL_WAIT)
        handle_wait(request);
    else
        handle_fetch(request);
}

/* Each number once, and none that is far behind the highest. */
static bool node_has_seen(struct node *node, uint32_t number)
{
    if (number > node->highest) {
        const uint32_t by = number - node->highest;
        node->seen = by < 64 ? node->seen << by | 1 : 1;
        node->highest = number;
        return false;
    }
    const uint32_t behind = node->highest - number;
    if (behind >= 64 || (node->seen >> behind & 1) != 0)
        return true;
    node->seen |= UINT64_C(1) << behind;
    return false;
}

static void node_take_request(struct node *node)
{
    struct channel_frame *frame = &node->frame;
    struct channel_request *request = calloc(1, sizeof(*request));
    struct channel_seal seal = node->nonces;
    if (request == NULL) {
        node_refuse(node, frame->head.request, PMIXFAB_ERR_NOMEM, "out of memory");
        channel_frame_clear(frame);
        return;
    }
    *request = (struct channel_request){.server = node->server,
                                        .node = node,
                                        .type = frame->head.type,
                                        .number = frame->head.request,
                                        .body = frame->body,
                                        .size = frame->head.body};
    DL_APPEND(node->requests, request);
    node->n_requests++;
    if (request->type == CHANNEL_DELIVER)
        node->server->bytes += request->counted = request->size;
    seal.type = request->type;
    seal.request = request->number;
    const struct credential_body body = {
        .bytes = frame->body, .size = frame->head.body, .release = free, .owner = frame->body};
    request->job =
        credential_open(node->server->worker, &seal, frame->credential, &body, request_on_opened, request);
    *frame = (struct channel_frame){.begun = false};
    if (request->job == NULL)
        request_refuse(request, PMIXFAB_ERR_BUSY, "too many nodes are answered already: come again later");
}

/* The nonce of a HELLO seals it, too. */
static bool node_take_nonce(struct node *node)
{
    struct channel_hello hello;
    if (channel_get_hello(node->frame.body, node->frame.head.body, &hello) != PMIXFAB_OK)
        return false;
    memcpy(node->nonces.node, hello.nonce, CHANNEL_NONCE);
    return true;
}

/* (a channel_allow_fn) */
static int node_allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    const struct node *node = cbdata;
    const bool delivery = head->type == CHANNEL_DELIVER;
    const size_t most = delivery ? FAB_DELIVERY_MAX : CHANNEL_MAX_WORDS;
    if (!node->hello && head->type != CHANNEL_HELLO)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "its first message does not say who it is");
    if (node->hello &&
        (!node->proven || (head->type != CHANNEL_WAIT && head->type != CHANNEL_FETCH && !delivery)))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "a message of type %u, which is not expected", head->type);
    if (head->body > most)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a message of %u bytes: at most %zu are taken",
                        (unsigned)head->body, most);
    const bool full =
        node->n_requests >= MOST_REQUESTS || (delivery && node->server->bytes + head->body > MOST_BYTES);
    return full ? CHANNEL_SKIP : PMIXFAB_OK;
}

/* False: the connection is ended. */
static bool node_take_frame(struct node *node)
{
    const uint32_t number = node->frame.head.request;
    if (!node->hello && !node_take_nonce(node)) {
        node_end(node, PMIXFAB_ERR_CORRUPT, "its first message names no host");
        return false;
    }
    if (node_has_seen(node, number)) {
        node_end(node, PMIXFAB_ERR_PERM, "a message with a number that was used before");
        return false;
    }
    node->hello = true;
    if (node->frame.body == NULL) {
        channel_frame_clear(&node->frame);
        if (++node->n_refused > MOST_REFUSED) {
            node_end(node, PMIXFAB_ERR_BUSY, "it asks again and again, and reads no answer");
            return false;
        }
        node_refuse(node, number, PMIXFAB_ERR_BUSY, "too many deliveries wait already: come again later");
        return true;
    }
    node_take_request(node);
    return true;
}

static void node_on_bytes(struct evbuffer *in, void *cbdata)
{
    struct node *node = cbdata;
    struct fab_err err = {""};
    bool changed = !node->frame.begun;
    int rc;
    while ((rc = channel_take(&node->frame, in, node_allow, node, &err)) == PMIXFAB_OK) {
        if (!node_take_frame(node))
            return;
        changed = true;
    }
    if (rc < 0)
        node_end(node, rc, err.text);
    else if (changed)
        node_set_late(node);
}

static void node_on_sent(void *cbdata)
{
    struct node *node = cbdata;
    struct channel_request *request, *next;
    DL_FOREACH_SAFE(node->requests, request, next)
    {
        if (request->fetching && request->job == NULL)
            request_free(request);
    }
    node->n_refused = 0;
    node_set_late(node);
}

static void node_on_lost(const char *why, void *cbdata)
{
    struct node *node = cbdata;
    log_debug("nodes: %s: %s", node->address, why);
    node_free(node, false);
}

/* ---- connections come ----------------------------------------------------------------------------- */

/* An IPv4 address in one of IPv6 is that. */
static void address_unmap(union credential_address *address)
{
    if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
        return;
    struct sockaddr_in plain = {.sin_family = AF_INET};
    memcpy(&plain.sin_addr, &address->v6.sin6_addr.s6_addr[12], sizeof(plain.sin_addr));
    address->v4 = plain;
}

static const void *address_bytes(const union credential_address *address, size_t *size)
{
    const bool six = address->any.sa_family == AF_INET6;
    *size = six ? sizeof(address->v6.sin6_addr) : sizeof(address->v4.sin_addr);
    return six ? (const void *)&address->v6.sin6_addr : (const void *)&address->v4.sin_addr;
}

static bool same_address(const union credential_address *a, const union credential_address *b)
{
    size_t size_a, size_b;
    const void *bytes_a = address_bytes(a, &size_a), *bytes_b = address_bytes(b, &size_b);
    return a->any.sa_family == b->any.sa_family && memcmp(bytes_a, bytes_b, size_a) == 0;
}

/* Room for one more: the one goes that has been there for longest, of that address or of all. */
static void make_room(struct channel_server *server, const union credential_address *from)
{
    struct node *node, *oldest = NULL, *silent = NULL;
    unsigned n = 0;
    DL_FOREACH(server->unproven, node)
    {
        if (!same_address(&node->from, from))
            continue;
        oldest = oldest == NULL ? node : oldest;
        silent = silent == NULL && !node->hello ? node : silent;
        n++;
    }
    if (n >= UNPROVEN_OF_ONE)
        node_log(oldest,
                 "more than 16 connections of this address have not shown who they are: one is closed");
    else if (server->n_unproven < MOST_UNPROVEN)
        return;
    else
        oldest = server->unproven;
    node_free(n >= UNPROVEN_OF_ONE && silent != NULL ? silent : oldest, false);
}

static void server_on_accept(struct stream *stream, const union credential_address *from, void *cbdata)
{
    static const struct stream_calls calls = {NULL, node_on_bytes, node_on_sent, node_on_lost};
    struct channel_server *server = cbdata;
    union credential_address address = *from;
    size_t size;
    struct node *node = calloc(1, sizeof(*node));
    address_unmap(&address);
    make_room(server, &address);
    if (node == NULL || (node->late = timer_new(server->base, node_on_late, node)) == NULL ||
        (node->silence = timer_new(server->base, node_on_silence, node)) == NULL) {
        if (node != NULL)
            timer_free(node->late);
        free(node);
        stream_close(stream);
        return;
    }
    node->server = server;
    node->stream = stream;
    node->from = address;
    inet_ntop(address.any.sa_family, address_bytes(&address, &size), node->address, sizeof(node->address));
    DL_APPEND(server->unproven, node);
    server->n_unproven++;
    timer_after(node->late, HELLO_MS);
    stream_use(stream, &calls, node);
}

/* ---- for the scheduler ---------------------------------------------------------------------------- */

void channel_server_tell(struct channel_server *server)
{
    struct node *node;
    if (server == NULL || server->served == NULL)
        return;
    known_digests_trim(server, false);
    DL_FOREACH(server->nodes, node)
    {
        node->look = true;
    }
    timer_fire(server->look);
}

void channel_server_held(struct channel_server *server, const char *name)
{
    struct named_host *host = host_find(server, name);
    struct node *node;
    DL_FOREACH2(host == NULL ? NULL : host->nodes, node, next_of_host)
    {
        node->look = true;
    }
    if (host != NULL)
        timer_fire(server->look);
}

/* Those that wait for news are told; where none does, the next one that asks. */
static void scan_host(struct named_host *host)
{
    struct node *node;
    bool heard = false;
    DL_FOREACH2(host->nodes, node, next_of_host)
    {
        node->scan = node->look = node->waiting != NULL;
        heard |= node->scan;
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
        rc = stream_listen(server->base, address, (uint16_t)config->nodes_port, server_on_accept, server,
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
        node_free(server->unproven, false);
    while (server->nodes != NULL)
        node_free(server->nodes, false);
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
