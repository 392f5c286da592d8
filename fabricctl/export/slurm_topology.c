/* slurm_topology.c - Slurm's files: topology.conf of topology/tree and topology/block, and topology.yaml. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/export/export.h"
#include "topo/base/array.h"

/* ---- topology.conf of Slurm's topology/tree ---- */

enum ctl_exit ctl_write_slurm_tree(struct ctl_export *x, const struct ctl_tree *tree)
{
    for (uint32_t v = 0; v < tree->n; v++) {
        char *list = ctl_tree_below(tree, v);
        if (list == NULL)
            return ctl_nomem();
        fprintf(x->out, "SwitchName=%s %s=%s\n", tree->vertices[v].name,
                tree->vertices[v].height == 0 ? "Nodes" : "Switches", list);
        free(list);
    }
    return CTL_DONE;
}

/* ---- topology.conf of Slurm's topology/block ---- */

/* Write a comment for readers of older versions: a block with fewer hosts than the first size. */
static void put_smallest(struct ctl_export *x, const struct ctl_tree *tree, const struct ctl_blocks *blocks)
{
    const struct ctl_place *smallest = NULL;
    for (uint32_t i = 0; i < blocks->n_places; i++) {
        const struct ctl_place *place = &blocks->places[i];
        if (place->leaf != UINT32_MAX && (smallest == NULL || tree->vertices[place->leaf].n_hosts <
                                                                  tree->vertices[smallest->leaf].n_hosts))
            smallest = place;
    }
    if (smallest != NULL && tree->vertices[smallest->leaf].n_hosts < blocks->base)
        fprintf(x->out,
                "# %s has fewer hosts than the first of BlockSizes: Slurm before 25.05 does not start with "
                "that\n",
                smallest->name);
}

static enum ctl_exit put_blocks(struct ctl_export *x, const struct ctl_tree *tree,
                                const struct ctl_blocks *blocks)
{
    put_smallest(x, tree, blocks);
    for (uint32_t i = 0; i < blocks->n_places; i++) {
        const struct ctl_place *place = &blocks->places[i];
        char *list = place->leaf != UINT32_MAX ? ctl_tree_below(tree, place->leaf) : NULL;
        if (list == NULL && place->leaf != UINT32_MAX)
            return ctl_nomem();
        fprintf(x->out, "%sBlockName=%s%s%s\n", list == NULL && blocks->no_empty ? "# " : "", place->name,
                list != NULL ? " Nodes=" : "", list != NULL ? list : "");
        free(list);
    }
    for (unsigned level = 0; level < blocks->n_levels; level++)
        fprintf(x->out, "%s%u%s", level == 0 ? "BlockSizes=" : ",", blocks->base * blocks->together[level],
                level + 1 == blocks->n_levels ? "\n" : "");
    return ctl_blocks_mapping(x->out, tree, blocks);
}

enum ctl_exit ctl_write_slurm_block(struct ctl_export *x, const struct ctl_tree *tree)
{
    struct ctl_blocks blocks;
    enum ctl_exit status = ctl_blocks_make(x, tree, "default", &blocks) ?: put_blocks(x, tree, &blocks);
    ctl_blocks_free(&blocks);
    return status;
}

/*
 * ---- topology.yaml of Slurm 25.05
 *
 * The file has a tree for each plane, or the topologies of --topologies. All texts are in quotes, because a
 * name may consist of digits.
 */

enum kind { KIND_TREE, KIND_BLOCK, KIND_FLAT, KIND_RING, KIND_TORUS3D, N_KINDS };
static const char *const kind_names[N_KINDS] = {"tree", "block", "flat", "ring", "torus3d"};

/* A topology of the file. */
struct topology {
    char name[CTL_VERTEX_NAME];
    enum kind kind;
    bool is_default;
    struct ctl_view planes; /* the planes belong to the export */
    struct ctl_tree tree;   /* of a topology with hosts at leaves, unless another has the same planes */
    uint32_t same;          /* the topology that has its tree */
};

