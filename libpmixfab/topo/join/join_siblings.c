/*
 * join_siblings.c - functions of a swept card that have GUIDs of their own and that no sweep shows.
 *
 * Socket Direct, multi-host and virtual functions have the system GUID of their card, which the sweep knows
 * of the card's other ports: the siblings. Such a function uses the cable of one of them, if it is up:
 *   1. of those of its own host, if there are any;
 *   2. that with its LID. A LID that another port of that subnet has is of another fabric: it has no sibling,
 *      nor has the second port of a card of two, by its PCI function and GUID;
 *   3. that with its port number, then that with its PCI function number;
 *   4. else, if several are left, functions at one PCI device are handed out in the order of their GUIDs.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/search.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

struct siblings {
    struct join *j;
    const struct fab_key *keys; /* cabled ports of HCAs by system GUID */
    uint32_t n_keys;
    const uint32_t *dev_of;     /* of each swept port: one more than its device; 0: nobody reports it */
    const struct fab_key *lids; /* ports and switches by subnet and LID */
    uint32_t n_lids;
};

static uint64_t lid_key(unsigned subnet, unsigned lid)
{
    return (uint64_t)subnet << 16 | lid;
}

static uint32_t list_systems(const struct fab_inventory *inv, struct fab_key *keys)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_node *node = &inv->nodes[inv->ports[p].node];
        if (node->kind == FAB_HCA && node->system_guid != 0 && inv->ports[p].peer != FAB_NONE)
            keys[n++] = (struct fab_key){node->system_guid, p};
    }
    fab_radix_sort(keys, keys + n, n);
    return n;
}

static uint32_t list_lids(const struct fab_inventory *inv, struct fab_key *keys)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (inv->ports[p].lid != 0)
            keys[n++] = (struct fab_key){lid_key(inv->ports[p].subnet, inv->ports[p].lid), p};
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_SWITCH && inv->nodes[i].lid != 0 && inv->nodes[i].n_ports > 0)
            keys[n++] =
                (struct fab_key){lid_key(inv->ports[inv->nodes[i].first_port].subnet, inv->nodes[i].lid), 0};
    fab_radix_sort(keys, keys + n, n);
    return n;
}

/* Is it of the report's own host? */
static bool sibling_is_own(const struct join *j, uint32_t port, const struct join_dev *dev)
{
    const uint32_t node = j->swept->ports[port].node;
    return j->owner[node] == dev->report ||
           fab_same_host(fab_str(j->swept, j->swept->nodes[node].host), j->reports[dev->report]->host);
}

/* Those of its card, of its own host where there are any; 0: none, or more than a card has. */
static uint32_t siblings_of(const struct siblings *s, const struct join_dev *dev, uint32_t *list)
{
    uint32_t n = 0, own = 0;
    const uint32_t first = FAB_LOWER_BOUND(0, s->n_keys, i, s->keys[i].value < dev->system_guid);
    for (uint32_t k = first; k < s->n_keys && s->keys[k].value == dev->system_guid; k++) {
        if (n == JOIN_MAX_SHARED)
            return 0;
        list[n++] = s->keys[k].index;
    }
    for (uint32_t i = 0; i < n; i++)
        if (sibling_is_own(s->j, list[i], dev))
            list[own++] = list[i];
    return own > 0 ? own : n;
}

/* The last part of a PCI address is the function, the rest the device. */
static size_t pci_device_len(const char *pci)
{
    const char *end = pci == NULL ? NULL : strrchr(pci, ':');
    return end == NULL ? 0 : (size_t)(end - pci);
}

static bool at_one_pci_device(const struct join_dev *a, const struct join_dev *b)
{
    const size_t len = pci_device_len(a->pci);
    return len == pci_device_len(b->pci) && (len == 0 || strncmp(a->pci, b->pci, len) == 0);
}

static unsigned long pci_function(const char *pci)
{
    const size_t len = pci_device_len(pci);
    return len == 0 ? 0 : strtoul(pci + len + 1, NULL, 16);
}

