/*
 * store_restore.c - a backup replaces the store, and the old store is kept.
 *
 * Numbers of generations continue above all that were published. If the old store has the backup's history,
 * it has these numbers. Otherwise (on another host, after the loss of a disk) the number is estimated: at
 * most one publication per millisecond since the backup's newest generation. This bound grows equally on all
 * hosts, so a second restore is above the first.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/store/store_priv.h"

#define APART_MS 600000 /* largest difference of the clocks of two hosts */

/* Read from an old store. */
struct given_out {
    uint64_t newest; /* 0: not known */
    bool same;       /* it has, or had, the backup's newest generation, and so all later numbers */
};

/* Read the newest number of the old store. A store of an old schema has no `above`. Closing it folds its log
 * in, so that it is one file. */
static struct given_out look_at_old(const char *path, uint64_t generation, int64_t published)
{
    struct given_out out = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char same[128];
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        (sqlite3_prepare_v2(db,
                            "SELECT max(coalesce(max(generation), 0), (SELECT max(above) FROM history))"
                            " FROM generation",
                            -1, &stmt, NULL) == SQLITE_OK ||
         sqlite3_prepare_v2(db, "SELECT max(generation) FROM generation", -1, &stmt, NULL) == SQLITE_OK) &&
        sqlite3_step(stmt) == SQLITE_ROW)
        out.newest = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    stmt = NULL;
    snprintf(same, sizeof(same), "SELECT 1 FROM generation WHERE generation = %llu AND published = %lld",
             (unsigned long long)generation, (long long)published);
    out.same = sqlite3_prepare_v2(db, same, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    if (out.newest >= STORE_MAX_GENERATION)
        out.newest = 0;
    if (out.newest == 0)
        log_warning("store %s: its published generations cannot be read", path);
    return out;
}

/* Return a bound of the published numbers: from the old store, if there is one, and from the backup's
 * history. */
static int most_given_out(const char *path, struct store *copy, uint64_t *above, struct fab_err *err)
{
    struct given_out old = {0};
    uint64_t generation, next = 0;
    int64_t published;
    int rc = store_generation(copy, &generation, &published, err) ?: store_next_generation(copy, &next, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (access(path, F_OK) == 0)
        old = look_at_old(path, generation, published);
    const int64_t since = (clock_now(CLOCK_REALTIME) - published) / 1000;
    *above = old.newest;
    if (!old.same || old.newest == 0)
        next += (uint64_t)(since > 0 ? since : 0) + APART_MS;
    if (next - 1 > *above)
        *above = next - 1;
    return PMIXFAB_OK;
}

/* Migrate the copy beside the store to this fabricd's schema, and raise its numbers above all that were
 * published. */
static int prepare_copy(const char *path, const char *copy, struct fab_err *err)
{
    struct store *store = NULL;
    struct fab_err lost = {""};
    char beside_it[PATH_MAX + 16];
    uint64_t above;
    int rc = store_open_schema(copy, schema_sql, false, &store, err)
                 ?: most_given_out(path, store, &above, err)
                 ?: store_raise(store, above, err);
    if (rc == PMIXFAB_OK && access(path, F_OK) == 0 && /* jobs keep their present endpoints */
        store_endpoints_take_over(store, path, &lost) != PMIXFAB_OK)
        log_warning("restore: jobs have the endpoints of the time of the backup: %s", lost.text);
    store_close(store);
    snprintf(beside_it, sizeof(beside_it), "%s-wal", copy);
    if (rc == PMIXFAB_OK && access(beside_it, F_OK) == 0) /* the file is incomplete */
        rc = fab_fail(err, PMIXFAB_ERR_IO,
                      "%s: cannot be written completely: check that the disk is not full", copy);
    snprintf(beside_it, sizeof(beside_it), "%s.lock", copy);
    unlink(beside_it);
    return rc;
}

/* Return the first unused name. */
static int name_kept(const char *path, char *kept, size_t size, struct fab_err *err)
{
    for (unsigned i = 1; i < STORE_MOST_KEPT; i++)
        if (store_kept_name(kept, size, path, i) == PMIXFAB_OK && access(kept, F_OK) != 0 && errno == ENOENT)
            return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_RANGE,
                    "store %s: it was restored often: remove some of %s" STORE_KEPT ".*", path, path);
}

/* A log that a broken database left must not be used with the new one. */
static void keep_beside(const char *path, const char *kept, const char *more)
{
    char from[PATH_MAX + 8], to[PATH_MAX + 8];
    snprintf(from, sizeof(from), "%s%s", path, more);
    snprintf(to, sizeof(to), "%s%s", kept, more);
    if (rename(from, to) != 0 && errno != ENOENT)
        log_error("store %s: cannot be moved: %s", from, strerror(errno));
}

/* There is always a store: the old one gets a second name before the new one replaces it. If the process is
 * killed before that, the next start undoes it. */
static int exchange_files(const char *path, const char *copy, char *kept, size_t size, struct fab_err *err)
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
    const int why = file_sync_folder(path);
    if (why != 0)
        log_error("store %s: its folder cannot be synced to the disk: %s", path, strerror(why));
    return PMIXFAB_OK;
}

/* A backup is one file: a file with a log beside it is a store in use, or one that was never closed. */
static int check_backup(const char *path, const char *backup, int fd, struct fab_err *err)
{
    char log[PATH_MAX];
    struct stat st;
    snprintf(log, sizeof(log), "%s-wal", backup);
    if (stat(log, &st) == 0 && st.st_size > 0)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "%s: cannot be restored: it is a store in use, %s is not folded in: restore a backup "
                        "of it",
                        backup, log);
    return store_restorable(path, backup, fd, err);
}

/* backup NULL: the copy exists. */
static int restore_locked(const char *path, const char *backup, int fd, char *kept, size_t size,
                          struct fab_err *err)
{
    char copy[PATH_MAX];
    const struct store_copy order = {.from = backup, .fd = fd, .to = copy};
    struct stat old;
    uint64_t bytes;
    int rc = PMIXFAB_OK;
    if (strlen(path) + sizeof(STORE_COPY) > sizeof(copy))
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %.200s...: the path is too long", path);
    store_copy_name(copy, sizeof(copy), path);
    if (backup != NULL) {
        rc = check_backup(path, backup, fd, err);
        if (rc != PMIXFAB_OK)
            return rc;
        store_undo_restore(path); /* of an earlier restore */
        rc = store_copy(&order, &bytes, err);
    }
    rc = rc ?: prepare_copy(path, copy, err);
    if (rc == PMIXFAB_OK && stat(path, &old) == 0 && chmod(copy, old.st_mode & 0777) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot get the store's mode: %s", copy, strerror(errno));
    rc = rc ?: exchange_files(path, copy, kept, size, err);
    if (rc != PMIXFAB_OK)
        store_undo_restore(path);
    return rc;
}

int store_restore(const char *path, const char *backup, int fd, char *kept, size_t size, struct fab_err *err)
{
    char *real = realpath(path, NULL);
    struct store lock = {.path = real != NULL ? real : (char *)path, .lock_fd = -1};
    kept[0] = '\0';
    int rc = store_lock(&lock, err);
    if (rc == PMIXFAB_OK)
        rc = restore_locked(lock.path, backup, fd, kept, size, err);
    store_unlock(&lock);
    free(real);
    return rc;
}

int store_restore_copied(const char *path, char *kept, size_t size, struct fab_err *err)
{
    return store_restore(path, NULL, 0, kept, size, err);
}
