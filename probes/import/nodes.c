/*
 * nodes.c - the probe `nodes`: a CSV of hosts and the switches that they are cabled to.
 *
 *   host,switch,port,speed
 *   n1,leaf1,1,200
 *   n2,leaf1,2,4xHDR
 *   leaf1,spine1,,400
 *
 * A line is a cable. What stands in the second column is a switch, wherever else it stands; what stands in
 * the first one only is a host. The port is the switch's, of the second column. The speed is in Gbit/s, or
 * lanes and a lane's speed as ibnetdiscover has them. Port and speed may be empty or left out.
 */
#include "probes/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "probes/capture/capture_file.h"
#include "probes/core/source_file.h"
#include "topo/base/array.h"

#define FIELDS    4
#define LINE_MOST 1000 /* bytes */

struct nodes_line {
    struct wiring_end below, above;
    uint8_t port, width, speed;
};

struct nodes_reader {
    struct scan s;
    struct wiring w;
    struct nodes_line *lines;
    uint32_t n_lines, room;
};

struct field {
    const char *text;
    size_t len;
};

/* The fields of a line, without the blanks around them. Returns how many there are. */
static unsigned nodes_split(struct scan *s, struct field fields[FIELDS])
{
    unsigned n = 0;
    for (const char *at = s->line; n < FIELDS; n++) {
        const char *stop = memchr(at, ',', (size_t)(s->end - at)), *end = stop != NULL ? stop : s->end;
        const char *next = end + 1;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        fields[n] = (struct field){at, (size_t)(end - at)};
        if (stop == NULL)
            return n + 1;
        at = next;
    }
    scan_fail(s, fields[FIELDS - 1].text, PMIXFAB_ERR_SYNTAX,
              "a line has host, switch, port and speed; take out what is more");
    return n;
}

/* The field is what is scanned, to its end. */
static struct scan nodes_field(const struct scan *s, const struct field *field)
{
    struct scan f = *s;
    f.at = field->text;
    f.end = field->text + field->len;
    f.unended = false;
    return f;
}

static void nodes_port(struct scan *s, const struct field *field, struct nodes_line *line)
{
    struct scan f = nodes_field(s, field);
    uint32_t port = 0;
    scan_number(&f, "port", 1, 254, &port);
    if (f.rc == PMIXFAB_OK && f.at < f.end)
        scan_fail(&f, f.at, PMIXFAB_ERR_SYNTAX, "a port is a number; take out what is behind it");
    s->rc = f.rc;
    line->port = (uint8_t)port;
}

static void nodes_speed(struct scan *s, const struct field *field, struct nodes_line *line)
{
    char text[16], *end = text;
    if (memchr(field->text, 'x', field->len) != NULL) {
        struct scan f = nodes_field(s, field);
        scan_rate(&f, &line->width, &line->speed);
        s->rc = f.rc;
        return;
    }
    unsigned width = 0;
    enum fab_speed speed = FAB_SPEED_UNKNOWN;
    snprintf(text, sizeof(text), "%.*s", (int)(field->len < sizeof(text) ? field->len : 0), field->text);
    const double gbps = text[strspn(text, "0123456789.")] == '\0' ? strtod(text, &end) : 0;
    if (end == text || *end != '\0' || gbps > 1e6 ||
        !fab_rate_parse((uint64_t)(gbps * 1000 + 0.5), &width, &speed))
        scan_fail(s, field->text, PMIXFAB_ERR_RANGE,
                  "no link has this speed; give Gbit/s, as 25, 100, 200, or lanes and speed, as 4xHDR");
    line->width = (uint8_t)width;
    line->speed = (uint8_t)speed;
}

static bool is_heading(const struct field fields[FIELDS], unsigned n)
{
    return n >= 2 && fields[0].len == 4 && strncasecmp(fields[0].text, "host", 4) == 0 &&
           fields[1].len == 6 && strncasecmp(fields[1].text, "switch", 6) == 0;
}

static void nodes_read_line(struct nodes_reader *r)
{
    struct scan *s = &r->s;
    struct field fields[FIELDS] = {0};
    struct nodes_line line = {0};
    scan_blank(s);
    if (s->at == s->end || *s->at == '#')
        return;
    const unsigned n = nodes_split(s, fields);
    if (s->rc == PMIXFAB_OK && (n < 2 || fields[0].len == 0 || fields[1].len == 0))
        scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "a line begins with a host, a comma and its switch");
    if (s->rc != PMIXFAB_OK || (r->n_lines == 0 && is_heading(fields, n)))
        return;
    line.below = (struct wiring_end){
        .name = fields[0].text, .len = fields[0].len, .place = {s->number, scan_column(s, fields[0].text)}};
    line.above = (struct wiring_end){.name = fields[1].text,
                                     .len = fields[1].len,
                                     .place = {s->number, scan_column(s, fields[1].text)},
                                     .is_switch = true};
    if (n > 2 && fields[2].len > 0)
        nodes_port(s, &fields[2], &line);
    if (s->rc == PMIXFAB_OK && n > 3 && fields[3].len > 0)
        nodes_speed(s, &fields[3], &line);
    if (s->rc != PMIXFAB_OK)
        return;
    if (!FAB_ARRAY_ROOM(&r->lines, &r->room, (uint64_t)r->n_lines + 1))
        scan_fail(s, s->line, PMIXFAB_ERR_NOMEM, "%s", pmixfab_strerror(PMIXFAB_ERR_NOMEM));
    else
        r->lines[r->n_lines++] = line;
}

/* Switches first, so that each name of the first column is known to be one or not. */
static int nodes_wire(struct nodes_reader *r)
{
    int rc = PMIXFAB_OK;
    struct wiring_link link = {0};
    for (uint32_t i = 0; i < r->n_lines && rc == PMIXFAB_OK; i++)
        rc = wiring_node(&r->w, &r->lines[i].above, &link.above);
    for (uint32_t i = 0; i < r->n_lines && rc == PMIXFAB_OK; i++) {
        struct nodes_line *line = &r->lines[i];
        struct wiring_end as_switch = line->below;
        as_switch.is_switch = true;
        line->below.is_switch = wiring_find(&r->w, &as_switch) != NULL;
        link = (struct wiring_link){
            .place = line->below.place, .port = line->port, .width = line->width, .speed = line->speed};
        rc = wiring_node(&r->w, &line->below, &link.below) ?: wiring_node(&r->w, &line->above, &link.above)
             ?: wiring_cable(&r->w, &link);
    }
    return rc;
}

int nodes_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                struct fab_inventory *inv, struct fab_err *err)
{
    struct nodes_reader r = {.s = {.file = file, .limit = LINE_MOST, .err = err},
                             .w = {.file = file, .err = err}};
    (void)sink;
    for (const char *next = text; scan_next_line(&r.s, &next, text + len);)
        nodes_read_line(&r);
    int rc = r.s.rc;
    if (rc == PMIXFAB_OK && r.n_lines == 0)
        rc = fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s:1:1: not a single line with a host and its switch", file);
    if (rc == PMIXFAB_OK)
        rc = nodes_wire(&r) ?: wiring_inventory(&r.w, inv);
    wiring_destroy(&r.w);
    free(r.lines);
    return rc;
}

SOURCE_FILE_PROBE(nodes, "nodes", "PATH: lines of host,switch,port,speed", nodes_parse);
