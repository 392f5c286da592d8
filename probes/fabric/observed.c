/* observed.c - raw management attributes, chassis, and an inventory of the nodes' answers. */
#include <stdlib.h>
#include <string.h>

#include "probes/core/facts.h"
#include "probes/fabric/observed.h"
#include "topo/base/text.h"

/* ---- the fields of NodeInfo and PortInfo that an inventory needs ---- */

void node_info_decode(const uint8_t info[ATTRIBUTE_SIZE], struct node_info *out)
{
    *out = (struct node_info){
        .type = info[2],
        .num_ports = info[3],
        .system_guid = probe_be(info + 4, 8),
        .node_guid = probe_be(info + 12, 8),
        .port_guid = probe_be(info + 20, 8),
        .device_id = (uint16_t)probe_be(info + 30, 2),
        .local_port = info[36],
        .vendor_id = (uint32_t)probe_be(info + 37, 3),
    };
}

/* Decode the speed from its three places in a PortInfo, the newest first. */
static enum fab_speed decode_speed(const uint8_t *info, const uint8_t *capabilities, bool fdr10)
{
    const uint32_t has_ext_speeds = 1u << 14, has_mask2 = 1u << 15;
    const uint32_t has_ext_speeds2 = 1u << 11;
    if (capabilities == NULL)
        return FAB_SPEED_UNKNOWN;
    uint32_t mask = (uint32_t)probe_be(capabilities + 20, 4);
    uint32_t mask2 = mask & has_mask2 ? (uint32_t)probe_be(capabilities + 60, 2) : 0;
    unsigned ext2 = mask2 & has_ext_speeds2 ? info[56] >> 5 & 3 : 0;
    unsigned ext = info[62] >> 4;
    if (mask & has_ext_speeds && ext2 != 0)
        return ext2 == 1 ? FAB_XDR : FAB_SPEED_UNKNOWN;
    if (mask & has_ext_speeds && ext != 0)
        return ext == 1   ? FAB_FDR
               : ext == 2 ? FAB_EDR
               : ext == 4 ? FAB_HDR
               : ext == 8 ? FAB_NDR
                          : FAB_SPEED_UNKNOWN;
    switch (info[35] >> 4) {
    case 1:
        return FAB_SDR;
    case 2:
        return FAB_DDR;
    case 4:
        return fdr10 ? FAB_FDR10 : FAB_QDR;
    default:
        return FAB_SPEED_UNKNOWN;
    }
}

enum { PHYSICAL_DISABLED = 3, PHYSICAL_LINK_UP = 5 };

void port_info_decode(const uint8_t info[ATTRIBUTE_SIZE], const uint8_t *capabilities, bool fdr10,
                      struct port_info *out)
{
    const unsigned state = info[32] & 15, physical = info[33] >> 4;
    *out = (struct port_info){
        .prefix = probe_be(info + 8, 8),
        .lid = (uint16_t)probe_be(info + 16, 2),
        .lmc = info[34] & 7,
        .state = (uint8_t)(physical == PHYSICAL_DISABLED ? FAB_PORT_DISABLED
                           : state <= FAB_PORT_ACTIVE    ? state
                                                         : FAB_PORT_UNKNOWN),
        .width = probe_lanes(info[31]),
        .speed = (uint8_t)decode_speed(info, capabilities, fdr10),
        .link_up = physical == PHYSICAL_LINK_UP,
    };
}

/* Chips of switches. A node of kind HCA with one of these is the aggregation node inside the switch. */
static bool is_switch_chip(uint32_t vendor_id, uint32_t device_id)
{
    static const uint16_t chips[] = {0xcb20, 0xcf08, 0xcf09, 0xd2f0, 0xd2f2, 0xd2f4};
    if (vendor_id != 0x2c9)
        return false;
    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++)
        if (chips[i] == device_id)
            return true;
    return false;
}

enum fab_node_kind node_kind(unsigned type, uint32_t vendor_id, uint32_t device_id, const char *desc,
                             size_t len)
{
    static const char aggregation[] = "Aggregation Node";
    switch (type) {
    case NODE_TYPE_SWITCH:
        return FAB_SWITCH;
    case NODE_TYPE_ROUTER:
        return FAB_ROUTER;
    case NODE_TYPE_CA:
        if (is_switch_chip(vendor_id, device_id) ||
            memmem(desc, len, aggregation, sizeof(aggregation) - 1) != NULL)
            return FAB_AGGREGATOR;
        return FAB_HCA;
    default:
        return 0;
    }
}

uint32_t node_desc(struct fab_inventory *inv, const char *desc, size_t len)
{
    const char *trimmed = desc == NULL ? "" : fab_text_trim(desc, &len);
    return fab_inventory_string(inv, trimmed, len);
}

/* ---- chassis and slots of switches ---- */

