/* store_absent.c - what is missing, and what was lost. Rarely asked: nothing is prepared beforehand. */
#include "fabricd/store/store_absent.h"

#include <stdio.h>
#include <stdlib.h>

#include "fabricd/store/tables_priv.h"

void retained_free(struct retained *missing)
{
    free(missing->places);
    *missing = (struct retained){0};
}

void absent_free(struct absent *absent)
{
    retained_free(&absent->missing);
    fab_lost_destroy(&absent->lost);
}

typedef int (*row_fn)(sqlite3_stmt *stmt, struct absent *out, bool *bad);

/* GUIDs are signed in the table, and come in their own order. */
static const char *const absent_missing_sql =
    "SELECT node, num, since, seen, counted, boot FROM missing ORDER BY node < 0, node, num";

static int absent_read_missing(sqlite3_stmt *stmt, struct absent *out, bool *bad)
{
    struct retained *missing = &out->missing;
    const char *boot = (const char *)sqlite3_column_text(stmt, 5);
    struct retained_place *larger = reallocarray(missing->places, (size_t)missing->n + 1, sizeof(*larger));
    if (larger == NULL)
        return PMIXFAB_ERR_NOMEM;
    missing->places = larger;
    missing->places[missing->n++] = (struct retained_place){.guid = (uint64_t)sqlite3_column_int64(stmt, 0),
                                                            .port = (uint32_t)store_number(stmt, 1, 254, bad),
                                                            .since = sqlite3_column_int64(stmt, 2),
                                                            .seen = sqlite3_column_int64(stmt, 3),
                                                            .counted = sqlite3_column_int64(stmt, 4)};
    snprintf(missing->boot, sizeof(missing->boot), "%s", boot == NULL ? "" : boot);
    return PMIXFAB_OK;
}

/* Both tables in the columns of struct fab_lost_item. */
static const char *const absent_nodes_sql =
    "SELECT guid, 0, 0, 0, host, name, nullif(kind, 0), 0, 0, generation, seen, forgotten FROM lost_node";
static const char *const absent_cables_sql = "SELECT a_node, a_num, b_node, b_num, a_text, b_text, 0, width, "
                                             "speed, generation, seen, forgotten FROM lost_cable";

static int absent_read_lost(sqlite3_stmt *stmt, struct absent *out, bool *bad)
{
    const struct fab_lost_item item = {
        .end = {{(uint64_t)sqlite3_column_int64(stmt, 0), (uint32_t)store_number(stmt, 1, 254, bad)},
                {(uint64_t)sqlite3_column_int64(stmt, 2), (uint32_t)store_number(stmt, 3, 254, bad)}},
        .text = {(char *)sqlite3_column_text(stmt, 4), (char *)sqlite3_column_text(stmt, 5)},
        .kind = (uint8_t)store_number(stmt, 6, FAB_HCA, bad),
        .width = (uint8_t)store_number(stmt, 7, UINT8_MAX, bad),
        .speed = (uint8_t)store_number(stmt, 8, FAB_SPEEDS - 1, bad),
        .generation = store_number(stmt, 9, STORE_MAX_GENERATION, bad),
        .seen = sqlite3_column_int64(stmt, 10),
        .forgotten = store_number(stmt, 11, 1, bad) != 0};
    *bad |= item.text[0] == NULL || item.text[1] == NULL;
    return *bad ? PMIXFAB_OK : fab_lost_add(&out->lost, &item);
}

static int absent_read_rows(struct store *store, const char *sql, const char *doing, row_fn fn,
                            struct absent *out, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    bool bad = false;
    int rc = store_prepare_one(store, sql, &stmt, err);
    while (rc == PMIXFAB_OK && !bad && (rc = store_step(store, stmt, doing, err)) == 1) {
        rc = fn(stmt, out, &bad);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "store: out of memory");
    }
    sqlite3_finalize(stmt);
    return !bad ? rc
                : fab_fail(err, PMIXFAB_ERR_CORRUPT,
                           "store %s: what was lost is not what was written: " STORE_RESTORE, store->path);
}

int store_absent_load(struct store *store, struct absent *out, struct fab_err *err)
{
    *out = (struct absent){0};
    int rc =
        absent_read_rows(store, absent_missing_sql, "reading what is missing", absent_read_missing, out, err);
    if (rc == PMIXFAB_OK)
        rc = absent_read_rows(store, absent_nodes_sql, "reading what was lost", absent_read_lost, out, err);
    if (rc == PMIXFAB_OK)
        rc = absent_read_rows(store, absent_cables_sql, "reading what was lost", absent_read_lost, out, err);
    if (rc == PMIXFAB_OK)
        fab_lost_finish(&out->lost);
    else
        absent_free(out);
    return rc;
}

