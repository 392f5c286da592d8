/* channel_peers.c - connections of nodes: limits, frames, and their end. */
#include "fabricd/channel/channel_peers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "topo/model/delivery.h"

#define MOST_UNPROVEN   1024 /* connections that have not shown who they are */
#define UNPROVEN_OF_ONE 16   /* of them, of an address */
#define MOST_OF_HOST    4    /* of a host, that have: the one that has been there for longest goes */
#define MOST_REQUESTS   16   /* of a connection at once */
#define MOST_REFUSED    1024 /* answers that say so and are not sent yet */

#define HELLO_MS 10000  /* so long a connection may take until its first frame is whole */
#define FRAME_MS 60000  /* so long any other frame may take */
#define SENT_MS  60000  /* so long nothing of what is sent may go away */
#define IDLE_MS  300000 /* so long a node may want nothing */

/* ---- hosts ---------------------------------------------------------------------------------------- */

struct named_host *host_find(const struct channel_server *server, const char *name)
{
    struct named_host *host;
    HASH_FIND_STR(server->hosts, name, host);
    return host;
}

struct named_host *host_add(struct channel_server *server, const char *name)
{
    struct named_host *host = host_find(server, name);
    const size_t size = strlen(name) + 1;
    if (host != NULL || (host = calloc(1, sizeof(*host) + size)) == NULL)
        return host;
    memcpy(host->name, name, size);
    HASH_ADD_STR(server->hosts, name, host);
    return host;
}

void host_drop(struct channel_server *server, struct named_host *host)
{
    if (host->nodes != NULL || host->scan_until > clock_now(CLOCK_MONOTONIC))
        return;
    HASH_DEL(server->hosts, host); /* NOLINT(clang-analyzer-unix.Malloc): nothing links to a freed one */
    free(host);
}

/* ---- the end of a connection ---------------------------------------------------------------------- */

void peer_free(struct peer *peer, bool finish)
{
    struct channel_server *server = peer->server;
    server->up.gone(peer);
    if (peer->proven) {
        DL_DELETE(server->nodes, peer);
        server->n_nodes--;
        DL_DELETE2(peer->host->nodes, peer, prev_of_host, next_of_host);
        host_drop(server, peer->host);
    } else {
        DL_DELETE(server->unproven, peer);
        server->n_unproven--;
    }
    if (finish)
        stream_finish(peer->stream);
    else
        stream_close(peer->stream);
    channel_frame_clear(&peer->frame);
    timer_free(peer->late);
    timer_free(peer->silence);
    free(peer);
}

/* What a stranger can cause again and again is said once a minute. */
static void peer_log(struct peer *peer, const char *what)
{
    char line[700], again[LOG_LIMIT_AGAIN];
    snprintf(line, sizeof(line), "nodes: %s%s%s: %s", peer->address, peer->proven ? " " : "", peer->name,
             what);
    if (log_limit_may(&peer->server->said, line, again))
        log_warning("%s%s", line, again);
    else
        log_debug("%s", line);
}

void peer_refuse(struct peer *peer, uint32_t number, int code, const char *reason)
{
    struct channel_outcome outcome = {.code = code};
    uint8_t body[CHANNEL_MAX_WORDS];
    snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = CHANNEL_REFUSED,
                                      .request = number,
                                      .body = (uint32_t)channel_put_outcome(&outcome, body)};
    if (channel_put(stream_out(peer->stream), &head, "", body) != PMIXFAB_OK)
        log_error("nodes: out of memory");
}

void peer_end(struct peer *peer, int code, const char *reason)
{
    char line[640];
    snprintf(line, sizeof(line), "%s", reason);
    peer_log(peer, line);
    if (code != PMIXFAB_ERR_FOREIGN)
        peer_refuse(peer, 0, code, reason);
    peer_free(peer, code != PMIXFAB_ERR_FOREIGN);
}

void peer_set_late(struct peer *peer)
{
    peer->unsent = evbuffer_get_length(stream_out(peer->stream));
    if (!peer->hello)
        return; /* set when it came */
    if (peer->unsent > 0)
        timer_after(peer->late, SENT_MS);
    else if (peer->frame.begun)
        timer_after(peer->late, FRAME_MS);
    else if (peer->requests == NULL)
        timer_after(peer->late, IDLE_MS);
    else
        timer_cancel(peer->late);
}

static void peer_on_late(void *arg)
{
    struct peer *peer = arg;
    const size_t unsent = evbuffer_get_length(stream_out(peer->stream));
    if (peer->unsent > 0 && unsent < peer->unsent) {
        peer_set_late(peer);
        return;
    }
    if (!peer->hello)
        peer_log(peer, "it has not shown who it is in time: closed");
    else if (unsent > 0 || peer->frame.begun)
        peer_log(peer, "it is too slow: closed");
    peer_free(peer, false);
}

/* ---- frames --------------------------------------------------------------------------------------- */

/* Each number once, and none that is far behind the highest. */
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

/* The nonce of a HELLO seals it, too. */
static bool peer_take_nonce(struct peer *peer)
{
    struct channel_hello hello;
    if (channel_get_hello(peer->frame.body, peer->frame.head.body, &hello) != PMIXFAB_OK)
        return false;
    memcpy(peer->nonces.node, hello.nonce, CHANNEL_NONCE);
    return true;
}

