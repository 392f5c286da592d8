/* store_findings.c - what looks wrong, remembered. Nothing is prepared beforehand. */
#include "fabricd/store/store_findings.h"

#include "fabricd/store/tables_priv.h"

int store_findings_load(struct store *store, store_finding_fn fn, void *cbdata, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    bool bad = false, more = true;
    int rc =
        store_prepare_one(store,
                          "SELECT id, kind, place, state, since, came, gone, comings, acked, acked_until,"
                          " acked_by FROM finding ORDER BY id",
                          &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    while (more && (rc = store_step(store, stmt, "reading the findings", err)) == 1) {
        const struct store_finding row = {.id = (uint64_t)sqlite3_column_int64(stmt, 0),
                                          .kind = (const char *)sqlite3_column_text(stmt, 1),
                                          .place = (const char *)sqlite3_column_text(stmt, 2),
                                          .state = (uint64_t)sqlite3_column_int64(stmt, 3),
                                          .since = sqlite3_column_int64(stmt, 4),
                                          .came = sqlite3_column_int64(stmt, 5),
                                          .gone = sqlite3_column_int64(stmt, 6),
                                          .comings = (uint32_t)store_number(stmt, 7, UINT32_MAX, &bad),
                                          .acked = sqlite3_column_int64(stmt, 8),
                                          .acked_until = sqlite3_column_int64(stmt, 9),
                                          .acked_by = (unsigned)store_number(stmt, 10, UINT32_MAX, &bad)};
        bad |= row.kind == NULL || row.place == NULL || row.comings == 0;
        more = !bad && fn(&row, cbdata) == 0;
    }
    sqlite3_finalize(stmt);
    if (bad)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "store %s: a finding is not what was written: " STORE_RESTORE, store->path);
    return rc == 1 ? PMIXFAB_OK : rc;
}

static int store_finding_put(struct store *store, sqlite3_stmt *put, const struct store_finding *row,
                             struct fab_err *err)
{
    int bound = sqlite3_bind_int64(put, 1, (int64_t)row->id);
    bound |= store_bind_text(put, 2, row->kind);
    bound |= store_bind_text(put, 3, row->place);
    bound |= sqlite3_bind_int64(put, 4, (int64_t)row->state);
    bound |= sqlite3_bind_int64(put, 5, row->since);
    bound |= sqlite3_bind_int64(put, 6, row->came);
    bound |= sqlite3_bind_int64(put, 7, row->gone);
    bound |= sqlite3_bind_int64(put, 8, row->comings);
    bound |= sqlite3_bind_int64(put, 9, row->acked);
    bound |= sqlite3_bind_int64(put, 10, row->acked_until);
    bound |= sqlite3_bind_int64(put, 11, row->acked_by);
    return store_run(store, put, bound, "writing a finding", err);
}

int store_findings_put(struct store *store, const struct store_finding *const *rows, uint32_t n,
                       struct fab_err *err)
{
    sqlite3_stmt *put = NULL, *drop = NULL;
    int rc = store_prepare_one(store,
                               "INSERT OR REPLACE INTO finding (id, kind, place, state, since, came, gone,"
                               " comings, acked, acked_until, acked_by)"
                               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                               &put, err);
    if (rc == PMIXFAB_OK)
        rc = store_prepare_one(store, "DELETE FROM finding WHERE id = ?1", &drop, err);
    if (rc == PMIXFAB_OK)
        rc = store_begin(store, err);
    if (rc == PMIXFAB_OK) {
        for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
            rc = rows[i]->comings > 0
                     ? store_finding_put(store, put, rows[i], err)
                     : store_run(store, drop, sqlite3_bind_int64(drop, 1, (int64_t)rows[i]->id),
                                 "removing a finding", err);
        rc = store_end(store, rc, err);
    }
    sqlite3_finalize(put);
    sqlite3_finalize(drop);
    return rc;
}
