/*
 * store_lost.h - what was lost and is not back, kept over a restart.
 */
#ifndef FABRICD_STORE_LOST_H
#define FABRICD_STORE_LOST_H

#include "fabricd/store/store.h"
#include "topo/correlate/retired.h"

/* The list, finished; *out is initialised here. PMIXFAB_ERR_CORRUPT: a row is none that was written. */
int store_retired_load(struct store *store, struct fab_retired *out, struct fab_err *err);

/* From one list to the next, both finished: only rows that differ. In a transaction (store_priv.h). */
int store_write_retired(struct store *store, const struct fab_retired *before,
                        const struct fab_retired *after, struct fab_err *err);

#endif
