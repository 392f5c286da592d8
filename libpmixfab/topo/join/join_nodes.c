/* join_nodes.c - nodes and GUIDs for what no sweep has seen. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/join/join_state.h"

static int join_nodes_cmp(const void *va, const void *vb)
{
    const struct join_dev *a = *(const struct join_dev *const *)va, *b = *(const struct join_dev *const *)vb;
    int order = FAB_ORDER(a->node_guid, b->node_guid) ?: FAB_ORDER(a->said_node, b->said_node);
    if (order == 0 && a->node_guid == 0)
        order = join_cmp_text(a->node_name, b->node_name);
    if (order == 0 && a->said_node != 0 && a->node_name == NULL)
        order = join_cmp_text(a->pci, b->pci);
    return order ?: FAB_ORDER(a, b);
}

static bool one_node(const struct join_dev *a, const struct join_dev *b)
{
    if (a->node_guid != 0 || b->node_guid != 0)
        return a->node_guid == b->node_guid;
    if (a->said_node != b->said_node || join_cmp_text(a->node_name, b->node_name) != 0)
        return false;
    return a->node_name != NULL || (a->said_node != 0 && join_cmp_text(a->pci, b->pci) == 0);
}

/* Numbers that are known first, then the lowest free ones. */
static void number_ports(struct join *j, struct join_node *node, struct join_dev **devs, uint32_t n)
{
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++) {
            struct join_dev *dev = devs[i];
            bool free = dev->num != 0 && (node->used[dev->num / 64] >> dev->num % 64 & 1) == 0;
            if (dev->node != FAB_NONE || (pass == 0 && !free))
                continue;
            unsigned num = join_take_number(node->used, free ? dev->num : 0, 254);
            if (num == 0) {
                join_inconsistent(j, dev);
                continue;
            }
            dev->num = (uint8_t)num;
            dev->node = j->n_nodes;
            if (num > node->most)
                node->most = (uint8_t)num;
        }
}

static void add_rdma_node(struct join *j, struct join_dev **devs, uint32_t n)
{
    const struct join_dev *dev = devs[0];
    const char *host = j->reports[dev->report]->host;
    struct join_node *node = &j->nodes[j->n_nodes];
    *node =
        (struct join_node){.guid = dev->node_guid, .report = dev->report, .first = (uint32_t)(dev - j->devs)};
    if (node->guid == 0 && dev->said_node != 0)
        node->guid =
            join_made_up("device", host, dev->node_name != NULL ? dev->node_name : dev->pci, dev->said_node);
    else if (node->guid == 0)
        node->guid =
            join_made_up("device", host, dev->name, dev->name == NULL ? j->words[dev->group].port_guid : 0);
    for (uint32_t i = 0; i < n; i++)
        if (devs[i]->system_guid != 0 && (node->system_guid == 0 || devs[i]->system_guid < node->system_guid))
            node->system_guid = devs[i]->system_guid;
    number_ports(j, node, devs, n);
    for (uint32_t i = 0; i < n; i++)
        if (devs[i]->port_guid == 0)
            devs[i]->port_guid = join_made_up("port", host, devs[i]->name, node->guid ^ devs[i]->num);
    j->n_nodes++;
}

static void add_plain_node(struct join *j, struct join_dev *dev)
{
    struct join_node *node = &j->nodes[j->n_nodes];
    *node = (struct join_node){.guid = FAB_ETHERNET_GUID | dev->mac,
                               .report = dev->report,
                               .most = 1,
                               .plain = true,
                               .first = (uint32_t)(dev - j->devs)};
    if (dev->mac == 0 || (dev->yielded & JOIN_MAC) != 0)
        node->guid = join_made_up("interface", j->reports[dev->report]->host, dev->interface, 0);
    dev->num = 1;
    dev->node = j->n_nodes++;
}

