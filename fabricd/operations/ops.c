/* ops.c - the table of control operations, and the scheduler's facts for `await`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/findings.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/jobs/exports.h"
#include "fabricd/jobs/slurm_rounds.h"
#include "fabricd/operations/ops.h"
#include "fabricd/pmix/pmix_server.h"

#define HOLD_REASON 200 /* bytes */

/* Return the state of the light sweeps. */
static json_t *light_sweep_status(const struct scheduler_status *s, unsigned seconds)
{
    return json_pack("{s:i, s:I, s:I, s:f, s:o, s:o, s:I, s:I}", "light_sweep", (int)seconds, "light_sweeps",
                     (json_int_t)s->monitor.light_sweeps, "light_sweeps_dirty", (json_int_t)s->monitor.dirty,
                     "light_sweep_ms", s->monitor.poll_ms, "monitoring",
                     s->light_sweeps ? json_boolean(s->monitor.monitoring) : json_null(), "dirty_since",
                     control_time(s->dirty_since), "missing", (json_int_t)s->waits.missing, "flapping",
                     (json_int_t)s->waits.suppressed + s->waits.suppressed_switches);
}

/* Return the subnet managers that light sweeps have queried. */
static json_t *managers_status(const struct scheduler *scheduler)
{
    json_t *list = json_array();
    const struct manager *manager;
    const char *probe;
    for (unsigned i = 0; (manager = scheduler_subnet_manager(scheduler, i, &probe)) != NULL; i++) {
        char name[SCHEDULER_MANAGER_TEXT], guid[24];
        const bool gone = manager_is_gone(manager);
        if (manager->now.guid == 0 && !gone)
            continue;
        scheduler_manager_text(scheduler, &manager->now, name);
        snprintf(guid, sizeof(guid), "0x%016" PRIx64, manager->now.guid);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:i, s:i, s:b, s:b, s:o}", "probe", probe, "manager", name,
                            "guid", manager->now.guid == 0 ? json_null() : json_string(guid), "lid",
                            (int)manager->now.lid, "priority", (int)manager->now.priority, "answers", !gone,
                            "another", manager_is_another(manager), "since",
                            control_time(gone ? manager->missed_since : manager->since)));
    }
    return list;
}

/* Return the published generations that the store does not have. */
static json_t *gone_status(const struct publisher *publisher)
{
    json_t *list = json_array();
    uint32_t n;
    const struct store_gone *gone = publisher_gone(publisher, &n);
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:I, s:I, s:o, s:s}", "first", (json_int_t)gone[i].above + 1,
                                              "last", (json_int_t)gone[i].newest, "found",
                                              control_time(gone[i].found), "why", gone[i].why));
    return list;
}

/* Return the counts of findings; null if they cannot be determined. */
static json_t *findings_status(const struct ops_parts *parts)
{
    struct fab_err err = {""};
    if (scheduler_look_at_hand(parts->scheduler, &err) != PMIXFAB_OK)
        return json_null();
    if (findings_changed(parts->findings))
        scheduler_look_soon(parts->scheduler);
    return findings_summary(parts->findings);
}

static json_t *channel_status(const struct channel_server *channel)
{
    struct channel_server_status s;
    channel_server_status(channel, &s);
    return json_pack("{s:o, s:i, s:i}", "port", s.listening ? json_integer(s.port) : json_null(), "connected",
                     (int)s.connected, "unproven", (int)s.unproven);
}

static void ops_scheduler_status(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = ops_parts_of(connection);
    const struct config *config = parts->config;
    struct scheduler_status s;
    (void)request;
    scheduler_status(parts->scheduler, &s);
    json_t *answer = json_pack(
        "{s:b, s:b, s:s, s:s, s:i, s:s, s:s, s:I, s:o, s:b, s:o, s:o, s:b, s:I, s:I, s:I, s:I, s:b, s:o, "
        "s:f, s:i}",
        "ok", 1, "daemon", 1, "role", "scheduler", "host", config->host, "pid", (int)getpid(), "version",
        pmixfab_version(), "uri", pmix_server_uri(parts->pmix), "generation", (json_int_t)s.generation,
        "published", control_time(s.published), "stale", s.stale, "stale_since", control_time(s.stale_since),
        "stale_reason", s.stale ? json_string(s.stale_reason) : json_null(), "partial", s.partial, "nodes",
        (json_int_t)s.nodes, "dangling", (json_int_t)s.findings.nowhere, "unnamed",
        (json_int_t)s.findings.unnamed, "inactive", (json_int_t)s.findings.inactive, "sweeping", s.sweeping,
        "last_sweep", control_time(s.last_sweep), "sweep_ms", s.sweep_ms, "interval", (int)config->interval);
    if (answer != NULL && json_object_update_new(answer, light_sweep_status(&s, config->light_sweep)) != 0) {
        json_decref(answer);
        answer = NULL;
    }
    json_object_set_new(answer, "no_cable", json_boolean(publisher_sees_no_cable(parts->publisher)));
    json_object_set_new(answer, "pmix", pmix_server_json(parts->pmix));
    json_object_set_new(answer, "channel", channel_status(parts->channel));
    json_object_set_new(answer, "managers", managers_status(parts->scheduler));
    json_object_set_new(answer, "gone", gone_status(parts->publisher));
    json_object_set_new(answer, "exports", exports_json(parts->exports));
    json_object_set_new(answer, "exports_held", json_deep_copy(exports_held(parts->exports)) ?: json_null());
    json_object_set_new(answer, "slurm", slurm_rounds_json(exports_slurm(parts->exports)));
    json_object_set_new(answer, "findings", findings_status(parts));
    connection_send(connection, answer);
}

