/*
 * flux_jgf.c - the tree as a JSON Graph Format that Fluxion reads: a cluster, switches, and nodes. What is in
 * a node Flux's own brokers find.
 */
#include "fabricctl/export/export.h"
#include "fabricctl/export/export_tree.h"

#include <stdlib.h>

#include "fabricctl/core/table.h"

struct jgf {
    json_t *nodes, *edges;
    uint32_t n;
    bool failed;
};

/* A vertex, and the edge from the one that contains it (UINT32_MAX: none). Returns its number. */
static uint32_t jgf_add(struct jgf *g, const char *type, uint32_t id, const char *name, int64_t rank,
                        const char *path, uint32_t above)
{
    char number[16], from[16];

    snprintf(number, sizeof number, "%u", g->n);
    snprintf(from, sizeof from, "%u", above);
    g->failed |=
        json_array_append_new(
            g->nodes, json_pack("{s:s, s:{s:s, s:s, s:s, s:i, s:i, s:I, s:b, s:s, s:i, s:{s:s}}}", "id",
                                number, "metadata", "type", type, "basename", type, "name", name, "id",
                                (int)id, "uniq_id", (int)g->n, "rank", (json_int_t)rank, "exclusive", 0,
                                "unit", "", "size", 1, "paths", "containment", path)) != 0;
    if (above != UINT32_MAX)
        g->failed |=
            json_array_append_new(g->edges, json_pack("{s:s, s:s, s:{s:s}}", "source", from, "target", number,
                                                      "metadata", "subsystem", "containment")) != 0;
    return g->n++;
}

static char *path_of(const char *above, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", above, name) < 0 ? NULL : path;
}

/* All below the cluster: parents come behind their children, so from the last one back. */
static void jgf_tree(struct jgf *g, const struct ctl_tree *tree, char **paths, uint32_t *numbers)
{
    int64_t rank = 0;

    for (uint32_t v = tree->n; v-- > 0 && !g->failed;) {
        const struct ctl_vertex *vertex = &tree->vertices[v];
        const bool root = vertex->parent == UINT32_MAX;

        paths[v] = path_of(root ? "/cluster0" : paths[vertex->parent], vertex->name);
        if (paths[v] == NULL)
            g->failed = true;
        else
            numbers[v] =
                jgf_add(g, "switch", v, vertex->name, -1, paths[v], root ? 0 : numbers[vertex->parent]);
    }
    for (uint32_t v = 0; v < tree->n; v++)
        for (uint32_t h = 0; h < tree->vertices[v].n_hosts && !g->failed; h++, rank++) {
            const char *host = tree->vertices[v].hosts[h];
            char *path = path_of(paths[v], host);

            if (path == NULL)
                g->failed = true;
            else
                jgf_add(g, "node", (uint32_t)rank, host, rank, path, numbers[v]);
            free(path);
        }
}

enum ctl_exit ctl_export_flux_jgf(struct ctl_export *x)
{
    struct jgf g = {.nodes = json_array(), .edges = json_array()};
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build(x, &tree);
    char **paths = calloc(tree.n + (size_t)1, sizeof *paths);
    uint32_t *numbers = calloc(tree.n + (size_t)1, sizeof *numbers);
    json_t *all = NULL;

    g.failed = g.nodes == NULL || g.edges == NULL || paths == NULL || numbers == NULL;
    if (status == CTL_DONE && !g.failed) {
        jgf_add(&g, "cluster", 0, "cluster0", -1, "/cluster0", UINT32_MAX);
        jgf_tree(&g, &tree, paths, numbers);
    }
    if (status == CTL_DONE && !g.failed)
        all = json_pack("{s:{s:O, s:O}}", "graph", "nodes", g.nodes, "edges", g.edges);
    if (status == CTL_DONE)
        status = all == NULL ? ctl_nomem() : ctl_json_print(x->out, all);
    for (uint32_t v = 0; paths != NULL && v < tree.n; v++)
        free(paths[v]);
    free(paths);
    free(numbers);
    json_decref(g.nodes);
    json_decref(g.edges);
    ctl_tree_free(&tree);
    return status;
}
