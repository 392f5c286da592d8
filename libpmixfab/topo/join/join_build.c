/* join_build.c - build the joined inventory: the sweep's, with the additions from reports. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

/* ---- functions of a swept card --------------------------------------------------------------------- */

/*
 * Functions of a swept card that have GUIDs of their own and that no sweep shows.
 *
 * Socket Direct, multi-host and virtual functions have the system GUID of their card, which the sweep has
 * seen at the card's other ports: the siblings. Such a function uses the cable of a sibling that is up,
 * chosen in this order:
 * 1. the siblings of its own host, if there are any
 * 2. the sibling with its LID
 * 3. the sibling with its port number, then the sibling with its PCI function number
 * 4. if several are left, functions at one PCI device are distributed in the order of their GUIDs.
 *
 * If another port of that subnet has the LID of a function, the LID belongs to another fabric, and the
 * function has no sibling. The second port of a card of two, by its PCI function and GUID, has none either.
 */

struct siblings {
    struct join *j;
    const struct fab_key *keys; /* cabled ports of HCAs by system GUID */
    uint32_t n_keys;
    const uint32_t *dev_of;     /* of each swept port: its device + 1; 0: no report contains it */
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

/* Return whether it belongs to the report's own host. */
static bool sibling_is_own(const struct join *j, uint32_t port, const struct join_dev *dev)
{
    const uint32_t node = j->swept->ports[port].node;
    return j->owner[node] == dev->report ||
           fab_same_host(fab_str(j->swept, j->swept->nodes[node].host), j->reports[dev->report]->host);
}

/*
 * Collect the ports of its card, those of its own host if there are any. Return their number; 0 also for more
 * than a card has.
 */
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

/* The last part of a PCI address is the function, the rest identifies the device. */
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

/*
 * Return whether it is the other port of a card of two: a function at one PCI device whose GUID has the
 * matching distance.
 */
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

/* Keep those with the wanted value, if there are any. */
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
    return dev->rdma && dev->fate == JOIN_NEW && !dev->parted && dev->swept_node == FAB_NONE &&
           dev->system_guid != 0 && dev->state == FAB_PORT_ACTIVE && (dev->infiniband || dev->lid != 0);
}

/* Return the number of such functions before it at its PCI device. */
static uint32_t function_rank(const struct join *j, const struct join_dev *dev)
{
    uint32_t rank = 0;
    const uint32_t *first = &j->first_dev[dev->report];
    for (const struct join_dev *d = j->devs + first[0]; d < j->devs + first[1]; d++)
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

static int join_siblings(struct join *j)
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

/* ---- nodes and GUIDs for devices that no sweep has seen ------------------------------------------------ */

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

/* Assign known numbers first, then the lowest free ones. */
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
    if (j->no_memory || join_siblings(j) != PMIXFAB_OK)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t r = 0; r < j->n_reports; r++) {
        uint32_t n = 0;
        for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++)
            if (j->devs[d].fate == JOIN_NEW && j->devs[d].swept_node == FAB_NONE)
                list[n++] = &j->devs[d];
        qsort(list, n, sizeof(*list), join_nodes_cmp);
        for (uint32_t from = 0, to; from < n; from = to) {
            for (to = from + 1; to < n && one_node(list[from], list[to]);)
                to++;
            add_rdma_node(j, list + from, to - from);
        }
        for (uint32_t d = j->first_dev[r]; d < j->first_dev[r + 1]; d++)
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

/* A GUID that is made here, or (guid NULL) one of the sweep's that looks like it and has priority. */
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

/* Collect them and return their number; list NULL: only count. */
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

/*
 * Of requests with one value the first keeps it, the others get another one. Return the number of the others.
 */
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

/* ---- the inventory --------------------------------------------------------------------------------- */

static int add_subnet(struct join *j, uint64_t prefix, uint32_t *subnet)
{
    struct fab_inventory *inv = &j->out->inv;
    if (*subnet != FAB_NONE)
        return PMIXFAB_OK;
    if (inv->n_subnets >= FAB_MAX_SUBNETS)
        return fab_fail(j->err, PMIXFAB_ERR_RANGE,
                        "more than %d subnets: the sweep has %" PRIu32
                        ", the rest are planes of network interfaces; configure fewer of these",
                        FAB_MAX_SUBNETS, j->swept->n_subnets);
    *subnet = inv->n_subnets;
    inv->subnets[inv->n_subnets++].prefix = prefix;
    return PMIXFAB_OK;
}

