/*
 * pool.h - which numbers of endpoints are handed out: in memory, as they stand in the store. One thread at a
 * time.
 */
#ifndef FABRICD_ENDPOINTS_POOL_H
#define FABRICD_ENDPOINTS_POOL_H

#include <stdbool.h>

#include "fabricd/store/store_tables.h"

/* What may be handed out of a plane. */
struct pool_range {
    const char *plane;
    uint32_t first, last;
};

struct pool;

/* The store outlives it. What is in it of an earlier boot of the host is free. */
int pool_new(struct store *store, struct pool **out, struct fab_err *err);
void pool_free(struct pool *pool); /* NULL allowed */

/* All that is handed out, by plane and number. Valid until the next call. */
const struct store_endpoints *pool_all(const struct pool *pool, uint32_t *n);

/* How many of them a user has. */
uint64_t pool_of_uid(const struct pool *pool, unsigned uid);

/*
 * Hand out `count` numbers of each of these ranges, which are of different planes: of all or of none. They
 * are those behind the last that were handed out, around and around, because processes of a job whose starter
 * was killed may use theirs for a while. A new pool begins behind the highest. who: whose they are; its
 * plane, first and last are not looked at. PMIXFAB_ERR_RANGE: a range has not so many left. Errors of the
 * store.
 */
int pool_take(struct pool *pool, const struct store_endpoints *who, const struct pool_range *ranges,
              uint32_t n, uint32_t count, struct fab_err *err);

/* Is this row of that starter (pid, started)? Where who->job is not NULL: of that job and user, too? */
bool pool_is_of(const struct store_endpoints *row, const struct store_endpoints *who);

/* What pool_is_of() is free. Errors of the store: then it is not. */
int pool_give_back(struct pool *pool, const struct store_endpoints *who, struct fab_err *err);

#endif
