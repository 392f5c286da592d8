/*
 * file_ports.c - a report of ports (ibnetdiscover -p): one line a port, node by node, the highest port first.
 *
 *   SW     3  2 0x0000000000200001 4x FDR - CA    13  1 0x000000000010000f ( 'leaf1' - 'node7 HCA-1' )
 *   CA    13  1 0x000000000010000f 4x FDR - SW     3  2 0x0000000000200001 ( 'node7 HCA-1' - 'leaf1' )
 *   SW     3  1 0x0000000000200001 4x SDR                                    'leaf1'
 *
 * That is kind, LID, port, port GUID and rate of both ends. A switch's ports have its own GUID. No line has
 * the GUID of an HCA: it goes by that of its lowest port, which is often the same or one more. Lines of one
 * HCA are those that follow each other with one description and falling numbers. Vendor, product and system
 * are not told.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/capture/file_capture.h"
#include "topo/base/array.h"
#include "topo/base/radix.h"

struct report_end {
    uint64_t guid; /* of the port */
    uint32_t lid, num;
    enum node_type type;
    uint16_t column;
};

struct report_line {
    struct report_end near, far; /* far.num 0: nothing is cabled there */
    uint64_t node;               /* GUID that the near end's node goes by */
    const char *name;
    uint32_t name_len, number;
    uint8_t width, speed;
};

/* ---- lines ---- */

static enum node_type scan_type(struct scan *s)
{
    static const struct {
        const char *word;
        enum node_type type;
    } types[] = {{"SW ", NODE_TYPE_SWITCH}, {"CA ", NODE_TYPE_CA}, {"RT ", NODE_TYPE_ROUTER}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (scan_has(s, types[i].word))
            return types[i].type;
    scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a kind of node: SW, CA or RT");
    return NODE_TYPE_CA;
}

static void read_end(struct scan *s, struct report_end *end)
{
    end->column = (uint16_t)scan_column(s, s->at);
    end->type = scan_type(s);
    scan_blank(s);
    scan_number(s, "LID", 0, UINT16_MAX, &end->lid);
    scan_blank(s);
    scan_number(s, "port", 1, 254, &end->num);
    scan_blank(s);
    const char *place = s->at;
    scan_word(s, "0x");
    scan_hex(s, "port GUID", UINT64_MAX, &end->guid);
    if (s->rc == PMIXFAB_OK && end->guid == 0)
        scan_fail(s, place, PMIXFAB_ERR_RANGE, "a port GUID of zero");
    scan_blank(s);
}

/* `( 'near' - 'far' )`, or `'near'`. A name may have quotes inside: of several places the first ends the near
 * one. */
static void read_names(struct scan *s, struct report_line *line)
{
    static const char between[] = "' - '", closing[] = "' )";
    const bool cabled = line->far.num != 0;
    scan_word(s, cabled ? "( '" : "'");
    if (s->rc != PMIXFAB_OK)
        return;
    size_t left = (size_t)(s->end - s->at);
    const char *end = cabled ? memmem(s->at, left, between, sizeof(between) - 1) : memrchr(s->at, '\'', left);
    if (end == NULL ||
        (cabled && memmem(end + sizeof(between) - 1, (size_t)(s->end - end) - (sizeof(between) - 1), closing,
                          sizeof(closing) - 1) == NULL)) {
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX,
                  cabled ? "expected the names of both ends: ( 'leaf1' - 'node1' )"
                         : "this quote is not closed");
        return;
    }
    line->name = s->at;
    line->name_len = (uint32_t)(end - s->at);
}

bool capture_is_report_line(const struct scan *s)
{
    return s->end - s->line >= 3 && (memcmp(s->line, "SW ", 3) == 0 || memcmp(s->line, "CA ", 3) == 0 ||
                                     memcmp(s->line, "RT ", 3) == 0);
}

int capture_read_report_line(struct reader *r)
{
    struct scan *s = &r->s;
    struct report_line line = {.number = s->number};
    if (r->c.inv->n_nodes > 0 || r->head.line != 0)
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX,
                         "a line of a report of ports (ibnetdiscover -p) among records");
    read_end(s, &line.near);
    scan_rate(s, &line.width, &line.speed);
    scan_blank(s);
    if (scan_has(s, "- "))
        read_end(s, &line.far);
    read_names(s, &line);
    if (s->rc != PMIXFAB_OK)
        return s->rc;
    if (!FAB_ARRAY_ROOM(&r->lines, &r->cap_lines, (uint64_t)r->n_lines + 1))
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    r->lines[r->n_lines++] = line;
    return PMIXFAB_OK;
}

/* ---- nodes ---- */

