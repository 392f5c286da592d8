/* export_names.c - names of a tree's vertices: by rules, unique, and the same as before; limits of a format.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricctl/export/export.h"
#include "topo/base/order.h"

/* ---- names of a tree's vertices: independent of other vertices ---- */

#define LETTERS_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

bool ctl_plain_name(const char *name, size_t most)
{
    const size_t len = strlen(name);
    return len > 0 && len <= most && strspn(name, LETTERS_DIGITS "._-") == len &&
           strspn(name, LETTERS_DIGITS) > 0 && strchr("._-", name[len - 1]) == NULL;
}

bool ctl_reserved_name(const char *list, const char *name)
{
    const size_t len = strlen(name);
    for (; list != NULL && len > 0; list = *list == ',' ? list + 1 : NULL) {
        const size_t n = strcspn(list, ",");
        if (n == len && strncasecmp(list, name, len) == 0)
            return true;
        list += n;
    }
    return false;
}

void ctl_switch_name(char out[static CTL_VERTEX_NAME], const char *name, uint64_t guid)
{
    if (ctl_plain_name(name, CTL_NAME_MOST) && !ctl_reserved_name(CTL_SLURM_WORDS, name))
        snprintf(out, CTL_VERTEX_NAME, "%s", name);
    else
        snprintf(out, CTL_VERTEX_NAME, "s%" PRIx64, guid);
}

const char *ctl_plane_name(const struct pmixfab_plane *plane, char name[static CTL_VERTEX_NAME])
{
    if (ctl_plain_name(plane->name, CTL_NAME_MOST / 2) && !ctl_reserved_name(CTL_SLURM_WORDS, plane->name))
        return plane->name;
    snprintf(name, CTL_VERTEX_NAME, "plane%u", plane->index);
    return name;
}

/*
 * Sort vertices with their previous name first, then inner vertices, then by GUID: the first one of a name
 * keeps it.
 */
static int compare_vertices(const void *a, const void *b)
{
    const struct ctl_vertex *x = *(struct ctl_vertex *const *)a, *y = *(struct ctl_vertex *const *)b;
    return strcmp(x->name, y->name)
             ?: FAB_ORDER(y->kept, x->kept)
             ?: FAB_ORDER(y->height > 0, x->height > 0)
             ?: FAB_ORDER(x->guid, y->guid);
}

/* Make one pass over all; return false if nothing had to change. */
static bool names_once_apart(struct ctl_vertex **order, uint32_t n)
{
    char kept[CTL_VERTEX_NAME] = "";
    bool renamed = false;
    qsort(order, n, sizeof(struct ctl_vertex *), compare_vertices);
    for (uint32_t i = 0; i < n; i++) {
        struct ctl_vertex *v = order[i];
        if (strcmp(v->name, kept) != 0) {
            memcpy(kept, v->name, sizeof kept);
            continue;
        }
        snprintf(v->name + strlen(v->name), sizeof v->name - strlen(v->name), "-s%" PRIx64, v->guid);
        ctl_error("two switches are called %s: the one %s GUID 0x%016" PRIx64 " is written as %s", kept,
                  v->height > 0 ? "over" : "with", v->guid, v->name);
        renamed = true;
    }
    return renamed;
}

enum ctl_exit ctl_names_apart(struct ctl_tree *tree)
{
    struct ctl_vertex **order = malloc((tree->n + (size_t)1) * sizeof *order);
    enum ctl_exit status = CTL_DONE;
    unsigned times = 0;
    if (order == NULL)
        return ctl_nomem();
    for (uint32_t v = 0; v < tree->n; v++)
        order[v] = &tree->vertices[v];
    /* a new name may equal the name of another switch */
    while (status == CTL_DONE && names_once_apart(order, tree->n))
        if (++times == 3)
            status = ctl_error("not written: switches still have one name: give them names of their own");
    free(order);
    return status;
}

void ctl_tree_mapping(FILE *out, const struct ctl_tree *tree, const char *const *names)
{
    fputs("# Switches with hosts: name above, GUID, name in the fabric\n", out);
    for (uint32_t i = 0; i < tree->n_edges; i++) {
        const uint32_t v = tree->edges[i].vertex;
        const char *name = names != NULL && names[v] != NULL ? names[v] : tree->vertices[v].name;
        fprintf(out, "# %s 0x%016" PRIx64 " %s\n", name, tree->edges[i].guid, tree->edges[i].name);
    }
}

/* ---- the file of names beside an export ---- */

/* Return the path of FILE.names. False: no memory. */
static bool names_path(const char *output, char **path)
{
    struct stat st;
    char *real;
    bool good;
    if (output == NULL || strcmp(output, "-") == 0 || (stat(output, &st) == 0 && !S_ISREG(st.st_mode)))
        return true;
    real = realpath(output, NULL);
    good = asprintf(path, "%s.names", real != NULL ? real : output) >= 0;
    if (!good)
        *path = NULL;
    free(real);
    return good;
}

