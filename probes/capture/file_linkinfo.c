/*
 * file_linkinfo.c - what iblinkinfo prints: a line a port, below its node's, or with -l all in one line.
 *
 *   Switch: 0x0000000000200001 leaf1:
 *         3    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2    8[  ] "spine1" ( )
 *         3    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
 *   CA: node1 HCA-1:
 *      0x0000000000100001      1    1[  ] ==( 4X ... )==>       2    1[  ] "leaf1" (Could be 53.125 Gbps)
 *
 *   0x0000000000200001 "leaf1"  3  1[  ] ==( 4X ... )==>  0x0000000000200000  2  8[  ] "spine1" ( )
 *
 * A port is its LID, its number and, in brackets, what the chassis' front calls it. The far end has no GUID
 * without -l, and is found by its LID. With -l a switch's ports have its own GUID and no line says its kind.
 */
#include <string.h>

#include "probes/capture/file_capture.h"

/* Where the rate begins, NULL: it is no port's line. */
static const char *rate_place(const struct scan *s)
{
    static const char start[] = "==(";
    return memmem(s->line, (size_t)(s->end - s->line), start, sizeof(start) - 1);
}

static enum node_type linkinfo_type(struct scan *s)
{
    static const struct {
        const char *word;
        enum node_type type;
    } types[] = {{"Switch:", NODE_TYPE_SWITCH},
                 {"Switch 0x", NODE_TYPE_SWITCH},
                 {"CA:", NODE_TYPE_CA},
                 {"Router:", NODE_TYPE_ROUTER},
                 {"RT:", NODE_TYPE_ROUTER}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (!scan_has(s, types[i].word))
            continue;
        if (s->at[-1] != ':')
            s->at -= 2; /* 0x belongs to the GUID */
        return types[i].type;
    }
    return 0;
}

static bool ends_with_colon(const struct scan *s)
{
    const char *end = s->end;
    while (end > s->line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return end > s->line && end[-1] == ':';
}

bool capture_is_linkinfo_line(const struct scan *s)
{
    struct scan copy = *s;
    return rate_place(s) != NULL || (linkinfo_type(&copy) != 0 && ends_with_colon(s));
}

/* `Switch: 0x0000000000200001 leaf1:` */
static int read_heading(struct reader *r, enum node_type type)
{
    struct scan *s = &r->s;
    struct told_end *node = &r->heading;
    *node = (struct told_end){.type = (uint8_t)type};
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

/* `3    1[  ]`: LID, port, and what the front calls it. A port that is down has no far end: `[  ]`. */
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

/* ` 4X      25.78125 Gbps Active/  LinkUp`, `     Down/ Polling`, ` 4X 10.0 Gbps (FDR10) Initialize/ LinkUp`
 */
static void read_linkinfo_rate(struct scan *s, struct told_line *line)
{
    static const struct {
        const char *word;
        uint8_t state;
    } states[] = {
        {"Down", FAB_PORT_DOWN}, {"Init", FAB_PORT_INIT}, {"Arm", FAB_PORT_ARMED}, {"Act", FAB_PORT_ACTIVE}};
    uint32_t lanes = 0;
    scan_word(s, "==(");
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
    while (line->state == 0 && s->at < s->end &&
           *s->at != ')') { /* of an unknown rate words may come before */
        for (size_t i = 0; line->state == 0 && i < sizeof(states) / sizeof(states[0]); i++)
            if (scan_has(s, states[i].word))
                line->state = states[i].state;
        if (line->state == 0)
            s->at++;
    }
    if (line->state == 0)
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX, "expected a port's state: Down, Initialize, Armed or Active");
}

/* GUID, name, LID and port; with a heading the name stands there, and a switch's GUID. */
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

int capture_read_linkinfo_line(struct reader *r)
{
    static const char arrow[] = "==>";
    struct scan *s = &r->s;
    struct told_line line = {0};
    const char *rate = rate_place(s);
    if (rate == NULL)
        return read_heading(r, linkinfo_type(s));
    r->told.ascending = r->told.far_is_told = true;
    read_linkinfo_near(r, rate, &line);
    scan_blank(s);
    read_linkinfo_rate(s, &line);
    const char *far = memmem(s->at, (size_t)(s->end - s->at), arrow, sizeof(arrow) - 1);
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
