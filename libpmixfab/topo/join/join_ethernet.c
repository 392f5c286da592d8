/* join_ethernet.c - assign devices to Ethernet planes, and make the switches of those planes. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/join/join_state.h"

/* Return the text that identifies a switch in LLDP: the chassis, or else the name; NULL: no neighbour. */
static const char *join_switch_text(const struct join_dev *dev)
{
    return dev->switch_id != NULL ? dev->switch_id : dev->switch_name;
}

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

/* Return whether the device may have a cable that no sweep of InfiniBand sees. */
static bool may_be_ethernet(const struct join_dev *dev)
{
    if (dev->infiniband)
        return false;
    if (!dev->rdma)
        return dev->fate == JOIN_OPEN;
    return dev->fate == JOIN_NEW || (dev->fate == JOIN_SWEPT && dev->silent);
}

/* Find the first plane with a network that contains the address; *second becomes another one. */
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

/* Make each published MAC belong to one host. */
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

/* Return the first interface with this MAC in a list by MAC and name; NULL. */
static const struct join_dev *find_mac(struct join_dev *const *list, uint32_t n, uint64_t mac)
{
    uint32_t at = FAB_LOWER_BOUND(0, n, i, list[i]->mac < mac);
    return at < n && list[at]->mac == mac ? list[at] : NULL;
}

/*
 * A bond, a bridge or a VLAN has the address and hears no LLDP; the interface below it has the same MAC and
 * does. So it gets the neighbour of that one (of several, the first by name).
 */
static void share_neighbours(struct join *j, struct join_dev **list)
{
    for (uint32_t r = 0; r < j->n_reports; r++) {
        uint32_t n = 0;
        for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++) {
            struct join_dev *dev = &j->devs[d];
            if (dev->mac != 0 && dev->fate != JOIN_REFUSED && join_switch_text(dev) != NULL)
                list[n++] = dev;
        }
        qsort(list, n, sizeof(*list), cmp_mac);
        for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1] && n > 0; d++) {
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

/* ---- switches -------------------------------------------------------------------------------------- */

/*
 * Switches of Ethernet planes: those that LLDP names, and the segment that joins the rest.
 *
 * A switch belongs to one plane. A switch in two planes becomes two switches here, because it would connect
 * the planes otherwise. A device gets the port that LLDP names, by the last number in its text. If this
 * number is not 1 to 254 or not free, the device gets the lowest free port. One port is reserved for the
 * cable to the segment. Devices that do not fit are cabled to the segment.
 *
 * The segment is a switch of at most 200 ports. If there are more switches and devices, the segment is a tree
 * of switches with 200 ports each. One switch joins the others, or two levels of switches do, and so on.
 * Switches come first, then devices by host. The cables of the tree have the plane's fastest rate. A plane of
 * one switch and nothing else has no segment.
 */
#define MAX_DEVICES 253u /* of a switch known from LLDP */
#define MAX_BELOW   200u /* of a switch of a segment */
#define UPLINK      254u

static int join_add_lldp_switch(struct join *j, const struct join_switch *sw, uint32_t *index)
{
    if (!FAB_ARRAY_ROOM(&j->switches, &j->cap_switches, j->n_switches + 1))
        return PMIXFAB_ERR_NOMEM;
    *index = j->n_switches;
    j->switches[j->n_switches] = *sw;
    j->switches[j->n_switches++].above = FAB_NONE;
    return PMIXFAB_OK;
}

/*
 * Return the port that the text of LLDP names, which is the last number in the text; 0: no valid port
 * number.
 */
static unsigned port_of_text(const char *text)
{
    unsigned n = 0;
    bool inside = false;
    if (text == NULL || join_mac_value(text) != 0)
        return 0;
    for (; *text != '\0'; text++) {
        bool digit = *text >= '0' && *text <= '9';
        if (digit) {
            n = (inside ? n * 10 : 0) + (unsigned)(*text - '0');
            n = n > 999 ? 999 : n;
        }
        inside = digit;
    }
    return n <= 254 ? n : 0;
}

static int join_add_cable(struct join *j, uint32_t dev, uint32_t sw, unsigned num)
{
    j->cables[j->n_cables++] = (struct join_cable){dev, sw, (uint8_t)num};
    return PMIXFAB_OK;
}

/* Make one switch with its devices, keys[0..n-1] by report. Devices that do not fit stay without a cable. */
static int make_switch(struct join *j, const struct fab_key *keys, uint32_t n, bool *cabled)
{
    const struct join_dev *first = &j->devs[keys[0].index];
    const char *text = join_switch_text(first);
    struct join_switch sw = {.plane = first->plane, .name = NULL};
    uint64_t mac = join_mac_value(text);
    uint32_t index, taken = 0;

    sw.guid = mac != 0 ? FAB_ETHERNET_GUID | mac : join_made_up("switch", text, NULL, 0);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = j->devs[keys[i].index].switch_name;
        if (name != NULL && (sw.name == NULL || fab_natural_cmp(name, sw.name) < 0))
            sw.name = name;
    }
    if (sw.name == NULL)
        sw.name = text;
    int rc = join_add_lldp_switch(j, &sw, &index);
    for (unsigned pass = 0; pass < 2 && rc == PMIXFAB_OK; pass++)
        for (uint32_t i = 0; i < n && taken < MAX_DEVICES; i++) {
            uint32_t d = keys[i].index;
            uint64_t *used = j->switches[index].used;
            unsigned wanted = port_of_text(j->devs[d].switch_port);
            bool free = wanted != 0 && (used[wanted / 64] >> wanted % 64 & 1) == 0;
            if (cabled[d] || (pass == 0 && !free))
                continue;
            cabled[d] = true;
            join_add_cable(j, d, index, join_take_number(used, free ? wanted : 0, 254));
            taken++;
        }
    return rc;
}

