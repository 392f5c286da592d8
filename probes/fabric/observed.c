/* observed.c - an inventory from what the nodes answered. */
#include "probes/fabric/observed.h"

#include <stdlib.h>
#include <string.h>

void observed_free(struct observed *seen)
{
    free(seen->nodes);
    free(seen->ports);
    *seen = (struct observed){0};
}

static bool self_loop(const struct observed *seen, const struct observed_port *port)
{
    return port->peer != FAB_NONE && seen->ports[port->peer].node == port->node;
}

int observed_add_node(struct fab_inventory *inv, const struct observed_node *from, uint32_t *index,
                      struct fab_err *err)
{
    struct node_info info;
    char desc[ATTRIBUTE_SIZE];
    size_t len = strnlen(from->desc, ATTRIBUTE_SIZE);
    node_info_decode(from->info, &info);
    for (size_t i = 0; i < len; i++)
        desc[i] = (char)(from->desc[i] >= ' ' && from->desc[i] <= '~' ? from->desc[i] : ' ');
    struct fab_node node = {
        .guid = info.node_guid,
        .system_guid = info.system_guid,
        .vendor_id = info.vendor_id,
        .device_id = info.device_id,
        .desc = node_desc(inv, desc, len),
        .kind = (uint8_t)node_kind(info.type, info.vendor_id, info.device_id, desc, len),
        .num_ports = info.num_ports,
    };
    if (node.desc == FAB_NONE)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for the description of node 0x%016jx",
                        (uintmax_t)node.guid);
    if (node.kind == FAB_SWITCH) {
        node.lid = from->lid;
        node.lmc = from->lmc;
        node.enhanced = from->enhanced != 0;
    }
    int rc = fab_inventory_add_node(inv, &node, index);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "node 0x%016jx does not fit in", (uintmax_t)node.guid);
}

/* Is one of the node's ports cabled to another node? */
static bool observed_is_cabled(const struct observed *seen, const struct observed_node *node)
{
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports; i++)
        if (seen->ports[i].peer != FAB_NONE && !self_loop(seen, &seen->ports[i]))
            return true;
    return false;
}

/* Add those ports of a node that an inventory lists; map[] gets their index. */
static int add_ports(struct fab_inventory *inv, const struct observed *seen, uint32_t from, uint32_t node,
                     uint32_t *map, uint32_t *loops, struct fab_err *err)
{
    const struct observed_node *owner = &seen->nodes[from];
    const bool is_switch = inv->nodes[node].kind == FAB_SWITCH;
    const bool list_all = inv->nodes[node].kind == FAB_HCA && !observed_is_cabled(seen, owner);
    for (uint32_t i = owner->first_port; i < owner->first_port + owner->n_ports; i++) {
        const struct observed_port *p = &seen->ports[i];
        struct port_info info;
        port_info_decode(p->info, p->capabilities, p->fdr10, &info);
        const bool looped = self_loop(seen, p);
        *loops += looped;
        const bool disabled = is_switch && info.state == FAB_PORT_DISABLED;
        if (p->peer == FAB_NONE && !info.link_up && !list_all && !disabled)
            continue;
        struct fab_port port = {
            .guid = is_switch ? 0 : p->guid,
            .node = node,
            .peer = FAB_NONE,
            .num = p->num,
            .lid = is_switch ? 0 : info.lid,
            .lmc = is_switch ? 0 : info.lmc,
            .state = looped ? FAB_PORT_LOOPED : info.state,
        };
        if (!looped &&
            (p->peer != FAB_NONE || info.link_up)) { /* else there is no link whose width it could be */
            port.width = info.width;
            port.speed = info.speed;
        }
        int rc = fab_inventory_add_port(inv, &port, looped ? NULL : &map[i]);
        if (rc != PMIXFAB_OK)
            return fab_fail(err, rc, "port %u of node 0x%016jx does not fit in", p->num,
                            (uintmax_t)inv->nodes[node].guid);
    }
    return PMIXFAB_OK;
}

/*
 * Ports of a switch that gave no PortInfo: nobody knows where they lead. They are listed as unknown, because
 * a discovery that ends early (its packets are lost from some moment on) leaves no other trace.
 */
static int add_ports_without_link(struct fab_inventory *inv, const struct observed *seen, uint32_t from,
                                  uint32_t node, struct fab_err *err)
{
    const struct observed_node *owner = &seen->nodes[from];
    bool answered[256] = {false};
    if (inv->nodes[node].kind != FAB_SWITCH)
        return PMIXFAB_OK;
    for (uint32_t i = owner->first_port; i < owner->first_port + owner->n_ports; i++)
        answered[seen->ports[i].num] = true;
    for (unsigned num = 1; num <= inv->nodes[node].num_ports; num++) {
        const struct fab_port port = {.node = node, .peer = FAB_NONE, .num = (uint8_t)num};
        int rc = answered[num] ? PMIXFAB_OK : fab_inventory_add_port(inv, &port, NULL);
        if (rc != PMIXFAB_OK)
            return fab_fail(err, rc, "port %u of node 0x%016jx does not fit in", num,
                            (uintmax_t)inv->nodes[node].guid);
    }
    return PMIXFAB_OK;
}

int observed_inventory(const struct observed *seen, const struct probe_sink *sink, struct fab_inventory *inv,
                       struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    uint32_t loops = 0;
    uint32_t *map = malloc((seen->n_ports + 1) * sizeof(*map));
    if (map == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for %u ports", seen->n_ports);
    memset(map, 0xff, (seen->n_ports + 1) * sizeof(*map));
    inv->n_subnets = 1;
    inv->subnets[0].prefix = seen->prefix != 0 ? seen->prefix : FAB_DEFAULT_PREFIX;

    for (uint32_t i = 0; i < seen->n_nodes && rc == PMIXFAB_OK; i++) {
        struct node_info info;
        uint32_t node = FAB_NONE;
        node_info_decode(seen->nodes[i].info, &info);
        if (info.type < NODE_TYPE_CA || info.type > NODE_TYPE_ROUTER) {
            probe_note(sink, PMIXFAB_LOG_WARNING, "node 0x%016jx has the unknown type %u: left out",
                       (uintmax_t)info.node_guid, info.type);
            continue;
        }
        rc = observed_add_node(inv, &seen->nodes[i], &node, err);
        if (rc == PMIXFAB_OK)
            rc = add_ports(inv, seen, i, node, map, &loops, err);
        if (rc == PMIXFAB_OK)
            rc = add_ports_without_link(inv, seen, i, node, err);
    }
    for (uint32_t i = 0; i < seen->n_ports && rc == PMIXFAB_OK; i++) {
        uint32_t peer = seen->ports[i].peer;
        if (peer != FAB_NONE && peer > i && map[i] != FAB_NONE && map[peer] != FAB_NONE)
            rc = fab_inventory_link(inv, map[i], map[peer]);
    }
    free(map);
    if (loops > 0)
        probe_note(sink, PMIXFAB_LOG_INFO, "%u port%s cabled to %s own node: left out", loops,
                   loops == 1 ? " is" : "s are", loops == 1 ? "its" : "their");
    if (rc == PMIXFAB_OK)
        rc = chassis_number(inv, err);
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_finish(inv, err);
    return rc;
}
