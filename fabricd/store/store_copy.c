#include "fabricd/store/store_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/store/file_priv.h"
#include "fabricd/store/schema.h"

#define STEP_PAGES  256 /* 1 MiB between two checks whether to give up */
#define SYNC_EACH   16  /* steps: what is written at once at the end delays the commits of others */
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
        return fab_fail(err, PMIXFAB_ERR_TIMEOUT, "%s: given up", copying->order->to);
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
        /* From here on what others commit is not seen, and does not make the copy begin anew. */
        rc = sqlite3_exec(copying->from, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    }
    return rc == SQLITE_OK ? PMIXFAB_OK : copy_fail(copying, copying->from, path, "opening", rc, err);
}

/* The new file is there before SQLite is asked, so that nobody else could read it for a moment. */
static int make_file(struct copying *copying, struct fab_err *err)
{
    const char *path = copying->order->to;
    copying->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return copying->fd >= 0 ? PMIXFAB_OK
                            : fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
}

static int open_copy(struct copying *copying, struct fab_err *err)
{
    const char *path = copying->order->to;
    int rc = sqlite3_open_v2(path, &copying->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK) /* what is half a copy is thrown away: nothing has to be taken back */
        rc = sqlite3_exec(copying->to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                          NULL);
    store_harden(copying->to); /* which forbids the first of these */
    if (copying->order->fd > 0)
        path = copying->order->from; /* whose bytes they are */
    return rc == SQLITE_OK ? PMIXFAB_OK : copy_fail(copying, copying->to, path, "opening", rc, err);
}

/* What the descriptor leads to, which may be a file that this process cannot open. */
static int copy_bytes(struct copying *copying, struct fab_err *err)
{
    const struct store_copy *order = copying->order;
    struct stat st;
    int rc = fstat(order->fd, &st) == 0 ? PMIXFAB_OK : PMIXFAB_ERR_IO;
    while (rc == PMIXFAB_OK && copying->bytes < (uint64_t)st.st_size) {
        off_t from = (off_t)copying->bytes;
        ssize_t n = sendfile(copying->fd, order->fd, &from, STEP_PAGES * 4096);
        if (n <= 0)
            rc = PMIXFAB_ERR_IO;
        else
            copying->bytes += (uint64_t)n;
        if (!copy_report_progress(copying, "copied", copying->bytes, (uint64_t)st.st_size))
            return copy_fail(copying, NULL, order->from, "copying", SQLITE_INTERRUPT, err);
    }
    return rc == PMIXFAB_OK
               ? rc
               : fab_fail(err, rc, "%s: cannot be copied to %s: %s", order->from, order->to, strerror(errno));
}

/* The source's log is none of this one file's. */
static int leave_log(const struct copying *copying, struct fab_err *err)
{
    int rc = sqlite3_exec(copying->to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    return rc == SQLITE_OK ? PMIXFAB_OK
                           : copy_fail(copying, copying->to, copying->order->to, "copying", rc, err);
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
    return rc == SQLITE_DONE ? leave_log(copying, err)
                             : copy_fail(copying, copying->to, copying->order->to, "copying", rc, err);
}

static int on_check(void *arg)
{
    struct copying *copying = arg;
    return !copy_report_progress(copying, "checking", copying->bytes, copying->bytes);
}

/* Is it a store, one that this fabricd can read, and whole? */
static int check_copy(struct copying *copying, struct fab_err *err)
{
    struct store store = {.db = copying->to, .path = (char *)copying->order->from};
    sqlite3_stmt *stmt = NULL;
    int version = 0;
    const char *const *schema = copying->order->schema != NULL ? copying->order->schema : schema_sql;
    int rc = store_identify(&store, schema, &version, err);
    if (rc == PMIXFAB_OK && version == 0)
        rc = fab_fail(err, PMIXFAB_ERR_FOREIGN, "%s: there is no store of fabricd's in it",
                      copying->order->from);
    if (rc == PMIXFAB_OK)
        rc = store_check_schema(&store, schema, version, copying->order->fd > 0, err);
    if (rc != PMIXFAB_OK)
        return rc;
    sqlite3_progress_handler(copying->to, 100000, on_check, copying);
    int code = sqlite3_prepare_v2(copying->to, "PRAGMA quick_check(1)", -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    const char *said = code == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (said == NULL)
        rc = copy_fail(copying, copying->to, copying->order->from, "checking the copy", code, err);
    else if (strcmp(said, "ok") != 0 && copying->order->fd > 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, BROKEN_BACKUP, copying->order->from,
                      "its pages do not fit together");
    else if (strcmp(said, "ok") != 0)
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "store %s: its integrity is broken (%.*s)",
                      copying->order->from, (int)strcspn(said, "\n"), said);
    sqlite3_finalize(stmt);
    return rc;
}

int store_copy(const struct store_copy *order, uint64_t *bytes, struct fab_err *err)
{
    struct copying copying = {.order = order, .fd = -1};
    int rc = order->fd > 0 ? PMIXFAB_OK : open_source(&copying, err);
    if (rc == PMIXFAB_OK)
        rc = make_file(&copying, err);
    bool made = copying.fd >= 0;
    if (rc == PMIXFAB_OK && order->fd > 0)
        rc = copy_bytes(&copying, err);
    if (rc == PMIXFAB_OK)
        rc = open_copy(&copying, err);
    if (rc == PMIXFAB_OK)
        rc = order->fd > 0 ? leave_log(&copying, err) : copy_pages(&copying, err);
    sqlite3_close(copying.from); /* the log of the source can be used again */
    if (rc == PMIXFAB_OK)
        rc = check_copy(&copying, err);
    sqlite3_close(copying.to);
    if (rc == PMIXFAB_OK && fsync(copying.fd) != 0)
        rc = fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be brought to the disk: %s", order->to,
                      strerror(errno));
    if (made)
        close(copying.fd);
    if (made && rc != PMIXFAB_OK)
        unlink(order->to);
    *bytes = copying.bytes;
    return rc;
}

/* What a file begins with, and zeros where it is shorter. */
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
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "%s: cannot be restored: it is no store of fabricd's",
                        backup);
    return PMIXFAB_OK;
}

bool store_is_unfinished(const char *path)
{
    static const unsigned char nothing[100]; /* the first page may be the last one that is written */
    unsigned char head[100];
    return store_is_one(path) ||
           (copy_read_header(path, head) && memcmp(head, nothing, sizeof(nothing)) == 0);
}
