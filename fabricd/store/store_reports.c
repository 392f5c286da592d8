/*
 * store_reports.c - what hosts report, as delivered last, and what was published of it.
 *
 * A report is stored when it is delivered, and published a little later. What was published last is kept
 * until then, by the row itself where it is still the stored one, as a copy from the moment when another one
 * takes its place.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/store/tables_priv.h"

int store_reports_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->reports, "SELECT host, digest, received, uid, bytes, checksum FROM report ORDER BY host"},
        {&store->report_put, "INSERT INTO report (host, digest, received, uid, bytes, checksum)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (host) DO UPDATE SET"
                             " digest = ?2, received = ?3, uid = ?4, bytes = ?5, checksum = ?6"},
        {&store->report_delete, "DELETE FROM report WHERE host = ?1"},
        {&store->report_keep, "UPDATE report_published SET bytes = (SELECT bytes FROM report WHERE host = ?1)"
                              " WHERE host = ?1 AND bytes IS NULL AND digest IS NOT ?2"},
        {&store->announced, "SELECT host, digest, checksum FROM report_published ORDER BY host"},
        {&store->announced_bytes, "SELECT coalesce(p.bytes, r.bytes) FROM report_published p"
                                  " LEFT JOIN report r USING (host) WHERE host = ?1"},
        {&store->announced_put, "INSERT OR REPLACE INTO report_published (host, digest, bytes, checksum)"
                                " SELECT host, digest, NULL, ?3 FROM report WHERE host = ?1 AND digest = ?2"},
        {&store->announced_delete, "DELETE FROM report_published WHERE host = ?1"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

static int report_row_corrupt(struct store *store, const char *host, struct fab_err *err)
{
    return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                    "store %s: the report of %.64s is not the one that was written: " STORE_RESTORE,
                    store->path, host);
}

/* The column's text, "" and *bad where there is none or a byte 0 is in it. */
static const char *report_column_text(sqlite3_stmt *stmt, int column, bool *bad)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    if (text == NULL || strlen(text) != (size_t)sqlite3_column_bytes(stmt, column))
        *bad = true;
    return text == NULL ? "" : text;
}

static int read_report(struct store *store, struct store_report *report, struct fab_err *err)
{
    sqlite3_stmt *stmt = store->reports;
    bool bad = false;
    *report = (struct store_report){
        .host = report_column_text(stmt, 0, &bad),
        .digest = store_number(stmt, 1, UINT64_MAX, &bad),
        .received = (int64_t)store_number(stmt, 2, UINT64_MAX, &bad),
        .uid = (unsigned)store_number(stmt, 3, UINT32_MAX, &bad),
        .bytes = sqlite3_column_blob(stmt, 4),
        .size = (size_t)sqlite3_column_bytes(stmt, 4),
    };
    if (report->bytes == NULL && report->size == 0)
        report->bytes = "";
    if (report->bytes == NULL || bad ||
        store_number(stmt, 5, UINT64_MAX, &bad) != store_report_checksum(report))
        return report_row_corrupt(store, report->host, err);
    return PMIXFAB_OK;
}

/* Walk a table of reports with its own reader. */
static int report_rows_each(struct store *store, sqlite3_stmt *stmt,
                            int (*read)(struct store *store, struct store_report *report,
                                        struct fab_err *err),
                            store_report_fn fn, void *cbdata, struct fab_err *err)
{
    struct store_report report;
    int rc;
    while ((rc = store_step(store, stmt, "reading the reports", err)) == 1) {
        rc = read(store, &report, err);
        if (rc != PMIXFAB_OK || fn(&report, cbdata) != 0)
            break;
    }
    sqlite3_reset(stmt);
    sqlite3_db_release_memory(store->db);
    return rc == 1 ? PMIXFAB_OK : rc;
}

int store_reports_load(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err)
{
    return report_rows_each(store, store->reports, read_report, fn, cbdata, err);
}

static int read_told(struct store *store, struct store_report *report, struct fab_err *err)
{
    bool bad = false;
    *report = (struct store_report){.host = report_column_text(store->announced, 0, &bad),
                                    .digest = store_number(store->announced, 1, UINT64_MAX, &bad)};
    if (bad || store_number(store->announced, 2, UINT64_MAX, &bad) != store_announced_checksum(report))
        return report_row_corrupt(store, report->host, err);
    return PMIXFAB_OK;
}

