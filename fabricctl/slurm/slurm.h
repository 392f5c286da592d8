/*
 * slurm.h - interface of the room that talks to Slurm through scontrol (docs/design/slurm.md): its nodes, its
 * topologies, and the difference between them and an exported file.
 */
#ifndef FABRICCTL_SLURM_SLURM_H
#define FABRICCTL_SLURM_SLURM_H

#include "fabricctl/core/ctl.h"
#include "topo/base/hostlist.h"

/* Compare Slurm with an exported file, or bring Slurm to it. */
enum ctl_exit ctl_slurm(const struct ctl *ctl);

/* ---- scontrol ---- */

#define SLURM_WORDS 8 /* arguments of one call, at most */

/* The answer of one call. Free with slurm_answer_free(). */
struct slurm_answer {
    char *text; /* standard output, with a 0 after it */
    size_t size;
    char why[CTL_WHY_SIZE]; /* on failure: one line with the call, the failure and the advice */
};

/*
 * Run scontrol with these arguments (NULL ends them; no shell), in the caller's environment without variables
 * that change its output. The program is $FABRICD_SCONTROL, else scontrol of PATH. Its output has a bound of
 * CTL_ANSWER_MAX bytes, and it is killed after so many seconds. Return CTL_DONE or CTL_FAILED; no message
 * is written.
 */
enum ctl_exit slurm_ask(const char *const *words, unsigned seconds, struct slurm_answer *answer);
void slurm_answer_free(struct slurm_answer *answer);

/*
 * Return the older one of the versions of scontrol and slurmctld, as year * 100 + month: 2411 is 24.11. 0:
 * unknown, with answer->why.
 */
unsigned slurm_version(struct slurm_answer *answer);

/*
 * List the nodes that slurmctld has, in its order; with `feature`, only nodes with this available feature.
 * Return CTL_FAILED with answer->why on failure; then *nodes is empty.
 */
enum ctl_exit slurm_nodes(const char *feature, struct fab_hostlist *nodes, struct slurm_answer *answer);

/* ---- topologies, as a file or slurmctld has them (slurm_read.c) ---- */

enum slurm_kind { SLURM_FLAT, SLURM_TREE, SLURM_BLOCK, SLURM_RING, SLURM_TORUS3D };

/* A switch, a block, a ring or a torus. */
struct slurm_unit {
    char *name;
    char *below;     /* its nodes or switches, as the text lists them; NULL: none */
    uint32_t parent; /* UINT32_MAX: none */
    bool inner;      /* it has switches below it and no nodes */
};

struct slurm_place {
    const char *node; /* belongs to `lists` */
    uint32_t unit;
};

#define SLURM_SIZES 16

struct slurm_topology {
    char *name; /* "default" in a topology.conf */
    enum slurm_kind kind;
    struct slurm_unit *units; /* in the order of the text */
    uint32_t n_units, units_room;
    uint32_t *by_name; /* the units, sorted by name */
    struct slurm_place
        *places; /* one for each node, sorted by node; of several the one with the lowest unit */
    uint32_t n_places, places_room;
    struct fab_hostlist *lists;  /* for each unit: its nodes */
    uint32_t sizes[SLURM_SIZES]; /* of blocks, the smallest first */
    uint32_t n_sizes;
};

struct slurm_topologies {
    struct slurm_topology *items;
    uint32_t n, room;
    bool yaml; /* from a topology.yaml */
};

/*
 * Read a topology.conf, a topology.yaml as `fabricctl export` writes it, or the output of `scontrol show
 * topology`; `shown` names the text in messages. Return PMIXFAB_OK, PMIXFAB_ERR_SYNTAX or PMIXFAB_ERR_NOMEM
 * with a message in `err`. The topologies are empty on failure.
 */
int slurm_read(const char *text, const char *shown, struct slurm_topologies *out, struct fab_err *err);
void slurm_topologies_free(struct slurm_topologies *topologies);

/* Return the topology with this name; NULL: there is none. */
const struct slurm_topology *slurm_topology_named(const struct slurm_topologies *all, const char *name);
/* Return the unit with this name, or the unit of a node; UINT32_MAX: there is none. */
uint32_t slurm_unit_named(const struct slurm_topology *topology, const char *name);
uint32_t slurm_unit_of(const struct slurm_topology *topology, const char *node);
/* Return the places of a node, and their number; a node in several units has several. */
const struct slurm_place *slurm_places_of(const struct slurm_topology *topology, const char *node,
                                          uint32_t *n);
