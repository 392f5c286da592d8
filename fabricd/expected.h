/*
 * expected.h - swaps that an operator announced: what changes of that host or switch meanwhile was planned.
 *
 * They stand in the store, and are known again after a restart. One thread at a time.
 */
#ifndef FABRICD_EXPECTED_H
#define FABRICD_EXPECTED_H

#include "fabricd/store_expected.h"

#define EXPECTED_SECONDS  (4 * 3600)       /* unless it is said otherwise */
#define EXPECTED_MAX_TIME (30 * 24 * 3600) /* seconds */
#define EXPECTED_MAX      1024             /* at a time */

struct expected;

/* The store outlives it. */
int expected_new(struct store *store, struct expected **out, struct fab_err *err);
void expected_free(struct expected *expected); /* NULL allowed */

/* Announce, from now on; a second time replaces the first. PMIXFAB_ERR_RANGE: too many, too long. */
int expected_add(struct expected *expected, const char *name, int64_t now, unsigned seconds, unsigned uid,
                 struct fab_err *err);
/* PMIXFAB_ERR_NOTFOUND: it is not expected. */
int expected_cancel(struct expected *expected, const char *name, int64_t now, struct fab_err *err);

/* Those that are in force now, by name; what is over goes. Valid until the next call. */
const struct store_expected *expected_all(struct expected *expected, int64_t now, uint32_t *n);

/* Mark the changes that are about an expected host (with or without its domain) or switch. */
void expected_mark(struct expected *expected, struct fab_diff *diff, int64_t now);

#endif
