/*
 * store.c - open and close the store.
 *
 * Durability: WAL with synchronous=FULL. Each commit is on the disk before store_publish() returns, which
 * costs one fsync of the log per publication. synchronous=NORMAL would survive a killed process as well, but
 * not a power cut: the last announced generations could be lost, and their numbers used again.
 *
 * Integrity: before the open, PRAGMA quick_check walks the pages of all served tables. When the rows are
 * loaded, they are compared with digests.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/store/store_priv.h"

/* So many instructions of SQLite's virtual machine take some milliseconds. */
#define STORE_PROGRESS 100000

/* ---- connections ---- */

/* Checking, migrating or rebuilding a large store takes longer than a service manager waits. */
static int on_progress(void *arg)
{
    (void)arg;
    notify_starting();
    return 0;
}

static void name_beside(const struct store *store, const char *behind, char name[PATH_MAX])
{
    snprintf(name, PATH_MAX, "%s%s", store->path, behind);
}

/* Return whether the file exists and is not empty. */
static bool is_there(const struct store *store, const char *behind)
{
    char path[PATH_MAX];
    struct stat st;
    name_beside(store, behind, path);
    return stat(path, &st) == 0 && st.st_size > 0;
}

static int store_connect(struct store *store, struct fab_err *err)
{
    static const char *const all[] = {"", "-wal", "-shm"};
    char name[PATH_MAX];
    int fd = open(store->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd >= 0) /* otherwise SQLite reports why it cannot be created */
        close(fd);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        name_beside(store, all[i], name);
        file_hide(name); /* files that SQLite creates get the mode of the database */
    }
    int rc = sqlite3_open_v2(
        store->path, &store->db,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc != SQLITE_OK)
        return store_fail(store, rc, "opening", err);
    store_harden(store->db);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    /* Until the store is accepted: a rejected one keeps its log. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_progress_handler(store->db, STORE_PROGRESS, on_progress, NULL);
    return PMIXFAB_OK;
}

static void store_disconnect(struct store *store)
{
    store_forget_statements(store);
    sqlite3_close(store->db);
    store->db = NULL;
}

/* Return "file:" and the path, with special characters escaped. */
static int immutable_uri(const char *path, char *uri, size_t size)
{
    size_t n = (size_t)snprintf(uri, size, "file:");
    for (; *path != '\0' && n + 4 < size; path++)
        n += (size_t)snprintf(uri + n, size - n, strchr("%?#", *path) != NULL ? "%%%02x" : "%c",
                              (unsigned char)*path);
    return (size_t)snprintf(uri + n, size - n, "?immutable=1") < size - n ? SQLITE_OK : SQLITE_CANTOPEN;
}

/*
 * Connect for reading, without any change to the file or beside it, also on a full or read-only disk. The
 * caller holds the store's lock, or it cannot be locked.
 *
 * A log is read with its index in memory, without locks. SQLite would need locks against other processes, but
 * the store's own lock is held. Without a log the file is complete. An unfinished transaction from before the
 * WAL mode has to be rolled back first.
 */
