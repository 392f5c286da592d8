/* publisher_questions.c - queries on the published state: findings, and hosts, switches and ports. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/engine/publisher.h"
#include "topo/base/array.h"
#include "topo/base/search.h"
#include "topo/model/host_name.h"

struct planned *publisher_planned(const struct publisher *publisher)
{
    return publisher->planned;
}

struct store *publisher_store(struct publisher *publisher)
{
    return publisher->store;
}

struct served *publisher_served(const struct publisher *publisher)
{
    return publisher->served;
}

const struct fab_lost *publisher_lost(const struct publisher *publisher)
{
    return &publisher->absent.lost;
}

const struct fab_inventory *publisher_inventory(const struct publisher *publisher)
{
    return &publisher->current;
}

uint64_t publisher_generation(const struct publisher *publisher)
{
    return publisher->generation;
}

const struct store_gone *publisher_gone(const struct publisher *publisher, uint32_t *n)
{
    *n = publisher->n_gone;
    return publisher->gone;
}

/* ---- findings -------------------------------------------------------------------------------------- */

int publisher_check(struct publisher *publisher, const struct node_report *const *reports, uint32_t n,
                    struct fab_err *err)
{
    struct fab_joined joined;
    struct fab_findings *out = &publisher->findings;
    if (publisher->checked)
        return PMIXFAB_OK;
    int rc = reports_join(publisher, &publisher->current, NULL, reports, n, &joined, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_check(&joined.inv, joined.details.n_ports > 0 ? &joined.details : NULL, &publisher->absent.lost,
                   out)
             ?: fab_check_lost(&joined.inv, &publisher->absent.lost, out);
    struct served_set *set = served_get(publisher->served);
    for (uint32_t i = 0; rc == PMIXFAB_OK && set != NULL && i < set->n; i++)
        rc = fab_check_plane_name(&joined.inv, set->planes[i]->info.name, out);
    served_set_put(set);
    fab_joined_destroy(&joined);
    publisher->checked = rc == PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        return rc;
    fab_findings_destroy(out);
    return fab_fail(err, rc, "check: %s", pmixfab_strerror(rc));
}

void publisher_unchecked(struct publisher *publisher)
{
    fab_findings_destroy(&publisher->findings);
    publisher->checked = false;
}

/* ---- hosts and switches ---------------------------------------------------------------------------- */

bool publisher_next_switch(const struct publisher *publisher, const char *name, uint32_t *at, uint64_t *guid)
{
    const struct fab_inventory *inv = &publisher->current;
    char text[24];
    while (*at < inv->n_nodes) {
        const struct fab_node *node = &inv->nodes[(*at)++];
        *guid = node->guid;
        snprintf(text, sizeof(text), "0x%016" PRIx64, node->guid);
        if (node->kind == FAB_SWITCH &&
            (strcmp(fab_str(inv, node->name), name) == 0 || strcmp(text, name) == 0))
            return true;
    }
    return false;
}

bool publisher_has_switch(const struct publisher *publisher, const char *name)
{
    uint32_t at = 0;
    uint64_t guid;
    return publisher_next_switch(publisher, name, &at, &guid);
}

/* Return whether this node belongs to the host of that name, with or without a domain. */
static bool is_of_host(const struct fab_inventory *inv, const struct fab_node *node, const char *name)
{
    return node->kind == FAB_HCA && fab_same_host(fab_str(inv, node->host), name);
}

bool publisher_has_host(const struct publisher *publisher, const char *name)
{
    const struct fab_inventory *inv = &publisher->current;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (is_of_host(inv, &inv->nodes[i], name))
            return true;
    return publisher_joined(publisher, name, &(struct joined_host){0});
}

struct fab_host_choice publisher_choose_host(const struct publisher *publisher, const char *name)
{
    const struct fab_inventory *inv = &publisher->current;
    struct fab_host_choice choice = {0};
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA)
            fab_choose_host(&choice, name, fab_str(inv, inv->nodes[i].host));
    return choice;
}

/* ---- ports ----------------------------------------------------------------------------------------- */

void publish_ports_free(struct publish_ports *list)
{
    free(list->ports);
    *list = (struct publish_ports){0};
}

static int add_port(struct publish_ports *list, const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *p = &inv->ports[port];
    if (!FAB_ARRAY_ROOM(&list->ports, &list->cap, list->n + 1))
        return PMIXFAB_ERR_NOMEM;
    list->ports[list->n++] = (struct publish_port){inv->nodes[p->node].guid, p->num};
    return PMIXFAB_OK;
}

/* Return whether the port has a cable that is present. */
static bool is_cabled(const struct fab_inventory *inv, const struct fab_port *port)
{
    return port->peer != FAB_NONE && !fab_port_is_missing(inv, port);
}

/*
 * Add the cabled port of this number, or all cabled ports of a node. far: also add the ports at the other
 * ends.
 */
