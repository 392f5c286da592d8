#include "fabricd/endpoints/pool.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "topo/base/array.h"
#include "topo/base/search.h"

struct pool {
    struct store *store;
    struct store_endpoints *rows; /* by plane and number; they own their texts */
    uint32_t n, room;
    bool failed; /* no memory while they were read */
    struct pool_last *lasts;
    uint32_t n_lasts, lasts_room;
};

/* The last number that was assigned in a plane. */
struct pool_last {
    char *plane;
    uint32_t number;
};

static int pool_nomem(struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
}

static bool pool_is_before(const struct store_endpoints *row, const char *plane, uint32_t number)
{
    const int order = strcmp(row->plane, plane);
    return order < 0 || (order == 0 && row->first < number);
}

static uint32_t pool_position(const struct pool *pool, const char *plane, uint32_t number)
{
    return FAB_LOWER_BOUND(0, pool->n, i, pool_is_before(&pool->rows[i], plane, number));
}

static bool pool_insert(struct pool *pool, const struct store_endpoints *row)
{
    struct store_endpoints own = *row;
    if (!FAB_ARRAY_ROOM(&pool->rows, &pool->room, (uint64_t)pool->n + 1))
        return false;
    char *plane = strdup(row->plane), *job = strdup(row->job);
    if (plane == NULL || job == NULL) {
        free(plane);
        free(job);
        return false;
    }
    own.plane = plane;
    own.job = job;
    own.boot = NULL;
    const uint32_t at = pool_position(pool, row->plane, row->first);
    memmove(&pool->rows[at + 1], &pool->rows[at], (size_t)(pool->n++ - at) * sizeof(*pool->rows));
    pool->rows[at] = own;
    return true;
}

bool pool_is_of(const struct store_endpoints *row, const struct store_endpoints *who)
{
    return row->pid == who->pid && row->started == who->started &&
           (who->job == NULL || (row->uid == who->uid && strcmp(row->job, who->job) == 0));
}

/* Remove rows that the store has deleted. */
static void pool_remove(struct pool *pool, const struct store_endpoints *who)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pool->n; i++) {
        struct store_endpoints *row = &pool->rows[i];
        if (pool_is_of(row, who)) {
            free((char *)row->plane);
            free((char *)row->job);
        } else {
            pool->rows[kept++] = *row;
        }
    }
    pool->n = kept;
}

static int pool_load_row(const struct store_endpoints *row, void *cbdata)
{
    struct pool *pool = cbdata;
    pool->failed = !pool_insert(pool, row);
    return pool->failed;
}

int pool_new(struct store *store, struct pool **out, struct fab_err *err)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    *out = NULL;
    if (pool == NULL)
        return pool_nomem(err);
    pool->store = store;
    /* If the disk is full, the old endpoints stay assigned until the next start. */
    if (store_endpoints_forget(store, boot_id(), err) != PMIXFAB_OK)
        log_debug("endpoints of an earlier boot stay assigned: %s", err->text);
    int rc = store_endpoints_load(store, pool_load_row, pool, err);
    if (rc == PMIXFAB_OK && pool->failed)
        rc = pool_nomem(err);
    if (rc == PMIXFAB_OK)
        *out = pool;
    else
        pool_free(pool);
    return rc;
}

void pool_free(struct pool *pool)
{
    for (uint32_t i = 0; pool != NULL && i < pool->n; i++) {
        free((char *)pool->rows[i].plane);
        free((char *)pool->rows[i].job);
    }
    for (uint32_t i = 0; pool != NULL && i < pool->n_lasts; i++)
        free(pool->lasts[i].plane);
    if (pool != NULL) {
        free(pool->rows);
        free(pool->lasts);
    }
    free(pool);
}

const struct store_endpoints *pool_all(const struct pool *pool, uint32_t *n)
{
    *n = pool->n;
    return pool->rows;
}

uint64_t pool_of_uid(const struct pool *pool, unsigned uid)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < pool->n; i++)
        if (pool->rows[i].uid == uid)
            n += (uint64_t)pool->rows[i].last - pool->rows[i].first + 1;
    return n;
}

/* ---- assignment ---- */

/* The numbers that are about to be assigned. */
struct pool_taking {
    struct store_endpoints *rows;
    uint32_t n, room;
};

