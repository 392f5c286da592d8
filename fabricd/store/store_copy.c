/*
 * store_copy.c - copy a store to one file. A store in use is copied by SQLite's backup, and a file that no
 * process writes is copied by bytes. Also recognise such copies, and remove the copy of a restore that was
 * killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/store/store_priv.h"

#define STEP_PAGES  256 /* 1 MiB between two checks for cancellation */
#define SYNC_EACH   16  /* steps between syncs: one large sync at the end would delay commits of the store */
#define PATIENCE_MS 10

#define BROKEN_BACKUP "%s: cannot be restored: it is broken (%s): take another backup"

struct copying {
    const struct store_copy *order;
    sqlite3 *from, *to;
    int fd; /* of the copy, for syncing */
    uint64_t bytes;
    bool stopped;
};

static int copy_fail(const struct copying *copying, sqlite3 *db, const char *path, const char *doing, int rc,
                     struct fab_err *err)
{
    if (copying->stopped)
        return fab_fail(err, PMIXFAB_ERR_TIMEOUT, "%s: cancelled", copying->order->to);
    if (copying->order->fd > 0 && ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, BROKEN_BACKUP, copying->order->from, sqlite3_errmsg(db));
    struct store named = {.db = db, .path = (char *)path};
    return store_fail(&named, rc, doing, err);
}

static bool copy_report_progress(struct copying *copying, const char *doing, uint64_t bytes, uint64_t all)
{
    const struct store_copy *order = copying->order;
    if (!copying->stopped && order->progress != NULL)
        copying->stopped = !order->progress(doing, bytes, all, order->cbdata);
    return !copying->stopped;
}

static int open_source(struct copying *copying, struct fab_err *err)
{
    const char *path = copying->order->from;
    int rc = sqlite3_open_v2(path, &copying->from, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK) {
        store_harden(copying->from);
        sqlite3_busy_timeout(copying->from, STORE_BUSY_MS);
        /* Read in one transaction, so that later commits do not restart the copy. */
        rc = sqlite3_exec(copying->from, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    }
    return rc == SQLITE_OK ? PMIXFAB_OK : copy_fail(copying, copying->from, path, "opening", rc, err);
}

static int open_copy(struct copying *copying, struct fab_err *err)
{
    const struct store_copy *order = copying->order;
    int rc = sqlite3_open_v2(order->to, &copying->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK) /* an incomplete copy is removed, so it needs no rollback */
        rc = sqlite3_exec(copying->to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                          NULL);
    store_harden(copying->to); /* would forbid the first of these pragmas */
    const char *bytes_of = order->fd > 0 ? order->from : order->to;
    return rc == SQLITE_OK ? PMIXFAB_OK : copy_fail(copying, copying->to, bytes_of, "opening", rc, err);
}

/* Copy the descriptor's file, which this process may not be able to open by name. */
static int copy_bytes(struct copying *copying, struct fab_err *err)
{
    const struct store_copy *order = copying->order;
    struct stat st;
    ssize_t n = fstat(order->fd, &st) == 0 ? 1 : -1;
    while (n > 0 && copying->bytes < (uint64_t)st.st_size) {
        off_t from = (off_t)copying->bytes;
        n = sendfile(copying->fd, order->fd, &from, STEP_PAGES * 4096);
        copying->bytes += n > 0 ? (uint64_t)n : 0;
        if (!copy_report_progress(copying, "copied", copying->bytes, (uint64_t)st.st_size))
            return copy_fail(copying, NULL, order->from, "copying", SQLITE_INTERRUPT, err);
    }
    return n > 0 ? PMIXFAB_OK
                 : fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be copied to %s: %s", order->from, order->to,
                            strerror(errno));
}

