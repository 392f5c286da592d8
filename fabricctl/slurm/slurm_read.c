/* slurm_read.c - read topologies: topology.conf, topology.yaml, and the output of `scontrol show topology`.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/slurm/slurm.h"
#include "topo/base/array.h"
#include "topo/base/search.h"

#define NONE        UINT32_MAX
#define LEVELS_MOST 64u /* slurmctld ends at a tree of about 20 levels */

static const char *const kinds[] = {[SLURM_FLAT] = "flat",
                                    [SLURM_TREE] = "tree",
                                    [SLURM_BLOCK] = "block",
                                    [SLURM_RING] = "ring",
                                    [SLURM_TORUS3D] = "torus3d"};

const char *slurm_kind_name(enum slurm_kind kind)
{
    return kinds[kind];
}

/* A text that is being read. */
struct reader {
    const char *shown;
    unsigned line;
    struct slurm_topologies *out;
    struct fab_err *err;
    uint32_t n_names; /* expanded so far: a short text can stand for millions */
};

static int read_failed(const struct reader *r, const char *what, const char *word)
{
    return fab_fail(r->err, PMIXFAB_ERR_SYNTAX, "%s:%u: %s: %.80s: not a topology that fabricctl reads",
                    r->shown, r->line, what, word);
}

static int read_nomem(const struct reader *r)
{
    return fab_fail(r->err, PMIXFAB_ERR_NOMEM, "%s: out of memory", r->shown);
}

/* ---- topologies and units ---- */

static int add_topology(struct reader *r, const char *name, enum slurm_kind kind)
{
    struct slurm_topologies *all = r->out;
    if (!FAB_ARRAY_ROOM(&all->items, &all->room, all->n + UINT64_C(1)))
        return read_nomem(r);
    all->items[all->n] = (struct slurm_topology){.name = strdup(name), .kind = kind};
    return all->items[all->n++].name != NULL ? 0 : read_nomem(r);
}

static struct slurm_topology *newest(const struct reader *r)
{
    return r->out->n > 0 ? &r->out->items[r->out->n - 1] : NULL;
}

static int add_unit(struct reader *r, const char *name)
{
    struct slurm_topology *t = newest(r);
    if (!FAB_ARRAY_ROOM(&t->units, &t->units_room, t->n_units + UINT64_C(1)))
        return read_nomem(r);
    t->units[t->n_units] = (struct slurm_unit){.name = strdup(name), .parent = NONE};
    return t->units[t->n_units++].name != NULL ? 0 : read_nomem(r);
}

/* Set what is below the newest unit. Switches win over nodes: slurmctld shows both for an inner switch. */
static int set_below(struct reader *r, const char *list, bool switches)
{
    struct slurm_topology *t = newest(r);
    struct slurm_unit *unit = &t->units[t->n_units - 1];
    if (unit->inner && !switches)
        return 0;
    free(unit->below);
    unit->inner = switches;
    unit->below = strdup(list);
    return unit->below != NULL ? 0 : read_nomem(r);
}

/* Add a size of blocks, in order, once. */
static int add_size(struct reader *r, const char *text)
{
    struct slurm_topology *t = newest(r);
    char *end;
    const unsigned long size = strtoul(text, &end, 10);
    uint32_t at = 0;
    if (*text < '0' || *text > '9' || *end != '\0' || size == 0 || size > UINT32_MAX)
        return read_failed(r, "no size of blocks", text);
    while (at < t->n_sizes && t->sizes[at] < size)
        at++;
    if (at < t->n_sizes && t->sizes[at] == size)
        return 0;
    if (t->n_sizes == SLURM_SIZES)
        return read_failed(r, "too many sizes of blocks", text);
    memmove(&t->sizes[at + 1], &t->sizes[at], (t->n_sizes - at) * sizeof t->sizes[0]);
    t->sizes[at] = (uint32_t)size;
    t->n_sizes++;
    return 0;
}

static int add_sizes(struct reader *r, char *list)
{
    char *rest = NULL;
    int rc = 0;
    for (char *size = strtok_r(list, "[], ", &rest); rc == 0 && size != NULL;
         size = strtok_r(NULL, "[], ", &rest))
        rc = add_size(r, size);
    return rc;
}

