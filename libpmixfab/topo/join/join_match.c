/*
 * join_match.c - which port of the sweep a device of a report is, and what becomes of those that are none.
 *
 * A node of the sweep has one report that may speak of it: of the host that the sweep names, exactly or up to
 * its first dot; of a node that nobody named, that of the host whose it was, or the first (reports come in
 * natural order) that claims it. Who claims such a node in vain has a device of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

unsigned join_take_number(uint64_t used[4], unsigned wanted, unsigned most)
{
    if (wanted == 0 || wanted > most || (used[wanted / 64] >> wanted % 64 & 1) != 0)
        for (wanted = 1; wanted <= most && (used[wanted / 64] >> wanted % 64 & 1) != 0;)
            wanted++;
    if (wanted > most)
        return 0;
    used[wanted / 64] |= UINT64_C(1) << wanted % 64;
    return wanted;
}

/* Ports of HCAs by GUID, then those of others, whose hosts nobody knows. */
static uint32_t collect_ports(const struct fab_inventory *inv, struct fab_key *keys)
{
    uint32_t n = 0;
    for (unsigned others = 0; others < 2; others++)
        for (uint32_t p = 0; p < inv->n_ports; p++) {
            const struct fab_port *port = &inv->ports[p];
            unsigned kind = inv->nodes[port->node].kind;
            if (port->guid != 0 && kind != FAB_SWITCH && (kind != FAB_HCA) == others)
                keys[n++] = (struct fab_key){port->guid, p};
        }
    fab_radix_sort(keys, keys + n, n);
    return n;
}

/* By port GUID. GUIDs that look made up are believed only where the sweep has seen them. */
static void match_by_port_guid(struct join *j, const struct fab_key *keys, uint32_t n)
{
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->rdma && dev->port_guid != 0)
            dev->swept_port = fab_radix_find(keys, n, dev->port_guid);
        if (dev->swept_port != FAB_NONE) {
            dev->swept_node = j->swept->ports[dev->swept_port].node;
            dev->node_guid = j->swept->nodes[dev->swept_node].guid;
        } else if (FAB_GUID_IS_MADE_UP(dev->port_guid)) {
            dev->port_guid = 0;
        }
        if (FAB_GUID_IS_MADE_UP(dev->node_guid) && fab_inventory_find(j->swept, dev->node_guid) == FAB_NONE)
            dev->node_guid = 0;
    }
}

static int cmp_name(const void *va, const void *vb)
{
    const struct join_dev *a = *(const struct join_dev *const *)va, *b = *(const struct join_dev *const *)vb;
    return strcmp(a->name, b->name) ?: FAB_ORDER(a->node_guid == 0, b->node_guid == 0)
           ?: FAB_ORDER(a->node_guid, b->node_guid) ?: FAB_ORDER(a, b);
}

/* The RDMA ports of one report that have a name, by name. Returns how many. */
static uint32_t join_sort_by_name(struct join *j, uint32_t first, uint32_t end, struct join_dev **list)
{
    uint32_t n = 0;
    for (uint32_t d = first; d < end; d++)
        if (j->devs[d].rdma && j->devs[d].name != NULL)
            list[n++] = &j->devs[d];
    qsort(list, n, sizeof(*list), cmp_name);
    return n;
}

/* Ports of one name are of one node: who does not know its GUID has it from them (the lowest). */
static void fill_node_guids(struct join *j, struct join_dev **list)
{
    for (uint32_t first = 0, end; first < j->n_devs; first = end) {
        bool missing = false;
        for (end = first; end < j->n_devs && j->devs[end].report == j->devs[first].report; end++)
            missing = missing || (j->devs[end].rdma && j->devs[end].node_guid == 0);
        if (!missing)
            continue;
        uint32_t n = join_sort_by_name(j, first, end, list);
        for (uint32_t i = 1; i < n; i++)
            if (list[i]->node_guid == 0 && strcmp(list[i]->name, list[i - 1]->name) == 0)
                list[i]->node_guid = list[i - 1]->node_guid;
    }
}

/* By node GUID and port number. A port GUID that is another than the sweep's is a contradiction; a node GUID
 * that several nodes have is not theirs. */
