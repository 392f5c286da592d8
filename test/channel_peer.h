/*
 * channel_peer.h - a node's end of the nodes' channel for tests: it sends what a test says, right or wrong.
 *
 * The owner sets encode (a credential of the seal; free()) and idle (wait until something may have come), and
 * calls channel_peer_open(). Answers are read, and not checked.
 */
#ifndef FAB_TEST_CHANNEL_PEER_H
#define FAB_TEST_CHANNEL_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabricd/channel/channel_priv.h"

/* A whole frame. */
static inline int channel_put(struct evbuffer *out, const struct channel_head *head, const char *credential,
                              const void *body)
{
    const int rc = channel_put_head(out, head, credential);
    return rc == PMIXFAB_OK && evbuffer_add(out, body, head->body) != 0 ? PMIXFAB_ERR_NOMEM : rc;
}

struct channel_peer {
    int fd; /* -1: closed */
    struct channel_seal nonces;
    uint32_t last; /* number of a request */
    struct evbuffer *in;
    char *(*encode)(const uint8_t seal[CHANNEL_SEAL], void *cbdata);
    void (*idle)(int fd, void *cbdata);
    void *cbdata;
};

static inline void channel_peer_close(struct channel_peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    if (peer->in != NULL)
        evbuffer_free(peer->in);
    peer->fd = -1;
    peer->in = NULL;
}

static inline bool channel_peer_open(struct channel_peer *peer, const struct sockaddr *to, socklen_t size)
{
    peer->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer->in = evbuffer_new();
    peer->last = 0;
    peer->nonces = (struct channel_seal){.node = "a node's nonce"};
    if (peer->fd < 0 || peer->in == NULL || connect(peer->fd, to, size) != 0) {
        channel_peer_close(peer);
        return false;
    }
    fcntl(peer->fd, F_SETFL, O_NONBLOCK);
    return true;
}

static inline void channel_peer_write(struct channel_peer *peer, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0 && peer->fd >= 0) {
        const ssize_t n = send(peer->fd, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return; /* what came before that can still be read */
        if (n < 0)
            peer->idle(peer->fd, peer->cbdata);
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
}

/* The credential of a request; free(). */
static inline char *channel_peer_seal(const struct channel_peer *peer, uint8_t type, uint32_t number,
                                      const void *body, size_t size)
{
    struct channel_seal seal = peer->nonces;
    uint8_t digest[CHANNEL_DIGEST], bytes[CHANNEL_SEAL];
    seal.type = type;
    seal.request = number;
    channel_digest(body, size, digest);
    channel_seal_put(&seal, digest, bytes);
    return peer->encode(bytes, peer->cbdata);
}

static inline void channel_peer_put(struct channel_peer *peer, uint8_t type, uint32_t number,
                                    const char *credential, const void *body, size_t size)
{
    struct evbuffer *out = evbuffer_new();
    const struct channel_head head = {.version = CHANNEL_VERSION,
                                      .type = type,
                                      .request = number,
                                      .credential = (uint32_t)strlen(credential),
                                      .body = (uint32_t)size};
    if (out == NULL || channel_put(out, &head, credential, body) != PMIXFAB_OK)
        abort();
    channel_peer_write(peer, evbuffer_pullup(out, -1), evbuffer_get_length(out));
    evbuffer_free(out);
}

static inline uint32_t channel_peer_ask(struct channel_peer *peer, uint8_t type, const void *body,
                                        size_t size)
{
    char *credential = channel_peer_seal(peer, type, ++peer->last, body, size);
    channel_peer_put(peer, type, peer->last, credential, body, size);
    free(credential);
    return peer->last;
}

static inline int channel_peer_allow(const struct channel_head *head, void *cbdata, struct fab_err *err)
{
    (void)head, (void)cbdata, (void)err;
    return PMIXFAB_OK;
}

/* The next frame: free its memory. False: the connection is at its end. */
static inline bool channel_peer_read(struct channel_peer *peer, struct channel_frame *frame)
{
    struct fab_err err = {""};
    char bytes[65536];
    *frame = (struct channel_frame){.begun = false};
    while (peer->fd >= 0 && channel_take(frame, peer->in, channel_peer_allow, NULL, &err) == CHANNEL_MORE) {
        const ssize_t n = recv(peer->fd, bytes, sizeof(bytes), 0);
        if (n > 0) {
            evbuffer_add(peer->in, bytes, (size_t)n);
        } else if (n < 0 && errno == EAGAIN) {
            peer->idle(peer->fd, peer->cbdata);
        } else {
            channel_frame_clear(frame);
            channel_peer_close(peer);
        }
    }
    return peer->fd >= 0;
}

/* An answer with a code, or a refusal. False: the connection is at its end. */
static inline bool channel_peer_outcome(struct channel_peer *peer, struct channel_outcome *out)
{
    struct channel_frame frame;
    if (!channel_peer_read(peer, &frame))
        return false;
    const bool good = channel_get_outcome(frame.body, frame.head.body, out) == PMIXFAB_OK;
    channel_frame_clear(&frame);
    return good;
}

/* True: the scheduler takes it. Else why not, in *out, or code 0: it hung up. */
static inline bool channel_peer_hello(struct channel_peer *peer, const char *host,
                                      struct channel_outcome *out)
{
    struct channel_hello hello = {.host = ""};
    struct channel_frame frame;
    uint8_t body[CHANNEL_MAX_WORDS];
    *out = (struct channel_outcome){.code = 0};
    memcpy(hello.nonce, peer->nonces.node, CHANNEL_NONCE);
    memcpy(hello.host, host, strnlen(host, sizeof(hello.host) - 1));
    channel_peer_ask(peer, CHANNEL_HELLO, body, channel_put_hello(&hello, body));
    if (!channel_peer_read(peer, &frame))
        return false;
    const bool welcome = frame.head.type == CHANNEL_WELCOME && frame.head.body == CHANNEL_NONCE;
    if (welcome)
        memcpy(peer->nonces.scheduler, frame.body, CHANNEL_NONCE);
    else
        channel_get_outcome(frame.body, frame.head.body, out);
    channel_frame_clear(&frame);
    return welcome;
}

#endif
