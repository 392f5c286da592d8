/*
 * store_reports.c - the last delivered report of each host, and its published version.
 *
 * A report is stored when it is delivered, and published a little later. Until then the last published report
 * is kept. As long as it is the stored report, the row itself keeps it. When another report replaces it, a
 * copy is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/store/store_priv.h"

static uint64_t report_checksum(const struct store_report *report)
{
    uint64_t numbers[] = {report->digest, (uint64_t)report->received, report->uid, report->size};
    return store_row_digest(numbers, 4, report->host, report->bytes, report->size);
}

static uint64_t announced_checksum(const struct store_report *announced) /* of host and digest */
{
    return store_row_digest((uint64_t[]){announced->digest}, 1, announced->host, NULL, 0);
}

static int report_corrupt(const struct store *store, const char *host, struct fab_err *err)
{
    return store_corrupt(store, err, "the report of %.64s does not match its checksum", host);
}

/* ---- reading ---- */

struct report_walk {
    store_report_fn fn;
    void *cbdata;
};

static int walk_report(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    const struct report_walk *walk = cbdata;
    bool bad = false;
    struct store_report report = {
        .host = store_text(row, 0, &bad),
        .digest = store_number(row, 1, UINT64_MAX, &bad),
        .received = (int64_t)store_number(row, 3, UINT64_MAX, &bad),
        .uid = (unsigned)store_number(row, 4, UINT32_MAX, &bad),
        .bytes = sqlite3_column_blob(row, 5),
        .size = (size_t)sqlite3_column_bytes(row, 5),
    };
    if (report.bytes == NULL && report.size == 0)
        report.bytes = "";
    if (report.bytes == NULL || bad || store_number(row, 2, UINT64_MAX, &bad) != report_checksum(&report))
        return report_corrupt(store, report.host, err);
    return walk->fn(&report, walk->cbdata) != 0;
}

static int walk_announced(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    const struct report_walk *walk = cbdata;
    bool bad = false;
    struct store_report report = {.host = store_text(row, 0, &bad),
                                  .digest = store_number(row, 1, UINT64_MAX, &bad)};
    if (bad || store_number(row, 2, UINT64_MAX, &bad) != announced_checksum(&report))
        return report_corrupt(store, report.host, err);
    return walk->fn(&report, walk->cbdata) != 0;
}

static int each_report(struct store *store, const char *sql, store_row_fn read, store_report_fn fn,
                       void *cbdata, struct fab_err *err)
{
    struct report_walk walk = {fn, cbdata};
    int rc = store_each(store, sql, NULL, "reading the reports", read, &walk, err);
    sqlite3_db_release_memory(store->db);
    return rc;
}

int store_reports_load(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err)
{
    return each_report(store, "SELECT host, digest, checksum, received, uid, bytes FROM report ORDER BY host",
                       walk_report, fn, cbdata, err);
}

int store_reports_published(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err)
{
    return each_report(store, "SELECT host, digest, checksum FROM report_published ORDER BY host",
                       walk_announced, fn, cbdata, err);
}

int store_report_published(struct store *store, const char *host, void **bytes, size_t *size,
                           struct fab_err *err)
{
    sqlite3_stmt *row;
    *bytes = NULL;
    *size = 0;
    int rc = store_first(store,
                         "SELECT coalesce(p.bytes, r.bytes) FROM report_published p"
                         " LEFT JOIN report r USING (host) WHERE host = ?1",
                         VALUES(TEXT(host)), "reading a report", &row, err);
    if (rc == PMIXFAB_OK) {
        rc = fab_fail(err, PMIXFAB_ERR_NOTFOUND, "store %s: no report of %.64s was published", store->path,
                      host);
    } else if (rc == 1 && sqlite3_column_type(row, 0) != SQLITE_BLOB) {
        rc = report_corrupt(store, host, err);
    } else if (rc == 1) {
        const void *found = sqlite3_column_blob(row, 0);
        *size = (size_t)sqlite3_column_bytes(row, 0);
        *bytes = malloc(*size + 1);
        rc = *bytes == NULL ? store_nomem(store, err) : PMIXFAB_OK;
        if (*bytes != NULL && *size > 0)
            memcpy(*bytes, found, *size);
    }
    store_done(row);
    return rc;
}

/* ---- writing ---- */

/* Keep a copy of the published report of a host whose row is about to get another digest, or to be deleted
 * (NULL). */
static int keep_published(struct store *store, const char *host, const uint64_t *digest, struct fab_err *err)
{
    return store_run(store,
                     "UPDATE report_published SET bytes = (SELECT bytes FROM report WHERE host = ?1)"
                     " WHERE host = ?1 AND bytes IS NULL AND digest IS NOT ?2",
                     VALUES(TEXT(host), digest == NULL ? NONE : INT(*digest)), "writing a report", err);
}

static int put_report(struct store *store, const struct store_report *report, struct fab_err *err)
{
    if (report->host == NULL || (report->bytes == NULL && report->size > 0))
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store %s: a report without a host or bytes", store->path);
    return keep_published(store, report->host, &report->digest, err)
               ?: store_run_one(store,
                                "INSERT INTO report (host, digest, received, uid, bytes, checksum)"
                                " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (host) DO UPDATE SET"
                                " digest = ?2, received = ?3, uid = ?4, bytes = ?5, checksum = ?6",
                                VALUES(TEXT(report->host), INT(report->digest), INT(report->received),
                                       INT(report->uid),
                                       BLOB(report->size > 0 ? report->bytes : "", report->size),
                                       INT(report_checksum(report))),
                                "writing a report", err);
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
    rc = keep_published(store, host, NULL, err)
             ?: store_run(store, "DELETE FROM report WHERE host = ?1", VALUES(TEXT(host)),
                          "forgetting a report", err);
    if (rc == PMIXFAB_OK && sqlite3_changes(store->db) == 0)
        rc = fab_fail(err, PMIXFAB_ERR_NOTFOUND, "store %s: there is no report of %.64s", store->path, host);
    return store_end(store, rc, err);
}

int store_write_announced(struct store *store, const struct store_report *announced, struct fab_err *err)
{
    if (announced->digest == 0)
        return store_run(store, "DELETE FROM report_published WHERE host = ?1", VALUES(TEXT(announced->host)),
                         "writing published reports", err);
    return store_run_one(
        store,
        "INSERT OR REPLACE INTO report_published (host, digest, bytes, checksum)"
        " SELECT host, digest, NULL, ?3 FROM report WHERE host = ?1 AND digest = ?2",
        VALUES(TEXT(announced->host), INT(announced->digest), INT(announced_checksum(announced))),
        "writing published reports", err);
}