static int copy_pages(struct copying *copying, struct fab_err *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(copying->to, "main", copying->from, "main");
    int rc = backup == NULL ? sqlite3_errcode(copying->to) : SQLITE_OK;
    for (unsigned i = 1; backup != NULL && (rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED);
         i++) {
        if (rc != SQLITE_OK)
            clock_sleep(PATIENCE_MS * 1000);
        rc = sqlite3_backup_step(backup, STEP_PAGES);
        uint64_t all = (uint64_t)sqlite3_backup_pagecount(backup) * 4096;
        copying->bytes = all - (uint64_t)sqlite3_backup_remaining(backup) * 4096;
        if (i % SYNC_EACH == 0)
            fdatasync(copying->fd);
        if (!copy_report_progress(copying, "copied", copying->bytes, all))
            rc = SQLITE_INTERRUPT;
    }
    sqlite3_backup_finish(backup);
    return rc == SQLITE_DONE ? PMIXFAB_OK
                             : copy_fail(copying, copying->to, copying->order->to, "copying", rc, err);
}

/* Make the copy independent of a log: it is one file. */
static int leave_log(const struct copying *copying, struct fab_err *err)
{
    int rc = sqlite3_exec(copying->to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    return rc == SQLITE_OK ? PMIXFAB_OK
                           : copy_fail(copying, copying->to, copying->order->to, "copying", rc, err);
}

static int on_check(void *arg)
{
    struct copying *copying = arg;
    return !copy_report_progress(copying, "checking", copying->bytes, copying->bytes);
}

static int check_copied_pages(struct copying *copying, struct fab_err *err)
{
    const struct store_copy *order = copying->order;
    sqlite3_stmt *stmt = NULL;
    int rc = PMIXFAB_OK;
    sqlite3_progress_handler(copying->to, 100000, on_check, copying);
    int code = sqlite3_prepare_v2(copying->to, "PRAGMA quick_check(1)", -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    const char *said = code == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (said == NULL)
        rc = copy_fail(copying, copying->to, order->from, "checking the copy", code, err);
    else if (strcmp(said, "ok") != 0 && order->fd > 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, BROKEN_BACKUP, order->from, "its pages are inconsistent");
    else if (strcmp(said, "ok") != 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "store %s: its integrity is broken (%.*s)", order->from,
                      (int)strcspn(said, "\n"), said);
    sqlite3_finalize(stmt);
    return rc;
}

/* Check that the copy is a store that this fabricd can read, and intact. */
static int check_copy(struct copying *copying, struct fab_err *err)
{
    const struct store_copy *order = copying->order;
    const char *const *schema = order->schema != NULL ? order->schema : schema_sql;
    struct store store = {.db = copying->to, .path = (char *)order->from};
    int version = 0;
    int rc = store_identify(&store, schema, &version, err);
    if (rc == PMIXFAB_OK && version == 0)
        rc = fab_fail(err, PMIXFAB_ERR_FOREIGN, "%s: it is not a store of fabricd", order->from);
    rc = rc ?: store_check_schema(&store, schema, version, order->fd > 0, err);
    store_forget_statements(&store);
    return rc ?: check_copied_pages(copying, err);
}

int store_copy(const struct store_copy *order, uint64_t *bytes, struct fab_err *err)
{
    struct copying copying = {.order = order, .fd = -1};
    const bool bytewise = order->fd > 0;
    int rc = bytewise ? PMIXFAB_OK : open_source(&copying, err);
    *bytes = 0;
    if (rc != PMIXFAB_OK)
        goto close_source;
    /* Create the file before SQLite does, so that it is never readable for others. */
    copying.fd = open(order->to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (copying.fd < 0) {
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be created: %s", order->to, strerror(errno));
        goto close_source;
    }
    rc = (bytewise ? copy_bytes(&copying, err) : PMIXFAB_OK)
             ?: open_copy(&copying, err)
             ?: (bytewise ? PMIXFAB_OK : copy_pages(&copying, err))
             ?: leave_log(&copying, err);
close_source:
    sqlite3_close(copying.from); /* releases the source's log */
    rc = rc ?: check_copy(&copying, err);
    sqlite3_close(copying.to);
    if (rc == PMIXFAB_OK && fsync(copying.fd) != 0)
        rc =
            fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be synced to the disk: %s", order->to, strerror(errno));
    if (copying.fd >= 0)
        close(copying.fd);
    if (copying.fd >= 0 && rc != PMIXFAB_OK)
        unlink(order->to);
    *bytes = copying.bytes;
    return rc;
}

/* ---- recognising stores ---- */

/* Read the beginning of a file; zeros beyond its end. */
static bool copy_read_header(const char *path, unsigned char head[100])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    memset(head, 0, 100);
    bool done = fd >= 0 && pread(fd, head, 100, 0) >= 0;
    if (fd >= 0)
        close(fd);
    return done;
}

static bool is_header(const unsigned char head[100])
{
    static const unsigned char id[4] = {STORE_APPLICATION_ID >> 24, STORE_APPLICATION_ID >> 16 & 0xff,
                                        STORE_APPLICATION_ID >> 8 & 0xff, STORE_APPLICATION_ID & 0xff};
    return memcmp(head, "SQLite format 3", 16) == 0 && memcmp(head + 68, id, sizeof(id)) == 0;
}

bool store_is_one(const char *path)
{
    unsigned char head[100];
    return copy_read_header(path, head) && is_header(head);
}

int store_restorable(const char *path, const char *backup, int fd, struct fab_err *err)
{
    unsigned char head[100];
    struct stat store, st = {0};
    if (fstat(fd, &st) == 0 && stat(path, &store) == 0 && st.st_ino == store.st_ino &&
        st.st_dev == store.st_dev)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "%s: cannot be restored: it is the store itself", backup);
    if (!S_ISREG(st.st_mode) || pread(fd, head, sizeof(head), 0) != sizeof(head) || !is_header(head))
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "%s: cannot be restored: it is not a store of fabricd",
                        backup);
    return PMIXFAB_OK;
}

