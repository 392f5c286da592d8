#include "fabricd/sources/host_reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/rate.h"
#include "fabricd/sources/report_debounce.h"
#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/model/host_name.h"
#include "topo/model/inventory.h"

struct host_reports {
    struct store *store;
    struct channel_server *server; /* gets each change of a held report; NULL: none */
    host_reports_heard_fn heard;   /* NULL: none */
    void *heard_cbdata;
    struct node_report **reports; /* by host, natural order */
    uint32_t n, cap;
    struct report_debounce *debounce;
    struct log_limit said;
};

/* A valid delivery, until the whole list is stored. */
struct taking {
    struct ingest_item *item;
    struct node_report *report;
    void *bytes;
    size_t size;
};

struct batch {
    struct taking *takings;
    uint32_t n, cap;
};

static void report_free(struct node_report *report)
{
    if (report == NULL)
        return;
    fab_report_destroy(&report->report);
    free(report);
}

/* ---- the list ----------------------------------------------------------------------------------- */

static void host_reports_hold(const struct host_reports *nodes, const char *host)
{
    if (nodes->server != NULL)
        channel_server_held(nodes->server, host);
}

/* Return the position of the host, or where to insert it. */
static uint32_t host_reports_position(const struct host_reports *nodes, const char *host, bool *found)
{
    uint32_t at = FAB_LOWER_BOUND(0, nodes->n, i, fab_natural_cmp(nodes->reports[i]->report.host, host) < 0);
    *found = at < nodes->n && fab_natural_cmp(nodes->reports[at]->report.host, host) == 0;
    return at;
}

static int host_reports_reserve(struct host_reports *nodes, uint32_t more)
{
    return FAB_ARRAY_ROOM(&nodes->reports, &nodes->cap, (uint64_t)nodes->n + more) ? PMIXFAB_OK
                                                                                   : PMIXFAB_ERR_NOMEM;
}

/* Insert the report, for which there is room; takes it. True: the host is new. */
static bool host_reports_insert(struct host_reports *nodes, struct node_report *report)
{
    bool found;
    uint32_t i = host_reports_position(nodes, report->report.host, &found);
    if (found) {
        report->failed = nodes->reports[i]->failed;
        report_free(nodes->reports[i]);
    } else {
        memmove(nodes->reports + i + 1, nodes->reports + i, (nodes->n - i) * sizeof(struct node_report *));
        nodes->n++;
    }
    nodes->reports[i] = report;
    host_reports_hold(nodes, report->report.host);
    return !found;
}

const struct node_report *host_reports_find(const struct host_reports *nodes, const char *host)
{
    bool found;
    uint32_t i = host_reports_position(nodes, host, &found);
    return found ? nodes->reports[i] : NULL;
}

uint64_t host_reports_held(const char *host, void *nodes)
{
    const struct node_report *report = host_reports_find(nodes, host);
    return report == NULL ? 0 : report->digest;
}

struct fab_host_choice host_reports_choose(const struct host_reports *nodes, const char *name)
{
    struct fab_host_choice choice = {0};
    for (uint32_t i = 0; i < nodes->n; i++)
        fab_choose_host(&choice, name, nodes->reports[i]->report.host);
    return choice;
}

const struct node_report *const *host_reports_all(const struct host_reports *nodes, uint32_t *n)
{
    *n = nodes->n;
    return (const struct node_report *const *)nodes->reports;
}

/* ---- notifications ------------------------------------------------------------------------------ */

bool host_reports_due(const struct host_reports *nodes)
{
    return report_debounce_is_due(nodes->debounce);
}

void host_reports_published(struct host_reports *nodes)
{
    report_debounce_done(nodes->debounce);
}

void host_reports_on_heard(struct host_reports *nodes, host_reports_heard_fn heard, void *cbdata)
{
    nodes->heard = heard;
    nodes->heard_cbdata = cbdata;
}

/*
 * A node can report other failures with each delivery. So the log has one line a minute for each host with
 * any failed probes, and one line when no probe fails any more. `fabricctl nodes` shows the latest
 * failures.
 */