/* ---- topology.conf, and slurmctld's answer ---- */

/* The first key of a line, which names a unit. */
static const struct first_key {
    const char *key;
    enum slurm_kind kind;
    bool skip; /* the line only gives a size */
} first_keys[] = {{"SwitchName", SLURM_TREE, false},
                  {"BlockName", SLURM_BLOCK, false},
                  {"AggregatedBlock", SLURM_BLOCK, true},
                  {"RingName", SLURM_RING, false},
                  {"TorusName", SLURM_TORUS3D, false}};

static int slurm_conf_word(struct reader *r, char *key, char *value, bool skip)
{
    if (strcmp(key, "BlockSize") == 0 || strcmp(key, "BlockSizes") == 0)
        return add_sizes(r, value);
    if (strcmp(key, "Nodes") == 0)
        return skip ? 0 : set_below(r, value, false);
    if (strcmp(key, "Switches") == 0)
        return skip ? 0 : set_below(r, value, true);
    if (strcmp(key, "Level") == 0) {
        struct slurm_topology *t = newest(r);
        if (t->units != NULL && !skip)
            t->units[t->n_units - 1].inner = strcmp(value, "0") != 0;
        return 0;
    }
    /* slurmctld also shows LinkSpeed, BlockIndex, RingSize, Dims */
    return 0;
}

static bool is_newest_torus(const struct reader *r, const char *name)
{
    const struct slurm_topology *t = newest(r);
    return t->kind == SLURM_TORUS3D && t->n_units > 0 && strcmp(t->units[t->n_units - 1].name, name) == 0;
}

/* Read one line; it is modified. */
static int slurm_conf_line(struct reader *r, char *line)
{
    const struct first_key *first = NULL;
    char *rest = NULL;
    int rc = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, " \t\r", &rest); rc == 0 && word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        char *value = strchr(word, '=');
        if (value == NULL || (value[1] == '\0' && first == NULL))
            return read_failed(r, "not KEY=VALUE", word);
        *value++ = '\0';
        if (first != NULL || (strcmp(word, "BlockSizes") == 0 && newest(r) != NULL)) {
            rc = slurm_conf_word(r, word, value, first != NULL && first->skip);
            continue;
        }
        for (size_t i = 0; first == NULL && i < CTL_COUNT(first_keys); i++)
            if (strcmp(first_keys[i].key, word) == 0)
                first = &first_keys[i];
        if (first == NULL)
            return read_failed(r, "unknown key", word);
        if (newest(r) == NULL)
            rc = add_topology(r, "default", first->kind);
        else if (newest(r)->kind != first->kind)
            rc = read_failed(r, "another kind than the lines before", word);
        /* slurmctld shows the placements of a torus in further lines with its name */
        if (rc == 0 && !first->skip && !is_newest_torus(r, value))
            rc = add_unit(r, value);
    }
    return rc;
}

/* ---- topology.yaml, as fabricctl writes it: one key a line, with its value ---- */

/* Add the nodes of a further region to the newest torus. */
static int add_region(struct reader *r, const char *list)
{
    struct slurm_unit *torus = &newest(r)->units[newest(r)->n_units - 1];
    char *all = NULL;
    if (asprintf(&all, "%s,%s", torus->below, list) < 0)
        return read_nomem(r);
    free(torus->below);
    torus->below = all;
    return 0;
}

static int yaml_unit_key(struct reader *r, const char *key, const char *value)
{
    struct slurm_topology *t = newest(r);
    if (t->n_units == 0)
        return read_failed(r, "a list before its switch or block", key);
    if (t->kind == SLURM_TORUS3D && t->units[t->n_units - 1].below != NULL)
        return add_region(r, value);
    return set_below(r, value, strcmp(key, "children") == 0);
}

