/*
 * file_subnet.c - opensm-subnet.lst, which OpenSM writes after each sweep: a line a cabled port, with both of
 * its ends, node by node.
 *
 *   { CA Ports:01 SystemGUID:0011223344556677 NodeGUID:0011223344556677 PortGUID:0011223344556678
 * VenID:0002C9 DevID:101B Rev:000000A1 {node1 HCA-1} LID:0005 PN:01 } { SW Ports:28 ... } PHY=4x LOG=ACT
 * SPD=50
 *
 * All numbers of an end are hexadecimal. The kind of a node with the subnet manager's LID ends with -SM.
 * OpenSM writes the far end's DevID with its bytes in another place, as 101B0000, so a node is what its own
 * lines say. Whether a switch's port 0 is an enhanced one, and LMCs, are not told. ibdiagnet2.lst, which
 * ibdiagnet writes, is the same with comments before it, and may lack the descriptions.
 */
#include <string.h>

#include "probes/capture/file_capture.h"

bool capture_is_subnet_line(const struct scan *s)
{
    return s->end - s->line > 2 && memcmp(s->line, "{ ", 2) == 0;
}

static enum node_type subnet_type(struct scan *s)
{
    static const struct {
        const char *word;
        enum node_type type;
    } types[] = {
        {"SW", NODE_TYPE_SWITCH}, {"CA", NODE_TYPE_CA}, {"Rt", NODE_TYPE_ROUTER}, {"RT", NODE_TYPE_ROUTER}};
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
static void subnet_description(struct scan *s, struct told_end *end)
{
    static const char behind[] = "} LID:";
    scan_blank(s);
    if (!scan_has(s, "{"))
        return;
    const char *stop = memmem(s->at, (size_t)(s->end - s->at), behind, sizeof(behind) - 1);
    if (stop == NULL) {
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a description and `%s` behind it", behind);
        return;
    }
    end->name = s->at;
    end->name_len = (uint32_t)(stop - s->at);
    s->at = stop + 1;
}

static uint64_t subnet_hex(struct scan *s, const char *key, const char *what, uint64_t max)
{
    uint64_t v = 0;
    scan_blank(s);
    scan_word(s, key);
    scan_hex(s, what, max, &v);
    return v;
}

static void subnet_read_end(struct scan *s, struct told_end *end)
{
    scan_word(s, "{ ");
    end->place = s->at;
    end->type = (uint8_t)subnet_type(s);
    end->num_ports = (uint8_t)subnet_hex(s, "Ports:", "number of ports", 254);
    end->system_guid = subnet_hex(s, "SystemGUID:", "system image GUID", UINT64_MAX);
    end->node = subnet_hex(s, "NodeGUID:", "node GUID", UINT64_MAX);
    end->guid = subnet_hex(s, "PortGUID:", "port GUID", UINT64_MAX);
    end->vendor_id = (uint32_t)subnet_hex(s, "VenID:", "vendor id", 0xffffff);
    end->device_id = (uint32_t)subnet_hex(s, "DevID:", "device id", UINT32_MAX);
    subnet_hex(s, "Rev:", "revision", UINT32_MAX);
    subnet_description(s, end);
    end->lid = (uint32_t)subnet_hex(s, "LID:", "LID", UINT16_MAX);
    scan_blank(s);
    scan_word(s, "PN:");
    end->port_place = s->at;
    end->num = (uint32_t)subnet_hex(s, "", "port", 254);
    scan_word(s, " } ");
    if (end->device_id > UINT16_MAX && (end->device_id & UINT16_MAX) == 0)
        end->device_id >>= 16;
    if (s->rc == PMIXFAB_OK && (end->num == 0 || end->num_ports == 0 || end->node == 0))
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
static void subnet_link(struct scan *s, struct told_line *line)
{
    static const struct subnet_word widths[] = {{"PHY=12x", 12},    {"PHY=1x", 1}, {"PHY=2x", 2},
                                                {"PHY=4x", 4},      {"PHY=8x", 8}, {"PHY=?", 0},
                                                {"PHY=UNKNOWN", 0}, {NULL, 0}},
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
                                                {" SPD=?", FAB_SPEED_UNKNOWN},
                                                {" SPD=UNKNOWN", FAB_SPEED_UNKNOWN},
                                                {NULL, 0}};
    line->width = subnet_word(s, widths);
    scan_has(s, "?"); /* of a second one */
    line->state = subnet_word(s, states);
    line->speed = subnet_word(s, speeds);
    scan_has(s, "?");
    scan_blank(s);
    if (s->unended) /* a 5 may have been 50 */
        scan_fail(s, s->end, PMIXFAB_ERR_SYNTAX, "expected a line end");
    if (s->at < s->end)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "unexpected text behind the speed");
}

int capture_read_subnet_line(struct reader *r)
{
    struct scan *s = &r->s;
    struct told_line line = {0};
    subnet_read_end(s, &line.near);
    subnet_read_end(s, &line.far);
    subnet_link(s, &line);
    if (s->rc == PMIXFAB_OK && line.near.device_id > UINT16_MAX)
        scan_fail(s, line.near.place, PMIXFAB_ERR_RANGE, "a DevID that is larger than 0xffff");
    return s->rc == PMIXFAB_OK ? capture_tell(r, &line) : s->rc;
}
