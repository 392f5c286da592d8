/* store_lost.c - what was lost. Rarely asked: nothing is prepared beforehand. */
#include "fabricd/store/store_retired.h"

#include <string.h>

#include "fabricd/store/handle.h"

static int retired_prepare(struct store *store, const char *sql, sqlite3_stmt **stmt, struct fab_err *err)
{
    const struct store_sql one = {stmt, sql};
    *stmt = NULL;
    return store_prepare(store, &one, 1, err);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static char *retired_column_text(sqlite3_stmt *stmt, int column, bool *bad)
{
    char *said = (char *)sqlite3_column_text(stmt, column);
    *bad |= said == NULL;
    return said;
}

typedef int (*row_fn)(sqlite3_stmt *stmt, struct fab_retired *out, bool *bad);

static int retired_read_node(sqlite3_stmt *stmt, struct fab_retired *out, bool *bad)
{
    const struct fab_retired_node node = {.guid = (uint64_t)sqlite3_column_int64(stmt, 0),
                                          .kind = (uint8_t)store_number(stmt, 1, FAB_HCA, bad),
                                          .host = retired_column_text(stmt, 2, bad),
                                          .name = retired_column_text(stmt, 3, bad),
                                          .generation = store_number(stmt, 4, STORE_MAX_GENERATION, bad),
                                          .seen = sqlite3_column_int64(stmt, 5)};
    *bad |= node.kind != FAB_SWITCH && node.kind != FAB_HCA;
    return *bad ? PMIXFAB_OK : fab_retired_add_node(out, &node);
}

static int read_cable(sqlite3_stmt *stmt, struct fab_retired *out, bool *bad)
{
    const struct fab_retired_cable cable = {
        .end = {{(uint64_t)sqlite3_column_int64(stmt, 0), (uint32_t)store_number(stmt, 1, 254, bad)},
                {(uint64_t)sqlite3_column_int64(stmt, 2), (uint32_t)store_number(stmt, 3, 254, bad)}},
        .text = {retired_column_text(stmt, 4, bad), retired_column_text(stmt, 5, bad)},
        .width = (uint8_t)store_number(stmt, 6, UINT8_MAX, bad),
        .speed = (uint8_t)store_number(stmt, 7, FAB_SPEEDS - 1, bad),
        .generation = store_number(stmt, 8, STORE_MAX_GENERATION, bad),
        .seen = sqlite3_column_int64(stmt, 9)};
    return *bad ? PMIXFAB_OK : fab_retired_add_cable(out, &cable);
}

static int read_rows(struct store *store, const char *sql, row_fn fn, struct fab_retired *out,
                     struct fab_err *err)
{
    sqlite3_stmt *stmt;
    bool bad = false;
    int rc = retired_prepare(store, sql, &stmt, err);
    while (rc == PMIXFAB_OK && !bad && (rc = store_step(store, stmt, "reading what was lost", err)) == 1) {
        rc = fn(stmt, out, &bad);
        if (rc != PMIXFAB_OK)
            fab_fail(err, rc, "store: out of memory");
    }
    sqlite3_finalize(stmt);
    return !bad ? rc
                : fab_fail(err, PMIXFAB_ERR_CORRUPT,
                           "store %s: what was lost is not what was written: " STORE_RESTORE, store->path);
}

int store_retired_load(struct store *store, struct fab_retired *out, struct fab_err *err)
{
    *out = (struct fab_retired){0};
    int rc = read_rows(store, "SELECT guid, kind, host, name, generation, seen FROM lost_node",
                       retired_read_node, out, err);
    if (rc == PMIXFAB_OK)
        rc = read_rows(store,
                       "SELECT a_node, a_num, b_node, b_num, a_text, b_text, width, speed, generation, seen"
                       " FROM lost_cable",
                       read_cable, out, err);
    if (rc == PMIXFAB_OK)
        fab_retired_finish(out);
    else
        fab_retired_destroy(out);
    return rc;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

struct writing {
    struct store *store;
    sqlite3_stmt *put, *drop;
    struct fab_err *err;
};

static int write_node(struct writing *w, const struct fab_retired_node *node, bool drop)
{
    sqlite3_stmt *stmt = drop ? w->drop : w->put;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)node->guid);
    if (!drop) {
        bound |= sqlite3_bind_int(stmt, 2, node->kind);
        bound |= store_bind_text(stmt, 3, node->host);
        bound |= store_bind_text(stmt, 4, node->name);
        bound |= sqlite3_bind_int64(stmt, 5, (int64_t)node->generation);
        bound |= sqlite3_bind_int64(stmt, 6, node->seen);
    }
    return store_run(w->store, stmt, bound, "writing what was lost", w->err);
}

