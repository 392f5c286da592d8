/*
 * export_kept_names.h - what vertices were called in the file that an export replaces.
 */
#ifndef FABRICCTL_EXPORT_EXPORT_KEPT_NAMES_H
#define FABRICCTL_EXPORT_EXPORT_KEPT_NAMES_H

#include "fabricctl/export/export_names.h"
#include "fabricctl/export/export_tree.h"

/* The vertices of a plane, from `first` on, have names by the rules: those that had another one have that. */
enum ctl_exit ctl_names_keep(const struct ctl_names *names, struct ctl_tree *tree, uint32_t first,
                             const struct pmixfab_plane *plane);

/* Of each edge switch its own name, the name of the leaf that it is, and the names of what is above. */
enum ctl_exit ctl_names_note(const struct ctl_names *names, const struct ctl_tree *tree);

#endif