/* Make the switches that LLDP names, by plane and first device. */
static int make_switches(struct join *j, struct fab_key *keys, struct fab_key *order, bool *cabled)
{
    uint32_t n = 0, n_runs = 0;
    int rc = PMIXFAB_OK;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        const char *text = dev->plane == FAB_NONE ? NULL : join_switch_text(dev);
        if (text != NULL)
            keys[n++] = (struct fab_key){
                XXH3_64bits_withSeed(text, strlen(text), (uint64_t)dev->plane * 2 + (dev->switch_id != NULL)),
                d};
    }
    fab_radix_sort(keys, order, n);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || keys[i].value != keys[i - 1].value)
            order[n_runs++] =
                (struct fab_key){(uint64_t)j->devs[keys[i].index].plane << 32 | keys[i].index, i};
    fab_radix_sort(order, order + n_runs, n_runs);
    for (uint32_t r = 0; r < n_runs && rc == PMIXFAB_OK; r++) {
        uint32_t first = order[r].index, end = first + 1;
        while (end < n && keys[end].value == keys[first].value)
            end++;
        rc = make_switch(j, keys + first, end - first, cabled);
    }
    return rc;
}

static int add_segment(struct join *j, uint32_t plane, uint32_t level, uint32_t number, uint32_t *index)
{
    struct join_switch sw = {.plane = plane, .level = level, .number = number};
    sw.guid = join_made_up("segment", j->planes[plane].name, NULL, (uint64_t)level << 32 | number);
    return join_add_lldp_switch(j, &sw, index);
}

static void join_link_below(struct join *j, uint32_t below, uint32_t above, uint32_t place)
{
    struct join_switch *sw = &j->switches[below];
    sw->above = above;
    sw->up = (uint8_t)join_take_number(sw->used, UPLINK, 254);
    sw->down = (uint8_t)(place % MAX_BELOW + 1);
}

/* Make the segment of a plane for its switches sw .. sw_end-1 and the devices in list. */
static int make_segment(struct join *j, uint32_t plane, uint32_t sw, uint32_t sw_end, const uint32_t *list,
                        uint32_t n)
{
    uint32_t total = sw_end - sw + n, index = 0, below = sw;
    int rc = PMIXFAB_OK;
    if (total == 0 || (n == 0 && total == 1))
        return PMIXFAB_OK;
    for (uint32_t level = 1; rc == PMIXFAB_OK; level++) {
        uint32_t first = j->n_switches;
        for (uint32_t i = 0; i < total && rc == PMIXFAB_OK; i++) {
            if (i % MAX_BELOW == 0)
                rc = add_segment(j, plane, level, i / MAX_BELOW + 1, &index);
            if (rc == PMIXFAB_OK && level == 1 && i >= sw_end - sw)
                rc = join_add_cable(j, list[i - (sw_end - sw)], index, i % MAX_BELOW + 1);
            else if (rc == PMIXFAB_OK)
                join_link_below(j, below + i, index, i);
        }
        below = first;
        total = j->n_switches - first;
        if (total == 1)
            break;
    }
    if (rc == PMIXFAB_OK)
        j->switches[index].level = 0; /* the top switch has the plane's name */
    return rc;
}

int join_switches(struct join *j)
{
    struct fab_key *keys = join_temp(j, j->n_devs, sizeof(*keys));
    struct fab_key *order = join_temp(j, 2 * (size_t)j->n_devs, sizeof(*order));
    uint32_t *list = join_temp(j, j->n_devs, sizeof(*list));
    bool *cabled = join_temp(j, j->n_devs, sizeof(*cabled));
    j->cables = join_alloc(j, j->n_devs, sizeof(*j->cables));
    int rc = j->no_memory ? PMIXFAB_ERR_NOMEM : make_switches(j, keys, order, cabled);
    if (rc != PMIXFAB_OK)
        return rc;
    uint32_t sw = 0, n_named = j->n_switches, n = 0;
    for (uint32_t d = 0; d < j->n_devs; d++) /* by plane, within a plane by report */
        if (j->devs[d].plane != FAB_NONE && !cabled[d])
            keys[n++] = (struct fab_key){j->devs[d].plane, d};
    fab_radix_sort(keys, order, n);
    for (uint32_t i = 0; i < n; i++)
        list[i] = keys[i].index;
    for (uint32_t plane = 0, at = 0; plane < j->n_planes && rc == PMIXFAB_OK; plane++) {
        uint32_t first = at, sw_first = sw;
        while (at < n && keys[at].value == plane)
            at++;
        while (sw < n_named && j->switches[sw].plane == plane)
            sw++;
        rc = make_segment(j, plane, sw_first, sw, list + first, at - first);
    }
    return rc;
}
