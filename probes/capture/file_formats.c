/*
 * file_formats.c - lines that describe both ends of a cable: of ibnetdiscover -p, OpenSM, iblinkinfo and
 * ibdiagnet.
 */
#include <string.h>

#include "probes/capture/file_capture.h"

/*
 * ---- a report of ports (ibnetdiscover -p): one line for each port, node by node, the highest port first.
 *
 *   SW     3  2 0x0000000000200001 4x FDR - CA    13  1 0x000000000010000f ( 'leaf1' - 'node7 HCA-1' )
 *   CA    13  1 0x000000000010000f 4x FDR - SW     3  2 0x0000000000200001 ( 'node7 HCA-1' - 'leaf1' )
 *   SW     3  1 0x0000000000200001 4x SDR                                    'leaf1'
 *
 * A line has kind, LID, port, port GUID and rate of both ends. The ports of a switch have the GUID of the
 * switch. No line has the GUID of an HCA. The GUID of its lowest port is used instead, which is often the
 * same or one more. Lines belong to one HCA if they follow each other with one description and descending
 * numbers. Vendor, product and system are missing.
 */

static const struct scan_choice report_types[] = {
    {"SW ", NODE_TYPE_SWITCH}, {"CA ", NODE_TYPE_CA}, {"RT ", NODE_TYPE_ROUTER}, {NULL, 0}};

