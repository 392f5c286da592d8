/*
 * file_netdump.c - ibdiagnet2.net_dump, which ibdiagnet writes: the ports of each switch in a table.
 *
 *   "MF0;leaf1:MQM8700/U1", Mellanox, 0x248a070300a1b2c0, LID 3
 *     #    : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid     : N# : NLID : ...
 *     1    : 1   : ACT : LINK UP : 5   : 4x  : 50  : RS_FEC   : NO-RTR : 0x98039b030011220 : 1  : 7    :
 * "node1 HCA-1" 2    : 2   : DOWN: POLL    : ...
 *
 * # and N# are what the front panel calls a port, as 1, 1/8/1 (ASIC, cage, port), or sw1p1; IB# is its
 * number. No table is an HCA's: it goes by the GUID of each port, and vendor, product and system are not
 * told.
 */
#include <string.h>

#include "probes/capture/file_capture.h"

enum {
    DUMP_LABEL,
    DUMP_NUMBER,
    DUMP_STATE,
    DUMP_WIDTH,
    DUMP_SPEED,
    DUMP_GUID,
    DUMP_FAR,
    DUMP_LID,
    DUMP_NAME
};

static const char *const titles[DUMP_COLUMNS] = {
    "#", "IB#", "Sta", "LWA", "LSA", "Neighbor Guid", "N#", "NLID", "Neighbor Description"};

/* The next field of a line, without the blanks around it. The last one has everything that is left. */
static struct scan next_field(struct scan *s, bool last)
{
    struct scan field = *s;
    const char *colon = last ? NULL : memchr(s->at, ':', (size_t)(s->end - s->at));
    field.end = colon != NULL ? colon : s->end;
    scan_blank(&field);
    while (field.end > field.at && (field.end[-1] == ' ' || field.end[-1] == '\t'))
        field.end--;
    field.unended = s->unended && colon == NULL;
    s->at = colon != NULL ? colon + 1 : s->end;
    return field;
}

static bool field_is(const struct scan *field, const char *text)
{
    return (size_t)(field->end - field->at) == strlen(text) && memcmp(field->at, text, strlen(text)) == 0;
}

static bool is_dump_titles(const struct scan *s)
{
    static const char number[] = ": IB#";
    return memmem(s->line, (size_t)(s->end - s->line), number, sizeof(number) - 1) != NULL;
}

bool capture_is_dump_line(const struct reader *r)
{
    const struct scan *s = &r->s;
    if (s->line < s->end && *s->line == '"')
        return memmem(s->line, (size_t)(s->end - s->line), "\", ", 3) != NULL;
    unsigned colons = 0;
    if (s->line < s->end && *s->line == '#')
        return false;
    for (const char *c = s->line; c < s->end; c++)
        colons += *c == ':';
    return is_dump_titles(s) || (r->dump.guid != 0 && colons >= 5);
}

/* `"MF0;leaf1:MQM8700/U1", Mellanox, 0x248a070300a1b2c0, LID 3` */
static int read_dump_switch(struct reader *r)
{
    struct scan *s = &r->s;
    struct told_end *node = &r->dump;
    *node = (struct told_end){.type = NODE_TYPE_SWITCH, .place = s->at};
    scan_quoted(s, &node->name, &node->name_len);
    const char *guid = memmem(s->at, (size_t)(s->end - s->at), ", 0x", 4);
    if (guid != NULL)
        s->at = guid;
    scan_word(s, ", 0x");
    scan_hex(s, "GUID", UINT64_MAX, &node->guid);
    scan_word(s, ", LID ");
    scan_number(s, "LID", 0, UINT16_MAX, &node->lid);
    if (s->rc == PMIXFAB_OK && node->guid == 0)
        scan_fail(s, node->place, PMIXFAB_ERR_RANGE, "a node GUID of zero");
    if (s->unended)
        scan_fail(s, s->end, PMIXFAB_ERR_SYNTAX, "expected a line end");
    return s->rc;
}

static int read_dump_titles(struct reader *r)
{
    struct scan *s = &r->s;
    bool found[DUMP_COLUMNS] = {false};
    r->n_dump_fields = 0;
    while (s->at < s->end) {
        const struct scan field = next_field(s, false);
        for (uint8_t i = 0; i < DUMP_COLUMNS; i++) {
            if (!field_is(&field, titles[i]))
                continue;
            r->dump_fields[i] = r->n_dump_fields;
            found[i] = true;
        }
        r->n_dump_fields++;
    }
    for (size_t i = 0; i < DUMP_COLUMNS; i++)
        if (!found[i])
            return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "this table has no column \"%s\"", titles[i]);
    return PMIXFAB_OK;
}