/* Where the node that begins at this line ends. */
static uint32_t report_node_end(const struct reader *r, uint32_t first)
{
    uint32_t i = first + 1;
    for (; i < r->n_lines; i++) {
        const struct report_line *before = &r->lines[i - 1], *line = &r->lines[i];
        if (line->near.type != before->near.type || line->near.num >= before->near.num ||
            line->name_len != before->name_len || memcmp(line->name, before->name, line->name_len) != 0 ||
            (line->near.type == NODE_TYPE_SWITCH && line->near.guid != before->near.guid))
            break;
    }
    return i;
}

/* Each line's node; and by_port, the lines by port GUID. */
static void name_nodes(struct reader *r, struct fab_key *by_port)
{
    for (uint32_t first = 0, end; first < r->n_lines; first = end) {
        end = report_node_end(r, first);
        for (uint32_t i = first; i < end; i++) {
            r->lines[i].node = r->lines[end - 1].near.guid;
            by_port[i] = (struct fab_key){r->lines[i].near.guid, i};
        }
    }
    fab_radix_sort(by_port, by_port + r->n_lines, r->n_lines);
}

/* The node of a far end; one of which no line tells goes by the port. */
static uint64_t far_node(const struct reader *r, const struct fab_key *by_port, const struct report_end *far)
{
    uint32_t line = fab_radix_find(by_port, r->n_lines, far->guid);
    return line == FAB_NONE ? far->guid : r->lines[line].node;
}

static int add_report_port(struct reader *r, const struct fab_key *by_port, const struct report_line *line)
{
    const bool is_switch = line->near.type == NODE_TYPE_SWITCH;
    struct fab_port port = {.guid = is_switch ? 0 : line->near.guid,
                            .node = r->node,
                            .peer = FAB_NONE,
                            .line = line->number,
                            .num = (uint8_t)line->near.num,
                            .state = FAB_PORT_DOWN};
    struct capture_peer peer = {.column = line->far.column};
    if (line->far.num != 0) {
        peer.guid = far_node(r, by_port, &line->far);
        peer.is_switch = line->far.type == NODE_TYPE_SWITCH;
        peer.port_guid = peer.is_switch ? 0 : line->far.guid;
        peer.port = (uint8_t)line->far.num;
        port.state = FAB_PORT_ACTIVE;
        port.width = line->width;
        port.speed = line->speed;
        port.lid = is_switch ? 0 : (uint16_t)line->near.lid;
    }
    return capture_add_port(r, &port, &peer);
}

static int add_report_node(struct reader *r, const struct fab_key *by_port, uint32_t first, uint32_t end)
{
    const struct report_line *lines = r->lines, *last = &lines[end - 1];
    struct fab_node node = {
        .guid = last->node, .line = lines[first].number, .num_ports = (uint8_t)lines[first].near.num};
    node.kind = (uint8_t)node_kind(last->near.type, 0, 0, last->name, last->name_len);
    if (node.kind == FAB_SWITCH)
        node.lid = (uint16_t)last->near.lid;
    node.desc = fab_inventory_string(r->c.inv, last->name, last->name_len);
    if (node.desc == FAB_NONE)
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    int rc = capture_add_node(r, &node, lines[first].near.column);
    for (uint32_t i = end; rc == PMIXFAB_OK && i > first; i--)
        if (lines[i - 1].far.num != 0)
            rc = add_report_port(r, by_port, &lines[i - 1]);
    /* As of a record without a cable: it is there, with its first port. */
    if (rc == PMIXFAB_OK && node.kind == FAB_HCA && r->c.nodes[r->node].n_ports == 0)
        rc = add_report_port(r, by_port, &(struct report_line){.near = last->near, .number = last->number});
    return rc;
}

int capture_build_report(struct reader *r)
{
    struct fab_key *by_port = malloc(2 * (size_t)r->n_lines * sizeof(*by_port));
    int rc = PMIXFAB_OK;
    if (by_port == NULL)
        return capture_no_room(r, PMIXFAB_ERR_NOMEM);
    name_nodes(r, by_port);
    for (uint32_t first = 0, end; rc == PMIXFAB_OK && first < r->n_lines; first = end) {
        end = report_node_end(r, first);
        rc = add_report_node(r, by_port, first, end);
    }
    free(by_port);
    if (rc == PMIXFAB_OK)
        probe_note(r->c.sink, PMIXFAB_LOG_INFO,
                   "%s: a report of ports (ibnetdiscover -p) tells no GUIDs of HCAs, no vendors and no "
                   "chassis: each "
                   "HCA goes by the GUID of its first port",
                   r->c.file);
    return rc;
}
