/*
 * export.h - the room of whole planes as files for other programs: its commands and its formats.
 */
#ifndef FABRICCTL_EXPORT_EXPORT_H
#define FABRICCTL_EXPORT_EXPORT_H

#include "fabricctl/export/output.h"

enum ctl_exit ctl_matrix(const struct ctl *ctl);
enum ctl_exit ctl_export(const struct ctl *ctl);

/* For its --help: each format with what it is, a line each. */
void ctl_export_help(void);

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