const char *slurm_kind_name(enum slurm_kind kind);

/* ---- the difference between a file and slurmctld (slurm_difference.c) ---- */

/* A node whose place in slurmctld is not that of the file. */
struct slurm_move {
    const char *node;
    char *target; /* the value of Topology= for this node: all its places in the file */
    char *change; /* for people: "leaf2 in Slurm, leaf1 in the file" */
    bool leaves;  /* the file has no place for it */
};

struct slurm_difference {
    struct slurm_move *moves; /* nodes that get a place first, then by target */
    uint32_t n_moves, room;
    char **structure; /* differences that need a reconfigure, one line each */
    uint32_t n_structure, structure_room;
    char **remarks; /* facts that are no difference, one line each */
    uint32_t n_remarks, remarks_room;
    uint32_t n_unknown; /* nodes of the file that slurmctld does not show */
    bool plugin;        /* a kind of topology that Slurm gets only by a restart */
    uint32_t new_units; /* switches that the moves add to slurmctld */
    uint32_t n_units;   /* switches of the largest tree in slurmctld */
};

/*
 * Compare what slurmctld has with the file. nodes: the nodes of slurmctld, sorted by name; other nodes of the
 * file are remarks. updates: this Slurm changes a node's place by `scontrol update`. Return PMIXFAB_OK or
 * PMIXFAB_ERR_NOMEM. The difference points into both.
 */
int slurm_compare(const struct slurm_topologies *file, const struct slurm_topologies *slurm,
                  const struct fab_hostlist *nodes, bool updates, struct slurm_difference *out);
void slurm_difference_free(struct slurm_difference *difference);

/* Return the number of moves from `first` on that one `scontrol update` can make. */
uint32_t slurm_moves_together(const struct slurm_difference *difference, uint32_t first);
/* Print the moves for people, those with the same places together. */
void slurm_print_moves(const struct slurm_difference *difference);

/* ---- one run: the file, slurmctld and their difference (slurm_view.c) ---- */

struct slurm_run {
    const struct ctl *ctl;
    const char *path, *target; /* the exported file; the file that slurmctld reads, which may be the same */
    char *text;                /* of the exported file */
    size_t size;
    struct slurm_topologies file, slurm;
    unsigned version; /* of Slurm, as slurm_version() has it */
    struct fab_hostlist nodes;
    struct slurm_difference difference;
    bool rejected;          /* slurmctld answers, and a reconfigure with the file failed */
    char why[CTL_WHY_SIZE]; /* of a failure */
};

#define SLURM_UPDATES 2505 /* from this version on a node's place changes by `scontrol update` */

/* Read the exported file, which is a regular file and no link. CTL_FAILED: run->why. */
enum ctl_exit slurm_run_file(struct slurm_run *run);
/* Ask slurmctld and compare, again at each call. CTL_FAILED: run->why. */
enum ctl_exit slurm_run_compare(struct slurm_run *run);
void slurm_run_free(struct slurm_run *run);

/* Return whether slurmctld differs from the file. */
bool slurm_run_differs(const struct slurm_run *run);
/* Return whether the difference needs the file and a reconfigure; *why is one of the reasons. */
bool slurm_run_needs_reconfigure(const struct slurm_run *run, const char **why);

/* ---- what is kept between runs (slurm_apply.c) ---- */

/* The state beside the target, locked while it is open. */
struct slurm_state {
    int fd;
    json_t *is;
};

/* Open and lock TARGET.state. CTL_FAILED: `why`. */
enum ctl_exit slurm_state_open(const char *target, struct slurm_state *state, char why[static CTL_WHY_SIZE]);
/* Save and close. CTL_FAILED: `why`. */
enum ctl_exit slurm_state_close(struct slurm_state *state, char why[static CTL_WHY_SIZE]);
/* Return whether the state has this digest of a text under a key, and set it. */
bool slurm_state_is(const struct slurm_state *state, const char *key, const char *digest);
void slurm_state_set(struct slurm_state *state, const char *key, const char *value);

#define SLURM_DIGEST 40
void slurm_digest(const char *text, size_t size, char digest[static SLURM_DIGEST]);

/* Bring slurmctld to the file. */
enum ctl_exit slurm_apply(struct slurm_run *run);

#endif
