/*
 * exports.h - keep files for other programs up to date. After each generation, a child runs `fabricctl
 * export` for each configured file. If the content of a file has changed, the child also runs the site's
 * command.
 *
 * Only one child runs at a time. A file is made no more often than the configured pace. A failed attempt is
 * repeated with growing pauses, and the old file stays until an attempt succeeds. All functions run on the
 * loop.
 */
#ifndef FABRICD_JOBS_EXPORTS_H
#define FABRICD_JOBS_EXPORTS_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"

#define EXPORTS_LONGEST_PAUSE 3600 /* seconds between attempts, unless the pace is longer */

struct exports;

/* Create the exports; without configured files they do nothing. For a file with a command, FILE.told records
 * the version for which the command was run. So after a restart the command runs only for a version that it
 * has not seen. */
int exports_new(struct event_base *base, const struct config *config, struct counts *counts,
                void (*changed)(void *cbdata), void *cbdata, struct exports **out, struct fab_err *err);
void exports_free(struct exports *exports); /* NULL allowed; kills a running child */

/* Note the served generation. NULL allowed. */
void exports_tell(struct exports *exports, uint64_t generation);

/* Return an array for `status`, in the order of the configuration (docs/control.md). NULL: no memory. */
json_t *exports_json(const struct exports *exports);
/* Return whether an export runs, or waits for its pace. A retry after a failure does not count. NULL allowed.
 */
bool exports_busy(const struct exports *exports);
/* Return the number of ended attempts, successful or not. NULL allowed. */
uint64_t exports_ended(const struct exports *exports);
/*
 * Hold all exports from now on, also after a restart, and what depends on them: a file in their folder
 * records the hold. fabricctl slurm apply respects it as well. PMIXFAB_ERR_NOTFOUND: there is
 * no export; _IO.
 */
int exports_hold(struct exports *exports, const char *user, const char *reason, struct fab_err *err);
/* End the hold; what is due runs. PMIXFAB_ERR_NOTFOUND: there is none; _IO. */
int exports_release(struct exports *exports, struct fab_err *err);
/* Return the hold as {"since", "user", "reason"}; NULL: none. The exports keep it. */
const json_t *exports_held(const struct exports *exports);
/* Return the comparisons with Slurm; NULL: there is no export. */
const struct slurm_rounds *exports_slurm(const struct exports *exports);
/* The settings have changed. */
void exports_reload(struct exports *exports);
/* Return the number of exports whose last attempt failed. */
unsigned exports_failing(const struct exports *exports);

#endif
