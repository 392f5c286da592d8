/*
 * export.h - interface of the exports, files of whole planes for other programs (docs/design/export.md). It
 * declares their commands, their formats, and shared parts: an unfinished export, a tree of switches, and
 * names.
 */
#ifndef FABRICCTL_EXPORT_EXPORT_H
#define FABRICCTL_EXPORT_EXPORT_H

#include "fabricctl/core/ctl.h"
#include "topo/base/hostlist.h"

enum ctl_exit ctl_matrix(const struct ctl *ctl);
enum ctl_exit ctl_export(const struct ctl *ctl);

/* Print each format and its summary, one a line, for the command's --help. */
void ctl_export_help(void);

/* ---- an unfinished export ---- */

struct ctl_export {
    const struct ctl *ctl;
    const struct ctl_view *view; /* its planes, by their index */
    FILE *out;                   /* in memory; the caller checks it for errors */
    unsigned n_lost;
    struct ctl_export_names *names;
    const char *reserved; /* names that readers of the format do not take for hosts; NULL: none */
    /* hosts with devices that --interface, else [fabric] compute, chooses, sorted by name */
    const char **chosen;
    size_t n_chosen;
    struct fab_hostlist only; /* with --nodes: the hosts that it chooses, sorted by name */
    struct ctl_above *above;  /* with --above: its levels; NULL: none */
};

/*
 * Report a part of the fabric that the format cannot describe: a line on standard error. With --strict
 * nothing is written then.
 */
