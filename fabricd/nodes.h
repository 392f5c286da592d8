/*
 * nodes.h - the reports of all hosts, as stored: taking deliveries, and saying when something is to be
 * published.
 *
 * Deliveries that arrive together are stored in one transaction and answered after it. Published is when it
 * has been quiet for a moment: 5 ms after one known host's change, longer (config->settle_ms) when several
 * hosts or new ones report, so that a thousand nodes that start are one generation; never later than three
 * times that.
 */
#ifndef FABRICD_NODES_H
#define FABRICD_NODES_H

#include <event2/event.h>

#include "fabricd/config.h"
#include "fabricd/intake.h"
#include "fabricd/store.h"
#include "topo/join.h"
#include "topo/report.h"

struct node_report {
    struct fab_report report; /* finished */
    uint64_t digest;
    int64_t received; /* microseconds since 1970 */
    unsigned uid;     /* who delivered it */
    uint32_t
        failed; /* sources whose probe failed there the last time: bits 1 << enum fab_source; not stored */
};

struct nodes;

/* Load what is stored. `changed` is called on the loop when reports have changed and it is time to publish.
 */
int nodes_new(struct event_base *base, const struct config *config, struct store *store,
              void (*changed)(void *cbdata), void *cbdata, struct nodes **out, struct fab_err *err);
void nodes_free(struct nodes *nodes); /* NULL allowed */

/* Take a list of deliveries: store, answer, remember to publish. (an intake_fn) */
void nodes_take(struct intake_item *list, void *nodes);

/* A report of the scheduler's own host, from its own probes. Takes its contents. True: it is another one. */
bool nodes_own(struct nodes *nodes, struct fab_report *report, struct fab_err *err);

/* Sources whose probe failed on a host that reports: its delivery tells; of the own host the daemon does. */
void nodes_failed(struct nodes *nodes, const char *host, uint32_t sources);

/* All reports, by host (natural order). Valid until the next call of another function of nodes. */
const struct node_report *const *nodes_all(const struct nodes *nodes, uint32_t *n);
const struct node_report *nodes_find(const struct nodes *nodes, const char *host);
/* Which of them a name means that may have a domain or not. */
struct fab_host_choice nodes_choose(const struct nodes *nodes, const char *name);

/* Told of every good delivery, also of one that says nothing new, once it is stored. On the loop. */
typedef void (*nodes_heard_fn)(const char *host, void *cbdata);
void nodes_listen(struct nodes *nodes, nodes_heard_fn heard, void *cbdata);

/* Something was published from these reports: nothing is due any more. */
void nodes_published(struct nodes *nodes);

/* Forget a host's report. PMIXFAB_ERR_NOTFOUND. */
int nodes_forget(struct nodes *nodes, const char *host, struct fab_err *err);

#endif
