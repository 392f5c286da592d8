/* store_missing.c - since when nodes are missing. */
#include <string.h>

#include "fabricd/store/handle.h"

int store_retained_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->missing, "SELECT node, num, since, boot, counted, seen FROM missing"},
        {&store->missing_put,
         "INSERT INTO missing (node, num, since, boot, counted, seen) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
        {&store->missing_clear, "DELETE FROM missing"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

int store_retained_load(struct store *store, store_retained_fn fn, void *cbdata, struct fab_err *err)
{
    int rc;
    while ((rc = store_step(store, store->missing, "reading what is missing", err)) == 1) {
        const char *boot = (const char *)sqlite3_column_text(store->missing, 3);
        const struct store_retained row = {.guid = (uint64_t)sqlite3_column_int64(store->missing, 0),
                                           .port = (uint32_t)sqlite3_column_int(store->missing, 1),
                                           .since = sqlite3_column_int64(store->missing, 2),
                                           .boot = boot == NULL ? "" : boot,
                                           .counted = sqlite3_column_int64(store->missing, 4),
                                           .seen = sqlite3_column_int64(store->missing, 5)};
        rc = fn(&row, cbdata);
        if (rc != 0)
            break;
    }
    sqlite3_reset(store->missing);
    return rc > 0 ? PMIXFAB_OK : rc;
}

int store_write_retained(struct store *store, const struct store_retained *rows, uint32_t n,
                         struct fab_err *err)
{
    int rc = store_run(store, store->missing_clear, SQLITE_OK, "writing what is missing", err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++) {
        sqlite3_stmt *stmt = store->missing_put;
        int bound = sqlite3_bind_int64(stmt, 1, (int64_t)rows[i].guid);
        bound |= sqlite3_bind_int(stmt, 2, (int)rows[i].port);
        bound |= sqlite3_bind_int64(stmt, 3, rows[i].since);
        bound |= store_bind_text(stmt, 4, rows[i].boot);
        bound |= sqlite3_bind_int64(stmt, 5, rows[i].counted);
        bound |= sqlite3_bind_int64(stmt, 6, rows[i].seen);
        rc = store_run_one(store, stmt, bound, "writing what is missing", err);
    }
    return rc;
}
