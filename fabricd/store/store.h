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

#endif
