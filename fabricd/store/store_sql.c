/* store_sql.c - statements of the store, their values and rows, and messages for SQLite's errors. */
#include "fabricd/store/store_priv.h"

#include <string.h>

/* ---- errors ---- */

/* Return the advice for the operator; the code of pmixfab.h in *code. */
static const char *sqlite_advice(int rc, int *code)
{
    *code = PMIXFAB_ERR_IO;
    if (rc == SQLITE_IOERR_SHORT_READ)
        return "another program truncated it or its log (-wal), and the last generations may be lost: "
               "restart fabricd, and see fabricctl check";
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        *code = PMIXFAB_ERR_BUSY;
        return "another process has the database locked; end it, or wait for it";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* a table is missing */
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
        *code = PMIXFAB_ERR_CORRUPT;
        return STORE_RESTORE;
    case SQLITE_CONSTRAINT:
        *code = PMIXFAB_ERR_CONFLICT;
        return "the store does not hold the data on which the change is based; restart fabricd";
    case SQLITE_NOMEM:
        *code = PMIXFAB_ERR_NOMEM;
        return "out of memory";
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
        *code = PMIXFAB_ERR_RANGE;
        return "too large for the database";
    case SQLITE_FULL:
        return "free some space; nothing was changed";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return "fabricd must be able to write the file and its directory";
    default:
        return "check the file system and its free space; nothing was changed";
    }
}

int store_fail(struct store *store, int rc, const char *doing, struct fab_err *err)
{
    int code;
    const char *what_to_do = sqlite_advice(rc, &code);
    /* The handle's own message has details ("no such table: node"), but only if it belongs to this code. */
    bool own = store->db != NULL && sqlite3_extended_errcode(store->db) == rc;
    const char *reason = own ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
    return fab_fail(err, code, "store %s: %s: %s: %s", store->path, doing, reason, what_to_do);
}

int store_nomem(const struct store *store, struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", store->path);
}

int store_corrupt(const struct store *store, struct fab_err *err, const char *format, ...)
{
    struct fab_err what;
    va_list args;
    va_start(args, format);
    fab_vfail(&what, PMIXFAB_ERR_CORRUPT, format, args);
    va_end(args);
    return fab_fail(err, PMIXFAB_ERR_CORRUPT, "store %s: %.200s: " STORE_RESTORE, store->path, what.text);
}

/* ---- statements ---- */

/* Return the prepared statement of this text; NULL: the error is in *rc. */
static sqlite3_stmt *store_statement(struct store *store, const char *sql, int *rc)
{
    size_t at = (uintptr_t)sql / 8 * 0x9e3779b1u % STORE_STATEMENTS;
    while (store->prepared[at].sql != NULL && store->prepared[at].sql != sql)
        at = (at + 1) % STORE_STATEMENTS;
    if (store->prepared[at].sql == sql)
        return store->prepared[at].stmt;
    sqlite3_stmt *stmt = NULL;
    *rc = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
    if (*rc == SQLITE_OK) {
        store->prepared[at].sql = sql;
        store->prepared[at].stmt = stmt;
    }
    return stmt;
}

int store_prepare(struct store *store, const char *sql, struct fab_err *err)
{
    int rc = SQLITE_OK;
    store_statement(store, sql, &rc);
    return rc == SQLITE_OK ? PMIXFAB_OK : store_fail(store, rc, "preparing a statement", err);
}

static int bind_value(sqlite3_stmt *stmt, int i, const struct store_value *value)
{
    switch (value->type) {
    case SQLITE_INTEGER:
        return sqlite3_bind_int64(stmt, i, value->number);
    case SQLITE_TEXT: /* NULL: no text */
        return sqlite3_bind_text(stmt, i, value->bytes, -1, SQLITE_STATIC);
    case SQLITE_BLOB:
        return sqlite3_bind_blob64(stmt, i, value->bytes, value->size, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(stmt, i);
    }
}

/* Bind the values of a statement; NULL on error. */
static sqlite3_stmt *bound_statement(struct store *store, const char *sql, const struct store_value *values,
                                     const char *doing, int *result, struct fab_err *err)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *stmt = store_statement(store, sql, &rc);
    for (int i = 0; rc == SQLITE_OK && values != NULL && values[i].type != 0; i++)
        rc = bind_value(stmt, i + 1, &values[i]);
    if (rc == SQLITE_OK)
        return stmt;
    *result = store_fail(store, rc, doing, err);
    store_done(stmt);
    return NULL;
}

