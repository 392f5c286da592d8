/*
 * store_file.h - the store as a file: opened, locked, brought up to its schema. Copies of it: store_copy.h.
 */
#ifndef FABRICD_STORE_FILE_STORE_FILE_H
#define FABRICD_STORE_FILE_STORE_FILE_H

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

/* What was kept of older schemas before this time (microseconds since 1970) goes. */
void store_forget_kept(const struct store *store, int64_t before);

#endif
