#include <inttypes.h>
#include <string.h>

#include "test/fabrics/build.h"

const char *fabric_node_name(const struct fab_inventory *inv, uint32_t node, char *buf, size_t size)
{
    const struct fab_node *n = &inv->nodes[node];
    const char *name = fab_str(inv, n->name);
    if (n->kind != FAB_HCA)
        snprintf(buf, size, "%s", name);
    else if (strcmp(name, "HCA-1") == 0)
        snprintf(buf, size, "%s", fab_str(inv, n->host));
    else
        snprintf(buf, size, "%s-%s", fab_str(inv, n->host), strncmp(name, "HCA-", 4) == 0 ? name + 4 : name);
    return buf;
}

uint32_t fabric_find(const struct fab_inventory *inv, const char *name)
{
    char buf[256];
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (strcmp(fabric_node_name(inv, i, buf, sizeof(buf)), name) == 0)
            return i;
    return FAB_NONE;
}

/* ibsim takes the first node as its default one: switches, which have most GUIDs, go first. */
static const uint8_t netfile_kinds[] = {FAB_SWITCH, FAB_HCA};

static void netfile_node(const struct fab_inventory *inv, uint32_t index, FILE *out)
{
    const struct fab_node *node = &inv->nodes[index];
    bool is_switch = node->kind == FAB_SWITCH;
    char name[256];
    fprintf(out, "vendid=0x%" PRIx32 "\ndevid=0x%" PRIx32 "\nsysimgguid=0x%" PRIx64 "\n", node->vendor_id,
            node->device_id, node->system_guid);
    fprintf(out, "%sguid=0x%" PRIx64 "\n%s %u \"%s\"  # \"%s\"%s\n", is_switch ? "switch" : "ca", node->guid,
            is_switch ? "Switch" : "Ca", node->num_ports, fabric_node_name(inv, index, name, sizeof(name)),
            fab_str(inv, node->desc), is_switch ? " enhanced port 0 lid 0 lmc 0" : "");
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE)
            continue;
        const struct fab_port *peer = &inv->ports[port->peer];
        fprintf(out, "[%u] \"%s\"[%u]  # %s\"%s\" lid 0 %ux%s\n", port->num,
                fabric_node_name(inv, peer->node, name, sizeof(name)), peer->num,
                is_switch ? "" : "lid 0 lmc 0 ", fab_str(inv, inv->nodes[peer->node].desc), port->width,
                fab_speed_name(port->speed));
    }
    fputc('\n', out);
}

int fabric_write_netfile(const struct fab_inventory *inv, FILE *out)
{
    for (size_t k = 0; k < sizeof(netfile_kinds); k++)
        for (uint32_t i = 0; i < inv->n_nodes; i++)
            if (inv->nodes[i].kind == netfile_kinds[k])
                netfile_node(inv, i, out);
    return fflush(out) == 0 && !ferror(out) ? PMIXFAB_OK : PMIXFAB_ERR_IO;
}

static char letter(const struct fab_node *node)
{
    if (node->kind == FAB_SWITCH)
        return 'S';
    return node->kind == FAB_ROUTER ? 'R' : 'H';
}

static unsigned lid_of(const struct fab_inventory *inv, const struct fab_port *port)
{
    const struct fab_node *node = &inv->nodes[port->node];
    return node->kind == FAB_SWITCH ? node->lid : port->lid;
}

static void capture_port(const struct fab_inventory *inv, const struct fab_port *port, FILE *out)
{
    const struct fab_port *peer = &inv->ports[port->peer];
    const struct fab_node *node = &inv->nodes[port->node], *other = &inv->nodes[peer->node];
    fprintf(out, "[%u]", port->num);
    if (node->kind != FAB_SWITCH)
        fprintf(out, "(%" PRIx64 ") ", port->guid);
    fprintf(out, "\t\"%c-%016" PRIx64 "\"[%u]", letter(other), other->guid, peer->num);
    if (other->kind != FAB_SWITCH)
        fprintf(out, "(%" PRIx64 ") ", peer->guid);
    fprintf(out, "\t\t# ");
    if (node->kind != FAB_SWITCH)
        fprintf(out, "lid %u lmc %u ", port->lid, port->lmc);
    fprintf(out, "\"%s\" lid %u %ux%s\n", fab_str(inv, other->desc), lid_of(inv, peer), port->width,
            fab_speed_name(port->speed));
}

static void capture_node(const struct fab_inventory *inv, const struct fab_node *node, FILE *out)
{
    bool is_switch = node->kind == FAB_SWITCH;
    fprintf(out, "\nvendid=0x%" PRIx32 "\ndevid=0x%" PRIx32 "\nsysimgguid=0x%" PRIx64 "\n", node->vendor_id,
            node->device_id, node->system_guid);
    if (is_switch)
        fprintf(out, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\n", node->guid, node->guid);
    else
        fprintf(out, "%sguid=0x%" PRIx64 "\n", node->kind == FAB_ROUTER ? "rt" : "ca", node->guid);
    fprintf(out, "%s\t%u \"%c-%016" PRIx64 "\"\t\t# \"%s\"",
            is_switch                  ? "Switch"
            : node->kind == FAB_ROUTER ? "Rt"
                                       : "Ca",
            node->num_ports, letter(node), node->guid, fab_str(inv, node->desc));
    if (is_switch)
        fprintf(out, " %s port 0 lid %u lmc %u", node->enhanced ? "enhanced" : "base", node->lid, node->lmc);
    fputc('\n', out);
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
        if (inv->ports[p].peer != FAB_NONE)
            capture_port(inv, &inv->ports[p], out);
}

int fabric_write_capture(const struct fab_inventory *inv, FILE *out)
{
    static const uint8_t kinds[] = {FAB_SWITCH, FAB_HCA, FAB_AGGREGATOR, FAB_ROUTER};
    fprintf(out, "#\n# Topology file: generated on Thu Jan  1 00:00:00 1970\n#\n");
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && inv->nodes[i].n_ports > 0) {
            fprintf(out, "# Initiated from node %016" PRIx64 " port %016" PRIx64 "\n", inv->nodes[i].guid,
                    inv->ports[inv->nodes[i].first_port].guid);
            break;
        }
    for (size_t k = 0; k < sizeof(kinds); k++)
        for (uint32_t i = 0; i < inv->n_nodes; i++)
            if (inv->nodes[i].kind == kinds[k])
                capture_node(inv, &inv->nodes[i], out);
    return fflush(out) == 0 && !ferror(out) ? PMIXFAB_OK : PMIXFAB_ERR_IO;
}

void fabric_ibsim_limits(const struct fab_inventory *inv, char *buf, size_t size)
{
    unsigned switches = 0, ports = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        bool is_switch = inv->nodes[i].kind == FAB_SWITCH;
        switches += is_switch;
        ports += inv->nodes[i].num_ports + (unsigned)is_switch;
    }
    unsigned lids = inv->n_nodes + inv->n_ports / 8 + 1024;
    snprintf(buf, size, "-N %u -S %u -P %u -L %u", inv->n_nodes + 64, switches + 16, ports + 256,
             lids > 49151 ? 49151 : lids);
}
