/* node_control.c - the operations of a node's control socket. */
#include <stdio.h>
#include <unistd.h>

#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/node/node_priv.h"
#include "fabricd/pmix/pmix_server.h"

static json_t *text_or_null(const char *text)
{
    return text[0] == '\0' ? json_null() : json_string(text);
}

/* null: no sources. */
static json_t *node_source_names(uint32_t sources)
{
    char text[80];
    fab_sources_text(sources, text, sizeof(text));
    return text_or_null(text);
}

static json_t *about_delivery(const struct deliver_status *d)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "digest", control_digest(d->digest), "held",
                     control_digest(d->acked), "unknown", node_source_names(d->unknown), "delivered",
                     control_time(d->delivered), "delivering", d->under_way, "refused", d->refused, "reason",
                     text_or_null(d->reason));
}

static json_t *node_scan_status(const struct node_status *s, unsigned interval)
{
    return json_pack("{s:b, s:o, s:f, s:i, s:i, s:i, s:o}", "scanning", s->scanning, "last_scan",
                     control_time(s->last_scan), "scan_ms", s->scan_ms, "interval", (int)interval, "probes",
                     (int)s->probes, "probes_failed", (int)s->probes_failed, "probe_error",
                     text_or_null(s->probe_error));
}

static void node_status_op(struct connection *connection, json_t *request)
{
    const struct node *node = connection->control->owner;
    const struct config *config = connection->control->config;
    struct node_status s;
    (void)request;
    node_status(node, &s);
    json_t *answer = json_pack("{s:b, s:b, s:s, s:i, s:s, s:o, s:s, s:s, s:b, s:I, s:o, s:b, s:o, s:o}", "ok",
                               1, "daemon", 1, "role", "node", "pid", (int)getpid(), "version",
                               pmixfab_version(), "uri", text_or_null(pmix_server_uri(node->pmix)), "host",
                               config->host, "scheduler", config->scheduler, "connected", s.connected,
                               "generation", (json_int_t)s.generation, "published", control_time(s.published),
                               "stale", s.stale, "stale_since", control_time(s.stale_since), "stale_reason",
                               s.stale ? text_or_null(s.stale_reason) : json_null());
    if (answer != NULL && (json_object_update_new(answer, node_scan_status(&s, config->interval)) != 0 ||
                           json_object_update_new(answer, about_delivery(&s.deliver)) != 0)) {
        json_decref(answer);
        answer = NULL;
    }
    json_object_set_new(answer, "pmix", node->serving ? pmix_server_json(node->pmix) : json_null());
    connection_send(connection, answer);
}

static void op_refresh(struct connection *connection, json_t *request)
{
    (void)request;
    if (!connection_allowed(connection, "refresh"))
        return;
    connection_wait(connection, node_scan(connection->control->owner));
    log_info("refresh requested by uid %u", (unsigned)connection->uid);
    connection_send(connection, json_pack("{s:s}", "progress", "scanning"));
}

static void node_op_metrics(struct connection *connection, json_t *request)
{
    (void)request;
    connection_send_metrics(connection, metrics_of_node);
}

void node_control_scanned(const struct node *node, uint64_t number, int code, const char *reason)
{
    struct node_status s;
    if (node->control == NULL)
        return;
    node_status(node, &s);
    json_t *answer =
        json_pack("{s:b, s:I, s:o, s:i}", "ok", 1, "generation", (json_int_t)s.generation, "digest",
                  control_digest(s.deliver.digest), "probes_failed", (int)s.probes_failed);
    control_finished(node->control, number, code, reason, answer);
}

void node_await_facts(const void *owner, struct await_facts *out)
{
    const struct node *node = owner;
    struct node_status s;
    struct pmix_server_status pmix;
    node_status(node, &s);
    pmix_server_status(node->pmix, &pmix);
    out->generation = mirror_announced(node->mirror);
    out->busy = s.scanning || node->again      ? "a host scan"
                : s.deliver.under_way          ? "the delivery of the report"
                : mirror_is_busy(node->mirror) ? "the mirroring of a generation"
                                               : NULL;
    out->counts[AWAIT_SCAN] = counted(node->counts, COUNT_SCANS) + counted(node->counts, COUNT_SCANS_FAILED);
    out->counts[AWAIT_DELIVERY] = counted(node->counts, COUNT_DELIVERIES);
    out->counts[AWAIT_PMIX] = pmix.served;
}

const struct control_op node_control_ops[] = {{"status", node_status_op},    {"refresh", op_refresh},
                                              {"events", control_op_events}, {"metrics", node_op_metrics},
                                              {"config", control_op_config}, {"log", control_op_log},
                                              {"reload", control_op_reload}, {"await", control_op_await},
                                              {"mend", control_op_mend},     {NULL, NULL}};
