/* store_renames.c - one history for what was called otherwise. Rarely asked: nothing is prepared. */
#include "fabricd/store/store_renames.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/store/tables_priv.h"

static int renames_run_sql(struct store *store, const char *sql, uint64_t generation, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(store, sql, &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    int bound = sqlite3_bind_parameter_count(stmt) == 0 ? SQLITE_OK
                                                        : sqlite3_bind_int64(stmt, 1, (int64_t)generation);
    rc = store_run(store, stmt, bound, "writing the history", err);
    sqlite3_finalize(stmt);
    return rc;
}

static int write_pairs(struct store *store, sqlite3_stmt *stmt, uint64_t generation,
                       const struct fab_diff *diff, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < diff->n; i++) {
        const char *former = diff->changes[i].subjects;
        if (!diff->changes[i].renamed || former == NULL || *former == '\0' ||
            *fab_subject_next(former) == '\0')
            continue;
        int bound = store_bind_text(stmt, 1, former);
        bound |= store_bind_text(stmt, 2, fab_subject_next(former));
        bound |= sqlite3_bind_int64(stmt, 3, (int64_t)generation);
        rc = store_run(store, stmt, bound, "writing the history", err);
    }
    return rc;
}

int store_write_renamed(struct store *store, uint64_t generation, const struct fab_diff *diff,
                        struct fab_err *err)
{
    sqlite3_stmt *stmt;
    uint32_t first = 0;
    while (first < diff->n && !diff->changes[first].renamed)
        first++;
    if (first == diff->n)
        return PMIXFAB_OK;
    int rc = renames_run_sql(store, "DELETE FROM renamed WHERE generation <= (SELECT trimmed FROM history)",
                             generation, err);
    if (rc == PMIXFAB_OK)
        rc = store_prepare_one(store,
                               "INSERT OR IGNORE INTO renamed (former, name, generation) VALUES (?1, ?2, ?3)",
                               &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = write_pairs(store, stmt, generation, diff, err);
    sqlite3_finalize(stmt);
    /* A name that several had, or have now, leads from none of them to another. */
    if (rc == PMIXFAB_OK)
        rc = renames_run_sql(
            store,
            "DELETE FROM renamed WHERE generation = ?1 AND ("
            " former IN (SELECT former FROM renamed WHERE generation = ?1 GROUP BY former HAVING count(*) > "
            "1)"
            " OR name IN (SELECT name FROM renamed WHERE generation = ?1 GROUP BY name HAVING count(*) > 1))",
            generation, err);
    return rc;
}

/* Told when the next one of that name does not go on where it ends. */
struct pending {
    char *name; /* NULL: none */
    sqlite3_int64 after, until;
};

static int renames_emit(struct pending *pending, store_name_fn fn, void *cbdata)
{
    const struct store_name name = {.name = pending->name,
                                    .from = (uint64_t)pending->after + 1,
                                    .to = pending->until == INT64_MAX ? 0 : (uint64_t)pending->until};
    int ended = pending->name == NULL ? 0 : fn(&name, cbdata);
    free(pending->name);
    pending->name = NULL;
    return ended;
}

/* Non-zero: fn has ended the walk, or there is no memory. */
static int renames_next_row(struct pending *pending, sqlite3_stmt *row, store_name_fn fn, void *cbdata)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    sqlite3_int64 after = sqlite3_column_int64(row, 1), until = sqlite3_column_int64(row, 2);
    if (name != NULL && pending->name != NULL && strcmp(pending->name, name) == 0 &&
        after <= pending->until) {
        pending->until = until > pending->until ? until : pending->until;
        return 0;
    }
    if (renames_emit(pending, fn, cbdata) != 0)
        return 1;
    *pending = (struct pending){name == NULL ? NULL : strdup(name), after, until};
    return pending->name == NULL;
}

int store_names(struct store *store, const char *what, store_name_fn fn, void *cbdata, struct fab_err *err)
{
    struct pending pending = {NULL, 0, 0};
    sqlite3_stmt *stmt;
    bool ended = false;
    int rc = store_prepare_one(store,
                               STORE_LINE "SELECT name, after, until FROM line WHERE way <> 0 AND name <> ?3"
                                          " ORDER BY name, after, until",
                               &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    int bound = store_bind_text(stmt, 3, what);
    if (bound != SQLITE_OK)
        rc = store_fail(store, bound, "reading the history", err);
    while (rc == PMIXFAB_OK && !ended && (rc = store_step(store, stmt, "reading the history", err)) == 1) {
        ended = renames_next_row(&pending, stmt, fn, cbdata) != 0;
        rc = PMIXFAB_OK;
    }
    if (rc == PMIXFAB_OK && !ended)
        renames_emit(&pending, fn, cbdata);
    free(pending.name);
    sqlite3_finalize(stmt);
    return rc;
}
