/* store_history_digest.c - the history in one number a generation, each of which has the one before it in it.
 */
#define XXH_INLINE_ALL /* the state is a variable here, so its layout must be that of the code */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "fabricd/store/store_history_digest.h"
#include "fabricd/store/tables_priv.h"

#define EACH 256 /* generations between two words of how it goes */

int store_history_digest_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->digest_head, "SELECT generation, published, partial, digest FROM generation"
                              " WHERE generation >= ?1 ORDER BY generation"},
        {&store->digest_changes, "SELECT seq, kind, what, before, after, why, planned, first_seen, last_seen,"
                                 " subjects FROM change WHERE generation = ?1 ORDER BY seq"},
        {&store->digest_before,
         "SELECT digest FROM (SELECT * FROM (SELECT generation, digest FROM generation"
         "  WHERE generation < ?1 ORDER BY generation DESC LIMIT 1)"
         " UNION ALL SELECT generation, digest FROM trimmed_digest WHERE generation < ?1)"
         " ORDER BY generation DESC LIMIT 1"},
        {&store->digest_keep, "UPDATE generation SET digest = ?2 WHERE generation = ?1"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

/* The first n columns of a row: each with its type, so that none can stand for another. */
static void digest_columns(XXH3_state_t *state, sqlite3_stmt *row, int n)
{
    for (int i = 0; i < n; i++) {
        const unsigned char type = (unsigned char)sqlite3_column_type(row, i);
        XXH3_64bits_update(state, &type, 1);
        if (type == SQLITE_INTEGER) {
            const uint64_t number = htole64((uint64_t)sqlite3_column_int64(row, i));
            XXH3_64bits_update(state, &number, sizeof number);
        } else if (type != SQLITE_NULL) {
            const void *bytes = sqlite3_column_blob(row, i);
            const uint64_t size = htole64((uint64_t)sqlite3_column_bytes(row, i));
            XXH3_64bits_update(state, &size, sizeof size);
            if (size > 0 && bytes != NULL)
                XXH3_64bits_update(state, bytes, (size_t)le64toh(size));
        }
    }
}

/* Of the generation that the head stands at. */
static int digest_generation(struct store *store, int64_t before, int64_t *out, struct fab_err *err)
{
    XXH3_state_t state;
    sqlite3_stmt *changes = store->digest_changes;
    const uint64_t chained = htole64((uint64_t)before);
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &chained, sizeof chained);
    digest_columns(&state, store->digest_head, 3);
    int rc = sqlite3_bind_int64(changes, 1, sqlite3_column_int64(store->digest_head, 0));
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the history", err) : 1;
    while (rc == 1 && (rc = store_step(store, changes, "reading the history", err)) == 1)
        digest_columns(&state, changes, sqlite3_column_count(changes));
    sqlite3_reset(changes);
    *out = (int64_t)XXH3_64bits_digest(&state);
    return rc;
}

/* That which the first one from this generation on goes on from; 0: it is the first of all, or the first with
 * one. */
static int digest_read_before(struct store *store, int64_t generation, int64_t *out, struct fab_err *err)
{
    sqlite3_stmt *stmt = store->digest_before;
    int rc = sqlite3_bind_int64(stmt, 1, generation);
    *out = 0;
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the history", err)
                         : store_step(store, stmt, "reading the history", err);
    if (rc == 1)
        *out = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return rc < 0 ? rc : PMIXFAB_OK;
}

int store_write_history_digest(struct store *store, uint64_t generation, struct fab_err *err)
{
    int64_t before, digest = 0;
    int rc = digest_read_before(store, (int64_t)generation, &before, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = sqlite3_bind_int64(store->digest_head, 1, (int64_t)generation);
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the generation", err)
                         : store_step(store, store->digest_head, "reading the generation", err);
    if (rc == 1)
        rc = digest_generation(store, before, &digest, err);
    sqlite3_reset(store->digest_head);
    if (rc != PMIXFAB_OK)
        return rc;
    int bound = sqlite3_bind_int64(store->digest_keep, 1, (int64_t)generation);
    bound |= sqlite3_bind_int64(store->digest_keep, 2, digest);
    return store_run_one(store, store->digest_keep, bound, "writing the generation", err);
}

/* ---- is it as it was? ------------------------------------------------------------------------------ */

static int digest_broken(const struct store *store, int64_t last, int64_t generation, struct fab_err *err)
{
    char gap[64] = "";
    if (last != 0 && generation > last + 1)
        snprintf(gap, sizeof gap, "generation %" PRId64 " is not there, or ", last + 1);
    return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                    "store %s: its history was changed: %sgeneration %" PRId64
                    " is not as it was published; restore it from a backup",
                    store->path, gap, generation);
}

/* One more; *before and *last go on. */
static int digest_compare(struct store *store, int64_t *before, int64_t *last,
                          struct store_history_checked *out, struct fab_err *err)
{
    const int64_t generation = sqlite3_column_int64(store->digest_head, 0);
    const bool has = sqlite3_column_type(store->digest_head, 3) != SQLITE_NULL;
    const int64_t digest = sqlite3_column_int64(store->digest_head, 3);
    int64_t now = 0;
    if (!has && out->checked == 0) {
        out->without++;
        *before = 0;
        *last = generation;
        return PMIXFAB_OK;
    }
    int rc = digest_generation(store, *before, &now, err);
    if (rc == PMIXFAB_OK && (!has || now != digest))
        rc = digest_broken(store, *last, generation, err);
    out->checked++;
    *before = digest;
    *last = generation;
    return rc;
}

int store_history_check(struct store *store, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                        void *cbdata, struct store_history_checked *out, struct fab_err *err)
{
    struct store_bounds bounds;
    int64_t before, last = 0;
    *out = (struct store_history_checked){0};
    int rc = store_bounds(store, &bounds, err);
    if (rc == PMIXFAB_OK)
        rc = digest_read_before(store, (int64_t)bounds.trimmed + 1, &before, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = sqlite3_bind_int64(store->digest_head, 1, (int64_t)bounds.trimmed + 1);
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the history", err) : 1;
    while (rc == 1 && (rc = store_step(store, store->digest_head, "reading the history", err)) == 1) {
        rc = digest_compare(store, &before, &last, out, err);
        if (rc == PMIXFAB_OK && out->checked % EACH == EACH - 1 && !progress(out->checked, cbdata))
            rc = fab_fail(err, PMIXFAB_ERR_TIMEOUT, "store %s: given up", store->path);
        rc = rc == PMIXFAB_OK ? 1 : rc;
    }
    sqlite3_reset(store->digest_head);
    if (rc == PMIXFAB_OK && (uint64_t)last < newest)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT,
                      "store %s: its history was changed: generation %" PRIu64
                      " is not there, although it was published; restore it from a backup",
                      store->path, (uint64_t)last + 1);
    return rc;
}
