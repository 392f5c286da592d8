/*
 * slurm.c - the probe `slurm`: topology.conf of topology/tree and topology/block, and topology.yaml.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "probes/capture/capture_file.h"
#include "probes/import/import.h"
#include "topo/base/array.h"

/* A switch or a block with the names below it; texts belong to the reader. */
struct slurm_switch {
    struct wiring_end self;
    struct wired_node *node;
    const char *switches, *nodes; /* lists; NULL: none */
    struct wiring_place switches_at, nodes_at;
    bool is_block;
};

struct slurm_reader {
    struct wiring w;
    const struct probe_sink *sink;
    struct slurm_switch *switches;
    uint32_t n_switches, room;
    char **texts; /* of topology.conf */
    uint32_t n_texts, texts_room;
    struct yaml_file yaml; /* of topology.yaml */
    bool yaml_open;
};

/* ---- the switches and blocks of Slurm's topologies ---- */

#define BLOCKS_JOIN "blocks" /* the generated switch above them */

static int slurm_define(struct slurm_reader *r, const struct slurm_switch *defined)
{
    struct wired_node *node;
    if (wiring_find(&r->w, &defined->self) != NULL)
        return wiring_fail(&r->w, defined->self.place, PMIXFAB_ERR_CONFLICT,
                           "a second \"%.*s\" of this topology", (int)defined->self.len, defined->self.name);
    int rc = wiring_node(&r->w, &defined->self, &node);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!FAB_ARRAY_ROOM(&r->switches, &r->room, (uint64_t)r->n_switches + 1))
        return wiring_fail(&r->w, defined->self.place, PMIXFAB_ERR_NOMEM, "out of memory");
    r->switches[r->n_switches] = *defined;
    r->switches[r->n_switches++].node = node;
    return PMIXFAB_OK;
}

static int slurm_wire(struct slurm_reader *r)
{
    int rc = PMIXFAB_OK;
    bool blocks = false;
    for (uint32_t i = 0; i < r->n_switches && rc == PMIXFAB_OK; i++) {
        const struct slurm_switch *s = &r->switches[i];
        struct wiring_end list = {.part = s->self.part, .place = s->switches_at, .is_switch = true};
        if (s->switches != NULL)
            rc = wiring_list(&r->w, s->node, s->switches, &list);
        list = (struct wiring_end){.place = s->nodes_at};
        if (rc == PMIXFAB_OK && s->nodes != NULL)
            rc = wiring_list(&r->w, s->node, s->nodes, &list);
        if (rc != PMIXFAB_OK || !s->is_block)
            continue;
        blocks = true;
        struct wiring_link join = {.below = s->node, .place = s->self.place};
        struct wiring_end above = s->self;
        above.name = BLOCKS_JOIN;
        above.len = sizeof(BLOCKS_JOIN) - 1;
        rc = wiring_node(&r->w, &above, &join.above) ?: wiring_cable(&r->w, &join);
    }
    if (blocks && rc == PMIXFAB_OK)
        probe_note(r->sink, PMIXFAB_LOG_INFO,
                   "%s: one switch joins all blocks: groups of blocks by BlockSizes are ignored", r->w.file);
    return rc;
}

/*
 * ---- topology.yaml: several topologies; each is a plane with the topology's name.
 *
 *   - topology: fast
 *     tree:
 *       switches:
 *         - switch: top
 *           children: leaf[1-2]
 *         - switch: leaf1
 *           nodes: n[1-4]
 *   - topology: nvlink
 *     block:
 *       block_sizes: [18]
 *       blocks:
 *         - block: b1
 *           nodes: n[1-18]
 */

static int slurm_yaml_list(const struct slurm_reader *r, const yaml_node_t *node, const char **list,
                           struct wiring_place *place)
{
    struct wiring_end end;
    if (node == NULL)
        return PMIXFAB_OK;
    int rc = yaml_file_name(&r->yaml, node, "a list of hosts or switches", &end);
    if (rc != PMIXFAB_OK)
        return rc;
    *list = end.name;
    *place = end.place;
    return PMIXFAB_OK;
}

/* Read `- switch: NAME` or `- block: NAME`, and the names below. */
static int slurm_yaml_switch(struct slurm_reader *r, const yaml_node_t *item, uint8_t part, bool is_block)
{
    struct slurm_switch defined = {.is_block = is_block};
    const yaml_node_t *name = yaml_file_get(&r->yaml, item, is_block ? "block" : "switch");
    if (name == NULL)
        return wiring_fail(&r->w, yaml_file_place(item), PMIXFAB_ERR_SYNTAX, "expected `%s:` and its name",
                           is_block ? "block" : "switch");
    int rc =
        yaml_file_name(&r->yaml, name, "a name", &defined.self)
            ?: slurm_yaml_list(r, yaml_file_get(&r->yaml, item, "nodes"), &defined.nodes, &defined.nodes_at);
    if (rc == PMIXFAB_OK && !is_block)
        rc = slurm_yaml_list(r, yaml_file_get(&r->yaml, item, "children"), &defined.switches,
                             &defined.switches_at);
    defined.self.part = part;
    defined.self.is_switch = true;
    return rc == PMIXFAB_OK ? slurm_define(r, &defined) : rc;
}

