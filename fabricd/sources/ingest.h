/*
 * ingest.h - the intake of deliveries: authenticate the sender, check its permission and the format.
 *
 * A delivery has the format of topo/model/delivery.h. The nodes' channel (fabricd/channel) provides its
 * maker: root or the configured node user. It is accepted only for the host where its credential was made.
 * Refusals are answered here, and logged; accepted deliveries go to the receiver, many at once. All on the
 * loop.
 */
#ifndef FABRICD_SOURCES_INGEST_H
#define FABRICD_SOURCES_INGEST_H

#include <event2/event.h>

#include "fabricd/channel/channel.h"
#include "topo/model/delivery.h"

/* An authenticated delivery. The receiver answers it, exactly once. */
struct ingest_item {
    struct ingest_item *prev, *next; /* utlist, in the order of arrival */
    struct fab_delivery delivery;    /* the item owns its bytes */
    unsigned uid;
    void *priv;
};

/* Called on the loop with a list of at least one. */
typedef void (*ingest_fn)(struct ingest_item *list, void *cbdata);

struct ingest;

/* The parts that the intake uses. */
struct ingest_parts {
    struct event_base *base;
    const struct config *config;
    struct counts *counts;
    struct credential_worker *worker; /* resolves names */
};

/* Start the intake. PMIXFAB_ERR_NOMEM. On error *out is NULL. */
int ingest_start(const struct ingest_parts *parts, ingest_fn fn, void *cbdata, struct ingest **out,
                 struct fab_err *err);
/* Refuse waiting deliveries. Those at the receiver must have been answered. NULL allowed. */
void ingest_stop(struct ingest *ingest);

/*
 * Answer and free an item, on the loop. code 0: the item is stored. held: the digest of this host's stored
 * report (0: none). The sender uses it to decide which data to send next. reason: a line, "" for code 0.
 */
void ingest_answer(struct ingest_item *item, int code, uint64_t held, const char *reason);

/*
 * Process a delivery. The first function is for a delivery of a node, with a valid credential. The second
 * function is for a delivery of this host's workload manager over the control socket. In that case the uid is
 * from the kernel, and may report for any host. The first function takes the bytes, which are from malloc().
 * `done` is called once, on the loop. The first function may call it before it returns. Without an intake
 * (NULL), the first function rejects the delivery, and the second returns PMIXFAB_ERR_UNSUPPORTED.
 */
#define INGEST_NOBODY 1 /* a code: deliveries are not accepted (now) */
typedef void (*ingest_done_fn)(int code, uint64_t held, const char *reason, void *cbdata);
void ingest_deliver(struct ingest *ingest, const struct credential_maker *maker, void *bytes, size_t size,
                    ingest_done_fn done, void *cbdata);
int ingest_local(struct ingest *ingest, const void *bytes, size_t size, unsigned uid, ingest_done_fn done,
                 void *cbdata, struct fab_err *err);

#endif