enum ctl_exit ctl_names_load(struct ctl_export_names *names, const char *output)
{
    size_t size;
    char *text;
    if (names->is != NULL)
        return CTL_DONE;
    names->is = json_object();
    names->hosts = json_object();
    if (names->is == NULL || names->hosts == NULL || !names_path(output, &names->path))
        return ctl_nomem();
    text = names->path != NULL ? ctl_target_read(names->path, &size) : NULL;
    if (names->path == NULL || (text == NULL && access(names->path, F_OK) != 0))
        return CTL_DONE;
    names->was = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(text);
    return json_is_object(names->was)
               ? CTL_DONE
               : ctl_error("not written: %s: cannot read names of switches from it: move it away",
                           names->path);
}

enum ctl_exit ctl_names_save(const struct ctl_export_names *names)
{
    struct ctl_target target;
    enum ctl_exit status;
    char *text;
    if (names->path == NULL || json_equal(names->was, names->is))
        return CTL_DONE;
    text = json_dumps(names->is, JSON_INDENT(1));
    if (text == NULL)
        return ctl_nomem();
    status = ctl_target_open(names->path, &target) ?: ctl_target_write(&target, text, strlen(text));
    if (status == CTL_DONE && fsync(target.fd) != 0)
        status = ctl_target_failed(&target, "cannot write");
    free(text);
    return ctl_target_close(&target, false, status);
}

void ctl_names_free(struct ctl_export_names *names)
{
    free(names->path);
    json_decref(names->was);
    json_decref(names->is);
    json_decref(names->hosts);
}

/*
 * ---- vertices keep their names
 *
 * A leaf has the name of its switch. An inner vertex has the name that most switches below it had.
 *
 * {"0xGUID": {"name": own name, "leaf": name, "above": [name, ...]}, ...}
 *
 * Other keys are "hosts" (chosen_hosts.c), "members" (export_above.c) and "blocks" (block_places.c).
 */

/*
 * The best kept name for a vertex. The best name has the most switches in common with the vertex. If several
 * names have equally many, the best name has the fewest other switches.
 */
struct kept_name {
    const char *name;
    json_int_t both, either; /* switches of both; of either */
};

static bool kept_better(const struct kept_name *a, const struct kept_name *b)
{
    return a->both > b->both || (a->both == b->both && a->either < b->either);
}

const char *ctl_names_guid(char out[static CTL_VERTEX_NAME], uint64_t guid)
{
    snprintf(out, CTL_VERTEX_NAME, "0x%016" PRIx64, guid);
    return out;
}

const char *ctl_names_text(const json_t *value)
{
    const char *text = json_string_value(value);
    return text != NULL && ctl_plain_name(text, CTL_VERTEX_NAME - 1) &&
                   !ctl_reserved_name(CTL_SLURM_WORDS, text)
               ? text
               : "";
}

/*
 * Return whether a leaf's previous name follows from the rules, also with a GUID after it because another
 * vertex had the name.
 */
static bool kept_by_rule(const char *was, const char *rule)
{
    const size_t len = strlen(rule);
    const char *more = was + len;
    return strncmp(was, rule, len) == 0 &&
           (*more == '\0' ||
            (strncmp(more, "-s", 2) == 0 && more[2 + strspn(more + 2, "0123456789abcdef")] == '\0'));
}

static void kept_put(struct ctl_vertex *vertex, const char *name)
{
    snprintf(vertex->name, sizeof vertex->name, "%s", name);
    vertex->kept = true;
}

/* Add one to counts[name][key]. */
static bool kept_count(json_t *counts, const char *name, const char *key)
{
    json_t *of_name = json_object_get(counts, name);
    if (of_name == NULL && json_object_set_new(counts, name, of_name = json_object()) != 0)
        return false;
    return json_object_set_new(of_name, key, json_integer(ctl_number_of(of_name, key) + 1)) == 0;
}

/*
 * Fill in counts[name][vertex]: switches that were below this name and are below this vertex.
 * counts[name][""]: all that were below it.
 */
static bool kept_above(json_t *counts, const json_t *was, const struct ctl_tree *tree, uint32_t leaf)
{
    bool good = true;
    json_t *name;
    size_t i;
    json_array_foreach(json_object_get(was, "above"), i, name)
    {
        for (uint32_t v = tree->vertices[leaf].parent; v != UINT32_MAX; v = tree->vertices[v].parent) {
            char key[16];
            snprintf(key, sizeof key, "%u", v);
            good &= kept_count(counts, ctl_names_text(name), key);
        }
    }
    return good;
}