static void log_failed(struct log_limit *said, const char *host, uint32_t sources)
{
    char text[80], key[FAB_HOST_MAX + 32], again[LOG_LIMIT_AGAIN];
    fab_sources_text(sources, text, sizeof(text));
    snprintf(key, sizeof(key), "probes %s %s", sources != 0 ? "failed" : "work", host);
    const bool may = log_limit_may(said, key, again);
    if (sources != 0)
        log_line(may ? PMIXFAB_LOG_WARNING : PMIXFAB_LOG_DEBUG,
                 "nodes: %s: failed probes: %s; their earlier data is kept%s", host, text, again);
    else
        log_line(may ? PMIXFAB_LOG_INFO : PMIXFAB_LOG_DEBUG, "nodes: %s: no probe fails there any more%s",
                 host, again);
}

void host_reports_failed(struct host_reports *nodes, const char *host, uint32_t sources)
{
    bool found;
    uint32_t i = host_reports_position(nodes, host, &found);
    if (!found || nodes->reports[i]->failed == sources)
        return;
    nodes->reports[i]->failed = sources;
    log_failed(&nodes->said, host, sources);
}

static void host_report_ack(struct host_reports *nodes, struct ingest_item *item,
                            const struct node_report *acked)
{
    host_reports_failed(nodes, acked->report.host, item->delivery.failed);
    ingest_answer(item, PMIXFAB_OK, acked->digest, "");
    if (nodes->heard != NULL)
        nodes->heard(acked->report.host, nodes->heard_cbdata);
}

/* ---- deliveries --------------------------------------------------------------------------------- */

static void host_report_reject(const struct host_reports *nodes, struct ingest_item *item, int code,
                               const char *why)
{
    struct fab_err reason = {""};
    const char *host = item->delivery.host;
    const struct node_report *acked = host_reports_find(nodes, host);
    bool named = strncmp(why, host, strlen(host)) == 0;
    fab_fail(&reason, code, "%s%s%.400s", named ? "" : host, named ? "" : ": ",
             why[0] != '\0' ? why : pmixfab_strerror(code));
    ingest_answer(item, code, acked == NULL ? 0 : acked->digest, reason.text);
}

static struct node_report *new_report(struct fab_report *report, uint64_t digest, unsigned uid)
{
    struct node_report *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        fab_report_destroy(report);
        return NULL;
    }
    made->report = *report;
    fab_report_init(report);
    made->digest = digest;
    made->received = clock_now(CLOCK_REALTIME);
    made->uid = uid;
    return made;
}

/* The row references the name and the bytes. */
static struct store_report row_of_report(const struct node_report *report, const void *bytes, size_t size)
{
    return (struct store_report){.host = report->report.host,
                                 .digest = report->digest,
                                 .received = report->received,
                                 .uid = report->uid,
                                 .bytes = bytes,
                                 .size = size};
}

/* Store all in one transaction; then replace the reports in memory and answer the senders. */
static void host_reports_store(struct host_reports *nodes, struct batch *batch)
{
    struct fab_err err = {""};
    int rc = host_reports_reserve(nodes, batch->n);
    struct store_report *rows = batch->n == 0 ? NULL : calloc(batch->n, sizeof(*rows));
    for (uint32_t i = 0; rows != NULL && i < batch->n; i++) {
        const struct taking *taking = &batch->takings[i];
        rows[i] = row_of_report(taking->report, taking->bytes, taking->size);
    }
    if (batch->n > 0 && rows == NULL)
        rc = PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK && batch->n > 0)
        rc = store_reports_put(nodes->store, rows, batch->n, &err);
    free(rows);
    for (uint32_t i = 0; i < batch->n; i++) {
        struct taking *taking = &batch->takings[i];
        free(taking->bytes);
        if (rc != PMIXFAB_OK) {
            report_free(taking->report);
            host_report_reject(nodes, taking->item, rc, err.text);
            continue;
        }
        const struct node_report *report = taking->report;
        bool is_new = host_reports_insert(nodes, taking->report);
        log_debug("nodes: %s: %u items, delivered by uid %u", report->report.host, report->report.n_items,
                  report->uid);
        report_debounce_changed(nodes->debounce, report->report.host, is_new);
        host_report_ack(nodes, taking->item, report);
    }
    batch->n = 0;
}

