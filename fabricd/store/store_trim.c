/*
 * store_trim.c - limit the history, and keep new generation numbers above every published one.
 *
 * The oldest generations are removed first, a few rows per transaction. The row of the newest generation
 * stays, and so do rows that a plane references.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/store/store_priv.h"

#define ROWS    100 /* limit of one step, */
#define STEP_MS 2   /* or as many as fit into this time */

/* After a step the log is folded into the file if it has this many pages, which takes some milliseconds. */
#define STEP_WAL_PAGES 200

/* Free pages are reused, so the file is shrunk only if a large part of it is empty. */
#define FREE_PAGES   1024 /* 4 MiB */
#define FREE_PART    4    /* of the file */
#define VACUUM_PAGES 128  /* in one step */

#define TRIMMING "trimming the history"

/* As declared in the schema. */
static int64_t checked_bounds(const struct store_bounds *bounds)
{
    return (int64_t)(7 * bounds->trimmed + 3 * bounds->changes + 5 * bounds->above + STORE_APPLICATION_ID);
}

int store_bounds(struct store *store, struct store_bounds *out, struct fab_err *err)
{
    sqlite3_stmt *row;
    bool bad = false;
    *out = (struct store_bounds){0};
    int rc = store_first(store, "SELECT trimmed, changes, above, checked FROM history", NULL,
                         "reading the state of the history", &row, err);
    if (rc == 1) {
        out->trimmed = store_number(row, 0, STORE_MAX_GENERATION, &bad);
        out->changes = store_number(row, 1, STORE_MAX_GENERATION, &bad);
        out->above = store_number(row, 2, STORE_MAX_GENERATION, &bad);
        bad |= sqlite3_column_int64(row, 3) != checked_bounds(out);
    }
    store_done(row);
    if (rc == 0 || bad)
        return store_corrupt(store, err, "the state of the history has invalid values");
    return rc == 1 ? PMIXFAB_OK : rc;
}

static int put_bounds(struct store *store, const struct store_bounds *bounds, struct fab_err *err)
{
    return store_run_one(
        store, "UPDATE history SET trimmed = ?1, changes = ?2, above = ?3, checked = ?4",
        VALUES(INT(bounds->trimmed), INT(bounds->changes), INT(bounds->above), INT(checked_bounds(bounds))),
        "writing the state of the history", err);
}

int store_count_changes(struct store *store, uint32_t n, struct fab_err *err)
{
    return store_run_one(store, "UPDATE history SET changes = changes + ?1, checked = checked + 3 * ?1",
                         VALUES(INT(n)), "counting the history", err);
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

int store_next_generation(struct store *store, uint64_t *next, struct fab_err *err)
{
    struct store_bounds bounds;
    uint64_t newest;
    int64_t published;
    int rc = store_generation(store, &newest, &published, err) ?: store_bounds(store, &bounds, err);
    if (rc != PMIXFAB_OK)
        return rc;
    *next = (newest > bounds.above ? newest : bounds.above) + 1;
    return PMIXFAB_OK;
}

int store_raise(struct store *store, uint64_t above, struct fab_err *err)
{
    struct store_bounds bounds;
    if (above >= STORE_MAX_GENERATION)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %s: generation %llu is too high to be one",
                        store->path, (unsigned long long)above);
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_bounds(store, &bounds, err);
    if (rc == PMIXFAB_OK && above > bounds.above) {
        bounds.above = above;
        rc = put_bounds(store, &bounds, err);
    }
    return store_end(store, rc, err);
}

/* ---- trimming --------------------------------------------------------------------------------------- */

/* Find the next generation to remove; 0: none. */
static int find_next(struct store *store, const struct store_limits *limits,
                     const struct store_bounds *bounds, uint64_t *out, struct fab_err *err)
{
    sqlite3_stmt *row;
    *out = 0;
    int rc = store_first(store,
                         "SELECT generation, published FROM generation WHERE generation > ?1"
                         " AND generation < (SELECT max(generation) FROM generation)"
                         " ORDER BY generation LIMIT 1",
                         VALUES(INT(bounds->trimmed)), TRIMMING, &row, err);
    if (rc == 1) {
        bool old = limits->before != 0 && sqlite3_column_int64(row, 1) < limits->before;
        if (old || (limits->changes != 0 && bounds->changes > limits->changes))
            *out = (uint64_t)sqlite3_column_int64(row, 0);
    }
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

/* Remove entries of the index by subject: one for each subject of the change, or the empty name. */
static int remove_subjects(struct store *store, sqlite3_stmt *row, struct fab_err *err)
{
    const char *lines = (const char *)sqlite3_column_text(row, 2);
    char *names = lines == NULL ? NULL : strdup(lines), *rest = names;
    int rc = names == NULL ? store_nomem(store, err) : PMIXFAB_OK;
    for (char *name; rc == PMIXFAB_OK && (name = strsep(&rest, "\n")) != NULL;)
        rc = store_run(
            store, "DELETE FROM subject WHERE name = ?1 AND generation = ?2 AND seq = ?3",
            VALUES(TEXT(name), INT(sqlite3_column_int64(row, 0)), INT(sqlite3_column_int64(row, 1))),
            TRIMMING, err);
    free(names);
    return rc;
}

/* Remove the oldest change, if its generation counts as trimmed already; *n is 0 if there is none. */
static int remove_one(struct store *store, const struct store_bounds *bounds, uint32_t *n,
                      struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store,
                         "DELETE FROM change WHERE (generation, seq) = (SELECT generation, seq"
                         " FROM change WHERE generation <= ?1 ORDER BY generation, seq LIMIT 1)"
                         " RETURNING generation, seq, subjects",
                         VALUES(INT(bounds->trimmed)), TRIMMING, &row, err);
    *n = rc == 1;
    if (rc == 1)
        rc = remove_subjects(store, row, err);
    store_done(row);
    return rc;
}

