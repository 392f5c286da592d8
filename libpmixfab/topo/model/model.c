/* model.c - names and numbers of the model, and texts for its nodes, ports and cables. */
#include "topo/model/inventory_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "topo/base/radix.h"
#include "topo/base/text.h"

static const struct {
    const char *name;
    uint32_t lane_mbps;
} speeds[] = {
    [FAB_SPEED_UNKNOWN] = {"?", 0}, [FAB_SDR] = {"SDR", 2500},      [FAB_DDR] = {"DDR", 5000},
    [FAB_QDR] = {"QDR", 10000},     [FAB_FDR10] = {"FDR10", 10000}, [FAB_FDR] = {"FDR", 14000},
    [FAB_EDR] = {"EDR", 25000},     [FAB_HDR] = {"HDR", 50000},     [FAB_NDR] = {"NDR", 100000},
    [FAB_XDR] = {"XDR", 200000},    [FAB_1GE] = {"1GE", 1000},
};

#define N_SPEEDS (sizeof(speeds) / sizeof(speeds[0]))

uint32_t fab_rate_mbps(unsigned width, enum fab_speed speed)
{
    if ((size_t)speed >= N_SPEEDS || (width != 1 && width != 2 && width != 4 && width != 8 && width != 12))
        return 0;
    return width * speeds[speed].lane_mbps;
}

bool fab_rate_parse(uint64_t mbps, unsigned *width, enum fab_speed *speed)
{
    static const unsigned narrow[] = {1, 2, 4, 8, 12}, wide[] = {4, 1, 2, 8, 12};
    const unsigned *widths = mbps < 40000 ? narrow : wide;
    uint32_t best = 0;

    *width = mbps == 0 ? 0 : 1;
    *speed = mbps == 0 ? FAB_SPEED_UNKNOWN : FAB_1GE;
    for (size_t w = 0; w < sizeof(narrow) / sizeof(narrow[0]); w++) {
        for (enum fab_speed s = FAB_SDR; s < FAB_SPEEDS; s++) {
            uint32_t rate = fab_rate_mbps(widths[w], s);
            if (rate > mbps || rate <= best)
                continue;
            best = rate;
            *width = widths[w];
            *speed = s;
        }
    }
    return mbps != 0 && best == mbps;
}

const char *fab_speed_name(enum fab_speed speed)
{
    return (size_t)speed < N_SPEEDS ? speeds[speed].name : speeds[FAB_SPEED_UNKNOWN].name;
}

enum fab_speed fab_speed_parse(const char *text, size_t len)
{
    for (size_t i = FAB_SDR; i < N_SPEEDS; i++) {
        if (strlen(speeds[i].name) == len && memcmp(speeds[i].name, text, len) == 0)
            return (enum fab_speed)i;
    }
    return FAB_SPEED_UNKNOWN;
}

bool fab_prefix_is_ethernet(uint64_t prefix)
{
    return FAB_GUID_IS_MADE_UP(prefix) && prefix != FAB_UNATTACHED;
}

void fab_name_text(enum fab_node_kind kind, uint64_t guid, const char *host, const char *name,
                   char text[FAB_NODE_TEXT])
{
    int n;

    if (kind != FAB_HCA)
        host = "";
    if (*host == '\0' && *name == '\0')
        n = snprintf(text, FAB_NODE_TEXT, "0x%016" PRIx64, guid);
    else
        n = snprintf(text, FAB_NODE_TEXT, "%s%s%s", host, *host != '\0' && *name != '\0' ? " " : "", name);
    fab_text_clean(text, FAB_NODE_TEXT, text, n < 0 ? 0 : FAB_NODE_TEXT - 1, NULL);
}

uint64_t fab_name_hash(enum fab_node_kind kind, const char *host, const char *name)
{
    if (kind != FAB_HCA)
        host = "";
    if (*host == '\0' && *name == '\0')
        return 0;
    return XXH3_64bits_withSeed(name, strlen(name), XXH3_64bits(host, strlen(host))) | 1;
}

int fab_inventory_mark_names(struct fab_inventory *inv)
{
    struct fab_key *keys = malloc((2 * (size_t)inv->n_nodes + 1) * sizeof(*keys));
    if (keys == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        struct fab_node *node = &inv->nodes[i];
        keys[i] = (struct fab_key){
            fab_name_hash(node->kind, fab_str(inv, node->host), fab_str(inv, node->name)), i};
        node->shares_name = 0;
    }
    fab_radix_sort(keys, keys + inv->n_nodes, inv->n_nodes);
    for (uint32_t i = 1; i < inv->n_nodes; i++)
        if (keys[i].value != 0 && keys[i].value == keys[i - 1].value)
            inv->nodes[keys[i].index].shares_name = inv->nodes[keys[i - 1].index].shares_name = 1;
    free(keys);
    return PMIXFAB_OK;
}

void fab_name_add_guid(uint64_t guid, char text[FAB_NODE_TEXT])
{
    const size_t len = strlen(text);
    snprintf(text + len, FAB_NODE_TEXT - len, " (0x%016" PRIx64 ")", guid);
}

void fab_plain_text(const struct fab_inventory *inv, const struct fab_node *node, char text[FAB_NODE_TEXT])
{
    fab_name_text(node->kind, node->guid, fab_str(inv, node->host), fab_str(inv, node->name), text);
}

void fab_node_text(const struct fab_inventory *inv, const struct fab_node *node, char text[FAB_NODE_TEXT])
{
    fab_plain_text(inv, node, text);
    if (node->shares_name)
        fab_name_add_guid(node->guid, text);
}

void fab_port_text(const struct fab_inventory *inv, const struct fab_port *port, char text[FAB_PORT_TEXT])
{
    char node[FAB_NODE_TEXT];
    fab_node_text(inv, &inv->nodes[port->node], node);
    snprintf(text, FAB_PORT_TEXT, "%s[%u]", node, port->num);
}

void fab_link_text(const struct fab_inventory *inv, const struct fab_port *port, char text[FAB_LINK_TEXT])
{
    const struct fab_port *peer = &inv->ports[port->peer];
    char a[FAB_PORT_TEXT], b[FAB_PORT_TEXT];

    if (inv->nodes[port->node].kind != FAB_SWITCH && inv->nodes[peer->node].kind == FAB_SWITCH) {
        const struct fab_port *end = port;
        port = peer;
        peer = end;
    }
    fab_port_text(inv, port, a);
    fab_port_text(inv, peer, b);
    snprintf(text, FAB_LINK_TEXT, "%s - %s", a, b);
}

void fab_rate_text(const struct fab_port *port, char text[32])
{
    if (port->width == 0 && port->speed == FAB_SPEED_UNKNOWN)
        snprintf(text, 32, "?");
    else if (port->width == 0)
        snprintf(text, 32, "?x%s", fab_speed_name(port->speed));
    else
        snprintf(text, 32, "%ux%s", port->width, fab_speed_name(port->speed));
}

const char *fab_state_text(unsigned state)
{
    static const char *const names[] = {"UNKNOWN", "DOWN", "INIT", "ARMED", "ACTIVE", "DISABLED", "LOOPED"};
    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "UNKNOWN";
}