static void match_by_node(struct join *j)
{
    const struct fab_inventory *inv = j->swept;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (!dev->rdma || dev->swept_node != FAB_NONE || dev->node_guid == 0)
            continue;
        if (dev->apart) {
            join_disown(dev);
            continue;
        }
        dev->swept_node = fab_inventory_find(inv, dev->node_guid);
        if (dev->swept_node == FAB_NONE || inv->nodes[dev->swept_node].kind != FAB_HCA || dev->num == 0)
            continue;
        uint32_t p = fab_inventory_port(inv, dev->swept_node, dev->num);
        if (p != FAB_NONE && (dev->port_guid == 0 || inv->ports[p].guid == 0))
            dev->swept_port = p;
    }
}

static bool is_outdated(const struct join *j, const struct fab_node *swept, uint32_t report)
{
    const struct fab_prior_owners *past = j->past;
    return past != NULL && past->outdated != NULL &&
           past->outdated(past->cbdata, j->reports[report]->host, swept->guid);
}

/* How good a report's claim to a swept node is: 0 best, 3 none. */
static unsigned join_claim_rank(const struct join *j, uint32_t node, uint32_t report)
{
    const struct fab_node *swept = &j->swept->nodes[node];
    const char *host = fab_str(j->swept, swept->host), *own = j->reports[report]->host;
    if (swept->kind != FAB_HCA)
        return 3;
    if (join_unnamed(j->swept, swept))
        return is_outdated(j, swept, report) ? 3 : 2;
    return strcmp(host, own) == 0 ? 0 : fab_same_host(host, own) ? 1 : 3;
}

/* Of a node that nobody named: was it that report's host's, and so not that of the other? */
static bool join_node_belongs(const struct join *j, uint32_t node, uint32_t report, uint32_t other)
{
    if (j->host_group[report] == j->host_group[other])
        return false;
    const char *host = join_holder(j, FAB_FACT_NODE_GUID, j->swept->nodes[node].guid, 0);
    return host != NULL && strcmp(host, j->host[report]) == 0;
}

static void find_owners(struct join *j)
{
    for (uint32_t i = 0; i < j->swept->n_nodes; i++)
        j->owner[i] = FAB_NONE;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->swept_node == FAB_NONE)
            continue;
        uint32_t *owner = &j->owner[dev->swept_node];
        unsigned mine = join_claim_rank(j, dev->swept_node, dev->report);
        if (mine < 3 && (*owner == FAB_NONE || mine < join_claim_rank(j, dev->swept_node, *owner) ||
                         (mine == 2 && join_node_belongs(j, dev->swept_node, dev->report, *owner))))
            *owner = dev->report;
    }
}

/* Whose a swept node is, for a message. */
static const char *owner_name(const struct join *j, uint32_t node)
{
    const struct fab_node *swept = &j->swept->nodes[node];
    if (swept->kind != FAB_HCA)
        return fab_str(j->swept, swept->name);
    if (join_unnamed(j->swept, swept) && j->owner[node] != FAB_NONE)
        return j->reports[j->owner[node]]->host;
    return fab_str(j->swept, swept->host);
}

/* A node that nobody named is another host's: this is not it. */
static void part_from_swept(struct join *j, struct join_dev *dev, uint32_t *rival)
{
    uint32_t owner = j->owner[dev->swept_node];
    bool port = dev->swept_port != FAB_NONE && dev->port_guid == j->swept->ports[dev->swept_port].guid;
    rival[dev->swept_node] = dev->report + 1;
    join_dispute(j, dev, FAB_FACT_NODE_GUID, JOIN_NODE_GUID | (port ? JOIN_PORT_GUID : 0), true,
                 j->reports[owner]->host);
    join_disown(dev);
    if (port)
        dev->port_guid = 0;
    dev->swept_node = dev->swept_port = FAB_NONE;
}

static bool is_anybodys(const struct join *j, const struct join_dev *dev)
{
    uint32_t owner = j->owner[dev->swept_node];
    return owner != FAB_NONE && j->host_group[owner] != j->host_group[dev->report] &&
           join_unnamed(j->swept, &j->swept->nodes[dev->swept_node]);
}

