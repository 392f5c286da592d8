/*
 * export.c - a plane, or all of them, in a format of somebody else's.
 */
#include "fabricctl/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/table.h"
#include "fabricctl/export/bases.h"
#include "fabricctl/export/export_names.h"
#include "fabricctl/export/meaning.h"
#include "fabricctl/export/target.h"
#include "fabricctl/export/tree_names.h"
#include "topo/base/formats.h"
#include "topo/base/order.h"
#include "topo/base/pattern.h"

static const struct ctl_export_format formats[] = {
    {"slurm-tree", "Slurm's topology.conf of topology/tree", true, ctl_export_slurm_tree, ctl_meaning_slurm,
     false, true, CTL_SLURM_WORDS},
    {"slurm-block", "Slurm's topology.conf of topology/block", true, ctl_export_slurm_block,
     ctl_meaning_slurm_block, false, true, CTL_SLURM_WORDS},
    {"slurm-yaml", "Slurm's topology.yaml", true, ctl_export_slurm_yaml, ctl_meaning_lines, false, true,
     CTL_SLURM_WORDS},
    {"flux-jgf", "Fluxion's resource graph", true, ctl_export_flux_jgf, ctl_meaning_json, false, true, NULL},
    {"k8s-labels", "labels of Kubernetes' nodes, and Kueue's Topology", true, ctl_export_k8s_labels,
     ctl_meaning_lines, false, true, NULL},
    {"volcano", "Volcano's HyperNodes", true, ctl_export_volcano, ctl_meaning_lines, false, true, NULL},
    {"nodemap", "node-name-map of OpenSM and infiniband-diags", true, ctl_export_nodemap, NULL, false, false,
     NULL},
    {"hostlist", "hosts, neighbours near each other", false, ctl_export_hostlist, ctl_meaning_lines, true,
     false, CTL_SLURM_WORDS},
    {"rankfile", "Open MPI's rankfile, neighbours near each other", false, ctl_export_rankfile,
     ctl_meaning_lines, true, false, "localhost"},
    {"topograph", "a model of NVIDIA's topograph", true, ctl_export_topograph, ctl_meaning_lines, false, true,
     NULL},
    {"topograph-graph", "what topograph's engine graph answers", true, ctl_export_topograph_graph,
     ctl_meaning_json, false, true, NULL},
    {"ibnetdiscover", "text as ibnetdiscover(8) prints it", true, ctl_export_ibnetdiscover, NULL, false,
     false, NULL},
    {"dot", "a picture, for Graphviz", false, ctl_export_dot, NULL, false, false, NULL},
    {"graphml", "a graph, for programs that compute with graphs", true, ctl_export_graphml, NULL, false,
     false, NULL},
    {"json", "all that planes hold", true, ctl_export_json, ctl_meaning_planes, false, false, NULL},
    {"npy", "the matrix of costs, for NumPy", false, ctl_export_npy, NULL, false, false, NULL},
    {"csv", "the matrix of costs, by name", false, ctl_export_csv, NULL, false, false, NULL},
};

void ctl_export_help(void)
{
    puts("\nFormats:");
    for (size_t i = 0; i < CTL_COUNT(formats); i++)
        printf("  %-16s %s\n", formats[i].name, formats[i].summary);
}