static bool slurm_yaml_is_true(const yaml_node_t *node)
{
    static const char *const words[] = {"true", "yes", "on", "1"};
    for (size_t i = 0; node != NULL && node->type == YAML_SCALAR_NODE && i < sizeof(words) / sizeof(words[0]);
         i++)
        if (strcasecmp((const char *)node->data.scalar.value, words[i]) == 0)
            return true;
    return false;
}

/* Read a topology; its switches are the part number n_views. */
static int slurm_yaml_topology(struct slurm_reader *r, const yaml_node_t *topology)
{
    struct wiring_end end;
    const yaml_node_t *tree = yaml_file_get(&r->yaml, topology, "tree"),
                      *block = yaml_file_get(&r->yaml, topology, "block"),
                      *list = tree != NULL ? yaml_file_get(&r->yaml, tree, "switches")
                                           : yaml_file_get(&r->yaml, block, "blocks"),
                      *name = yaml_file_get(&r->yaml, topology, "topology"), *item;
    const uint8_t part = (uint8_t)r->w.n_views;
    if (name == NULL)
        return wiring_fail(&r->w, yaml_file_place(topology), PMIXFAB_ERR_SYNTAX,
                           "expected `topology:` and its name, as in Slurm's topology.yaml");
    int rc = yaml_file_name(&r->yaml, name, "a name", &end);
    if (rc == PMIXFAB_OK && tree == NULL && block == NULL)
        probe_note(r->sink, PMIXFAB_LOG_INFO,
                   "%s:%u:%u: topology \"%.64s\" has neither a tree nor blocks: left out", r->w.file,
                   end.place.line, end.place.column, end.name);
    else if (rc == PMIXFAB_OK)
        rc = wiring_view(&r->w, &end,
                         slurm_yaml_is_true(yaml_file_get(&r->yaml, topology, "cluster_default")));
    for (size_t i = 0; rc == PMIXFAB_OK && (item = yaml_file_item(&r->yaml, list, i)) != NULL; i++)
        rc = slurm_yaml_switch(r, item, part, tree == NULL);
    return rc;
}

static int slurm_read_yaml(struct slurm_reader *r, const char *text, size_t len)
{
    const yaml_node_t *topology;
    int rc = yaml_file_open(&r->yaml, &r->w, text, len);
    r->yaml_open = rc == PMIXFAB_OK;
    const yaml_node_t *root = r->yaml_open ? yaml_document_get_root_node(&r->yaml.document) : NULL;
    for (size_t i = 0; rc == PMIXFAB_OK && (topology = yaml_file_item(&r->yaml, root, i)) != NULL; i++)
        rc = slurm_yaml_topology(r, topology);
    return rc;
}

static void slurm_close_yaml(struct slurm_reader *r)
{
    if (r->yaml_open)
        yaml_file_close(&r->yaml);
}

/*
 * ---- the probe `slurm`: topology.conf of topology/tree and topology/block, and topology.yaml.
 *
 *   SwitchName=leaf1 Nodes=n[1-4,7]          BlockName=b1 Nodes=n[1-18]
 *   SwitchName=top Switches=leaf[1-2]        BlockSizes=18
 *
 * A block is a switch, and one generated switch joins them all, whatever the sizes of blocks.
 */

/* ---- topology.conf ---- */

enum slurm_key { KEY_SWITCH, KEY_BLOCK, KEY_SWITCHES, KEY_NODES, KEY_IGNORED, KEY_UNKNOWN };

/* The line after a backslash at the end of a line is a part of it. */
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

/* Return the value of a key, in a copy that the reader frees; NULL: a failure. */
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

/* Read a line with its continuation lines. */
static int conf_read_line(struct slurm_reader *r, struct scan *s, const char **next, const char *end)
{
    struct slurm_switch line = {0};
    unsigned had = 0;
    for (conf_blank(s, next, end); s->rc == PMIXFAB_OK && s->at < s->end; conf_blank(s, next, end)) {
        const char *word = s->at;
        const enum slurm_key key = conf_key(s);
        const struct wiring_place at = {s->number, scan_column(s, s->at)};
        if (key == KEY_UNKNOWN)
            return scan_fail(s, word, PMIXFAB_ERR_SYNTAX,
                             "this word of a topology.conf does not describe a switch or a block");
        if (key != KEY_IGNORED && (had >> key & 1) != 0)
            return scan_fail(s, word, PMIXFAB_ERR_CONFLICT, "the same word twice in this line");
        had |= 1u << key;
        const char *value = conf_value(r, s);
        if (value != NULL)
            conf_take(&line, key, value, at);
    }
    if (s->rc != PMIXFAB_OK || had == 0 || had == 1u << KEY_IGNORED)
        return s->rc;
    if (line.self.name == NULL ||
        (had & (1u << KEY_SWITCH | 1u << KEY_BLOCK)) == (1u << KEY_SWITCH | 1u << KEY_BLOCK))
        return scan_fail(s, s->line, PMIXFAB_ERR_SYNTAX, "the line needs a SwitchName or a BlockName");
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
        rc =
            fab_fail(err, PMIXFAB_ERR_SYNTAX,
                     "%s:1:1: no switch or block: it should be Slurm's topology.conf or topology.yaml", file);
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

SOURCE_FILE_PROBE(slurm, "slurm", "PATH: Slurm's topology.conf or topology.yaml", slurm_parse);