static void read_end(struct scan *s, struct told_end *end)
{
    end->place = end->port_place = s->at;
    end->type = scan_one_of(s, report_types, "a kind of node: SW, CA or RT");
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

/*
 * Read `( 'near' - 'far' )`, or `'near'`. A name may contain quotes: of several places the first ends the
 * near one.
 */
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

static bool is_report_line(const struct scan *s)
{
    struct scan copy = *s;
    return scan_choice(&copy, report_types) >= 0;
}

static int read_report_line(struct reader *r)
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

/*
 * ---- opensm-subnet.lst, which OpenSM writes after each sweep: one line for each cabled port, with both of
 * its ends, node by node.
 *
 *   { CA Ports:01 SystemGUID:0011223344556677 NodeGUID:0011223344556677 PortGUID:0011223344556678
 *     VenID:0002C9 DevID:101B Rev:000000A1 {node1 HCA-1} LID:0005 PN:01 } { SW Ports:28 ... } PHY=4x LOG=ACT
 * SPD=50
 *
 * All numbers of an end are hexadecimal. The kind of a node with the subnet manager's LID ends with -SM.
 * OpenSM writes the far end's DevID with its bytes in another place, as 101B0000, so the data of a node are
 * taken from its own lines. Enhanced port 0 and LMCs are missing. ibdiagnet's ibdiagnet2.lst is the same with
 * comments before it, and may lack the descriptions.
 */

static bool is_subnet_line(const struct scan *s)
{
    return s->end - s->line > 2 && memcmp(s->line, "{ ", 2) == 0;
}

/* A description ends where the LID follows: it may contain braces. */
static void subnet_description(struct scan *s, struct told_end *end)
{
    static const char behind[] = "} LID:";
    scan_blank(s);
    if (!scan_has(s, "{"))
        return;
    const char *stop = scan_find(s, behind);
    if (stop == NULL) {
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a description, then `%s`", behind);
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
    static const struct scan_choice types[] = {{"SW", NODE_TYPE_SWITCH},
                                               {"CA", NODE_TYPE_CA},
                                               {"Rt", NODE_TYPE_ROUTER},
                                               {"RT", NODE_TYPE_ROUTER},
                                               {NULL, 0}};
    scan_word(s, "{ ");
    end->place = s->at;
    end->type = scan_one_of(s, types, "a kind of node: SW, CA or Rt");
    scan_has(s, "-SM");
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

/* Read `PHY=4x LOG=ACT SPD=50`: lanes, state, Gbit/s of a lane. */
static void subnet_link(struct scan *s, struct told_line *line)
{
    static const struct scan_choice widths[] = {{"PHY=12x", 12},    {"PHY=1x", 1}, {"PHY=2x", 2},
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
    static const char expected[] = "width, state and speed, as PHY=4x LOG=ACT SPD=25";
    line->width = scan_one_of(s, widths, expected);
    scan_has(s, "?"); /* of a second one */
    line->state = scan_one_of(s, states, expected);
    line->speed = scan_one_of(s, speeds, expected);
    scan_has(s, "?");
    scan_blank(s);
    if (s->unended) /* a 5 may be the beginning of 50 */
        scan_fail(s, s->end, PMIXFAB_ERR_SYNTAX, "expected a line end");
    if (s->at < s->end)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "unexpected text after the speed");
}

static int read_subnet_line(struct reader *r)
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

/*
 * ---- iblinkinfo: one line for each port, below its node's line, or with -l everything in one line.
 *
 *   Switch: 0x0000000000200001 leaf1:
 *         3    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2    8[  ] "spine1" ( )
 *         3    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
 *   CA: node1 HCA-1:
 *      0x0000000000100001      1    1[  ] ==( 4X ... )==>       2    1[  ] "leaf1" (Could be 53.125 Gbps)
 *
 *   0x0000000000200001 "leaf1"  3  1[  ] ==( 4X ... )==>  0x0000000000200000  2  8[  ] "spine1" ( )
 *
 * A port is its LID, its number and, in brackets, its name on the front of the chassis. Without -l the far
 * end has no GUID, and is found by its LID. With -l the ports of a switch have the GUID of the switch, and
 * lines have no kind.
 */

#define RATE "==(" /* where the rate of a port's line begins */

/* Return 0 if no kind of node comes next. */
static uint8_t linkinfo_type(struct scan *s)
{
    static const struct scan_choice types[] = {{"Switch:", NODE_TYPE_SWITCH}, {"Switch 0x", NODE_TYPE_SWITCH},
                                               {"CA:", NODE_TYPE_CA},         {"Router:", NODE_TYPE_ROUTER},
                                               {"RT:", NODE_TYPE_ROUTER},     {NULL, 0}};
    const int type = scan_choice(s, types);
    if (type > 0 && s->at[-1] != ':')
        s->at -= 2; /* 0x belongs to the GUID */
    return (uint8_t)(type > 0 ? type : 0);
}

static bool ends_with_colon(const struct scan *s)
{
    const char *end = s->end;
    while (end > s->line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return end > s->line && end[-1] == ':';
}

static bool is_linkinfo_line(const struct scan *s)
{
    struct scan copy = *s;
    return scan_find(s, RATE) != NULL || (linkinfo_type(&copy) != 0 && ends_with_colon(s));
}

/* Read `Switch: 0x0000000000200001 leaf1:` */
static int read_heading(struct reader *r, uint8_t type)
{
    struct scan *s = &r->s;
    struct told_end *node = &r->heading;
    *node = (struct told_end){.type = type};
    scan_blank(s);
    node->place = s->at;
    if (type == NODE_TYPE_SWITCH) {
        scan_word(s, "0x");
        scan_hex(s, "GUID", UINT64_MAX, &node->guid);
        scan_blank(s);
    }
    node->name = s->at;
    node->name_len = (uint32_t)(s->end - s->at);
    while (node->name_len > 0 && node->name[node->name_len - 1] != ':')
        node->name_len--;
    if (node->name_len > 0)
        node->name_len--;
    r->heading_line = s->number;
    return s->rc;
}

/* Read `3    1[  ]`: LID, port, and name on the front. A port that is down has no far end: `[  ]`. */
static void read_linkinfo_port(struct scan *s, struct told_end *end)
{
    scan_blank(s);
    if (end->place == NULL)
        end->place = s->at;
    if (s->at < s->end && *s->at != '[') {
        scan_number(s, "LID", 0, UINT16_MAX, &end->lid);
        scan_blank(s);
        end->port_place = s->at;
        scan_number(s, "port", 0, 254, &end->num);
    }
    scan_word(s, "[");
    while (s->at < s->end && *s->at != ']')
        s->at++;
    scan_word(s, "]");
}

static void read_linkinfo_guid(struct scan *s, struct told_end *end)
{
    scan_blank(s);
    end->place = s->at;
    if (!scan_has(s, "0x"))
        return;
    scan_hex(s, "GUID", UINT64_MAX, &end->guid);
    scan_blank(s);
}

/*
 * Read ` 4X      25.78125 Gbps Active/  LinkUp`, `     Down/ Polling`, ` 4X 10.0 Gbps (FDR10) Initialize/
 * LinkUp`
 */
static void read_linkinfo_rate(struct scan *s, struct told_line *line)
{
    static const struct scan_choice states[] = {{"Down", FAB_PORT_DOWN},
                                                {"Init", FAB_PORT_INIT},
                                                {"Arm", FAB_PORT_ARMED},
                                                {"Act", FAB_PORT_ACTIVE},
                                                {NULL, 0}};
    uint32_t lanes = 0;
    int state = -1;
    scan_word(s, RATE);
    scan_blank(s);
    if (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
        scan_number(s, "link width", 1, 12, &lanes);
        scan_word(s, "X");
        scan_blank(s);
        scan_lane_speed(s, &line->speed);
        scan_blank(s);
        scan_word(s, "Gbps");
        scan_blank(s);
        if (scan_has(s, "(FDR10)"))
            line->speed = FAB_FDR10;
    }
    line->width = (uint8_t)lanes;
    /* words may precede an unknown rate */
    while ((state = scan_choice(s, states)) < 0 && s->at < s->end && *s->at != ')')
        s->at++;
    if (state < 0)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a port's state: Down, Initialize, Armed or Active");
    else
        line->state = (uint8_t)state;
}

/* Read GUID, name, LID and port; with a heading the name is there, and a switch's GUID. */
static void read_linkinfo_near(struct reader *r, const char *rate, struct told_line *line)
{
    struct scan *s = &r->s;
    struct told_end *near = &line->near;
    read_linkinfo_guid(s, near);
    if (s->at < s->end && *s->at == '"') {
        struct scan name = *s;
        name.end = rate; /* the far end's name has quotes, too */
        scan_quoted(&name, &near->name, &near->name_len);
        s->at = name.at;
        s->rc = name.rc;
    } else if (r->heading_line != 0) {
        const struct told_end own = *near;
        *near = r->heading;
        near->place = own.place;
        if (own.guid != 0)
            near->guid = own.guid;
        line->head = r->heading_line;
    } else {
        scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "a port, but no line before it names its node");
    }
    read_linkinfo_port(s, near);
    if (s->rc == PMIXFAB_OK && (near->guid == 0 || near->num == 0))
        scan_fail(s, near->place, PMIXFAB_ERR_RANGE, "a port without a GUID, or a port 0");
}

static int read_linkinfo_line(struct reader *r)
{
    static const char arrow[] = "==>";
    struct scan *s = &r->s;
    struct told_line line = {0};
    const char *rate = scan_find(s, RATE);
    if (rate == NULL)
        return read_heading(r, linkinfo_type(s));
    r->told.ascending = r->told.far_is_told = true;
    read_linkinfo_near(r, rate, &line);
    scan_blank(s);
    read_linkinfo_rate(s, &line);
    const char *far = scan_find(s, arrow);
    if (far == NULL)
        return scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected `%s` and the far end", arrow);
    s->at = far + sizeof(arrow) - 1;
    read_linkinfo_guid(s, &line.far);
    read_linkinfo_port(s, &line.far);
    scan_blank(s);
    scan_quoted(s, &line.far.name, &line.far.name_len);
    if (line.far.num == 0)
        line.far = (struct told_end){0};
    return s->rc == PMIXFAB_OK ? capture_tell(r, &line) : s->rc;
}

/*
 * ---- ibdiagnet2.net_dump of ibdiagnet: the ports of each switch in a table.
 *
 *   "MF0;leaf1:MQM8700/U1", Mellanox, 0x248a070300a1b2c0, LID 3
 *     #    : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid     : N# : NLID : ...
 *     1    : 1   : ACT : LINK UP : 5   : 4x  : 50  : RS_FEC   : NO-RTR : 0x98039b030011220 : 1  : 7    :
 *       "node1 HCA-1"
 *     2    : 2   : DOWN: POLL    : ...
 *
 * # and N# are the front panel's name of a port: 1, 1/8/1 (ASIC, cage, port), or sw1p1. IB# is the number of
 * the port. HCAs have no table, so the GUID of each port is used. Vendor, product and system are missing.
 */

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

static bool field_is(const struct scan *field, const char *text)
{
    return (size_t)(field->end - field->at) == strlen(text) && memcmp(field->at, text, strlen(text)) == 0;
}

static bool is_dump_titles(const struct scan *s)
{
    return scan_find(s, ": IB#") != NULL;
}

static bool is_dump_line(const struct reader *r)
{
    const struct scan *s = &r->s;
    if (s->line < s->end && *s->line == '"')
        return scan_find(s, "\", ") != NULL;
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
    const char *guid = scan_find(s, ", 0x");
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
        struct scan field;
        scan_field(s, ':', &field);
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
            return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "the table has no column \"%s\"", titles[i]);
    return PMIXFAB_OK;
}

/* Read a number if the field is not empty. */
static void dump_number(struct scan *field, const char *what, uint32_t max, uint32_t *out)
{
    if (field->at < field->end)
        scan_number(field, what, 0, max, out);
}

/* Read the front panel's name of the port at the far end, which is its number if it is one. */
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
    static const struct scan_choice states[] = {{"ACT", FAB_PORT_ACTIVE},
                                                {"ARM", FAB_PORT_ARMED},
                                                {"INI", FAB_PORT_INIT},
                                                {"DOWN", FAB_PORT_DOWN},
                                                {NULL, 0}};
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
        line->state = scan_one_of(field, states, "a port's state: DOWN, INI, ARM or ACT");
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
        struct scan field;
        scan_field(s, i + 1 < r->n_dump_fields ? ':' : '\0', &field); /* the last one has the rest */
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

static int read_dump_line(struct reader *r)
{
    r->told.far_is_told = true;
    if (is_dump_titles(&r->s))
        return read_dump_titles(r);
    return *r->s.line == '"' ? read_dump_switch(r) : read_dump_port(r);
}

line_reader *capture_both_ends_reader(const struct reader *r)
{
    const struct scan *s = &r->s;
    return is_report_line(s)     ? read_report_line
           : is_subnet_line(s)   ? read_subnet_line
           : is_linkinfo_line(s) ? read_linkinfo_line
           : is_dump_line(r)     ? read_dump_line
                                 : NULL;
}
