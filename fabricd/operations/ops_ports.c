/* ops_ports.c - what a snapshot has no place for, since it is nothing to a path: LIDs, and widths of links.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/engine/publish.h"
#include "fabricd/operations/ops.h"
#include "topo/base/search.h"
#include "topo/model/inventory_text.h"

/* [number, LID, "4xHDR"] */
static json_t *port_json(const struct fab_port *port)
{
    char rate[32];
    fab_rate_text(port, rate);
    return json_pack("[i, i, s]", port->num, port->lid, rate);
}

static json_t *node_ports_json(const struct fab_inventory *inv, const struct fab_node *node)
{
    json_t *ports = json_array();
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
        if (inv->ports[p].peer != FAB_NONE || inv->ports[p].lid != 0)
            json_array_append_new(ports, port_json(&inv->ports[p]));
    return json_pack("{s:i, s:o}", "lid", node->lid, "ports", ports);
}

#define PORTS_PAGE (5 * CONTROL_PAGE) /* of some more ports */

void control_op_ports(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    const struct fab_inventory *inv = publisher_inventory(parts->publisher);
    const char *next;
    char guid[24];
    if (!connection_next(connection, request, &next))
        return;
    const uint64_t last = next == NULL ? 0 : strtoull(next, NULL, 16);
    uint32_t i = next == NULL ? 0 : FAB_LOWER_BOUND(0, inv->n_nodes, at, inv->nodes[at].guid <= last);
    json_t *nodes = json_object();
    for (uint32_t n = 0; i < inv->n_nodes && n < PORTS_PAGE; i++) {
        snprintf(guid, sizeof(guid), "0x%016" PRIx64, inv->nodes[i].guid);
        json_object_set_new(nodes, guid, node_ports_json(inv, &inv->nodes[i]));
        n += 1 + inv->nodes[i].n_ports;
    }
    connection_send(connection, json_pack("{s:b, s:I, s:o, s:s*}", "ok", 1, "generation",
                                          (json_int_t)publisher_generation(parts->publisher), "nodes", nodes,
                                          "next", i < inv->n_nodes ? guid : NULL));
}
