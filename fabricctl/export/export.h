/*
 * export.h - the room of whole planes as files for other programs: its commands, its formats, and what
 * formats share: an export in the making, where it goes, a tree of switches, names (docs/design/export.md).
 */
#ifndef FABRICCTL_EXPORT_EXPORT_H
#define FABRICCTL_EXPORT_EXPORT_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_matrix(const struct ctl *ctl);
enum ctl_exit ctl_export(const struct ctl *ctl);

/* For its --help: each format with what it is, a line each. */
void ctl_export_help(void);

/* ---- where a file for other programs goes ---- */

/* A regular file is written under another name in the same folder; a pipe, a device and standard output as
 * they are. */
struct ctl_target {
    const char *shown; /* as the operator named it */
    char *path;        /* what it will be called; NULL: written in place */
    char *temporary;   /* NULL: none (any more) */
    int fd;
    bool close;
};

/* `path` "-" is standard output. Close it in any case. */
enum ctl_exit ctl_target_open(const char *path, struct ctl_target *t);
enum ctl_exit ctl_target_write(const struct ctl_target *t, const void *bytes, size_t size);
/* The message of errno: `what`, and where. CTL_FAILED. */
enum ctl_exit ctl_target_failed(const struct ctl_target *t, const char *what);
/* With CTL_DONE the finished file takes the place of the one that was there, which with `keep` is called
 * PATH.old from then on. Otherwise what was written is gone, and what was there stays. Returns `status`, or
 * what went wrong at the end. */
enum ctl_exit ctl_target_close(struct ctl_target *t, bool keep, enum ctl_exit status);

/* The whole of a file that is there, with a 0 behind it; free with free(). NULL: it cannot be read. */
char *ctl_target_read(const char *path, size_t *size);

/* ---- an export in the making ---- */

struct ctl_export {
    const struct ctl *ctl;
    const struct ctl_view *view; /* the planes that it is of, by their index */
    FILE *out;                   /* in memory; the caller looks whether it failed */
    unsigned n_lost;
    struct ctl_export_names *names;
    const char
        *reserved;       /* names that the format's readers take for something else than a host; NULL: none */
    const char **chosen; /* hosts with devices that --interface, else [fabric] compute, chooses, by name */
    size_t n_chosen;
};

/* A format cannot say this of the fabric: a line on standard error, and with --strict nothing is written. */
void ctl_export_lost(struct ctl_export *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "nothing to write: a plane's snapshot contradicts itself" */
enum ctl_exit ctl_export_contradicts(void);

struct ctl_tree;

/* The formats. Each writes to x->out; some are given the tree of all planes. */
typedef enum ctl_exit ctl_export_fn(struct ctl_export *x);
typedef enum ctl_exit ctl_tree_fn(struct ctl_export *x, const struct ctl_tree *tree);

ctl_export_fn ctl_export_slurm_yaml, ctl_export_nodemap, ctl_export_hostlist, ctl_export_rankfile,
    ctl_export_ibnetdiscover, ctl_export_dot, ctl_export_graphml, ctl_export_npy, ctl_export_csv;
ctl_tree_fn ctl_write_slurm_tree, ctl_write_slurm_block, ctl_write_flux_jgf, ctl_write_k8s_labels,
    ctl_write_volcano, ctl_write_topograph, ctl_write_topograph_graph;

/* The header of a file of NumPy's (format 1.0, '<u2', C order) for an n x n matrix into buf; returns its
 * length, a multiple of 64. */
#define CTL_NPY_HEADER_MAX 128
size_t ctl_npy_header(uint32_t n, unsigned char buf[static CTL_NPY_HEADER_MAX]);

/* ---- planes as a tree of switches with hosts at its leaves, as schedulers have it ---- */

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
    const char **hosts; /* room of the leaves' hosts; their names belong to the planes */
    uint32_t n_hosts;
    uint32_t *begin, *children; /* of vertex v: children[begin[v]..begin[v + 1] - 1] */
};

/* Fill in x->chosen. */
enum ctl_exit ctl_bases_choose(struct ctl_export *x);

/* The tree of all planes of the export; says what a tree cannot say. */
enum ctl_exit ctl_tree_build(struct ctl_export *x, struct ctl_tree *tree);
/* The same of one plane of them; without vertices it is no failure. */
enum ctl_exit ctl_tree_build_plane(struct ctl_export *x, size_t plane, struct ctl_tree *tree);
void ctl_tree_free(struct ctl_tree *tree);

/* Write comment lines: each name beside the switch's GUID and its name in the fabric. */
void ctl_tree_mapping(FILE *out, const struct ctl_tree *tree);

/* A leaf's hosts, or the names of an inner vertex's children, folded. Free with free(); NULL without memory.
 */
char *ctl_tree_below(const struct ctl_tree *tree, uint32_t v);
/* What a leaf belongs to at a height: the highest vertex above it that is no higher. */
uint32_t ctl_tree_at(const struct ctl_tree *tree, uint32_t leaf, uint32_t height);

/* A plane's switches by the leaf of the tree that they are. */
struct ctl_leaves {
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    const uint32_t *leaf_of; /* of each switch; UINT32_MAX: of none */
    const uint32_t *group;   /* of each leaf: leaves of one number stand together; NULL: by distance */
    uint32_t n;
};

/*
 * parent[v] of the vertices: leaves are 0..n-1, *n_vertices in all; UINT32_MAX: a root. Room for 2 * n. Each
 * inner vertex has two children at least, and comes behind them. *irregular: more than half of the leaves lie
 * on the ways between others, so that the levels are no more than distances. PMIXFAB_ERR_NOMEM.
 */
int ctl_levels(const struct ctl_leaves *leaves, uint32_t *parent, uint32_t *n_vertices, bool *irregular);

/* ---- names that other programs' grammars hold ---- */

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
/* A plane's name where it is plain, else "plane" and its number. */
const char *ctl_plane_name(const struct pmixfab_plane *plane, char name[static CTL_VERTEX_NAME]);

/* Where several vertices have one name, all but one get their GUID behind it, with a message: that which had
 * it before keeps it, else that with the lowest GUID. */
enum ctl_exit ctl_names_apart(struct ctl_tree *tree);

/* FILE.names beside an exported FILE: what switches are called there, so that they stay called so. A format
 * that names switches loads them, heeds what `was`, and adds to `is`. */
struct ctl_export_names {
    char *path;  /* NULL: what is written is no file, and has no names beside it */
    json_t *was; /* NULL: there is no such file yet */
    json_t *is;  /* NULL: not loaded */
};

/* Of what `output` names (NULL and "-": standard output). Once. */
enum ctl_exit ctl_names_load(struct ctl_export_names *names, const char *output);
/* Nothing is written where nothing was loaded, or where it says the same. */
enum ctl_exit ctl_names_save(const struct ctl_export_names *names);
void ctl_names_free(struct ctl_export_names *names);

/* The vertices of a plane, from `first` on, have names by the rules: those that had another one get that. */
enum ctl_exit ctl_names_keep(const struct ctl_export_names *names, struct ctl_tree *tree, uint32_t first,
                             const struct pmixfab_plane *plane);
/* Note of each edge switch its own name, the name of the leaf that it is, and the names of what is above. */
enum ctl_exit ctl_names_note(const struct ctl_export_names *names, const struct ctl_tree *tree);

#endif
