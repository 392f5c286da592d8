/*
 * join_shared_guid.c - which devices of one report are several nodes although they have one node GUID.
 *
 * A node GUID is one RDMA device's. There are drivers that give all of their devices one, usnic does; that is
 * then nobody's. Devices are told apart by their name, which the operating system gives to one alone. A port
 * without a name belongs to the device at its PCI function, or to the only one that there is; else its PCI
 * function stands for it.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/join/join_state.h"

#define FEW 16u /* devices of a report that are compared with each other instead of being sorted */

int join_cmp_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return (a == NULL) - (b == NULL);
    return strcmp(a, b);
}

/* By node GUID, then PCI function, then name. */
static int cmp_dev(const void *va, const void *vb)
{
    const struct join_dev *a = *(const struct join_dev *const *)va, *b = *(const struct join_dev *const *)vb;
    return FAB_ORDER(a->node_guid, b->node_guid) ?: join_cmp_text(a->pci, b->pci)
           ?: join_cmp_text(a->name, b->name) ?: FAB_ORDER(a, b);
}

void join_disown(struct join_dev *dev)
{
    dev->said_node = dev->node_guid;
    dev->node_guid = 0;
}

static bool shared_guid_same_node(const struct join_dev *a, const struct join_dev *b)
{
    if (a->node_name != NULL || b->node_name != NULL)
        return join_cmp_text(a->node_name, b->node_name) == 0;
    return a->pci == NULL || b->pci == NULL || strcmp(a->pci, b->pci) == 0;
}

/* Ports without a name, of those with one node GUID: which device's are they? True: all are one node's. */
static bool find_names(struct join_dev **run, uint32_t n)
{
    const struct join_dev *named = NULL;
    bool one = true;
    for (uint32_t i = 0; i < n;
         i++) { /* at one PCI function those with a name come first; without one, last */
        struct join_dev *dev = run[i];
        if (dev->name == NULL && dev->pci != NULL && i > 0 && join_cmp_text(dev->pci, run[i - 1]->pci) == 0)
            dev->node_name = run[i - 1]->node_name;
        if (dev->name != NULL && named == NULL)
            named = dev;
        one = one && (dev->name == NULL || strcmp(dev->name, named->name) == 0);
    }
    for (uint32_t i = 0; i < n && one && named != NULL; i++)
        if (run[i]->node_name == NULL && (run[i]->pci == NULL || named->pci == NULL))
            run[i]->node_name = named->name;
    for (uint32_t i = 1; i < n; i++)
        one = one && shared_guid_same_node(run[0], run[i]);
    return one;
}

/* Several nodes: what the sweep knows by this GUID is one of them, that with a port GUID of it, or the first.
 */
static void shared_guid_split(const struct join *j, struct join_dev **run, uint32_t n)
{
    const struct join_dev *real = NULL;
    bool swept = fab_inventory_find(j->swept, run[0]->node_guid) != FAB_NONE;
    for (uint32_t i = 0; i < n && swept; i++) {
        bool better = real == NULL || (run[i]->swept_node == FAB_NONE) < (real->swept_node == FAB_NONE);
        bool alike = real != NULL && (run[i]->swept_node == FAB_NONE) == (real->swept_node == FAB_NONE);
        if (better || (alike && run[i] < real))
            real = run[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        run[i]->disputed |= JOIN_NODE_GUID;
        run[i]->apart =
            real == NULL || (run[i]->swept_node == FAB_NONE && !shared_guid_same_node(run[i], real));
    }
}

/* Is there nothing to be told apart: no two that share a node GUID but ports of one name? */
static bool is_plain(struct join_dev *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (list[i]->node_guid == list[k]->node_guid &&
                (list[i]->name == NULL || list[k]->name == NULL || strcmp(list[i]->name, list[k]->name) != 0))
                return false;
    return true;
}

void join_shared_guid(struct join *j, struct join_dev **list)
{
    for (uint32_t first = 0, end; first < j->n_devs; first = end) {
        uint32_t n = 0;
        for (end = first; end < j->n_devs && j->devs[end].report == j->devs[first].report; end++)
            if (j->devs[end].rdma && j->devs[end].node_guid != 0)
                list[n++] = &j->devs[end];
        if (n <= FEW && is_plain(list, n))
            continue;
        qsort(list, n, sizeof(*list), cmp_dev);
        for (uint32_t from = 0, to; from < n; from = to) {
            for (to = from + 1; to < n && list[to]->node_guid == list[from]->node_guid;)
                to++;
            if (!find_names(list + from, to - from))
                shared_guid_split(j, list + from, to - from);
        }
    }
}
