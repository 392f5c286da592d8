/* remove_links.c - copy an inventory without some of its cables and nodes. */
#include <stdlib.h>

#include "topo/base/disjoint.h"
#include "topo/model/retain.h"

/* The removal. Arrays run over the elements of `from`. */
struct cutting {
    const struct fab_inventory *from;
    uint32_t *node; /* its new number; FAB_NONE: removed */
    uint32_t *port;
};

bool fab_inventory_has_missing(const struct fab_inventory *inv)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].missing)
            return true;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (inv->ports[p].missing)
            return true;
    return false;
}

static bool remove_has_cable(const struct cutting *c, const struct fab_port *port)
{
    return port->peer != FAB_NONE && c->port[port->peer] != FAB_NONE &&
           c->port[port - c->from->ports] != FAB_NONE;
}

/* Decide what is removed. cables[p] is marked: the port loses its cable. */
static void remove_plan(struct cutting *c, const uint8_t *loses, const uint8_t *node_goes)
{
    const struct fab_inventory *from = c->from;
    uint32_t n_nodes = 0, n_ports = 0;
    for (uint32_t i = 0; i < from->n_nodes; i++) {
        const struct fab_node *node = &from->nodes[i];
        uint32_t lost = 0, left = 0;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            lost += loses[p];
            left += from->ports[p].peer != FAB_NONE && !loses[p];
        }
        bool goes = node_goes[i] != 0 || (node->kind == FAB_HCA && lost > 0 && left == 0);
        c->node[i] = goes ? FAB_NONE : n_nodes++;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            /* as in a sweep: of a switch's empty ports only the disabled ones are listed */
            bool empty = loses[p] && node->kind == FAB_SWITCH && from->ports[p].state != FAB_PORT_DISABLED;
            c->port[p] = goes || empty ? FAB_NONE : n_ports++;
        }
    }
}

static int remove_write_nodes(const struct cutting *c, struct fab_inventory *out)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < c->from->n_nodes && rc == PMIXFAB_OK; i++)
        if (c->node[i] != FAB_NONE)
            rc = fab_inventory_add_node(out, &c->from->nodes[i], NULL);
    return rc;
}

static int remove_write_ports(const struct cutting *c, const uint8_t *loses, struct fab_inventory *out)
{
    int rc = PMIXFAB_OK;
    for (uint32_t p = 0; p < c->from->n_ports && rc == PMIXFAB_OK; p++) {
        struct fab_port port = c->from->ports[p];
        if (c->port[p] == FAB_NONE)
            continue;
        port.node = c->node[port.node];
        if (loses[p] && port.state != FAB_PORT_DISABLED)
            port.state = FAB_PORT_DOWN;
        port.missing = 0;
        rc = fab_inventory_add_port(out, &port, NULL);
    }
    for (uint32_t p = 0; p < c->from->n_ports && rc == PMIXFAB_OK; p++) {
        const struct fab_port *port = &c->from->ports[p];
        if (remove_has_cable(c, port) && !loses[p] && port->peer > p)
            rc = fab_inventory_link(out, c->port[p], c->port[port->peer]);
    }
    return rc;
}

/* loses: one byte for each port, equal at both ends of a cable; node_goes: one byte for each node. */
static int write_rest(const struct fab_inventory *from, const uint8_t *loses, const uint8_t *node_goes,
                      struct fab_inventory *out, struct fab_err *err)
{
    struct cutting c = {.from = from};
    fab_inventory_init(out);
    c.node = calloc((size_t)from->n_nodes + 1, sizeof(*c.node));
    c.port = calloc((size_t)from->n_ports + 1, sizeof(*c.port));
    int rc = c.node == NULL || c.port == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_copy(out,
                                from); /* strings keep their offsets; the removed ones leave a little waste */
    if (rc == PMIXFAB_OK) {
        out->n_nodes = out->n_ports = 0;
        out->finished = false;
        remove_plan(&c, loses, node_goes);
        rc = remove_write_nodes(&c, out);
    }
    if (rc == PMIXFAB_OK)
        rc = remove_write_ports(&c, loses, out);
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_finish(out, err);
    free(c.node);
    free(c.port);
    if (rc != PMIXFAB_OK)
        fab_inventory_destroy(out);
    return rc == PMIXFAB_ERR_NOMEM ? fab_fail(err, rc, "out of memory") : rc;
}

