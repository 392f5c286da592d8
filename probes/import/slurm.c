/*
 * slurm.c - the probe `slurm`: topology.conf of topology/tree and topology/block, and topology.yaml.
 *
 *   SwitchName=leaf1 Nodes=n[1-4,7]          BlockName=b1 Nodes=n[1-18]
 *   SwitchName=top Switches=leaf[1-2]        BlockSizes=18
 *
 * A block is a switch, and a switch of our own joins them all, whatever sizes blocks together have.
 */
#include "probes/import/slurm.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "probes/capture/file_scan.h"
#include "probes/import/import.h"
#include "topo/base/array.h"

/* ---- topology.conf ---- */

enum slurm_key { KEY_SWITCH, KEY_BLOCK, KEY_SWITCHES, KEY_NODES, KEY_IGNORED, KEY_UNKNOWN };

/* What is behind a backslash at the end of a line is a part of it. */
static void conf_blank(struct scan *s, const char **next, const char *end)
{
    for (;;) {
        scan_blank(s);
        if (s->at < s->end && *s->at == '#')
            s->at = s->end;
        if (s->at + 1 != s->end || *s->at != '\\' || !scan_next_line(s, next, end))
            return;
    }
}

static enum slurm_key conf_key(struct scan *s)
{
    static const struct {
        const char *word;
        enum slurm_key key;
    } keys[] = {{"SwitchName", KEY_SWITCH}, {"BlockName", KEY_BLOCK},   {"Switches", KEY_SWITCHES},
                {"Nodes", KEY_NODES},       {"LinkSpeed", KEY_IGNORED}, {"BlockSizes", KEY_IGNORED}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct scan behind = *s;
        const size_t len = strlen(keys[i].word);
        if ((size_t)(s->end - s->at) <= len || strncasecmp(s->at, keys[i].word, len) != 0)
            continue;
        behind.at += len;
        scan_blank(&behind);
        if (behind.at < behind.end && *behind.at == '=') {
            s->at = behind.at + 1;
            scan_blank(s);
            return keys[i].key;
        }
    }
    return KEY_UNKNOWN;
}

/* The value of a key, in a copy that the reader frees; NULL: a failure. */
static const char *conf_value(struct slurm_reader *r, struct scan *s)
{
    const char *stop, *from = s->at;
    if (from < s->end && *from == '"') {
        from++;
        stop = memchr(from, '"', (size_t)(s->end - from));
    } else {
        for (stop = from; stop < s->end && strchr(" \t#", *stop) == NULL; stop++) {
            if (*stop == '\\' && stop + 1 == s->end)
                break;
        }
    }
    if (stop == NULL || stop == from || (from == s->at && memchr(from, '=', (size_t)(stop - from)) != NULL)) {
        scan_fail(s, s->at, PMIXFAB_ERR_SYNTAX,
                  stop == NULL ? "this quote is not closed" : "a value is missing");
        return NULL;
    }
    char *copy = FAB_ARRAY_ROOM(&r->texts, &r->texts_room, (uint64_t)r->n_texts + 1)
                     ? strndup(from, (size_t)(stop - from))
                     : NULL;
    if (copy == NULL) {
        scan_fail(s, s->at, PMIXFAB_ERR_NOMEM, "%s", pmixfab_strerror(PMIXFAB_ERR_NOMEM));
        return NULL;
    }
    r->texts[r->n_texts++] = copy;
    s->at = stop + (s->at[0] == '"');
    return copy;
}

static void conf_take(struct slurm_switch *line, enum slurm_key key, const char *value,
                      struct wiring_place at)
{
    if (key == KEY_SWITCH || key == KEY_BLOCK) {
        line->self = (struct wiring_end){.name = value, .len = strlen(value), .place = at, .is_switch = true};
        line->is_block = key == KEY_BLOCK;
    } else if (key == KEY_SWITCHES) {
        line->switches = value;
        line->switches_at = at;
    } else if (key == KEY_NODES) {
        line->nodes = value;
        line->nodes_at = at;
    }
}

