/*
 * ingest.h - what nodes deliver, on its way in: who is it, may he, is it well formed.
 *
 * A delivery is a munge credential around the bytes of topo/report/delivery.h. A thread of the intake's own
 * opens them, since munged and the resolver may take their time: only root and the configured node user, and
 * only for the host that the credential was made on. What is refused is answered from here, and logged; what
 * is good goes to the loop, many at once.
 */
#ifndef FABRICD_INGEST_INGEST_H
#define FABRICD_INGEST_INGEST_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "topo/report/delivery.h"

/* One delivery that may be believed. Whoever gets it answers it, once. */
struct ingest_item {
    struct ingest_item *prev, *next; /* utlist, in the order of arrival */
    struct fab_delivery delivery;    /* its bytes belong to the item */
    unsigned uid;
    void *priv;
};

/* On the loop: a list of at least one. */
typedef void (*ingest_fn)(struct ingest_item *list, void *cbdata);

int ingest_start(struct event_base *base, const struct config *config, ingest_fn fn, void *cbdata,
                 struct fab_err *err);
void ingest_stop(void); /* before the front ends: what waits is turned away */

/*
 * Answer and free. code 0: it is stored. `held`: digest of what is held of this host now (0: nothing), from
 * which the sender knows what to send next. reason: a line, "" for 0. Any thread.
 */
void ingest_answer(struct ingest_item *item, int code, uint64_t held, const char *reason);

/*
 * May the log say what a sender can cause again and again? Once a minute of the same, which need not be the
 * line itself. again: "", or how often it was kept back since, to follow the line. Any thread.
 */
#define INGEST_AGAIN_TEXT 64
bool ingest_may_log(const char *what, char again[INGEST_AGAIN_TEXT]);

/*
 * A delivery of a node, as the munge credential that the front was given; or of this host's own workload
 * manager, over the control socket: the kernel named the uid, which may speak for any host. `done` is called
 * once, on the loop; for the first perhaps before this returns.
 */
#define INGEST_NOBODY 1 /* a code: nobody takes deliveries (now) */
typedef void (*ingest_done_fn)(int code, uint64_t held, const char *reason, void *cbdata);
void ingest_deliver(const char *credential, ingest_done_fn done, void *cbdata);
int ingest_local(const void *bytes, size_t size, unsigned uid, ingest_done_fn done, void *cbdata,
                 struct fab_err *err);

#endif
