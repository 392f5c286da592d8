/*
 * export_tree.c - hosts to leaves, leaves to a tree, plane by plane.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "topo/base/array.h"
#include "topo/base/hostlist.h"
#include "topo/base/pattern.h"

#define NONE UINT32_MAX

/* ---- the contents below a vertex of a tree, and the vertex above a leaf ---- */

bool ctl_tree_children(struct ctl_tree *tree)
{
    uint32_t *fill = calloc(tree->n + (size_t)1, sizeof *fill);
    tree->begin = calloc(tree->n + (size_t)2, sizeof *tree->begin);
    tree->children = calloc(tree->n + (size_t)1, sizeof *tree->children);
    if (fill == NULL || tree->begin == NULL || tree->children == NULL) {
        free(fill);
        return false;
    }
    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].parent != UINT32_MAX)
            tree->begin[tree->vertices[v].parent + 1]++;
    for (uint32_t v = 0; v < tree->n; v++) {
        tree->begin[v + 1] += tree->begin[v];
        fill[v] = tree->begin[v];
    }
    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].parent != UINT32_MAX)
            tree->children[fill[tree->vertices[v].parent]++] = v;
    free(fill);
    return true;
}

char *ctl_tree_below(const struct ctl_tree *tree, uint32_t v)
{
    const struct ctl_vertex *vertex = &tree->vertices[v];
    const uint32_t n = tree->begin[v + 1] - tree->begin[v];
    const char **names;
    char *list;
    if (vertex->height == 0)
        return fab_hostlist_fold(vertex->hosts, vertex->n_hosts);
    names = malloc((n + (size_t)1) * sizeof *names);
    if (names == NULL)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        names[i] = tree->vertices[tree->children[tree->begin[v] + i]].name;
    list = fab_hostlist_fold(names, n);
    free(names);
    return list;
}

uint32_t ctl_tree_at(const struct ctl_tree *tree, uint32_t leaf, uint32_t height)
{
    uint32_t v = leaf;
    while (tree->vertices[v].parent != UINT32_MAX &&
           tree->vertices[tree->vertices[v].parent].height <= height)
        v = tree->vertices[v].parent;
    return v;
}

/* ---- the chosen devices ---- */

static bool device_is_chosen(const struct ctl *ctl, const struct pmixfab *fab, uint32_t index)
{
    struct pmixfab_device device;
    struct pmixfab_switch sw = {.name = NULL};
    char with_port[320];
    if (ctl->interface == NULL)
        return pmixfab_fact_text(fab, index, "compute") != NULL;
    if (pmixfab_device(fab, index, &device) != 0)
        return false;
    if (device.switch_index != NONE && pmixfab_switch(fab, device.switch_index, &sw) != 0)
        sw.name = NULL;
    snprintf(with_port, sizeof with_port, "%s:%u", device.name, device.port);
    const char *const names[] = {device.name, with_port, pmixfab_fact_text(fab, index, "interface"), sw.name};
    return fab_pattern_has(ctl->interface, names, CTL_COUNT(names));
}

static int compare_host_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum ctl_exit ctl_bases_choose(struct ctl_export *x)
{
    struct pmixfab_plane plane;
    const char *name;
    uint32_t first, n;
    size_t room = 1;
    for (size_t i = 0; i < x->view->n; i++)
        room += pmixfab_plane(x->view->planes[i], &plane) == 0 ? plane.n_hosts : 0;
    x->chosen = malloc(room * sizeof *x->chosen);
    if (x->chosen == NULL)
        return ctl_nomem();
    for (size_t i = 0; i < x->view->n; i++) {
        const struct pmixfab *fab = x->view->planes[i];
        for (uint32_t h = 0; pmixfab_host(fab, h, &name, &first, &n) == 0; h++)
            for (uint32_t d = first; d < first + n; d++)
                if (device_is_chosen(x->ctl, fab, d)) {
                    x->chosen[x->n_chosen++] = name;
                    break;
                }
    }
    qsort(x->chosen, x->n_chosen, sizeof *x->chosen, compare_host_names);
    if (x->ctl->interface != NULL && x->n_chosen == 0)
        return ctl_error("nothing to write: --interface %s: no device, port, interface or leaf has such a "
                         "name: see fabricctl devices",
                         x->ctl->interface);
    return CTL_DONE;
}

