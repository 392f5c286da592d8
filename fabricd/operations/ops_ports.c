/* ops_ports.c - data of ports that a snapshot lacks: LIDs and widths of links, and their counters, answered
 * when they were read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/operations/ops.h"
#include "topo/base/search.h"
#include "topo/model/inventory_text.h"

/* ---- ports ---- */

/* [number, LID, "4xHDR"] */
static json_t *port_json(const struct fab_port *port)
{
    char rate[32];
    fab_rate_text(port, rate);
    return json_pack("[i, i, s]", port->num, port->lid, rate);
}

static json_t *node_ports_json(const struct fab_inventory *inv, const struct fab_node *node)
{
    json_t *ports = json_array();
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
        if (inv->ports[p].peer != FAB_NONE || inv->ports[p].lid != 0)
            json_array_append_new(ports, port_json(&inv->ports[p]));
    return json_pack("{s:i, s:o}", "lid", node->lid, "ports", ports);
}

#define PORTS_PAGE (5 * CONTROL_PAGE) /* the ports of the last node may exceed it */

void control_op_ports(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    const struct fab_inventory *inv = publisher_inventory(parts->publisher);
    const char *next;
    char guid[24];
    if (!connection_next(connection, request, &next))
        return;
    const uint64_t last = next == NULL ? 0 : strtoull(next, NULL, 16);
    uint32_t i = next == NULL ? 0 : FAB_LOWER_BOUND(0, inv->n_nodes, at, inv->nodes[at].guid <= last);
    json_t *nodes = json_object();
    for (uint32_t n = 0; i < inv->n_nodes && n < PORTS_PAGE; i++) {
        snprintf(guid, sizeof(guid), "0x%016" PRIx64, inv->nodes[i].guid);
        json_object_set_new(nodes, guid, node_ports_json(inv, &inv->nodes[i]));
        n += 1 + inv->nodes[i].n_ports;
    }
    connection_send(connection, json_pack("{s:b, s:I, s:o, s:s*}", "ok", 1, "generation",
                                          (json_int_t)publisher_generation(parts->publisher), "nodes", nodes,
                                          "next", i < inv->n_nodes ? guid : NULL));
}

/* ---- counters ---- */

struct counters_wait {
    struct pending pending; /* the first member */
    struct counter_job *job;
    struct publish_ports ports;
};

static json_t *port_row(const struct ops_parts *parts, const struct watched_port *port)
{
    static const char *const states[] = {[READING_NONE] = "unseen",
                                         [READING_GOOD] = "read",
                                         [READING_SILENT] = "no-answer",
                                         [READING_REFUSED] = "no-counters"};
    char name[FAB_PORT_TEXT], peer[FAB_PORT_TEXT], grown[COUNTERS_TEXT];
    const uint32_t state = port->last.state <= READING_REFUSED ? port->last.state : READING_NONE;
    if (!publisher_port_texts(parts->publisher, port->last.guid, port->last.num, name, peer))
        return NULL;
    counter_growth_text(port, grown);
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "port", name, "peer", peer, "state",
                  port->read_at == 0 && state == READING_NONE ? "not-yet" : states[state], "grown", grown,
                  "since", control_time(port->grows_since), "read", control_time(port->read_at));
    json_t *above = json_array();
    for (unsigned c = 0; c < PROBE_COUNTERS; c++) {
        const struct probe_counter_kind *kind = &probe_counter_kinds[c];
        json_object_set_new(row, kind->key,
                            port->read_at == 0 ? json_null() : json_integer((json_int_t)port->last.value[c]));
        if (kind->usual > 0 && port->read_at != 0 && port->last.value[c] > kind->usual)
            json_array_append_new(above, json_string(kind->key));
    }
    json_object_set_new(row, "above", above);
    json_object_set_new(row, "level", json_real(counter_level(port->last.value)));
    json_object_set_new(row, "growth", json_real(counter_level(port->grown)));
    return row;
}

/* Send rows. ports NULL: all watched ports. */
static void send_rows(struct connection *connection, const struct publish_ports *ports)
{
    const struct ops_parts *parts = connection->control->owner;
    const struct counter_watch *watch = scheduler_counters(parts->scheduler);
    json_t *rows = json_array();
    for (uint32_t i = 0; i < (ports != NULL ? ports->n : watch->n); i++) {
        const struct watched_port *port =
            ports == NULL ? &watch->ports[i]
                          : counter_watch_find(watch, ports->ports[i].guid, ports->ports[i].num);
        json_t *row = port == NULL ? NULL : port_row(parts, port);
        if (row != NULL)
            json_array_append_new(rows, row);
    }
    connection_send(connection, json_pack("{s:b, s:o}", "ok", 1, "ports", rows));
}

