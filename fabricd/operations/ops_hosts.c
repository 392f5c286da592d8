/* ops_hosts.c - hosts that report: nodes, forget, deliver, and the refresh of one host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/base64.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/operations/ops.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/sources/host_reports.h"
#include "fabricd/sources/ingest.h"
#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/model/host_name.h"

#define NODE_MS 10000 /* timeout of a node's scan and delivery */

/* Return a string of the request; NULL: an error was sent. */
static const char *request_text(struct connection *connection, json_t *request, const char *op,
                                const char *key)
{
    const char *text = json_string_value(json_object_get(request, key));
    if (text == NULL)
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "%s: %s is not a string", op, key);
    return text;
}

/* ---- nodes --------------------------------------------------------------------------------------- */

static json_t *source_set_json(uint32_t set)
{
    json_t *names = json_array();
    for (unsigned source = 0; source < FAB_SOURCES; source++)
        if ((set >> source & 1) != 0)
            json_array_append_new(names, json_string(fab_source_name((enum fab_source)source)));
    return names;
}

static json_t *report_sources_json(const struct fab_report *report)
{
    uint32_t said = 0;
    for (uint32_t i = 0; i < report->n_items; i++)
        said |= 1u << report->items[i].source;
    return source_set_json(said);
}

static json_t *remarks_of(const struct publisher *publisher, const struct node_report *node)
{
    json_t *remarks = json_array();
    char failed[80];
    uint32_t from = 0;
    for (const char *line; (line = publisher_remark(publisher, node->report.host, &from)) != NULL;)
        json_array_append_new(remarks, json_string(line));
    fab_sources_text(node->failed, failed, sizeof(failed));
    if (node->failed != 0)
        json_array_append_new(remarks, json_sprintf("%s: failed probes: %s; their earlier data is kept",
                                                    node->report.host, failed));
    return remarks;
}

static json_t *about_node(const struct publisher *publisher, const struct node_report *node, int64_t now)
{
    struct joined_host joined = {0};
    publisher_joined(publisher, node->report.host, &joined);
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:f, s:I, s:o, s:o, s:o}", "host", node->report.host,
                     "devices", (json_int_t)joined.devices, "unseen", (json_int_t)joined.unseen, "items",
                     (json_int_t)node->report.n_items, "digest", control_digest(node->digest), "received",
                     control_time(node->received), "age",
                     now > node->received ? (double)(now - node->received) / 1e6 : 0.0, "uid",
                     (json_int_t)node->uid, "sources", report_sources_json(&node->report), "failed",
                     source_set_json(node->failed), "remarks", remarks_of(publisher, node));
}

void control_op_nodes(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    uint32_t n;
    const struct node_report *const *all = host_reports_all(parts->reports, &n);
    const char *host = json_string_value(json_object_get(request, "host")), *next;
    if (!connection_next(connection, request, &next))
        return;
    json_t *list = json_array();
    int64_t now = clock_now(CLOCK_REALTIME);
    uint32_t i =
        next == NULL ? 0 : FAB_LOWER_BOUND(0, n, at, fab_natural_cmp(all[at]->report.host, next) <= 0);
    for (; i < n && json_array_size(list) < CONTROL_PAGE; i++)
        if (host == NULL || fab_same_host(all[i]->report.host, host))
            json_array_append_new(list, about_node(parts->publisher, all[i], now));
    connection_send(connection, json_pack("{s:b, s:o, s:s*}", "ok", 1, "nodes", list, "next",
                                          i < n ? all[i - 1]->report.host : NULL));
}

/*
 * The host to forget, by its name in the fabric and in its report; NULL: no such host. An ambiguous name is
 * rejected.
 */
struct forgotten {
    const char *swept, *reports;
};

