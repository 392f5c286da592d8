/*
 * nodes.c - the probe `nodes`: a CSV of hosts and their switches.
 *
 *   host,switch,port,speed
 *   n1,leaf1,1,200
 *   n2,leaf1,2,4xHDR
 *   leaf1,spine1,,400
 *
 * A line is a cable. A name in the second column is a switch, also in the first column of other lines. A name
 * in the first column only is a host. The port is that of the switch in the second column. The speed is in
 * Gbit/s, or lanes and a lane's speed as in ibnetdiscover. Port and speed may be empty or left out.
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

static void nodes_port(struct scan *field, struct nodes_line *line)
{
    uint32_t port = 0;
    scan_number(field, "port", 1, 254, &port);
    if (field->rc == PMIXFAB_OK && field->at < field->end)
        scan_fail(field, field->at, PMIXFAB_ERR_SYNTAX, "a port is a number; remove the text after it");
    line->port = (uint8_t)port;
}

static void nodes_speed(struct scan *field, struct nodes_line *line)
{
    char text[16], *end = text;
    const size_t len = (size_t)(field->end - field->at);
    if (memchr(field->at, 'x', len) != NULL) {
        scan_rate(field, &line->width, &line->speed);
        return;
    }
    unsigned width = 0;
    enum fab_speed speed = FAB_SPEED_UNKNOWN;
    snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : 0), field->at);
    const double gbps = text[strspn(text, "0123456789.")] == '\0' ? strtod(text, &end) : 0;
    if (end == text || *end != '\0' || gbps > 1e6 ||
        !fab_rate_parse((uint64_t)(gbps * 1000 + 0.5), &width, &speed))
        scan_fail(field, field->at, PMIXFAB_ERR_RANGE,
                  "no link has this speed; give Gbit/s, as 25, 100, 200, or lanes and speed, as 4xHDR");
    line->width = (uint8_t)width;
    line->speed = (uint8_t)speed;
}

static bool nodes_field_is(const struct scan *field, const char *word)
{
    return (size_t)(field->end - field->at) == strlen(word) &&
           strncasecmp(field->at, word, strlen(word)) == 0;
}

static void nodes_read_line(struct nodes_reader *r)
{
    struct scan *s = &r->s, fields[FIELDS] = {0};
    struct nodes_line line = {0};
    unsigned n = 0;
    bool more = true;
    scan_blank(s);
    if (s->at == s->end || *s->at == '#')
        return;
    for (s->at = s->line; more && n < FIELDS; n++) {
        more = scan_field(s, ',', &fields[n]);
        fields[n].unended = false;
    }
    if (more)
        scan_fail(s, fields[FIELDS - 1].at, PMIXFAB_ERR_SYNTAX,
                  "a line has host, switch, port and speed; remove the rest");
    if (s->rc == PMIXFAB_OK && (n < 2 || fields[0].at == fields[0].end || fields[1].at == fields[1].end))
        scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "a line begins with a host, a comma and its switch");
    if (s->rc != PMIXFAB_OK ||
        (r->n_lines == 0 && nodes_field_is(&fields[0], "host") && nodes_field_is(&fields[1], "switch")))
        return;
    for (unsigned i = 0; i < 2; i++)
        *(i == 0 ? &line.below : &line.above) =
            (struct wiring_end){.name = fields[i].at,
                                .len = (size_t)(fields[i].end - fields[i].at),
                                .place = {s->number, scan_column(s, fields[i].at)},
                                .is_switch = i == 1};
    if (n > 2 && fields[2].at < fields[2].end)
        nodes_port(&fields[2], &line);
    if (n > 3 && fields[2].rc == PMIXFAB_OK && fields[3].at < fields[3].end)
        nodes_speed(&fields[3], &line);
    s->rc = fields[2].rc != PMIXFAB_OK ? fields[2].rc : fields[3].rc;
    if (s->rc != PMIXFAB_OK)
        return;
    if (!FAB_ARRAY_ROOM(&r->lines, &r->room, (uint64_t)r->n_lines + 1))
        scan_fail(s, s->line, PMIXFAB_ERR_NOMEM, "%s", pmixfab_strerror(PMIXFAB_ERR_NOMEM));
    else
        r->lines[r->n_lines++] = line;
}

/* Read switches first, so that each name of the first column is known to be one or not. */
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
        rc = fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s:1:1: no line with a host and its switch", file);
    if (rc == PMIXFAB_OK)
        rc = nodes_wire(&r) ?: wiring_inventory(&r.w, inv);
    wiring_destroy(&r.w);
    free(r.lines);
    return rc;
}

SOURCE_FILE_PROBE(nodes, "nodes", "PATH: lines of host,switch,port,speed", nodes_parse);
