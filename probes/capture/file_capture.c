/* file_capture.c - a capture from its first line to a finished inventory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/capture/file.h"
#include "probes/capture/file_capture.h"
#include "probes/capture/file_scan.h"
#include "probes/fabric/observed.h"

/* ---- lines ---- */

/* "# Initiated from node 0000000000100000 port 0000000000100001" */
static int read_comment(struct reader *r)
{
    struct scan *s = &r->s;
    if (!scan_has(s, " Initiated from node "))
        return PMIXFAB_OK;
    scan_hex(s, "GUID", UINT64_MAX, &r->initiator);
    if (scan_has(s, " port "))
        scan_hex(s, "GUID", UINT64_MAX, &r->initiator_port);
    s->rc = PMIXFAB_OK; /* a comment may say anything */
    return PMIXFAB_OK;
}

static bool line_begins_with(const struct scan *s, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(s->end - s->line) >= n && memcmp(s->line, text, n) == 0;
}

/* What the tools print between the records: headings of -g, progress of -s, messages of the libraries. */
static bool is_chatter(const struct scan *s)
{
    static const char *const starts[] = {"Chassis ", "Non-Chassis Nodes", "Hostname:", "DR path ", "Lid ",
                                         "ibwarn:"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (line_begins_with(s, starts[i]))
            return true;
    return (line_begins_with(s, "src/") || line_begins_with(s, "./") || line_begins_with(s, "/")) &&
           memmem(s->line, (size_t)(s->end - s->line), ".c:", 3) != NULL;
}

static int unknown_line(struct scan *s)
{
    size_t len = (size_t)(s->end - s->line);
    if (memmem(s->line, len, " : 0x", 5) != NULL)
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX,
                         "this is a list of nodes (ibnetdiscover -l); record it without -l, -S, -H and -R");
    if (capture_is_subnet_line(s))
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX,
                         "this is OpenSM's opensm-subnet.lst; give it to the probe opensm-lst");
    return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX,
                     "this is no line of ibnetdiscover's output, which is what belongs here");
}

static int capture_read_line(struct reader *r)
{
    static const struct {
        const char *start;
        int (*read)(struct reader *r);
    } keys[] = {{"vendid=", capture_read_vendor},
                {"devid=", capture_read_device},
                {"sysimgguid=", capture_read_system_guid},
                {"switchguid=", capture_read_guid},
                {"caguid=", capture_read_guid},
                {"rtguid=", capture_read_guid},
                {"#", read_comment}};
    static const struct {
        const char *start;
        enum node_type type;
        char letter;
    } nodes[] = {{"Switch", NODE_TYPE_SWITCH, 'S'}, {"Ca", NODE_TYPE_CA, 'H'}, {"Rt", NODE_TYPE_ROUTER, 'R'}};
    struct scan *s = &r->s;
    if (s->at < s->end && *s->at == '[')
        return capture_read_port(r);
    if (capture_is_report_line(s))
        return capture_read_report_line(r);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (scan_has(s, keys[i].start))
            return keys[i].read(r);
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        if (!scan_has(s, nodes[i].start))
            continue;
        const char *word_end = s->at;
        scan_blank(s);
        if (s->at == word_end || (s->at < s->end && *s->at == ':'))
            return unknown_line(s);
        return capture_read_node(r, nodes[i].type, nodes[i].letter);
    }
    scan_blank(s);
    if (s->at >= s->end || *s->at == '#' || is_chatter(s))
        return PMIXFAB_OK;
    return unknown_line(s);
}

/* ---- the whole ---- */

/* An HCA without a single cable has no port line. It is there nevertheless, with its first port. */
static int add_lonely_ports(struct reader *r)
{
    for (uint32_t i = 0; i < r->c.inv->n_nodes; i++) {
        const struct capture_node *seen = &r->c.nodes[i];
        const struct fab_node *node = &r->c.inv->nodes[seen->index];
        if (node->kind != FAB_HCA || seen->n_ports > 0)
            continue;
        struct fab_port port = {.guid = node->guid == r->initiator ? r->initiator_port : 0,
                                .node = seen->index,
                                .peer = FAB_NONE,
                                .line = node->line,
                                .num = 1,
                                .state = FAB_PORT_DOWN};
        int rc = fab_inventory_add_port(r->c.inv, &port, NULL);
        if (rc != PMIXFAB_OK)
            return capture_no_room(r, rc);
    }
    return PMIXFAB_OK;
}

/* The inventory's own checks name lines only. */
static int capture_finish(struct reader *r)
{
    struct fab_err why = {{0}};
    uint32_t line = 0;
    int skip = 0;
    int rc = fab_inventory_finish(r->c.inv, &why);
    if (rc == PMIXFAB_OK)
        return rc;
    if (sscanf(why.text, "line %" SCNu32 ": %n", &line, &skip) != 1)
        skip = 0;
    return fab_fail(r->c.err, rc, "%s:%" PRIu32 ":1: %.300s; record the file again", r->c.file,
                    line > 0 ? line : 1, why.text + skip);
}

/* `what` the file should be. */
static int capture_read(struct reader *r, const char *text, size_t len, const char *what)
{
    struct fab_inventory *inv = r->c.inv;
    struct fab_err *err = r->c.err;
    const char *file = r->c.file;
    if (len == 0)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s:1:1: the file is empty; record it again", file);
    inv->n_subnets = 1;
    inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
    int rc = PMIXFAB_OK;
    for (const char *next = text; rc == PMIXFAB_OK && scan_next_line(&r->s, &next, text + len);)
        rc = r->read_line(r);
    rc = rc == PMIXFAB_OK ? r->s.rc : rc;
    if (rc == PMIXFAB_OK && r->head.line != 0)
        rc = fab_fail(err, PMIXFAB_ERR_TRUNCATED,
                      "%s:%" PRIu32 ":1: the file ends inside the record begun in this line; record it again",
                      file, r->head.line);
    if (rc == PMIXFAB_OK && r->n_lines > 0)
        rc = capture_build_report(r);
    if (rc == PMIXFAB_OK && inv->n_nodes == 0)
        rc = fab_fail(err, PMIXFAB_ERR_SYNTAX,
                      "%s:%" PRIu32 ":1: not a single node in the file; it should be %s", file, r->s.number,
                      what);
    if (rc == PMIXFAB_OK)
        rc = capture_join(&r->c);
    if (rc == PMIXFAB_OK)
        rc = add_lonely_ports(r);
    if (rc == PMIXFAB_OK)
        rc = chassis_number(inv, err);
    if (rc == PMIXFAB_OK)
        rc = capture_finish(r);
    free(r->c.nodes);
    free(r->c.peers);
    free(r->lines);
    return rc;
}

static struct reader capture_reader(const char *file, const struct probe_sink *sink,
                                    struct fab_inventory *inv, struct fab_err *err)
{
    return (struct reader){.c = {.file = file, .sink = sink, .inv = inv, .err = err},
                           .s = {.file = file, .limit = LINE_LIMIT, .err = err},
                           .node = FAB_NONE};
}

int capture_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                  struct fab_inventory *inv, struct fab_err *err)
{
    struct reader r = capture_reader(file, sink, inv, err);
    r.read_line = capture_read_line;
    return capture_read(&r, text, len, "ibnetdiscover's output");
}

int subnet_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                 struct fab_inventory *inv, struct fab_err *err)
{
    struct reader r = capture_reader(file, sink, inv, err);
    r.read_line = capture_read_subnet_line;
    return capture_read(&r, text, len, "OpenSM's opensm-subnet.lst");
}
