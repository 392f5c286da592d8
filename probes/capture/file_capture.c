/*
 * file_capture.c - the probes `file` and `opensm-lst`, and a capture from its first line to a finished
 * inventory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/capture/capture_file.h"
#include "probes/capture/file_capture.h"
#include "probes/core/source_file.h"
#include "probes/fabric/observed.h"
#include "topo/base/text.h"

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
    s->rc = PMIXFAB_OK; /* a comment may contain anything */
    return PMIXFAB_OK;
}

static bool line_begins_with(const struct scan *s, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(s->end - s->line) >= n && memcmp(s->line, text, n) == 0;
}

/*
 * Return whether it is output of the tools between records: headings of -g, progress of -s, messages of the
 * libraries.
 */
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

/*
 * Return whether it is `[root@mgmt01 ~]# ibnetdiscover` or `user@host:~$ `: some text, then a prompt
 * character with a blank.
 */
static bool is_prompt(const struct scan *s)
{
    for (const char *c = s->line + 1; c < s->end; c++)
        if (strchr("#$%>", *c) != NULL && c[-1] != ' ' && c[-1] != '\t' && (c + 1 == s->end || c[1] == ' '))
            return true;
    return false;
}

static int unknown_line(struct scan *s, const char *what)
{
    size_t len = (size_t)(s->end - s->line);
    if (memmem(s->line, len, " : 0x", 5) != NULL)
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX,
                         "this is a list of nodes (ibnetdiscover -l); record it without -l, -S, -H and -R");
    if (capture_is_net_line(s))
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX,
                         "this is a net file of ibsim, whose nodes have names in place of GUIDs; start ibsim "
                         "with it and record its subnet with ibnetdiscover");
    if (line_begins_with(s, "START_"))
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX,
                         "this is ibdiagnet2.db_csv; use ibdiagnet2.ibnetdiscover in the same folder");
    if (is_prompt(s))
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "this is a terminal's prompt; remove this line");
    return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "this is not a line of %s, which is expected here",
                     what);
}

/* A file that ends inside a line of the record ends with one of these, or a part of it. */
static bool was_cut(const struct scan *s)
{
    static const char *const starts[] = {"vendid=0x",
                                         "devid=0x",
                                         "sysimgguid=0x",
                                         "switchguid=0x",
                                         "caguid=0x",
                                         "rtguid=0x",
                                         "Switch",
                                         "Chassis ",
                                         "Non-Chassis Nodes",
                                         "Ca",
                                         "Rt",
                                         "SW",
                                         "CA",
                                         "RT",
                                         "0x",
                                         "{ "};
    const size_t len = (size_t)(s->end - s->line);
    for (size_t i = 0; s->unended && i < sizeof(starts) / sizeof(starts[0]); i++)
        if (memcmp(s->line, starts[i], len < strlen(starts[i]) ? len : strlen(starts[i])) == 0)
            return true;
    return s->unended && s->at > s->line; /* lines of iblinkinfo and ibdiagnet begin with blanks */
}

/* Skip a line that is not part of the record. It is an error only if the record continues after it. */
static int pass_over(struct reader *r)
{
    struct scan *s = &r->s;
    if (was_cut(s) || capture_is_net_line(s))
        return unknown_line(s, r->what);
    if (r->noise.first == 0) {
        struct scan copy = *s;
        copy.err = &r->noise.err;
        r->noise.rc = unknown_line(&copy, r->what);
        r->noise.first = s->number;
    }
    r->noise.last = s->number;
    return PMIXFAB_OK;
}

static void tell_noise(struct reader *r)
{
    if (r->noise.first != 0)
        probe_note(r->c.sink, PMIXFAB_LOG_INFO,
                   "%s:%" PRIu32 ": %" PRIu32
                   " line%s skipped: not part of the record (maybe a terminal's prompt)",
                   r->c.file, r->noise.first, r->noise.last - r->noise.first + 1,
                   r->noise.last == r->noise.first ? "" : "s");
    r->noise.first = 0;
}

/* Accept that a line of the record comes next. */
static int go_on(struct reader *r)
{
    if (!r->begun)
        tell_noise(r);
    r->begun = true;
    if (r->noise.first != 0) {
        *r->c.err = r->noise.err;
        r->s.rc = r->noise.rc;
    }
    return r->s.rc;
}

/* Exclude a shell's `[1] 4711` and `[1]+  Done`. */
static bool is_port_line(const struct scan *s)
{
    const char *c = s->line;
    if (c == s->end || *c != '[' || (c + 1 < s->end && c[1] != '-' && (c[1] < '0' || c[1] > '9')))
        return false;
    while (c < s->end && *c != ']')
        c++;
    if (c + 1 < s->end && (c[1] == '+' || c[1] == '-'))
        return false;
    while (c + 1 < s->end && (c[1] == ' ' || c[1] == '\t'))
        c++;
    return c + 1 >= s->end || c[1] < '0' || c[1] > '9';
}

static int capture_read_line(struct reader *r)
{
    struct scan *s = &r->s;
    line_reader *read = is_port_line(s) ? capture_read_port : capture_both_ends_reader(r);
    if (read == NULL && scan_has(s, "#"))
        return read_comment(r);
    if (read == NULL)
        read = capture_record_reader(r);
    if (read != NULL)
        return go_on(r) ?: read(r);
    scan_blank(s);
    if (s->at >= s->end || *s->at == '#' || is_chatter(s))
        return PMIXFAB_OK;
    return pass_over(r);
}

/* ---- the whole ---- */

/* An HCA without a cable has no port line, but it exists, with its first port. */
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