/* ---- the hold of the exports ---- */

static void control_op_hold(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = ops_parts_of(connection);
    const char *reason = json_string_value(json_object_get(request, "reason"));
    const char *name = json_string_value(json_object_get(request, "user"));
    const bool release = json_is_true(json_object_get(request, "release"));
    struct fab_err err = {""};
    char user[80];
    int rc;
    if (!connection_allowed(connection, "hold"))
        return;
    if (!release && (reason == NULL || reason[0] == '\0' || strlen(reason) > HOLD_REASON)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "hold: reason is not a text of 1 to %d bytes",
                        HOLD_REASON);
        return;
    }
    snprintf(user, sizeof(user), "%.40s%suid %u", name != NULL ? name : "", name != NULL ? ", " : "",
             (unsigned)connection->uid);
    rc = release ? exports_release(parts->exports, &err) : exports_hold(parts->exports, user, reason, &err);
    if (rc != PMIXFAB_OK) {
        connection_fail(connection, rc, "%s", err.text);
        return;
    }
    if (release)
        log_info("the exports are released by %s", user);
    else
        log_info("the exports are held by %s: %s", user, reason);
    connection_send(connection, json_pack("{s:b, s:b}", "ok", 1, "held", !release));
}

uint32_t ops_mend(void *parts)
{
    return scheduler_mend(((const struct ops_parts *)parts)->scheduler);
}

/* ---- the table ---------------------------------------------------------------------------------- */

const struct control_op ops_of_scheduler[] = {
    {"status", ops_scheduler_status}, {"refresh", control_op_refresh},
    {"verify", control_op_verify},    {"check", control_op_check},
    {"ack", control_op_ack},          {"counters", control_op_counters},
    {"expect", control_op_expect},    {"history", control_op_history},
    {"diff", control_op_diff},        {"events", control_op_events},
    {"watch", control_op_watch},      {"ports", control_op_ports},
    {"nodes", control_op_nodes},      {"deliver", control_op_deliver},
    {"forget", control_op_forget},    {"hold", control_op_hold},
    {"backup", control_op_backup},    {"restore", control_op_restore},
    {"metrics", control_op_metrics},  {"endpoints", control_op_endpoints},
    {"config", control_op_config},    {"log", control_op_log},
    {"reload", control_op_reload},    {"await", control_op_await},
    {"mend", control_op_mend},        {NULL, NULL},
};

void ops_await_facts(const void *owner, struct await_facts *out)
{
    const struct ops_parts *parts = owner;
    struct scheduler_status status;
    struct pmix_server_status pmix;
    scheduler_status(parts->scheduler, &status);
    pmix_server_status(parts->pmix, &pmix);
    out->generation = scheduler_announced(parts->scheduler);
    out->busy = scheduler_busy(parts->scheduler);
    out->counts[AWAIT_SWEEP] = counted(parts->counts, COUNT_SWEEPS_OK) +
                               counted(parts->counts, COUNT_SWEEPS_PARTIAL) +
                               counted(parts->counts, COUNT_SWEEPS_FAILED);
    out->counts[AWAIT_LIGHT_SWEEP] = status.monitor.light_sweeps;
    out->counts[AWAIT_DELIVERY] = counted(parts->counts, COUNT_DELIVERIES);
    out->counts[AWAIT_EXPORT] = exports_ended(parts->exports);
    out->counts[AWAIT_HOOK] =
        counted(parts->counts, COUNT_HOOKS) + counted(parts->counts, COUNT_HOOKS_FAILED);
    out->counts[AWAIT_PMIX] = pmix.served;
}
