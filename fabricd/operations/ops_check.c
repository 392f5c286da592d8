/* ops_check.c - findings, and their acknowledgement by the operator. */
#include <inttypes.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/findings.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/operations/ops.h"
#include "topo/changes/check.h"

#define LOST_CABLES (5 * CONTROL_PAGE)

/* Send a page. Takes the references. next NULL: the last page. lost NULL: not requested. */
static void answer_findings(struct connection *connection, json_t *list, json_t *next, json_t *lost)
{
    const struct ops_parts *parts = connection->control->owner;
    connection_send(connection, json_pack("{s:b, s:I, s:o, s:o*, s:o*}", "ok", 1, "generation",
                                          (json_int_t)publisher_generation(parts->publisher), "findings",
                                          list, "next", next, "lost", lost));
}

/* Determine the present findings. The hook gets those that came or went a moment later. False: an error was
 * sent. */
static bool check_look(struct connection *connection)
{
    const struct ops_parts *parts = connection->control->owner;
    struct fab_err err = {""};
    int rc = scheduler_look(parts->scheduler, &err);
    if (rc != PMIXFAB_OK)
        connection_fail(connection, rc, "%s", err.text);
    else if (findings_changed(parts->findings))
        scheduler_look_soon(parts->scheduler);
    return rc == PMIXFAB_OK;
}

/* Find the first finding of a page: the first of all, after a new check, or the one after the last page.
 * False: an error was sent. */
static bool check_begin(struct connection *connection, json_t *request, uint32_t *at)
{
    const struct ops_parts *parts = connection->control->owner;
    const char *next;
    *at = 0;
    if (!connection_next(connection, request, &next) || (next == NULL && !check_look(connection)))
        return false;
    if (next == NULL || findings_behind(parts->findings, next, at))
        return true;
    connection_bad_next(connection);
    return false;
}

/* Return `next` for the next page; NULL: this was the last page. */
static json_t *check_place(const struct findings *findings, uint32_t at)
{
    uint32_t n;
    const struct finding *const *all = findings_all(findings, &n);
    return at < n ? findings_place(all[at - 1]) : NULL;
}

/* Return an end of a lost cable: a node that is present, or is lost, too, and the port of the cable. */
static json_t *lost_end_json(const struct fab_inventory *inv, const struct fab_lost *lost, uint64_t guid,
                             uint32_t port)
{
    const uint32_t node = fab_inventory_find(inv, guid);
    const uint32_t at = node == FAB_NONE ? fab_lost_find(lost, guid) : FAB_NONE;
    const char *host = node != FAB_NONE ? fab_str(inv, inv->nodes[node].host) : "", *name = "";
    unsigned kind = node != FAB_NONE ? inv->nodes[node].kind : 0;
    if (node != FAB_NONE)
        name = fab_str(inv, inv->nodes[node].name);
    if (at != FAB_NONE) {
        kind = lost->nodes.items[at].kind;
        host = lost->nodes.items[at].host;
        name = lost->nodes.items[at].name;
    }
    return json_pack("{s:o, s:I, s:b, s:b, s:s, s:s}", "guid", json_sprintf("0x%016" PRIx64, guid), "port",
                     (json_int_t)port, "switch", kind == FAB_SWITCH, "lost", node == FAB_NONE, "host", host,
                     "name", name);
}

/* Return lost cables whose ports are still free, also those of lost nodes, with their ends: for drawings of
 * the fabric. */
static json_t *lost_json(const struct publisher *publisher)
{
    const struct fab_inventory *inv = publisher_inventory(publisher);
    const struct fab_lost *lost = publisher_lost(publisher);
    json_t *list = json_array();
    for (uint32_t i = 0; i < lost->cables.n && json_array_size(list) < LOST_CABLES; i++) {
        const struct fab_lost_item *cable = &lost->cables.items[i];
        if (fab_lost_is_waited_for(inv, lost, cable))
            json_array_append_new(list,
                                  json_pack("{s:[o, o], s:I}", "ends",
                                            lost_end_json(inv, lost, cable->end[0].guid, cable->end[0].num),
                                            lost_end_json(inv, lost, cable->end[1].guid, cable->end[1].num),
                                            "mbps", (json_int_t)fab_rate_mbps(cable->width, cable->speed)));
    }
    return list;
}

/* Later pages may be of a newer check: they continue after the last finding, wherever that would be. */
void control_op_check(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    uint32_t n, i;
    if (json_is_true(json_object_get(request, "store"))) {
        control_check_store(connection);
        return;
    }
    if (!check_begin(connection, request, &i))
        return;
    const struct finding *const *all = findings_all(parts->findings, &n);
    json_t *list = json_array();
    for (; i < n && json_array_size(list) < CONTROL_PAGE; i++)
        json_array_append_new(list, findings_json(all[i]));
    answer_findings(connection, list, check_place(parts->findings, i),
                    json_is_true(json_object_get(request, "lost")) && !json_object_get(request, "next")
                        ? lost_json(parts->publisher)
                        : NULL);
}

void control_op_ack(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    struct fab_err err = {""};
    json_t *which = json_object_get(request, "finding"), *seconds = json_object_get(request, "seconds");
    if (!connection_allowed(connection, "ack"))
        return;
    if (!json_is_string(which) || (seconds != NULL && !json_is_integer(seconds))) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "ack: %s is not a %s",
                        json_is_string(which) ? "seconds" : "finding",
                        json_is_string(which) ? "number" : "string");
        return;
    }
    const struct findings_ack ack = {.which = json_string_value(which),
                                     .cancel = json_is_true(json_object_get(request, "cancel")),
                                     .seconds = json_integer_value(seconds),
                                     .uid = (unsigned)connection->uid};
    uint32_t at;
    if (!check_begin(connection, request, &at))
        return;
    json_t *list = json_array();
    int rc = findings_ack(parts->findings, &ack, clock_now(CLOCK_REALTIME), &at, list, &err);
    if (rc != PMIXFAB_OK) {
        json_decref(list);
        connection_fail(connection, rc, "%s", err.text);
        return;
    }
    log_info("%zu finding%s %s by uid %u: %.80s", json_array_size(list),
             json_array_size(list) == 1 ? "" : "s",
             ack.cancel ? "no longer acknowledged, requested" : "acknowledged", ack.uid, ack.which);
    answer_findings(connection, list, check_place(parts->findings, at), NULL);
}
