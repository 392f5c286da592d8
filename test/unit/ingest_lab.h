/* ingest_lab.h - an intake whose resolver is a stand-in that can fail, and that can be held. */
#ifndef FAB_TEST_INGEST_LAB_H
#define FAB_TEST_INGEST_LAB_H

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

#include "fabricd/sources/entry.h"
#include "test/unit/delivered.h"

/* What the next deliveries are, and what the resolver says. */
static struct {
    uid_t uid;
    const char *origin;
    const void *bytes;
    int size;
    const char *address; /* of every host; NULL: none is known */
    const char *ours;
    int resolver; /* EAI_... of every name; 0: as above */
    int64_t takes, now;
    unsigned resolved; /* so many times */
    struct ingest_names names;
} lab;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static pthread_cond_t gate_reached = PTHREAD_COND_INITIALIZER;
static bool gate_closed, at_the_gate; /* the resolver takes its time; somebody waits for it */

static inline void set_gate(bool closed)
{
    pthread_mutex_lock(&gate);
    gate_closed = closed;
    pthread_cond_broadcast(&gate_opened);
    pthread_mutex_unlock(&gate);
}

/* With the gate locked: somebody comes to it, or leaves. */
static inline void tell_at_the_gate(bool there)
{
    at_the_gate = there;
    pthread_cond_broadcast(&gate_reached);
}

static inline void wait_until_at_the_gate(bool there)
{
    pthread_mutex_lock(&gate);
    while (at_the_gate != there)
        pthread_cond_wait(&gate_reached, &gate);
    pthread_mutex_unlock(&gate);
}

static inline int lab_resolve(const char *host, int family, struct credential_addresses *out)
{
    (void)host, (void)family;
    pthread_mutex_lock(&gate);
    tell_at_the_gate(gate_closed);
    while (gate_closed)
        pthread_cond_wait(&gate_opened, &gate);
    tell_at_the_gate(false);
    lab.resolved++;
    lab.now += lab.takes;
    pthread_mutex_unlock(&gate);
    out->n = 0;
    if (lab.resolver != 0)
        return lab.resolver;
    if (lab.address == NULL)
        return EAI_NONAME;
    out->at[0].v4 = (struct sockaddr_in){.sin_family = AF_INET};
    out->n = inet_pton(AF_INET, lab.address, &out->at[0].v4.sin_addr) == 1;
    return 0;
}

static inline bool lab_is_ours(struct in_addr address)
{
    struct in_addr ours;
    return lab.ours != NULL && inet_pton(AF_INET, lab.ours, &ours) == 1 && ours.s_addr == address.s_addr;
}

static const struct credential_calls lab_calls = {NULL, NULL, lab_resolve};

static inline struct credential_maker lab_maker(void)
{
    struct credential_maker maker = {.uid = lab.uid};
    inet_pton(AF_INET, lab.origin, &maker.origin);
    return maker;
}

/* The bytes of a delivery; free(). */
static inline void *lab_bytes(void)
{
    void *bytes = malloc((size_t)lab.size + 1);
    if (lab.size > 0)
        memcpy(bytes, lab.bytes, (size_t)lab.size);
    return bytes;
}

/* Of a host with nothing in it; lab.size is its size. */
static inline void *lab_delivery(const char *host)
{
    size_t size;
    void *bytes = delivery_of(host, NULL, 0, &size);
    lab.size = (int)size;
    return bytes;
}

static inline int lab_setup(void **state)
{
    memset(&lab, 0, sizeof(lab));
    lab.origin = lab.address = "10.0.0.7";
    lab.bytes = *state = lab_delivery("node7");
    credential_calls = &lab_calls;
    return 0;
}

static inline int lab_teardown(void **state)
{
    ingest_names_clear(&lab.names);
    free(*state);
    return 0;
}

#define LAB_TEST(name) TEST_WITH(name, lab_setup, lab_teardown)

#endif