bool store_is_unfinished(const char *path)
{
    static const unsigned char nothing[100]; /* the first page may be written last */
    unsigned char head[100];
    return store_is_one(path) ||
           (copy_read_header(path, head) && memcmp(head, nothing, sizeof(nothing)) == 0);
}

/* ---- a restore that was killed ---- */

const char *const store_beside[2] = {"-wal", "-shm"};

static bool is_copy_of(const char *path, const struct stat *st)
{
    struct stat other;
    return lstat(path, &other) == 0 && other.st_ino == st->st_ino && other.st_dev == st->st_dev;
}

void store_copy_name(char *copy, size_t size, const char *path)
{
    snprintf(copy, size, "%s" STORE_COPY, path);
}

/* Remove an unfinished copy. */
static void remove_copy(const char *path)
{
    static const char *const all[] = {"", "-wal", "-shm", "-journal", ".lock"};
    char copy[PATH_MAX], name[PATH_MAX + 16];
    struct stat st;
    store_copy_name(copy, sizeof(copy), path);
    if (lstat(copy, &st) == 0 && (!S_ISREG(st.st_mode) || !store_is_unfinished(copy)))
        return; /* not our file */
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", copy, all[i]);
        unlink(name);
    }
}

int store_kept_name(char *kept, size_t size, const char *path, unsigned i)
{
    int n = i == 1 ? snprintf(kept, size, "%s" STORE_KEPT, path)
                   : snprintf(kept, size, "%s" STORE_KEPT ".%u", path, i);
    return n > 0 && (size_t)n < size ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
}

/*
 * The store has its second name, but the copy is not in place yet. Remove the second name, since a database
 * with two names would be opened with two logs.
 */
static void remove_second_name(const char *path)
{
    char kept[PATH_MAX], from[PATH_MAX + 8], to[PATH_MAX + 8];
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    for (unsigned i = 1; i < STORE_MOST_KEPT && store_kept_name(kept, sizeof(kept), path, i) == PMIXFAB_OK &&
                         access(kept, F_OK) == 0;
         i++) {
        if (!is_copy_of(kept, &st))
            continue;
        for (size_t k = 0; k < sizeof(store_beside) / sizeof(store_beside[0]); k++) {
            snprintf(from, sizeof(from), "%s%s", kept, store_beside[k]);
            snprintf(to, sizeof(to), "%s%s", path, store_beside[k]);
            if (access(to, F_OK) != 0)
                rename(from, to);
        }
        unlink(kept);
        log_warning("store %s: a restore was interrupted: the store is unchanged", path);
        return;
    }
}

void store_undo_restore(const char *path)
{
    remove_second_name(path);
    remove_copy(path);
}