struct topologies {
    struct topology *all;
    uint32_t n, room;
};

/* ---- --topologies ---- */

#define LIST_HELP "give NAME=KIND:PLANE[+PLANE...], as compute=tree:ib0 storage=flat"

static enum ctl_exit topology_add(struct topologies *t, const char *name, size_t len, enum kind kind)
{
    struct topology *new;
    if (!FAB_ARRAY_ROOM(&t->all, &t->room, t->n + UINT64_C(1)))
        return ctl_nomem();
    new = &t->all[t->n];
    *new = (struct topology){.kind = kind, .same = t->n};
    snprintf(new->name, sizeof new->name, "%.*s", (int)len, name);
    t->n++;
    return CTL_DONE;
}

static enum kind kind_by_name(const char *name, size_t len)
{
    for (unsigned kind = 0; kind < N_KINDS; kind++)
        if (strlen(kind_names[kind]) == len && strncmp(kind_names[kind], name, len) == 0)
            return (enum kind)kind;
    return N_KINDS;
}

/* Add the planes that a pattern matches, each once, in the order of their index. */
static enum ctl_exit add_planes(struct ctl_export *x, struct topology *t, const char *pattern)
{
    bool *chosen = calloc(x->view->n + 1, sizeof *chosen), any = false;
    struct pmixfab_plane plane;
    size_t n = 0;
    if (chosen == NULL)
        return ctl_nomem();
    for (size_t i = 0; i < x->view->n; i++) {
        for (size_t c = 0; c < t->planes.n; c++)
            chosen[i] |= t->planes.planes[c] == x->view->planes[i];
        if (pmixfab_plane(x->view->planes[i], &plane) == 0 && fnmatch(pattern, plane.name, 0) == 0)
            chosen[i] = any = true;
    }
    for (size_t i = 0; i < x->view->n; i++)
        if (chosen[i])
            t->planes.planes[n++] = x->view->planes[i];
    t->planes.n = n;
    free(chosen);
    return any ? CTL_DONE
               : ctl_error("not written: --topologies: %s: no plane %s: see fabricctl planes", t->name,
                           pattern);
}

/* Read "*NAME=KIND:PLANE+PLANE". */
static enum ctl_exit read_topology(struct ctl_export *x, struct topologies *t, char *word)
{
    const bool marked = word[0] == '*';
    char *const name = word + marked, *const equals = strchr(name, '=');
    char *const kind_name = equals != NULL ? equals + 1 : name, *const planes = strchr(kind_name, ':');
    const size_t len = (size_t)(kind_name - 1 - name);
    char *rest = NULL;
    enum ctl_exit status;
    struct topology *new;
    enum kind kind;
    if (equals == NULL)
        return ctl_usage("no topology: --topologies: %s: " LIST_HELP, word);
    kind = kind_by_name(kind_name, planes != NULL ? (size_t)(planes - kind_name) : strlen(kind_name));
    if (kind == N_KINDS)
        return ctl_usage("no such kind: --topologies: %s: there are tree, block, flat, ring and torus3d",
                         word);
    if ((planes == NULL || planes[1 + strspn(planes + 1, "+")] == '\0') && kind != KIND_FLAT)
        return ctl_usage("no plane: --topologies: %s: " LIST_HELP, word);
    status = topology_add(t, name, len, kind);
    if (status != CTL_DONE)
        return status;
    new = &t->all[t->n - 1];
    new->is_default = marked;
    if (len > CTL_NAME_MOST || !ctl_plain_name(new->name, CTL_NAME_MOST))
        return ctl_usage("no name for a topology: --topologies: %s: give letters, digits, '.', '_' and '-'",
                         word);
    for (uint32_t i = 0; i + 1 < t->n; i++)
        if (strcmp(t->all[i].name, new->name) == 0 || (marked && t->all[i].is_default))
            return ctl_usage("%s: --topologies: %s: give each topology a name, and one of them the *",
                             strcmp(t->all[i].name, new->name) == 0 ? "a name twice" : "two default ones",
                             word);
    new->planes.planes = calloc(x->view->n + 1, sizeof(struct pmixfab *));
    if (new->planes.planes == NULL)
        return ctl_nomem();
    for (char *plane = planes != NULL ? strtok_r(planes + 1, "+", &rest) : NULL;
         status == CTL_DONE && plane != NULL; plane = strtok_r(NULL, "+", &rest))
        status = add_planes(x, new, plane);
    return status;
}

