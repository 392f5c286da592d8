/*
 * pool.h - the assigned endpoint numbers: in memory, equal to the store. One thread at a time.
 */
#ifndef FABRICD_ENDPOINTS_POOL_H
#define FABRICD_ENDPOINTS_POOL_H

#include <stdbool.h>

#include "fabricd/store/store_tables.h"

/* The configured numbers of a plane. */
struct pool_range {
    const char *plane;
    uint32_t first, last;
};

struct pool;

/* Load the pool, and free endpoints of an earlier boot of the host. The store outlives it. */
int pool_new(struct store *store, struct pool **out, struct fab_err *err);
void pool_free(struct pool *pool); /* NULL allowed */

/* Return all assigned endpoints, by plane and number. Valid until the next call. */
const struct store_endpoints *pool_all(const struct pool *pool, uint32_t *n);

/* Return how many endpoints a user has. */
uint64_t pool_of_uid(const struct pool *pool, unsigned uid);

/*
 * Assign `count` numbers of each of these ranges, or none at all. The ranges belong to different planes. The
 * numbers follow the last assigned number, cyclically, because a job's processes may still use their numbers
 * after its starter was killed. A new pool begins after the highest assigned number. who: the owner; its
 * plane, first and last are ignored. PMIXFAB_ERR_RANGE: a range has too few free numbers. Errors of the
 * store.
 */
int pool_take(struct pool *pool, const struct store_endpoints *who, const struct pool_range *ranges,
              uint32_t n, uint32_t count, struct fab_err *err);

/* Return whether this row belongs to that starter (pid, started) and, if who->job is not NULL, to that job
 * and user. */
bool pool_is_of(const struct store_endpoints *row, const struct store_endpoints *who);

/* Free the rows that match pool_is_of(). Errors of the store: they stay. */
int pool_give_back(struct pool *pool, const struct store_endpoints *who, struct fab_err *err);

#endif
