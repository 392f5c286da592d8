/*
 * host_reports.h - the reports of all hosts, as stored: taking deliveries, and saying when something is to be
 * published. ingest.h lets in what nodes deliver, and keeps it.
 *
 * Deliveries that arrive together are stored in one transaction and answered after it. Published is when it
 * has been quiet for a moment: 5 ms after one known host's change, longer (config->debounce_ms) when several
 * hosts or new ones report, so that a thousand nodes that start are one generation; never later than three
 * times that.
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
    unsigned uid;     /* who delivered it */
    uint32_t
        failed; /* sources whose probe failed there the last time: bits 1 << enum fab_source; not stored */
};

struct host_reports;

/* Load what is stored. `changed` is called on the loop when it is time to publish changed reports. server
 * (NULL: there is none): it hears of each host of which something else is held. */
int host_reports_new(struct event_base *base, const struct config *config, struct store *store,
                     struct channel_server *server, void (*changed)(void *cbdata), void *cbdata,
                     struct host_reports **out, struct fab_err *err);
void host_reports_free(struct host_reports *nodes); /* NULL allowed */

/* Take a list of deliveries: store, answer, remember to publish. (an ingest_fn) */
void host_reports_accept(struct ingest_item *list, void *nodes);

/* A report of the scheduler's own host, from its own probes. Takes its contents. True: it is another one. */
bool host_reports_own(struct host_reports *nodes, struct fab_report *report, struct fab_err *err);

/* Sources whose probe failed on a host that reports: its delivery tells; of the own host the daemon does. */
void host_reports_failed(struct host_reports *nodes, const char *host, uint32_t sources);

/* All reports, by host (natural order). Valid until the next call of another function of nodes. */
const struct node_report *const *host_reports_all(const struct host_reports *nodes, uint32_t *n);
const struct node_report *host_reports_find(const struct host_reports *nodes, const char *host);
/* The digest of what is held of a host; 0: nothing. */
uint64_t host_reports_held(const char *host, void *nodes);
/* Which of them a name means that may have a domain or not. */
struct fab_host_choice host_reports_choose(const struct host_reports *nodes, const char *name);

/* Told of every good delivery, also of one that says nothing new, once it is stored. On the loop. */
typedef void (*host_reports_heard_fn)(const char *host, void *cbdata);
void host_reports_on_heard(struct host_reports *nodes, host_reports_heard_fn heard, void *cbdata);

/* Do changed reports wait for their publication? */
bool host_reports_due(const struct host_reports *nodes);

/* Something was published from these reports: nothing is due any more. */
void host_reports_published(struct host_reports *nodes);

/* Forget a host's report. PMIXFAB_ERR_NOTFOUND. */
int host_reports_forget(struct host_reports *nodes, const char *host, struct fab_err *err);

#endif
