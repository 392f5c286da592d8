/*
 * store.h - the only owner of durable state: one SQLite database (WAL, foreign keys, one writer). Here it is
 * a file: opened, copied, restored. What it holds: store_tables.h.
 *
 * Whatever moment the process dies at, the next store_open() finds the last committed generation whole; what
 * store_publish() has confirmed survives a power cut.
 *
 * One thread at a time, but for copies, which have connections of their own.
 */
#ifndef FABRICD_STORE_STORE_H
#define FABRICD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/base/error.h"

struct store;

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

/* PMIXFAB_ERR_IO, and why, where it is only read. */
int store_writable(const struct store *store, struct fab_err *err);

/*
 * Fold the log into the file, so that a log that is lost has nothing in it. PMIXFAB_ERR_BUSY: somebody reads;
 * it is done as far as can be. _IO: also where the log was removed or cut meanwhile; what can be saved is.
 * store_close() does it.
 */
int store_checkpoint(struct store *store, struct fab_err *err);
/* fn is called after each commit, until it is replaced; NULL: nobody is. */
void store_on_commit(struct store *store, void (*fn)(void *cbdata), void *cbdata);

/* What was kept of older schemas before this time (microseconds since 1970) goes. */
void store_forget_kept(const struct store *store, int64_t before);

/*
 * What stands beside the database (in its lock's file), and outlives a log or a file that is lost: the newest
 * generation that was committed, and that of the newest backup. Not brought to the disk each time: after a
 * power cut it may tell of an older one. 0: it tells of none.
 */
struct store_marks {
    uint64_t newest, backup;
    char file[512]; /* of the backup; a longer path is cut */
};
void store_marks(const struct store *store, struct store_marks *out);
void store_mark_backup(struct store *store, uint64_t generation, const char *file);

/* ---- copies as one file: a backup while the store is in use, and a restore ---- */

struct store_copy {
    const char *from;
    int fd; /* not 0: an open descriptor of `from`, which nobody writes, and which is told, not opened */
    const char *to;            /* must not be there; gone again where the copy fails */
    const char *const *schema; /* that it may have, as schema_sql; NULL: that one */
    /* Called now and then, bytes of all; false: give up (PMIXFAB_ERR_TIMEOUT). May be NULL. */
    bool (*progress)(const char *doing, uint64_t bytes, uint64_t all, void *cbdata);
    void *cbdata;
};

/*
 * Copy what is committed at the beginning, however much is written meanwhile; check all of the copy (PRAGMA
 * quick_check); bring it to the disk. Its mode is 0600, and it needs no file beside it. PMIXFAB_ERR_IO,
 * _CORRUPT, _FOREIGN, _NEWER.
 */
int store_copy(const struct store_copy *order, uint64_t *bytes, struct fab_err *err);

struct store_history_checked {
    uint64_t checked; /* generations */
    uint64_t without; /* the first ones, of a fabricd without digests, which cannot be checked */
};
/* Is the history of a store that is in use as it was published, to the newest generation? As it is at the
 * beginning. PMIXFAB_ERR_CORRUPT: err names the first generation that is not as it was. progress is called
 * now and then; false gives up (_TIMEOUT). */
int store_verify(const char *path, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                 void *cbdata, struct store_history_checked *out, struct fab_err *err);

/* Does a file begin like a store of fabricd's? Not for one that this process has open: that would lose
 * SQLite's locks. */
bool store_is_one(const char *path);
/* ... or like a copy of one that was never finished? */
bool store_is_unfinished(const char *path);

/*
 * May what the descriptor leads to be restored: is it like a store of fabricd's, and not this one? It is left
 * open: where it is this store, closing it would lose SQLite's locks (PMIXFAB_ERR_CONFLICT). _FOREIGN.
 */
int store_restorable(const char *path, const char *backup, int fd, struct fab_err *err);

/*
 * Put a copy of the backup, open as fd, in place of the store, which is kept as PATH.before-restore (or
 * .before-restore.2, ...): `kept` is its name, empty where there was none. The store's mode stays. The next
 * generation will be above all that were given out, see store_restore.c. A lock is held meanwhile:
 * PMIXFAB_ERR_BUSY where another fabricd has the store. PMIXFAB_ERR_NEWER, _FOREIGN, _CORRUPT, _IO: the store
 * is as before.
 */
int store_restore(const char *path, const char *backup, int fd, char *kept, size_t size, struct fab_err *err);

/* The same with the copy that store_copy() has made at store_copy_name() while the store was in use. */
int store_restore_copied(const char *path, char *kept, size_t size, struct fab_err *err);
void store_copy_name(char *copy, size_t size, const char *path);

#endif
