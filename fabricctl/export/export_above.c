/* export_above.c - levels above the discovered tree, by hand: --above FILE, or [groups] above of the daemon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/pattern.h"

#define NONE    UINT32_MAX
#define DROPPED (UINT32_MAX - 1)
#define KEY     "members" /* in FILE.names: words that once had a member; no GUID */

/* A word that stands for members. */
struct member {
    char *word;
    uint32_t level;
    bool pattern;
    bool known; /* it had a member in some tree */
};

struct level {
    char *name;
    unsigned line;
};

struct ctl_above {
    char *path;
    struct level *levels; /* in the order of the lines */
    uint32_t n, room;
    struct member *members;
    uint32_t n_members, members_room;
};

/* ---- the file ---- */

static bool above_put(struct ctl_above *a, const char *word, bool pattern)
{
    if (!FAB_ARRAY_ROOM(&a->members, &a->members_room, a->n_members + UINT64_C(1)))
        return false;
    a->members[a->n_members] = (struct member){strdup(word), a->n - 1, pattern, false};
    return a->members[a->n_members++].word != NULL;
}

/* Add the members of one word, which is a list, or has patterns. */
static enum ctl_exit above_word(struct ctl_above *a, const char *word)
{
    const unsigned line = a->levels[a->n - 1].line;
    struct fab_hostlist list;
    struct fab_err err = {{0}};
    bool good = true;
    if (strpbrk(word, "*?!") != NULL) {
        if (!fab_pattern_ok(word))
            return ctl_error("%s: line %u: no pattern: %s: give names as hall*", a->path, line, word);
        return above_put(a, word, true) ? CTL_DONE : ctl_nomem();
    }
    if (fab_hostlist_parse(word, &list, &err) != 0)
        return ctl_error("%s: line %u: no list of names: %.100s: %s", a->path, line, word, err.text);
    for (uint32_t i = 0; good && i < list.n; i++)
        good = above_put(a, list.names[i], false);
    fab_hostlist_free(&list);
    return good ? CTL_DONE : ctl_nomem();
}

static enum ctl_exit above_line(struct ctl_above *a, char *text, unsigned line)
{
    char *rest = NULL, *members, *name;
    enum ctl_exit status = CTL_DONE;
    text[strcspn(text, "#")] = '\0';
    if (text[strspn(text, " \t\r")] == '\0')
        return CTL_DONE;
    members = strchr(text, '=');
    if (members != NULL)
        *members++ = '\0';
    name = strtok_r(text, " \t\r", &rest);
    if (members == NULL || name == NULL || strtok_r(NULL, " \t\r", &rest) != NULL ||
        members[strspn(members, " \t\r")] == '\0')
        return ctl_error("%s: line %u: no level: write NAME = MEMBER MEMBER..., as row1 = leaf[1-4]", a->path,
                         line);
    if (!ctl_plain_name(name, CTL_NAME_MOST) || ctl_reserved_name(CTL_SLURM_WORDS, name))
        return ctl_error("%s: line %u: no name for a switch: %.100s: give letters, digits, '.', '_' and '-'",
                         a->path, line, name);
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->levels[i].name, name) == 0)
            return ctl_error("%s: line %u: %s is in line %u already: give each level one line", a->path, line,
                             name, a->levels[i].line);
    if (!FAB_ARRAY_ROOM(&a->levels, &a->room, a->n + UINT64_C(1)) || (name = strdup(name)) == NULL)
        return ctl_nomem();
    a->levels[a->n++] = (struct level){name, line};
    for (char *word = strtok_r(members, " \t\r", &rest); status == CTL_DONE && word != NULL;
         word = strtok_r(NULL, " \t\r", &rest))
        status = above_word(a, word);
    return status;
}

enum ctl_exit ctl_above_read(const char *path, struct ctl_above **above)
{
    size_t size;
    char *text = ctl_target_read(path, &size);
    struct ctl_above *a = *above = calloc(1, sizeof *a);
    enum ctl_exit status = CTL_DONE;
    unsigned line = 0;
    if (text == NULL)
        return ctl_error("not written: %s: %s: give the file of --above", path, strerror(errno));
    if (a == NULL || (a->path = strdup(path)) == NULL)
        status = ctl_nomem();
    else if (strlen(text) != size)
        status = ctl_error("not written: %s is no text: give the file of --above", path);
    for (char *at = text, *end; status == CTL_DONE && at < text + size; at = end + 1) {
        end = at + strcspn(at, "\n");
        *end = '\0';
        status = above_line(a, at, ++line);
    }
    free(text);
    return status;
}

void ctl_above_free(struct ctl_above *a)
{
    if (a == NULL)
        return;
    for (uint32_t i = 0; i < a->n; i++)
        free(a->levels[i].name);
    for (uint32_t i = 0; i < a->n_members; i++)
        free(a->members[i].word);
    free(a->levels);
    free(a->members);
    free(a->path);
    free(a);
}

/* ---- members of one tree ---- */