/* Return the topology that has the tree of the same planes; its own number: none before it. */
static uint32_t with_same_planes(const struct topologies *t, uint32_t number)
{
    const struct ctl_view *planes = &t->all[number].planes;
    for (uint32_t i = 0; i < number; i++)
        if (t->all[i].tree.n > 0 && t->all[i].planes.n == planes->n &&
            memcmp(t->all[i].planes.planes, planes->planes, planes->n * sizeof *planes->planes) == 0)
            return i;
    return number;
}

static enum ctl_exit read_topologies(struct ctl_export *x, struct topologies *t)
{
    char *copy = strdup(x->ctl->topologies), *rest = NULL;
    enum ctl_exit status = copy != NULL ? CTL_DONE : ctl_nomem();
    bool marked = false;
    for (char *word = copy != NULL ? strtok_r(copy, ", \t", &rest) : NULL; status == CTL_DONE && word != NULL;
         word = strtok_r(NULL, ", \t", &rest))
        status = read_topology(x, t, word);
    free(copy);
    if (status == CTL_DONE && t->n == 0)
        status = ctl_usage("no topology: --topologies: " LIST_HELP);
    for (uint32_t i = 0; status == CTL_DONE && i < t->n; i++) {
        struct topology *one = &t->all[i];
        marked |= one->is_default;
        if (one->kind != KIND_TREE && one->kind != KIND_BLOCK)
            continue;
        one->same = with_same_planes(t, i);
        if (one->same == i)
            status = ctl_tree_build_some(x, &one->planes, &one->tree);
        if (status == CTL_DONE && t->all[one->same].tree.n == 0)
            status = ctl_error("nothing to write: --topologies: %s: no host with a name is connected to a "
                               "switch of its planes: see fabricctl devices",
                               one->name);
    }
    if (status == CTL_DONE && !marked)
        t->all[0].is_default = true;
    return status;
}

/* ---- without --topologies: a tree for each plane with switches ---- */

/* The default tree is that of the default plane, or the first tree if the default plane has none. */
static enum ctl_exit trees_of_planes(struct ctl_export *x, struct topologies *t)
{
    enum ctl_exit status = CTL_DONE;
    uint32_t is_default = 0;
    for (size_t i = 0; status == CTL_DONE && i < x->view->n; i++) {
        struct pmixfab_plane plane;
        struct topology *new;
        char buf[CTL_VERTEX_NAME];
        const char *name;
        if (pmixfab_plane(x->view->planes[i], &plane) != 0 || plane.n_switches == 0)
            continue;
        name = ctl_plane_name(&plane, buf);
        status = topology_add(t, name, strlen(name), KIND_TREE);
        if (status != CTL_DONE)
            break;
        new = &t->all[t->n - 1];
        new->planes = (struct ctl_view){malloc(sizeof(struct pmixfab *)), 1};
        if (new->planes.planes == NULL)
            return ctl_nomem();
        new->planes.planes[0] = x->view->planes[i];
        status = ctl_tree_build_some(x, &new->planes, &new->tree);
        if (status == CTL_DONE && new->tree.n == 0) {
            if (x->n_chosen == 0 && x->ctl->nodes == NULL)
                ctl_export_lost(x, "plane %s: no host with a name is connected to a switch, left out",
                                plane.name);
            ctl_tree_free(&new->tree);
            free(new->planes.planes);
            t->n--;
        } else if (plane.is_default != 0)
            is_default = t->n - 1;
    }
    if (status == CTL_DONE && t->n == 0)
        status =
            ctl_error("nothing to write: no plane has a host with a name at a switch: see fabricctl devices");
    if (status == CTL_DONE)
        t->all[is_default].is_default = true;
    return status;
}