/* Send a page of all ports. errors: send only ports with more errors than usual. */
static void send_all_ports(struct connection *connection, json_t *request, bool errors)
{
    const struct ops_parts *parts = connection->control->owner;
    uint64_t rounds;
    const struct counter_watch *watch = scheduler_all_counters(parts->scheduler, &rounds);
    struct publish_port last = {0};
    uint32_t read = 0;
    char at[40] = "";
    const char *next;
    if (!connection_next(connection, request, &next))
        return;
    if (next != NULL && sscanf(next, "%" SCNx64 " %" SCNu32, &last.guid, &last.num) != 2) {
        connection_bad_next(connection);
        return;
    }
    json_t *rows = json_array();
    for (uint32_t i = 0; i < watch->n; i++)
        read += watch->ports[i].read_at != 0;
    for (uint32_t i = 0; i < watch->n && at[0] == '\0'; i++) {
        const struct watched_port *port = &watch->ports[i];
        const bool behind =
            port->last.guid > last.guid || (port->last.guid == last.guid && port->last.num > last.num);
        if (!behind || port->last.state == READING_NONE ||
            (errors && counter_level(port->last.value) <= 1 && counter_level(port->grown) <= 1))
            continue;
        json_t *row = port_row(parts, port);
        if (row != NULL)
            json_array_append_new(rows, row);
        if (json_array_size(rows) == CONTROL_PAGE)
            snprintf(at, sizeof(at), "%" PRIx64 " %" PRIu32, port->last.guid, port->last.num);
    }
    connection_send(connection,
                    json_pack("{s:b, s:o, s:i, s:i, s:I, s:i, s:s*}", "ok", 1, "ports", rows, "read",
                              (int)read, "cabled", (int)publisher_count_ports(parts->publisher), "rounds",
                              (json_int_t)rounds, "round_seconds", (int)parts->config->counters_round, "next",
                              at[0] != '\0' ? at : NULL));
}

static void counters_on_read(int code, const struct fab_err *err, void *arg)
{
    struct counters_wait *wait = arg;
    if (code == PMIXFAB_OK)
        send_rows(wait->pending.connection, &wait->ports);
    else
        connection_fail(wait->pending.connection, code, "%s", err->text);
    connection_answered(&wait->pending);
    publish_ports_free(&wait->ports);
    free(wait);
}

static void counters_on_caller_gone(struct pending *pending)
{
    struct counters_wait *wait = (struct counters_wait *)pending;
    scheduler_counters_give_up(wait->job);
    publish_ports_free(&wait->ports);
    free(wait);
}

void control_op_counters(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    json_t *name = json_object_get(request, "name");
    struct fab_err err = {""};
    if (json_is_true(json_object_get(request, "all"))) {
        if (counters_can(parts->config))
            send_all_ports(connection, request, json_is_true(json_object_get(request, "errors")));
        else
            connection_fail(connection, PMIXFAB_ERR_UNSUPPORTED,
                            "counters: no configured probe can read counters: configure ibnetdisc");
        return;
    }
    if (name == NULL || json_is_null(name)) {
        send_rows(connection, NULL);
        return;
    }
    if (!json_is_string(name)) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "counters: name is not a string");
        return;
    }
    if (!connection_allowed(connection, "counters"))
        return;
    struct counters_wait *wait = calloc(1, sizeof(*wait));
    int rc = wait == NULL ? PMIXFAB_ERR_NOMEM
                          : publisher_ports_of(parts->publisher, json_string_value(name), &wait->ports);
    if (rc == PMIXFAB_OK && wait->ports.n == 0)
        rc = fab_fail(&err, PMIXFAB_ERR_NOTFOUND,
                      "counters: no switch or host %s with a cable: see fabricctl switches, devices",
                      json_string_value(name));
    if (rc == PMIXFAB_OK)
        rc =
            scheduler_read_counters(parts->scheduler, &wait->ports, counters_on_read, wait, &wait->job, &err);
    if (rc != PMIXFAB_OK) {
        connection_fail(connection, rc, "%s", err.text[0] != '\0' ? err.text : "counters: out of memory");
        if (wait != NULL)
            publish_ports_free(&wait->ports);
        free(wait);
        return;
    }
    wait->pending.gone = counters_on_caller_gone;
    connection_later(connection, &wait->pending);
}
