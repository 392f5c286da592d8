/*
 * block_places.c - the places of blocks in their order. Slurm joins blocks that follow each other into larger
 * blocks, so a block keeps its place as long as FILE.names has it.
 *
 * {"blocks": {TOPOLOGY: [{"name": name, "pod": name, "switches": ["0xGUID", ...], "spare": true}, ...]}}
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/array.h"
#include "topo/base/order.h"

#define NONE UINT32_MAX
#define KEY  "blocks" /* in FILE.names; no GUID */

static struct ctl_place *place_add(struct ctl_blocks *blocks, const char *name)
{
    struct ctl_place *place;
    if (!FAB_ARRAY_ROOM(&blocks->places, &blocks->places_room, blocks->n_places + UINT64_C(1)))
        return NULL;
    place = &blocks->places[blocks->n_places++];
    *place = (struct ctl_place){.leaf = NONE};
    snprintf(place->name, sizeof place->name, "%s", name);
    return place;
}

enum ctl_exit ctl_places_load(const struct ctl_export_names *names, struct ctl_blocks *blocks)
{
    json_t *value;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(names->was, KEY), blocks->topology), i, value)
    {
        const char *name = ctl_names_text(json_object_get(value, "name"));
        struct ctl_place *place = *name != '\0' ? place_add(blocks, name) : NULL;
        if (*name == '\0') /* somebody wrote in it */
            continue;
        if (place == NULL)
            return ctl_nomem();
        snprintf(place->pod, sizeof place->pod, "%s", ctl_names_text(json_object_get(value, "pod")));
        place->spare = ctl_is(value, "spare");
        place->switches = json_incref(json_object_get(value, "switches"));
    }
    return CTL_DONE;
}

void ctl_places_free(struct ctl_blocks *blocks)
{
    for (uint32_t i = 0; i < blocks->n_places; i++)
        json_decref(blocks->places[i].switches);
    free(blocks->places);
    blocks->places = NULL;
    blocks->n_places = 0;
}

/* ---- leaves by the GUIDs of their switches, and vertices by their names ---- */

/* Return an object with the leaf of each GUID. NULL: no memory. */
static json_t *leaves_by_guid(const struct ctl_tree *tree)
{
    json_t *leaves = json_object();
    bool good = leaves != NULL;
    for (uint32_t e = 0; good && e < tree->n_edges; e++) {
        char guid[CTL_VERTEX_NAME];
        good = json_object_set_new(leaves, ctl_names_guid(guid, tree->edges[e].guid),
                                   json_integer(tree->edges[e].vertex)) == 0;
    }
    if (good)
        return leaves;
    json_decref(leaves);
    return NULL;
}

/* Return the leaf that has one of a place's switches; NONE: no leaf has. */
static uint32_t leaf_of_place(const struct ctl_place *place, const json_t *leaves)
{
    json_t *guid;
    size_t i;
    json_array_foreach(place->switches, i, guid)
    {
        const char *text = json_string_value(guid);
        const json_t *leaf = text != NULL ? json_object_get(leaves, text) : NULL;
        if (leaf != NULL)
            return (uint32_t)json_integer_value(leaf);
    }
    return NONE;
}

/* Return the number of leaves that are in no place; for each vertex, subtract those directly below it. */
static uint32_t without_new(const struct ctl_tree *tree, const bool *placed, uint32_t *gone)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < tree->n; v++) {
        const uint32_t above = tree->vertices[v].parent;
        if (tree->vertices[v].height == 0 && !placed[v] && above != NONE && gone[above] > 0) {
            gone[above]--;
            n++;
        }
    }
    return n;
}

bool ctl_places_gone(const struct ctl_blocks *blocks, const struct ctl_tree *tree, uint32_t *gone,
                     uint32_t *n_gone)
{
    json_t *leaves = leaves_by_guid(tree), *vertices = json_object();
    bool *placed = calloc(tree->n + (size_t)1, sizeof *placed);
    bool good = leaves != NULL && vertices != NULL && placed != NULL;
    for (uint32_t v = 0; good && v < tree->n; v++)
        good = json_object_set_new(vertices, tree->vertices[v].name, json_integer(v)) == 0;
    for (uint32_t i = 0; good && i < blocks->n_places; i++) {
        const struct ctl_place *place = &blocks->places[i];
        const json_t *pod = json_object_get(vertices, place->pod);
        const uint32_t leaf = leaf_of_place(place, leaves);
        if (leaf != NONE)
            placed[leaf] = true;
        else if (pod != NULL) {
            gone[json_integer_value(pod)]++;
            (*n_gone)++;
        }
    }
    if (good)
        *n_gone -= without_new(tree, placed, gone);
    json_decref(leaves);
    json_decref(vertices);
    free(placed);
    return good;
}

