#include "test/fabrics/build.h"

#include <stdarg.h>
#include <string.h>

void build_begin(struct build *b, struct fab_inventory *inv)
{
    *b = (struct build){.inv = inv, .next_switch = 0x200000, .next_hca = 0x100000, .next_lid = 1};
    fab_inventory_init(inv);
    inv->n_subnets = 1;
    inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
}

static uint32_t add_string(struct build *b, const char *text)
{
    uint32_t offset = fab_inventory_string(b->inv, text, strlen(text));
    if (offset == FAB_NONE) {
        b->rc = PMIXFAB_ERR_NOMEM;
        return 0;
    }
    return offset;
}

/* LIDs as a subnet manager would give them out; past the unicast range: none. */
static uint16_t take_lid(struct build *b)
{
    return b->next_lid < 0xc000 ? b->next_lid++ : 0;
}

static uint32_t add_node(struct build *b, const struct fab_node *node)
{
    uint32_t index = FAB_NONE;
    if (node->num_ports == 0 || node->num_ports > 254)
        b->rc = PMIXFAB_ERR_RANGE;
    if (b->rc == PMIXFAB_OK)
        b->rc = fab_inventory_add_node(b->inv, node, &index);
    return b->rc == PMIXFAB_OK ? index : FAB_NONE;
}

uint32_t build_switch(struct build *b, unsigned num_ports, const char *fmt, ...)
{
    char text[32];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (b->rc != PMIXFAB_OK)
        return FAB_NONE;
    if (len < 0 || len > 30 || num_ports > 254) {
        b->rc = PMIXFAB_ERR_RANGE;
        return FAB_NONE;
    }
    uint32_t name = add_string(b, text);
    struct fab_node node = {.guid = b->next_switch,
                            .system_guid = b->next_switch,
                            .vendor_id = BUILD_VENDOR,
                            .device_id = BUILD_DEV_SWITCH,
                            .desc = name,
                            .name = name,
                            .lid = take_lid(b),
                            .kind = FAB_SWITCH,
                            .num_ports = (uint8_t)num_ports,
                            .enhanced = 1};
    b->next_switch++;
    return add_node(b, &node);
}

unsigned build_host(struct build *b)
{
    return ++b->hosts;
}

static uint32_t device_name(struct build *b, unsigned hca)
{
    char text[16];
    if (hca == 0 || hca > BUILD_MOST_HCAS) {
        b->rc = PMIXFAB_ERR_RANGE;
        return 0;
    }
    if (b->device_name[hca - 1] == 0) {
        snprintf(text, sizeof(text), "HCA-%u", hca);
        b->device_name[hca - 1] = add_string(b, text);
    }
    return b->device_name[hca - 1];
}

uint32_t build_hca(struct build *b, unsigned host, unsigned hca, unsigned of, unsigned num_ports)
{
    char text[32], desc[48];
    if (b->rc != PMIXFAB_OK || num_ports > 254)
        return FAB_NONE;
    snprintf(text, sizeof(text), "node%04u", host);
    uint32_t host_name = add_string(b, text), said = host_name;
    if (of > 1) {
        snprintf(desc, sizeof(desc), "%s HCA-%u", text, hca);
        said = add_string(b, desc);
    }
    struct fab_node node = {.guid = b->next_hca,
                            .system_guid = b->next_hca,
                            .vendor_id = BUILD_VENDOR,
                            .device_id = BUILD_DEV_HCA,
                            .desc = said,
                            .host = host_name,
                            .name = device_name(b, hca),
                            .kind = FAB_HCA,
                            .num_ports = (uint8_t)num_ports};
    b->next_hca += num_ports + 1;
    uint32_t index = add_node(b, &node);
    for (unsigned p = 1; p <= num_ports && b->rc == PMIXFAB_OK; p++) {
        struct fab_port port = {.guid = node.guid + p,
                                .node = index,
                                .peer = FAB_NONE,
                                .lid = take_lid(b),
                                .num = (uint8_t)p,
                                .state = FAB_PORT_DOWN};
        b->rc = fab_inventory_add_port(b->inv, &port, NULL);
    }
    return index;
}

/* HCA ports exist from the start, switch ports come with their cable. */
static uint32_t port_of(struct build *b, uint32_t node, unsigned num)
{
    struct fab_inventory *inv = b->inv;
    if (num == 0 || node >= inv->n_nodes || num > inv->nodes[node].num_ports) {
        b->rc = PMIXFAB_ERR_RANGE;
        return FAB_NONE;
    }
    uint32_t index = FAB_NONE;
    if (inv->nodes[node].kind == FAB_SWITCH) {
        struct fab_port port = {.node = node, .peer = FAB_NONE, .num = (uint8_t)num};
        b->rc = fab_inventory_add_port(inv, &port, &index);
        return index;
    }
    /* An HCA's ports were added just before they are cabled: they are near the end. */
    for (uint32_t i = inv->n_ports; i-- > 0;)
        if (inv->ports[i].node == node && inv->ports[i].num == num)
            return i;
    b->rc = PMIXFAB_ERR_NOTFOUND;
    return FAB_NONE;
}

void build_cable(struct build *b, uint32_t node_a, unsigned port_a, uint32_t node_b, unsigned port_b,
                 unsigned width, enum fab_speed speed)
{
    uint32_t ends[2] = {FAB_NONE, FAB_NONE};
    if (b->rc == PMIXFAB_OK)
        ends[0] = port_of(b, node_a, port_a);
    if (b->rc == PMIXFAB_OK)
        ends[1] = port_of(b, node_b, port_b);
    if (b->rc != PMIXFAB_OK)
        return;
    for (int i = 0; i < 2; i++) {
        struct fab_port *port = &b->inv->ports[ends[i]];
        port->state = FAB_PORT_ACTIVE;
        port->width = (uint8_t)width;
        port->speed = (uint8_t)speed;
    }
    b->rc = fab_inventory_link(b->inv, ends[0], ends[1]);
}

void build_simple_host(struct build *b, uint32_t sw, unsigned port)
{
    uint32_t hca = build_hca(b, build_host(b), 1, 1, 1);
    build_cable(b, sw, port, hca, 1, 4, FAB_HDR);
}

int build_end(struct build *b)
{
    if (b->rc == PMIXFAB_OK)
        b->rc = fab_inventory_finish(b->inv, NULL);
    if (b->rc != PMIXFAB_OK)
        fab_inventory_destroy(b->inv);
    return b->rc;
}
