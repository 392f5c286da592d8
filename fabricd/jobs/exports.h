/*
 * exports.h - files for other programs that are kept right: after each generation `fabricctl export` makes
 * those that are configured anew, in a child, and where one says something new the site's command is told.
 *
 * One child at a time. A file is looked at no more often than the configured pace; what fails is tried again
 * with a growing pause, and the file stays as it was until then. On the loop.
 */
#ifndef FABRICD_JOBS_EXPORTS_H
#define FABRICD_JOBS_EXPORTS_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"

#define EXPORTS_LONGEST_PAUSE 3600 /* seconds between attempts, where the pace is not longer */

struct exports;

/* Nothing is done where none is configured. Of each file with a command FILE.told says what the command was
 * told of, so that a daemon which ended in between tells it after its next start, and not at every start. */
int exports_new(struct event_base *base, const struct config *config, struct counts *counts,
                struct exports **out, struct fab_err *err);
void exports_free(struct exports *exports); /* NULL allowed; kills what runs */

/* This generation is served now. NULL allowed. */
void exports_tell(struct exports *exports, uint64_t generation);

/* For `status`: an array, in the order of the configuration (docs/control.md). NULL without memory. */
json_t *exports_json(const struct exports *exports);
/* Does one run, or wait for its pace? The next attempt after a failure does not count. NULL allowed. */
bool exports_busy(const struct exports *exports);
/* Attempts that have ended, well or not. NULL allowed. */
uint64_t exports_ended(const struct exports *exports);
/* How many failed when they were tried last. */
unsigned exports_failing(const struct exports *exports);

#endif