/* ---- the file ---- */

static enum ctl_exit put_tree(FILE *out, const struct ctl_tree *tree)
{
    fputs("  tree:\n    switches:\n", out);
    for (uint32_t v = 0; v < tree->n; v++) {
        char *list = ctl_tree_below(tree, v);
        if (list == NULL)
            return ctl_nomem();
        fprintf(out, "      - switch: \"%s\"\n        %s: \"%s\"\n", tree->vertices[v].name,
                tree->vertices[v].height == 0 ? "nodes" : "children", list);
        free(list);
    }
    ctl_tree_mapping(out, tree, NULL);
    return CTL_DONE;
}

static enum ctl_exit put_places(FILE *out, const struct ctl_tree *tree, const struct ctl_blocks *blocks)
{
    fputs("  block:\n    block_sizes:\n", out);
    for (unsigned level = 0; level < blocks->n_levels; level++)
        fprintf(out, "      - %u\n", blocks->base * blocks->together[level]);
    fputs("    blocks:\n", out);
    for (uint32_t i = 0; i < blocks->n_places; i++) {
        const struct ctl_place *place = &blocks->places[i];
        char *list = place->leaf != UINT32_MAX ? ctl_tree_below(tree, place->leaf) : NULL;
        if (list == NULL && place->leaf != UINT32_MAX)
            return ctl_nomem();
        fprintf(out, "      - block: \"%s\"\n", place->name);
        if (list != NULL)
            fprintf(out, "        nodes: \"%s\"\n", list);
        free(list);
    }
    return ctl_blocks_mapping(out, tree, blocks);
}

static enum ctl_exit put_topology_blocks(struct ctl_export *x, const struct topology *t,
                                         const struct ctl_tree *tree)
{
    struct ctl_blocks blocks;
    enum ctl_exit status = ctl_blocks_make(x, tree, t->name, &blocks) ?: put_places(x->out, tree, &blocks);
    ctl_blocks_free(&blocks);
    return status;
}

/* Write a ring or torus, which is in one plane. */
static enum ctl_exit put_geometry(struct ctl_export *x, const struct topology *t)
{
    struct ctl_export part = *x;
    enum ctl_exit status;
    if (t->planes.n != 1)
        return ctl_error("not written: --topologies: %s: the kind %s has one plane, not %zu", t->name,
                         kind_names[t->kind], t->planes.n);
    part.view = &t->planes;
    status = t->kind == KIND_RING ? ctl_slurm_ring(&part, 0) : ctl_slurm_torus3d(&part, 0);
    x->n_lost = part.n_lost;
    return status;
}

static enum ctl_exit put_topology(struct ctl_export *x, const struct topology *t, const struct ctl_tree *tree)
{
    fprintf(x->out, "- topology: \"%s\"\n  cluster_default: %s\n", t->name, t->is_default ? "true" : "false");
    switch (t->kind) {
    case KIND_TREE:
        return put_tree(x->out, tree);
    case KIND_BLOCK:
        return put_topology_blocks(x, t, tree);
    case KIND_FLAT:
        fputs("  flat: true\n", x->out);
        return CTL_DONE;
    default:
        return put_geometry(x, t);
    }
}

enum ctl_exit ctl_export_slurm_yaml(struct ctl_export *x)
{
    struct topologies t = {.all = NULL};
    enum ctl_exit status = x->ctl->topologies != NULL ? read_topologies(x, &t) : trees_of_planes(x, &t);
    for (uint32_t i = 0; status == CTL_DONE && i < t.n; i++)
        status = put_topology(x, &t.all[i], &t.all[t.all[i].same].tree);
    for (uint32_t i = 0; i < t.n; i++) {
        ctl_tree_free(&t.all[i].tree);
        free(t.all[i].planes.planes);
    }
    free(t.all);
    return status;
}