static int choose_forgotten(const struct ops_parts *parts, const char *host, struct forgotten *out,
                            struct fab_err *err)
{
    const struct fab_host_choice swept = publisher_choose_host(parts->publisher, host);
    const struct fab_host_choice reports = host_reports_choose(parts->reports, host);
    const bool two = swept.host != NULL && reports.host != NULL && !fab_same_host(swept.host, reports.host);
    *out = (struct forgotten){swept.host, reports.host};
    if (swept.exact && (two || reports.several))
        out->reports = NULL;
    else if (reports.exact && (two || swept.several))
        out->swept = NULL;
    else if (two || swept.several || reports.several)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "forget: %s matches several hosts: give the whole name",
                        host);
    return PMIXFAB_OK;
}

void control_op_forget(struct connection *connection, json_t *request)
{
    struct fab_err err = {""};
    struct forgotten names;
    if (!connection_allowed(connection, "forget"))
        return;
    const char *host = request_text(connection, request, "forget", "host");
    if (host == NULL)
        return;
    bool there = false;
    const struct ops_parts *parts = connection->control->owner;
    int rc = choose_forgotten(parts, host, &names, &err);
    if (connection_failed(connection, rc, &err))
        return;
    rc = host_reports_forget(parts->reports, names.reports != NULL ? names.reports : host, &err);
    uint32_t lost = 0;
    const int forgot = publisher_forget_lost(parts->publisher, host, &lost, &err);
    const bool is_switch = names.swept == NULL && publisher_has_switch(parts->publisher, host);
    uint32_t retired = names.swept == NULL && !is_switch
                           ? 0
                           : scheduler_forget(parts->scheduler, is_switch ? host : names.swept, &there);
    if (rc == PMIXFAB_ERR_NOTFOUND && is_switch)
        rc = fab_fail(&err, PMIXFAB_ERR_CONFLICT, "forget: %s is a switch that the last sweep saw", host);
    else if (rc == PMIXFAB_ERR_NOTFOUND && there)
        rc = fab_fail(&err, PMIXFAB_ERR_CONFLICT,
                      "forget: %s is present: the last sweep saw it, and it has no report", host);
    if (forgot != PMIXFAB_OK)
        rc = forgot;
    if (rc != PMIXFAB_OK && retired + lost == 0) {
        connection_fail(connection, rc, "%s", err.text);
        return;
    }
    if (rc == PMIXFAB_OK)
        log_info("the report of %s is forgotten, requested by uid %u", host, (unsigned)connection->uid);
    if (retired > 0)
        log_info("the missing devices of %s are retired, requested by uid %u", host,
                 (unsigned)connection->uid);
    if (lost > 0)
        log_info("the lost devices of %s are forgotten, requested by uid %u", host,
                 (unsigned)connection->uid);
    connection_send(connection, json_pack("{s:b, s:I, s:I}", "ok", 1, "retired", (json_int_t)retired, "lost",
                                          (json_int_t)lost));
}

/* ---- deliver ------------------------------------------------------------------------------------- */

static void upload_on_reply(int code, uint64_t acked, const char *reason, void *cbdata)
{
    struct pending *pending = cbdata;
    if (pending->connection != NULL && code != PMIXFAB_OK)
        connection_fail(pending->connection, code, "deliver: %s", reason);
    else if (pending->connection != NULL)
        connection_send(pending->connection, json_pack("{s:b, s:o}", "ok", 1, "held", control_digest(acked)));
    connection_answered(pending);
    free(pending);
}

