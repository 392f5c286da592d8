/* ops.c - what can be asked on the control socket. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/jobs/history_json.h"
#include "fabricd/operator/ops.h"
#include "fabricd/publish/publish.h"
#include "fabricd/scheduler/scheduler.h"
#include "fabricd/server/server.h"
#include "fabricd/store/store.h"
#include "fabricd/store/tables/store_renames.h"
#include "fabricd/util/log.h"
#include "topo/inventory/host_name.h"
#include "topo/join/join.h"

#define DEFAULT_HISTORY 1000

static const struct ops_parts *parts_of(const struct connection *connection)
{
    return connection->control->owner;
}

/* What happens between sweeps. */
static json_t *light_sweep_status(const struct scheduler_status *s, unsigned seconds)
{
    return json_pack("{s:i, s:I, s:I, s:f, s:o, s:o, s:I, s:I}", "light_sweep", (int)seconds, "light_sweeps",
                     (json_int_t)s->monitor.light_sweeps, "light_sweeps_dirty", (json_int_t)s->monitor.dirty,
                     "light_sweep_ms", s->monitor.poll_ms, "monitoring",
                     s->light_sweeps ? json_boolean(s->monitor.monitoring) : json_null(), "dirty_since",
                     control_time(s->dirty_since), "missing", (json_int_t)s->waits.missing, "flapping",
                     (json_int_t)s->waits.suppressed + s->waits.suppressed_switches);
}

