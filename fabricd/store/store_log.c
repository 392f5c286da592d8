/*
 * store_log.c - SQLite's write-ahead log: folded into the file when it is quiet, and looked after, since
 * SQLite goes on with a log that somebody removed, and notices a shorter one only when it reads what is gone.
 */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fabricd/store/handle.h"

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

/* Shorter: another process has folded it, or nothing can be read from it any more. */
int store_log_check(struct store *store, struct fab_err *err)
{
    struct stat st;
    if (!store->log.known)
        return PMIXFAB_OK;
    const bool there = log_stat(store, &st) && st.st_dev == store->log.device && st.st_ino == store->log.file;
    if (!there)
        return fab_fail(
            err, PMIXFAB_ERR_IO,
            "store %s: its log (%s-wal) was removed while fabricd has it open: restart fabricd, which "
            "saves what was in it; do not kill it",
            store->path, store->path);
    int code = st.st_size < store->log.size
                   ? sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL)
                   : SQLITE_OK;
    if (code != SQLITE_OK)
        return store_fail(store, code, "reading its log", err);
    return PMIXFAB_OK;
}

int store_checkpoint(struct store *store, struct fab_err *err)
{
    if (store->reading != 0)
        return PMIXFAB_OK;
    int rc = store_log_check(store, err), code = SQLITE_OK;
    const bool moved = rc != PMIXFAB_OK;
    sqlite3_busy_timeout(store->db, 0); /* who reads now is not waited for */
    code = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    if (!moved)
        store_log_know(store);
    return moved || code == SQLITE_OK ? rc : store_fail(store, code, "folding its log into it", err);
}

void store_on_commit(struct store *store, void (*fn)(void *cbdata), void *cbdata)
{
    store->on_commit = fn;
    store->on_commit_data = cbdata;
}