static bool kept_sizes(json_t *counts, json_t *was)
{
    const char *guid;
    json_t *sw, *name;
    bool good = true;
    size_t i;
    json_object_foreach(was, guid, sw)
    {
        if (strncmp(guid, "0x", 2) != 0)
            continue;
        json_array_foreach(json_object_get(sw, "above"), i, name)
        {
            good &= kept_count(counts, ctl_names_text(name), "");
        }
    }
    return good;
}

/* Return whether the plane makes such names. If the plane was renamed, its vertices are renamed, too. */
static bool kept_of_plane(const char *name, const char *plane)
{
    const size_t len = strlen(plane);
    return strncmp(name, plane, len) == 0 && (name[len] == '\0' || name[len] == '-');
}

/*
 * Give each name to the vertex that has most in common with it, unless another name has more. below: the
 * switches of each vertex.
 */
static void kept_give(json_t *counts, const char *plane, const uint32_t *below, struct kept_name *given)
{
    const char *name, *key;
    json_t *of_name, *both;
    json_object_foreach(counts, name, of_name)
    {
        const json_int_t size = json_integer_value(json_object_get(of_name, ""));
        struct kept_name best = {NULL, 0, 0};
        uint32_t at = 0;
        json_object_foreach(of_name, key, both)
        {
            const uint32_t v = (uint32_t)strtoul(key, NULL, 10);
            const struct kept_name here = {name, json_integer_value(both),
                                           size + below[v] - json_integer_value(both)};
            if (*key != '\0' && kept_of_plane(name, plane) && kept_better(&here, &best)) {
                best = here;
                at = v;
            }
        }
        if (kept_better(&best, &given[at]))
            given[at] = best;
    }
}

enum ctl_exit ctl_names_keep(const struct ctl_export_names *names, struct ctl_tree *tree, uint32_t first,
                             const struct pmixfab_plane *plane)
{
    json_t *counts = json_object();
    uint32_t *below = calloc(tree->n + (size_t)1, sizeof *below);
    struct kept_name *given = calloc(tree->n + (size_t)1, sizeof *given);
    bool good = counts != NULL && below != NULL && given != NULL && kept_sizes(counts, names->was);
    char buf[CTL_VERTEX_NAME];
    for (uint32_t i = 0; good && i < tree->n_edges; i++) {
        const uint32_t leaf = tree->edges[i].vertex;
        const json_t *was = json_object_get(names->was, ctl_names_guid(buf, tree->edges[i].guid));
        const char *name = ctl_names_text(json_object_get(was, "leaf"));
        if (leaf < first)
            continue;
        if (!tree->vertices[leaf].kept && kept_by_rule(name, tree->vertices[leaf].name))
            kept_put(&tree->vertices[leaf], name);
        for (uint32_t v = tree->vertices[leaf].parent; v != UINT32_MAX; v = tree->vertices[v].parent)
            below[v]++;
        good = kept_above(counts, was, tree, leaf);
    }
    if (good)
        kept_give(counts, ctl_plane_name(plane, buf), below, given);
    for (uint32_t v = first; good && v < tree->n; v++)
        if (given[v].name != NULL)
            kept_put(&tree->vertices[v], given[v].name);
    json_decref(counts);
    free(below);
    free(given);
    return good ? CTL_DONE : ctl_nomem();
}

enum ctl_exit ctl_names_note(const struct ctl_export_names *names, const struct ctl_tree *tree)
{
    bool good = ctl_hosts_note(names, tree);
    for (uint32_t i = 0; i < tree->n_edges; i++) {
        const struct ctl_edge *edge = &tree->edges[i];
        json_t *above = json_array();
        char guid[CTL_VERTEX_NAME];
        for (uint32_t v = tree->vertices[edge->vertex].parent; v != UINT32_MAX; v = tree->vertices[v].parent)
            if (!tree->vertices[v].by_hand)
                good &= json_array_append_new(above, json_string(tree->vertices[v].name)) == 0;
        good &= json_object_set_new(names->is, ctl_names_guid(guid, edge->guid),
                                    json_pack("{s:s, s:s, s:o}", "name", edge->name, "leaf",
                                              tree->vertices[edge->vertex].name, "above", above)) == 0;
    }
    return good ? CTL_DONE : ctl_nomem();
}

/* ---- limits of a format ---- */

void ctl_export_lost(struct ctl_export *x, const char *fmt, ...)
{
    char *what = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&what, fmt, args) < 0)
        what = NULL;
    va_end(args);
    ctl_error("lost: %s", what != NULL ? what : "(out of memory)");
    free(what);
    x->n_lost++;
}

enum ctl_exit ctl_export_contradicts(void)
{
    return ctl_error("nothing to write: a plane's snapshot contradicts itself");
}
