/* inventory_text.h - nodes, ports and cables in an operator's words. */
#ifndef FAB_TOPO_MODEL_INVENTORY_TEXT_H
#define FAB_TOPO_MODEL_INVENTORY_TEXT_H

#include "topo/model/inventory.h"

/* Texts that fit any of them: two names of 255 bytes each and a GUID at both ends of a cable. */
#define FAB_NODE_TEXT 540
#define FAB_PORT_TEXT (FAB_NODE_TEXT + 8)
#define FAB_LINK_TEXT (2 * FAB_PORT_TEXT + 4)

/* "node001 HCA-1", "leaf1"; its GUID where it has no name. */
void fab_name_text(enum fab_node_kind kind, uint64_t guid, const char *host, const char *name,
                   char text[FAB_NODE_TEXT]);
/* Append " (0x...)". */
void fab_name_add_guid(uint64_t guid, char text[FAB_NODE_TEXT]);
/* The same, with the node's GUID behind a name that several nodes have. */
void fab_node_text(const struct fab_inventory *inv, const struct fab_node *node, char text[FAB_NODE_TEXT]);
/* The same without a GUID behind it: of nodes that are told by their name alone, or with their GUIDs. */
void fab_plain_text(const struct fab_inventory *inv, const struct fab_node *node, char text[FAB_NODE_TEXT]);
/* "leaf1[8]" */
void fab_port_text(const struct fab_inventory *inv, const struct fab_port *port, char text[FAB_PORT_TEXT]);
/* "leaf1[8] - node001 HCA-1[1]", the switch first. */
void fab_link_text(const struct fab_inventory *inv, const struct fab_port *port, char text[FAB_LINK_TEXT]);
/* "4xHDR", "?" */
void fab_rate_text(const struct fab_port *port, char text[32]);
const char *fab_state_text(unsigned state);

#endif
