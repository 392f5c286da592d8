/* dump.c - an inventory as lines. */
#include "dump.h"

#include <inttypes.h>

static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p != 0; p++) {
        if (*p < ' ' || *p == 0x7f)
            fprintf(out, "\\x%02x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

static void put_node(const struct fab_inventory *inv, const struct fab_node *node, FILE *out)
{
    static const char *const kinds[] = {"?", "switch", "hca", "router", "aggregator"};
    fprintf(out, "%s 0x%016" PRIx64 " ", kinds[node->kind <= FAB_AGGREGATOR ? node->kind : 0], node->guid);
    put_string(out, fab_str(inv, node->desc));
    fprintf(out, " host=");
    put_string(out, fab_str(inv, node->host));
    fprintf(out, " name=");
    put_string(out, fab_str(inv, node->name));
    fprintf(out, "%s system=0x%" PRIx64 " vendor=0x%x device=0x%x ports=%u", node->unnamed ? " unnamed" : "",
            node->system_guid, node->vendor_id, node->device_id, node->num_ports);
    if (node->kind == FAB_SWITCH)
        fprintf(out, " lid=%u lmc=%u %s", node->lid, node->lmc, node->enhanced ? "enhanced" : "base");
    if (node->chassis != 0)
        fprintf(out, " chassis=%u", node->chassis);
    if (node->slot_type != 0)
        fprintf(out, " slot=%u/%u/%u", node->slot_type, node->slot, node->chip);
    fputc('\n', out);
}

static void put_port(const struct fab_inventory *inv, const struct fab_port *port, FILE *out)
{
    static const char *const states[] = {"unknown", "down", "init", "armed", "active"};
    fprintf(out, "  [%u]", port->num);
    if (port->guid != 0)
        fprintf(out, " guid=0x%" PRIx64 " lid=%u lmc=%u", port->guid, port->lid, port->lmc);
    if (port->subnet != 0)
        fprintf(out, " subnet=%u", port->subnet);
    fprintf(out, " %s %ux%s -> ", states[port->state <= FAB_PORT_ACTIVE ? port->state : 0], port->width,
            fab_speed_name((enum fab_speed)port->speed));
    if (port->peer == FAB_NONE)
        fprintf(out, "nowhere\n");
    else
        fprintf(out, "0x%016" PRIx64 "[%u]\n", inv->nodes[inv->ports[port->peer].node].guid,
                inv->ports[port->peer].num);
}

void fabric_dump(const struct fab_inventory *inv, FILE *out)
{
    for (uint32_t i = 0; i < inv->n_subnets; i++)
        fprintf(out, "subnet 0x%016" PRIx64 "\n", inv->subnets[i].prefix);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        put_node(inv, node, out);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            put_port(inv, &inv->ports[p], out);
    }
    fprintf(out, "dangling %u\n", inv->n_dangling);
}
