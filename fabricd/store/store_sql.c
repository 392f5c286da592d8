/* store_sql.c - statements of the store, and SQLite's errors in our words. */
#include "fabricd/store/handle.h"

int store_prepare(struct store *store, const struct store_sql *list, size_t n, struct fab_err *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc =
            sqlite3_prepare_v3(store->db, list[i].sql, -1, SQLITE_PREPARE_PERSISTENT, list[i].stmt, NULL);
        if (rc != SQLITE_OK)
            return store_fail(store, rc, "preparing a statement", err);
    }
    return PMIXFAB_OK;
}

int store_prepare_one(struct store *store, const char *sql, sqlite3_stmt **stmt, struct fab_err *err)
{
    const struct store_sql one = {stmt, sql};
    *stmt = NULL;
    return store_prepare(store, &one, 1, err);
}

/* What the operator can do about it; the code of pmixfab.h in *code. */
static const char *sqlite_advice(int rc, int *code)
{
    if (rc == SQLITE_IOERR_SHORT_READ) {
        *code = PMIXFAB_ERR_IO;
        return "it, or its log (-wal), was cut behind fabricd's back, and what was published last may be "
               "lost: restart "
               "fabricd, and see fabricctl check";
    }
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        *code = PMIXFAB_ERR_BUSY;
        return "another process has the database locked; end it, or wait for it";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* a table that should be there is not */
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
        *code = PMIXFAB_ERR_CORRUPT;
        return STORE_RESTORE;
    case SQLITE_CONSTRAINT:
        *code = PMIXFAB_ERR_CONFLICT;
        return "the store does not hold what the change starts from; restart fabricd";
    case SQLITE_NOMEM:
        *code = PMIXFAB_ERR_NOMEM;
        return "out of memory";
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
        *code = PMIXFAB_ERR_RANGE;
        return "too large for the database";
    case SQLITE_FULL:
        *code = PMIXFAB_ERR_IO;
        return "free some space; nothing was changed";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        *code = PMIXFAB_ERR_IO;
        return "fabricd must be able to write the file and its directory";
    default:
        *code = PMIXFAB_ERR_IO;
        return "look at the file system and its free space; nothing was changed";
    }
}

int store_fail(struct store *store, int rc, const char *doing, struct fab_err *err)
{
    int code;
    const char *what_to_do = sqlite_advice(rc, &code);
    /* The handle's own message says more ("no such table: node"), but only where it is about this code. */
    bool own = store->db != NULL && sqlite3_extended_errcode(store->db) == rc;
    const char *reason = own ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
    return fab_fail(err, code, "store %s: %s: %s: %s", store->path, doing, reason, what_to_do);
}

int store_run(struct store *store, sqlite3_stmt *stmt, int bound, const char *doing, struct fab_err *err)
{
    int rc = bound == SQLITE_OK ? sqlite3_step(stmt) : bound;
    int result = PMIXFAB_OK;
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        result = store_fail(store, rc, doing, err);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt); /* they point at memory of the caller */
    return result;
}

int store_run_one(struct store *store, sqlite3_stmt *stmt, int bound, const char *doing, struct fab_err *err)
{
    int rc = store_run(store, stmt, bound, doing, err);
    if (rc == PMIXFAB_OK && sqlite3_changes(store->db) != 1)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "store %s: %s: no such row; the store does not hold what the change starts from",
                        store->path, doing);
    return rc;
}

int store_step(struct store *store, sqlite3_stmt *stmt, const char *doing, struct fab_err *err)
{
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : store_fail(store, rc, doing, err);
}

int store_ask(struct store *store, const char *sql, char *text, size_t size, const char *doing,
              struct fab_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL), result = PMIXFAB_OK;
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    const char *said = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    sqlite3_snprintf((int)size, text, "%s", said == NULL ? "out of memory" : said);
    if (rc != SQLITE_ROW)
        result = store_fail(store, rc, doing, err);
    rc = sqlite3_finalize(stmt); /* a PRAGMA that writes is committed here, after its row */
    if (rc != SQLITE_OK && result == PMIXFAB_OK)
        result = store_fail(store, rc, doing, err);
    return result;
}

int store_bind_text(sqlite3_stmt *stmt, int column, const char *text)
{
    return sqlite3_bind_text(stmt, column, text, -1, SQLITE_STATIC);
}

uint64_t store_number(sqlite3_stmt *stmt, int column, uint64_t max, bool *bad)
{
    uint64_t value = (uint64_t)sqlite3_column_int64(stmt, column);
    if (sqlite3_column_type(stmt, column) == SQLITE_INTEGER && value <= max)
        return value;
    *bad = true;
    return 0;
}