/* Take the wanted numbers from a gap between two assigned ranges. */
static bool pool_gap(struct pool_taking *taking, const struct store_endpoints *who, const char *plane,
                     uint64_t first, uint64_t last, uint32_t *wanted)
{
    if (first > last || *wanted == 0)
        return true;
    if (last - first >= *wanted)
        last = first + *wanted - 1;
    if (!FAB_ARRAY_ROOM(&taking->rows, &taking->room, (uint64_t)taking->n + 1))
        return false;
    struct store_endpoints *row = &taking->rows[taking->n++];
    *row = *who;
    row->plane = plane;
    row->first = (uint32_t)first;
    row->last = (uint32_t)last;
    *wanted -= (uint32_t)(last - first + 1);
    return true;
}

/* Take the wanted numbers from all gaps between `at` and `last`. */
static bool pool_gaps(const struct pool *pool, struct pool_taking *taking, const struct store_endpoints *who,
                      const char *plane, uint64_t at, uint64_t last, uint32_t *wanted)
{
    bool room = true;
    for (uint32_t i = pool_position(pool, plane, 0);
         room && *wanted > 0 && i < pool->n && strcmp(pool->rows[i].plane, plane) == 0; i++) {
        const struct store_endpoints *row = &pool->rows[i];
        const uint64_t before = row->first > last ? last : (uint64_t)row->first - 1;
        room = pool_gap(taking, who, plane, at, before, wanted);
        if ((uint64_t)row->last + 1 > at)
            at = (uint64_t)row->last + 1;
    }
    return room && pool_gap(taking, who, plane, at, last, wanted);
}

static struct pool_last *pool_last_of(const struct pool *pool, const char *plane)
{
    for (uint32_t i = 0; i < pool->n_lasts; i++)
        if (strcmp(pool->lasts[i].plane, plane) == 0)
            return &pool->lasts[i];
    return NULL;
}

/* Without memory for this, the plane continues after its highest number. */
static void pool_remember(struct pool *pool, const struct store_endpoints *row)
{
    struct pool_last *last = pool_last_of(pool, row->plane);
    if (last == NULL && FAB_ARRAY_ROOM(&pool->lasts, &pool->lasts_room, (uint64_t)pool->n_lasts + 1)) {
        last = &pool->lasts[pool->n_lasts];
        last->plane = strdup(row->plane);
        pool->n_lasts += last->plane != NULL;
    }
    if (last != NULL && last->plane != NULL)
        last->number = row->last;
}

static uint64_t pool_begin(const struct pool *pool, const struct pool_range *range)
{
    const struct pool_last *last = pool_last_of(pool, range->plane);
    uint64_t begin = last != NULL ? (uint64_t)last->number + 1 : range->first;
    for (uint32_t i = pool_position(pool, range->plane, 0);
         last == NULL && i < pool->n && strcmp(pool->rows[i].plane, range->plane) == 0; i++)
        begin = (uint64_t)pool->rows[i].last + 1;
    return begin < range->first || begin > range->last ? range->first : begin;
}

static int pool_find(const struct pool *pool, const struct store_endpoints *who,
                     const struct pool_range *range, uint32_t wanted, struct pool_taking *taking,
                     struct fab_err *err)
{
    const uint32_t count = wanted;
    const uint64_t begin = pool_begin(pool, range);
    if (!pool_gaps(pool, taking, who, range->plane, begin, range->last, &wanted) ||
        !pool_gaps(pool, taking, who, range->plane, range->first, begin - 1, &wanted))
        return pool_nomem(err);
    return wanted == 0 ? PMIXFAB_OK
                       : fab_fail(err, PMIXFAB_ERR_RANGE,
                                  "endpoints: plane %s has only %u of %u requested endpoints left: see "
                                  "fabricctl endpoints",
                                  range->plane, count - wanted, count);
}

int pool_take(struct pool *pool, const struct store_endpoints *who, const struct pool_range *ranges,
              uint32_t n, uint32_t count, struct fab_err *err)
{
    struct pool_taking taking = {.rows = NULL};
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = pool_find(pool, who, &ranges[i], count, &taking, err);
    if (rc == PMIXFAB_OK)
        rc = store_endpoints_add(pool->store, taking.rows, taking.n, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < taking.n; i++)
        if (pool_insert(pool, &taking.rows[i])) {
            pool_remember(pool, &taking.rows[i]);
        } else {
            (void)pool_give_back(pool, who, NULL); /* if that fails, they stay until the end of the starter */
            rc = pool_nomem(err);
        }
    free(taking.rows);
    return rc;
}

int pool_give_back(struct pool *pool, const struct store_endpoints *who, struct fab_err *err)
{
    int rc = store_endpoints_delete(pool->store, who, err);
    if (rc == PMIXFAB_OK)
        pool_remove(pool, who);
    return rc;
}