static int add_ports_of(struct publish_ports *list, const struct fab_inventory *inv, uint32_t n, uint32_t num,
                        bool far)
{
    const struct fab_node *node = &inv->nodes[n];
    int rc = PMIXFAB_OK;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports && rc == PMIXFAB_OK; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (!is_cabled(inv, port) || (num != 0 && port->num != num))
            continue;
        rc = add_port(list, inv, p);
        if (rc == PMIXFAB_OK && far)
            rc = add_port(list, inv, port->peer);
    }
    return rc;
}

int publisher_ports_of(const struct publisher *publisher, const char *name, struct publish_ports *out)
{
    const struct fab_inventory *inv = &publisher->current;
    uint64_t guid;
    int rc = PMIXFAB_OK;
    *out = (struct publish_ports){0};
    for (uint32_t at = 0; rc == PMIXFAB_OK && publisher_next_switch(publisher, name, &at, &guid);)
        rc = add_ports_of(out, inv, at - 1, 0, false);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < inv->n_nodes; i++)
        if (is_of_host(inv, &inv->nodes[i], name))
            rc = add_ports_of(out, inv, i, 0, true);
    if (rc != PMIXFAB_OK)
        publish_ports_free(out);
    return rc;
}

int publisher_ports_behind(const struct publisher *publisher, const struct publish_port *at, uint32_t n,
                           struct publish_ports *out)
{
    const struct fab_inventory *inv = &publisher->current;
    int rc = PMIXFAB_OK;
    *out = (struct publish_ports){0};
    uint32_t i = FAB_LOWER_BOUND(0, inv->n_nodes, k, inv->nodes[k].guid < at->guid);
    for (uint32_t p = i < inv->n_nodes ? inv->nodes[i].first_port : inv->n_ports;
         p < inv->n_ports && rc == PMIXFAB_OK && out->n < n; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (is_cabled(inv, port) && (inv->nodes[port->node].guid != at->guid || port->num > at->num))
            rc = add_port(out, inv, p);
    }
    if (rc != PMIXFAB_OK)
        publish_ports_free(out);
    return rc;
}

uint32_t publisher_count_ports(const struct publisher *publisher)
{
    const struct fab_inventory *inv = &publisher->current;
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        n += is_cabled(inv, &inv->ports[p]);
    return n;
}

bool publisher_port_texts(const struct publisher *publisher, uint64_t guid, uint32_t num,
                          char port[FAB_PORT_TEXT], char peer[FAB_PORT_TEXT])
{
    const struct fab_inventory *inv = &publisher->current;
    const uint32_t n = fab_inventory_find(inv, guid);
    const uint32_t p = n == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, n, num);
    peer[0] = '\0';
    if (p == FAB_NONE)
        return false;
    fab_port_text(inv, &inv->ports[p], port);
    if (inv->ports[p].peer != FAB_NONE)
        fab_port_text(inv, &inv->ports[inv->ports[p].peer], peer);
    return true;
}

bool publisher_port_text(const struct publisher *publisher, uint64_t guid, char text[FAB_PORT_TEXT])
{
    const struct fab_inventory *inv = &publisher->current;
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (guid != 0 && inv->ports[i].guid == guid) {
            fab_port_text(inv, &inv->ports[i], text);
            return true;
        }
    const uint32_t node = fab_inventory_find(inv, guid); /* a switch's own port has its GUID */
    if (node == FAB_NONE)
        return false;
    fab_node_text(inv, &inv->nodes[node], text);
    return true;
}

/* Return whether this kind means a change of a link. */
static bool is_of_link(enum fab_change_kind kind)
{
    static const bool kinds[FAB_CHANGE_KINDS] = {
        [FAB_CHANGE_HOST_ADDED] = true,   [FAB_CHANGE_DEVICE_ADDED] = true,
        [FAB_CHANGE_SWITCH_ADDED] = true, [FAB_CHANGE_LINK_ADDED] = true,
        [FAB_CHANGE_LINK_RATE] = true,    [FAB_CHANGE_HCA_REPLACED] = true,
        [FAB_CHANGE_HOST_MOVED] = true,   [FAB_CHANGE_CABLE_MOVED] = true,
        [FAB_CHANGE_PORT_UP] = true,      [FAB_CHANGE_SWITCH_REPLACED] = true,
        [FAB_CHANGE_HOST_BACK] = true,    [FAB_CHANGE_SWITCH_BACK] = true,
        [FAB_CHANGE_PORT_BACK] = true,    [FAB_CHANGE_LINK_BACK] = true,
    };
    return kinds[kind];
}

void publisher_changed_ports(const struct publisher *publisher, const struct fab_diff *diff,
                             struct publish_ports *out)
{
    const struct fab_inventory *inv = &publisher->current;
    for (uint32_t i = 0; i < diff->n && out->n <= PUBLISH_PORTS_MAX; i++) {
        const struct fab_change *change = &diff->changes[i];
        const uint32_t n =
            is_of_link(change->kind) && change->guid != 0 ? fab_inventory_find(inv, change->guid) : FAB_NONE;
        if (n != FAB_NONE && add_ports_of(out, inv, n, change->port, true) != PMIXFAB_OK)
            break;
    }
    if (out->n > PUBLISH_PORTS_MAX) /* a change of so many is not specific to a link */
        publish_ports_free(out);
}
