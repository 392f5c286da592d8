/*
 * store_schema.c - identify a database, migrate its schema, and compare it with the schema that fabricd's
 * steps make.
 *
 * The version (PRAGMA user_version) is the number of applied steps; the steps are the files of schema/. A
 * database may have any origin (a restored backup): a foreign trigger would run at each write, and could
 * delete the history.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/store/store_priv.h"

#define BEFORE_SCHEMA ".schema-" /* suffix of the store's name, followed by its former schema version */

int store_count_steps(const char *const *steps)
{
    int n = 0;
    while (steps[n] != NULL)
        n++;
    return n;
}

/* ---- the store before a migration: a copy beside it, kept for a while ---- */

int store_name_before(char *kept, size_t size, const char *path, int version)
{
    int n = snprintf(kept, size, "%s" BEFORE_SCHEMA "%d", path, version);
    return n > 0 && (size_t)n < size ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
}

void store_forget_kept(const struct store *store, int64_t before)
{
    char kept[PATH_MAX];
    struct stat st;
    for (int version = 1; schema_sql[version - 1] != NULL; version++)
        if (store_name_before(kept, sizeof(kept), store->path, version) == PMIXFAB_OK &&
            lstat(kept, &st) == 0 && S_ISREG(st.st_mode) && (int64_t)st.st_mtime * 1000000 < before &&
            unlink(kept) == 0)
            log_info("store %s: %s is removed for its age", store->path, kept);
}

/* Report that the schema is newer; name the newest kept store with a known schema, if there is one. */
static int schema_is_newer(const struct store *store, int64_t version, int known, struct fab_err *err)
{
    char kept[PATH_MAX], instead[PATH_MAX + 80] = "give this one its own --store";
    for (int v = known; v > 0; v--) {
        if (store_name_before(kept, sizeof(kept), store->path, v) != PMIXFAB_OK || access(kept, F_OK) != 0)
            continue;
        snprintf(instead, sizeof(instead), "use the old store: fabricd --restore %s", kept);
        break;
    }
    return fab_fail(
        err, PMIXFAB_ERR_NEWER,
        "store %s: written by a newer fabricd (schema %lld, this one supports %d); upgrade fabricd, or %s",
        store->path, (long long)version, known, instead);
}

/* ---- the version ---- */

/* Return the number that is the result of a query. */
static int query_number(struct store *store, const char *sql, int64_t *value, struct fab_err *err)
{
    char text[32];
    int rc = store_ask(store, sql, text, sizeof text, "opening", err);
    *value = rc == PMIXFAB_OK ? strtoll(text, NULL, 10) : 0;
    return rc;
}