static bool in_batch(const struct batch *batch, const char *host)
{
    for (uint32_t i = 0; i < batch->n; i++)
        if (strcasecmp(batch->takings[i].report->report.host, host) == 0)
            return true;
    return false;
}

/* Reject a name with which a host could have two reports, or report for another host. */
static int check_new_host(const struct host_reports *nodes, const char *host, struct fab_err *err)
{
    if (fab_host_is_address(host))
        return fab_fail(err, PMIXFAB_ERR_PERM,
                        "%s is an address, not a host name: set host in [fabricd] on that host", host);
    for (uint32_t i = 0; i < nodes->n; i++)
        if (fab_host_differs_by_case(nodes->reports[i]->report.host, host))
            return fab_fail(err, PMIXFAB_ERR_PERM,
                            "%s differs by case only from %s, which reports: a resolver takes them for one "
                            "host; if the host was renamed, run fabricctl forget %s",
                            host, nodes->reports[i]->report.host, nodes->reports[i]->report.host);
    return PMIXFAB_OK;
}

static void host_reports_process(struct host_reports *nodes, struct batch *batch, struct ingest_item *item)
{
    const char *host = item->delivery.host;
    struct fab_report report;
    struct fab_err err = {""};
    struct taking *taking = &batch->takings[batch->n];
    /* a second delivery of a host may be based on the first; a duplicate host is detected */
    if (in_batch(batch, host))
        host_reports_store(nodes, batch), taking = batch->takings;
    const struct node_report *acked = host_reports_find(nodes, host);
    int rc = acked != NULL ? PMIXFAB_OK : check_new_host(nodes, host, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_open(&item->delivery, acked == NULL ? NULL : &acked->report, &report, &err);
    /* A sender of a full report is not asked for it again: a contradiction in it is an error. */
    if (rc == PMIXFAB_ERR_CONFLICT && item->delivery.base == 0)
        rc = PMIXFAB_ERR_CORRUPT;
    if (rc != PMIXFAB_OK) {
        host_report_reject(nodes, item, rc, err.text);
        return;
    }
    const uint64_t digest =
        fab_report_digest(&report); /* differs from the delivery's digest, if sources were unknown */
    if (acked != NULL && acked->digest == digest) {
        fab_report_destroy(&report);
        host_report_ack(nodes, item, acked);
        return;
    }
    *taking = (struct taking){.item = item};
    rc = fab_report_encode(&report, &taking->bytes, &taking->size);
    taking->report = new_report(&report, digest, item->uid);
    if (rc == PMIXFAB_OK && digest == 0)
        rc = PMIXFAB_ERR_NOMEM;
    if (rc != PMIXFAB_OK || taking->report == NULL) {
        free(taking->bytes);
        report_free(taking->report);
        host_report_reject(nodes, item, rc == PMIXFAB_OK ? PMIXFAB_ERR_NOMEM : rc, "");
        return;
    }
    batch->n++;
}

void host_reports_accept(struct ingest_item *list, void *arg)
{
    struct host_reports *nodes = arg;
    struct batch batch = {.n = 0};
    struct ingest_item *item, *next;
    DL_COUNT(list, item, batch.cap);
    batch.takings = calloc((size_t)batch.cap + 1, sizeof(*batch.takings));
    DL_FOREACH_SAFE(list, item, next)
    {
        if (batch.takings == NULL)
            host_report_reject(nodes, item, PMIXFAB_ERR_NOMEM, "");
        else
            host_reports_process(nodes, &batch, item);
    }
    host_reports_store(nodes, &batch);
    free(batch.takings);
}

/* ---- the own host ------------------------------------------------------------------------------- */

bool host_reports_own(struct host_reports *nodes, struct fab_report *report, struct fab_err *err)
{
    void *bytes = NULL;
    size_t size = 0;
    const struct node_report *acked = host_reports_find(nodes, report->host);
    uint64_t digest = fab_report_digest(report);
    if (acked != NULL && acked->digest == digest) {
        fab_report_destroy(report);
        return false;
    }
    int rc = digest == 0 ? PMIXFAB_ERR_NOMEM : fab_report_encode(report, &bytes, &size);
    struct node_report *made = new_report(report, digest, (unsigned)geteuid());
    if (rc == PMIXFAB_OK && (made == NULL || host_reports_reserve(nodes, 1) != PMIXFAB_OK))
        rc = PMIXFAB_ERR_NOMEM;
    if (rc != PMIXFAB_OK) {
        fab_fail(err, rc, "the report of this host: %s", pmixfab_strerror(rc));
    } else {
        const struct store_report row = row_of_report(made, bytes, size);
        rc = store_reports_put(nodes->store, &row, 1, err);
    }
    free(bytes);
    if (rc != PMIXFAB_OK) {
        report_free(made);
        return false;
    }
    bool is_new = host_reports_insert(nodes, made);
    report_debounce_changed(nodes->debounce, made->report.host, is_new);
    return true;
}

int host_reports_forget(struct host_reports *nodes, const char *host, struct fab_err *err)
{
    bool found;
    uint32_t i = host_reports_position(nodes, host, &found);
    if (!found)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND,
                        "%.80s: it has no report, and none of its devices is missing or lost", host);
    int rc = store_report_forget(nodes->store, host, err);
    if (rc != PMIXFAB_OK && rc != PMIXFAB_ERR_NOTFOUND)
        return rc;
    report_debounce_changed(nodes->debounce, host, false);
    struct node_report *forgotten = nodes->reports[i];
    nodes->n--;
    memmove(nodes->reports + i, nodes->reports + i + 1, (nodes->n - i) * sizeof(struct node_report *));
    host_reports_hold(nodes, host);
    report_free(forgotten); /* `host` may point into it */
    return PMIXFAB_OK;
}

