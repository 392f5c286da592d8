/*
 * store_transaction.c - begin and end of write transactions, and SQLite's write-ahead log.
 *
 * The log file is watched, since SQLite continues to use a log file that was removed. SQLite notices a
 * truncated log file only when it reads the missing part.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fabricd/store/store_priv.h"

static bool log_stat(const struct store *store, struct stat *st)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s-wal", store->path);
    return stat(path, st) == 0;
}

void store_log_know(struct store *store)
{
    struct stat st;
    store->log.known = true;
    if (!log_stat(store, &st))
        return;
    store->log.device = st.st_dev;
    store->log.file = st.st_ino;
    store->log.size = st.st_size;
}

/* PMIXFAB_ERR_IO: the log is not the noted one. A shorter log: another process has folded it, or its data
 * cannot be read any more. */
static int check_log(struct store *store, struct fab_err *err)
{
    struct stat st;
    if (!store->log.known)
        return PMIXFAB_OK;
    if (!log_stat(store, &st) || st.st_dev != store->log.device || st.st_ino != store->log.file)
        return fab_fail(err, PMIXFAB_ERR_IO,
                        "store %s: its log (%s-wal) was removed while fabricd has it open: restart fabricd, "
                        "which saves its contents; do not kill it",
                        store->path, store->path);
    if (st.st_size >= store->log.size)
        return PMIXFAB_OK;
    int code = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return code == SQLITE_OK ? PMIXFAB_OK : store_fail(store, code, "reading its log", err);
}

int store_checkpoint(struct store *store, struct fab_err *err)
{
    if (store->reading != 0)
        return PMIXFAB_OK;
    const int moved = check_log(store, err);
    sqlite3_busy_timeout(store->db, 0); /* do not wait for readers */
    int code = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    if (moved != PMIXFAB_OK)
        return moved;
    store_log_know(store);
    return code == SQLITE_OK ? PMIXFAB_OK : store_fail(store, code, "folding its log into it", err);
}

void store_on_commit(struct store *store, void (*fn)(void *cbdata), void *cbdata)
{
    store->on_commit = fn;
    store->on_commit_data = cbdata;
}

int store_writable(const struct store *store, struct fab_err *err)
{
    if (store->reading == 0)
        return PMIXFAB_OK;
    return fab_fail(
        err, PMIXFAB_ERR_IO,
        "store %s: its disk is %s: fabricd serves the stored state and publishes nothing until there is room",
        store->path, store->reading == EROFS ? "read-only" : "full");
}

/* SQLite continues to write into a removed file: all data would be lost at the end. */
static int check_in_place(struct store *store, struct fab_err *err)
{
    int moved = 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return fab_fail(
            err, PMIXFAB_ERR_IO,
            "store %s: its file was moved or removed while fabricd has it open: put it back, or restart "
            "fabricd",
            store->path);
    return PMIXFAB_OK;
}

static const char rollback_sql[] = "ROLLBACK";

int store_begin(struct store *store, struct fab_err *err)
{
    return store_writable(store, err)
               ?: check_in_place(store, err)
               ?: check_log(store, err)
               ?: store_prepare(store, rollback_sql, err)
               ?: store_run(store, "BEGIN IMMEDIATE", NULL, "beginning to write", err);
}

int store_end(struct store *store, int rc, struct fab_err *err)
{
    if (rc == PMIXFAB_OK)
        rc = store_run(store, "COMMIT", NULL, "committing", err);
    /* SQLite has rolled back already after some errors, such as a full disk. */
    if (rc != PMIXFAB_OK && !sqlite3_get_autocommit(store->db))
        store_run(store, rollback_sql, NULL, "rolling back", NULL);
    if (rc == PMIXFAB_OK && store->log.known)
        store_log_know(store);
    if (rc == PMIXFAB_OK && store->on_commit != NULL)
        store->on_commit(store->on_commit_data);
    sqlite3_db_release_memory(store->db); /* the next change may be days away */
    return rc;
}
