/* store_transaction.c - beginning to write, and the end of it. */
#include <errno.h>

#include "fabricd/store/handle.h"

/* SQLite goes on writing into a file that has no name any more: all of it would be lost at the end. */
static int check_in_place(struct store *store, struct fab_err *err)
{
    int moved = 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return fab_fail(
            err, PMIXFAB_ERR_IO,
            "store %s: its file was moved or removed while fabricd has it open: put it back, or restart "
            "fabricd",
            store->path);
    return store_log_check(store, err);
}

int store_writable(const struct store *store, struct fab_err *err)
{
    if (store->reading == 0)
        return PMIXFAB_OK;
    return fab_fail(
        err, PMIXFAB_ERR_IO,
        "store %s: its disk is %s: what is there is served, and nothing is published; it is tried again, and "
        "fabricd goes on when there is room",
        store->path, store->reading == EROFS ? "read-only" : "full");
}

int store_begin(struct store *store, struct fab_err *err)
{
    int rc = store_writable(store, err);
    if (rc == PMIXFAB_OK)
        rc = check_in_place(store, err);
    return rc != PMIXFAB_OK ? rc : store_run(store, store->begin, SQLITE_OK, "beginning to write", err);
}

int store_end(struct store *store, int rc, struct fab_err *err)
{
    if (rc == PMIXFAB_OK)
        rc = store_run(store, store->commit, SQLITE_OK, "committing", err);
    /* SQLite has rolled back by itself after some errors, a full disk for one. */
    if (rc != PMIXFAB_OK && !sqlite3_get_autocommit(store->db))
        store_run(store, store->rollback, SQLITE_OK, "rolling back", NULL);
    if (rc == PMIXFAB_OK && store->log.known)
        store_log_know(store);
    if (rc == PMIXFAB_OK && store->on_commit != NULL)
        store->on_commit(store->on_commit_data);
    sqlite3_db_release_memory(store->db); /* the next change may be days away */
    return rc;
}
