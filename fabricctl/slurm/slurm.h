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
 * CTL_ANSWER_MAX bytes, and it is killed after CTL_ANSWER_SECONDS. Return CTL_DONE or CTL_FAILED; no message
 * is written.
 */
enum ctl_exit slurm_ask(const char *const *words, struct slurm_answer *answer);
void slurm_answer_free(struct slurm_answer *answer);

/* Return Slurm's version as year * 100 + month: 2411 is 24.11. 0: unknown, with answer->why. */
unsigned slurm_version(struct slurm_answer *answer);

/*
 * List the nodes that slurmctld has, in its order; with `feature`, only nodes with this available feature.
 * Return CTL_FAILED with answer->why on failure; then *nodes is empty.
 */
enum ctl_exit slurm_nodes(const char *feature, struct fab_hostlist *nodes, struct slurm_answer *answer);

#endif
