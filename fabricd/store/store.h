/*
 * store.h - the only owner of durable state: one SQLite database (WAL, foreign keys, one writer).
 *
 * Holds the inventory as last published, the planes with their numbers and last snapshots (which hold the
 * compact costs), every generation, the history of changes, and what hosts report. Whatever moment the
 * process dies at, the next store_open() finds the last committed generation whole; what store_publish() has
 * confirmed survives a power cut.
 *
 * One thread at a time.
 */
#ifndef FABRICD_STORE_STORE_H
#define FABRICD_STORE_STORE_H

#include <stdint.h>

#include "topo/base/error.h"

struct store;

/*
 * Fold the log into the file, so that a log that is lost has nothing in it. PMIXFAB_ERR_BUSY: somebody reads;
 * it is done as far as can be. _IO: also where the log was removed or cut meanwhile; what can be saved is.
 * store_close() does it.
 */
int store_checkpoint(struct store *store, struct fab_err *err);
/* fn is called after each commit, until it is replaced; NULL: nobody is. */
void store_on_commit(struct store *store, void (*fn)(void *cbdata), void *cbdata);

/* PMIXFAB_ERR_IO, and why, where it is only read. */
int store_writable(const struct store *store, struct fab_err *err);

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
void store_mark_newest(struct store *store, uint64_t generation);
void store_mark_backup(struct store *store, uint64_t generation, const char *file);

#endif