static int capture_read(struct reader *r, const char *text, size_t len)
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
        rc = capture_read_line(r);
    rc = rc == PMIXFAB_OK ? r->s.rc : rc;
    if (rc == PMIXFAB_OK && !r->begun && r->noise.first != 0) {
        *err = r->noise.err;
        rc = r->noise.rc;
    }
    if (rc == PMIXFAB_OK && r->head.line != 0)
        rc = fab_fail(err, PMIXFAB_ERR_TRUNCATED,
                      "%s:%" PRIu32 ":1: the file ends inside the record begun in this line; record it again",
                      file, r->head.line);
    if (rc == PMIXFAB_OK && r->told.n > 0)
        rc = capture_build_told(r);
    if (rc == PMIXFAB_OK && inv->n_nodes == 0)
        rc = fab_fail(err, PMIXFAB_ERR_SYNTAX, "%s:%" PRIu32 ":1: no node in the file; it should be %s", file,
                      r->s.number, r->what);
    if (rc == PMIXFAB_OK)
        rc = capture_join(&r->c) ?: add_lonely_ports(r) ?: chassis_number(inv, err) ?: capture_finish(r);
    if (rc == PMIXFAB_OK)
        tell_noise(r);
    free(r->c.nodes);
    free(r->c.peers);
    free(r->told.lines);
    return rc;
}

/* `what`: the expected kind of file. */
static int capture_read_as(const char *what, const char *file, const char *text, size_t len,
                           const struct probe_sink *sink, struct fab_inventory *inv, struct fab_err *err)
{
    struct reader r = {.c = {.file = file, .sink = sink, .inv = inv, .err = err},
                       .s = {.file = file, .limit = LINE_LIMIT, .err = err},
                       .what = what,
                       .node = FAB_NONE};
    return capture_read(&r, text, len);
}

int capture_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                  struct fab_inventory *inv, struct fab_err *err)
{
    return capture_read_as("ibnetdiscover's output", file, text, len, sink, inv, err);
}

int subnet_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                 struct fab_inventory *inv, struct fab_err *err)
{
    return capture_read_as("OpenSM's opensm-subnet.lst", file, text, len, sink, inv, err);
}

/* ---- the probes `file` and `opensm-lst`: a recorded fabric instead of a live one ---- */

static const char option[] = ",prefix=";

/* Split "PATH,prefix=0x...". *prefix is 0 if there is none. Free *path. */
static int file_split_argument(const char *arg, char **path, uint64_t *prefix, struct fab_err *err)
{
    *path = NULL;
    *prefix = 0;
    if (arg == NULL || *arg == '\0')
        return fab_fail(err, PMIXFAB_ERR_INVAL, "the probe `file` needs a path: file:PATH[,prefix=0x...]");
    const char *at = NULL;
    for (const char *next = strstr(arg, option); next != NULL; next = strstr(next + 1, option))
        at = next; /* the last one: the path may contain this text */
    if (at != NULL) {
        const char *digits = at + sizeof(option) - 1;
        char *end;
        errno = 0;
        unsigned long long v = strtoull(digits, &end, 16);
        if (*digits < '0' || *digits > 'f' || end == digits || *end != '\0' || errno != 0 || v == 0)
            return fab_fail(
                err, PMIXFAB_ERR_SYNTAX,
                "file:%s: \"%s\" is not a subnet prefix; give 16 hexadecimal digits, as 0xfe80000000000000",
                arg, digits);
        *prefix = v;
    }
    *path = at != NULL ? strndup(arg, (size_t)(at - arg)) : strdup(arg);
    if (*path == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (**path == '\0')
        return fab_fail(err, PMIXFAB_ERR_INVAL, "the probe `file` needs a path before `,prefix=`");
    return PMIXFAB_OK;
}

static int file_check(const struct probe_config *config, struct fab_err *err)
{
    char *path;
    uint64_t prefix;
    int rc = file_split_argument(config->arg, &path, &prefix, err);
    free(path);
    return rc;
}

static int file_sweep(const struct probe_config *config, const struct probe_sink *sink,
                      struct fab_inventory *inv, struct fab_err *err)
{
    char *path, *data = NULL;
    uint64_t prefix;
    size_t len = 0;
    int rc =
        file_split_argument(config->arg, &path, &prefix, err) ?: source_file_load(path, &data, &len, err);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    rc = cache_is(data, len) ? cache_parse(path, data, len, sink, inv, err)
                             : capture_parse(path, data, len, sink, inv, err);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    if (prefix != 0)
        inv->subnets[0].prefix = prefix;
    if (inv->n_dangling > 0)
        probe_note(sink, PMIXFAB_LOG_DEBUG, "%s: %u ports are up and lead nowhere; the record is partial",
                   path, inv->n_dangling);

cleanup:
    free(data);
    free(path);
    return rc;
}

static int file_monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                             struct probe_monitor **out, struct fab_err *err)
{
    char *path;
    uint64_t prefix;
    (void)inv;
    int rc = file_split_argument(config->arg, &path, &prefix, err) ?: source_file_watch(path, out, err);
    free(path);
    return rc;
}

const struct probe probe_file = {
    .name = "file",
    .summary = "PATH[,prefix=0x...]: a recorded subnet, as from ibnetdiscover",
    .check = file_check,
    .run = file_sweep,
    .monitor_open = file_monitor_open,
    SOURCE_FILE_CALLBACKS,
};

SOURCE_FILE_PROBE(opensm_lst, "opensm-lst", "PATH: OpenSM's opensm-subnet.lst", subnet_parse);