/* ---- leaves into places ---- */

static const char *pod_of(const struct ctl_tree *tree, uint32_t leaf)
{
    const uint32_t above = tree->vertices[leaf].parent;
    return above != NONE ? tree->vertices[above].name : "";
}

/* Return the best place for a new leaf. NULL: there is none. */
static struct ctl_place *place_for(const struct ctl_blocks *blocks, const struct ctl_tree *tree,
                                   uint32_t leaf)
{
    const char *pod = pod_of(tree, leaf);
    struct ctl_place *of_pod = NULL, *spare = NULL;
    for (uint32_t i = 0; i < blocks->n_places; i++) {
        struct ctl_place *place = &blocks->places[i];
        const bool used = json_array_size(place->switches) > 0;
        if (place->leaf != NONE)
            continue;
        if (used && strcmp(place->pod, pod) == 0) {
            if (strcmp(place->name, tree->vertices[leaf].name) == 0)
                return place;
            of_pod = of_pod == NULL ? place : of_pod;
        }
        if (!used && spare == NULL)
            spare = place;
    }
    return of_pod != NULL ? of_pod : spare;
}

/* Add a switch to the place of its leaf. */
static bool place_switch(struct ctl_blocks *blocks, const uint32_t *place_of, const struct ctl_edge *edge)
{
    const uint32_t place = place_of[edge->vertex];
    char guid[CTL_VERTEX_NAME];
    return place == NONE || json_array_append_new(blocks->places[place].switches,
                                                  json_string(ctl_names_guid(guid, edge->guid))) == 0;
}

/* Record names, pods and switches of the leaves at their places. */
static bool places_of_leaves(const struct ctl_tree *tree, struct ctl_blocks *blocks, uint32_t *place_of)
{
    bool good = true;
    memset(place_of, 0xff, tree->n * sizeof *place_of);
    for (uint32_t i = 0; good && i < blocks->n_places; i++) {
        struct ctl_place *place = &blocks->places[i];
        if (place->leaf == NONE)
            continue;
        place_of[place->leaf] = i;
        json_decref(place->switches);
        place->switches = json_array();
        good = place->switches != NULL;
        snprintf(place->pod, sizeof place->pod, "%s", pod_of(tree, place->leaf));
        if (!place->spare)
            snprintf(place->name, sizeof place->name, "%s", tree->vertices[place->leaf].name);
    }
    for (uint32_t e = 0; good && e < tree->n_edges; e++)
        good = place_switch(blocks, place_of, &tree->edges[e]);
    return good;
}

/* ---- names and placeholders ---- */

static bool name_is_taken(const struct ctl_tree *tree, const struct ctl_blocks *blocks, const char *name)
{
    for (uint32_t v = 0; v < tree->n; v++)
        if (strcmp(tree->vertices[v].name, name) == 0)
            return true;
    for (uint32_t i = 0; i < blocks->n_places; i++)
        if (strcmp(blocks->places[i].name, name) == 0)
            return true;
    return false;
}

/*
 * Add or remove placeholders until their number is --spare. Placeholders with a leaf count. Only
 * placeholders at the end can be removed.
 */
static bool places_spare(const struct ctl_tree *tree, struct ctl_blocks *blocks, uint32_t want)
{
    uint32_t n = 0, number = 0;
    for (uint32_t i = 0; i < blocks->n_places; i++)
        n += blocks->places[i].spare;
    for (; n > want; n--) {
        const struct ctl_place *last = &blocks->places[blocks->n_places - 1];
        if (!last->spare || json_array_size(last->switches) > 0)
            break;
        json_decref(last->switches);
        blocks->n_places--;
    }
    for (; n < want; n++) {
        char name[CTL_VERTEX_NAME];
        struct ctl_place *place;
        do
            snprintf(name, sizeof name, "spare%u", ++number);
        while (name_is_taken(tree, blocks, name));
        place = place_add(blocks, name);
        if (place == NULL)
            return false;
        place->spare = true;
    }
    return true;
}

