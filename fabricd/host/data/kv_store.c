#include "fabricd/host/data/kv_store.h"

#include <pmix.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricd/base/log.h"

#define KV_APPLICATION_ID 1717662828 /* "fabl" */
#define KV_TEXT(number)   KV_TEXT_OF(number)
#define KV_TEXT_OF(text)  #text

static sqlite3 *kv_db;
static sqlite3_stmt *kv_begin, *kv_commit, *kv_rollback, *kv_put, *kv_delete;

/* Exclusive: no other process has a part in it, so WAL needs neither locks nor shared memory. */
static const char kv_schema[] =
    "PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA application_id = " KV_TEXT(
        KV_APPLICATION_ID) ";"
                           "CREATE TABLE IF NOT EXISTS published ("
                           " name TEXT PRIMARY KEY, nspace TEXT NOT NULL, rank INTEGER NOT NULL,"
                           " persistence INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID";

static bool kv_run(sqlite3_stmt *stmt, int bound)
{
    const int rc = bound == SQLITE_OK ? sqlite3_step(stmt) : bound;
    if (rc != SQLITE_DONE)
        log_error("store of published data: %s", sqlite3_errmsg(kv_db));
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc == SQLITE_DONE;
}

/* Before the first of several changes. */
static bool kv_store_changes(void)
{
    return kv_db != NULL && (!sqlite3_get_autocommit(kv_db) || kv_run(kv_begin, SQLITE_OK));
}

bool kv_store_end(bool good)
{
    if (kv_db == NULL || sqlite3_get_autocommit(kv_db))
        return true; /* nothing was changed */
    if (good && kv_run(kv_commit, SQLITE_OK))
        return true;
    if (!sqlite3_get_autocommit(kv_db))
        kv_run(kv_rollback, SQLITE_OK);
    return false;
}

bool kv_store_put(const struct kv_entry *entry, const void *packed)
{
    return kv_store_changes() &&
           kv_run(kv_put, sqlite3_bind_text(kv_put, 1, entry->name, -1, SQLITE_STATIC) |
                              sqlite3_bind_text(kv_put, 2, entry->publisher.nspace, -1, SQLITE_STATIC) |
                              sqlite3_bind_int64(kv_put, 3, entry->publisher.rank) |
                              sqlite3_bind_int(kv_put, 4, entry->persistence) |
                              sqlite3_bind_blob64(kv_put, 5, packed, entry->size, SQLITE_STATIC));
}

bool kv_store_delete(const struct kv_entry *entry)
{
    return kv_store_changes() &&
           kv_run(kv_delete, sqlite3_bind_text(kv_delete, 1, entry->name, -1, SQLITE_STATIC));
}

/* NULL: out of memory, or it is no value. */
static struct kv_entry *kv_row(sqlite3_stmt *rows)
{
    struct kv_entry *entry = calloc(1, sizeof(*entry));
    const void *blob = sqlite3_column_blob(rows, 4);
    const char *name = (const char *)sqlite3_column_text(rows, 0);
    const char *nspace = (const char *)sqlite3_column_text(rows, 1);
    pmix_data_buffer_t buffer;
    int32_t one = 1;
    if (entry == NULL || blob == NULL || name == NULL || nspace == NULL || strlen(name) >= KV_NAME_SIZE) {
        free(entry);
        return NULL;
    }
    memcpy(entry->name, name, strlen(name));
    PMIX_LOAD_PROCID(&entry->publisher, nspace, (pmix_rank_t)sqlite3_column_int64(rows, 2));
    entry->persistence = (uint8_t)sqlite3_column_int(rows, 3);
    entry->size = (size_t)sqlite3_column_bytes(rows, 4);
    buffer = (pmix_data_buffer_t){.base_ptr = (char *)blob,
                                  .pack_ptr = (char *)blob + entry->size,
                                  .unpack_ptr = (char *)blob,
                                  .bytes_allocated = entry->size,
                                  .bytes_used = entry->size};
    if (PMIx_Data_unpack(NULL, &buffer, &entry->value, &one, PMIX_VALUE) == PMIX_SUCCESS)
        return entry;
    free(entry);
    return NULL;
}

static int64_t kv_number(const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number = 0;
    if (sqlite3_prepare_v2(kv_db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

/* SQLITE_NOTADB, too, for another program's database. */
static int kv_make(const char *path)
{
    const mode_t mask = umask(077); /* what is published is its user's */
    int rc =
        sqlite3_open_v2(path, &kv_db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK && kv_number("SELECT count(*) FROM sqlite_schema") > 0 &&
        kv_number("PRAGMA application_id") != KV_APPLICATION_ID)
        rc = SQLITE_NOTADB;
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(kv_db, kv_schema, NULL, NULL, NULL);
    umask(mask);
    return rc;
}

int kv_store_open(const char *path, void (*found)(struct kv_entry *entry), struct fab_err *err)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } list[] = {
        {&kv_begin, "BEGIN IMMEDIATE"},
        {&kv_commit, "COMMIT"},
        {&kv_rollback, "ROLLBACK"},
        {&kv_put, "INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?)"},
        {&kv_delete, "DELETE FROM published WHERE name = ?"},
    };
    sqlite3_stmt *rows = NULL;
    int rc = kv_make(path);
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(list) / sizeof(list[0]); i++)
        rc = sqlite3_prepare_v3(kv_db, list[i].sql, -1, SQLITE_PREPARE_PERSISTENT, list[i].stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(kv_db, "SELECT * FROM published", -1, &rows, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct kv_entry *entry = kv_row(rows);
        if (entry != NULL)
            found(entry);
        else
            log_error("store of published data: a value is left out: it is damaged, or memory is short");
        rc = SQLITE_OK;
    }
    sqlite3_finalize(rows);
    if (rc == SQLITE_OK || rc == SQLITE_DONE)
        return PMIXFAB_OK;
    fab_fail(err, PMIXFAB_ERR_IO, "store %s: %s: give another --store, or move it away", path,
             rc == SQLITE_NOTADB ? "not a store of the role host"
             : kv_db == NULL     ? sqlite3_errstr(rc)
                                 : sqlite3_errmsg(kv_db));
    kv_store_close();
    return PMIXFAB_ERR_IO;
}

void kv_store_close(void)
{
    sqlite3_stmt *stmt;
    while (kv_db != NULL && (stmt = sqlite3_next_stmt(kv_db, NULL)) != NULL)
        sqlite3_finalize(stmt);
    sqlite3_close(kv_db);
    kv_db = NULL;
}
