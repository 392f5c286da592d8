/*
 * slurm_tree.c - topology.conf of Slurm's topology/tree.
 */
#include "fabricctl/export/export.h"
#include "fabricctl/export/export_tree.h"

#include <stdlib.h>

enum ctl_exit ctl_export_slurm_tree(struct ctl_export *x)
{
    struct ctl_tree tree;
    enum ctl_exit status = ctl_tree_build(x, &tree);

    fputs("# Slurm topology.conf (TopologyPlugin=topology/tree), by fabricctl export slurm-tree\n", x->out);
    for (uint32_t v = 0; status == CTL_DONE && v < tree.n; v++) {
        char *list = ctl_tree_below(&tree, v);

        if (list == NULL)
            status = ctl_nomem();
        else
            fprintf(x->out, "SwitchName=%s %s=%s\n", tree.vertices[v].name,
                    tree.vertices[v].height == 0 ? "Nodes" : "Switches", list);
        free(list);
    }
    if (status == CTL_DONE)
        ctl_tree_mapping(x->out, &tree);
    ctl_tree_free(&tree);
    return status;
}