/* The subnet managers that light sweeps have asked for. */
static json_t *managers_status(const struct scheduler *scheduler)
{
    json_t *list = json_array();
    const struct manager *manager;
    const char *probe;
    for (unsigned i = 0; (manager = scheduler_manager(scheduler, i, &probe)) != NULL; i++) {
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

static void ops_scheduler_status(struct connection *connection, json_t *request)
{
    const struct config *config = parts_of(connection)->config;
    struct scheduler_status s;
    (void)request;
    scheduler_status(parts_of(connection)->scheduler, &s);
    json_t *answer = json_pack(
        "{s:b, s:b, s:s, s:s, s:i, s:s, s:s, s:I, s:o, s:b, s:o, s:o, s:b, s:I, s:I, s:I, s:I, s:b, s:o, "
        "s:f, s:i}",
        "ok", 1, "daemon", 1, "role", "scheduler", "host", config->host, "pid", (int)getpid(), "version",
        pmixfab_version(), "uri", server_uri(), "generation", (json_int_t)s.generation, "published",
        control_time(s.published), "stale", s.stale, "stale_since", control_time(s.stale_since),
        "stale_reason", s.stale ? json_string(s.stale_reason) : json_null(), "partial", s.partial, "nodes",
        (json_int_t)s.nodes, "dangling", (json_int_t)s.dangling, "unnamed", (json_int_t)s.unnamed, "inactive",
        (json_int_t)s.inactive, "sweeping", s.sweeping, "last_sweep", control_time(s.last_sweep), "sweep_ms",
        s.sweep_ms, "interval", (int)config->interval);
    if (answer != NULL && json_object_update_new(answer, light_sweep_status(&s, config->light_sweep)) != 0) {
        json_decref(answer);
        answer = NULL;
    }
    json_object_set_new(answer, "managers", managers_status(parts_of(connection)->scheduler));
    connection_send(connection, answer);
}

/* ---- history ------------------------------------------------------------------------------------ */

static struct store *store_of(const struct connection *connection)
{
    return publisher_store(parts_of(connection)->publisher);
}

static json_t *changes_of(struct connection *connection, uint64_t from, uint64_t to, const char *what,
                          uint32_t limit)
{
    struct fab_err err = {""};
    json_t *changes = json_array();
    int rc = store_history(store_of(connection), from, to, what, limit, change_json, changes, &err);
    if (rc == PMIXFAB_OK)
        return changes;
    json_decref(changes);
    connection_fail(connection, rc, "%s", err.text);
    return NULL;
}

static int name_json(const struct store_name *name, void *array)
{
    json_array_append_new(array,
                          json_pack("{s:s, s:I, s:o}", "name", name->name, "from", (json_int_t)name->from,
                                    "to", name->to == 0 ? json_null() : json_integer((json_int_t)name->to)));
    return 0;
}

/* The other names whose history is in it. */
static json_t *names_of(struct connection *connection, const json_t *what)
{
    json_t *names = json_array();
    struct fab_err err = {""};
    if (json_is_string(what) &&
        store_names(store_of(connection), json_string_value(what), name_json, names, &err) != PMIXFAB_OK)
        log_error("history: %s", err.text);
    return names;
}

static bool bad_integer(struct connection *connection, json_t *request, const char *key, uint64_t *out)
{
    json_t *value = json_object_get(request, key);
    if (value == NULL || json_is_null(value))
        return false;
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: %s is not a number from 0", key);
        return true;
    }
    *out = (uint64_t)json_integer_value(value);
    return false;
}

/* Up to which generation changes are no more. False: told. */
static bool get_trimmed(struct connection *connection, uint64_t *trimmed)
{
    struct fab_err err = {""};
    struct store_bounds bounds;
    int rc = store_bounds(store_of(connection), &bounds, &err);
    *trimmed = bounds.trimmed;
    if (rc != PMIXFAB_OK)
        connection_fail(connection, rc, "%s", err.text);
    return rc == PMIXFAB_OK;
}

static void op_history(struct connection *connection, json_t *request)
{
    uint64_t limit = DEFAULT_HISTORY, trimmed;
    json_t *what = json_object_get(request, "what");
    if (what != NULL && !json_is_null(what) && !json_is_string(what)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: what is not a string");
        return;
    }
    if (bad_integer(connection, request, "limit", &limit) || !get_trimmed(connection, &trimmed))
        return;
    json_t *changes = changes_of(connection, 0, INT64_MAX, json_string_value(what),
                                 limit > CHANGE_JSON_MAX || limit == 0 ? CHANGE_JSON_MAX : (uint32_t)limit);
    if (changes != NULL)
        connection_send(connection, json_pack("{s:b, s:I, s:o, s:o}", "ok", 1, "trimmed", (json_int_t)trimmed,
                                              "changes", changes, "names", names_of(connection, what)));
}

static bool change_mentions_host(json_t *change, const char *host)
{
    json_t *subjects = json_object_get(change, "subjects");
    for (size_t i = 0; i < json_array_size(subjects); i++)
        if (fab_same_host(json_string_value(json_array_get(subjects, i)), host))
            return true;
    return false;
}

/* Of one host only: those that are about it, and is there such a host? */
static void answer_about(struct connection *connection, json_t *answer, const char *host)
{
    json_t *changes = json_object_get(answer, "changes"), *kept = json_array();
    for (size_t i = 0; i < json_array_size(changes); i++)
        if (change_mentions_host(json_array_get(changes, i), host))
            json_array_append(kept, json_array_get(changes, i));
    json_object_set_new(answer, "changes", kept);
    json_object_set_new(answer, "known",
                        json_boolean(publisher_has_host(parts_of(connection)->publisher, host)));
    connection_send(connection, answer);
}

static void op_diff(struct connection *connection, json_t *request)
{
    json_t *about = json_object_get(request, "host");
    struct scheduler_status status;
    scheduler_status(parts_of(connection)->scheduler, &status);
    uint64_t to = status.generation, from, trimmed;
    if (about != NULL && !json_is_string(about)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: host is not a string");
        return;
    }
    if (bad_integer(connection, request, "to", &to))
        return;
    from = to > 0 ? to - 1 : 0;
    if (bad_integer(connection, request, "from", &from))
        return;
    if (to > status.generation || from > to) {
        connection_fail(connection, PMIXFAB_ERR_NOTFOUND,
                        "diff: there is no way from generation %llu to %llu: the "
                        "newest is %llu",
                        (unsigned long long)from, (unsigned long long)to,
                        (unsigned long long)status.generation);
        return;
    }
    if (!get_trimmed(connection, &trimmed))
        return;
    if (from < trimmed && from < to) {
        connection_fail(connection, PMIXFAB_ERR_NOTFOUND,
                        "diff: from generation %llu: trimmed: older than generation %llu there is no history "
                        "any more (fabricd.conf(5), [history])",
                        (unsigned long long)from, (unsigned long long)trimmed + 1);
        return;
    }
    json_t *changes = changes_of(connection, from, to, NULL, 0);
    if (changes == NULL)
        return;
    json_t *answer = json_pack("{s:b, s:I, s:I, s:o}", "ok", 1, "from", (json_int_t)from, "to",
                               (json_int_t)to, "changes", changes);
    if (about == NULL)
        connection_send(connection, answer);
    else
        answer_about(connection, answer, json_string_value(about));
}

/* ---- which one ---------------------------------------------------------------------------------- */

const struct control_op ops_of_scheduler[] = {
    {"status", ops_scheduler_status},
    {"refresh", control_op_refresh},
    {"verify", control_op_verify},
    {"check", control_op_check},
    {"expect", control_op_expect},
    {"history", op_history},
    {"diff", op_diff},
    {"events", control_op_events},
    {"nodes", control_op_nodes},
    {"deliver", control_op_deliver},
    {"forget", control_op_forget},
    {"backup", control_op_backup},
    {"restore", control_op_restore},
    {"metrics", control_op_metrics},
    {"config", control_op_config},
    {"log", control_op_log},
    {"reload", control_op_reload},
    {NULL, NULL},
};