/* Sort places by name. Of equal names, a placeholder keeps it, else the place that has a leaf. */
static int compare_places(const void *a, const void *b)
{
    const struct ctl_place *x = *(struct ctl_place *const *)a, *y = *(struct ctl_place *const *)b;
    return strcmp(x->name, y->name)
               ?: FAB_ORDER(y->spare, x->spare)
               ?: FAB_ORDER(x->leaf == NONE, y->leaf == NONE)
               ?: FAB_ORDER(x, y);
}

/* Make the names of blocks unique: the GUID of the switch is appended. */
static bool places_apart(struct ctl_blocks *blocks)
{
    struct ctl_place **order = malloc((blocks->n_places + (size_t)1) * sizeof *order);
    const char *before = "";
    for (uint32_t i = 0; order != NULL && i < blocks->n_places; i++)
        order[i] = &blocks->places[i];
    if (order != NULL)
        qsort(order, blocks->n_places, sizeof *order, compare_places);
    for (uint32_t i = 0; order != NULL && i < blocks->n_places; i++) {
        const char *guid = json_string_value(json_array_get(order[i]->switches, 0));
        const size_t len = strlen(order[i]->name);
        if (strcmp(order[i]->name, before) != 0)
            before = order[i]->name;
        else
            snprintf(order[i]->name + len, sizeof order[i]->name - len, "-s%llx",
                     guid != NULL ? strtoull(guid, NULL, 16) : i);
    }
    free(order);
    return order != NULL;
}

/* ---- all of it ---- */

static bool places_note(const struct ctl_export_names *names, const struct ctl_blocks *blocks)
{
    json_t *all = json_object_get(names->is, KEY), *list = json_array();
    bool good = list != NULL;
    if (all == NULL) {
        all = json_object();
        good &= json_object_set_new(names->is, KEY, all) == 0;
    }
    for (uint32_t i = 0; good && i < blocks->n_places; i++) {
        const struct ctl_place *place = &blocks->places[i];
        json_t *value = json_pack("{s:s}", "name", place->name);
        good = value != NULL && json_array_append_new(list, value) == 0;
        if (good && place->spare)
            good = json_object_set_new(value, "spare", json_true()) == 0;
        if (good && json_array_size(place->switches) > 0)
            good = json_object_set_new(value, "pod", json_string(place->pod)) == 0 &&
                   json_object_set(value, "switches", place->switches) == 0;
    }
    if (good)
        return json_object_set_new(all, blocks->topology, list) == 0;
    json_decref(list);
    return false;
}

enum ctl_exit ctl_places_fill(const struct ctl_export *x, const struct ctl_tree *tree,
                              struct ctl_blocks *blocks)
{
    json_t *leaves = leaves_by_guid(tree);
    uint32_t *place_of = calloc(tree->n + (size_t)1, sizeof *place_of); /* while NONE follows: placed */
    bool good = leaves != NULL && place_of != NULL;
    for (uint32_t i = 0; good && i < blocks->n_places; i++) {
        const uint32_t leaf = leaf_of_place(&blocks->places[i], leaves);
        if (leaf != NONE && place_of[leaf]++ == 0)
            blocks->places[i].leaf = leaf;
    }
    for (uint32_t i = 0; good && i < blocks->n; i++) {
        const uint32_t leaf = blocks->leaves[i];
        struct ctl_place *place = place_of[leaf] == 0 ? place_for(blocks, tree, leaf) : NULL;
        if (place_of[leaf] == 0 && place == NULL)
            place = place_add(blocks, tree->vertices[leaf].name);
        good = place_of[leaf] > 0 || place != NULL;
        if (place != NULL)
            place->leaf = leaf;
    }
    good = good && places_of_leaves(tree, blocks, place_of) && places_spare(tree, blocks, x->ctl->spare) &&
           places_apart(blocks) && places_note(x->names, blocks);
    json_decref(leaves);
    free(place_of);
    return good ? CTL_DONE : ctl_nomem();
}

enum ctl_exit ctl_blocks_mapping(FILE *out, const struct ctl_tree *tree, const struct ctl_blocks *blocks)
{
    const char **names = calloc(tree->n + (size_t)1, sizeof *names);
    if (names == NULL)
        return ctl_nomem();
    for (uint32_t i = 0; i < blocks->n_places; i++)
        if (blocks->places[i].leaf != NONE)
            names[blocks->places[i].leaf] = blocks->places[i].name;
    ctl_tree_mapping(out, tree, names);
    free(names);
    return CTL_DONE;
}
