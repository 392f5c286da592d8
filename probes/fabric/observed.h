/*
 * observed.h - from raw management attributes to an inventory. The room fabric has the common parts of the
 * InfiniBand probes.
 *
 * A live sweep and a libibnetdisc cache contain the same data: NodeInfo and PortInfo as answered by the
 * devices (InfiniBand architecture, volume 1, 14.2.5). Both are stored as below and converted to an inventory
 * by one function. So both give the same result, and the same result as the text of ibnetdiscover for the
 * subnet:
 * - A switch has the ports that are cabled, up without a peer, or did not answer. It also has the disabled
 *   ports, which are not in the text.
 * - An HCA has the same ports, but all seen ports if none is cabled.
 * - Descriptions are as ibnetdiscover prints them. Bytes that are not printable ASCII become blanks, and
 *   blanks at the ends are removed.
 * - Cables from a node to itself are dropped.
 */
#ifndef FAB_PROBES_FABRIC_OBSERVED_H
#define FAB_PROBES_FABRIC_OBSERVED_H

#include "probes/core/probe.h"

#define ATTRIBUTE_SIZE 64 /* bytes of NodeInfo, PortInfo, NodeDescription in a MAD */

enum node_type { NODE_TYPE_CA = 1, NODE_TYPE_SWITCH = 2, NODE_TYPE_ROUTER = 3 };

/* The decoded NodeInfo. */
struct node_info {
    uint64_t system_guid, node_guid, port_guid;
    uint32_t vendor_id;
    uint16_t device_id;
    uint8_t type; /* enum node_type, or another number from the node */
    uint8_t num_ports;
    uint8_t local_port;
};
void node_info_decode(const uint8_t info[ATTRIBUTE_SIZE], struct node_info *out);

/* The decoded PortInfo. */
struct port_info {
    uint64_t prefix;
    uint16_t lid;
    uint8_t lmc;
    uint8_t state; /* enum fab_port_state */
    uint8_t width; /* lanes, 0 unknown */
    uint8_t speed; /* enum fab_speed */
    bool link_up;  /* physical state LinkUp */
};
/*
 * Decode a PortInfo. `capabilities` is the PortInfo whose capability masks count. For a switch, it is the
 * PortInfo of port 0. If it is NULL, the speed is unknown.
 */
void port_info_decode(const uint8_t info[ATTRIBUTE_SIZE], const uint8_t *capabilities, bool fdr10,
                      struct port_info *out);

/*
 * Return the kind of a node from NodeInfo and the description: switch, HCA, router or aggregation node. 0:
 * another kind.
 */
enum fab_node_kind node_kind(unsigned type, uint32_t vendor_id, uint32_t device_id, const char *desc,
                             size_t len);

/*
 * Add a node's description to the inventory, without the blanks and control characters at its ends: `echo
 * NAME` leaves a line end. FAB_NONE without memory.
 */
uint32_t node_desc(struct fab_inventory *inv, const char *desc, size_t len);

/*
 * Number the chassis and read slots. A chassis is two or more switches with one system image GUID. The
 * chassis are numbered from 1 by their lowest node GUID. In libibnetdisc, the numbers change with the order
 * of discovery. If a switch is a part of a larger one, its description has the slot ("MF0;name:type/L01/U1").
 */
int chassis_number(struct fab_inventory *inv, struct fab_err *err);

/* Raw observations. Pointers are borrowed. */
struct observed_node {
    const uint8_t *info;
    const char *desc; /* ATTRIBUTE_SIZE bytes, or up to the first 0 */
    uint16_t lid;     /* switch: of port 0 */
    uint8_t lmc;
    uint8_t enhanced;
    uint32_t first_port, n_ports; /* its ports, neighbours in the array of ports; without port 0 */
};
struct observed_port {
    const uint8_t *info;
    const uint8_t *capabilities;
    uint64_t guid;
    uint32_t node;
    uint32_t peer; /* FAB_NONE: none */
    uint8_t num;
    bool fdr10;
};
struct observed {
    struct observed_node *nodes;
    struct observed_port *ports;
    uint32_t n_nodes, n_ports;
    uint64_t prefix; /* 0: the default */
};

/* Fill inv (initialised, empty) and finish it. Peers must refer to each other. */
int observed_inventory(const struct observed *seen, const struct probe_sink *sink, struct fab_inventory *inv,
                       struct fab_err *err);

/* Add one node to an inventory, without its ports. */
int observed_add_node(struct fab_inventory *inv, const struct observed_node *from, uint32_t *index,
                      struct fab_err *err);

/* Free the two arrays. */
void observed_free(struct observed *seen);

#endif