static bool is_one_of(const char *key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

static int yaml_key(struct reader *r, const char *key, char *value)
{
    static const char *const of_units[] = {"switch", "block", "ring", "name"};
    static const char *const lists[] = {"switches", "blocks", "rings", "toruses", "block_sizes"};
    static const char *const of_torus[] = {
        "dims", "x", "y", "z", "regions", "placements", "anchor_seed", "anchor_spacing", "anchor"};
    struct slurm_topology *t = newest(r);
    if (strcmp(key, "topology") == 0)
        return add_topology(r, value, SLURM_FLAT);
    if (t == NULL)
        return read_failed(r, "before the first topology", key);
    /* "ring:" begins the rings of a topology, and "ring: NAME" is one of them */
    for (size_t i = 0; i < CTL_COUNT(kinds); i++)
        if (strcmp(kinds[i], key) == 0 && (*value == '\0' || i == SLURM_FLAT)) {
            t->kind = (enum slurm_kind)i;
            return 0;
        }
    if (strcmp(key, "block_sizes") == 0)
        return add_sizes(r, value);
    if (strcmp(key, "nodes") == 0 || strcmp(key, "children") == 0)
        return yaml_unit_key(r, key, value);
    if (*value != '\0' && is_one_of(key, of_units, CTL_COUNT(of_units)))
        return add_unit(r, value);
    if (strcmp(key, "cluster_default") == 0 || is_one_of(key, lists, CTL_COUNT(lists)) ||
        (t->kind == SLURM_TORUS3D && is_one_of(key, of_torus, CTL_COUNT(of_torus))))
        return 0;
    return read_failed(r, "unknown key", key);
}

/* Remove quotes and the blanks around a value, in place. */
static char *yaml_value(char *text)
{
    size_t len;
    text += strspn(text, " \t");
    len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL)
        text[--len] = '\0';
    if (len > 1 && text[0] == '"' && text[len - 1] == '"') {
        text[len - 1] = '\0';
        text++;
    }
    return text;
}

static int yaml_line(struct reader *r, char *line)
{
    char *colon;
    line[strcspn(line, "#")] = '\0';
    line = yaml_value(line);
    if (*line == '\0' || strcmp(line, "---") == 0)
        return 0;
    if (strncmp(line, "- ", 2) == 0)
        line = yaml_value(line + 2);
    colon = strchr(line, ':');
    if (colon == NULL) /* an item of block_sizes */
        return newest(r) != NULL ? add_size(r, line) : read_failed(r, "not KEY: VALUE", line);
    *colon = '\0';
    return yaml_key(r, line, yaml_value(colon + 1));
}

/* ---- names, parents and places ---- */

static int compare_unit_names(const void *a, const void *b, void *topology)
{
    const struct slurm_topology *t = topology;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return strcmp(t->units[x].name, t->units[y].name);
}

static int compare_node_places(const void *a, const void *b)
{
    const struct slurm_place *x = a, *y = b;
    const int order = strcmp(x->node, y->node);
    return order != 0 ? order : (x->unit > y->unit) - (x->unit < y->unit);
}

uint32_t slurm_unit_named(const struct slurm_topology *t, const char *name)
{
    const uint32_t i = FAB_LOWER_BOUND(0, t->n_units, at, strcmp(t->units[t->by_name[at]].name, name) < 0);
    return i < t->n_units && strcmp(t->units[t->by_name[i]].name, name) == 0 ? t->by_name[i] : NONE;
}

const struct slurm_place *slurm_places_of(const struct slurm_topology *t, const char *node, uint32_t *n)
{
    const uint32_t first = FAB_LOWER_BOUND(0, t->n_places, at, strcmp(t->places[at].node, node) < 0);
    *n = 0;
    while (first + *n < t->n_places && strcmp(t->places[first + *n].node, node) == 0)
        (*n)++;
    return t->places + first;
}

uint32_t slurm_unit_of(const struct slurm_topology *t, const char *node)
{
    uint32_t n;
    const struct slurm_place *places = slurm_places_of(t, node, &n);
    return n > 0 ? places->unit : NONE;
}

const struct slurm_topology *slurm_topology_named(const struct slurm_topologies *all, const char *name)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (strcmp(all->items[i].name, name) == 0)
            return &all->items[i];
    return NULL;
}

