/* formats.h - the formats of `fabricctl export`, which fabricd's configuration also names. */
#ifndef FAB_TOPO_BASE_FORMATS_H
#define FAB_TOPO_BASE_FORMATS_H

#include <stdbool.h>
#include <string.h>

#define FAB_EXPORT_FORMATS                                                                                   \
    "slurm-tree, slurm-block, slurm-yaml, slurm-torus3d, slurm-ring, flux-jgf, k8s-labels, volcano, "        \
    "nodemap, hostlist, rankfile, mpich-coords, "                                                            \
    "topograph, topograph-graph, ibnetdiscover, dot, graphml, simgrid, json, npy, csv"

/* Formats with hosts at leaves. */
#define FAB_LEAF_FORMATS                                                                                     \
    "slurm-tree, slurm-block, slurm-yaml, flux-jgf, k8s-labels, volcano, topograph, topograph-graph"

/* Return whether the word of `len` bytes is in a list with commas and blanks between. */
static inline bool fab_is_format_of(const char *formats, const char *word, size_t len)
{
    size_t n;

    for (const char *at = formats; *at != '\0'; at += n + strspn(at + n, ", ")) {
        n = strcspn(at, ",");
        if (n == len && memcmp(at, word, n) == 0)
            return true;
    }
    return false;
}

/* Return whether the word of `len` bytes is a format. */
static inline bool fab_is_export_format(const char *word, size_t len)
{
    return fab_is_format_of(FAB_EXPORT_FORMATS, word, len);
}

#endif
