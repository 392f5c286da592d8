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
#include <pmix_server.h>

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
void ingest_stop(void); /* before the PMIx server ends: what waits is refused */

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

/* RELAY_DELIVER, on PMIx's thread. PMIX_SUCCESS: it is answered through cbfunc. */
pmix_status_t ingest_deliver(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata);

/*
 * A delivery of this host's own workload manager, over the control socket: the kernel named the uid, which
 * may speak for any host. `done` is called once, on the loop.
 */
typedef void (*ingest_done_fn)(int code, uint64_t held, const char *reason, void *cbdata);
int ingest_local(const void *bytes, size_t size, unsigned uid, ingest_done_fn done, void *cbdata,
                 struct fab_err *err);

/* ---- the other way: what the scheduler wants of nodes ----------------------------------------------- */

/* RELAY_SCAN_REQUESTS, on PMIx's thread: a node waits for a scan request; answered when there is one, or
 * after RELAY_SUBSCRIBE_SECONDS. */
pmix_status_t ingest_scan_requests(const pmix_proc_t *requestor, const pmix_info_t info[], size_t n,
                                   pmix_lookup_cbfunc_t cbfunc, void *cbdata);

/* Ask a node (NULL: every one) to scan its devices and deliver, changed or not. How many were waiting for
 * an order. On the loop. */
unsigned ingest_request_scan(const char *host);

/* Digest that is held of a host, for RELAY_SCAN_REQUESTS; asked on PMIx's thread, so the intake keeps a copy:
 * tell it what is held whenever that changes (0: nothing). */
void ingest_acked(const char *host, uint64_t digest);

#endif