/* (a channel_allow_fn) */
static int peer_allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    const struct peer *peer = cbdata;
    const bool delivery = head->type == CHANNEL_DELIVER;
    const size_t most = delivery ? FAB_DELIVERY_MAX : CHANNEL_MAX_WORDS;
    if (!peer->hello && head->type != CHANNEL_HELLO)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "its first message does not say who it is");
    if (peer->hello &&
        (!peer->proven || (head->type != CHANNEL_WAIT && head->type != CHANNEL_FETCH && !delivery)))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "a message of type %u, which is not expected", head->type);
    if (head->body > most)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "a message of %u bytes: at most %zu are taken",
                        (unsigned)head->body, most);
    const bool full =
        peer->n_requests >= MOST_REQUESTS || (delivery && peer->server->bytes + head->body > MOST_BYTES);
    return full ? CHANNEL_SKIP : PMIXFAB_OK;
}

/* False: the connection is ended. */
static bool peer_take_frame(struct peer *peer)
{
    const uint32_t number = peer->frame.head.request;
    if (!peer->hello && !peer_take_nonce(peer)) {
        peer_end(peer, PMIXFAB_ERR_CORRUPT, "its first message names no host");
        return false;
    }
    if (peer_has_seen(peer, number)) {
        peer_end(peer, PMIXFAB_ERR_PERM, "a message with a number that was used before");
        return false;
    }
    peer->hello = true;
    if (peer->frame.body == NULL) {
        channel_frame_clear(&peer->frame);
        if (++peer->n_refused > MOST_REFUSED) {
            peer_end(peer, PMIXFAB_ERR_BUSY, "it asks again and again, and reads no answer");
            return false;
        }
        peer_refuse(peer, number, PMIXFAB_ERR_BUSY, "too many deliveries wait already: come again later");
        return true;
    }
    peer->server->up.frame(peer);
    return true;
}

static void peer_on_bytes(struct evbuffer *in, void *cbdata)
{
    struct peer *peer = cbdata;
    struct fab_err err = {""};
    bool changed = !peer->frame.begun;
    int rc;
    while ((rc = channel_take(&peer->frame, in, peer_allow, peer, &err)) == PMIXFAB_OK) {
        if (!peer_take_frame(peer))
            return;
        changed = true;
    }
    if (rc < 0)
        peer_end(peer, rc, err.text);
    else if (changed)
        peer_set_late(peer);
}

static void peer_on_sent(void *cbdata)
{
    struct peer *peer = cbdata;
    peer->server->up.sent(peer);
    peer->n_refused = 0;
    peer_set_late(peer);
}

static void peer_on_lost(const char *why, void *cbdata)
{
    struct peer *peer = cbdata;
    log_debug("nodes: %s: %s", peer->address, why);
    peer_free(peer, false);
}

/* ---- the start of a connection -------------------------------------------------------------------- */

bool peer_become_proven(struct peer *peer)
{
    struct channel_server *server = peer->server;
    struct named_host *host = host_add(server, peer->name);
    struct peer *others;
    unsigned n;
    if (host == NULL)
        return false;
    DL_DELETE(server->unproven, peer);
    server->n_unproven--;
    DL_COUNT2(host->nodes, others, n, next_of_host);
    peer->proven = true;
    peer->host = host;
    DL_APPEND(server->nodes, peer);
    server->n_nodes++;
    DL_APPEND2(host->nodes, peer, prev_of_host, next_of_host);
    if (n >= MOST_OF_HOST)
        peer_free(host->nodes, false);
    return true;
}

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
    struct peer *peer, *oldest = NULL, *silent = NULL;
    unsigned n = 0;
    DL_FOREACH(server->unproven, peer)
    {
        if (!same_address(&peer->from, from))
            continue;
        oldest = oldest == NULL ? peer : oldest;
        silent = silent == NULL && !peer->hello ? peer : silent;
        n++;
    }
    if (n >= UNPROVEN_OF_ONE)
        peer_log(oldest,
                 "more than 16 connections of this address have not shown who they are: one is closed");
    else if (server->n_unproven < MOST_UNPROVEN)
        return;
    else
        oldest = server->unproven;
    peer_free(n >= UNPROVEN_OF_ONE && silent != NULL ? silent : oldest, false);
}

void peers_accept(struct stream *stream, const union credential_address *from, void *cbdata)
{
    static const struct stream_calls calls = {NULL, peer_on_bytes, peer_on_sent, peer_on_lost};
    struct channel_server *server = cbdata;
    union credential_address address = *from;
    size_t size;
    struct peer *peer = calloc(1, sizeof(*peer));
    address_unmap(&address);
    make_room(server, &address);
    if (peer == NULL || (peer->late = timer_new(server->base, peer_on_late, peer)) == NULL ||
        (peer->silence = timer_new(server->base, server->up.silence, peer)) == NULL) {
        if (peer != NULL)
            timer_free(peer->late);
        free(peer);
        stream_close(stream);
        return;
    }
    peer->server = server;
    peer->stream = stream;
    peer->from = address;
    inet_ntop(address.any.sa_family, address_bytes(&address, &size), peer->address, sizeof(peer->address));
    DL_APPEND(server->unproven, peer);
    server->n_unproven++;
    timer_after(peer->late, HELLO_MS);
    stream_use(stream, &calls, peer);
}
