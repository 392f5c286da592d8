/* channel_world.h - for tests of the nodes' channel: a played munge, and a loop that turns until something is
 * so. */
#ifndef FAB_TEST_CHANNEL_WORLD_H
#define FAB_TEST_CHANNEL_WORLD_H

#include <arpa/inet.h>
#include <event2/thread.h>
#include <poll.h>
#include <pthread.h>

#include "fabricd/channel/channel_priv.h"
#include "test/unit/test.h"
#include "topo/base/text.h"

/* A credential is its maker's uid, his address and the payload. munge opens each once. */
static struct {
    pthread_mutex_t lock;
    unsigned uid;       /* of who makes the next ones */
    const char *origin; /* and where */
    bool away;          /* nobody answers */
    char *opened[4096];
    unsigned n;
    struct event_base *base;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .origin = "10.0.0.7"};

static inline char *world_credential(const void *bytes, size_t size)
{
    static unsigned number;
    char *text = must_have(128 + 2 * size), *at = text;
    pthread_mutex_lock(&world.lock);
    at += sprintf(at, "MUNGE:%u:%u:%s:", ++number, world.uid, world.origin);
    pthread_mutex_unlock(&world.lock);
    for (size_t i = 0; i < size; i++)
        at += sprintf(at, "%02x", ((const unsigned char *)bytes)[i]);
    return text;
}

static inline munge_err_t world_encode(const void *bytes, size_t size, char **text)
{
    if (world.away)
        return EMUNGE_SOCKET;
    *text = world_credential(bytes, size);
    return EMUNGE_SUCCESS;
}

static inline bool world_was_opened(const char *text)
{
    bool found = false;
    pthread_mutex_lock(&world.lock);
    for (unsigned i = 0; i < world.n; i++)
        found |= strcmp(world.opened[i], text) == 0;
    if (!found && world.n < 4096)
        world.opened[world.n++] = strdup(text);
    pthread_mutex_unlock(&world.lock);
    return found;
}

static inline munge_err_t world_decode(const char *text, struct credential_payload *out)
{
    char origin[32];
    int head = 0;
    unsigned uid;
    *out = (struct credential_payload){.maker = {.uid = (uid_t)-1}};
    if (world.away)
        return EMUNGE_SOCKET;
    if (sscanf(text, "MUNGE:%*u:%u:%31[0-9.]:%n", &uid, origin, &head) != 2 || head == 0)
        return EMUNGE_CRED_INVALID;
    out->maker.uid = uid;
    inet_pton(AF_INET, origin, &out->maker.origin);
    if (world_was_opened(text))
        return EMUNGE_CRED_REPLAYED;
    unsigned char *bytes = out->bytes = must_have(strlen(text));
    for (const char *hex = text + head; hex[0] != '\0'; hex += 2) {
        if (fab_hex_digit(hex[0]) < 0 || fab_hex_digit(hex[1]) < 0)
            return EMUNGE_CRED_INVALID;
        bytes[out->size++] = (unsigned char)(fab_hex_digit(hex[0]) * 16 + fab_hex_digit(hex[1]));
    }
    return EMUNGE_SUCCESS;
}

static inline int world_resolve(const char *host, int family, struct credential_addresses *out)
{
    (void)host, (void)family;
    out->n = 1;
    out->at[0].v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return 0;
}

static const struct credential_calls world_calls = {world_encode, world_decode, world_resolve};

static inline void world_begin(void)
{
    evthread_use_pthreads();
    credential_calls = &world_calls;
    world.uid = 0;
    world.origin = "10.0.0.7";
    world.away = false;
    world.base = event_base_new();
    assert_non_null(world.base);
}

static inline void world_end(void)
{
    event_base_free(world.base);
    while (world.n > 0)
        free(world.opened[--world.n]);
}

static inline void world_turn(void)
{
    event_base_loop(world.base, EVLOOP_NONBLOCK);
    poll(NULL, 0, 1);
}

/* (an idle function of channel_peer.h) */
static inline void world_idle(int fd, void *cbdata)
{
    (void)fd, (void)cbdata;
    world_turn();
}

#define TURN_UNTIL(condition)                                                                                \
    do {                                                                                                     \
        for (unsigned turn_ = 0; !(condition); turn_++) {                                                    \
            if (turn_ == 20000)                                                                              \
                fail_msg("never: %s", #condition);                                                           \
            world_turn();                                                                                    \
        }                                                                                                    \
    } while (0)

#endif