static int absent_write_missing(struct store *store, const struct retained *missing, struct fab_err *err)
{
    sqlite3_stmt *clear, *put = NULL;
    int rc = store_prepare_one(store, "DELETE FROM missing", &clear, err);
    if (rc == PMIXFAB_OK)
        rc = store_prepare_one(store,
                               "INSERT INTO missing (node, num, since, seen, counted, boot)"
                               " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                               &put, err);
    if (rc == PMIXFAB_OK)
        rc = store_run(store, clear, SQLITE_OK, "writing what is missing", err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < missing->n; i++) {
        const struct retained_place *place = &missing->places[i];
        int bound = sqlite3_bind_int64(put, 1, (int64_t)place->guid);
        bound |= sqlite3_bind_int64(put, 2, place->port);
        bound |= sqlite3_bind_int64(put, 3, place->since);
        bound |= sqlite3_bind_int64(put, 4, place->seen);
        bound |= sqlite3_bind_int64(put, 5, place->counted);
        bound |= store_bind_text(put, 6, missing->boot);
        rc = store_run_one(store, put, bound, "writing what is missing", err);
    }
    sqlite3_finalize(clear);
    sqlite3_finalize(put);
    return rc;
}

/* The columns as absent_read_lost() has them; those of the key alone, where the statement has no more. */
static int absent_write_lost(struct store *store, sqlite3_stmt *stmt, const struct fab_lost_item *item,
                             struct fab_err *err)
{
    const int n = sqlite3_bind_parameter_count(stmt);
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)item->end[0].guid);
    if (n > 1) {
        bound |= sqlite3_bind_int64(stmt, 2, item->end[0].num);
        bound |= sqlite3_bind_int64(stmt, 3, (int64_t)item->end[1].guid);
        bound |= sqlite3_bind_int64(stmt, 4, item->end[1].num);
    }
    if (n > 4) {
        bound |= store_bind_text(stmt, 5, item->text[0]);
        bound |= store_bind_text(stmt, 6, item->text[1]);
        bound |= sqlite3_bind_int(stmt, 7, item->kind);
        bound |= sqlite3_bind_int(stmt, 8, item->width);
        bound |= sqlite3_bind_int(stmt, 9, item->speed);
        bound |= sqlite3_bind_int64(stmt, 10, (int64_t)item->generation);
        bound |= sqlite3_bind_int64(stmt, 11, item->seen);
        bound |= sqlite3_bind_int(stmt, 12, item->forgotten);
    }
    return store_run(store, stmt, bound, "writing what was lost", err);
}

/* Of two with the same ends. */
static bool absent_same_lost(const struct fab_lost_item *a, const struct fab_lost_item *b)
{
    return a->generation == b->generation && a->seen == b->seen && a->kind == b->kind &&
           a->forgotten == b->forgotten && a->width == b->width && a->speed == b->speed &&
           strcmp(a->text[0], b->text[0]) == 0 && strcmp(a->text[1], b->text[1]) == 0;
}

static int absent_write_list(struct store *store, const char *put_sql, const char *drop_sql,
                             const struct fab_lost_list *before, const struct fab_lost_list *after,
                             struct fab_err *err)
{
    sqlite3_stmt *put = NULL, *drop = NULL;
    uint32_t b = 0, a = 0;
    if (before->n + after->n == 0)
        return PMIXFAB_OK;
    int rc = store_prepare_one(store, put_sql, &put, err);
    if (rc == PMIXFAB_OK)
        rc = store_prepare_one(store, drop_sql, &drop, err);
    while (rc == PMIXFAB_OK && (b < before->n || a < after->n)) {
        int order = b == before->n  ? 1
                    : a == after->n ? -1
                                    : fab_lost_order(&before->items[b], &after->items[a]);
        if (order < 0)
            rc = absent_write_lost(store, drop, &before->items[b], err);
        else if (order > 0 || !absent_same_lost(&before->items[b], &after->items[a]))
            rc = absent_write_lost(store, put, &after->items[a], err);
        b += order <= 0;
        a += order >= 0;
    }
    sqlite3_finalize(put);
    sqlite3_finalize(drop);
    return rc;
}

int store_write_absent(struct store *store, const struct absent *before, const struct absent *after,
                       bool lost, struct fab_err *err)
{
    int rc = absent_write_missing(store, &after->missing, err);
    if (rc == PMIXFAB_OK && lost)
        rc = absent_write_list(
            store,
            "INSERT OR REPLACE INTO lost_node (guid, host, name, kind, generation, seen, forgotten)"
            " VALUES (?1, ?5, ?6, ?7, ?10, ?11, ?12)",
            "DELETE FROM lost_node WHERE guid = ?1", &before->lost.nodes, &after->lost.nodes, err);
    if (rc == PMIXFAB_OK && lost)
        rc = absent_write_list(
            store,
            "INSERT OR REPLACE INTO lost_cable (a_node, a_num, b_node, b_num, a_text, b_text, width, speed,"
            " generation, seen, forgotten) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?8, ?9, ?10, ?11, ?12)",
            "DELETE FROM lost_cable WHERE a_node = ?1 AND a_num = ?2 AND b_node = ?3 AND b_num = ?4",
            &before->lost.cables, &after->lost.cables, err);
    return rc;
}

int store_lost_put(struct store *store, const struct absent *before, const struct absent *after,
                   struct fab_err *err)
{
    int rc = store_begin(store, err);
    return rc == PMIXFAB_OK ? store_end(store, store_write_absent(store, before, after, true, err), err) : rc;
}
