/* store_endpoints.c - endpoints that jobs have. Rarely asked: nothing is prepared beforehand. */
#include "fabricd/store/store_endpoints.h"

#include <string.h>

#include "fabricd/base/boot.h"
#include "fabricd/store/tables_priv.h"

#define ENDPOINT_COLUMNS "plane, first, last, job, uid, pid, started, since"

int store_endpoints_load(struct store *store, store_endpoints_fn fn, void *cbdata, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(store, "SELECT " ENDPOINT_COLUMNS " FROM endpoint ORDER BY plane, first",
                               &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    while ((rc = store_step(store, stmt, "reading endpoints", err)) == 1) {
        const struct store_endpoints row = {.plane = (const char *)sqlite3_column_text(stmt, 0),
                                            .first = (uint32_t)sqlite3_column_int64(stmt, 1),
                                            .last = (uint32_t)sqlite3_column_int64(stmt, 2),
                                            .job = (const char *)sqlite3_column_text(stmt, 3),
                                            .uid = (unsigned)sqlite3_column_int64(stmt, 4),
                                            .pid = sqlite3_column_int(stmt, 5),
                                            .started = (uint64_t)sqlite3_column_int64(stmt, 6),
                                            .since = sqlite3_column_int64(stmt, 7)};
        if (row.plane != NULL && row.job != NULL && fn(&row, cbdata) != 0)
            break;
    }
    sqlite3_finalize(stmt);
    return rc == 1 ? PMIXFAB_OK : rc;
}

int store_endpoints_forget(struct store *store, const char *boot, struct fab_err *err)
{
    sqlite3_stmt *stmt = NULL;
    if (strcmp(boot, BOOT_UNKNOWN) == 0)
        return PMIXFAB_OK;
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_prepare_one(store, "DELETE FROM endpoint WHERE boot NOT IN (?1, '" BOOT_UNKNOWN "')", &stmt,
                           err);
    if (rc == PMIXFAB_OK)
        rc = store_run(store, stmt, store_bind_text(stmt, 1, boot), "removing endpoints", err);
    sqlite3_finalize(stmt);
    return store_end(store, rc, err);
}

static int endpoints_insert(struct store *store, sqlite3_stmt *stmt, const struct store_endpoints *row,
                            struct fab_err *err)
{
    int bound = store_bind_text(stmt, 1, row->plane);
    bound |= sqlite3_bind_int64(stmt, 2, row->first);
    bound |= sqlite3_bind_int64(stmt, 3, row->last);
    bound |= store_bind_text(stmt, 4, row->job);
    bound |= sqlite3_bind_int64(stmt, 5, row->uid);
    bound |= sqlite3_bind_int64(stmt, 6, row->pid);
    bound |= sqlite3_bind_int64(stmt, 7, (int64_t)row->started);
    bound |= sqlite3_bind_int64(stmt, 8, row->since);
    bound |= store_bind_text(stmt, 9, row->boot);
    return store_run(store, stmt, bound, "writing endpoints", err);
}

int store_endpoints_add(struct store *store, const struct store_endpoints *rows, uint32_t n,
                        struct fab_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_prepare_one(store,
                           "INSERT INTO endpoint (" ENDPOINT_COLUMNS
                           ", boot) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                           &stmt, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = endpoints_insert(store, stmt, &rows[i], err);
    sqlite3_finalize(stmt);
    return store_end(store, rc, err);
}

int store_endpoints_delete(struct store *store, const struct store_endpoints *who, struct fab_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_prepare_one(
        store,
        "DELETE FROM endpoint WHERE pid = ?1 AND started = ?2 AND (?3 IS NULL OR (job = ?3 AND uid = ?4))",
        &stmt, err);
    if (rc == PMIXFAB_OK) {
        int bound = sqlite3_bind_int64(stmt, 1, who->pid);
        bound |= sqlite3_bind_int64(stmt, 2, (int64_t)who->started);
        bound |= who->job == NULL ? sqlite3_bind_null(stmt, 3) : store_bind_text(stmt, 3, who->job);
        bound |= sqlite3_bind_int64(stmt, 4, who->uid);
        rc = store_run(store, stmt, bound, "removing endpoints", err);
    }
    sqlite3_finalize(stmt);
    return store_end(store, rc, err);
}

static int endpoints_attach(struct store *store, const char *path, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(store, "ATTACH ?1 AS old", &stmt, err);
    if (rc == PMIXFAB_OK)
        rc = store_run(store, stmt, store_bind_text(stmt, 1, path), "opening the store that was", err);
    sqlite3_finalize(stmt);
    return rc;
}

/* 1 or 0: has the store that was the table? An error: it cannot be told. */
static int endpoints_were(struct store *store, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(
        store, "SELECT 1 FROM old.sqlite_schema WHERE type = 'table' AND name = 'endpoint'", &stmt, err);
    if (rc == PMIXFAB_OK)
        rc = store_step(store, stmt, "reading the store that was", err);
    sqlite3_finalize(stmt);
    return rc;
}

int store_endpoints_take_over(struct store *store, const char *path, struct fab_err *err)
{
    int rc = endpoints_attach(store, path, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = endpoints_were(store, err);
    if (rc == 1) {
        const int done = sqlite3_exec(store->db,
                                      "BEGIN; DELETE FROM main.endpoint; INSERT INTO main.endpoint"
                                      " SELECT * FROM old.endpoint; COMMIT",
                                      NULL, NULL, NULL);
        rc = done == SQLITE_OK ? PMIXFAB_OK : store_fail(store, done, "taking endpoints over", err);
        if (done != SQLITE_OK)
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    sqlite3_exec(store->db, "DETACH old", NULL, NULL, NULL);
    return rc;
}