static int store_connect_reading(struct store *store, struct fab_err *err)
{
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    char uri[3 * PATH_MAX];
    int rc;
    if (is_there(store, "-journal")) {
        rc = sqlite3_open_v2(store->path, &store->db, (flags & ~SQLITE_OPEN_READONLY) | SQLITE_OPEN_READWRITE,
                             NULL);
    } else if (is_there(store, "-wal")) {
        rc = sqlite3_open_v2(store->path, &store->db, flags, "unix-none");
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(store->db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
    } else {
        rc = immutable_uri(store->path, uri, sizeof(uri))
                 ?: sqlite3_open_v2(uri, &store->db, flags | SQLITE_OPEN_URI, NULL);
    }
    if (rc != SQLITE_OK)
        return store_fail(store, rc, "opening", err);
    store_harden(store->db);
    sqlite3_progress_handler(store->db, STORE_PROGRESS, on_progress, NULL);
    return PMIXFAB_OK;
}

/* ---- checks before the open ---- */

/* Return whether a power cut has interrupted the first page of a new store. SQLite rolls it back: its journal
 * is there. */
static bool is_cut_off(const struct store *store, const char head[512])
{
    static const char nothing[512];
    return memcmp(head, nothing, sizeof(nothing)) == 0 && is_there(store, "-journal");
}

/*
 * Check that an existing file is a database, or empty. This must come before SQLite's own check. SQLite
 * treats a file shorter than its smallest page as empty and overwrites it. It also leaves read-only files
 * beside a database that cannot be written.
 */
static int check_file(const struct store *store, struct fab_err *err)
{
    static const char magic[16] = "SQLite format 3";
    char head[512]; /* the smallest page */
    struct stat st;
    int fd = open(store->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT
                   ? PMIXFAB_OK
                   : fab_fail(err, PMIXFAB_ERR_IO, "store %s: %s: fabricd must be able to read and write it",
                              store->path, strerror(errno));
    int rc = PMIXFAB_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        rc = fab_fail(err, PMIXFAB_ERR_IO, "store %s: not a regular file; give fabricd another --store",
                      store->path);
    else if (st.st_size > 0 && (pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head ||
                                (memcmp(head, magic, sizeof magic) != 0 && !is_cut_off(store, head))))
        rc = store_corrupt(store, err, "not a database");
    close(fd);
    return rc;
}

/* Return the first error of a check, or success. */
static int run_check(struct store *store, const char *check, struct fab_err *err)
{
    char said[160];
    int rc = store_ask(store, check, said, sizeof said, "checking its integrity", err);
    if (rc != PMIXFAB_OK || strcmp(said, "ok") == 0)
        return rc;
    for (char *end = said; (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
    return store_corrupt(store, err, "its integrity is broken (%s)", said);
}

/*
 * Walk all pages. The history grows and is not served, and so do the generations. So a large store is walked
 * without them: a broken page there is found by its readers. A database before its migration is walked
 * completely.
 */
static int check_pages(struct store *store, bool current, struct fab_err *err)
{
    static const char *const served[] = {"plane", "inventory", "subnet",  "node",   "port",
                                         "link",  "history",   "missing", "report", "report_published"};
    char check[64];
    struct stat st;
    if (!current || stat(store->path, &st) != 0 || st.st_size <= STORE_CHECK_MAX)
        return run_check(store, "PRAGMA quick_check(1)", err);
    int rc = PMIXFAB_OK;
    for (size_t i = 0; rc == PMIXFAB_OK && i < sizeof served / sizeof served[0]; i++) {
        snprintf(check, sizeof check, "PRAGMA quick_check(%s)", served[i]);
        rc = run_check(store, check, err);
    }
    return rc;
}

static int store_take_report(const struct store_report *report, void *cbdata)
{
    (void)report, (void)cbdata;
    return 0;
}

/* Check the digests of the rows that are loaded at a start. */
static int check_rows(struct store *store, struct fab_err *err)
{
    struct store_plane *planes = NULL;
    struct fab_inventory inv;
    struct store_bounds bounds;
    uint32_t n = 0;
    int rc = store_bounds(store, &bounds, err) ?: store_load_planes(store, &planes, &n, err);
    store_planes_free(planes, n);
    fab_inventory_init(&inv);
    rc = rc ?: store_reports_load(store, store_take_report, NULL, err) ?: store_load_inventory(store, &inv, err);
    fab_inventory_destroy(&inv);
    return rc;
}

/*
 * Reject a store that store_open() must reject. *version becomes the version of the schema; 0: there is no
 * store yet. This uses a connection that changes nothing. A usual open of a database recreates the files of
 * its log, and a usual close folds the log into the database. Neither must happen to a rejected store.
 */
static int store_examine(struct store *store, const char *const *steps, int *version, struct fab_err *err)
{
    *version = 0;
    if (!is_there(store, ""))
        return PMIXFAB_OK;
    int rc = store_connect_reading(store, err) ?: store_identify(store, steps, version, err);
    if (rc == PMIXFAB_OK && *version > 0)
        rc = store_check_schema(store, steps, *version, false, err)
                 ?: check_pages(store, steps[*version] == NULL, err);
    /* Without a log this check can wait until the data is loaded, since nothing is changed. */
    if (rc == PMIXFAB_OK && *version > 0 && steps[*version] == NULL && is_there(store, "-wal"))
        rc = check_rows(store, err);
    store_disconnect(store);
    return rc;
}

/* ---- open ---- */

static int store_configure(struct store *store, bool fresh, struct fab_err *err)
{
    char mode[16];
    if (sqlite3_db_readonly(store->db, "main") != 0) /* BEGIN EXCLUSIVE would not report it */
        return store_fail(store, SQLITE_READONLY, "opening", err);
    /* For an existing database this would write. */
    int code =
        fresh ? sqlite3_exec(store->db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = sqlite3_exec(store->db,
                            "PRAGMA synchronous = FULL;"
                            "PRAGMA foreign_keys = OFF;" /* until the schema is migrated */
                            "PRAGMA trusted_schema = OFF;"
                            "PRAGMA cell_size_check = ON;"
                            "PRAGMA temp_store = MEMORY;"
                            "PRAGMA cache_size = -8192",
                            NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_wal_autocheckpoint(store->db, STORE_WAL_PAGES);
    if (code != SQLITE_OK)
        return store_fail(store, code, "configuring", err);
    int rc = store_ask(store, "PRAGMA journal_mode = WAL", mode, sizeof mode,
                       "switching to a write-ahead log", err);
    if (rc == PMIXFAB_OK && sqlite3_stricmp(mode, "wal") != 0)
        return fab_fail(
            err, PMIXFAB_ERR_IO,
            "store %s: its file system cannot hold a write-ahead log: put the store on a local one",
            store->path);
    return rc;
}

/* Rebuild a database of an older fabricd, which cannot return free pages to the file system. A large one
 * stays as it is, since rebuilding it would delay the start. */
static int make_shrinkable(struct store *store, struct fab_err *err)
{
    struct store_pages pages;
    int rc = store_pages(store, &pages, err);
    if (rc != PMIXFAB_OK || pages.shrinks || pages.pages * pages.page_size > STORE_VACUUM_MAX)
        return rc;
    int code = sqlite3_exec(store->db, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", NULL, NULL, NULL);
    /* Without disk space for the rebuild the database stays usable. */
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_FULL && (code & 0xff) != SQLITE_IOERR)
        return store_fail(store, code, "rebuilding it", err);
    return PMIXFAB_OK;
}

/* Copy under the name of a restore's copy until it is complete: the next open removes an incomplete one. */
static int keep_schema(const struct store *store, const char *const *steps, int version, char kept[PATH_MAX],
                       struct fab_err *err)
{
    char copy[PATH_MAX];
    const struct store_copy order = {.from = store->path, .to = copy, .schema = steps};
    uint64_t bytes;
    if (store_name_before(kept, PATH_MAX, store->path, version) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %.200s...: the path is too long", store->path);
    store_copy_name(copy, sizeof(copy), store->path);
    int rc = store_copy(&order, &bytes, err);
    if (rc != PMIXFAB_OK)
        return rc;
    const int why = rename(copy, kept) != 0 ? errno : file_sync_folder(kept);
    if (why != 0) {
        unlink(copy);
        return fab_fail(err, PMIXFAB_ERR_IO, "store %s: cannot be kept as %s: %s", store->path, kept,
                        strerror(why));
    }
    log_info("store %s: its schema is migrated from %d to %d; the old store is kept as %s", store->path,
             version, store_count_steps(steps), kept);
    return PMIXFAB_OK;
}

/* keep: keep the old store beside the new one. */
static int upgrade(struct store *store, const char *const *steps, int version, bool keep, struct fab_err *err)
{
    char kept[PATH_MAX];
    keep = keep && version > 0 && steps[version] != NULL;
    int rc = keep ? keep_schema(store, steps, version, kept, err) : PMIXFAB_OK;
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_migrate(store, steps, err);
    if (rc != PMIXFAB_OK && keep)
        unlink(kept);
    return rc;
}

/*
 * Nothing is written before the database is known to be ours, intact and not newer. The lock comes first:
 * closing the descriptor in check_file() would drop SQLite's locks if this process had the database open
 * already.
 */
static int open_steps(struct store *store, const char *const *steps, bool keep, struct fab_err *err)
{
    struct store_bounds bounds;
    int version = 0;
    int rc = store_lock(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    store_undo_restore(store->path);
    rc = check_file(store, err)
             ?: store_examine(store, steps, &version, err)
             ?: store_connect(store, err)
             ?: store_configure(store, version == 0, err)
             ?: upgrade(store, steps, version, keep, err);
    if (rc != PMIXFAB_OK)
        return rc;
    int code = sqlite3_exec(store->db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return store_fail(store, code, "configuring", err);
    rc = store_bounds(store, &bounds, err) ?: make_shrinkable(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    store_log_know(store);
    return PMIXFAB_OK;
}

/* Open an empty store that is never written, in place of one that does not exist or cannot be read yet. */
static int open_nothing(struct store *store, struct fab_err *err)
{
    int code = sqlite3_open_v2(":memory:", &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    int rc =
        code == SQLITE_OK ? store_migrate(store, schema_sql, err) : store_fail(store, code, "opening", err);
    if (rc == PMIXFAB_OK)
        sqlite3_exec(store->db, "PRAGMA query_only = ON", NULL, NULL, NULL);
    return rc;
}

static int open_reading(struct store *store, struct fab_err *err)
{
    struct fab_err why;
    int version = 0;
    int rc = store_lock(store, &why);
    if (rc == PMIXFAB_ERR_BUSY)
        return fab_fail(err, rc, "%s", why.text);
    /* Without a lock, since the disk cannot be written. */
    rc = store_examine(store, schema_sql, &version, err);
    if (rc != PMIXFAB_OK)
        return rc;
    return version == store_count_steps(schema_sql) ? store_connect_reading(store, err)
                                                    : open_nothing(store, err);
}

/* why: the store is only read, for this reason; 0: it is writable. */
static int open_path(const char *path, const char *const *steps, bool keep, int why, struct store **out,
                     struct fab_err *err)
{
    *out = NULL;
    if (path == NULL || path[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store: no path given; set --store");
    struct store *store = calloc(1, sizeof *store);
    char *real = realpath(path, NULL); /* lock and log belong to the file, not to one of its names */
    if (real == NULL)
        real = strdup(path);
    if (store == NULL || real == NULL) {
        free(store);
        free(real);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", path);
    }
    store->lock_fd = -1;
    store->path = real;
    int rc = why != 0 ? open_reading(store, err) : open_steps(store, steps, keep, err);
    if (rc != PMIXFAB_OK) {
        store_close(store);
        return rc;
    }
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    store->reading = why;
    *out = store;
    return PMIXFAB_OK;
}

int store_open_schema(const char *path, const char *const *steps, bool keep, struct store **out,
                      struct fab_err *err)
{
    return open_path(path, steps, keep, 0, out, err);
}

int store_open(const char *path, struct store **out, struct fab_err *err)
{
    return open_path(path, schema_sql, true, 0, out, err);
}

int store_open_reading(const char *path, int why, struct store **out, struct fab_err *err)
{
    return open_path(path, schema_sql, false, why, out, err);
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    if (store->log.known)
        store_checkpoint(store, NULL); /* SQLite does it if no other process has the database open */
    store_disconnect(store);
    store_unlock(store);
    free(store->path);
    free(store);
}
