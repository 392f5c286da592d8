/*
 * store_examine.c - is it a store that can be opened? Asked of a connection that changes nothing, neither in
 * the file nor beside it: opening a database makes files for its log anew, and closing it folds the log into
 * it, which is not to happen to one that is refused.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fabricd/store/file_priv.h"
#include "fabricd/store/store_tables.h"

/* "file:" and the path, whose characters mean nothing else there. */
static int examine_uri(const char *path, char *uri, size_t size)
{
    size_t n = (size_t)snprintf(uri, size, "file:");
    for (; *path != '\0' && n + 4 < size; path++)
        n += (size_t)snprintf(uri + n, size - n, strchr("%?#", *path) != NULL ? "%%%02x" : "%c",
                              (unsigned char)*path);
    return (size_t)snprintf(uri + n, size - n, "?immutable=1") < size - n ? SQLITE_OK : SQLITE_CANTOPEN;
}

static bool examine_is_there(const struct store *store, const char *behind)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof(path), "%s%s", store->path, behind);
    return stat(path, &st) == 0 && st.st_size > 0;
}

/*
 * A log is read with its index in memory: without locks, which somebody else's would need; the store's own
 * lock is held. Without a log the file is all there is. A transaction of before there was a log has to be
 * taken back first.
 */
int store_connect_reading(struct store *store, struct fab_err *err)
{
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    char uri[3 * PATH_MAX];
    int rc = SQLITE_OK;
    if (examine_is_there(store, "-journal")) {
        rc = sqlite3_open_v2(store->path, &store->db, (flags & ~SQLITE_OPEN_READONLY) | SQLITE_OPEN_READWRITE,
                             NULL);
    } else if (examine_is_there(store, "-wal")) {
        rc = sqlite3_open_v2(store->path, &store->db, flags, "unix-none");
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(store->db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
    } else {
        rc = examine_uri(store->path, uri, sizeof(uri));
        if (rc == SQLITE_OK)
            rc = sqlite3_open_v2(uri, &store->db, flags | SQLITE_OPEN_URI, NULL);
    }
    if (rc != SQLITE_OK)
        return store_fail(store, rc, "opening", err);
    store_harden(store->db);
    sqlite3_progress_handler(store->db, STORE_PROGRESS, store_on_progress, NULL);
    return PMIXFAB_OK;
}

/* The first complaint of one check, or success. */
static int examine_run(struct store *store, const char *check, struct fab_err *err)
{
    char said[160];
    int rc = store_ask(store, check, said, sizeof said, "checking its integrity", err);
    if (rc != PMIXFAB_OK || strcmp(said, "ok") == 0)
        return rc;
    for (char *end = said; (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
    return fab_fail(err, PMIXFAB_ERR_CORRUPT, "store %s: its integrity is broken (%s): " STORE_RESTORE,
                    store->path, said);
}

/*
 * Walk all pages. The history, generations too, grows and is not served, so a store that has become large is
 * walked without it: a broken page in there is found by whoever reads it. A database that is going to be
 * migrated is walked wholly.
 */
static int examine_pages(struct store *store, bool current, struct fab_err *err)
{
    static const char *const served[] = {
        "PRAGMA quick_check(plane)",   "PRAGMA quick_check(inventory)",
        "PRAGMA quick_check(subnet)",  "PRAGMA quick_check(node)",
        "PRAGMA quick_check(port)",    "PRAGMA quick_check(link)",
        "PRAGMA quick_check(history)", "PRAGMA quick_check(missing)",
        "PRAGMA quick_check(report)",  "PRAGMA quick_check(report_published)",
    };
    struct stat st;
    if (!current || stat(store->path, &st) != 0 || st.st_size <= STORE_CHECK_MAX)
        return examine_run(store, "PRAGMA quick_check(1)", err);
    int rc = PMIXFAB_OK;
    for (size_t i = 0; rc == PMIXFAB_OK && i < sizeof served / sizeof served[0]; i++)
        rc = examine_run(store, served[i], err);
    return rc;
}

static int examine_report(const struct store_report *report, void *cbdata)
{
    (void)report, (void)cbdata;
    return 0;
}

/* What is loaded at a start: its digests. Without a log that can wait until then, since nothing is changed.
 */
static int examine_rows(struct store *store, struct fab_err *err)
{
    struct store_plane *planes = NULL;
    struct fab_inventory inv;
    struct store_bounds bounds;
    uint32_t n = 0;
    int rc = store_prepare_tables(store, err);
    if (rc == PMIXFAB_OK)
        rc = store_bounds(store, &bounds, err);
    if (rc == PMIXFAB_OK)
        rc = store_load_planes(store, &planes, &n, err);
    store_planes_free(planes, n);
    if (rc == PMIXFAB_OK)
        rc = store_reports_load(store, examine_report, NULL, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_inventory_init(&inv);
    rc = store_load_inventory(store, &inv, err);
    fab_inventory_destroy(&inv);
    return rc;
}

int store_examine(struct store *store, const char *const *steps, int *version, struct fab_err *err)
{
    *version = 0;
    if (!examine_is_there(store, ""))
        return PMIXFAB_OK;
    int rc = store_connect_reading(store, err);
    if (rc == PMIXFAB_OK)
        rc = store_identify(store, steps, version, err);
    if (rc == PMIXFAB_OK && *version > 0)
        rc = store_check_schema(store, steps, *version, false, err);
    if (rc == PMIXFAB_OK && *version > 0)
        rc = examine_pages(store, steps[*version] == NULL, err);
    if (rc == PMIXFAB_OK && *version > 0 && steps[*version] == NULL && examine_is_there(store, "-wal"))
        rc = examine_rows(store, err);
    store_disconnect(store);
    return rc;
}