void control_op_deliver(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    struct fab_err err = {""};
    void *bytes = NULL;
    size_t size = 0;
    if (!connection_may_deliver(connection)) {
        connection_fail(connection, PMIXFAB_ERR_PERM,
                        "deliver: uid %u may not do that: only root, the daemon's user, the user of the "
                        "nodes and the configured admins may",
                        (unsigned)connection->uid);
        return;
    }
    const char *text = request_text(connection, request, "deliver", "bytes");
    if (text == NULL)
        return;
    int rc = base64_decode(text, strlen(text), &bytes, &size);
    struct pending *pending = rc == PMIXFAB_OK ? calloc(1, sizeof(*pending)) : NULL;
    if (rc == PMIXFAB_ERR_SYNTAX)
        fab_fail(&err, rc, "bytes is not in base64");
    else if (pending == NULL)
        rc = fab_fail(&err, PMIXFAB_ERR_NOMEM, "out of memory");
    else
        rc = ingest_local(parts->ingest, bytes, size, connection->uid, upload_on_reply, pending, &err);
    free(bytes);
    if (rc == PMIXFAB_OK) {
        connection_later(connection, pending);
        return;
    }
    free(pending);
    count(parts->counts, count_of_refused(rc));
    connection_fail(connection, rc, "deliver: %s", err.text);
}

/* ---- refresh of one host ------------------------------------------------------------------------- */

/* A caller that waits for a node. */
struct scan_asking {
    struct pending pending; /* first member */
    struct scan_asking *prev, *next;
    struct ops_parts *parts;
    struct timer *limit;
    bool accept_partial;
    char host[FAB_HOST_MAX + 1];
};

static void end_asking(struct scan_asking *asking)
{
    DL_DELETE(asking->parts->asking, asking);
    connection_answered(&asking->pending);
    timer_free(asking->limit);
    free(asking);
}

/* Continue with a sweep, which also publishes the delivery. */
static void sweep_now(struct connection *connection, bool accept_partial, const char *progress)
{
    const struct ops_parts *parts = connection->control->owner;
    connection_progress(connection, progress);
    connection_wait(connection, scheduler_refresh(parts->scheduler, NULL, accept_partial));
    connection_progress(connection, "sweeping");
}

static void scan_request_sweep(struct scan_asking *asking, const char *came_of_it)
{
    char progress[FAB_HOST_MAX + 80];
    snprintf(progress, sizeof(progress), "%s %s", asking->host, came_of_it);
    sweep_now(asking->pending.connection, asking->accept_partial, progress);
    end_asking(asking);
}

static void on_limit(void *arg)
{
    scan_request_sweep(arg, "does not answer");
}

static void scan_on_caller_gone(struct pending *pending)
{
    end_asking((struct scan_asking *)pending);
}

void ops_host_heard(const char *host, void *parts)
{
    struct scan_asking *asking, *next;
    DL_FOREACH_SAFE(((struct ops_parts *)parts)->asking, asking, next)
    {
        if (fab_same_host(asking->host, host))
            scan_request_sweep(asking, "has delivered");
    }
}

void control_request_scan(const struct ops_parts *parts, const char *host)
{
    const char *known = host_reports_choose(parts->reports, host).host;
    channel_server_scan(parts->channel, known != NULL ? known : host);
}

void control_refresh_node(struct connection *connection, const char *host, bool accept_partial)
{
    struct ops_parts *parts = connection->control->owner;
    const char *known = host_reports_choose(parts->reports, host).host;
    /* This host is scanned with each sweep. */
    if (fab_same_host(host, parts->config->host)) {
        sweep_now(connection, accept_partial, "looking");
        return;
    }
    channel_server_scan(parts->channel, known != NULL ? known : host);
    if (known == NULL) {
        sweep_now(connection, accept_partial, "the host sends no reports: sweeping the fabric only");
        return;
    }
    struct scan_asking *asking = calloc(1, sizeof(*asking));
    if (asking == NULL || (asking->limit = timer_new(connection->control->base, on_limit, asking)) == NULL) {
        free(asking);
        connection_fail(connection, PMIXFAB_ERR_NOMEM, "refresh: out of memory");
        return;
    }
    snprintf(asking->host, sizeof(asking->host), "%s", known != NULL ? known : host);
    asking->accept_partial = accept_partial;
    asking->pending.gone = scan_on_caller_gone;
    asking->parts = parts;
    DL_APPEND(parts->asking, asking);
    timer_after(asking->limit, NODE_MS);
    connection_later(connection, &asking->pending);
    connection_progress(connection, "the host scans its devices");
}
