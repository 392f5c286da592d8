/*
 * store.c - open and close.
 *
 * Durability: WAL with synchronous=FULL. Each commit is on the disk before store_publish() returns, at the
 * price of one fsync of the log a publication. synchronous=NORMAL would survive a killed process as well, but
 * not a power cut: the last generations could be gone after they were announced, and their numbers given out
 * again.
 *
 * Integrity: before the open (store_examine.c) every page of what is served is walked (PRAGMA quick_check);
 * what the pages say is held against digests when it is loaded.
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
#include "fabricd/store/file_priv.h"
#include "fabricd/store/schema.h"
#include "fabricd/store/store_copy.h"
#include "fabricd/store/store_tables.h"

char *store_canonical_path(const char *path)
{
    char *real = realpath(path, NULL);
    return real != NULL ? real : strdup(path);
}

/* A power cut while the first page of a new store was written. SQLite takes the page back: its journal is
 * there. */
static bool check_is_cut_off(const struct store *store, const char head[512])
{
    static const char nothing[512];
    char journal[PATH_MAX];
    struct stat st;
    snprintf(journal, sizeof(journal), "%s-journal", store->path);
    return memcmp(head, nothing, sizeof(nothing)) == 0 && stat(journal, &st) == 0 && st.st_size > 0;
}

/*
 * A file that is there must be a database, or empty. Asked before SQLite is, which would take one of less
 * than its smallest page for empty, and overwrite it; and which leaves read-only files of its own beside one
 * that cannot be written.
 */
static int store_check_file(const struct store *store, struct fab_err *err)
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
                                (memcmp(head, magic, sizeof magic) != 0 && !check_is_cut_off(store, head))))
        rc = fab_fail(err, PMIXFAB_ERR_CORRUPT, "store %s: not a database: " STORE_RESTORE, store->path);
    close(fd);
    return rc;
}

/* "wal" where it is possible, else the mode that stays. */
static int set_wal(struct store *store, struct fab_err *err)
{
    char mode[16];
    int rc = store_ask(store, "PRAGMA journal_mode = WAL", mode, sizeof mode,
                       "switching to a write-ahead log", err);
    if (rc == PMIXFAB_OK && sqlite3_stricmp(mode, "wal") != 0)
        return fab_fail(
            err, PMIXFAB_ERR_IO,
            "store %s: its file system cannot hold a write-ahead log: put the store on a local one",
            store->path);
    return rc;
}

static int store_configure(struct store *store, bool fresh, struct fab_err *err)
{
    if (sqlite3_db_readonly(store->db, "main") != 0) /* BEGIN EXCLUSIVE would not say so */
        return store_fail(store, SQLITE_READONLY, "opening", err);
    /* Of one that is there this would write. */
    int rc =
        fresh ? sqlite3_exec(store->db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL) : SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(store->db,
                          "PRAGMA synchronous = FULL;"
                          "PRAGMA foreign_keys = OFF;" /* until the schema is up to date */
                          "PRAGMA trusted_schema = OFF;"
                          "PRAGMA cell_size_check = ON;"
                          "PRAGMA temp_store = MEMORY;"
                          "PRAGMA cache_size = -8192",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_autocheckpoint(store->db, STORE_WAL_PAGES);
    if (rc != SQLITE_OK)
        return store_fail(store, rc, "configuring", err);
    return set_wal(store, err);
}

/* A database of an older fabricd keeps the pages that become free. A large one stays so: making it anew would
 * delay the start. */
static int make_shrinkable(struct store *store, struct fab_err *err)
{
    struct store_pages pages;
    int rc = store_pages(store, &pages, err);
    if (rc != PMIXFAB_OK || pages.shrinks || pages.pages * pages.page_size > STORE_VACUUM_MAX)
        return rc;
    int code = sqlite3_exec(store->db, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", NULL, NULL, NULL);
    /* Without room for that it is as good as before. */
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_FULL && (code & 0xff) != SQLITE_IOERR)
        return store_fail(store, code, "making it anew", err);
    return PMIXFAB_OK;
}

/* Under the name of a restore's copy until it is whole: whoever opens the store next removes half a one. */
static int keep_schema(const struct store *store, const char *const *steps, int version, const char *kept,
                       struct fab_err *err)
{
    char copy[PATH_MAX];
    const struct store_copy order = {.from = store->path, .to = copy, .schema = steps};
    uint64_t bytes;
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
    log_info("store %s: its schema goes from %d to %d; as it was it is kept as %s", store->path, version,
             store_count_steps(steps), kept);
    return PMIXFAB_OK;
}

/* keep: what there was, beside it. */
static int upgrade(struct store *store, const char *const *steps, int version, bool keep, struct fab_err *err)
{
    char kept[PATH_MAX];
    int rc = PMIXFAB_OK;
    keep = keep && version > 0 && steps[version] != NULL;
    if (keep && store_name_before(kept, sizeof(kept), store->path, version) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %.200s...: the path is too long", store->path);
    if (keep)
        rc = keep_schema(store, steps, version, kept, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_migrate(store, steps, err);
    if (rc != PMIXFAB_OK && keep)
        unlink(kept);
    return rc;
}

/*
 * Nothing is written before it is certain that the database is ours, whole and not newer. The lock comes
 * first: closing the descriptor in store_check_file() would drop the locks of SQLite if this process had it
 * open already.
 */
static int open_steps(struct store *store, const char *const *steps, bool keep, struct fab_err *err)
{
    int version = 0;
    int rc = store_lock(store, err);
    if (rc == PMIXFAB_OK) {
        store_undo_restore(store->path);
        rc = store_check_file(store, err);
    }
    if (rc == PMIXFAB_OK)
        rc = store_examine(store, steps, &version, err);
    if (rc == PMIXFAB_OK)
        rc = store_connect(store, err);
    if (rc == PMIXFAB_OK)
        rc = store_configure(store, version == 0, err);
    if (rc == PMIXFAB_OK)
        rc = upgrade(store, steps, version, keep, err);
    if (rc != PMIXFAB_OK)
        return rc;
    int code = sqlite3_exec(store->db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return store_fail(store, code, "configuring", err);
    struct store_bounds bounds;
    rc = store_prepare_tables(store, err);
    if (rc == PMIXFAB_OK)
        rc = store_bounds(store, &bounds, err);
    if (rc == PMIXFAB_OK)
        rc = make_shrinkable(store, err);
    if (rc == PMIXFAB_OK) {
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        store_log_know(store);
    }
    return rc;
}

static int open_path(const char *path, const char *const *steps, bool keep, struct store **out,
                     struct fab_err *err)
{
    *out = NULL;
    if (path == NULL || path[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store: no path given; set --store");
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", path);
    store->lock_fd = -1;
    store->path = store_canonical_path(path);
    int rc = store->path == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", path)
                                 : open_steps(store, steps, keep, err);
    if (rc != PMIXFAB_OK) {
        store_close(store);
        return rc;
    }
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    *out = store;
    return PMIXFAB_OK;
}

int store_open_schema(const char *path, const char *const *steps, struct store **out, struct fab_err *err)
{
    return open_path(path, steps, true, out, err);
}

int store_open_copy(const char *path, struct store **out, struct fab_err *err)
{
    return open_path(path, schema_sql, false, out, err);
}

int store_open(const char *path, struct store **out, struct fab_err *err)
{
    return store_open_schema(path, schema_sql, out, err);
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    if (store->log.known)
        store_checkpoint(store, NULL); /* SQLite does it where nobody else has it open */
    store_disconnect(store);
    store_unlock(store);
    free(store->path);
    free(store);
}
