/*
 * store.h - the owner of all durable state: one SQLite database (WAL, foreign keys, one writer). This header
 * treats it as a file: open, copy, restore. See store_tables.h for its contents.
 *
 * At whatever moment the process dies, the next store_open() finds the last committed generation complete.
 * Data that store_publish() has confirmed survives a power cut.
 *
 * One thread at a time, except copies, which have connections of their own.
 */
#ifndef FABRICD_STORE_STORE_H
#define FABRICD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/base/error.h"

struct store;

/*
 * Open the store: create it if absent, lock it, migrate it. The lock is flock() on "PATH.lock", held until
 * close. One exclusive transaction contains all steps of the migration, and checks the version again inside
 * (PRAGMA user_version). A rejected store is not changed. Errors, each with one line in err:
 * - PMIXFAB_ERR_BUSY: another fabricd has this store (err has its pid), or another process has locked it.
 * - PMIXFAB_ERR_NEWER: a newer fabricd has written it.
 * - PMIXFAB_ERR_FOREIGN: it is the database of another program.
 * - PMIXFAB_ERR_CORRUPT: it is not a database, or its integrity is broken.
 * - PMIXFAB_ERR_IO: the path, a full disk, or a missing permission.
 */
int store_open(const char *path, struct store **out, struct fab_err *err);
void store_close(struct store *store); /* NULL allowed */

/*
 * Open a store for reading only, because store_no_room() has returned `why`. The store is not changed; if it
 * does not exist or has an older schema, an empty one is opened. See store_writable().
 */
int store_open_reading(const char *path, int why, struct store **out, struct fab_err *err);

/*
 * Return ENOSPC or EDQUOT if the disk is full, EROFS if it is read-only, and 0 if there is room. opened:
 * the store could be opened, so little room is sufficient.
 */
int store_no_room(const char *path, bool opened);

/* Return PMIXFAB_ERR_IO with the reason if the store is open for reading only. */
int store_writable(const struct store *store, struct fab_err *err);

/*
 * Fold the log into the file, so that the loss of the log loses no data. PMIXFAB_ERR_BUSY: another process
 * reads, and the log is folded as far as possible. _IO: also if the log was removed or truncated. As much as
 * possible is then saved. store_close() folds the log, too.
 */
int store_checkpoint(struct store *store, struct fab_err *err);
/* Set the function to call after each commit; NULL: none. */
void store_on_commit(struct store *store, void (*fn)(void *cbdata), void *cbdata);

/* Remove stores of older schemas that were kept before this time (microseconds since 1970). */
void store_forget_kept(const struct store *store, int64_t before);

/*
 * Marks in the lock file, which survive the loss of the log or the database. They are the newest committed
 * generation, and the generation of the newest backup. 0: none. They are not synced each time, so they may be
 * older after a power cut.
 */
struct store_marks {
    uint64_t newest, backup;
    char file[512]; /* of the backup; a long path is truncated */
};
void store_marks(const struct store *store, struct store_marks *out);
void store_mark_backup(struct store *store, uint64_t generation, const char *file);

/* ---- copies as one file: a backup of a store in use, and a restore ---- */

struct store_copy {
    const char *from;
    /* not 0: an open descriptor of `from`, which no process writes; `from` is then only a name for messages
     */
    int fd;
    const char *to;            /* must not exist; removed if the copy fails */
    const char *const *schema; /* the schema that it may have, like schema_sql; NULL: schema_sql */
    /* Called repeatedly with the bytes done of all; false: cancel (PMIXFAB_ERR_TIMEOUT). May be NULL. */
    bool (*progress)(const char *doing, uint64_t bytes, uint64_t all, void *cbdata);
    void *cbdata;
};

/*
 * Copy the state that is committed at the beginning, whatever is written meanwhile; check the whole copy
 * (PRAGMA quick_check), and sync it. Its mode is 0600, and it needs no file beside it. PMIXFAB_ERR_IO,
 * _CORRUPT, _FOREIGN, _NEWER.
 */
int store_copy(const struct store_copy *order, uint64_t *bytes, struct fab_err *err);

struct store_history_checked {
    uint64_t checked; /* generations */
    uint64_t without; /* first generations without digests, from an older fabricd, which cannot be checked */
};
/* Compare the history of a store in use with its digests, up to the newest generation at the beginning.
 * PMIXFAB_ERR_CORRUPT: err names the first generation that differs. progress is called repeatedly; false
 * cancels (_TIMEOUT). */
int store_verify(const char *path, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                 void *cbdata, struct store_history_checked *out, struct fab_err *err);

/* Return whether a file begins like a store of fabricd. Not for a file that this process has open: SQLite
 * would lose its locks. */
bool store_is_one(const char *path);
/* ... or like an unfinished copy of one. */
bool store_is_unfinished(const char *path);

/*
 * Check that the descriptor's file may be restored: it begins like a store of fabricd, and is not this store.
 * The descriptor stays open: if it is this store, closing it would drop SQLite's locks
 * (PMIXFAB_ERR_CONFLICT). _FOREIGN.
 */
int store_restorable(const char *path, const char *backup, int fd, struct fab_err *err);

/*
 * Put a copy of the backup, open as fd, in place of the store. The old store is kept as PATH.before-restore
 * (or .before-restore.2, ...). `kept` becomes that name, or is empty if there was no store. The mode of the
 * store stays. The next generation will be above all that were published, see store_restore.c. A lock is held
 * meanwhile. PMIXFAB_ERR_BUSY: another fabricd has the store. PMIXFAB_ERR_NEWER, _FOREIGN, _CORRUPT, _IO: the
 * store is unchanged.
 */
int store_restore(const char *path, const char *backup, int fd, char *kept, size_t size, struct fab_err *err);

/* The same with the copy that store_copy() has made as store_copy_name() while the store was in use. */
int store_restore_copied(const char *path, char *kept, size_t size, struct fab_err *err);
void store_copy_name(char *copy, size_t size, const char *path);

#endif
