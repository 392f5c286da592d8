/*
 * tree_formats.c - the tree for Kubernetes' schedulers, for Fluxion and for topograph.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/export/export.h"
#include "topo/base/hostlist.h"

/* ---- labels of nodes with Kueue's topology, which reads them, and Volcano's HyperNodes ---- */

/* Return whether an object may have this name: small letters, digits and '-', in parts with '.' between. */
static bool kube_name(const char *name)
{
    const size_t len = strlen(name);
    if (len == 0 || len > 253 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != len)
        return false;
    for (const char *part = name;; part++) {
        const size_t n = strcspn(part, ".");
        if (n == 0 || part[0] == '-' || part[n - 1] == '-')
            return false;
        part += n;
        if (*part == '\0')
            return true;
    }
}

static void lost_names(struct ctl_export *x, const struct ctl_tree *tree)
{
    for (uint32_t i = 0; i < tree->n_hosts; i++)
        if (!kube_name(tree->hosts[i]))
            ctl_export_lost(x, "host %s: not allowed as the name of a Kubernetes node, left out",
                            tree->hosts[i]);
}

/*
 * Write a vertex's name as an object name. It is the name itself, or for a switch "s" and its GUID, or the
 * name in small letters with '-' for '_'.
 */
static const char *kube_vertex(char out[static CTL_VERTEX_NAME], const struct ctl_vertex *vertex)
{
    snprintf(out, CTL_VERTEX_NAME, "%s", vertex->name);
    if (kube_name(out))
        return out;
    if (vertex->height == 0 && !vertex->unit)
        snprintf(out, CTL_VERTEX_NAME, "s%" PRIx64, vertex->guid);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == '_' || *c == '.' ? '-' : (char)tolower((unsigned char)*c);
    return out;
}

/* ---- labels ---- */

/* Maximum number of Kueue's levels; the host itself is the last one. */
#define TIERS_MOST 15

static void put_labels(FILE *out, const struct ctl_tree *tree, uint32_t highest)
{
    for (uint32_t v = 0; v < tree->n; v++)
        for (uint32_t h = 0; h < tree->vertices[v].n_hosts; h++) {
            const char *host = tree->vertices[v].hosts[h];
            if (!kube_name(host))
                continue;
            fprintf(out, "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: \"%s\"\n  labels:\n", host);
            for (uint32_t height = 0; height <= highest; height++)
                fprintf(out, "    fabricd/tier-%u: \"%s\"\n", height,
                        tree->vertices[ctl_tree_at(tree, v, height)].name);
        }
}

enum ctl_exit ctl_write_k8s_labels(struct ctl_export *x, const struct ctl_tree *tree)
{
    uint32_t highest = 0;
    lost_names(x, tree);
    for (uint32_t v = 0; v < tree->n; v++)
        highest = tree->vertices[v].height > highest ? tree->vertices[v].height : highest;
    if (highest >= TIERS_MOST) {
        ctl_export_lost(x, "%u tiers of switches: Kueue accepts %u, those above are left out", highest + 1,
                        TIERS_MOST);
        highest = TIERS_MOST - 1;
    }
    for (uint32_t height = highest + 1; height-- > 0;)
        fprintf(x->out, "    - nodeLabel: fabricd/tier-%u\n", height);
    fputs("    - nodeLabel: kubernetes.io/hostname\n", x->out);
    put_labels(x->out, tree, highest);
    return CTL_DONE;
}

/* ---- HyperNodes ---- */

static void put_member(FILE *out, const char *type, const char *name)
{
    fprintf(out, "    - type: %s\n      selector:\n        exactMatch:\n          name: \"%s\"\n", type,
            name);
}

/*
 * Return whether a HyperNode has members: Volcano rejects one without. filled: the same for each vertex
 * before this one.
 */
static bool has_members(const struct ctl_tree *tree, const bool *filled, uint32_t v)
{
    const struct ctl_vertex *vertex = &tree->vertices[v];
    bool some = false;
    for (uint32_t h = 0; h < vertex->n_hosts; h++)
        some |= kube_name(vertex->hosts[h]);
    for (uint32_t i = tree->begin[v]; i < tree->begin[v + 1]; i++)
        some |= filled[tree->children[i]];
    return some;
}

