/*
 * planned.h - swaps that an operator announced: what changes of that host or switch meanwhile was planned.
 *
 * They stand in the store, and are known again after a restart. One thread at a time.
 */
#ifndef FABRICD_ENGINE_PLANNED_H
#define FABRICD_ENGINE_PLANNED_H

#include "fabricd/store/store_planned.h"
#include "topo/changes/changes.h"

#define PLANNED_SECONDS  (4 * 3600)       /* unless it is said otherwise */
#define PLANNED_MAX_TIME (30 * 24 * 3600) /* seconds */
#define PLANNED_MAX      1024             /* at a time */

struct planned;

/* The store outlives it. */
int planned_new(struct store *store, struct planned **out, struct fab_err *err);
void planned_free(struct planned *planned); /* NULL allowed */

/* Announce, from now on; a second time replaces the first. PMIXFAB_ERR_RANGE: too many, too long. */
int planned_add(struct planned *planned, const char *name, int64_t now, unsigned seconds, unsigned uid,
                struct fab_err *err);
/* PMIXFAB_ERR_NOTFOUND: it is not planned. */
int planned_cancel(struct planned *planned, const char *name, int64_t now, struct fab_err *err);

/* Those that are in force now, by name; what is over goes. Valid until the next call. */
const struct store_planned *planned_all(struct planned *planned, int64_t now, uint32_t *n);

/* Mark the changes that are about a planned host (with or without its domain) or switch. */
void planned_mark(struct planned *planned, struct fab_diff *diff, int64_t now);

#endif
