/*
 * file_subnet.c - opensm-subnet.lst, which OpenSM writes after each sweep: a line a cabled port, with both of
 * its ends, node by node.
 *
 *   { CA Ports:01 SystemGUID:0011223344556677 NodeGUID:0011223344556677 PortGUID:0011223344556678
 * VenID:0002C9 DevID:101B Rev:000000A1 {node1 HCA-1} LID:0005 PN:01 } { SW Ports:28 ... } PHY=4x LOG=ACT
 * SPD=50
 *
 * All numbers of an end are hexadecimal. The kind of a node with the subnet manager's LID ends with -SM.
 * OpenSM writes the far end's DevID with its bytes in another place, so a node is what its own lines say.
 * Whether a switch's port 0 is an enhanced one, and LMCs, are not told.
 */
#include <string.h>

#include "probes/capture/file_capture.h"

struct subnet_end {
    enum node_type type;
    uint64_t ports, system_guid, guid, port_guid, vendor_id, device_id, revision, lid, num;
    const char *desc, *place, *port_place; /* where the end and its port's number stand */
    size_t desc_len;
};

bool capture_is_subnet_line(const struct scan *s)
{
    return s->end - s->line > 2 && memcmp(s->line, "{ ", 2) == 0;
}

static enum node_type subnet_type(struct scan *s)
{
    static const struct {
        const char *word;
        enum node_type type;
    } types[] = {{"SW", NODE_TYPE_SWITCH}, {"CA", NODE_TYPE_CA}, {"Rt", NODE_TYPE_ROUTER}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (!scan_has(s, types[i].word))
            continue;
        scan_has(s, "-SM");
        return types[i].type;
    }
    scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a kind of node: SW, CA or Rt");
    return NODE_TYPE_CA;
}

/* A description ends where the LID follows: it may have braces inside. */
static void subnet_description(struct scan *s, struct subnet_end *end)
{
    static const char behind[] = "} LID:";
    scan_word(s, " {");
    const char *stop = memmem(s->at, (size_t)(s->end - s->at), behind, sizeof(behind) - 1);
    if (s->rc == PMIXFAB_OK && stop == NULL)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a description and `%s` behind it", behind);
    if (s->rc != PMIXFAB_OK)
        return;
    end->desc = s->at;
    end->desc_len = (size_t)(stop - s->at);
    s->at = stop + 1;
}

static void subnet_hex(struct scan *s, const char *key, const char *what, uint64_t max, uint64_t *out)
{
    scan_word(s, key);
    scan_hex(s, what, max, out);
}

static void subnet_read_end(struct scan *s, struct subnet_end *end)
{
    scan_word(s, "{ ");
    end->place = s->at;
    end->type = subnet_type(s);
    subnet_hex(s, " Ports:", "number of ports", 254, &end->ports);
    subnet_hex(s, " SystemGUID:", "system image GUID", UINT64_MAX, &end->system_guid);
    subnet_hex(s, " NodeGUID:", "node GUID", UINT64_MAX, &end->guid);
    subnet_hex(s, " PortGUID:", "port GUID", UINT64_MAX, &end->port_guid);
    subnet_hex(s, " VenID:", "vendor id", 0xffffff, &end->vendor_id);
    subnet_hex(s, " DevID:", "device id", UINT32_MAX, &end->device_id);
    subnet_hex(s, " Rev:", "revision", UINT32_MAX, &end->revision);
    subnet_description(s, end);
    subnet_hex(s, " LID:", "LID", UINT16_MAX, &end->lid);
    scan_word(s, " PN:");
    end->port_place = s->at;
    scan_hex(s, "port", 254, &end->num);
    scan_word(s, " } ");
    if (s->rc == PMIXFAB_OK && (end->num == 0 || end->ports == 0 || end->guid == 0))
        scan_fail(s, end->place, PMIXFAB_ERR_RANGE, "a node without a GUID or without ports, or a port 0");
}

struct subnet_word {
    const char *word; /* NULL: the end of the list */
    uint8_t value;
};

/* The value of the word that comes next. */
static uint8_t subnet_word(struct scan *s, const struct subnet_word *words)
{
    for (; words->word != NULL; words++)
        if (scan_has(s, words->word))
            return words->value;
    scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected width, state and speed, as PHY=4x LOG=ACT SPD=25");
    return 0;
}