int join_nodes(struct join *j)
{
    struct join_dev **list = join_temp(j, j->n_devs, sizeof(*list));
    j->nodes = join_alloc(j, j->n_devs, sizeof(*j->nodes));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t first = 0, end; first < j->n_devs; first = end) {
        uint32_t n = 0;
        for (end = first; end < j->n_devs && j->devs[end].report == j->devs[first].report; end++)
            if (j->devs[end].fate == JOIN_NEW && j->devs[end].swept_node == FAB_NONE)
                list[n++] = &j->devs[end];
        qsort(list, n, sizeof(*list), join_nodes_cmp);
        for (uint32_t from = 0, to; from < n; from = to) {
            for (to = from + 1; to < n && one_node(list[from], list[to]);)
                to++;
            add_rdma_node(j, list + from, to - from);
        }
        for (uint32_t d = first; d < end; d++)
            if (j->devs[d].fate == JOIN_PLAIN)
                add_plain_node(j, &j->devs[d]);
    }
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->fate == JOIN_NEW && dev->swept_node != FAB_NONE && dev->port_guid == 0)
            dev->port_guid = join_made_up("port", j->reports[dev->report]->host, dev->name,
                                          j->swept->nodes[dev->swept_node].guid ^ dev->num);
    }
    return PMIXFAB_OK;
}

/* A GUID that is made up, or (where NULL) one of the sweep's that looks like it and goes before them. */
struct request {
    uint64_t *guid;
    uint64_t value;
};

static void join_request_guid(struct request *list, uint32_t *n, uint64_t *guid, uint64_t value)
{
    if (list != NULL)
        list[*n] = (struct request){guid, value};
    ++*n;
}

/* Returns how many there are; list NULL: that alone. */
static uint32_t join_collect_requests(struct join *j, struct request *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->swept->n_nodes; i++)
        if (FAB_GUID_IS_MADE_UP(j->swept->nodes[i].guid))
            join_request_guid(list, &n, NULL, j->swept->nodes[i].guid);
    for (uint32_t p = 0; p < j->swept->n_ports; p++)
        if (FAB_GUID_IS_MADE_UP(j->swept->ports[p].guid))
            join_request_guid(list, &n, NULL, j->swept->ports[p].guid);
    for (uint32_t i = 0; i < j->n_nodes; i++)
        if (FAB_GUID_IS_MADE_UP(j->nodes[i].guid))
            join_request_guid(list, &n, &j->nodes[i].guid, j->nodes[i].guid);
    for (uint32_t d = 0; d < j->n_devs; d++)
        if (j->devs[d].fate == JOIN_NEW && FAB_GUID_IS_MADE_UP(j->devs[d].port_guid))
            join_request_guid(list, &n, &j->devs[d].port_guid, j->devs[d].port_guid);
    for (uint32_t s = 0; s < j->n_switches; s++)
        join_request_guid(list, &n, &j->switches[s].guid, j->switches[s].guid);
    return n;
}

/* Of those with one value the first keeps it, the others get another. Returns how many those are. */
static uint32_t move_apart(struct request *list, uint32_t n, struct fab_key *keys)
{
    uint32_t moved = 0;
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct fab_key){list[i].value, i};
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t i = 1, first = 0; i < n; i++) {
        struct request *own = &list[keys[i].index];
        if (keys[i].value != keys[first].value) {
            first = i;
        } else if (own->guid != NULL) {
            own->value = join_made_up("again", NULL, NULL, keys[i].value * 31 + (i - first));
            moved++;
        }
    }
    return moved;
}

int join_number_guids(struct join *j)
{
    const uint32_t n = join_collect_requests(j, NULL);
    struct request *list = join_temp(j, n, sizeof(*list));
    struct fab_key *keys = join_temp(j, 2 * (size_t)n, sizeof(*keys));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    join_collect_requests(j, list);
    while (move_apart(list, n, keys) > 0)
        ;
    for (uint32_t i = 0; i < n; i++)
        if (list[i].guid != NULL)
            *list[i].guid = list[i].value;
    return PMIXFAB_OK;
}