int store_identify(struct store *store, const char *const *steps, int *version, struct fab_err *err)
{
    int64_t id, found, objects;
    int known = store_count_steps(steps);
    *version = 0;
    int rc = query_number(store, "PRAGMA application_id", &id, err)
                 ?: query_number(store, "PRAGMA user_version", &found, err)
                 ?: query_number(store, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (id == 0 && found == 0 && objects == 0)
        return PMIXFAB_OK; /* new */
    if (id != STORE_APPLICATION_ID)
        return fab_fail(
            err, PMIXFAB_ERR_FOREIGN,
            "store %s: an SQLite database of another program (application id 0x%08x); give fabricd its "
            "own --store",
            store->path, (unsigned)id);
    if (found > known)
        return schema_is_newer(store, found, known, err);
    if (found < 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "store %s: its schema version is %lld: restore it from a backup", store->path,
                        (long long)found);
    *version = (int)found;
    return PMIXFAB_OK;
}

static int execute(struct store *store, const char *sql, const char *doing, struct fab_err *err)
{
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? PMIXFAB_OK : store_fail(store, rc, doing, err);
}

/* Steps run without foreign keys, so all references are checked afterwards. */
static int check_references(struct store *store, struct fab_err *err)
{
    int64_t broken;
    int rc = query_number(store, "SELECT count(*) FROM pragma_foreign_key_check", &broken, err);
    if (rc == PMIXFAB_OK && broken != 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "store %s: %lld rows refer to missing rows: restore it from a backup", store->path,
                        (long long)broken);
    return rc;
}

static int run_steps(struct store *store, const char *const *steps, int known, struct fab_err *err)
{
    char text[96];
    int64_t version;
    /* Read again, now that no other process can migrate. */
    int rc = query_number(store, "PRAGMA user_version", &version, err);
    if (rc != PMIXFAB_OK || version == known)
        return rc;
    if (version > known)
        return schema_is_newer(store, version, known, err);
    for (int64_t i = version; rc == PMIXFAB_OK && i < known; i++) {
        snprintf(text, sizeof text, "bringing the schema to version %lld", (long long)i + 1);
        rc = execute(store, steps[i], text, err);
    }
    snprintf(text, sizeof text, "PRAGMA user_version = %d; PRAGMA application_id = %d", known,
             STORE_APPLICATION_ID);
    return rc ?: check_references(store, err) ?: execute(store, text, "writing the schema version", err);
}

int store_migrate(struct store *store, const char *const *steps, struct fab_err *err)
{
    int rc = execute(store, "BEGIN EXCLUSIVE", "beginning to write", err)
                 ?: run_steps(store, steps, store_count_steps(steps), err)
                 ?: execute(store, "COMMIT", "committing the schema", err);
    if (rc != PMIXFAB_OK && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* ---- comparison of the schema with that of the steps ---- */

void store_harden(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

/* Return the next significant character: versions of SQLite differ in blanks and quotes. */
static char schema_next(const char **at)
{
    for (;;) {
        const char c = **at;
        if (c == '\0')
            return '\0';
        if (c == '-' && (*at)[1] == '-') {
            *at += strcspn(*at, "\n");
            continue;
        }
        ++*at;
        if (strchr(" \t\r\n\"`[]", c) == NULL)
            return (char)tolower((unsigned char)c);
    }
}

static bool same_statement(const char *a, const char *b)
{
    char c = '\0';
    if (a == NULL || b == NULL)
        return a == b;
    while ((c = schema_next(&a)) == schema_next(&b))
        if (c == '\0')
            return true;
    return false;
}

/* Return whether the object is passive and references nothing: an index, a view or a table that an operator
 * has added. */
static bool is_harmless(const char *type, const char *sql)
{
    static const char virtual[] = "createvirtual";
    const char *at = sql;
    if (sql != NULL && strcmp(type, "view") == 0)
        return true; /* fabricd reads no view */
    if (sql == NULL || (strcmp(type, "table") != 0 && strcmp(type, "index") != 0) ||
        sqlite3_strlike("%references%", sql, 0) == 0)
        return false;
    for (const char *c = virtual; *c != '\0'; c++)
        if (schema_next(&at) != *c)
            return true;
    return false;
}

struct comparing {
    struct store *other;
    bool is_store; /* the objects are the store's, and `other` is the reference */
    bool strict;
};

static int compare_object(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    const struct comparing *comparing = cbdata;
    bool bad = false;
    const char *type = store_text(row, 0, &bad), *name = store_text(row, 1, &bad);
    const char *sql = (const char *)sqlite3_column_text(row, 2);
    sqlite3_stmt *find;
    int there = store_first(comparing->other, "SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2",
                            VALUES(TEXT(type), TEXT(name)), "comparing its schema", &find, err);
    const bool same = there == 1 && same_statement(sql, (const char *)sqlite3_column_text(find, 0));
    store_done(find);
    if (there < 0 || same || (!comparing->is_store && there == 1))
        return there < 0 ? there : PMIXFAB_OK;
    if (!comparing->is_store)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "store %s: its %s %.60s is missing: " STORE_RESTORE,
                        store->path, type, name);
    if (there == 1)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "store %s: its %s %.60s is not as fabricd made it: " STORE_RESTORE, store->path, type,
                        name);
    if (!comparing->strict && is_harmless(type, sql))
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_FOREIGN,
                    "store %s: the %.10s \"%.60s\" in it is not fabricd's, and could change stored data: "
                    "remove it with sqlite3 (DROP %.10s), or take another backup",
                    store->path, type, name, type);
}

/* Compare each object of one database with that of the other. */
static int compare_objects(struct store *one, struct comparing comparing, struct fab_err *err)
{
    return store_each(
        one, "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'", NULL,
        "comparing its schema", compare_object, &comparing, err);
}

int store_check_schema(struct store *store, const char *const *steps, int version, bool strict,
                       struct fab_err *err)
{
    struct store made = {.path = store->path, .lock_fd = -1}; /* made by the steps, in memory */
    int code = sqlite3_open_v2(":memory:", &made.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    for (int i = 0; code == SQLITE_OK && i < version; i++)
        code = sqlite3_exec(made.db, steps[i], NULL, NULL, NULL);
    int rc = code != SQLITE_OK ? store_fail(&made, code, "comparing its schema", err)
                               : compare_objects(store, (struct comparing){&made, true, strict}, err)
                                     ?: compare_objects(&made, (struct comparing){store, false, strict}, err);
    store_forget_statements(&made);
    sqlite3_close(made.db);
    return rc;
}
