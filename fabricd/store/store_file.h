/*
 * store_file.h - the store as a file: opened, locked, brought up to its schema. Copies of it: store_copy.h.
 */
#ifndef FABRICD_STORE_STORE_FILE_H
#define FABRICD_STORE_STORE_FILE_H

#include <stdbool.h>

#include "fabricd/store/store.h"

/*
 * Open, create where absent, take the lock, migrate. Errors, each with one clear line in err:
 * PMIXFAB_ERR_BUSY (another fabricd has this store: its pid; or another process has it locked), _NEWER
 * (written by a newer fabricd), _FOREIGN (another program's database), _CORRUPT (not a database, or its
 * integrity is broken), _IO (path, full disk, permission). What is refused stays as it is. The lock is
 * flock() on "PATH.lock", held until close. Migration: one exclusive transaction for all steps, version
 * checked again inside (PRAGMA user_version).
 */
int store_open(const char *path, struct store **out, struct fab_err *err);
void store_close(struct store *store); /* NULL allowed */

/*
 * Of a store that store_open() cannot open since store_no_room(), which is `why`: what it holds, read without
 * a change to it; an empty store where it is not there, or of an older schema. Nothing can be written:
 * store_writable().
 */
int store_open_reading(const char *path, int why, struct store **out, struct fab_err *err);

/* Is the disk full (ENOSPC, EDQUOT) or read-only (EROFS)? 0: there is room. opened: the store could be
 * opened, so a little is enough. */
int store_no_room(const char *path, bool opened);

/* What was kept of older schemas before this time (microseconds since 1970) goes. */
void store_forget_kept(const struct store *store, int64_t before);

#endif