static int trim_in_steps(struct store *store, const struct store_limits *limits, struct store_trimmed *out,
                         struct fab_err *err)
{
    struct store_bounds bounds;
    const int64_t end = clock_now(CLOCK_MONOTONIC) + STEP_MS * 1000;
    int rc = store_bounds(store, &bounds, err);
    const uint64_t before = bounds.trimmed;
    out->more = true;
    while (rc == PMIXFAB_OK && out->more && out->rows < ROWS && clock_now(CLOCK_MONOTONIC) < end) {
        uint32_t n;
        uint64_t next = 0;
        rc = remove_one(store, &bounds, &n, err);
        out->rows += n;
        bounds.changes -= n < bounds.changes ? n : bounds.changes;
        if (rc != PMIXFAB_OK || n > 0)
            continue;
        rc = find_next(store, limits, &bounds, &next, err);
        out->more = next != 0;
        if (next != 0)
            bounds.trimmed = next;
    }
    const struct store_value *trimmed = VALUES(INT(bounds.trimmed));
    if (rc == PMIXFAB_OK && bounds.trimmed != before)
        rc = store_run(store,
                       "INSERT OR REPLACE INTO trimmed_digest SELECT 1, generation, digest FROM generation"
                       " WHERE generation <= ?1 ORDER BY generation DESC LIMIT 1",
                       trimmed, TRIMMING, err);
    if (rc == PMIXFAB_OK) /* the rows of generations without changes */
        rc = store_run(store,
                       "DELETE FROM generation WHERE generation <= ?1"
                       " AND generation NOT IN (SELECT generation FROM plane)"
                       " AND NOT EXISTS (SELECT 1 FROM change"
                       "  WHERE change.generation = generation.generation)",
                       trimmed, TRIMMING, err);
    out->trimmed = bounds.trimmed;
    /* Usually there is nothing to do, and nothing is written. */
    if (rc != PMIXFAB_OK || (out->rows == 0 && bounds.trimmed == before))
        return rc;
    return put_bounds(store, &bounds, err);
}

/* Trimmed data may reappear after a power cut, so commits need not wait for the disk. */
static void trim_set_synchronous(struct store *store, bool on)
{
    sqlite3_exec(store->db, on ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", NULL, NULL,
                 NULL);
    sqlite3_wal_autocheckpoint(store->db, STORE_WAL_PAGES);
}

int store_trim(struct store *store, const struct store_limits *limits, struct store_trimmed *out,
               struct fab_err *err)
{
    *out = (struct store_trimmed){0};
    trim_set_synchronous(store, true);
    int rc = store_begin(store, err);
    if (rc == PMIXFAB_OK) {
        rc = trim_in_steps(store, limits, out, err);
        if (out->more) /* otherwise publications fold the log */
            sqlite3_wal_autocheckpoint(store->db, STEP_WAL_PAGES);
        rc = store_end(store, rc, err);
    }
    trim_set_synchronous(store, false);
    return rc;
}

/* ---- the file --------------------------------------------------------------------------------------- */

int store_pages(struct store *store, struct store_pages *out, struct fab_err *err)
{
    sqlite3_stmt *row;
    bool bad = false;
    *out = (struct store_pages){0};
    int rc = store_first(store,
                         "SELECT page_count, freelist_count, page_size, auto_vacuum FROM"
                         " pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum",
                         NULL, "reading its size", &row, err);
    if (rc == 1)
        *out = (struct store_pages){.pages = store_number(row, 0, INT64_MAX, &bad),
                                    .free = store_number(row, 1, INT64_MAX, &bad),
                                    .page_size = store_number(row, 2, INT64_MAX, &bad),
                                    .shrinks = store_number(row, 3, INT64_MAX, &bad) == 2};
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

int store_shrink(struct store *store, bool *more, struct fab_err *err)
{
    struct store_pages pages;
    char sql[64];
    int rc = store_pages(store, &pages, err);
    *more =
        rc == PMIXFAB_OK && pages.shrinks && pages.free > FREE_PAGES && pages.free > pages.pages / FREE_PART;
    if (!*more)
        return rc;
    sqlite3_snprintf(sizeof sql, sql, "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
    trim_set_synchronous(store, true);
    sqlite3_wal_autocheckpoint(store->db, STEP_WAL_PAGES);
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    trim_set_synchronous(store, false);
    return code == SQLITE_OK ? PMIXFAB_OK : store_fail(store, code, "releasing free pages", err);
}
