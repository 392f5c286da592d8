/*
 * store_copy.h - a copy of a store as one file: for a backup while it is in use, and for a restore.
 *
 * Any thread; each call has connections of its own.
 */
#ifndef FABRICD_STORE_STORE_COPY_H
#define FABRICD_STORE_STORE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/inventory/model.h"

struct store_copy {
    const char *from;
    bool still;     /* nobody writes it meanwhile: it may lie where nothing can be written */
    const char *to; /* must not be there; gone again where the copy fails */
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

/* Does a file begin like a store of fabricd's? Not for one that this process has open: that would lose
 * SQLite's locks. */
bool store_is_one(const char *path);
/* ... or like a copy of one that was never finished? */
bool store_is_unfinished(const char *path);

/*
 * Put a copy of the backup in place of the store, which is kept as PATH.before-restore (or .before-restore.2,
 * ...): `kept` is its name, empty where there was none. The next generation will be above that of the old
 * store, as far as it can be read. A lock is held meanwhile: PMIXFAB_ERR_BUSY where another fabricd has the
 * store. PMIXFAB_ERR_NEWER, _FOREIGN, _CORRUPT, _IO, _NOTFOUND: the store is as before.
 */
int store_restore(const char *path, const char *backup, char *kept, size_t size, struct fab_err *err);

#endif
