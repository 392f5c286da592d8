/*
 * host_reports.h - the stored reports of all hosts. This file stores deliveries and decides the time to
 * publish them. ingest.h receives and checks deliveries of nodes.
 *
 * Deliveries that arrive together are stored in one transaction and answered after it. Reports are published
 * after a quiet time. It is 5 ms after a change of one known host. If several or new hosts report, it is
 * longer (config->debounce_ms), so that the start of a thousand nodes is one generation. The limit is three
 * times the quiet time.
 */
#ifndef FABRICD_SOURCES_HOST_REPORTS_H
#define FABRICD_SOURCES_HOST_REPORTS_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "fabricd/sources/ingest.h"
#include "fabricd/store/store_tables.h"
#include "topo/join/join.h"
#include "topo/model/host_name.h"
#include "topo/model/report.h"

struct node_report {
    struct fab_report report; /* finished */
    uint64_t digest;
    int64_t received; /* microseconds since 1970 */
    unsigned uid;     /* the user who delivered it */
    uint32_t failed;  /* sources whose probe failed the last time: bits 1 << enum fab_source; not stored */
};

struct host_reports;

/* Load the stored reports. `changed` is called on the loop when changed reports are due for publication.
 * server, or NULL: gets each change of a held report. */
int host_reports_new(struct event_base *base, const struct config *config, struct store *store,
                     struct channel_server *server, void (*changed)(void *cbdata), void *cbdata,
                     struct host_reports **out, struct fab_err *err);
void host_reports_free(struct host_reports *nodes); /* NULL allowed */

/* Store a list of deliveries, answer them, and schedule the publication. (an ingest_fn) */
void host_reports_accept(struct ingest_item *list, void *nodes);

/* Store a report of the scheduler's own host, from its own probes. Takes its contents. True: it differs from
 * the last one. */
bool host_reports_own(struct host_reports *nodes, struct fab_report *report, struct fab_err *err);

/* Note the sources whose probe failed on a host: from its delivery, or for the own host from the daemon. */
void host_reports_failed(struct host_reports *nodes, const char *host, uint32_t sources);

/* Return all reports, by host (natural order). Valid until the next call of another function of nodes. */
const struct node_report *const *host_reports_all(const struct host_reports *nodes, uint32_t *n);
const struct node_report *host_reports_find(const struct host_reports *nodes, const char *host);
/* Return the digest of the report held of a host; 0: none. */
uint64_t host_reports_held(const char *host, void *nodes);
/* Find the host that a name refers to, with or without a domain. */
struct fab_host_choice host_reports_choose(const struct host_reports *nodes, const char *name);

/* Called for each valid delivery, even if it changes nothing, once it is stored. On the loop. */
typedef void (*host_reports_heard_fn)(const char *host, void *cbdata);
void host_reports_on_heard(struct host_reports *nodes, host_reports_heard_fn heard, void *cbdata);

/* Return whether changed reports wait for their publication. */
bool host_reports_due(const struct host_reports *nodes);

/* Note that these reports were published: none is due any more. */
void host_reports_published(struct host_reports *nodes);

/* Delete a host's report. PMIXFAB_ERR_NOTFOUND. */
int host_reports_forget(struct host_reports *nodes, const char *host, struct fab_err *err);

#endif