/*
 * ---- nodes that a sweep would not reach ------------------------------------------------------------------
 */

/* Sets of switches connected by cables between switches; arrays run over the nodes. */
struct parts {
    uint32_t *before, *after; /* the lowest switch of a set, with all cables and with the remaining ones */
    uint32_t *weight;         /* of a set, by its lowest: ports of HCAs cabled to it now */
    uint32_t *largest; /* of a former set, by its lowest: the largest of the sets that it is divided into */
};

static void find_parts(const struct fab_inventory *inv, const uint8_t *loses, struct parts *parts)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        parts->before[i] = parts->after[i] = i;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        const uint32_t far = port->peer == FAB_NONE ? FAB_NONE : inv->ports[port->peer].node;
        if (far == FAB_NONE || inv->nodes[port->node].kind != FAB_SWITCH ||
            inv->nodes[far].kind != FAB_SWITCH)
            continue;
        fab_set_join(parts->before, port->node, far);
        if (!loses[p])
            fab_set_join(parts->after, port->node, far);
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer != FAB_NONE && !loses[p] && inv->nodes[port->node].kind == FAB_SWITCH &&
            inv->nodes[inv->ports[port->peer].node].kind == FAB_HCA)
            parts->weight[fab_set_root(parts->after, port->node)]++;
    }
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        parts->largest[i] = fab_set_root(parts->after, i);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const uint32_t whole = fab_set_root(parts->before, i), part = fab_set_root(parts->after, i);
        if (parts->weight[part] > parts->weight[parts->largest[whole]])
            parts->largest[whole] = part;
    }
}

/* Of a divided set the largest part remains. */
static int mark_cut_off(const struct fab_inventory *inv, uint8_t *loses, uint8_t *goes)
{
    const size_t n = (size_t)inv->n_nodes + 1;
    uint32_t *memory = calloc(4 * n, sizeof(*memory));
    if (memory == NULL)
        return PMIXFAB_ERR_NOMEM;
    struct parts parts = {memory, memory + n, memory + 2 * n, memory + 3 * n};
    find_parts(inv, loses, &parts);
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        goes[i] = inv->nodes[i].kind == FAB_SWITCH &&
                  fab_set_root(parts.after, i) != parts.largest[fab_set_root(parts.before, i)];
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (inv->ports[p].peer != FAB_NONE && goes[inv->ports[p].node])
            loses[p] = loses[inv->ports[p].peer] = 1;
    free(memory);
    return PMIXFAB_OK;
}

/* far: also remove nodes that no sweep would reach then. Otherwise remove the missing nodes. */
static int inventory_cut_out(const struct fab_inventory *inv, fab_cut_fn cut, void *cbdata, bool far,
                             struct fab_inventory *out, struct fab_err *err)
{
    fab_inventory_init(out);
    if (!inv->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "%s: the inventory is not finished", far ? "cut" : "seen");
    uint8_t *loses = calloc((size_t)inv->n_ports + 1, 1), *goes = calloc((size_t)inv->n_nodes + 1, 1);
    int rc = loses == NULL || goes == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (uint32_t p = 0; rc == PMIXFAB_OK && p < inv->n_ports; p++)
        if (inv->ports[p].peer != FAB_NONE && cut(inv, p, cbdata))
            loses[p] = loses[inv->ports[p].peer] = 1;
    for (uint32_t i = 0; rc == PMIXFAB_OK && !far && i < inv->n_nodes; i++)
        goes[i] = inv->nodes[i].missing;
    if (rc == PMIXFAB_OK && far)
        rc = mark_cut_off(inv, loses, goes);
    if (rc == PMIXFAB_OK)
        rc = write_rest(inv, loses, goes, out, err);
    free(loses);
    free(goes);
    return rc;
}

int fab_inventory_cut(const struct fab_inventory *inv, fab_cut_fn cut, void *cbdata,
                      struct fab_inventory *out, struct fab_err *err)
{
    return inventory_cut_out(inv, cut, cbdata, true, out, err);
}

static bool cut_is_missing(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    (void)cbdata;
    return fab_port_is_missing(inv, &inv->ports[port]);
}

int fab_inventory_seen(const struct fab_inventory *inv, struct fab_inventory *out, struct fab_err *err)
{
    return inventory_cut_out(inv, cut_is_missing, NULL, false, out, err);
}
