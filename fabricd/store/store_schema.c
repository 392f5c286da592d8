/*
 * store_schema.c - is the schema of a database the one that fabricd's steps make? A database may come from
 * anybody (a backup that is restored): a trigger of its own would run at each write, and could delete the
 * history.
 */
#include <ctype.h>
#include <string.h>

#include "fabricd/store/file_priv.h"

void store_harden(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

/* The next character that means something: versions of SQLite write blanks and quotes otherwise. */
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

/* Does nothing by itself, and refers to nothing: an index, a view or a table that an operator has added. */
static bool is_harmless(const char *type, const char *sql)
{
    static const char virtual[] = "createvirtual";
    const char *at = sql;
    if (sql != NULL && strcmp(type, "view") == 0)
        return true; /* fabricd reads none */
    if (sql == NULL || (strcmp(type, "table") != 0 && strcmp(type, "index") != 0) ||
        sqlite3_strlike("%references%", sql, 0) == 0)
        return false;
    for (const char *c = virtual; *c != '\0'; c++)
        if (schema_next(&at) != *c)
            return true;
    return false;
}

/* The schema of this version, as a database in memory. */
static int schema_expected(struct store *store, const char *const *steps, int version, sqlite3 **out,
                           struct fab_err *err)
{
    int rc = sqlite3_open_v2(":memory:", out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    for (int i = 0; rc == SQLITE_OK && i < version; i++)
        rc = sqlite3_exec(*out, steps[i], NULL, NULL, NULL);
    return rc == SQLITE_OK ? PMIXFAB_OK : store_fail(store, rc, "comparing its schema", err);
}

/* Each object of one database against the other's. is_store: of the store, else of the expected schema. */
static int schema_compare(struct store *store, sqlite3 *one, sqlite3 *other, bool is_store, bool strict,
                          struct fab_err *err)
{
    sqlite3_stmt *all = NULL, *find = NULL;
    int result = PMIXFAB_OK, step = SQLITE_DONE;
    int rc = sqlite3_prepare_v2(
        one, "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'", -1,
        &all, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(other, "SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2", -1,
                                &find, NULL);
    while (rc == SQLITE_OK && result == PMIXFAB_OK && (step = sqlite3_step(all)) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(all, 0),
                   *name = (const char *)sqlite3_column_text(all, 1),
                   *sql = (const char *)sqlite3_column_text(all, 2);
        type = type == NULL ? "" : type;
        name = name == NULL ? "" : name;
        rc = store_bind_text(find, 1, type) | store_bind_text(find, 2, name);
        const bool there = rc == SQLITE_OK && sqlite3_step(find) == SQLITE_ROW;
        const bool same = there && same_statement(sql, (const char *)sqlite3_column_text(find, 0));
        if (!is_store && !there)
            result = fab_fail(err, PMIXFAB_ERR_CORRUPT, "store %s: its %s %.60s is not there: " STORE_RESTORE,
                              store->path, type, name);
        else if (is_store && there && !same)
            result = fab_fail(err, PMIXFAB_ERR_CORRUPT,
                              "store %s: its %s %.60s is not as fabricd has made it: " STORE_RESTORE,
                              store->path, type, name);
        else if (is_store && !there && (strict || !is_harmless(type, sql)))
            result = fab_fail(
                err, PMIXFAB_ERR_FOREIGN,
                "store %s: the %.10s \"%.60s\" in it is not fabricd's, and could change what is stored: "
                "remove it with sqlite3 (DROP %.10s), or take another backup",
                store->path, type, name, type);
        sqlite3_reset(find);
    }
    if (rc == SQLITE_OK && result == PMIXFAB_OK && step != SQLITE_DONE)
        rc = step;
    sqlite3_finalize(all);
    sqlite3_finalize(find);
    return rc != SQLITE_OK ? store_fail(store, rc, "comparing its schema", err) : result;
}

int store_check_schema(struct store *store, const char *const *steps, int version, bool strict,
                       struct fab_err *err)
{
    sqlite3 *expected = NULL;
    int rc = schema_expected(store, steps, version, &expected, err);
    if (rc == PMIXFAB_OK)
        rc = schema_compare(store, store->db, expected, true, strict, err);
    if (rc == PMIXFAB_OK)
        rc = schema_compare(store, expected, store->db, false, strict, err);
    sqlite3_close(expected);
    return rc;
}
