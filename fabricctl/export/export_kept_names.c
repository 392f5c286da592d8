/*
 * export_kept_names.c - vertices stay called as they were: a leaf as its switch was, what is above as most of
 * the switches below it say.
 *
 * {"0xGUID": {"name": own name, "leaf": name, "above": [name, ...]}, ...}
 */
#include "fabricctl/export/export_kept_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/tree_names.h"

/* The name that has most switches in common with a vertex, and of such ones that has fewest others. */
struct kept_name {
    const char *name;
    json_int_t both, either; /* switches of both; of the one or the other */
};

static bool kept_better(const struct kept_name *a, const struct kept_name *b)
{
    return a->both > b->both || (a->both == b->both && a->either < b->either);
}

static const char *kept_guid(char out[static CTL_VERTEX_NAME], uint64_t guid)
{
    snprintf(out, CTL_VERTEX_NAME, "0x%016" PRIx64, guid);
    return out;
}

static const char *kept_text(const json_t *value)
{
    const char *text = json_string_value(value);

    return text != NULL && ctl_plain_name(text, CTL_VERTEX_NAME - 1) &&
                   !ctl_reserved_name(CTL_SLURM_WORDS, text)
               ? text
               : "";
}

/* A leaf is called as the rules say, or has a GUID behind that, where another one had its name. */
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

/* One more in counts[name][key]. */
static bool kept_count(json_t *counts, const char *name, const char *key)
{
    json_t *of_name = json_object_get(counts, name);

    if (of_name == NULL && json_object_set_new(counts, name, of_name = json_object()) != 0)
        return false;
    return json_object_set_new(of_name, key,
                               json_integer(json_integer_value(json_object_get(of_name, key)) + 1)) == 0;
}

/* counts[name][vertex]: switches that were below this name and are below this vertex. counts[name][""]: all
 * that were below it. */
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
            good &= kept_count(counts, kept_text(name), key);
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
        json_array_foreach(json_object_get(sw, "above"), i, name)
        {
            good &= kept_count(counts, kept_text(name), "");
        }
    }
    return good;
}

/* Does the plane give such names? Where it is called otherwise now, its vertices are. */
static bool kept_of_plane(const char *name, const char *plane)
{
    const size_t len = strlen(plane);

    return strncmp(name, plane, len) == 0 && (name[len] == '\0' || name[len] == '-');
}

/* Each name goes to the vertex that it has most in common with, unless another name has more. below: the
 * switches of each vertex. */
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

enum ctl_exit ctl_names_keep(const struct ctl_names *names, struct ctl_tree *tree, uint32_t first,
                             const struct pmixfab_plane *plane)
{
    json_t *counts = json_object();
    uint32_t *below = calloc(tree->n + (size_t)1, sizeof *below);
    struct kept_name *given = calloc(tree->n + (size_t)1, sizeof *given);
    bool good = counts != NULL && below != NULL && given != NULL && kept_sizes(counts, names->was);
    char buf[CTL_VERTEX_NAME];

    for (uint32_t i = 0; good && i < tree->n_edges; i++) {
        const uint32_t leaf = tree->edges[i].vertex;
        const json_t *was = json_object_get(names->was, kept_guid(buf, tree->edges[i].guid));
        const char *name = kept_text(json_object_get(was, "leaf"));

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

enum ctl_exit ctl_names_note(const struct ctl_names *names, const struct ctl_tree *tree)
{
    bool good = true;

    for (uint32_t i = 0; i < tree->n_edges; i++) {
        const struct ctl_edge *edge = &tree->edges[i];
        json_t *above = json_array();
        char guid[CTL_VERTEX_NAME];

        for (uint32_t v = tree->vertices[edge->vertex].parent; v != UINT32_MAX; v = tree->vertices[v].parent)
            good &= json_array_append_new(above, json_string(tree->vertices[v].name)) == 0;
        good &= json_object_set_new(names->is, kept_guid(guid, edge->guid),
                                    json_pack("{s:s, s:s, s:o}", "name", edge->name, "leaf",
                                              tree->vertices[edge->vertex].name, "above", above)) == 0;
    }
    return good ? CTL_DONE : ctl_nomem();
}