int store_reports_published(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err)
{
    return report_rows_each(store, store->announced, read_told, fn, cbdata, err);
}

int store_report_published(struct store *store, const char *host, void **bytes, size_t *size,
                           struct fab_err *err)
{
    *bytes = NULL;
    *size = 0;
    sqlite3_stmt *stmt = store->announced_bytes;
    int rc = store_bind_text(stmt, 1, host);
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading a report", err)
                         : store_step(store, stmt, "reading a report", err);
    if (rc == 1 && sqlite3_column_type(stmt, 0) != SQLITE_BLOB) {
        rc = report_row_corrupt(store, host, err);
    } else if (rc == 1) {
        const void *found = sqlite3_column_blob(stmt, 0);
        *size = (size_t)sqlite3_column_bytes(stmt, 0);
        *bytes = malloc(*size + 1);
        if (*bytes == NULL)
            rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", store->path);
        else if (*size > 0)
            memcpy(*bytes, found, *size);
    } else if (rc == PMIXFAB_OK) {
        rc = fab_fail(err, PMIXFAB_ERR_NOTFOUND, "store %s: nothing was published of what %.64s reports",
                      store->path, host);
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc == 1 ? PMIXFAB_OK : rc;
}

/* What was published of a host is kept where its row is about to say something else. */
static int keep_published(struct store *store, const char *host, const uint64_t *digest, struct fab_err *err)
{
    sqlite3_stmt *stmt = store->report_keep;
    int bound = store_bind_text(stmt, 1, host);
    bound |= digest == NULL ? sqlite3_bind_null(stmt, 2) : sqlite3_bind_int64(stmt, 2, (int64_t)*digest);
    return store_run(store, stmt, bound, "writing a report", err);
}

static int put_report(struct store *store, const struct store_report *report, struct fab_err *err)
{
    sqlite3_stmt *stmt = store->report_put;
    if (report->host == NULL || (report->bytes == NULL && report->size > 0))
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store %s: a report without a host or bytes", store->path);
    int rc = keep_published(store, report->host, &report->digest, err);
    if (rc != PMIXFAB_OK)
        return rc;
    int bound = store_bind_text(stmt, 1, report->host);
    bound |= sqlite3_bind_int64(stmt, 2, (int64_t)report->digest);
    bound |= sqlite3_bind_int64(stmt, 3, report->received);
    bound |= sqlite3_bind_int64(stmt, 4, report->uid);
    bound |= sqlite3_bind_blob64(stmt, 5, report->size > 0 ? report->bytes : "", report->size, SQLITE_STATIC);
    bound |= sqlite3_bind_int64(stmt, 6, (int64_t)store_report_checksum(report));
    return store_run_one(store, stmt, bound, "writing a report", err);
}

int store_reports_put(struct store *store, const struct store_report *reports, uint32_t n,
                      struct fab_err *err)
{
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = put_report(store, &reports[i], err);
    return store_end(store, rc, err);
}

int store_report_forget(struct store *store, const char *host, struct fab_err *err)
{
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = keep_published(store, host, NULL, err);
    if (rc == PMIXFAB_OK)
        rc = store_run(store, store->report_delete, store_bind_text(store->report_delete, 1, host),
                       "forgetting a report", err);
    if (rc == PMIXFAB_OK && sqlite3_changes(store->db) == 0)
        rc = fab_fail(err, PMIXFAB_ERR_NOTFOUND, "store %s: there is no report of %.64s", store->path, host);
    return store_end(store, rc, err);
}

int store_write_announced(struct store *store, const struct store_report *announced, struct fab_err *err)
{
    if (announced->digest == 0)
        return store_run(store, store->announced_delete,
                         store_bind_text(store->announced_delete, 1, announced->host),
                         "writing what was published", err);
    sqlite3_stmt *stmt = store->announced_put;
    int bound = store_bind_text(stmt, 1, announced->host);
    bound |= sqlite3_bind_int64(stmt, 2, (int64_t)announced->digest);
    bound |= sqlite3_bind_int64(stmt, 3, (int64_t)store_announced_checksum(announced));
    return store_run_one(store, stmt, bound, "writing what was published", err);
}