/* The devices that claim a swept node: joined, refused, or a port of it that the sweep does not list. */
static void settle_swept(struct join *j, uint32_t *joined, uint32_t *rival)
{
    for (uint32_t p = 0; p < j->swept->n_ports; p++)
        joined[p] = FAB_NONE;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->swept_node == FAB_NONE)
            continue;
        const struct fab_node *node = &j->swept->nodes[dev->swept_node];
        if (j->owner[dev->swept_node] != dev->report && is_anybodys(j, dev)) {
            part_from_swept(j, dev, rival);
        } else if (j->owner[dev->swept_node] != dev->report) {
            join_foreign(j, dev, owner_name(j, dev->swept_node));
        } else if (dev->swept_port != FAB_NONE && joined[dev->swept_port] == FAB_NONE) {
            const struct fab_port *port = &j->swept->ports[dev->swept_port];
            joined[dev->swept_port] = d;
            dev->fate = JOIN_SWEPT;
            dev->silent = port->peer == FAB_NONE && !fab_state_is_up(port->state);
            dev->num = port->num;
        } else if (dev->swept_port == FAB_NONE && dev->num != 0 && dev->num <= node->num_ports &&
                   fab_inventory_port(j->swept, dev->swept_node, dev->num) == FAB_NONE) {
            dev->fate = JOIN_NEW;
        } else {
            join_inconsistent(j, dev);
        }
    }
}

/* Who has a node of the sweep that others claim, too. */
static void mark_contenders(struct join *j, const uint32_t *rival)
{
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->swept_node != FAB_NONE && rival[dev->swept_node] != 0 &&
            (dev->fate == JOIN_SWEPT || dev->fate == JOIN_NEW))
            join_dispute(j, dev, FAB_FACT_NODE_GUID, JOIN_NODE_GUID | JOIN_PORT_GUID, false,
                         j->reports[rival[dev->swept_node] - 1]->host);
    }
}

/* What the sweep has not: each node is one host's, each port number and each port GUID one device's. */
static void join_assign_new(struct join *j, struct fab_key *keys, uint32_t *chosen)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->fate == JOIN_NEW)
            keys[n++] = (struct fab_key){(uint64_t)dev->swept_node << 8 | dev->num, d};
    }
    fab_radix_sort(keys, keys + n, n);
    join_settle(j, FAB_FACT_PORT, keys, n, false, chosen); /* of one report: the node's owner */
    n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (!dev->rdma || dev->fate != JOIN_OPEN)
            continue;
        dev->fate = JOIN_NEW;
        if (dev->node_guid != 0)
            keys[n++] = (struct fab_key){dev->node_guid, d};
    }
    fab_radix_sort(keys, keys + n, n);
    join_settle(j, FAB_FACT_NODE_GUID, keys, n, true, chosen);
    join_settle_ids(j, keys, chosen);
    n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        bool fills = dev->fate == JOIN_SWEPT && j->swept->ports[dev->swept_port].guid == 0;
        if ((dev->fate == JOIN_NEW || fills) && dev->port_guid != 0)
            keys[n++] = (struct fab_key){dev->port_guid, d};
    }
    fab_radix_sort(keys, keys + n, n);
    join_settle(j, FAB_FACT_PORT_GUID, keys, n, false, chosen);
}

int join_match(struct join *j)
{
    const struct fab_inventory *inv = j->swept;
    size_t most = j->n_devs > inv->n_ports ? j->n_devs : inv->n_ports;
    struct fab_key *keys = join_temp(j, 2 * most, sizeof(*keys));
    struct join_dev **list = join_temp(j, j->n_devs, sizeof(*list));
    uint32_t *joined = join_temp(j, inv->n_ports, sizeof(*joined));
    uint32_t *rival = join_temp(j, inv->n_nodes, sizeof(*rival)); /* the report of one in vain, plus 1 */
    uint32_t *chosen = join_temp(j, j->n_reports, sizeof(*chosen));
    j->owner = join_alloc(j, inv->n_nodes, sizeof(*j->owner));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    match_by_port_guid(j, keys, collect_ports(inv, keys));
    fill_node_guids(j, list);
    join_shared_guid(j, list);
    match_by_node(j);
    find_owners(j);
    settle_swept(j, joined, rival);
    mark_contenders(j, rival);
    join_assign_new(j, keys, chosen);
    return PMIXFAB_OK;
}