void store_done(sqlite3_stmt *row)
{
    sqlite3_reset(row);
    if (row != NULL)
        sqlite3_clear_bindings(row); /* they point to memory of the caller */
}

void store_forget_statements(struct store *store)
{
    sqlite3_stmt *stmt;
    while (store->db != NULL && (stmt = sqlite3_next_stmt(store->db, NULL)) != NULL)
        sqlite3_finalize(stmt);
    memset(store->prepared, 0, sizeof store->prepared);
}

int store_run(struct store *store, const char *sql, const struct store_value *values, const char *doing,
              struct fab_err *err)
{
    int result = PMIXFAB_OK;
    sqlite3_stmt *stmt = bound_statement(store, sql, values, doing, &result, err);
    if (stmt == NULL)
        return result;
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        result = store_fail(store, rc, doing, err);
    store_done(stmt);
    return result;
}

int store_run_one(struct store *store, const char *sql, const struct store_value *values, const char *doing,
                  struct fab_err *err)
{
    int rc = store_run(store, sql, values, doing, err);
    if (rc == PMIXFAB_OK && sqlite3_changes(store->db) != 1)
        return fab_fail(
            err, PMIXFAB_ERR_CONFLICT,
            "store %s: %s: no such row; the store does not hold the data on which the change is based",
            store->path, doing);
    return rc;
}

int store_next(struct store *store, sqlite3_stmt *row, const char *doing, struct fab_err *err)
{
    int rc = sqlite3_step(row);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : store_fail(store, rc, doing, err);
}

int store_first(struct store *store, const char *sql, const struct store_value *values, const char *doing,
                sqlite3_stmt **row, struct fab_err *err)
{
    int result = PMIXFAB_OK;
    *row = bound_statement(store, sql, values, doing, &result, err);
    return *row == NULL ? result : store_next(store, *row, doing, err);
}

int store_each(struct store *store, const char *sql, const struct store_value *values, const char *doing,
               store_row_fn fn, void *cbdata, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store, sql, values, doing, &row, err);
    while (rc == 1 && (rc = fn(store, row, cbdata, err)) == PMIXFAB_OK)
        rc = store_next(store, row, doing, err);
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
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

/* ---- columns ---- */

uint64_t store_number(sqlite3_stmt *row, int column, uint64_t max, bool *bad)
{
    uint64_t value = (uint64_t)sqlite3_column_int64(row, column);
    if (sqlite3_column_type(row, column) == SQLITE_INTEGER && value <= max)
        return value;
    *bad = true;
    return 0;
}

const char *store_text(sqlite3_stmt *row, int column, bool *bad)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    if (text == NULL || strlen(text) != (size_t)sqlite3_column_bytes(row, column))
        *bad = true;
    return text == NULL ? "" : text;
}

bool store_read_columns(sqlite3_stmt *row, const struct store_column *columns, int n, void *out)
{
    bool bad = false;
    for (int i = 0; i < n; i++) {
        char *member = (char *)out + columns[i].offset;
        if (columns[i].text) {
            *(const char **)member = store_text(row, i, &bad);
            continue;
        }
        const uint64_t number = store_number(row, i, columns[i].max, &bad);
        switch (columns[i].size) {
        case sizeof(uint8_t):
            *(uint8_t *)member = (uint8_t)number;
            break;
        case sizeof(uint32_t):
            *(uint32_t *)member = (uint32_t)number;
            break;
        default:
            *(uint64_t *)member = number;
        }
    }
    return !bad;
}

void store_column_values(const struct store_column *columns, int n, const void *from,
                         struct store_value values[STORE_COLUMNS_MAX + 1])
{
    for (int i = 0; i < n; i++) {
        const char *member = (const char *)from + columns[i].offset;
        struct store_value *value = &values[i];
        *value = (struct store_value){.type = columns[i].text ? SQLITE_TEXT : SQLITE_INTEGER};
        if (columns[i].text)
            value->bytes = *(const char *const *)member;
        else if (columns[i].size == sizeof(uint8_t))
            value->number = *(const uint8_t *)member;
        else if (columns[i].size == sizeof(uint32_t))
            value->number = *(const uint32_t *)member;
        else
            value->number = (int64_t) * (const uint64_t *)member;
    }
    values[n].type = 0;
}