/* ---- creation and end --------------------------------------------------------------------------- */

struct loading {
    struct host_reports *nodes;
    int rc;
};

/* Skip a damaged report: its host learns that no report is held, and delivers the whole. */
static int load_report(const struct store_report *row, void *arg)
{
    struct loading *loading = arg;
    struct fab_report report;
    struct fab_err err = {""};
    int rc = fab_report_decode(row->bytes, row->size, &report, &err);
    bool good =
        rc == PMIXFAB_OK && strcmp(report.host, row->host) == 0 && fab_report_digest(&report) == row->digest;
    if (!good) {
        fab_report_destroy(&report);
        log_error("the stored report of %.80s is damaged and skipped until it is delivered again: %s",
                  row->host, rc != PMIXFAB_OK ? err.text : "it does not match its digest");
        return 0;
    }
    struct node_report *made = new_report(&report, row->digest, row->uid);
    if (made == NULL || host_reports_reserve(loading->nodes, 1) != PMIXFAB_OK) {
        report_free(made);
        loading->rc = PMIXFAB_ERR_NOMEM;
        return 1;
    }
    made->received = row->received;
    host_reports_insert(loading->nodes, made);
    return 0;
}

int host_reports_new(struct event_base *base, const struct config *config, struct store *store,
                     struct channel_server *server, void (*changed)(void *cbdata), void *cbdata,
                     struct host_reports **out, struct fab_err *err)
{
    *out = NULL;
    struct host_reports *nodes = calloc(1, sizeof(*nodes));
    struct loading loading = {.nodes = nodes};
    if (nodes == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    nodes->store = store;
    nodes->server = server;
    int rc = report_debounce_new(base, config, changed, cbdata, &nodes->debounce);
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "out of memory");
    else
        rc = store_reports_load(store, load_report, &loading, err);
    if (rc == PMIXFAB_OK && loading.rc != PMIXFAB_OK)
        rc = fab_fail(err, loading.rc, "out of memory for the reports of %u hosts", nodes->n);
    if (rc != PMIXFAB_OK) {
        host_reports_free(nodes);
        return rc;
    }
    *out = nodes;
    return PMIXFAB_OK;
}

void host_reports_free(struct host_reports *nodes)
{
    if (nodes == NULL)
        return;
    for (uint32_t i = 0; i < nodes->n; i++)
        report_free(nodes->reports[i]);
    free(nodes->reports);
    report_debounce_free(nodes->debounce);
    log_limit_clear(&nodes->said);
    free(nodes);
}