/* A line and those that continue it. */
static int conf_read_line(struct slurm_reader *r, struct scan *s, const char **next, const char *end)
{
    struct slurm_switch line = {0};
    unsigned had = 0;
    for (conf_blank(s, next, end); s->rc == PMIXFAB_OK && s->at < s->end; conf_blank(s, next, end)) {
        const char *word = s->at;
        const enum slurm_key key = conf_key(s);
        const struct wiring_place at = {s->number, scan_column(s, s->at)};
        if (key == KEY_UNKNOWN)
            return scan_fail(
                s, word, PMIXFAB_ERR_SYNTAX,
                "this is no word of a topology.conf that says what is below a switch or in a block");
        if (key != KEY_IGNORED && (had >> key & 1) != 0)
            return scan_fail(s, word, PMIXFAB_ERR_CONFLICT, "a second one in this line");
        had |= 1u << key;
        const char *value = conf_value(r, s);
        if (value != NULL)
            conf_take(&line, key, value, at);
    }
    if (s->rc != PMIXFAB_OK || had == 0 || had == 1u << KEY_IGNORED)
        return s->rc;
    if (line.self.name == NULL ||
        (had & (1u << KEY_SWITCH | 1u << KEY_BLOCK)) == (1u << KEY_SWITCH | 1u << KEY_BLOCK))
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "a line has a SwitchName or a BlockName");
    return slurm_define(r, &line);
}

static int conf_read(struct slurm_reader *r, const char *text, size_t len)
{
    struct scan s = {.file = r->w.file, .err = r->w.err};
    int rc = PMIXFAB_OK;
    for (const char *next = text; rc == PMIXFAB_OK && scan_next_line(&s, &next, text + len);)
        rc = conf_read_line(r, &s, &next, text + len);
    return rc == PMIXFAB_OK ? s.rc : rc;
}

/* ---- the probe ---- */

/* topology.yaml is a list; a line of topology.conf begins with a word. */
static bool slurm_is_yaml(const char *text, size_t len)
{
    for (const char *at = text, *end = text + len; at < end;) {
        if (*at == '#') {
            at = memchr(at, '\n', (size_t)(end - at));
            if (at == NULL)
                return false;
        } else if (strchr(" \t\r\n", *at) == NULL) {
            return strchr("-[%{", *at) != NULL;
        }
        at++;
    }
    return false;
}

int slurm_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                struct fab_inventory *inv, struct fab_err *err)
{
    struct slurm_reader r = {.w = {.file = file, .err = err}, .sink = sink};
    const bool yaml = slurm_is_yaml(text, len);
    int rc = yaml ? slurm_read_yaml(&r, text, len) : conf_read(&r, text, len);
    if (rc == PMIXFAB_OK && r.n_switches == 0)
        rc = fab_fail(
            err, PMIXFAB_ERR_SYNTAX,
            "%s:1:1: not a single switch or block: it should be Slurm's topology.conf or topology.yaml",
            file);
    bool trees = false, blocks = false;
    for (uint32_t i = 0; i < r.n_switches; i++)
        *(r.switches[i].is_block ? &blocks : &trees) = true;
    if (rc == PMIXFAB_OK)
        rc = slurm_wire(&r);
    if (rc == PMIXFAB_OK && !yaml && trees && blocks)
        rc = wiring_find_views(&r.w);
    if (rc == PMIXFAB_OK)
        rc = wiring_inventory(&r.w, inv);
    if (yaml)
        slurm_close_yaml(&r);
    wiring_destroy(&r.w);
    for (uint32_t i = 0; i < r.n_texts; i++)
        free(r.texts[i]);
    free(r.texts);
    free(r.switches);
    return rc;
}

static int slurm_run(const struct probe_config *config, const struct probe_sink *sink,
                     struct fab_inventory *inv, struct fab_err *err)
{
    return source_file_run(config, slurm_parse, sink, inv, err);
}

const struct probe probe_slurm = {
    .name = "slurm",
    .summary = "PATH: Slurm's topology.conf or topology.yaml",
    .check = source_file_check,
    .run = slurm_run,
    .monitor_open = source_file_monitor,
    SOURCE_FILE_CALLBACKS,
};
