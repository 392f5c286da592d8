/*
 * kubernetes.c - labels of nodes with the topology of Kueue that reads them, and Volcano's HyperNodes.
 */
#include "fabricctl/export/export.h"
#include "fabricctl/export/export_tree.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Can an object be called so: small letters, digits and '-', in parts with '.' between them? */
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
            ctl_export_lost(x, "host %s: no node of Kubernetes can be called so, left out", tree->hosts[i]);
}

/* A vertex as an object is called: its name, or of a switch "s" and its GUID, or in small letters with '-'
 * for '_'. */
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

/* Kueue takes so many levels; the host itself is the last one. */
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

enum ctl_exit ctl_export_k8s_labels(struct ctl_export *x)
{
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build(x, &tree);
    uint32_t highest = 0;

    if (status == CTL_DONE) {
        lost_names(x, &tree);
        for (uint32_t v = 0; v < tree.n; v++)
            highest = tree.vertices[v].height > highest ? tree.vertices[v].height : highest;
        if (highest >= TIERS_MOST) {
            ctl_export_lost(x, "%u tiers of switches: Kueue takes %u, those above are left out", highest + 1,
                            TIERS_MOST);
            highest = TIERS_MOST - 1;
        }
        fputs("# Kueue's topology and the labels that it reads, by fabricctl export k8s-labels\n---\n"
              "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata:\n  name: fabricd\nspec:\n  "
              "levels:\n",
              x->out);
        for (uint32_t height = highest + 1; height-- > 0;)
            fprintf(x->out, "    - nodeLabel: fabricd/tier-%u\n", height);
        fputs("    - nodeLabel: kubernetes.io/hostname\n", x->out);
        put_labels(x->out, &tree, highest);
        ctl_tree_mapping(x->out, &tree);
    }
    ctl_tree_free(&tree);
    return status;
}

/* ---- HyperNodes ---- */

static void put_member(FILE *out, const char *type, const char *name)
{
    fprintf(out, "    - type: %s\n      selector:\n        exactMatch:\n          name: \"%s\"\n", type,
            name);
}

/* Volcano takes no HyperNode without members. `filled`: has it some, said of each vertex before this one. */
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

enum ctl_exit ctl_export_volcano(struct ctl_export *x)
{
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build(x, &tree);
    bool *filled = calloc(tree.n + (size_t)1, sizeof *filled);

    if (status == CTL_DONE && filled != NULL) {
        lost_names(x, &tree);
        fputs("# Volcano's HyperNodes, by fabricctl export volcano\n", x->out);
        for (uint32_t v = 0; v < tree.n; v++) {
            filled[v] = has_members(&tree, filled, v);
            if (filled[v])
                put_hypernode(x->out, &tree, filled, v);
        }
        ctl_tree_mapping(x->out, &tree);
    } else if (status == CTL_DONE)
        status = ctl_nomem();
    free(filled);
    ctl_tree_free(&tree);
    return status;
}
