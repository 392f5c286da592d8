/*
 * export_tree.h - planes as a tree of switches with hosts at its leaves, as schedulers have it
 * (docs/design/export.md).
 */
#ifndef FABRICCTL_EXPORT_EXPORT_TREE_H
#define FABRICCTL_EXPORT_EXPORT_TREE_H

#include "fabricctl/export/output.h"

#define CTL_VERTEX_NAME 128

struct ctl_vertex {
    char name[CTL_VERTEX_NAME]; /* one of its kind in the tree; letters, digits, '.', '_' and '-' only */
    uint64_t guid;              /* of the leaf switch; of a unit or an inner vertex the lowest of those */
    uint32_t parent;            /* UINT32_MAX: a root */
    uint32_t height;            /* 0: a leaf */
    bool unit;                  /* a leaf that is no switch, but the leaves of a unit */
    bool kept;                  /* it was called so in the file before */
    const char *const *hosts;   /* of a leaf, in natural order */
    uint32_t n_hosts;
};

/* An edge switch, for the mapping beside the names. */
struct ctl_edge {
    uint32_t vertex;
    uint64_t guid;
    const char *name; /* in the fabric */
};

/* Children before their parents. Hosts are each in one leaf; those of a leaf with the lowest host come first.
 */
struct ctl_tree {
    struct ctl_vertex *vertices;
    uint32_t n, room;
    struct ctl_edge *edges;
    uint32_t n_edges, edges_room;
    const char **hosts; /* room of the leaves' hosts */
    uint32_t n_hosts;
    uint32_t *begin, *children; /* of vertex v: children[begin[v]..begin[v + 1] - 1] */
};

/* Of all planes of the export; says what a tree cannot say. Tells its failures. The hosts' names belong to
 * the planes. */
enum ctl_exit ctl_tree_build(struct ctl_export *x, struct ctl_tree *tree);
void ctl_tree_free(struct ctl_tree *tree);

/* The same of one plane of them, where a tree without vertices is no failure. */
enum ctl_exit ctl_tree_build_plane(struct ctl_export *x, size_t plane, struct ctl_tree *tree);

/* Fill in the children. False without memory. */
bool ctl_tree_children(struct ctl_tree *tree);

/* A leaf's hosts, or the names of an inner vertex's children, folded. Free with free(); NULL without memory.
 */
char *ctl_tree_below(const struct ctl_tree *tree, uint32_t v);

/* What a leaf belongs to at a height: the highest vertex above it that is no higher. */
uint32_t ctl_tree_at(const struct ctl_tree *tree, uint32_t leaf, uint32_t height);

/* A plane's name where it is plain, else "plane" and its number. */
const char *ctl_plane_name(const struct pmixfab_plane *plane, char name[static CTL_VERTEX_NAME]);

/* Comment lines: each name beside the switch's GUID and its name in the fabric. */
void ctl_tree_mapping(FILE *out, const struct ctl_tree *tree);

#endif
