/*
 * tree_below.c - what stands below a vertex of a tree, and above a leaf.
 */
#include "fabricctl/export/export_tree.h"

#include <stdlib.h>

#include "topo/base/hostlist.h"

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