static bool host_is_chosen(const struct ctl_export *x, const char *host)
{
    return x->n_chosen > 0 &&
           bsearch(&host, x->chosen, x->n_chosen, sizeof *x->chosen, compare_host_names) != NULL;
}

/* ---- the places of hosts ---- */

/* Bases: the objects that may become leaves, which are edge switches, or the leaves of a unit. */
struct bases {
    const struct ctl_export *x;
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    const uint32_t *base; /* for each switch */
    uint32_t n;
};
/* Location of a host. */
enum host_at {
    AT_NONE,      /* none of its devices is connected to a switch */
    AT_ELSEWHERE, /* all its chosen devices are in other planes */
    AT_ONE,       /* all its devices, or all chosen ones, are there */
    AT_SEVERAL    /* others are elsewhere */
};

struct base_finder {
    const struct bases *bases;
    uint32_t *at; /* for each device: its base; NONE: it has none, or is not chosen */
    /* for each base: its hosts, and those of them that also have a base with fewer hosts */
    uint32_t *n_hosts, *n_finer;
};

/* Return whether a device, among those from `first` on, is the first one at its base. */
static bool base_is_new(const struct base_finder *f, uint32_t first, uint32_t d)
{
    if (f->at[d] == NONE)
        return false;
    for (uint32_t i = first; i < d; i++)
        if (f->at[i] == f->at[d])
            return false;
    return true;
}

/* Find the devices of a host that count, and their bases. */
static enum host_at base_devices(struct base_finder *f, const char *name, uint32_t first, uint32_t n)
{
    const struct bases *b = f->bases;
    const bool chosen = host_is_chosen(b->x, name);
    enum host_at how = AT_NONE;
    bool here = false;
    for (uint32_t d = first; d < first + n; d++) {
        struct pmixfab_device device;
        const bool counts = !chosen || device_is_chosen(b->x->ctl, b->fab, d);
        here |= counts;
        f->at[d] =
            counts && pmixfab_device(b->fab, d, &device) == 0 && device.switch_index < b->plane->n_switches
                ? b->base[device.switch_index]
                : NONE;
        if (base_is_new(f, first, d))
            how = how == AT_NONE ? AT_ONE : AT_SEVERAL;
    }
    return here ? how : AT_ELSEWHERE;
}

static void base_count(struct base_finder *f, uint32_t first, uint32_t n)
{
    for (uint32_t d = first; d < first + n; d++)
        if (base_is_new(f, first, d))
            f->n_hosts[f->at[d]]++;
}

static void base_compare(struct base_finder *f, uint32_t first, uint32_t n)
{
    uint32_t least = NONE;
    for (uint32_t d = first; d < first + n; d++)
        if (f->at[d] != NONE && f->n_hosts[f->at[d]] < least)
            least = f->n_hosts[f->at[d]];
    for (uint32_t d = first; d < first + n; d++)
        if (base_is_new(f, first, d) && f->n_hosts[f->at[d]] > least)
            f->n_finer[f->at[d]]++;
}

static uint32_t base_choose(const struct base_finder *f, uint32_t first, uint32_t n)
{
    uint32_t best = NONE, most = 0;
    bool best_is_shared = true;
    for (uint32_t d = first; d < first + n; d++) {
        const uint32_t base = f->at[d];
        uint32_t count = 0;
        if (!base_is_new(f, first, d))
            continue;
        const bool shared = 2 * (uint64_t)f->n_finer[base] > f->n_hosts[base];
        for (uint32_t i = d; i < first + n; i++)
            count += f->at[i] == base;
        if (best != NONE && (shared != best_is_shared ? shared : count <= most))
            continue;
        best = base;
        best_is_shared = shared;
        most = count;
    }
    return best;
}

/*
 * Find host_base[h] of each host of the plane, and the way in which it was found. It is the base with most of
 * the chosen devices of the host. If no device is chosen, all devices count. If several bases have equally
 * many, the first is taken. A base that does not distinguish hosts comes last, for example a leaf for
 * storage: most of its hosts also have a device at a base with fewer hosts. Return false without memory.
 */