/* Objects are the vertices of the tree, 0..n-1, and then the levels. */
struct raising {
    struct ctl_above *above;
    struct ctl_tree *tree;
    uint32_t n;       /* objects */
    uint32_t *sorted; /* the objects of the new tree */
    uint32_t *owner;  /* for each object: the level that it is a member of; NONE */
    uint32_t *parent; /* for each object; NONE: a root; DROPPED: a level without members here */
    bool *done;       /* for each level */
};

static const char *object_name(const struct raising *r, uint32_t object)
{
    return object < r->tree->n ? r->tree->vertices[object].name : r->above->levels[object - r->tree->n].name;
}

static enum ctl_exit own(struct raising *r, struct member *m, uint32_t object)
{
    const struct level *levels = r->above->levels;
    if (object == r->tree->n + m->level)
        return m->pattern ? CTL_DONE
                          : ctl_error("%s: line %u: %s cannot be its own member", r->above->path,
                                      levels[m->level].line, m->word);
    m->known = true;
    if (r->owner[object] != NONE && r->owner[object] != m->level)
        return ctl_error("%s: line %u: %s is a member in line %u already: a switch has one switch above it",
                         r->above->path, levels[m->level].line, object_name(r, object),
                         levels[r->owner[object]].line);
    r->owner[object] = m->level;
    return CTL_DONE;
}

/* Return an object with the number of each name. NULL: with a message. */
static json_t *objects_by_name(struct raising *r)
{
    json_t *objects = json_object();
    for (uint32_t o = 0; objects != NULL && o < r->n; o++) {
        const char *name = object_name(r, o);
        if (json_object_get(objects, name) != NULL) { /* a level: the names of vertices are unique */
            json_decref(objects);
            ctl_error("%s: line %u: a switch is called %s already: give another name", r->above->path,
                      r->above->levels[o - r->tree->n].line, name);
            return NULL;
        }
        if (json_object_set_new(objects, name, json_integer(o)) != 0) {
            json_decref(objects);
            objects = NULL;
        }
    }
    if (objects == NULL)
        ctl_nomem();
    return objects;
}

static enum ctl_exit own_all(struct raising *r)
{
    json_t *objects = objects_by_name(r);
    enum ctl_exit status = objects != NULL ? CTL_DONE : CTL_FAILED;
    for (uint32_t i = 0; status == CTL_DONE && i < r->above->n_members; i++) {
        struct member *m = &r->above->members[i];
        const json_t *object = m->pattern ? NULL : json_object_get(objects, m->word);
        if (object != NULL)
            status = own(r, m, (uint32_t)json_integer_value(object));
        for (uint32_t o = 0; m->pattern && status == CTL_DONE && o < r->n; o++) {
            const char *name = object_name(r, o);
            if (fab_pattern_has(m->word, &name, 1))
                status = own(r, m, o);
        }
    }
    json_decref(objects);
    return status;
}

/*
 * Put a level between its members and the switch that is above all of them. All members that are levels are
 * done.
 */
static enum ctl_exit put_between(struct raising *r, uint32_t level)
{
    const uint32_t self = r->tree->n + level;
    uint32_t first = NONE;
    r->done[level] = true;
    r->parent[self] = DROPPED;
    for (uint32_t o = 0; o < r->n; o++) {
        if (r->owner[o] != level || r->parent[o] == DROPPED)
            continue;
        if (first == NONE) {
            first = o;
            r->parent[self] = r->parent[o];
        } else if (r->parent[o] != r->parent[self]) {
            const uint32_t one = r->parent[self], other = r->parent[o];
            return ctl_error("%s: line %u: %s is below %s, and %s is below %s: give members that have the "
                             "same switch above them",
                             r->above->path, r->above->levels[level].line, object_name(r, first),
                             one == NONE ? "no switch" : object_name(r, one), object_name(r, o),
                             other == NONE ? "no switch" : object_name(r, other));
        }
    }
    for (uint32_t o = 0; o < r->n; o++)
        if (r->owner[o] == level && r->parent[o] != DROPPED)
            r->parent[o] = self;
    return CTL_DONE;
}

/* Return whether a level has a member that is a level and not done. */
static bool waits_for_level(const struct raising *r, uint32_t level)
{
    for (uint32_t l = 0; l < r->above->n; l++)
        if (r->owner[r->tree->n + l] == level && !r->done[l])
            return true;
    return false;
}

static enum ctl_exit put_levels(struct raising *r)
{
    enum ctl_exit status = CTL_DONE;
    uint32_t left = r->above->n, before;
    for (uint32_t v = 0; v < r->tree->n; v++)
        r->parent[v] = r->tree->vertices[v].parent;
    do {
        before = left;
        for (uint32_t l = 0; status == CTL_DONE && l < r->above->n; l++)
            if (!r->done[l] && !waits_for_level(r, l)) {
                status = put_between(r, l);
                left--;
            }
    } while (status == CTL_DONE && left > 0 && left < before);
    for (uint32_t l = 0; status == CTL_DONE && left > 0 && l < r->above->n; l++)
        if (!r->done[l])
            return ctl_error("%s: line %u: %s is its own member, over other lines", r->above->path,
                             r->above->levels[l].line, r->above->levels[l].name);
    return status;
}

