/*
 * inventory_queue.h - hosts' inventories that wait to be delivered: the newest of each host, in the order in
 * which the hosts came. Bounded. No lock: one thread at a time.
 */
#ifndef FAB_PNET_INVENTORY_QUEUE_H
#define FAB_PNET_INVENTORY_QUEUE_H

#include <uthash.h>

#include "topo/report/delivery.h"

#define PNET_QUEUE_MAX_HOSTS 65536
#define PNET_QUEUE_MAX_BYTES ((size_t)128 << 20)

struct pnet_waiting {
    UT_hash_handle hh;
    size_t size;
    void *bytes;
    char host[FAB_HOST_MAX + 1];
};

struct pnet_queue {
    struct pnet_waiting *hosts; /* of uthash, NULL: none */
    size_t bytes;
    size_t max_hosts, max_bytes; /* 0: those above */
};

/* A copy of the bytes; what waited of this host is replaced, in its place. PMIXFAB_ERR_RANGE: too much waits
 * already. PMIXFAB_ERR_NOMEM. On error what waited still does. */
int pnet_queue_add(struct pnet_queue *queue, const char *host, const void *bytes, size_t size);

/* The first one, which is the caller's (pnet_waiting_free); NULL: none. */
struct pnet_waiting *pnet_queue_take(struct pnet_queue *queue);

/* What was taken waits again, unless there is a newer one of its host (or no memory). */
void pnet_queue_return(struct pnet_queue *queue, struct pnet_waiting *waiting);

size_t pnet_queue_count(const struct pnet_queue *queue);
void pnet_queue_clear(struct pnet_queue *queue);
void pnet_waiting_free(struct pnet_waiting *waiting); /* NULL allowed */

#endif