/* Put the units below an inner one, or the nodes of a leaf. */
static int finish_unit(struct reader *r, struct slurm_topology *t, uint32_t u)
{
    struct slurm_unit *unit = &t->units[u];
    struct fab_hostlist *list = &t->lists[u];
    struct fab_err err;
    const uint32_t most = FAB_HOSTLIST_MAX - r->n_names;
    const int rc = unit->below != NULL ? fab_hostlist_parse_most(unit->below, most, list, &err) : 0;
    if (rc != 0)
        return fab_fail(r->err, rc, "%s: %s: %s", r->shown, unit->name, err.text);
    r->n_names += list->n;
    for (uint32_t i = 0; i < list->n && unit->inner; i++) {
        const uint32_t child = slurm_unit_named(t, list->names[i]);
        if (child == NONE)
            return fab_fail(r->err, PMIXFAB_ERR_SYNTAX, "%s: %s has the switch %s, which is not there",
                            r->shown, unit->name, list->names[i]);
        t->units[child].parent = u;
    }
    if (unit->inner)
        return 0;
    if (!FAB_ARRAY_ROOM(&t->places, &t->places_room, (uint64_t)t->n_places + list->n + 1))
        return read_nomem(r);
    for (uint32_t i = 0; i < list->n; i++)
        t->places[t->n_places++] = (struct slurm_place){list->names[i], u};
    return 0;
}

/* Return whether the way up from a unit does not end, or is longer than slurmctld permits. */
static bool is_in_circle(const struct slurm_topology *t, uint32_t u)
{
    uint32_t height = 0;
    while (t->units[u].parent != NONE && height++ < LEVELS_MOST)
        u = t->units[u].parent;
    return height > LEVELS_MOST;
}

static int finish_topology(struct reader *r, struct slurm_topology *t)
{
    int rc = 0;
    t->by_name = malloc((t->n_units + (size_t)1) * sizeof *t->by_name);
    t->lists = calloc(t->n_units + (size_t)1, sizeof *t->lists);
    if (t->by_name == NULL || t->lists == NULL)
        return read_nomem(r);
    for (uint32_t u = 0; u < t->n_units; u++)
        t->by_name[u] = u;
    qsort_r(t->by_name, t->n_units, sizeof *t->by_name, compare_unit_names, t);
    for (uint32_t i = 1; i < t->n_units; i++)
        if (strcmp(t->units[t->by_name[i]].name, t->units[t->by_name[i - 1]].name) == 0)
            return fab_fail(r->err, PMIXFAB_ERR_SYNTAX, "%s: %s is there twice", r->shown,
                            t->units[t->by_name[i]].name);
    for (uint32_t u = 0; rc == 0 && u < t->n_units; u++)
        rc = finish_unit(r, t, u);
    for (uint32_t u = 0; rc == 0 && u < t->n_units; u++)
        if (is_in_circle(t, u))
            rc =
                fab_fail(r->err, PMIXFAB_ERR_SYNTAX, "%s: %s is above itself, or below more than %u switches",
                         r->shown, t->units[u].name, LEVELS_MOST);
    if (t->n_places > 0)
        qsort(t->places, t->n_places, sizeof *t->places, compare_node_places);
    return rc;
}

int slurm_read(const char *text, const char *shown, struct slurm_topologies *out, struct fab_err *err)
{
    struct reader r = {.shown = shown, .out = out, .err = err};
    char *copy = strdup(text);
    int rc = 0;
    *out = (struct slurm_topologies){.yaml = strncmp(text, "---", 3) == 0 || strstr(text, "\n---") != NULL};
    if (copy == NULL)
        return read_nomem(&r);
    for (char *line = copy, *next; rc == 0 && line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        r.line++;
        rc = out->yaml ? yaml_line(&r, line) : slurm_conf_line(&r, line);
    }
    for (uint32_t i = 0; rc == 0 && i < out->n; i++)
        rc = finish_topology(&r, &out->items[i]);
    free(copy);
    if (rc != 0)
        slurm_topologies_free(out);
    return rc;
}

void slurm_topologies_free(struct slurm_topologies *topologies)
{
    for (uint32_t i = 0; i < topologies->n; i++) {
        struct slurm_topology *t = &topologies->items[i];
        for (uint32_t u = 0; u < t->n_units; u++) {
            free(t->units[u].name);
            free(t->units[u].below);
            if (t->lists != NULL)
                fab_hostlist_free(&t->lists[u]);
        }
        free(t->name);
        free(t->units);
        free(t->by_name);
        free(t->places);
        free(t->lists);
    }
    free(topologies->items);
    *topologies = (struct slurm_topologies){.n = 0};
}
