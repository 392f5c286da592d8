/* inventory_text.h - texts for nodes, ports and cables. */
#ifndef FAB_TOPO_MODEL_INVENTORY_TEXT_H
#define FAB_TOPO_MODEL_INVENTORY_TEXT_H

#include "topo/model/inventory.h"

/* Sizes that fit any text: two names of 255 bytes each and a GUID at both ends of a cable. */
#define FAB_NODE_TEXT 540
#define FAB_PORT_TEXT (FAB_NODE_TEXT + 8)
#define FAB_LINK_TEXT (2 * FAB_PORT_TEXT + 4)

/* Write "node001 HCA-1" or "leaf1"; the GUID for a node without name. */
void fab_name_text(enum fab_node_kind kind, uint64_t guid, const char *host, const char *name,
                   char text[FAB_NODE_TEXT]);
/* Append " (0x...)". */
void fab_name_add_guid(uint64_t guid, char text[FAB_NODE_TEXT]);
/* As above, with the node's GUID after a name that several nodes have. */
void fab_node_text(const struct fab_inventory *inv, const struct fab_node *node, char text[FAB_NODE_TEXT]);
/* As above without a GUID: for nodes that are identified by name only, or listed with their GUIDs. */
void fab_plain_text(const struct fab_inventory *inv, const struct fab_node *node, char text[FAB_NODE_TEXT]);
/* "leaf1[8]" */
void fab_port_text(const struct fab_inventory *inv, const struct fab_port *port, char text[FAB_PORT_TEXT]);
/* "leaf1[8] - node001 HCA-1[1]", the switch first. */
void fab_link_text(const struct fab_inventory *inv, const struct fab_port *port, char text[FAB_LINK_TEXT]);
/* "4xHDR", "?" */
void fab_rate_text(const struct fab_port *port, char text[32]);
const char *fab_state_text(unsigned state);

#endif