/* A number, where the field is not empty. */
static void dump_number(struct scan *field, const char *what, uint32_t max, uint32_t *out)
{
    if (field->at < field->end)
        scan_number(field, what, 0, max, out);
}

static void dump_state(struct scan *field, struct told_line *line)
{
    line->state = scan_has(field, "ACT")    ? FAB_PORT_ACTIVE
                  : scan_has(field, "ARM")  ? FAB_PORT_ARMED
                  : scan_has(field, "INI")  ? FAB_PORT_INIT
                  : scan_has(field, "DOWN") ? FAB_PORT_DOWN
                                            : FAB_PORT_UNKNOWN;
    if (line->state == FAB_PORT_UNKNOWN)
        scan_fail(field, field->at, PMIXFAB_ERR_SYNTAX, "expected a port's state: DOWN, INI, ARM or ACT");
}

/* What the front panel calls the port at the far end, which is its number where it is one. */
static void dump_far(struct scan *field, struct told_end *far)
{
    const char *digits = field->at;
    far->label = far->port_place = field->at;
    far->label_len = (uint16_t)(field->end - field->at);
    while (digits < field->end && *digits >= '0' && *digits <= '9')
        digits++;
    if (digits == field->end)
        dump_number(field, "port", 254, &far->num);
}

static int read_dump_field(struct scan *field, unsigned column, struct told_line *line)
{
    uint32_t number = 0;
    switch (column) {
    case DUMP_LABEL:
        line->near.label = field->at;
        line->near.label_len = (uint16_t)(field->end - field->at);
        break;
    case DUMP_NUMBER:
        line->near.port_place = field->at;
        scan_number(field, "port", 1, 254, &line->near.num);
        break;
    case DUMP_STATE:
        dump_state(field, line);
        break;
    case DUMP_WIDTH:
        if (field->at < field->end && *field->at >= '0' && *field->at <= '9')
            scan_number(field, "link width", 1, 12, &number);
        line->width = (uint8_t)number;
        break;
    case DUMP_SPEED:
        if (field->at < field->end && ((*field->at >= '0' && *field->at <= '9') || field_is(field, "FDR10")))
            scan_lane_speed(field, &line->speed);
        break;
    case DUMP_GUID:
        line->far.place = field->at;
        if (scan_has(field, "0x"))
            scan_hex(field, "GUID", UINT64_MAX, &line->far.guid);
        break;
    case DUMP_FAR:
        dump_far(field, &line->far);
        break;
    case DUMP_LID:
        dump_number(field, "LID", UINT16_MAX, &line->far.lid);
        break;
    case DUMP_NAME:
        if (field->at < field->end)
            scan_quoted(field, &line->far.name, &line->far.name_len);
        break;
    }
    return field->rc;
}

static int read_dump_port(struct reader *r)
{
    struct scan *s = &r->s;
    struct told_line line = {.near = r->dump};
    line.near.place = s->line;
    if (r->n_dump_fields == 0)
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "a port, but no line before it names the columns");
    for (uint8_t i = 0; i < r->n_dump_fields && s->rc == PMIXFAB_OK; i++) {
        struct scan field = next_field(s, i + 1 == r->n_dump_fields);
        for (unsigned column = 0; column < DUMP_COLUMNS; column++)
            if (r->dump_fields[column] == i)
                s->rc = read_dump_field(&field, column, &line);
    }
    if (s->unended) /* the name may be cut */
        scan_fail(s, s->end, PMIXFAB_ERR_SYNTAX, "expected a line end");
    if (line.state == FAB_PORT_DOWN || line.far.guid == 0)
        line.far = (struct told_end){0};
    return s->rc == PMIXFAB_OK ? capture_tell(r, &line) : s->rc;
}

int capture_read_dump_line(struct reader *r)
{
    r->told.far_is_told = true;
    if (is_dump_titles(&r->s))
        return read_dump_titles(r);
    return *r->s.line == '"' ? read_dump_switch(r) : read_dump_port(r);
}
