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
#include <string.h>

#include "probes/capture/file_capture.h"

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

static void read_end(struct scan *s, struct told_end *end)
{
    end->place = end->port_place = s->at;
    end->type = (uint8_t)scan_type(s);
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
static void read_names(struct scan *s, struct told_line *line)
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
    line->near.name = s->at;
    line->near.name_len = (uint32_t)(end - s->at);
}

bool capture_is_report_line(const struct scan *s)
{
    return s->end - s->line >= 3 && (memcmp(s->line, "SW ", 3) == 0 || memcmp(s->line, "CA ", 3) == 0 ||
                                     memcmp(s->line, "RT ", 3) == 0);
}

int capture_read_report_line(struct reader *r)
{
    struct scan *s = &r->s;
    struct told_line line = {0};
    read_end(s, &line.near);
    scan_rate(s, &line.width, &line.speed);
    scan_blank(s);
    if (scan_has(s, "- "))
        read_end(s, &line.far);
    line.state = line.far.num != 0 ? FAB_PORT_ACTIVE : FAB_PORT_DOWN;
    read_names(s, &line);
    return s->rc == PMIXFAB_OK ? capture_tell(r, &line) : s->rc;
}
