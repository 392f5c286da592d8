/* publish_ports.c - which ports a change or a name is about. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/engine/update.h"
#include "topo/base/array.h"
#include "topo/base/search.h"
#include "topo/model/host_name.h"

static int ports_push(struct publish_ports *list, const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *p = &inv->ports[port];
    if (!FAB_ARRAY_ROOM(&list->ports, &list->cap, list->n + 1))
        return PMIXFAB_ERR_NOMEM;
    list->ports[list->n++] = (struct publish_port){inv->nodes[p->node].guid, p->num};
    return PMIXFAB_OK;
}

/* The cabled port of this number, or all of a node; far: with what is at the other ends. */
static int ports_of_node(struct publish_ports *list, const struct fab_inventory *inv, uint32_t n,
                         uint32_t num, bool far)
{
    const struct fab_node *node = &inv->nodes[n];
    int rc = PMIXFAB_OK;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports && rc == PMIXFAB_OK; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE || (num != 0 && port->num != num) || fab_port_is_missing(inv, port))
            continue;
        rc = ports_push(list, inv, p);
        if (rc == PMIXFAB_OK && far)
            rc = ports_push(list, inv, port->peer);
    }
    return rc;
}

void publish_ports_free(struct publish_ports *list)
{
    free(list->ports);
    *list = (struct publish_ports){0};
}

int publisher_ports_of(const struct publisher *publisher, const char *name, struct publish_ports *out)
{
    const struct fab_inventory *inv = &publisher->current;
    uint64_t guid;
    int rc = PMIXFAB_OK;
    *out = (struct publish_ports){0};
    for (uint32_t at = 0; rc == PMIXFAB_OK && publisher_next_switch(publisher, name, &at, &guid);)
        rc = ports_of_node(out, inv, at - 1, 0, false);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && fab_same_host(fab_str(inv, inv->nodes[i].host), name))
            rc = ports_of_node(out, inv, i, 0, true);
    if (rc != PMIXFAB_OK)
        publish_ports_free(out);
    return rc;
}

int publisher_ports_behind(const struct publisher *publisher, const struct publish_port *at, uint32_t n,
                           struct publish_ports *out)
{
    const struct fab_inventory *inv = &publisher->current;
    const uint32_t first = FAB_LOWER_BOUND(0, inv->n_nodes, i, inv->nodes[i].guid < at->guid);
    int rc = PMIXFAB_OK;
    *out = (struct publish_ports){0};
    for (uint32_t i = first; i < inv->n_nodes && out->n < n; i++)
        for (uint32_t p = inv->nodes[i].first_port;
             p < inv->nodes[i].first_port + inv->nodes[i].n_ports && rc == PMIXFAB_OK && out->n < n; p++)
            if (inv->ports[p].peer != FAB_NONE && !fab_port_is_missing(inv, &inv->ports[p]) &&
                (inv->nodes[i].guid != at->guid || inv->ports[p].num > at->num))
                rc = ports_push(out, inv, p);
    if (rc != PMIXFAB_OK)
        publish_ports_free(out);
    return rc;
}

uint32_t publisher_count_ports(const struct publisher *publisher)
{
    const struct fab_inventory *inv = &publisher->current;
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        n += inv->ports[p].peer != FAB_NONE && !fab_port_is_missing(inv, &inv->ports[p]);
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

/* Does this kind say that a link is not the one that it was? */
static bool is_of_link(enum fab_change_kind kind)
{
    switch (kind) {
    case FAB_CHANGE_HOST_ADDED:
    case FAB_CHANGE_DEVICE_ADDED:
    case FAB_CHANGE_SWITCH_ADDED:
    case FAB_CHANGE_LINK_ADDED:
    case FAB_CHANGE_LINK_RATE:
    case FAB_CHANGE_HCA_REPLACED:
    case FAB_CHANGE_HOST_MOVED:
    case FAB_CHANGE_CABLE_MOVED:
    case FAB_CHANGE_SWITCH_REPLACED:
    case FAB_CHANGE_PORT_UP:
    case FAB_CHANGE_HOST_BACK:
    case FAB_CHANGE_SWITCH_BACK:
    case FAB_CHANGE_PORT_BACK:
    case FAB_CHANGE_LINK_BACK:
        return true;
    default:
        return false;
    }
}

void update_list_changed_ports(struct update *update)
{
    const struct fab_inventory *inv = &update->publisher->current;
    struct publish_ports *list = &update->publication->changed;
    if (update->generation == 1) /* all of them are new */
        return;
    for (uint32_t i = 0; i < update->diff.n && list->n <= PUBLISH_PORTS_MAX; i++) {
        const struct fab_change *change = &update->diff.changes[i];
        const uint32_t n =
            is_of_link(change->kind) && change->guid != 0 ? fab_inventory_find(inv, change->guid) : FAB_NONE;
        if (n != FAB_NONE && ports_of_node(list, inv, n, change->port, true) != PMIXFAB_OK)
            break;
    }
    if (list->n > PUBLISH_PORTS_MAX) /* nothing is special about one of so many */
        publish_ports_free(list);
}
