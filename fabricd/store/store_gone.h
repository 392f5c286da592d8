/* store_gone.h - the store's table of generations that were given out and that it does not have. One thread
 * at a time. */
#ifndef FABRICD_STORE_STORE_GONE_H
#define FABRICD_STORE_STORE_GONE_H

#include "fabricd/store/store_tables.h"

/* All that the history would still have, by number. free(*list). */
int store_gone_load(struct store *store, struct store_gone **list, uint32_t *n, struct fab_err *err);

/* On the disk when it returns; and later numbers are above these. */
int store_gone_add(struct store *store, const struct store_gone *gone, struct fab_err *err);

#endif
