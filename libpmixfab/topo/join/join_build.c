/* join_build.c - the joined inventory: the sweep's, with what else the reports know. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/join/join_state.h"

static int add_subnet(struct join *j, uint64_t prefix, uint32_t *subnet)
{
    struct fab_inventory *inv = &j->out->inv;
    if (*subnet != FAB_NONE)
        return PMIXFAB_OK;
    if (inv->n_subnets >= FAB_MAX_SUBNETS)
        return fab_fail(j->err, PMIXFAB_ERR_RANGE,
                        "more than %d subnets: the sweep has %" PRIu32
                        ", the rest are planes of network interfaces; configure fewer of those",
                        FAB_MAX_SUBNETS, j->swept->n_subnets);
    *subnet = inv->n_subnets;
    inv->subnets[inv->n_subnets++].prefix = prefix;
    return PMIXFAB_OK;
}

/* Does this device need a place that the sweep has not? */
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

/* What a device says of its own port. */
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

/* The host of a swept node gives way to the report's where nobody named it. */
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
    uint32_t *hosts = join_temp(j, j->n_reports, sizeof(*hosts)); /* strings, 0: not made yet */
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
    return rc != PMIXFAB_OK ? rc : fab_inventory_add_node(&j->out->inv, &node, &sw->index);
}

/* A port of a switch, cabled to `port`; as fast as that. */
static int cable_to(struct join *j, const struct join_switch *sw, unsigned num, uint32_t port)
{
    struct fab_inventory *inv = &j->out->inv;
    struct fab_port made = inv->ports[port];
    uint32_t index = FAB_NONE;
    made.guid = 0;
    made.lid = 0;
    made.node = sw->index;
    made.num = (uint8_t)num;
    int rc = fab_inventory_add_port(inv, &made, &index);
    return rc != PMIXFAB_OK ? rc : fab_inventory_link(inv, index, port);
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

/* Where the ports stand now that they are in order. */
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
    if (rc == PMIXFAB_OK)
        rc = add_subnets(j);
    if (rc == PMIXFAB_OK)
        rc = add_devices(j);
    if (rc == PMIXFAB_OK)
        rc = add_switches(j);
    for (uint32_t d = 0; d < j->n_devs && rc == PMIXFAB_OK; d++)
        if (j->devs[d].port != FAB_NONE)
            guids[d] = inv->nodes[inv->ports[j->devs[d].port].node].guid;
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_finish(inv, j->err);
    if (rc == PMIXFAB_OK)
        join_index_ports(j, guids);
    return rc;
}
