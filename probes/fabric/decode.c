/* decode.c - the fields of NodeInfo and PortInfo that an inventory is made of. */
#include <string.h>

#include "probes/core/item.h"
#include "probes/fabric/observed.h"
#include "topo/base/text.h"

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

/* The three places where a PortInfo tells its speed, the newest first. */
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

/* Chips of switches. What answers as an HCA with one of these is the aggregation node inside the switch. */
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
