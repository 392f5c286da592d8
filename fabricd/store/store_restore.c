/* store_restore.c - a backup becomes the store, and the store that was is kept. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/store/handle.h"
#include "fabricd/store/store_copy.h"
#include "fabricd/util/log.h"

/* The newest generation that the old store gave out; 0: it cannot be told. Closing it folds its log in, so
 * that it is one file. */
static uint64_t newest_of(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    uint64_t newest = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        (sqlite3_prepare_v2(db,
                            "SELECT max(coalesce(max(generation), 0), (SELECT max(above) FROM history))"
                            " FROM generation",
                            -1, &stmt, NULL) == SQLITE_OK ||
         sqlite3_prepare_v2(db, "SELECT max(generation) FROM generation", -1, &stmt, NULL) == SQLITE_OK) &&
        sqlite3_step(stmt) == SQLITE_ROW)
        newest = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    if (newest >= STORE_MAX_GENERATION)
        newest = 0;
    if (newest == 0)
        log_warning("store %s: it cannot be told which generations it gave out", path);
    return newest;
}

/* A copy beside the store, of this fabricd's schema, whose numbers go on above the old one's. */
static int prepare_copy(const char *backup, const char *copy, uint64_t above, struct fab_err *err)
{
    const struct store_copy order = {.from = backup, .still = true, .to = copy};
    struct store *store = NULL;
    char beside_it[PATH_MAX + 16];
    uint64_t bytes;
    int rc = store_copy(&order, &bytes, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_open(copy, &store, err);
    if (rc == PMIXFAB_OK && above > 0)
        rc = store_raise(store, above, err);
    store_close(store);
    snprintf(beside_it, sizeof(beside_it), "%s-wal", copy);
    if (rc == PMIXFAB_OK && access(beside_it, F_OK) == 0) /* the last of it is not in the file */
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be written wholly: is the disk full?", copy);
    snprintf(beside_it, sizeof(beside_it), "%s.lock", copy);
    unlink(beside_it);
    return rc;
}

/* The first name that is free. */
static int name_kept(const char *path, char *kept, size_t size, struct fab_err *err)
{
    for (unsigned i = 1; i < STORE_MOST_KEPT; i++)
        if (store_kept_name(kept, size, path, i) == PMIXFAB_OK && access(kept, F_OK) != 0 && errno == ENOENT)
            return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_RANGE,
                    "store %s: it was restored often: remove some of %s" STORE_KEPT ".*", path, path);
}

/* A log that a broken database left belongs to that one alone. */
static void keep_beside(const char *path, const char *kept, const char *more)
{
    char from[PATH_MAX + 8], to[PATH_MAX + 8];
    snprintf(from, sizeof(from), "%s%s", path, more);
    snprintf(to, sizeof(to), "%s%s", kept, more);
    if (rename(from, to) != 0 && errno != ENOENT)
        log_warning("store %s: cannot be moved: %s", from, strerror(errno));
}

/* At no moment is there no store: the old one gets a second name before the new one takes its place. Killed
 * before that, it is undone at the next start. */
static int store_exchange_files(const char *path, const char *copy, char *kept, size_t size,
                                struct fab_err *err)
{
    bool is = access(path, F_OK) == 0;
    int rc = is ? name_kept(path, kept, size, err) : PMIXFAB_OK;
    if (rc == PMIXFAB_OK && is && link(path, kept) != 0 && rename(path, kept) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_IO, "store %s: cannot be kept as %s: %s", path, kept, strerror(errno));
    if (rc != PMIXFAB_OK)
        return rc;
    for (size_t i = 0; i < sizeof(store_beside) / sizeof(store_beside[0]); i++)
        keep_beside(path, kept, store_beside[i]);
    if (rename(copy, path) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "store %s: the copy cannot be put in place: %s", path,
                        strerror(errno));
    sync(); /* the names, too */
    return PMIXFAB_OK;
}

static int store_restore_locked(const char *path, const char *backup, char *kept, size_t size,
                                struct fab_err *err)
{
    char copy[PATH_MAX];
    struct stat old, new;
    if (stat(backup, &new) != 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: cannot be restored: %s", backup, strerror(errno));
    bool is = stat(path, &old) == 0;
    if (is && old.st_ino == new.st_ino &&old.st_dev == new.st_dev)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "%s: cannot be restored: it is the store itself", backup);
    if (!S_ISREG(new.st_mode) || !store_is_one(backup))
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "%s: cannot be restored: it is no store of fabricd's",
                        backup);
    if (strlen(path) + sizeof(STORE_COPY) > sizeof(copy))
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %.200s...: the path is too long", path);
    store_copy_name(copy, sizeof(copy), path);
    store_undo_restore(path); /* of another one */
    int rc = prepare_copy(backup, copy, is ? newest_of(path) : 0, err);
    if (rc == PMIXFAB_OK)
        rc = store_exchange_files(path, copy, kept, size, err);
    if (rc != PMIXFAB_OK)
        store_undo_restore(path);
    return rc;
}

int store_restore(const char *path, const char *backup, char *kept, size_t size, struct fab_err *err)
{
    char *real = realpath(path, NULL);
    struct store lock = {.path = real != NULL ? real : (char *)path, .lock_fd = -1};
    kept[0] = '\0';
    int rc = store_lock(&lock, err);
    if (rc == PMIXFAB_OK)
        rc = store_restore_locked(lock.path, backup, kept, size, err);
    store_unlock(&lock);
    free(real);
    return rc;
}
