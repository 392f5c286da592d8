/*
 * slurm_tree.c - topology.conf of Slurm's topology/tree.
 */
#include "fabricctl/export/tree.h"

#include <stdlib.h>

#include "topo/base/hostlist.h"

/* The children of a vertex, folded; NULL without memory. Children of one are often neighbours, their names
 * are. */
static char *children_of(const struct ctl_tree *tree, const uint32_t *children, uint32_t n,
                         const char **names)
{
    for (uint32_t i = 0; i < n; i++)
        names[i] = tree->vertices[children[i]].name;
    return fab_hostlist_fold(names, n);
}

/* All vertices by their parents: those of v are children[begin[v]..begin[v + 1] - 1]. */
static bool sort_children(const struct ctl_tree *tree, uint32_t *begin, uint32_t *children)
{
    uint32_t *fill = calloc(tree->n + (size_t)1, sizeof *fill);

    if (fill == NULL)
        return false;
    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].parent != UINT32_MAX)
            begin[tree->vertices[v].parent + 1]++;
    for (uint32_t v = 0; v < tree->n; v++) {
        begin[v + 1] += begin[v];
        fill[v] = begin[v];
    }
    for (uint32_t v = 0; v < tree->n; v++)
        if (tree->vertices[v].parent != UINT32_MAX)
            children[fill[tree->vertices[v].parent]++] = v;
    free(fill);
    return true;
}

static enum ctl_exit write_tree(FILE *out, const struct ctl_tree *tree)
{
    uint32_t *begin = calloc(tree->n + (size_t)2, sizeof *begin);
    uint32_t *children = calloc(tree->n + (size_t)1, sizeof *children);
    const char **names = calloc(tree->n + (size_t)1, sizeof *names);
    bool good = begin != NULL && children != NULL && names != NULL && sort_children(tree, begin, children);

    if (good)
        fputs("# Slurm topology.conf (TopologyPlugin=topology/tree), by fabricctl export slurm-tree\n", out);
    for (uint32_t v = 0; good && v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];
        char *list = vertex->height == 0
                         ? fab_hostlist_fold(vertex->hosts, vertex->n_hosts)
                         : children_of(tree, children + begin[v], begin[v + 1] - begin[v], names);

        good = list != NULL;
        if (good)
            fprintf(out, "SwitchName=%s %s=%s\n", vertex->name, vertex->height == 0 ? "Nodes" : "Switches",
                    list);
        free(list);
    }
    if (good)
        ctl_tree_mapping(out, tree);
    free(begin);
    free(children);
    free(names);
    return good ? CTL_DONE : ctl_nomem();
}

enum ctl_exit ctl_export_slurm_tree(struct ctl_export *x)
{
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build(x, &tree);

    if (status == CTL_DONE)
        status = write_tree(x->out, &tree);
    ctl_tree_free(&tree);
    return status;
}
