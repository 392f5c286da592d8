/*
 * export_topograph.c - what NVIDIA's topograph calls a model, and the answer of its engine `graph`.
 */
#include "fabricctl/export/export.h"
#include "fabricctl/export/export_tree.h"

#include <stdlib.h>

#include "topo/base/hostlist.h"

/* A folded list as topograph takes it: an item for each name or each pair of brackets. */
static void write_items(FILE *out, const char *list)
{
    bool inside = false;

    putc('"', out);
    for (; *list != '\0'; list++) {
        inside = *list == '[' || (inside && *list != ']');
        if (*list == ',' && !inside)
            fputs("\", \"", out);
        else
            putc(*list, out);
    }
    putc('"', out);
}

/* Vertices above others, and one that nothing is above or below: topograph knows the other ones from these.
 */
static void write_model_switch(FILE *out, const struct ctl_tree *tree, uint32_t v)
{
    const struct ctl_vertex *vertex = &tree->vertices[v];
    const char *between = "";

    if (vertex->height == 0 && vertex->parent != UINT32_MAX)
        return;
    fprintf(out, "  \"%s\":%s", vertex->name, vertex->height == 0 ? " {}\n" : "\n    switches: [");
    for (uint32_t child = 0; vertex->height > 0 && child < v; child++)
        if (tree->vertices[child].parent == v) {
            fprintf(out, "%s\"%s\"", between, tree->vertices[child].name);
            between = ", ";
        }
    if (vertex->height > 0)
        fputs("]\n", out);
}

static enum ctl_exit write_model(FILE *out, const struct ctl_tree *tree)
{
    fputs("# NVIDIA topograph, a model, by fabricctl export topograph\nswitches:\n", out);
    for (uint32_t v = 0; v < tree->n; v++)
        write_model_switch(out, tree, v);
    fputs("blocks:\n", out);
    for (uint32_t v = 0; v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];
        char *list;

        if (vertex->height > 0)
            continue;
        list = fab_hostlist_fold(vertex->hosts, vertex->n_hosts);
        if (list == NULL)
            return ctl_nomem();
        fprintf(out, "- switch: \"%s\"\n  nodes: [", vertex->name);
        write_items(out, list);
        fputs("]\n", out);
        free(list);
    }
    ctl_tree_mapping(out, tree);
    return CTL_DONE;
}

/* The names of a tree need nothing in JSON before them. */
static enum ctl_exit write_graph(FILE *out, const struct ctl_tree *tree)
{
    const char *between = "";

    fputs("{\"instances\": [", out);
    for (uint32_t v = 0; v < tree->n; v++)
        for (uint32_t h = 0; h < tree->vertices[v].n_hosts; h++) {
            fprintf(out, "%s\n  {\"id\": \"%s\", \"network_layers\": [\"%s\"", between,
                    tree->vertices[v].hosts[h], tree->vertices[v].name);
            for (uint32_t up = tree->vertices[v].parent; up != UINT32_MAX; up = tree->vertices[up].parent)
                fprintf(out, ", \"%s\"", tree->vertices[up].name);
            fputs("]}", out);
            between = ",";
        }
    fputs("\n]}\n", out);
    return CTL_DONE;
}

static enum ctl_exit export_tree(struct ctl_export *x,
                                 enum ctl_exit (*write)(FILE *out, const struct ctl_tree *tree))
{
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build(x, &tree);

    if (status == CTL_DONE)
        status = write(x->out, &tree);
    ctl_tree_free(&tree);
    return status;
}

enum ctl_exit ctl_export_topograph(struct ctl_export *x)
{
    return export_tree(x, write_model);
}

enum ctl_exit ctl_export_topograph_graph(struct ctl_export *x)
{
    return export_tree(x, write_graph);
}