/* Return whether this device needs a place that the sweep does not have. */
static bool is_moved(const struct join *j, const struct join_dev *dev)
{
    return dev->fate == JOIN_NEW || dev->fate == JOIN_PLAIN ||
           (dev->fate == JOIN_SWEPT && j->swept->ports[dev->swept_port].peer == FAB_NONE);
}

static int add_subnets(struct join *j)
{
    bool unattached = false;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < j->n_planes; i++)
        j->planes[i].used = false;
    for (uint32_t d = 0; d < j->n_devs; d++) {
        const struct join_dev *dev = &j->devs[d];
        if (dev->plane != FAB_NONE && is_moved(j, dev))
            j->planes[dev->plane].used = true;
        else
            unattached = unattached || is_moved(j, dev);
    }
    for (uint32_t i = 0; i < j->n_planes && rc == PMIXFAB_OK; i++)
        if (j->planes[i].used)
            rc = add_subnet(j, fab_ethernet_prefix(j->planes[i].name), &j->planes[i].subnet);
    if (rc == PMIXFAB_OK && unattached)
        rc = add_subnet(j, FAB_UNATTACHED, &j->unattached);
    return rc;
}

static int add_string(struct join *j, const char *text, uint32_t *offset)
{
    *offset = fab_inventory_string(&j->out->inv, text, strlen(text));
    return *offset == FAB_NONE ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
}

/* Fill a port with the values that the device reports. */
static void fill_port(const struct join *j, const struct join_dev *dev, struct fab_port *port)
{
    unsigned width;
    enum fab_speed speed;
    fab_rate_parse(dev->mbps, &width, &speed);
    if (port->guid == 0)
        port->guid = dev->port_guid;
    if (dev->state != FAB_PORT_UNKNOWN)
        port->state = dev->state;
    if (width != 0) {
        port->width = (uint8_t)width;
        port->speed = (uint8_t)speed;
    }
    if (port->lid == 0)
        port->lid = dev->lid;
    port->subnet = (uint8_t)(dev->plane != FAB_NONE ? j->planes[dev->plane].subnet : j->unattached);
}

/* Replace the host of a swept node by the report's host if the sweep has no name for it. */
static int join_swept(struct join *j, struct join_dev *dev, uint32_t *host)
{
    struct fab_inventory *inv = &j->out->inv;
    struct fab_node *node = &inv->nodes[dev->swept_node];
    if (join_unnamed(j->swept, &j->swept->nodes[dev->swept_node])) {
        if (*host == 0 && add_string(j, j->host[dev->report], host) != PMIXFAB_OK)
            return PMIXFAB_ERR_NOMEM;
        node->host = *host;
        node->unnamed = 0;
    }
    if (dev->fate == JOIN_SWEPT) {
        dev->port = dev->swept_port;
        struct fab_port *port = &inv->ports[dev->port];
        if (dev->silent)
            fill_port(j, dev, port);
        else if (port->peer == FAB_NONE)
            port->subnet = (uint8_t)j->unattached;
        return PMIXFAB_OK;
    }
    struct fab_port port = {.node = dev->swept_node, .num = dev->num};
    fill_port(j, dev, &port);
    return fab_inventory_add_port(inv, &port, &dev->port);
}

static int join_add_node(struct join *j, struct join_node *node, uint32_t *host)
{
    if (*host == 0 && add_string(j, j->host[node->report], host) != PMIXFAB_OK)
        return PMIXFAB_ERR_NOMEM;
    struct fab_node made = {.guid = node->guid,
                            .system_guid = node->system_guid != 0 ? node->system_guid : node->guid,
                            .host = *host,
                            .kind = FAB_HCA,
                            .num_ports = node->most};
    return fab_inventory_add_node(&j->out->inv, &made, &node->index);
}

static int add_devices(struct join *j)
{
    int rc = PMIXFAB_OK;
    uint32_t *hosts = join_temp(j, j->n_reports, sizeof(*hosts)); /* strings; 0: not made yet */
    if (hosts == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < j->n_nodes && rc == PMIXFAB_OK; i++)
        rc = join_add_node(j, &j->nodes[i], &hosts[j->nodes[i].report]);
    for (uint32_t d = 0; d < j->n_devs && rc == PMIXFAB_OK; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->fate == JOIN_SWEPT || (dev->fate == JOIN_NEW && dev->swept_node != FAB_NONE)) {
            rc = join_swept(j, dev, &hosts[dev->report]);
        } else if (dev->fate == JOIN_NEW || dev->fate == JOIN_PLAIN) {
            const struct join_node *node = &j->nodes[dev->node];
            struct fab_port port = {.node = node->index, .num = dev->num};
            if (node->plain)
                dev->port_guid = node->guid;
            if (dev->sibling != FAB_NONE) {
                port.sibling = dev->sibling + 1;
                port.width = j->swept->ports[dev->sibling].width;
                port.speed = j->swept->ports[dev->sibling].speed;
            }
            fill_port(j, dev, &port);
            rc = fab_inventory_add_port(&j->out->inv, &port, &dev->port);
        }
    }
    return rc;
}

