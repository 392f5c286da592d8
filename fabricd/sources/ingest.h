/*
 * ingest.h - what nodes deliver, on its way in: who is it, may he, is it well formed.
 *
 * A delivery is the bytes of topo/model/delivery.h, of which the nodes' channel (fabricd/channel) says who
 * made them: root or the configured node user. It is accepted only for the host that its credential was made
 * on. What is refused is answered from here, and logged; what is good goes to the
 * receiver, many at once. All on the loop.
 */
#ifndef FABRICD_SOURCES_INGEST_H
#define FABRICD_SOURCES_INGEST_H

#include <event2/event.h>

#include "fabricd/channel/channel.h"
#include "topo/model/delivery.h"

/* One delivery that may be believed. Whoever gets it answers it, once. */
struct ingest_item {
    struct ingest_item *prev, *next; /* utlist, in the order of arrival */
    struct fab_delivery delivery;    /* its bytes belong to the item */
    unsigned uid;
    void *priv;
};

/* On the loop: a list of at least one. */
typedef void (*ingest_fn)(struct ingest_item *list, void *cbdata);

struct ingest;

/* What the intake works with. */
struct ingest_parts {
    struct event_base *base;
    const struct config *config;
    struct counts *counts;
    struct credential_worker *worker; /* resolves names */
};

/* PMIXFAB_ERR_NOMEM. On error *out is NULL. */
int ingest_start(const struct ingest_parts *parts, ingest_fn fn, void *cbdata, struct ingest **out,
                 struct fab_err *err);
/* What waits is turned away. What the receiver has is answered by then. NULL allowed. */
void ingest_stop(struct ingest *ingest);

/*
 * Answer and free. code 0: it is stored. `held`: digest of what is held of this host now (0: nothing), from
 * which the sender knows what to send next. reason: a line, "" for 0. On the loop.
 */
void ingest_answer(struct ingest_item *item, int code, uint64_t held, const char *reason);

/*
 * A delivery of a node, whose credential was good; or of this host's own workload manager, over the control
 * socket: the kernel named the uid, which may speak for any host. Takes the bytes of the first, which are
 * from malloc(). `done` is called once, on the loop; for the first perhaps before this returns. Without an
 * intake (NULL) the first is turned away, the second PMIXFAB_ERR_UNSUPPORTED.
 */
#define INGEST_NOBODY 1 /* a code: nobody takes deliveries (now) */
typedef void (*ingest_done_fn)(int code, uint64_t held, const char *reason, void *cbdata);
void ingest_deliver(struct ingest *ingest, const struct credential_maker *maker, void *bytes, size_t size,
                    ingest_done_fn done, void *cbdata);
int ingest_local(struct ingest *ingest, const void *bytes, size_t size, unsigned uid, ingest_done_fn done,
                 void *cbdata, struct fab_err *err);

#endif
