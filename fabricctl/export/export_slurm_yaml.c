/*
 * export_slurm_yaml.c - topology.yaml of Slurm 25.05: a topology/tree for each plane. All texts are in
 * quotes: a name may be of digits only.
 */
#include "fabricctl/export/export.h"
#include "fabricctl/export/export_tree.h"

#include <stdlib.h>

static enum ctl_exit yaml_write(FILE *out, const struct pmixfab *fab, struct ctl_tree *tree, bool is_default)
{
    char buf[CTL_VERTEX_NAME];
    struct pmixfab_plane plane;

    if (pmixfab_plane(fab, &plane) != 0)
        return ctl_error("nothing to write: a plane's snapshot contradicts itself");
    fprintf(out, "- topology: \"%s\"\n  cluster_default: %s\n  tree:\n    switches:\n",
            ctl_plane_name(&plane, buf), is_default ? "true" : "false");
    for (uint32_t v = 0; v < tree->n; v++) {
        char *list = ctl_tree_below(tree, v);

        if (list == NULL)
            return ctl_nomem();
        fprintf(out, "      - switch: \"%s\"\n        %s: \"%s\"\n", tree->vertices[v].name,
                tree->vertices[v].height == 0 ? "nodes" : "children", list);
        free(list);
    }
    ctl_tree_mapping(out, tree);
    return CTL_DONE;
}

/* A tree for each plane with switches, and which of them is the default: the default plane, or the first one
 * where that has no tree; it is SIZE_MAX before. */
static enum ctl_exit yaml_trees(struct ctl_export *x, struct ctl_tree *trees, size_t *is_default)
{
    enum ctl_exit status = CTL_DONE;
    bool found = false;

    for (size_t i = 0; status == CTL_DONE && i < x->view->n; i++) {
        struct pmixfab_plane plane;

        if (pmixfab_plane(x->view->planes[i], &plane) != 0 || plane.n_switches == 0)
            continue;
        status = ctl_tree_build_plane(x, i, &trees[i]);
        if (status == CTL_DONE && trees[i].n == 0 && x->n_chosen == 0)
            ctl_export_lost(x, "plane %s: no host with a name is at a switch, left out", plane.name);
        if (trees[i].n > 0 && (*is_default == SIZE_MAX || (plane.is_default != 0 && !found))) {
            *is_default = i;
            found = plane.is_default != 0;
        }
    }
    if (status == CTL_DONE && *is_default == SIZE_MAX)
        status =
            ctl_error("nothing to write: no plane has a host with a name at a switch: see fabricctl devices");
    return status;
}

enum ctl_exit ctl_export_slurm_yaml(struct ctl_export *x)
{
    struct ctl_tree *trees = calloc(x->view->n + 1, sizeof *trees);
    size_t is_default = SIZE_MAX;
    enum ctl_exit status = trees != NULL ? yaml_trees(x, trees, &is_default) : ctl_nomem();

    fputs("# Slurm topology.yaml (25.05 and later), by fabricctl export slurm-yaml\n---\n", x->out);
    for (size_t i = 0; trees != NULL && status == CTL_DONE && i < x->view->n; i++)
        if (trees[i].n > 0)
            status = yaml_write(x->out, x->view->planes[i], &trees[i], i == is_default);
    for (size_t i = 0; trees != NULL && i < x->view->n; i++)
        ctl_tree_free(&trees[i]);
    free(trees);
    return status;
}
