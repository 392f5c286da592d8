/*
 * export.h - the room of whole planes as files for other programs: its commands, and what a format is.
 */
#ifndef FABRICCTL_EXPORT_EXPORT_H
#define FABRICCTL_EXPORT_EXPORT_H

#include "fabricctl/core/source.h"

#include <stdio.h>

enum ctl_exit ctl_matrix(const struct ctl *ctl);
enum ctl_exit ctl_export(const struct ctl *ctl);

/* An export in the making. */
struct ctl_export {
    const struct ctl *ctl;
    const struct ctl_view *view; /* the planes that it is of, the default one first */
    FILE *out;                   /* in memory; who is done looks whether it failed */
    unsigned n_lost;
};

/* A format is an entry of the table in export.c, and a file of this room. */
struct ctl_export_format {
    const char *name;
    const char *summary;
    bool all_planes; /* of all planes, unless --plane says which; else of one: that of --plane, or the default
                      */
    /* Writes to x->out. Tells its failures. */
    enum ctl_exit (*write)(struct ctl_export *x);
    /*
     * For --if-changed: what a text of the format says, in a form in which equal meanings are equal texts
     * (meaning.h). Free with free(); NULL: without memory, or it is no such text. NULL here: only the same
     * text says the same.
     */
    char *(*meaning)(const char *text);
    bool hosts; /* it takes a list of hosts after its name */
};

/* The format cannot say this of the fabric: told on standard error, and with --strict nothing is written. */
void ctl_export_lost(struct ctl_export *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The table's functions, one file each. */
enum ctl_exit ctl_export_slurm_tree(struct ctl_export *x);
enum ctl_exit ctl_export_slurm_block(struct ctl_export *x);
enum ctl_exit ctl_export_slurm_yaml(struct ctl_export *x);
enum ctl_exit ctl_export_flux_jgf(struct ctl_export *x);
enum ctl_exit ctl_export_k8s_labels(struct ctl_export *x);
enum ctl_exit ctl_export_volcano(struct ctl_export *x);
enum ctl_exit ctl_export_nodemap(struct ctl_export *x);
enum ctl_exit ctl_export_hostlist(struct ctl_export *x);
enum ctl_exit ctl_export_rankfile(struct ctl_export *x);
enum ctl_exit ctl_export_topograph(struct ctl_export *x);
enum ctl_exit ctl_export_topograph_graph(struct ctl_export *x);
enum ctl_exit ctl_export_ibnetdiscover(struct ctl_export *x);
enum ctl_exit ctl_export_dot(struct ctl_export *x);
enum ctl_exit ctl_export_graphml(struct ctl_export *x);
enum ctl_exit ctl_export_json(struct ctl_export *x);
enum ctl_exit ctl_export_npy(struct ctl_export *x);
enum ctl_exit ctl_export_csv(struct ctl_export *x);

#endif