void ctl_export_lost(struct ctl_export *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Report "nothing to write: a plane's snapshot contradicts itself". */
enum ctl_exit ctl_export_contradicts(void);

struct ctl_tree;

/* The formats. Each writes to x->out; some get the tree of all planes. */
typedef enum ctl_exit ctl_export_fn(struct ctl_export *x);
typedef enum ctl_exit ctl_tree_fn(struct ctl_export *x, const struct ctl_tree *tree);

ctl_export_fn ctl_export_slurm_yaml, ctl_export_slurm_torus3d, ctl_export_slurm_ring, ctl_export_nodemap,
    ctl_export_hostlist, ctl_export_rankfile, ctl_export_mpich_coords, ctl_export_ibnetdiscover,
    ctl_export_dot, ctl_export_graphml, ctl_export_npy, ctl_export_csv, ctl_export_simgrid;
ctl_tree_fn ctl_write_slurm_tree, ctl_write_slurm_block, ctl_write_flux_jgf, ctl_write_k8s_labels,
    ctl_write_volcano, ctl_write_topograph, ctl_write_topograph_graph;

/*
 * Write the header of a NumPy file (format 1.0, '<u2', C order) for an n x n matrix into buf. Return the
 * length of the header, a multiple of 64.
 */
#define CTL_NPY_HEADER_MAX 128
size_t ctl_npy_header(uint32_t n, unsigned char buf[static CTL_NPY_HEADER_MAX]);

/* ---- routes by destination ---- */

#define CTL_ROUTES_MAX 1000000 /* routes from a leaf to a host in one platform: about 300 MB */

/* A host with its first device that is up. */
struct ctl_routed_host {
    const char *name;
    uint32_t host, device, sw, cable;
};

/* Hosts of a plane, and the routes to them from all switches. */
struct ctl_routes {
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    struct pmixfab_link *cables;   /* all of the plane */
    struct ctl_routed_host *hosts; /* sorted by switch, then by device */
    uint32_t n, n_leaves;
    uint32_t *of_host; /* of each host of the plane: its number above; UINT32_MAX: it is left out */
    /* of switch s: the cable toward host h is next[s * n + h]; UINT32_MAX: there is no path, or the host is
     * at this switch */
    uint32_t *next;
};

/*
 * Make the routes to the hosts of the list (NULL: all hosts) in the first plane of the view. A host that is
 * in the list twice is written once. Free them in any case.
 */
enum ctl_exit ctl_routes_make(struct ctl_export *x, const struct fab_hostlist *list, struct ctl_routes *r);
void ctl_routes_free(struct ctl_routes *r);
/* Return the switch at the other end of a cable between switches. */
uint32_t ctl_route_switch(const struct ctl_routes *r, uint32_t sw, uint32_t cable);

/* Write the hosts as a platform of SimGrid, to x->out. */
enum ctl_exit ctl_simgrid_write(struct ctl_export *x, const struct ctl_routes *r);

/* ---- planes as a tree of switches with hosts at its leaves, for schedulers ---- */

#define CTL_VERTEX_NAME 128

struct ctl_vertex {
    /* unique among its kind in the tree; only letters, digits, '.', '_' and '-' */
    char name[CTL_VERTEX_NAME];
    uint64_t guid;            /* of the leaf switch; for a unit or an inner vertex the lowest one */
    uint32_t parent;          /* UINT32_MAX: a root */
    uint32_t height;          /* 0: a leaf */
    bool unit;                /* the leaf stands for the leaves of a unit */
    bool kept;                /* the name is the one in the previous file */
    bool by_hand;             /* a level of --above */
    const char *const *hosts; /* of a leaf, in natural order */
    uint32_t n_hosts;
};

/* An edge switch, for the mapping of names. */
struct ctl_edge {
    uint32_t vertex;
    uint64_t guid;
    const char *name; /* name in the fabric */
};

/*
 * A tree. Children stand before their parents, and leaves below one vertex follow each other, at every
 * height. Each host is in one leaf. A vertex whose first host is lower comes first.
 */
struct ctl_tree {
    struct ctl_vertex *vertices;
    uint32_t n, room;
    struct ctl_edge *edges;
    uint32_t n_edges, edges_room;
    const char **hosts; /* storage of the leaves' hosts; their names belong to the planes */
    uint32_t n_hosts;
    uint32_t *begin, *children; /* of vertex v: children[begin[v]..begin[v + 1] - 1] */
};

/* Fill in x->chosen. */
enum ctl_exit ctl_bases_choose(struct ctl_export *x);

/* Fill in x->only. Hosts of a list that no plane has are reported, which is no failure. */
enum ctl_exit ctl_only_read(struct ctl_export *x);
/* Return whether the host may be in the file. */
bool ctl_only_has(const struct ctl_export *x, const char *host);

/* Build the tree of all planes of the export; report everything that a tree cannot describe. */
enum ctl_exit ctl_tree_build(struct ctl_export *x, struct ctl_tree *tree);
/* As above, for some of the planes; a tree without vertices is no failure. */
enum ctl_exit ctl_tree_build_some(struct ctl_export *x, const struct ctl_view *planes, struct ctl_tree *tree);
/* Fill in the children from the parents. Return false without memory. */
bool ctl_tree_children(struct ctl_tree *tree);
void ctl_tree_free(struct ctl_tree *tree);

/*
 * Find the switch of each host of one of the planes: at[host] becomes its number; UINT32_MAX: the host is
 * left out. Report hosts that are left out, or have devices at several switches.
 */
enum ctl_exit ctl_hosts_at_switches(struct ctl_export *x, size_t plane, uint32_t *at);
/*
 * Write comment lines: each name with the switch's GUID and its name in the fabric. names: for each vertex,
 * the name in the file; NULL: its own.
 */
void ctl_tree_mapping(FILE *out, const struct ctl_tree *tree, const char *const *names);

/*
 * Return a leaf's hosts, or the names of an inner vertex's children, folded. Free with free(); NULL without
 * memory.
 */
char *ctl_tree_below(const struct ctl_tree *tree, uint32_t v);
/* Return the vertex of a leaf at a height: the highest one above it that is not higher. */
uint32_t ctl_tree_at(const struct ctl_tree *tree, uint32_t leaf, uint32_t height);

/* ---- levels above a tree, by hand ---- */

/*
 * Read the levels of --above: lines NAME = MEMBER..., where members are leaves, other vertices, or other
 * lines. Free with ctl_above_free().
 */
enum ctl_exit ctl_above_read(const char *path, struct ctl_above **above);
void ctl_above_free(struct ctl_above *above);
/* Add the levels that have members in this tree. */
enum ctl_exit ctl_above_apply(const struct ctl_export *x, struct ctl_tree *tree);
/* When all trees are built, report a failure if a member is in none. */
enum ctl_exit ctl_above_check(const struct ctl_export *x);

/* A plane's switches by their leaves of the tree. */
struct ctl_leaves {
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    const uint32_t *leaf_of; /* for each switch; UINT32_MAX: none */
    const uint32_t *group;   /* for each leaf: leaves with one number stay together; NULL: by distance */
    uint32_t n;
};

/*
 * Build the levels. parent[v] becomes the parent of vertex v; UINT32_MAX: v is a root. There are *n_vertices
 * vertices, and the leaves are 0..n-1. Room for 2 * n is needed. Each inner vertex has at least two children,
 * and a higher number than its children. *irregular: more than half of the leaves lie on the paths between
 * others, so the levels are only distances. Return 0 or PMIXFAB_ERR_NOMEM.
 */
int ctl_levels(const struct ctl_leaves *leaves, uint32_t *parent, uint32_t *n_vertices, bool *irregular);

/*
 * Order leaves so that those below one vertex follow each other at every height, and a vertex whose first
 * leaf had a lower number comes first. parent: as from ctl_levels(); it is reordered. place[leaf] becomes the
 * new number of a leaf. Return 0 or PMIXFAB_ERR_NOMEM.
 */
int ctl_levels_order(uint32_t *parent, uint32_t n_leaves, uint32_t n_vertices, uint32_t *place);

/* ---- planes with their geometry, for Slurm 26.05 ---- */

#define CTL_AXES 3

/* A plane with its hosts at switches. */
struct ctl_geometry {
    struct ctl_export *x;
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    const char *name;               /* of the plane */
    char name_buf[CTL_VERTEX_NAME]; /* room for it */
    uint32_t *at;                   /* for each host: its switch; UINT32_MAX: left out */
    uint32_t n_hosts;               /* hosts with a switch, at least 1 */
    uint32_t (*place)[CTL_AXES];    /* for each switch with devices: its place in each dimension */
    unsigned n_dims;                /* dimensions of the mesh or torus; 0: the plane is neither */
    bool wraps;                     /* a torus */
    uint32_t dims[CTL_AXES];        /* switches in each dimension; 1 in further dimensions */
    uint32_t most_at_once;          /* hosts at the fullest switch */
};

/* Fill in the geometry of a plane, by its number in the view; free it in any case. */
enum ctl_exit ctl_geometry_open(struct ctl_export *x, size_t plane, struct ctl_geometry *g);
void ctl_geometry_free(struct ctl_geometry *g);
const char *ctl_geometry_host(const struct ctl_geometry *g, uint32_t h);
/* Write "nodes:" and the folded names, after `before`. */
enum ctl_exit ctl_geometry_put(struct ctl_geometry *g, const char *before, const char *const *names,
                               size_t n);

/*
 * Write the part "torus3d:" or "ring:" of a topology of topology.yaml, for a plane by its number in the view.
 * If the plane has no such geometry, report the reason and return CTL_FAILED.
 */
enum ctl_exit ctl_slurm_torus3d(struct ctl_export *x, size_t plane);
enum ctl_exit ctl_slurm_ring(struct ctl_export *x, size_t plane);

/* ---- blocks of Slurm's topology/block ---- */

/* Slurm's levels are the first sixteen powers of two. */
#define CTL_BLOCK_LEVELS 16
/* From this version on, Slurm takes a block without hosts. */
#define CTL_SLURM_EMPTY_BLOCKS 2505

/* A place in the order of the blocks. A block keeps its place (block_places.c). */
struct ctl_place {
    char name[CTL_VERTEX_NAME]; /* of the block */
    char pod[CTL_VERTEX_NAME];  /* vertex above its leaf, or above its last leaf; "": none */
    json_t *switches;           /* GUIDs of its leaf, or of its last leaf */
    uint32_t leaf;              /* vertex; UINT32_MAX: the block has no host */
    bool spare;                 /* made by --spare: keeps its name */
};

struct ctl_blocks {
    const char *topology; /* its name */
    struct ctl_place *places;
    uint32_t n_places, places_room;
    bool no_empty;    /* places without hosts are no blocks */
    uint32_t *leaves; /* of each block: its vertex; UINT32_MAX: it has no host */
    uint32_t n;
    uint32_t n_hosts;
    uint32_t base; /* hosts to plan for each block */
    /* Larger blocks: the number of leaves of each, counted from the first leaf on. Powers of two, smaller
     * ones first; together[0] is 1. */
    uint32_t together[CTL_BLOCK_LEVELS];
    uint32_t height[CTL_BLOCK_LEVELS]; /* height of the vertices that hold one block; 0: none does */
    unsigned n_levels;
};

/* Make the blocks of a topology; report everything that they cannot describe. Free them in any case. */
enum ctl_exit ctl_blocks_make(struct ctl_export *x, const struct ctl_tree *tree, const char *topology,
                              struct ctl_blocks *blocks);
void ctl_blocks_free(struct ctl_blocks *blocks);
/* Write comment lines as ctl_tree_mapping(), with the names of the blocks. */
enum ctl_exit ctl_blocks_mapping(FILE *out, const struct ctl_tree *tree, const struct ctl_blocks *blocks);

/* Load the places of a topology from FILE.names. Until they are filled, they have no leaves. */
enum ctl_exit ctl_places_load(const struct ctl_export_names *names, struct ctl_blocks *blocks);
/*
 * Add to gone[v] the number of empty places whose last leaf was directly below this vertex, less those that
 * new leaves will get; *n_gone: all of them. Return false without memory.
 */
bool ctl_places_gone(const struct ctl_blocks *blocks, const struct ctl_tree *tree, uint32_t *gone,
                     uint32_t *n_gone);
/*
 * Give each of blocks->leaves a place, and record all places. A leaf keeps its place. A new leaf gets an
 * empty place of its pod, else a placeholder of --spare, else a place at the end.
 */
enum ctl_exit ctl_places_fill(const struct ctl_export *x, const struct ctl_tree *tree,
                              struct ctl_blocks *blocks);
void ctl_places_free(struct ctl_blocks *blocks);

/* ---- names that other programs' grammars accept ---- */

#define CTL_NAME_MOST 45 /* bytes: 63 with a GUID after it, the maximum of a Kubernetes label */

/*
 * Return whether the name has only letters, digits, '.', '_' and '-', with a letter or digit at both ends,
 * and at most `most` bytes.
 */
bool ctl_plain_name(const char *name, size_t most);

/*
 * Words that are no names for Slurm: "Nodes=ALL" means every node, and DEFAULT sets the defaults of the
 * following lines.
 */
#define CTL_SLURM_WORDS "ALL,DEFAULT"

/* Return whether the name is in the list (NULL: none), in either case. */
bool ctl_reserved_name(const char *list, const char *name);

/* Write a switch's own name if it is plain and no reserved word; else "s" and its GUID. */
void ctl_switch_name(char out[static CTL_VERTEX_NAME], const char *name, uint64_t guid);
/* Return a plane's name if it is plain, else "plane" and its number. */
const char *ctl_plane_name(const struct pmixfab_plane *plane, char name[static CTL_VERTEX_NAME]);

/*
 * Make names unique: if several vertices have one name, all but one get their GUID after it, with a message.
 * The vertex that had the name before keeps it, else the one with the lowest GUID.
 */
enum ctl_exit ctl_names_apart(struct ctl_tree *tree);

/*
 * FILE.names beside an exported FILE: the names of the switches in the file, so that they stay the same. A
 * format that names switches loads it, uses `was`, and adds to `is`.
 */
struct ctl_export_names {
    char *path;    /* NULL: the target is not a file, and has no names beside it */
    json_t *was;   /* NULL: the file does not exist yet */
    json_t *is;    /* NULL: not loaded */
    json_t *hosts; /* the hosts of the new file as keys */
};

/* Add the hosts of a tree to names->hosts. Return false without memory. */
bool ctl_hosts_note(const struct ctl_export_names *names, const struct ctl_tree *tree);
/*
 * Record the hosts of the new file. Report a failure if the file exists and more hosts would leave it than
 * --max-shrink permits.
 */
enum ctl_exit ctl_hosts_check(const struct ctl_export *x);

/* Load the names of the target `output` (NULL and "-": standard output), once. */
enum ctl_exit ctl_names_load(struct ctl_export_names *names, const char *output);
/* Save the names; write nothing if nothing was loaded, or if the file has the same contents. */
enum ctl_exit ctl_names_save(const struct ctl_export_names *names);
void ctl_names_free(struct ctl_export_names *names);

/* Write a GUID as the file has it. */
const char *ctl_names_guid(char out[static CTL_VERTEX_NAME], uint64_t guid);
/* Return a text of the file if it can be a name of a vertex, else "". */
const char *ctl_names_text(const json_t *value);

/* Restore the previous names of a plane's vertices, from `first` on, which have names by the rules. */
enum ctl_exit ctl_names_keep(const struct ctl_export_names *names, struct ctl_tree *tree, uint32_t first,
                             const struct pmixfab_plane *plane);
/* Record for each edge switch its own name, the name of its leaf, and the names of the vertices above. */
enum ctl_exit ctl_names_note(const struct ctl_export_names *names, const struct ctl_tree *tree);

#endif
