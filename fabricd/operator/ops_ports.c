/* ops_ports.c - what a snapshot has no place for, since it is nothing to a path: LIDs, and widths of links.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fabricd/operator/ops.h"
#include "fabricd/publish/publish.h"
#include "topo/inventory/inventory_text.h"

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

void control_op_ports(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    const struct fab_inventory *inv = publisher_inventory(parts->publisher);
    json_t *nodes = json_object();
    char guid[24];
    (void)request;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        snprintf(guid, sizeof(guid), "0x%016" PRIx64, inv->nodes[i].guid);
        json_object_set_new(nodes, guid, node_ports_json(inv, &inv->nodes[i]));
    }
    connection_send(connection,
                    json_pack("{s:b, s:I, s:o}", "ok", 1, "generation",
                              (json_int_t)publisher_generation(parts->publisher), "nodes", nodes));
}