static const struct ctl_export_format *format_by_name(const char *name)
{
    const bool known = fab_is_export_format(name, strlen(name));

    for (size_t i = 0; known && i < CTL_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    ctl_usage("no such format: %s: there are %s", name, FAB_EXPORT_FORMATS);
    return NULL;
}

/* Does the file that is there say the same? What cannot be read, or is of another kind, does not. */
static bool says_the_same(const struct ctl_export_format *format, const char *path, const char *text,
                          size_t size)
{
    size_t size_there;
    char *there = ctl_target_read(path, &size_there), *was = NULL, *is = NULL;
    bool same = there != NULL && size_there == size && memcmp(there, text, size) == 0;

    if (there != NULL && !same && format->meaning != NULL && memchr(there, '\0', size_there) == NULL) {
        was = format->meaning(there);
        is = format->meaning(text);
        same = was != NULL && is != NULL && strcmp(was, is) == 0;
    }
    free(there);
    free(was);
    free(is);
    return same;
}

static enum ctl_exit export_write(const struct ctl *ctl, const char *text, size_t size)
{
    struct ctl_target target;
    enum ctl_exit status;

    ctl_catch_interrupts();
    status = ctl_target_open(ctl->output != NULL ? ctl->output : "-", &target);
    if (status == CTL_DONE)
        status = ctl_target_write(&target, text, size);
    return ctl_target_close(&target, true, status);
}

/* The text in memory first: what fails or is refused touches no file. */
static enum ctl_exit export_view(const struct ctl_export_format *format, struct ctl_export *x)
{
    char *text = NULL;
    size_t size = 0;
    enum ctl_exit status;
    bool failed;

    x->out = open_memstream(&text, &size);
    if (x->out == NULL)
        return ctl_nomem();
    status = format->write(x);
    failed = ferror(x->out) != 0;
    if (fclose(x->out) != 0 || (failed && status == CTL_DONE))
        status = ctl_nomem();
    if (status == CTL_DONE && x->ctl->strict && x->n_lost > 0)
        status =
            ctl_error("not written: %s cannot say what the fabric is: without --strict it leaves that out",
                      format->name);
    if (status == CTL_DONE && x->ctl->if_changed && says_the_same(format, x->ctl->output, text, size))
        status = CTL_SAME;
    if (status == CTL_DONE)
        status = export_write(x->ctl, text, size);
    if (status == CTL_DONE || status == CTL_SAME) {
        const enum ctl_exit named = ctl_names_save(x->names);

        status = named != CTL_DONE ? named : status;
    }
    free(text);
    return status;
}

/* A plane's index stays, the default plane is another one as soon as that has more devices. */
static int compare_indices(const void *a, const void *b)
{
    struct pmixfab_plane x = {0}, y = {0};

    (void)pmixfab_plane(*(struct pmixfab *const *)a, &x);
    (void)pmixfab_plane(*(struct pmixfab *const *)b, &y);
    return FAB_ORDER(x.index, y.index);
}

enum ctl_exit ctl_export(const struct ctl *ctl)
{
    const struct ctl_export_format *format = format_by_name(ctl->args[0]);
    struct ctl_view view;
    struct ctl_names names = {.path = NULL};
    struct ctl_export x = {.ctl = ctl, .view = &view, .names = &names};
    enum ctl_exit status;

    if (format == NULL)
        return CTL_USAGE;
    if (ctl->n_args > 1 && !format->hosts)
        return ctl_usage("too many arguments: %s: %s takes no list of hosts", ctl->args[1], format->name);
    if (ctl->block_sizes != NULL && strcmp(format->name, "slurm-block") != 0)
        return ctl_usage("not an option of %s: --block-sizes is for slurm-block", format->name);
    if (ctl->interface != NULL && !format->tree)
        return ctl_usage("not an option of %s: --interface is for formats that have hosts at leaves",
                         format->name);
    if (ctl->interface != NULL && !fab_pattern_ok(ctl->interface))
        return ctl_usage("no pattern: --interface %s: give names with commas between them, as mlx5_0,leaf-c*",
                         ctl->interface);
    if (ctl->if_changed && (ctl->output == NULL || strcmp(ctl->output, "-") == 0))
        return ctl_usage("nothing to compare with: --if-changed needs -o FILE");
    status = format->all_planes ? ctl_view_all(ctl, &view) : ctl_view_one(ctl, &view);
    if (status != CTL_DONE)
        return status;
    x.reserved = format->reserved;
    qsort(view.planes, view.n, sizeof(struct pmixfab *), compare_indices);
    status = format->tree ? ctl_bases_choose(&x) : CTL_DONE;
    if (status == CTL_DONE)
        status = export_view(format, &x);
    free(x.chosen);
    ctl_names_free(&names);
    ctl_view_close(&view);
    return status;
}