static int write_cable(struct writing *w, const struct fab_retired_cable *cable, bool drop)
{
    sqlite3_stmt *stmt = drop ? w->drop : w->put;
    int bound = SQLITE_OK;
    for (int i = 0; i < 2; i++) {
        bound |= sqlite3_bind_int64(stmt, 2 * i + 1, (int64_t)cable->end[i].guid);
        bound |= sqlite3_bind_int64(stmt, 2 * i + 2, cable->end[i].num);
        if (!drop)
            bound |= store_bind_text(stmt, 5 + i, cable->text[i]);
    }
    if (!drop) {
        bound |= sqlite3_bind_int(stmt, 7, cable->width);
        bound |= sqlite3_bind_int(stmt, 8, cable->speed);
        bound |= sqlite3_bind_int64(stmt, 9, (int64_t)cable->generation);
        bound |= sqlite3_bind_int64(stmt, 10, cable->seen);
    }
    return store_run(w->store, stmt, bound, "writing what was lost", w->err);
}

static bool retired_same_node(const struct fab_retired_node *a, const struct fab_retired_node *b)
{
    return a->generation == b->generation && a->seen == b->seen && a->kind == b->kind &&
           strcmp(a->host, b->host) == 0 && strcmp(a->name, b->name) == 0;
}

static bool same_cable(const struct fab_retired_cable *a, const struct fab_retired_cable *b)
{
    return a->generation == b->generation && a->seen == b->seen && a->width == b->width &&
           a->speed == b->speed && strcmp(a->text[0], b->text[0]) == 0 && strcmp(a->text[1], b->text[1]) == 0;
}

static int retired_write_nodes(struct writing *w, const struct fab_retired *before,
                               const struct fab_retired *after)
{
    uint32_t b = 0, a = 0;
    int rc = PMIXFAB_OK;
    while (rc == PMIXFAB_OK && (b < before->n_nodes || a < after->n_nodes)) {
        int order = b == before->n_nodes  ? 1
                    : a == after->n_nodes ? -1
                                          : fab_retired_order_nodes(&before->nodes[b], &after->nodes[a]);
        if (order < 0)
            rc = write_node(w, &before->nodes[b], true);
        else if (order > 0 || !retired_same_node(&before->nodes[b], &after->nodes[a]))
            rc = write_node(w, &after->nodes[a], false);
        b += order <= 0;
        a += order >= 0;
    }
    return rc;
}

static int write_cables(struct writing *w, const struct fab_retired *before, const struct fab_retired *after)
{
    uint32_t b = 0, a = 0;
    int rc = PMIXFAB_OK;
    while (rc == PMIXFAB_OK && (b < before->n_cables || a < after->n_cables)) {
        int order = b == before->n_cables  ? 1
                    : a == after->n_cables ? -1
                                           : fab_retired_order_cables(&before->cables[b], &after->cables[a]);
        if (order < 0)
            rc = write_cable(w, &before->cables[b], true);
        else if (order > 0 || !same_cable(&before->cables[b], &after->cables[a]))
            rc = write_cable(w, &after->cables[a], false);
        b += order <= 0;
        a += order >= 0;
    }
    return rc;
}

static int write_table(struct store *store, const char *put, const char *drop,
                       int (*write)(struct writing *, const struct fab_retired *, const struct fab_retired *),
                       const struct fab_retired *before, const struct fab_retired *after, struct fab_err *err)
{
    struct writing w = {.store = store, .err = err};
    int rc = retired_prepare(store, put, &w.put, err);
    if (rc == PMIXFAB_OK)
        rc = retired_prepare(store, drop, &w.drop, err);
    if (rc == PMIXFAB_OK)
        rc = write(&w, before, after);
    sqlite3_finalize(w.put);
    sqlite3_finalize(w.drop);
    return rc;
}

int store_write_retired(struct store *store, const struct fab_retired *before,
                        const struct fab_retired *after, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    if (before->n_nodes + after->n_nodes > 0)
        rc = write_table(store,
                         "INSERT OR REPLACE INTO lost_node (guid, kind, host, name, generation, seen)"
                         " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                         "DELETE FROM lost_node WHERE guid = ?1", retired_write_nodes, before, after, err);
    if (rc == PMIXFAB_OK && before->n_cables + after->n_cables > 0)
        rc = write_table(
            store,
            "INSERT OR REPLACE INTO lost_cable (a_node, a_num, b_node, b_num, a_text, b_text, width, speed,"
            " generation, seen) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            "DELETE FROM lost_cable WHERE a_node = ?1 AND a_num = ?2 AND b_node = ?3 AND b_num = ?4",
            write_cables, before, after, err);
    return rc;
}