static void put_hypernode(FILE *out, const struct ctl_tree *tree, const bool *filled, uint32_t v)
{
    const struct ctl_vertex *vertex = &tree->vertices[v];
    char name[CTL_VERTEX_NAME];
    fprintf(out,
            "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n  name: \"%s\"\n"
            "  annotations:\n    fabricd/switch: \"%s\"\nspec:\n  tier: %u\n  members:\n",
            kube_vertex(name, vertex), vertex->name, vertex->height + 1);
    for (uint32_t h = 0; h < vertex->n_hosts; h++)
        if (kube_name(vertex->hosts[h]))
            put_member(out, "Node", vertex->hosts[h]);
    for (uint32_t i = tree->begin[v]; i < tree->begin[v + 1]; i++)
        if (filled[tree->children[i]])
            put_member(out, "HyperNode", kube_vertex(name, &tree->vertices[tree->children[i]]));
}

enum ctl_exit ctl_write_volcano(struct ctl_export *x, const struct ctl_tree *tree)
{
    bool *filled = calloc(tree->n + (size_t)1, sizeof *filled);
    if (filled == NULL)
        return ctl_nomem();
    lost_names(x, tree);
    for (uint32_t v = 0; v < tree->n; v++) {
        filled[v] = has_members(tree, filled, v);
        if (filled[v])
            put_hypernode(x->out, tree, filled, v);
    }
    free(filled);
    return CTL_DONE;
}

/*
 * ---- the tree as a JSON Graph Format for Fluxion: a cluster, switches, and nodes. Flux's own brokers find
 * the contents of a node.
 */

struct jgf {
    json_t *nodes, *edges;
    uint32_t n;
    bool failed;
};

/* Add a vertex, and the edge from its container (UINT32_MAX: none). Return its number. */
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

/* Add everything below the cluster, from the last vertex back, since parents stand after their children. */
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

enum ctl_exit ctl_write_flux_jgf(struct ctl_export *x, const struct ctl_tree *tree)
{
    struct jgf g = {.nodes = json_array(), .edges = json_array()};
    char **paths = calloc(tree->n + (size_t)1, sizeof *paths);
    uint32_t *numbers = calloc(tree->n + (size_t)1, sizeof *numbers);
    json_t *all = NULL;
    g.failed = g.nodes == NULL || g.edges == NULL || paths == NULL || numbers == NULL;
    if (!g.failed) {
        jgf_add(&g, "cluster", 0, "cluster0", -1, "/cluster0", UINT32_MAX);
        jgf_tree(&g, tree, paths, numbers);
    }
    if (!g.failed)
        all = json_pack("{s:{s:O, s:O}}", "graph", "nodes", g.nodes, "edges", g.edges);
    for (uint32_t v = 0; paths != NULL && v < tree->n; v++)
        free(paths[v]);
    free(paths);
    free(numbers);
    json_decref(g.nodes);
    json_decref(g.edges);
    return ctl_json_print(x->out, all);
}

/* ---- a model of NVIDIA's topograph, and the answer of its engine `graph` ---- */

/* Write a folded list for topograph: an item for each name or each pair of brackets. */
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

/*
 * Write a vertex that has others below it, or none above and below; topograph derives the others from these.
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

enum ctl_exit ctl_write_topograph(struct ctl_export *x, const struct ctl_tree *tree)
{
    for (uint32_t v = 0; v < tree->n; v++)
        write_model_switch(x->out, tree, v);
    fputs("blocks:\n", x->out);
    for (uint32_t v = 0; v < tree->n; v++) {
        const struct ctl_vertex *vertex = &tree->vertices[v];
        char *list;
        if (vertex->height > 0)
            continue;
        list = ctl_tree_below(tree, v);
        if (list == NULL)
            return ctl_nomem();
        fprintf(x->out, "- switch: \"%s\"\n  nodes: [", vertex->name);
        write_items(x->out, list);
        fputs("]\n", x->out);
        free(list);
    }
    return CTL_DONE;
}

/* The names of a tree need no escapes in JSON. */
enum ctl_exit ctl_write_topograph_graph(struct ctl_export *x, const struct ctl_tree *tree)
{
    FILE *out = x->out;
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