/* ---- the new tree ---- */

static int compare_heights(const void *a, const void *b, void *vertices)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct ctl_vertex *v = vertices;
    return FAB_ORDER(v[x].height, v[y].height) ?: FAB_ORDER(x, y);
}

/* Set the heights, and the lowest GUIDs of the levels, from the leaves up. */
static void set_heights(struct raising *r, struct ctl_vertex *all)
{
    for (uint32_t leaf = 0; leaf < r->tree->n; leaf++) {
        uint32_t height = 0;
        if (all[leaf].n_hosts == 0)
            continue;
        for (uint32_t v = all[leaf].parent; v != NONE; v = all[v].parent) {
            height++;
            all[v].height = height > all[v].height ? height : all[v].height;
            if (all[v].by_hand && (all[v].guid == 0 || all[leaf].guid < all[v].guid))
                all[v].guid = all[leaf].guid;
        }
    }
}

/* Replace the vertices by all objects that are not dropped, with children before their parents. */
static enum ctl_exit replace_vertices(struct raising *r)
{
    struct ctl_tree *tree = r->tree;
    struct ctl_vertex *all = calloc(r->n + (size_t)1, sizeof *all), *vertices = NULL;
    uint32_t *place = r->owner, n = 0; /* for each object: its new number */
    if (all == NULL || (vertices = calloc(r->n + (size_t)1, sizeof *vertices)) == NULL) {
        free(all);
        return ctl_nomem();
    }
    for (uint32_t o = 0; o < r->n; o++) {
        if (o < tree->n)
            all[o] = tree->vertices[o];
        else {
            snprintf(all[o].name, sizeof all[o].name, "%s", object_name(r, o));
            all[o].by_hand = true;
        }
        all[o].parent = r->parent[o];
        if (r->parent[o] != DROPPED)
            r->sorted[n++] = o;
    }
    set_heights(r, all);
    qsort_r(r->sorted, n, sizeof *r->sorted, compare_heights, all);
    for (uint32_t v = 0; v < n; v++)
        place[r->sorted[v]] = v;
    for (uint32_t v = 0; v < n; v++) {
        vertices[v] = all[r->sorted[v]];
        if (vertices[v].parent != NONE)
            vertices[v].parent = place[vertices[v].parent];
    }
    for (uint32_t e = 0; e < tree->n_edges; e++)
        tree->edges[e].vertex = place[tree->edges[e].vertex];
    free(all);
    free(tree->vertices);
    tree->vertices = vertices;
    tree->n = n;
    tree->room = r->n + 1;
    return CTL_DONE;
}

enum ctl_exit ctl_above_apply(const struct ctl_export *x, struct ctl_tree *tree)
{
    struct raising r = {.above = x->above, .tree = tree};
    enum ctl_exit status;
    if (x->above == NULL || tree->n == 0)
        return CTL_DONE;
    r.n = tree->n + x->above->n;
    r.sorted = calloc(3, (r.n + (size_t)1) * sizeof *r.sorted);
    r.done = calloc(x->above->n + (size_t)1, sizeof *r.done);
    if (r.sorted == NULL || r.done == NULL)
        status = ctl_nomem();
    else {
        r.owner = r.sorted + r.n;
        r.parent = r.owner + r.n;
        memset(r.owner, 0xff, r.n * sizeof *r.owner);
        status = own_all(&r) ?: put_levels(&r) ?: replace_vertices(&r);
    }
    free(r.sorted);
    free(r.done);
    return status;
}

/* ---- words without a member ---- */

/* Return whether a plane has a switch of this name: it is no leaf now, for example without its hosts. */
static bool is_switch(const struct ctl_export *x, const char *name)
{
    struct pmixfab_switch sw;
    for (size_t i = 0; i < x->view->n; i++)
        for (uint32_t s = 0; pmixfab_switch(x->view->planes[i], s, &sw) == 0; s++)
            if (strcmp(sw.name, name) == 0)
                return true;
    return false;
}

/* A switch that has left the fabric is no failure: FILE.names has the word. */
enum ctl_exit ctl_above_check(const struct ctl_export *x)
{
    json_t *known;
    if (x->above == NULL || x->names->is == NULL) /* without a tree nothing is above one */
        return CTL_DONE;
    known = json_object();
    for (uint32_t i = 0; known != NULL && i < x->above->n_members; i++) {
        const struct member *m = &x->above->members[i];
        if (!m->known && json_object_get(json_object_get(x->names->was, KEY), m->word) == NULL &&
            !is_switch(x, m->word)) {
            json_decref(known);
            return ctl_error("%s: line %u: no such leaf, switch of the tree, or line: %s: see the names in "
                             "the file without --above",
                             x->above->path, x->above->levels[m->level].line, m->word);
        }
        if (json_object_set_new(known, m->word, json_true()) != 0)
            break;
    }
    return known != NULL && json_object_set_new(x->names->is, KEY, known) == 0 ? CTL_DONE : ctl_nomem();
}
