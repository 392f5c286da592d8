/* channel_tool.h - for tools: a channel_peer with this host's munge, and the place of a scheduler. */
#ifndef FAB_TEST_CHANNEL_TOOL_H
#define FAB_TEST_CHANNEL_TOOL_H

#include <munge.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>

#include "test/channel_peer.h"

static inline char *tool_encode(const uint8_t seal[CHANNEL_SEAL], void *cbdata)
{
    char *credential = NULL;
    (void)cbdata;
    const munge_err_t rc = munge_encode(&credential, NULL, seal, CHANNEL_SEAL);
    if (rc != EMUNGE_SUCCESS) {
        fprintf(stderr, "munge: %s\n", munge_strerror(rc));
        exit(1);
    }
    return credential;
}

static inline void tool_idle(int fd, void *cbdata)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    (void)cbdata;
    poll(&one, 1, -1);
}

/* place: HOST:PORT. False: nobody listens there. */
static inline bool tool_open(struct channel_peer *peer, const char *place)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    char host[256];
    const char *colon = strrchr(place, ':');
    snprintf(host, sizeof(host), "%.*s", colon == NULL ? 0 : (int)(colon - place), place);
    if (colon == NULL || getaddrinfo(host, colon + 1, &hints, &all) != 0)
        return false;
    if (peer->encode == NULL)
        peer->encode = tool_encode;
    peer->idle = tool_idle;
    const bool open = channel_peer_open(peer, all->ai_addr, all->ai_addrlen);
    freeaddrinfo(all);
    return open;
}

#endif
