/*
 * slurm_yaml.c - topology.yaml of Slurm 25.05: a topology/tree for each plane. All texts are in quotes: a
 * name may be of digits only.
 */
#include "fabricctl/export/export.h"
#include "fabricctl/export/tree/tree.h"

#include <stdlib.h>

/* *any: a plane stands there already, which is the default then. */
static enum ctl_exit yaml_plane(struct ctl_export *x, size_t i, bool *any)
{
    char buf[CTL_VERTEX_NAME];
    struct pmixfab_plane plane;
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build_plane(x, i, &tree);

    if (status == CTL_DONE && pmixfab_plane(x->view->planes[i], &plane) != 0)
        status = ctl_error("nothing to write: a plane's snapshot contradicts itself");
    if (status == CTL_DONE && tree.n == 0 && x->n_chosen == 0)
        ctl_export_lost(x, "plane %s: no host with a name is at a switch, left out", plane.name);
    else if (status == CTL_DONE && tree.n > 0)
        fprintf(x->out, "- topology: \"%s\"\n  cluster_default: %s\n  tree:\n    switches:\n",
                ctl_plane_name(&plane, buf), *any ? "false" : "true");
    for (uint32_t v = 0; status == CTL_DONE && v < tree.n; v++) {
        char *list = ctl_tree_below(&tree, v);

        if (list == NULL)
            status = ctl_nomem();
        else
            fprintf(x->out, "      - switch: \"%s\"\n        %s: \"%s\"\n", tree.vertices[v].name,
                    tree.vertices[v].height == 0 ? "nodes" : "children", list);
        free(list);
    }
    if (status == CTL_DONE && tree.n > 0)
        ctl_tree_mapping(x->out, &tree);
    *any |= tree.n > 0;
    ctl_tree_free(&tree);
    return status;
}

enum ctl_exit ctl_export_slurm_yaml(struct ctl_export *x)
{
    enum ctl_exit status = CTL_DONE;
    bool any = false;

    fputs("# Slurm topology.yaml (25.05 and later), by fabricctl export slurm-yaml\n---\n", x->out);
    for (size_t i = 0; status == CTL_DONE && i < x->view->n; i++) {
        struct pmixfab_plane plane;

        if (pmixfab_plane(x->view->planes[i], &plane) != 0 || plane.n_switches == 0)
            continue;
        status = yaml_plane(x, i, &any);
    }
    if (status == CTL_DONE && !any)
        status =
            ctl_error("nothing to write: no plane has a host with a name at a switch: see fabricctl devices");
    return status;
}