/* `PHY=4x LOG=ACT SPD=50`: lanes, state, Gbit/s of a lane. */
static void subnet_link(struct scan *s, struct fab_port *port)
{
    static const struct subnet_word widths[] = {{"PHY=12x", 12}, {"PHY=1x", 1}, {"PHY=2x", 2}, {"PHY=4x", 4},
                                                {"PHY=8x", 8},   {"PHY=??", 0}, {NULL, 0}},
                                    states[] = {{" LOG=ACT", FAB_PORT_ACTIVE},
                                                {" LOG=ARM", FAB_PORT_ARMED},
                                                {" LOG=INI", FAB_PORT_INIT},
                                                {" LOG=DWN", FAB_PORT_DOWN},
                                                {NULL, 0}},
                                    speeds[] = {{" SPD=FDR10", FAB_FDR10},
                                                {" SPD=2.5", FAB_SDR},
                                                {" SPD=200", FAB_XDR},
                                                {" SPD=100", FAB_NDR},
                                                {" SPD=10", FAB_QDR},
                                                {" SPD=14", FAB_FDR},
                                                {" SPD=25", FAB_EDR},
                                                {" SPD=50", FAB_HDR},
                                                {" SPD=5", FAB_DDR},
                                                {" SPD=??", FAB_SPEED_UNKNOWN},
                                                {NULL, 0}};
    port->width = subnet_word(s, widths);
    port->state = subnet_word(s, states);
    port->speed = subnet_word(s, speeds);
    scan_blank(s);
    if (s->unended) /* a 5 may have been 50 */
        scan_fail(s, s->end, PMIXFAB_ERR_SYNTAX, "expected a line end");
    if (s->at < s->end)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "unexpected text behind the speed");
}

static int subnet_add_node(struct reader *r, const struct subnet_end *end)
{
    struct fab_node node = {.guid = end->guid,
                            .system_guid = end->system_guid,
                            .vendor_id = (uint32_t)end->vendor_id,
                            .device_id = (uint32_t)end->device_id,
                            .line = r->s.number,
                            .num_ports = (uint8_t)end->ports};
    node.kind = (uint8_t)node_kind(end->type, node.vendor_id, node.device_id, end->desc, end->desc_len);
    if (end->type == NODE_TYPE_SWITCH)
        node.lid = (uint16_t)end->lid;
    node.desc = fab_inventory_string(r->c.inv, end->desc, end->desc_len);
    if (node.desc == FAB_NONE)
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    return capture_add_node(r, &node, (uint16_t)scan_column(&r->s, end->place));
}

int capture_read_subnet_line(struct reader *r)
{
    struct scan *s = &r->s;
    struct subnet_end near = {0}, far = {0};
    struct fab_port port = {.peer = FAB_NONE, .line = s->number};
    scan_blank(s);
    if (s->at == s->end)
        return PMIXFAB_OK;
    subnet_read_end(s, &near);
    subnet_read_end(s, &far);
    subnet_link(s, &port);
    if (s->rc != PMIXFAB_OK)
        return s->rc;
    if (near.device_id > UINT16_MAX)
        return scan_fail(s, near.place, PMIXFAB_ERR_RANGE, "a DevID that is larger than 0xffff");
    if (r->node == FAB_NONE || r->c.inv->nodes[r->node].guid != near.guid)
        subnet_add_node(r, &near);
    if (capture_claim_port(r, (uint32_t)near.num, near.port_place) != PMIXFAB_OK)
        return s->rc;
    port.node = r->node;
    port.num = (uint8_t)near.num;
    if (near.type != NODE_TYPE_SWITCH) {
        port.guid = near.port_guid;
        port.lid = (uint16_t)near.lid;
    }
    const bool to_switch = far.type == NODE_TYPE_SWITCH;
    const struct capture_peer peer = {.guid = far.guid,
                                      .port_guid = to_switch ? 0 : far.port_guid,
                                      .column = (uint16_t)scan_column(s, far.place),
                                      .port = (uint8_t)far.num,
                                      .is_switch = to_switch};
    return capture_add_port(r, &port, &peer);
}
