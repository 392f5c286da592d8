/* join_ethernet.c - which devices stand in which Ethernet plane. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/join/join_state.h"

uint64_t fab_ethernet_prefix(const char *name)
{
    uint64_t prefix = join_made_up("plane", name, NULL, 0);
    return prefix == FAB_UNATTACHED ? prefix - 1 : prefix;
}

static int cmp_network(const void *va, const void *vb)
{
    const struct join_network *a = va, *b = vb;
    return fab_natural_cmp(a->name, b->name) ?: FAB_ORDER(a->cidr.v6, b->cidr.v6)
           ?: memcmp(a->cidr.bytes, b->cidr.bytes, sizeof(a->cidr.bytes))
           ?: FAB_ORDER(a->cidr.length, b->cidr.length);
}

int join_planes_read(struct join *j, const struct fab_ethernet_plane *planes, uint32_t n)
{
    j->planes = join_alloc(j, n, sizeof(*j->planes));
    j->networks = join_alloc(j, n, sizeof(*j->networks));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct fab_err reason;
        int rc = fab_cidr_check(planes[i].cidr, &reason);
        if (rc != PMIXFAB_OK)
            return fab_fail(j->err, rc, "plane %s: %s", planes[i].name, reason.text);
        j->networks[i].name = planes[i].name;
        fab_cidr_parse(planes[i].cidr, &j->networks[i].cidr);
    }
    qsort(j->networks, n, sizeof(*j->networks), cmp_network);
    j->n_networks = n;
    for (uint32_t i = 0; i < n; i++) { /* several networks may make one plane */
        const char *name = j->networks[i].name;
        if (j->n_planes == 0 || strcmp(j->planes[j->n_planes - 1].name, name) != 0)
            j->planes[j->n_planes++] = (struct join_plane){.name = name, .subnet = FAB_NONE};
        j->networks[i].plane = j->n_planes - 1;
    }
    return PMIXFAB_OK;
}

/* Could it have a cable that no sweep of InfiniBand sees? */
static bool may_be_ethernet(const struct join_dev *dev)
{
    if (dev->infiniband)
        return false;
    if (!dev->rdma)
        return dev->fate == JOIN_OPEN;
    return dev->fate == JOIN_NEW || (dev->fate == JOIN_SWEPT && dev->silent);
}

/* The first plane with a network that holds the address; *second another one that does. */
static void find_plane(const struct join *j, const struct fab_cidr *address, struct join_dev *dev,
                       uint32_t *second)
{
    for (uint32_t i = 0; i < j->n_networks; i++) {
        uint32_t plane = j->networks[i].plane;
        if (plane == dev->plane || !fab_cidr_contains(&j->networks[i].cidr, address))
            continue;
        uint32_t later = plane;
        if (dev->plane == FAB_NONE || plane < dev->plane) {
            later = dev->plane;
            dev->plane = plane;
        }
        if (later < *second)
            *second = later;
    }
}

static void ethernet_place_device(struct join *j, struct join_dev *dev)
{
    const struct join_group *group = &j->groups.groups[dev->group];
    const struct fab_report *report = j->reports[dev->report];
    uint32_t second = FAB_NONE;
    for (uint32_t l = 0; l < group->n; l++) {
        const struct join_link *link = &j->groups.links[group->first + l];
        const struct fab_report_item *item = &report->items[link->item];
        for (uint32_t f = item->first; !link->shared && f < item->first + item->n; f++) {
            struct fab_cidr address;
            if (report->facts[f].kind == FAB_FACT_ADDRESS &&
                fab_cidr_parse(report->pool + report->facts[f].text, &address))
                find_plane(j, &address, dev, &second);
        }
    }
    struct join_trouble *trouble = &j->trouble[dev->report];
    if (second == FAB_NONE || trouble->two_planes++ != 0)
        return;
    trouble->two_planes_of = dev->interface != NULL ? dev->interface : dev->name;
    trouble->first_plane = j->planes[dev->plane].name;
    trouble->second_plane = j->planes[second].name;
}

/* Each MAC of what is served is one host's. */
static void settle_macs(struct join *j, struct fab_key *keys, uint32_t *chosen)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->mac != 0 && (dev->plane != FAB_NONE || dev->fate == JOIN_NEW || dev->fate == JOIN_SWEPT))
            keys[n++] = (struct fab_key){dev->mac, d};
    }
    fab_radix_sort(keys, keys + n, n);
    join_settle(j, FAB_FACT_MAC, keys, n, true, chosen);
}

static int cmp_mac(const void *va, const void *vb)
{
    const struct join_dev *a = *(const struct join_dev *const *)va, *b = *(const struct join_dev *const *)vb;
    const char *x = a->interface == NULL ? "" : a->interface, *y = b->interface == NULL ? "" : b->interface;
    return FAB_ORDER(a->mac, b->mac) ?: fab_natural_cmp(x, y) ?: FAB_ORDER(a, b);
}

/* The first interface of this MAC in a list by MAC and name; NULL. */
static const struct join_dev *find_mac(struct join_dev *const *list, uint32_t n, uint64_t mac)
{
    uint32_t at = FAB_LOWER_BOUND(0, n, i, list[i]->mac < mac);
    return at < n && list[at]->mac == mac ? list[at] : NULL;
}

/*
 * A bond, a bridge or a VLAN has the address and hears no LLDP; the interface below it, which has the same
 * MAC, does. So its neighbour is that one's (of several, the first by name).
 */
static void share_neighbours(struct join *j, struct join_dev **list)
{
    for (uint32_t first = 0, end; first < j->n_devs; first = end) {
        uint32_t n = 0;
        for (end = first; end < j->n_devs && j->devs[end].report == j->devs[first].report; end++) {
            struct join_dev *dev = &j->devs[end];
            if (dev->mac != 0 && dev->fate != JOIN_REFUSED && join_switch_text(dev) != NULL)
                list[n++] = dev;
        }
        qsort(list, n, sizeof(*list), cmp_mac);
        for (uint32_t d = first; d < end && n > 0; d++) {
            struct join_dev *dev = &j->devs[d];
            bool deaf = dev->plane != FAB_NONE && dev->mac != 0 && join_switch_text(dev) == NULL;
            const struct join_dev *below = deaf ? find_mac(list, n, dev->mac) : NULL;
            if (below == NULL)
                continue;
            dev->switch_id = below->switch_id;
            dev->switch_name = below->switch_name;
            dev->switch_port = below->switch_port;
        }
    }
}

int join_ethernet(struct join *j)
{
    struct join_dev **list = join_temp(j, j->n_devs, sizeof(*list));
    struct fab_key *keys = join_temp(j, 2 * (size_t)j->n_devs, sizeof(*keys));
    uint32_t *chosen = join_temp(j, j->n_reports, sizeof(*chosen));
    if (j->no_memory)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t d = 0; d < j->n_devs && j->n_networks > 0; d++)
        if (may_be_ethernet(&j->devs[d]))
            ethernet_place_device(j, &j->devs[d]);
    settle_macs(j, keys, chosen);
    share_neighbours(j, list);
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (!dev->rdma && dev->fate == JOIN_OPEN)
            dev->fate = dev->plane == FAB_NONE ? JOIN_UNUSED : JOIN_PLAIN;
    }
    return PMIXFAB_OK;
}
