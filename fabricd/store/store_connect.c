/* store_connect.c - a connection to the database, its statements, and its end. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/notify.h"
#include "fabricd/store/file_priv.h"
#include "fabricd/store/tables_priv.h"

/* A large store that is checked, brought up to date or made anew takes longer than a service manager waits.
 */
int store_on_progress(void *arg)
{
    (void)arg;
    notify_starting();
    return 0;
}

/* SQLite makes what stands beside the database with the bits that the database has. */
static void hide_database(const char *path)
{
    char beside[PATH_MAX];
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640); /* SQLite says why it cannot be made */
    if (fd >= 0)
        close(fd);
    file_hide(path);
    snprintf(beside, sizeof(beside), "%s-wal", path);
    file_hide(beside);
    snprintf(beside, sizeof(beside), "%s-shm", path);
    file_hide(beside);
}

int store_connect(struct store *store, struct fab_err *err)
{
    hide_database(store->path);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(store->path, &store->db, flags, NULL);
    if (rc != SQLITE_OK)
        return store_fail(store, rc, "opening", err);
    store_harden(store->db);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    /* Until it is certain that the store is taken: what is refused keeps its log. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_progress_handler(store->db, STORE_PROGRESS, store_on_progress, NULL);
    return PMIXFAB_OK;
}

int store_prepare_tables(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->begin, "BEGIN IMMEDIATE"},
        {&store->commit, "COMMIT"},
        {&store->rollback, "ROLLBACK"},
    };
    static int (*const tables[])(struct store *, struct fab_err *) = {
        store_inventory_prepare, store_rows_prepare, store_planes_prepare,         store_history_prepare,
        store_reports_prepare,   store_trim_prepare, store_history_digest_prepare,
    };
    int rc = store_prepare(store, list, sizeof list / sizeof list[0], err);
    for (size_t i = 0; rc == PMIXFAB_OK && i < sizeof tables / sizeof tables[0]; i++)
        rc = tables[i](store, err);
    return rc;
}

void store_disconnect(struct store *store)
{
    sqlite3_stmt *stmt;
    while (store->db != NULL && (stmt = sqlite3_next_stmt(store->db, NULL)) != NULL)
        sqlite3_finalize(stmt);
    sqlite3_close(store->db);
    store->db = NULL;
}
