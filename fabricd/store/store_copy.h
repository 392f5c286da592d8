/*
 * store_copy.h - a copy of a store as one file: for a backup while it is in use, and for a restore.
 *
 * Any thread; each call has connections of its own.
 */
#ifndef FABRICD_STORE_STORE_COPY_H
#define FABRICD_STORE_STORE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "fabricd/store/store_history_digest.h"
#include "topo/model/model.h"

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

/* store_history_check() of a store that is in use, as it is at the beginning. */
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