/* The other port of a card of two: a function at one PCI device, whose GUID is as far from the swept one. */
static bool is_other_port(const struct siblings *s, uint32_t port, const struct join_dev *dev)
{
    const struct join_dev *known = s->dev_of[port] == 0 ? NULL : &s->j->devs[s->dev_of[port] - 1];
    return known != NULL && pci_device_len(dev->pci) > 0 && at_one_pci_device(known, dev) &&
           dev->node_guid - known->node_guid == (uint64_t)pci_function(dev->pci) - pci_function(known->pci);
}

static bool same_function(const struct siblings *s, uint32_t port, const struct join_dev *dev)
{
    const char *pci = s->dev_of[port] == 0 ? NULL : s->j->devs[s->dev_of[port] - 1].pci;
    return pci != NULL && dev->pci != NULL && pci_function(pci) == pci_function(dev->pci);
}

/* Keep those that have what is asked for, if any has. */
static uint32_t siblings_narrow(const struct siblings *s, const struct join_dev *dev, bool by_number,
                                uint32_t *list, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (by_number ? s->j->swept->ports[list[i]].num == dev->num : same_function(s, list[i], dev)) {
            const uint32_t at = list[kept];
            list[kept++] = list[i];
            list[i] = at;
        }
    return kept > 0 ? kept : n;
}

static bool is_function(const struct join_dev *dev)
{
    return dev->rdma && dev->fate == JOIN_NEW && dev->swept_node == FAB_NONE && dev->system_guid != 0 &&
           dev->state == FAB_PORT_ACTIVE && (dev->infiniband || dev->lid != 0);
}

/* How many functions like it come before it at its PCI device. */
static uint32_t function_rank(const struct join *j, const struct join_dev *dev)
{
    uint32_t rank = 0;
    const struct join_dev *first = dev;
    while (first > j->devs && first[-1].report == dev->report)
        first--;
    for (const struct join_dev *d = first; d < j->devs + j->n_devs && d->report == dev->report; d++)
        rank += is_function(d) && d->system_guid == dev->system_guid && d->num == dev->num &&
                at_one_pci_device(d, dev) &&
                (d->node_guid < dev->node_guid || (d->node_guid == dev->node_guid && d < dev));
    return rank;
}

static uint32_t find_sibling(const struct siblings *s, const struct join_dev *dev)
{
    const struct fab_inventory *inv = s->j->swept;
    uint32_t list[JOIN_MAX_SHARED], n = siblings_of(s, dev, list);
    if (n == 0)
        return FAB_NONE;
    for (uint32_t i = 0; i < n && dev->lid != 0; i++)
        if (inv->ports[list[i]].lid == dev->lid)
            return list[i];
    for (uint32_t i = 0; i < n; i++)
        if (is_other_port(s, list[i], dev))
            return FAB_NONE;
    if (dev->lid != 0 &&
        fab_radix_find(s->lids, s->n_lids, lid_key(inv->ports[list[0]].subnet, dev->lid)) != FAB_NONE)
        return FAB_NONE;
    n = siblings_narrow(s, dev, true, list, n);
    if (n > 1)
        n = siblings_narrow(s, dev, false, list, n);
    return list[n > 1 ? function_rank(s->j, dev) % n : 0];
}

int join_siblings(struct join *j)
{
    const struct fab_inventory *inv = j->swept;
    struct fab_key *keys = join_temp(j, 2 * (size_t)inv->n_ports, sizeof(*keys));
    struct fab_key *lids = join_temp(j, 2 * ((size_t)inv->n_ports + inv->n_nodes), sizeof(*lids));
    uint32_t *dev_of = join_temp(j, inv->n_ports, sizeof(*dev_of));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    struct siblings s = {.j = j, .keys = keys, .lids = lids, .dev_of = dev_of};
    bool any = false;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        any = any || is_function(&j->devs[d]);
        if (j->devs[d].fate == JOIN_SWEPT)
            dev_of[j->devs[d].swept_port] = d + 1;
    }
    if (!any)
        return PMIXFAB_OK;
    s.n_keys = list_systems(inv, keys);
    s.n_lids = list_lids(inv, lids);
    for (uint32_t d = 0; d < j->n_devs; d++)
        if (is_function(&j->devs[d]))
            j->devs[d].sibling = find_sibling(&s, &j->devs[d]);
    return PMIXFAB_OK;
}