static bool bases_of_hosts(const struct bases *bases, uint32_t *host_base, enum host_at *how)
{
    struct base_finder f = {.bases = bases,
                            .at = malloc((bases->plane->n_devices + (size_t)1) * sizeof *f.at),
                            .n_hosts = calloc(bases->n + (size_t)1, 2 * sizeof *f.n_hosts)};
    const bool ok = f.at != NULL && f.n_hosts != NULL;
    const char *name;
    uint32_t first, n;
    f.n_finer = ok ? f.n_hosts + bases->n : NULL;
    for (uint32_t h = 0; ok && pmixfab_host(bases->fab, h, &name, &first, &n) == 0; h++) {
        how[h] = base_devices(&f, name, first, n);
        base_count(&f, first, n);
    }
    for (uint32_t h = 0; ok && pmixfab_host(bases->fab, h, &name, &first, &n) == 0; h++)
        base_compare(&f, first, n);
    for (uint32_t h = 0; ok && pmixfab_host(bases->fab, h, &name, &first, &n) == 0; h++)
        host_base[h] = base_choose(&f, first, n);
    free(f.at);
    free(f.n_hosts);
    return ok;
}

/* ---- hosts to leaves, leaves to a tree, plane by plane ---- */

/* One plane that is added to the tree, by bases. */
struct planting {
    struct ctl_export *x;
    struct ctl_tree *tree;
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    bool levelled;  /* the kind has neither units nor levels: all switches are equal */
    uint32_t *base; /* for each switch */
    uint32_t n_bases;
    uint32_t *unit;           /* for each base: its number; NONE: it is a switch */
    uint32_t *host_base;      /* for each host; NONE: this plane does not add it to the tree */
    uint32_t *leaf;           /* for each base: its leaf, from 0 */
    uint32_t *leaf_base;      /* for each leaf */
    uint32_t *leaf_of;        /* for each switch */
    uint32_t *group;          /* for each leaf of a dragonfly */
    uint32_t *parent;         /* for each vertex */
    uint32_t n_leaves, first; /* its vertices in the tree */
};

/* ---- facts that a tree cannot describe ---- */

#define SHOWN 200 /* bytes of a list in a message */

static void lost_hosts(struct ctl_export *x, const char *plane, const char *const *names, uint32_t n,
                       const char *what)
{
    char *list = n > 0 ? fab_hostlist_fold(names, n) : NULL;
    if (n > 0)
        ctl_export_lost(x, "plane %s: %u host%s %s: %.*s%s", plane, n, n == 1 ? "" : "s", what, SHOWN,
                        list != NULL ? list : "", list != NULL && strlen(list) > SHOWN ? "..." : "");
    free(list);
}

/* ---- hosts to bases ---- */

