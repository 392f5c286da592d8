/* store_history_digest.c - the history's digests: one number per generation, which includes the one before
 * it. */
#define XXH_INLINE_ALL /* the state is a variable here, so its layout must match the code */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "fabricd/store/store_priv.h"

#define READING "reading the history"
#define EACH    256 /* generations between two progress calls */

/* Digest the first n columns of a row, each with its type, so that none can replace another. */
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

static int digest_change(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    (void)store, (void)err;
    digest_columns(cbdata, row, sqlite3_column_count(row));
    return PMIXFAB_OK;
}

/* Digest the generation of the current row of `head`. */
static int digest_generation(struct store *store, sqlite3_stmt *head, int64_t before, int64_t *out,
                             struct fab_err *err)
{
    XXH3_state_t state;
    const uint64_t chained = htole64((uint64_t)before);
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &chained, sizeof chained);
    digest_columns(&state, head, 3);
    int rc = store_each(store,
                        "SELECT seq, kind, what, before, after, why, planned, first_seen, last_seen, subjects"
                        " FROM change WHERE generation = ?1 ORDER BY seq",
                        VALUES(INT(sqlite3_column_int64(head, 0))), READING, digest_change, &state, err);
    *out = (int64_t)XXH3_64bits_digest(&state);
    return rc;
}

/*
 * Take the first generation from this one on. Return the digest that it is based on; 0: it is the first of
 * all generations, or the first with a digest.
 */
static int digest_before(struct store *store, uint64_t generation, int64_t *out, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store,
                         "SELECT digest FROM (SELECT * FROM (SELECT generation, digest FROM generation"
                         "  WHERE generation < ?1 ORDER BY generation DESC LIMIT 1)"
                         " UNION ALL SELECT generation, digest FROM trimmed_digest WHERE generation < ?1)"
                         " ORDER BY generation DESC LIMIT 1",
                         VALUES(INT(generation)), READING, &row, err);
    *out = rc == 1 ? sqlite3_column_int64(row, 0) : 0;
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

/* Select the generations from this one on. */
static int first_head(struct store *store, uint64_t generation, sqlite3_stmt **head, struct fab_err *err)
{
    return store_first(store,
                       "SELECT generation, published, partial, digest FROM generation"
                       " WHERE generation >= ?1 ORDER BY generation",
                       VALUES(INT(generation)), READING, head, err);
}

int store_write_history_digest(struct store *store, uint64_t generation, struct fab_err *err)
{
    sqlite3_stmt *head;
    int64_t before, digest = 0;
    int rc = digest_before(store, generation, &before, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = first_head(store, generation, &head, err);
    if (rc == 1)
        rc = digest_generation(store, head, before, &digest, err);
    store_done(head);
    return rc
               ?: store_run_one(store, "UPDATE generation SET digest = ?2 WHERE generation = ?1",
                                VALUES(INT(generation), INT(digest)), "writing the generation", err);
}

/* ---- comparison with the digests ------------------------------------------------------------------- */

/* The progress of the comparison. */
struct digest_check {
    int64_t before, last; /* of the last generation; last: its number */
    struct store_history_checked *out;
};

static int digest_broken(const struct store *store, const struct digest_check *check, int64_t generation,
                         struct fab_err *err)
{
    char gap[64] = "";
    if (check->last != 0 && generation > check->last + 1)
        snprintf(gap, sizeof gap, "generation %" PRId64 " is missing, or ", check->last + 1);
    return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                    "store %s: its history was changed: %sgeneration %" PRId64
                    " does not match its digest; restore it from a backup",
                    store->path, gap, generation);
}

/* Compare one generation. */
static int digest_compare(struct store *store, sqlite3_stmt *head, struct digest_check *check,
                          struct fab_err *err)
{
    const int64_t generation = sqlite3_column_int64(head, 0), digest = sqlite3_column_int64(head, 3);
    const bool has = sqlite3_column_type(head, 3) != SQLITE_NULL;
    int64_t now = 0;
    if (!has && check->out->checked == 0) {
        check->out->without++;
        check->before = 0;
        check->last = generation;
        return PMIXFAB_OK;
    }
    int rc = digest_generation(store, head, check->before, &now, err);
    if (rc == PMIXFAB_OK && (!has || now != digest))
        rc = digest_broken(store, check, generation, err);
    check->out->checked++;
    check->before = digest;
    check->last = generation;
    return rc;
}

int store_history_check(struct store *store, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                        void *cbdata, struct store_history_checked *out, struct fab_err *err)
{
    struct digest_check check = {.out = out};
    struct store_bounds bounds;
    sqlite3_stmt *head;
    *out = (struct store_history_checked){0};
    int rc =
        store_bounds(store, &bounds, err) ?: digest_before(store, bounds.trimmed + 1, &check.before, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = first_head(store, bounds.trimmed + 1, &head, err);
    while (rc == 1) {
        rc = digest_compare(store, head, &check, err);
        if (rc == PMIXFAB_OK && out->checked % EACH == EACH - 1 && !progress(out->checked, cbdata))
            rc = fab_fail(err, PMIXFAB_ERR_TIMEOUT, "store %s: cancelled", store->path);
        rc = rc ?: store_next(store, head, READING, err);
    }
    store_done(head);
    if (rc == PMIXFAB_OK && (uint64_t)check.last < newest)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT,
                      "store %s: its history was changed: generation %" PRIu64
                      " is missing, although it was published; restore it from a backup",
                      store->path, (uint64_t)check.last + 1);
    return rc;
}

int store_verify(const char *path, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                 void *cbdata, struct store_history_checked *out, struct fab_err *err)
{
    struct store other = {.path = (char *)path, .lock_fd = -1};
    int code = sqlite3_open_v2(path, &other.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(other.db, STORE_BUSY_MS);
        /* generations that are trimmed meanwhile stay visible */
        code = sqlite3_exec(other.db, "BEGIN", NULL, NULL, NULL);
    }
    int rc = code == SQLITE_OK ? store_history_check(&other, newest, progress, cbdata, out, err)
                               : store_fail(&other, code, "opening", err);
    store_forget_statements(&other);
    sqlite3_close(other.db);
    return rc;
}