struct member {
    uint64_t system;
    uint64_t guid;
    uint32_t node;
};

static int same_system(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->system < y->system ? -1 : x->system > y->system;
}

/* Compare first members of their chassis by GUID. */
static int chassis_compare_guid(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static int by_system(const void *a, const void *b)
{
    int order = same_system(a, b);
    return order != 0 ? order : chassis_compare_guid(a, b);
}

/* Cisco's and InfiniCon's system image GUIDs carry the slot in their fourth byte. */
static uint64_t chassis_guid(const struct fab_node *node)
{
    if (node->vendor_id == 0x5ad || node->vendor_id == 0x66a)
        return node->system_guid & 0xffffffff00ffffffull;
    return node->system_guid;
}

/* Read a number from 1 to max and move *p past it; 0: none. */
static uint8_t small_number(const char **p, unsigned max)
{
    unsigned v = 0;
    while (**p >= '0' && **p <= '9' && v <= max)
        v = v * 10 + (unsigned)(*(*p)++ - '0');
    return (uint8_t)(v <= max ? v : 0);
}

/*
 * Read "MF0;name:type/L01/U1" or ".../S03:board/U1": line card 1, spine 3. A switch that is not part of a
 * larger one has no slot: "MF0;name:type/U1".
 */
static void read_slot(struct fab_node *node, const char *desc)
{
    if (strncmp(desc, "MF0;", 4) != 0)
        return;
    const char *p = strchr(desc, ':');
    p = p != NULL ? strchr(p, '/') : NULL;
    if (p == NULL || (p[1] != 'L' && p[1] != 'S'))
        return;
    uint8_t type = p[1] == 'L' ? 1 : 2;
    p += 2;
    uint8_t slot = small_number(&p, 99);
    const char *chip = strchr(p, '/');
    if (slot == 0 || (*p != ':' && *p != '/') || chip == NULL || chip[1] != 'U')
        return;
    chip += 2;
    node->slot_type = type;
    node->slot = slot;
    node->chip = small_number(&chip, 99);
}

/* Of m sorted members move the first of each chassis of two or more to the front; return their number. */
static uint32_t chassis_leaders(struct member *m, uint32_t n)
{
    uint32_t n_chassis = 0;
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && m[end].system == m[i].system;)
            end++;
        if (end - i >= 2)
            m[n_chassis++] = m[i];
    }
    return n_chassis;
}

static uint16_t chassis_number_of(const struct member *by_system_sorted, uint32_t n, uint64_t system)
{
    const struct member key = {.system = system};
    const struct member *found = bsearch(&key, by_system_sorted, n, sizeof(key), same_system);
    return (uint16_t)(found != NULL ? found->node : 0);
}

int chassis_number(struct fab_inventory *inv, struct fab_err *err)
{
    uint32_t n = 0;
    struct member *m = malloc((inv->n_nodes + 1) * sizeof(*m));
    if (m == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for the chassis of %u nodes", inv->n_nodes);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        struct fab_node *node = &inv->nodes[i];
        if (node->kind != FAB_SWITCH)
            continue;
        read_slot(node, fab_str(inv, node->desc));
        if (node->system_guid != 0)
            m[n++] = (struct member){chassis_guid(node), node->guid, i};
    }
    qsort(m, n, sizeof(*m), by_system);
    n = chassis_leaders(m, n);
    qsort(m, n, sizeof(*m), chassis_compare_guid);
    for (uint32_t i = 0; i < n; i++)
        m[i].node = i < UINT16_MAX ? i + 1 : 0;
    qsort(m, n, sizeof(*m), by_system);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        struct fab_node *node = &inv->nodes[i];
        if (node->kind == FAB_SWITCH && node->system_guid != 0)
            node->chassis = chassis_number_of(m, n, chassis_guid(node));
    }
    free(m);
    return PMIXFAB_OK;
}

/* ---- an inventory of the nodes' answers ---- */

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

/* Return whether one of the node's ports is cabled to another node. */
static bool observed_is_cabled(const struct observed *seen, const struct observed_node *node)
{
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports; i++)
        if (seen->ports[i].peer != FAB_NONE && !self_loop(seen, &seen->ports[i]))
            return true;
    return false;
}

/* Add the ports of a node that an inventory lists; map[] gets their indices. */
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
        if (!looped && (p->peer != FAB_NONE || info.link_up)) { /* else there is no link with a width */
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
 * Add ports of a switch without a PortInfo as unknown, because the other end is not known. If a discovery
 * ends early (its packets are lost from some moment on), it leaves no other trace.
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
        rc = observed_add_node(inv, &seen->nodes[i], &node, err)
                 ?: add_ports(inv, seen, i, node, map, &loops, err)
                     ?: add_ports_without_link(inv, seen, i, node, err);
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
    return rc ?: chassis_number(inv, err) ?: fab_inventory_finish(inv, err);
}
