/* ops_refresh.c - refresh, expect. */
#include <stdio.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/operations/ops.h"
#include "topo/model/host_name.h"

/* Return whether an optional member is not a string; then an error was sent. */
static bool bad_text(struct connection *connection, json_t *request, const char *op, const char *key,
                     const char **out)
{
    json_t *value = json_object_get(request, key);
    *out = json_string_value(value);
    if (value == NULL || json_is_null(value) || (*out != NULL && (*out)[0] != '\0'))
        return false;
    connection_fail(connection, PMIXFAB_ERR_SYNTAX, "%s: %s is not a name", op, key);
    return true;
}

/* ---- refresh -------------------------------------------------------------------------------------- */

/* Send that the request is accepted, for callers that do not wait. */
static void answer_taken(struct connection *connection)
{
    const struct ops_parts *parts = connection->control->owner;
    connection_send(connection, json_pack("{s:b, s:b, s:I}", "ok", 1, "taken", 1, "generation",
                                          (json_int_t)publisher_generation(parts->publisher)));
}

/* Release suppressed objects before the sweep, if requested. Returns how many. */
static uint32_t request_release_damping(struct connection *connection, json_t *request, const char *name,
                                        bool waits)
{
    const struct ops_parts *parts = connection->control->owner;
    char progress[80];
    if (!json_is_true(json_object_get(request, "release")))
        return 0;
    uint32_t n = publisher_release_now(parts->publisher, name);
    if (waits) {
        snprintf(progress, sizeof(progress), "%u cable%s or switch%s released", (unsigned)n,
                 n == 1 ? "" : "s", n == 1 ? " is" : "es are");
        connection_progress(connection, n == 0 ? "nothing was suppressed" : progress);
    }
    return n;
}

void control_op_refresh(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    const char *host, *sw;
    if (!connection_allowed(connection, "refresh") ||
        bad_text(connection, request, "refresh", "host", &host) ||
        bad_text(connection, request, "refresh", "switch", &sw))
        return;
    bool accept = json_is_true(json_object_get(request, "accept_partial"));
    bool waits = !json_is_false(json_object_get(request, "wait"));
    uint32_t released = request_release_damping(connection, request, sw != NULL ? sw : host, waits);
    if (sw != NULL && released == 0 && !publisher_has_switch(parts->publisher, sw)) {
        connection_fail(connection, PMIXFAB_ERR_NOTFOUND,
                        "refresh: no switch %s: `fabricctl switches` lists them", sw);
        return;
    }
    log_info("refresh%s%s requested by uid %u%s", sw != NULL ? " of " : "", sw != NULL ? sw : "",
             (unsigned)connection->uid, accept ? ", partial answers accepted" : "");
    if (host != NULL && waits) {
        control_refresh_node(connection, host, accept);
        return;
    }
    if (host != NULL)
        control_request_scan(parts, host);
    /* An accepted partial sweep stands for the whole fabric, and released objects may be anywhere: both need
     * a full sweep. */
    const bool part = sw != NULL && !accept && released == 0;
    const uint64_t number = scheduler_refresh(parts->scheduler, part ? sw : NULL, accept);
    if (!waits) {
        answer_taken(connection);
        return;
    }
    connection_wait(connection, number);
    connection_send(connection, part
                                    ? json_pack("{s:s++}", "progress", "sweeping ", sw, " and its neighbours")
                                    : json_pack("{s:s}", "progress", "sweeping"));
}

/* ---- expect --------------------------------------------------------------------------------------- */

/* Return whether the fabric or its history has this name: a device that is away for its swap can be
 * announced, too. */
static bool ops_knows_name(const struct ops_parts *parts, const char *name)
{
    if (publisher_has_host(parts->publisher, name) || publisher_has_switch(parts->publisher, name))
        return true;
    bool known = false;
    return store_knows_subject(publisher_store(parts->publisher), name, &known, NULL) == PMIXFAB_OK && known;
}

static void answer_expected(struct connection *connection, const char *name)
{
    const struct ops_parts *parts = connection->control->owner;
    uint32_t n;
    const struct store_planned *all =
        planned_all(publisher_planned(parts->publisher), clock_now(CLOCK_REALTIME), &n);
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        if (name == NULL || fab_same_host(all[i].name, name))
            json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:I}", "name", all[i].name, "since",
                                                  control_time(all[i].since), "until",
                                                  control_time(all[i].until), "uid", (json_int_t)all[i].uid));
    connection_send(connection, json_pack("{s:b, s:o}", "ok", 1, "expected", list));
}

static void ops_plan_maintenance(struct connection *connection, json_t *request, const char *name)
{
    const struct ops_parts *parts = connection->control->owner;
    struct planned *expected = publisher_planned(parts->publisher);
    struct fab_err err = {""};
    json_t *seconds = json_object_get(request, "seconds");
    json_int_t time = seconds == NULL ? PLANNED_SECONDS : json_integer_value(seconds);
    int rc;
    if (json_is_true(json_object_get(request, "cancel")))
        rc = planned_cancel(expected, name, clock_now(CLOCK_REALTIME), &err);
    else if (!ops_knows_name(parts, name))
        rc = fab_fail(&err, PMIXFAB_ERR_NOTFOUND,
                      "expect: no host or switch %s, now or in the history: see fabricctl devices, switches",
                      name);
    else
        rc = planned_add(expected, name, clock_now(CLOCK_REALTIME),
                         time < 0 || time > INT32_MAX ? 0 : (unsigned)time, (unsigned)connection->uid, &err);
    if (connection_failed(connection, rc, &err))
        return;
    log_info("a swap of %s is %s by uid %u", name,
             json_is_true(json_object_get(request, "cancel")) ? "cancelled" : "announced",
             (unsigned)connection->uid);
    answer_expected(connection, name);
}

void control_op_expect(struct connection *connection, json_t *request)
{
    const char *name;
    bool changes =
        json_is_true(json_object_get(request, "replace")) || json_is_true(json_object_get(request, "cancel"));
    if (bad_text(connection, request, "expect", "name", &name))
        return;
    if (!changes)
        answer_expected(connection, name);
    else if (name == NULL)
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "expect: no name: give a host or switch");
    else if (connection_allowed(connection, "expect"))
        ops_plan_maintenance(connection, request, name);
}
