/*
 * tree_names.h - names that other programs' grammars hold.
 */
#ifndef FABRICCTL_EXPORT_TREE_NAMES_H
#define FABRICCTL_EXPORT_TREE_NAMES_H

#include "fabricctl/export/export_tree.h"

#define CTL_NAME_MOST 45 /* bytes: with a GUID behind it 63, which is the most in a label of Kubernetes */

/* Letters, digits, '.', '_' and '-', with a letter or digit at both ends, of `most` bytes? */
bool ctl_plain_name(const char *name, size_t most);

/* What Slurm takes for no name: "Nodes=ALL" is every node there is, and DEFAULT is the settings of those that
 * follow. */
#define CTL_SLURM_WORDS "ALL,DEFAULT"

/* Is the name one of the list (NULL: none), in either case? */
bool ctl_reserved_name(const char *list, const char *name);

/* A switch's own name where it is plain and nobody's word; else "s" and its GUID. */
void ctl_switch_name(char out[static CTL_VERTEX_NAME], const char *name, uint64_t guid);

/* Where several vertices have one name, all but one get their GUID behind it: that which had it before keeps
 * it, else that with the lowest GUID. That is told. */
enum ctl_exit ctl_names_apart(struct ctl_tree *tree);

#endif