static int compare_units(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Join the leaves of a unit to one base, since they serve the same hosts. Each other leaf is a base. */
static bool planting_bases(struct planting *p)
{
    uint64_t *keys = malloc((p->plane.n_switches + (size_t)1) * sizeof *keys); /* unit, then switch */
    for (uint32_t s = 0; keys != NULL && s < p->plane.n_switches; s++) {
        struct pmixfab_switch sw;
        if (pmixfab_switch(p->fab, s, &sw) != 0)
            sw.unit = NONE;
        keys[s] = (uint64_t)(p->levelled ? NONE : sw.unit) << 32 | s;
    }
    if (keys != NULL)
        qsort(keys, p->plane.n_switches, sizeof *keys, compare_units);
    for (uint32_t i = 0; keys != NULL && i < p->plane.n_switches; i++) {
        const uint32_t unit = (uint32_t)(keys[i] >> 32);
        if (i == 0 || unit == NONE || unit != (uint32_t)(keys[i - 1] >> 32))
            p->unit[p->n_bases++] = unit;
        p->base[(uint32_t)keys[i]] = p->n_bases - 1;
    }
    free(keys);
    return keys != NULL;
}

static uint32_t device_base(const struct planting *p, uint32_t d)
{
    struct pmixfab_device device;
    return pmixfab_device(p->fab, d, &device) == 0 && device.switch_index < p->plane.n_switches
               ? p->base[device.switch_index]
               : NONE;
}

/* Reasons why a host is not in the tree, or not at all of its leaves. */
enum lost_host { LOST_SEVERAL, LOST_STRANGE, LOST_WORD, LOST_BARE, LOST_TWICE, LOST_KINDS };
static const char *const lost_words[LOST_KINDS] = {
    [LOST_SEVERAL] = "at several leaves, each is written at one (choose with --interface)",
    [LOST_STRANGE] = "with a name that cannot be written, left out",
    [LOST_WORD] = "with a name that is a reserved word there, left out",
    [LOST_BARE] = "not connected to a switch, left out",
    [LOST_TWICE] = "written in the place that they have in another plane",
};

/*
 * Put each host into the tree once: by the first plane that has it. placed: the names of the planes before.
 */
static enum ctl_exit planting_hosts(struct planting *p, const char **placed, uint32_t n_placed)
{
    const uint32_t room = p->plane.n_hosts;
    const char **lost = malloc((room + (size_t)1) * LOST_KINDS * sizeof *lost);
    enum host_at *how = calloc(room + (size_t)1, sizeof *how);
    const struct bases bases = {p->x, p->fab, &p->plane, p->base, p->n_bases};
    uint32_t n_lost[LOST_KINDS] = {0};
    enum ctl_exit status = CTL_DONE;
    if (lost == NULL || how == NULL || !bases_of_hosts(&bases, p->host_base, how)) {
        status = ctl_nomem();
        goto cleanup;
    }
    for (uint32_t h = 0; h < room; h++) {
        const uint32_t base = p->host_base[h];
        enum lost_host why = LOST_KINDS;
        const char *name;
        uint32_t first, n;
        p->host_base[h] = NONE;
        if (pmixfab_host(p->fab, h, &name, &first, &n) != 0 || how[h] == AT_ELSEWHERE ||
            !ctl_only_has(p->x, name))
            continue;
        if (!ctl_plain_name(name, SIZE_MAX) || ctl_guid_name(name))
            why = LOST_STRANGE;
        else if (ctl_reserved_name(p->x->reserved, name))
            why = LOST_WORD;
        else if (bsearch(&name, placed, n_placed, sizeof *placed, compare_host_names) != NULL)
            why = LOST_TWICE;
        else if (how[h] == AT_NONE)
            why = LOST_BARE;
        else
            p->host_base[h] = base;
        if (p->host_base[h] != NONE && how[h] == AT_SEVERAL)
            why = LOST_SEVERAL;
        if (why != LOST_KINDS)
            lost[(size_t)why * room + n_lost[why]++] = name;
    }
    for (unsigned why = 0; why < LOST_KINDS; why++)
        lost_hosts(p->x, p->plane.name, lost + (size_t)why * room, n_lost[why], lost_words[why]);
cleanup:
    free(lost);
    free(how);
    return status;
}

/* ---- bases to leaves ---- */

static void planting_leaves(struct planting *p)
{
    memset(p->leaf, 0xff, (p->n_bases + (size_t)1) * sizeof *p->leaf);
    for (uint32_t h = 0; h < p->plane.n_hosts; h++)
        if (p->host_base[h] != NONE && p->leaf[p->host_base[h]] == NONE) {
            p->leaf_base[p->n_leaves] = p->host_base[h];
            p->leaf[p->host_base[h]] = p->n_leaves++;
        }
    for (uint32_t s = 0; s < p->plane.n_switches; s++)
        p->leaf_of[s] = p->leaf[p->base[s]];
}

/*
 * Set the group of each leaf. It is the first number in the logical coordinates of its devices, which is the
 * pod, or the group in a dragonfly.
 */
static void planting_groups(struct planting *p)
{
    for (uint32_t h = p->plane.n_hosts; h-- > 0;) {
        const char *name;
        const uint32_t *coords;
        uint32_t first, n, dims;
        if (p->host_base[h] != NONE && pmixfab_host(p->fab, h, &name, &first, &n) == 0)
            for (uint32_t d = first; d < first + n; d++)
                if (device_base(p, d) == p->host_base[h] &&
                    pmixfab_coords(p->fab, d, PMIXFAB_LOGICAL, &coords, &dims) == 0 && dims > 0)
                    p->group[p->leaf[p->host_base[h]]] = coords[0];
    }
}

/* Number the leaves anew: those below one vertex follow each other, because Slurm ranks hosts in this order.
 */
static bool planting_order(struct planting *p, uint32_t n_vertices)
{
    uint32_t *place = calloc(p->n_leaves + (size_t)1, 3 * sizeof *place);
    if (place == NULL || ctl_levels_order(p->parent, p->n_leaves, n_vertices, place) != 0) {
        free(place);
        return false;
    }
    uint32_t *base = place + p->n_leaves, *group = base + p->n_leaves;
    memcpy(base, p->leaf_base, p->n_leaves * sizeof *base);
    memcpy(group, p->group, p->n_leaves * sizeof *group);
    for (uint32_t l = 0; l < p->n_leaves; l++) {
        p->leaf_base[place[l]] = base[l];
        p->group[place[l]] = group[l];
        p->leaf[base[l]] = place[l];
    }
    for (uint32_t s = 0; s < p->plane.n_switches; s++)
        p->leaf_of[s] = p->leaf[p->base[s]];
    free(place);
    return true;
}

/* ---- into the tree ---- */

static enum ctl_exit put_leaves(struct planting *p)
{
    struct ctl_tree *tree = p->tree;
    struct ctl_vertex *leaves = tree->vertices + p->first;
    const char *name;
    uint32_t first, n;
    for (uint32_t h = 0; h < p->plane.n_hosts; h++)
        if (p->host_base[h] != NONE)
            leaves[p->leaf[p->host_base[h]]].n_hosts++;
    for (uint32_t l = 0; l < p->n_leaves; l++) {
        leaves[l].hosts = tree->hosts + tree->n_hosts;
        tree->n_hosts += leaves[l].n_hosts;
        leaves[l].n_hosts = 0;
    }
    for (uint32_t h = 0; h < p->plane.n_hosts; h++)
        if (p->host_base[h] != NONE && pmixfab_host(p->fab, h, &name, &first, &n) == 0) {
            struct ctl_vertex *leaf = &leaves[p->leaf[p->host_base[h]]];
            tree->hosts[leaf->hosts - tree->hosts + leaf->n_hosts++] = name;
        }
    for (uint32_t s = 0; s < p->plane.n_switches; s++) {
        struct pmixfab_switch sw;
        struct ctl_vertex *leaf = p->leaf_of[s] != NONE ? &leaves[p->leaf_of[s]] : NULL;
        if (leaf == NULL || pmixfab_switch(p->fab, s, &sw) != 0)
            continue;
        if (!FAB_ARRAY_ROOM(&tree->edges, &tree->edges_room, tree->n_edges + UINT64_C(1)))
            return ctl_nomem();
        tree->edges[tree->n_edges++] = (struct ctl_edge){p->first + p->leaf_of[s], sw.guid, sw.name};
        if (leaf->guid != 0 && leaf->guid < sw.guid)
            continue;
        leaf->guid = sw.guid;
        ctl_switch_name(leaf->name, sw.name, sw.guid);
    }
    return CTL_DONE;
}

/*
 * Name an inner vertex: after the plane, after a pod or group by its stable number, or after the vertices
 * below it. Among several above each other, the higher ones have their height in the name.
 */
static void name_inner(struct planting *p, uint32_t v, bool only_root, const uint32_t *lowest)
{
    struct ctl_vertex *vertex = &p->tree->vertices[p->first + v];
    const struct ctl_vertex *leaf = &p->tree->vertices[p->first + lowest[v]];
    char buf[CTL_VERTEX_NAME], over[CTL_VERTEX_NAME], height[16] = "";
    const char *plane = ctl_plane_name(&p->plane, buf);
    const char *kind = strcmp(p->plane.kind, "fat-tree-3") == 0 ? "pod" : "group";
    bool numbered = strcmp(kind, "pod") == 0 || strcmp(p->plane.kind, "dragonfly") == 0;
    vertex->guid = leaf->guid;
    if (vertex->height > 1)
        snprintf(height, sizeof height, "-l%u", vertex->height);
    snprintf(over, sizeof over, "%s", leaf->name);
    if (strlen(plane) + strlen("-over-") + strlen(over) + strlen(height) > CTL_NAME_MOST)
        snprintf(over, sizeof over, "s%" PRIx64, leaf->guid);
    if (only_root && p->parent[v] == NONE)
        snprintf(vertex->name, sizeof vertex->name, "%s", plane);
    else if (numbered)
        snprintf(vertex->name, sizeof vertex->name, "%.22s-%s%u%s", plane, kind, p->group[lowest[v]], height);
    else
        snprintf(vertex->name, sizeof vertex->name, "%.22s-over-%.45s%s", plane, over, height);
}

static enum ctl_exit put_vertices(struct planting *p, uint32_t n)
{
    uint32_t *lowest =
        malloc((n + (size_t)1) * sizeof *lowest); /* for each vertex: its leaf with the lowest GUID */
    struct ctl_vertex *vertices = p->tree->vertices + p->first;
    uint32_t roots = 0;
    if (lowest == NULL)
        return ctl_nomem();
    memset(lowest, 0xff, n * sizeof *lowest);
    for (uint32_t v = 0; v < n; v++) {
        const uint32_t up = p->parent[v];
        lowest[v] = v < p->n_leaves ? v : lowest[v];
        roots += up == NONE;
        vertices[v].parent = up == NONE ? NONE : p->first + up;
        if (up == NONE)
            continue;
        if (vertices[up].height <= vertices[v].height)
            vertices[up].height = vertices[v].height + 1;
        if (lowest[up] == NONE || vertices[lowest[v]].guid < vertices[lowest[up]].guid)
            lowest[up] = lowest[v];
    }
    for (uint32_t l = 0; l < p->n_leaves; l++)
        if (p->unit[p->leaf_base[l]] != NONE) {
            char buf[CTL_VERTEX_NAME];
            snprintf(vertices[l].name, sizeof vertices[l].name, "%.22s-unit%u",
                     ctl_plane_name(&p->plane, buf), p->unit[p->leaf_base[l]]);
            vertices[l].unit = true;
        }
    for (uint32_t v = p->n_leaves; v < n; v++)
        name_inner(p, v, roots == 1, lowest);
    free(lowest);
    return CTL_DONE;
}

static enum ctl_exit plant(struct planting *p, const char **placed, uint32_t n_placed)
{
    struct ctl_tree *tree = p->tree;
    enum ctl_exit status;
    uint32_t n = 0, *dense = NULL;
    bool irregular = false;
    p->levelled = strcmp(p->plane.kind, "dragonfly") == 0 || strncmp(p->plane.kind, "mesh", 4) == 0 ||
                  strncmp(p->plane.kind, "torus", 5) == 0;
    if (!planting_bases(p))
        return ctl_nomem();
    status = planting_hosts(p, placed, n_placed);
    if (status != CTL_DONE)
        return status;
    planting_leaves(p);
    planting_groups(p);
    if (strcmp(p->plane.kind, "dragonfly") == 0)
        dense = p->group;
    struct ctl_leaves leaves = {p->fab, &p->plane, p->leaf_of, dense, p->n_leaves};
    if (ctl_levels(&leaves, p->parent, &n, &irregular) != 0 || !planting_order(p, n))
        return ctl_nomem();
    p->first = tree->n;
    if (!FAB_ARRAY_ROOM(&tree->vertices, &tree->room, tree->n + (uint64_t)n + 1))
        return ctl_nomem();
    memset(tree->vertices + tree->n, 0, n * sizeof *tree->vertices);
    tree->n += n;
    status = put_leaves(p) ?: put_vertices(p, n) ?: ctl_names_keep(p->x->names, tree, p->first, &p->plane);
    const char *kind = p->plane.kind;
    if (p->n_leaves > 1 && (p->levelled || irregular))
        ctl_export_lost(p->x, "plane %s: its kind is %s: a tree has no cables between switches of one level",
                        p->plane.name, kind);
    return status;
}

static enum ctl_exit plant_plane(struct planting *p, const char **placed, uint32_t n_placed)
{
    const size_t switches = p->plane.n_switches + (size_t)1;
    uint32_t **const columns[] = {&p->base,    &p->unit,  &p->leaf,  &p->leaf_base,
                                  &p->leaf_of, &p->group, &p->parent};
    uint32_t *room = calloc((CTL_COUNT(columns) + 1) * switches + p->plane.n_hosts + 1, sizeof *room);
    enum ctl_exit status;
    if (room == NULL)
        return ctl_nomem();
    for (size_t i = 0; i < CTL_COUNT(columns); i++) /* the last one has room for twice as many */
        *columns[i] = room + i * switches;
    p->host_base = room + (CTL_COUNT(columns) + 1) * switches;
    status = plant(p, placed, n_placed);
    free(room);
    return status;
}

/* A plane without hosts at switches is no failure here. */
static enum ctl_exit plant_planes(struct ctl_export *x, struct ctl_tree *tree)
{
    enum ctl_exit status;
    const char **placed = NULL;
    size_t room = 1;
    *tree = (struct ctl_tree){0};
    status = ctl_names_load(x->names, x->ctl->output);
    for (size_t i = 0; i < x->view->n; i++) {
        struct pmixfab_plane plane;
        room += pmixfab_plane(x->view->planes[i], &plane) == 0 ? plane.n_hosts : 0;
    }
    tree->hosts = malloc(room * sizeof *tree->hosts);
    placed = malloc(room * sizeof *placed);
    if (tree->hosts == NULL || placed == NULL) {
        free(placed);
        return ctl_nomem();
    }
    for (size_t i = 0; status == CTL_DONE && i < x->view->n; i++) {
        struct planting p = {.x = x, .tree = tree, .fab = x->view->planes[i]};
        const uint32_t n_placed = tree->n_hosts;
        memcpy(placed, tree->hosts, n_placed * sizeof *placed);
        if (i > 0)
            qsort(placed, n_placed, sizeof *placed, compare_host_names);
        if (pmixfab_plane(p.fab, &p.plane) == 0 && strcmp(p.plane.kind, "unattached") != 0)
            status = plant_plane(&p, placed, n_placed);
    }
    if (status == CTL_DONE)
        status = ctl_names_apart(tree) ?: ctl_above_apply(x, tree) ?: ctl_names_note(x->names, tree);
    if (status == CTL_DONE && !ctl_tree_children(tree))
        status = ctl_nomem();
    free(placed);
    return status;
}

enum ctl_exit ctl_tree_build(struct ctl_export *x, struct ctl_tree *tree)
{
    enum ctl_exit status = plant_planes(x, tree);
    if (status != CTL_DONE || tree->n > 0)
        return status;
    return x->ctl->nodes != NULL
               ? ctl_error("nothing to write: --nodes %.100s: no such host is connected to a switch: see "
                           "fabricctl devices",
                           x->ctl->nodes)
               : ctl_error(
                     "nothing to write: no host with a name is connected to a switch: see fabricctl devices");
}

enum ctl_exit ctl_tree_build_some(struct ctl_export *x, const struct ctl_view *planes, struct ctl_tree *tree)
{
    struct ctl_export part = *x;
    enum ctl_exit status;
    part.view = planes;
    part.n_lost = 0;
    status = plant_planes(&part, tree);
    x->n_lost += part.n_lost;
    return status;
}

enum ctl_exit ctl_hosts_at_switches(struct ctl_export *x, size_t plane, uint32_t *at)
{
    struct planting p = {.x = x, .fab = x->view->planes[plane], .host_base = at};
    const char *nothing = NULL;
    enum ctl_exit status;
    if (pmixfab_plane(p.fab, &p.plane) != 0)
        return ctl_export_contradicts();
    p.n_bases = p.plane.n_switches;
    p.base = malloc((p.n_bases + (size_t)1) * sizeof *p.base);
    for (uint32_t s = 0; p.base != NULL && s < p.n_bases; s++)
        p.base[s] = s;
    status = p.base != NULL ? planting_hosts(&p, &nothing, 0) : ctl_nomem();
    free(p.base);
    return status;
}

void ctl_tree_free(struct ctl_tree *tree)
{
    free(tree->vertices);
    free(tree->edges);
    free(tree->hosts);
    free(tree->begin);
    free(tree->children);
    *tree = (struct ctl_tree){0};
}
