/* store_planned.c - swaps that were announced. Rarely asked: nothing is prepared beforehand. */
#include "fabricd/store/store_planned.h"

#include "fabricd/store/tables_priv.h"

int store_planned_load(struct store *store, store_planned_fn fn, void *cbdata, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc =
        store_prepare_one(store, "SELECT name, since, until, uid FROM expected ORDER BY name", &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    while ((rc = store_step(store, stmt, "reading what is expected", err)) == 1) {
        const struct store_planned row = {.name = (const char *)sqlite3_column_text(stmt, 0),
                                          .since = sqlite3_column_int64(stmt, 1),
                                          .until = sqlite3_column_int64(stmt, 2),
                                          .uid = (unsigned)sqlite3_column_int64(stmt, 3)};
        if (row.name != NULL && fn(&row, cbdata) != 0)
            break;
    }
    sqlite3_finalize(stmt);
    return rc == 1 ? PMIXFAB_OK : rc;
}

int store_planned_put(struct store *store, const struct store_planned *row, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(
        store, "INSERT OR REPLACE INTO expected (name, since, until, uid) VALUES (?1, ?2, ?3, ?4)", &stmt,
        err);
    if (rc != PMIXFAB_OK)
        return rc;
    int bound = store_bind_text(stmt, 1, row->name);
    bound |= sqlite3_bind_int64(stmt, 2, row->since);
    bound |= sqlite3_bind_int64(stmt, 3, row->until);
    bound |= sqlite3_bind_int64(stmt, 4, row->uid);
    rc = store_run(store, stmt, bound, "writing what is expected", err);
    sqlite3_finalize(stmt);
    return rc;
}

int store_planned_delete(struct store *store, const char *name, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(store, "DELETE FROM expected WHERE name = ?1", &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_run(store, stmt, store_bind_text(stmt, 1, name), "removing what was expected", err);
    sqlite3_finalize(stmt);
    return rc;
}