static int join_add_swept_switch(struct join *j, struct join_switch *sw)
{
    char name[512];
    const char *plane = j->planes[sw->plane].name;
    if (sw->name != NULL)
        snprintf(name, sizeof(name), "%s", sw->name);
    else if (sw->level == 0)
        snprintf(name, sizeof(name), "%s", plane);
    else
        snprintf(name, sizeof(name), "%.400s.%" PRIu32 ".%" PRIu32, plane, sw->level, sw->number);
    struct fab_node node = {.guid = sw->guid, .system_guid = sw->guid, .kind = FAB_SWITCH, .num_ports = 254};
    int rc = add_string(j, name, &node.name);
    node.desc = node.name;
    return rc ?: fab_inventory_add_node(&j->out->inv, &node, &sw->index);
}

/* Add a port of a switch with a cable to `port`, with the same rate. */
static int cable_to(struct join *j, const struct join_switch *sw, unsigned num, uint32_t port)
{
    struct fab_inventory *inv = &j->out->inv;
    struct fab_port made = inv->ports[port];
    uint32_t index = FAB_NONE;
    made.guid = 0;
    made.lid = 0;
    made.node = sw->index;
    made.num = (uint8_t)num;
    return fab_inventory_add_port(inv, &made, &index) ?: fab_inventory_link(inv, index, port);
}

static int add_switches(struct join *j)
{
    struct fab_inventory *inv = &j->out->inv;
    int rc = PMIXFAB_OK;
    for (uint32_t s = 0; s < j->n_switches && rc == PMIXFAB_OK; s++)
        rc = join_add_swept_switch(j, &j->switches[s]);
    for (uint32_t c = 0; c < j->n_cables && rc == PMIXFAB_OK; c++)
        rc = cable_to(j, &j->switches[j->cables[c].sw], j->cables[c].num, j->devs[j->cables[c].dev].port);
    for (uint32_t s = 0; s < j->n_switches && rc == PMIXFAB_OK; s++) {
        const struct join_switch *sw = &j->switches[s];
        struct fab_port port = {.node = sw->index,
                                .num = sw->up,
                                .state = FAB_PORT_ACTIVE,
                                .subnet = (uint8_t)j->planes[sw->plane].subnet};
        uint32_t index = FAB_NONE;
        if (sw->above == FAB_NONE)
            continue;
        rc = fab_inventory_add_port(inv, &port, &index)
                 ?: cable_to(j, &j->switches[sw->above], sw->down, index);
    }
    return rc;
}

/* Find the ports of the devices again after sorting. */
static void join_index_ports(struct join *j, const uint64_t *guids)
{
    for (uint32_t d = 0; d < j->n_devs; d++) {
        struct join_dev *dev = &j->devs[d];
        if (dev->port == FAB_NONE)
            continue;
        uint32_t node = fab_inventory_find(&j->out->inv, guids[d]);
        dev->port = fab_inventory_port(&j->out->inv, node, dev->num);
    }
}

int join_build(struct join *j)
{
    struct fab_inventory *inv = &j->out->inv;
    uint64_t *guids = join_temp(j, j->n_devs, sizeof(*guids));
    int rc = guids == NULL ? PMIXFAB_ERR_NOMEM : fab_inventory_copy(inv, j->swept);
    inv->finished = false;
    rc = rc ?: add_subnets(j) ?: add_devices(j) ?: add_switches(j);
    for (uint32_t d = 0; d < j->n_devs && rc == PMIXFAB_OK; d++)
        if (j->devs[d].port != FAB_NONE)
            guids[d] = inv->nodes[inv->ports[j->devs[d].port].node].guid;
    rc = rc ?: fab_inventory_finish(inv, j->err);
    if (rc == PMIXFAB_OK)
        join_index_ports(j, guids);
    return rc;
}
