/*
 * slurm_rounds.h - compare Slurm with its exported files, in rounds and after each new file. A child runs
 * `fabricctl slurm diff`, or `fabricctl slurm apply` with [slurm] apply = yes.
 *
 * Another program may bring Slurm to a new file, so a difference becomes a finding only when a second
 * comparison, SLURM_AGAIN seconds later, finds it as well. All functions run on the loop.
 */
#ifndef FABRICD_JOBS_SLURM_ROUNDS_H
#define FABRICD_JOBS_SLURM_ROUNDS_H

#include <event2/event.h>
#include <jansson.h>

#include "fabricd/config/config.h"

#define SLURM_AGAIN 10

struct slurm_rounds;

/* program: fabricctl, kept by the caller. changed: called when the findings may have changed. */
int slurm_rounds_new(struct event_base *base, const struct config *config, const char *program,
                     void (*changed)(void *cbdata), void *cbdata, struct slurm_rounds **out,
                     struct fab_err *err);
void slurm_rounds_free(struct slurm_rounds *rounds); /* NULL allowed; kills a running child */

/* The file (absolute path, format) is compared from now on, and is new. Other formats are ignored. */
void slurm_rounds_file(struct slurm_rounds *rounds, const char *path, const char *format);
/* Stop and start again: while an operator holds the exports, nothing runs. */
void slurm_rounds_hold(struct slurm_rounds *rounds, bool hold);
/* Read the settings again. */
void slurm_rounds_reload(struct slurm_rounds *rounds);

/* Return whether a comparison of a new file runs or is due. */
bool slurm_rounds_busy(const struct slurm_rounds *rounds);

/*
 * Call fn for each file that Slurm differs from, with a line that names the difference; and for each file
 * with which Slurm agrees but for nodes or switches that only one of them has.
 */
void slurm_rounds_differing(const struct slurm_rounds *rounds,
                            void (*fn)(const char *path, const char *why, bool differs, void *cbdata),
                            void *cbdata);

/* The files for `status`. */
json_t *slurm_rounds_json(const struct slurm_rounds *rounds);

#endif
