/*
 * store_migrate.c - whose database it is, and bringing its schema up to date.
 *
 * The version (PRAGMA user_version) is the number of steps that were applied; the steps are the files of
 * schema/.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/store/file_priv.h"

int store_count_steps(const char *const *steps)
{
    int n = 0;
    while (steps[n] != NULL)
        n++;
    return n;
}

/* The one number that a query gives. */
static int migrate_query_number(struct store *store, const char *sql, int64_t *value, struct fab_err *err)
{
    char text[32];
    int rc = store_ask(store, sql, text, sizeof text, "opening", err);
    if (rc == PMIXFAB_OK)
        *value = strtoll(text, NULL, 10);
    return rc;
}

static int migrate_schema_newer(const struct store *store, int64_t version, int known, struct fab_err *err)
{
    char kept[PATH_MAX];
    if (store_kept_for(store->path, known, kept, sizeof(kept)))
        return fab_fail(
            err, PMIXFAB_ERR_NEWER,
            "store %s: written by a newer fabricd (schema %lld, this one knows %d); upgrade fabricd, or "
            "go back to the store as it was before: fabricd --restore %s",
            store->path, (long long)version, known, kept);
    return fab_fail(
        err, PMIXFAB_ERR_NEWER,
        "store %s: written by a newer fabricd (schema %lld, this one knows %d); upgrade fabricd, or "
        "give this one its own --store",
        store->path, (long long)version, known);
}

int store_identify(struct store *store, const char *const *steps, int *version, struct fab_err *err)
{
    int64_t id = 0, found = 0, objects = 0;
    int known = store_count_steps(steps);
    int rc = migrate_query_number(store, "PRAGMA application_id", &id, err);
    if (rc == PMIXFAB_OK)
        rc = migrate_query_number(store, "PRAGMA user_version", &found, err);
    if (rc == PMIXFAB_OK)
        rc = migrate_query_number(store, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (rc != PMIXFAB_OK)
        return rc;

    *version = 0;
    if (id == 0 && found == 0 && objects == 0)
        return PMIXFAB_OK; /* new */
    if (id != STORE_APPLICATION_ID)
        return fab_fail(
            err, PMIXFAB_ERR_FOREIGN,
            "store %s: an SQLite database of another program (application id 0x%08x); give fabricd its "
            "own --store",
            store->path, (unsigned)id);
    if (found > known)
        return migrate_schema_newer(store, found, known, err);
    if (found < 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "store %s: its schema version is %lld: restore it from a backup", store->path,
                        (long long)found);
    *version = (int)found;
    return PMIXFAB_OK;
}

static int migrate_execute(struct store *store, const char *sql, const char *doing, struct fab_err *err)
{
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? PMIXFAB_OK : store_fail(store, rc, doing, err);
}

/* Steps run without foreign keys, so what they leave is checked as a whole. */
static int check_references(struct store *store, struct fab_err *err)
{
    int64_t broken = 0;
    int rc = migrate_query_number(store, "SELECT count(*) FROM pragma_foreign_key_check", &broken, err);
    if (rc == PMIXFAB_OK && broken != 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "store %s: %lld rows refer to rows that are not there: restore it from a backup",
                        store->path, (long long)broken);
    return rc;
}

static int migrate_run_steps(struct store *store, const char *const *steps, int known, struct fab_err *err)
{
    int64_t version = 0;
    /* Read again: only now is it certain that nobody else migrates. */
    int rc = migrate_query_number(store, "PRAGMA user_version", &version, err);
    if (rc != PMIXFAB_OK || version == known)
        return rc;
    if (version > known)
        return migrate_schema_newer(store, version, known, err);
    for (int64_t i = version; i < known; i++) {
        char doing[64];
        snprintf(doing, sizeof doing, "bringing the schema to version %lld", (long long)i + 1);
        rc = migrate_execute(store, steps[i], doing, err);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    rc = check_references(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    char sql[96];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d; PRAGMA application_id = %d", known,
             STORE_APPLICATION_ID);
    return migrate_execute(store, sql, "writing the schema version", err);
}

int store_migrate(struct store *store, const char *const *steps, struct fab_err *err)
{
    int rc = migrate_execute(store, "BEGIN EXCLUSIVE", "beginning to write", err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = migrate_run_steps(store, steps, store_count_steps(steps), err);
    if (rc == PMIXFAB_OK)
        rc = migrate_execute(store, "COMMIT", "committing the schema", err);
    if (rc != PMIXFAB_OK && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
