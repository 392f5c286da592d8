/* store_history.c - generations, and what each of them changed. */
#include "fabricd/store_priv.h"

int store_history_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->newest, "SELECT generation, published FROM generation ORDER BY generation DESC LIMIT 1"},
        {&store->generation_insert,
         "INSERT INTO generation (generation, published, partial) VALUES (?1, ?2, ?3)"},
        {&store->change_insert, "INSERT INTO change (generation, seq, kind, what, before, after)"
                                " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
        {&store->changes,
         "SELECT generation, published, kind, what, before, after"
         " FROM change JOIN generation USING (generation)"
         " WHERE generation > ?1 AND generation <= ?2 AND (?3 IS NULL OR instr(what, ?3) > 0)"
         " ORDER BY generation, seq"},
        {&store->changes_newest, "SELECT generation, published, kind, what, before, after FROM"
                                 " (SELECT * FROM change WHERE generation > ?1 AND generation <= ?2"
                                 "  AND (?3 IS NULL OR instr(what, ?3) > 0)"
                                 "  ORDER BY generation DESC, seq DESC LIMIT ?4)"
                                 " JOIN generation USING (generation) ORDER BY generation, seq"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

int store_generation(struct store *store, uint64_t *generation, int64_t *published, struct fab_err *err)
{
    if (store == NULL || generation == NULL || published == NULL)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store: not open, or no place for the generation");
    *generation = 0;
    *published = 0;
    int rc = store_step(store, store->newest, "reading the generation", err);
    if (rc == 1) {
        *generation = (uint64_t)sqlite3_column_int64(store->newest, 0);
        *published = sqlite3_column_int64(store->newest, 1);
    }
    sqlite3_reset(store->newest);
    return rc == 1 ? PMIXFAB_OK : rc;
}

static int write_change(struct store *store, uint64_t generation, uint32_t seq,
                        const struct fab_change *change, struct fab_err *err)
{
    sqlite3_stmt *stmt = store->change_insert;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)generation);
    bound |= sqlite3_bind_int64(stmt, 2, seq);
    bound |= store_bind_text(stmt, 3, fab_change_name(change->kind));
    bound |= store_bind_text(stmt, 4, change->what);
    bound |= store_bind_text(stmt, 5, change->before);
    bound |= store_bind_text(stmt, 6, change->after);
    return store_run_one(store, stmt, bound, "writing the history", err);
}

int store_write_generation(struct store *store, const struct store_publication *publication,
                           struct fab_err *err)
{
    sqlite3_stmt *stmt = store->generation_insert;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)publication->generation);
    bound |= sqlite3_bind_int64(stmt, 2, publication->published);
    bound |= sqlite3_bind_int(stmt, 3, publication->partial);
    int rc = store_run_one(store, stmt, bound, "writing the generation", err);
    const struct fab_diff *diff = publication->diff;
    for (uint32_t i = 0; rc == PMIXFAB_OK && diff != NULL && i < diff->n; i++)
        rc = write_change(store, publication->generation, i, &diff->changes[i], err);
    return rc;
}

static const char *text(sqlite3_stmt *stmt, int column)
{
    const char *said = (const char *)sqlite3_column_text(stmt, column);
    return said == NULL ? "" : said;
}

int store_history(struct store *store, uint64_t from, uint64_t to, const char *what, uint32_t limit,
                  store_change_fn fn, void *cbdata, struct fab_err *err)
{
    if (store == NULL || fn == NULL)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store: not open, or nobody to tell the history to");
    sqlite3_stmt *stmt = limit == 0 ? store->changes : store->changes_newest;
    int rc = sqlite3_bind_int64(stmt, 1, from > INT64_MAX ? INT64_MAX : (int64_t)from);
    rc |= sqlite3_bind_int64(stmt, 2, to > INT64_MAX ? INT64_MAX : (int64_t)to);
    rc |= what == NULL ? sqlite3_bind_null(stmt, 3) : store_bind_text(stmt, 3, what);
    if (limit != 0)
        rc |= sqlite3_bind_int64(stmt, 4, limit);
    if (rc != SQLITE_OK)
        rc = store_fail(store, rc, "reading the history", err);
    else
        rc = store_step(store, stmt, "reading the history", err);
    while (rc == 1) {
        const struct store_change change = {
            .generation = (uint64_t)sqlite3_column_int64(stmt, 0),
            .time = sqlite3_column_int64(stmt, 1),
            .kind = text(stmt, 2),
            .what = text(stmt, 3),
            .before = text(stmt, 4),
            .after = text(stmt, 5),
        };
        rc = fn(&change, cbdata) != 0 ? PMIXFAB_OK : store_step(store, stmt, "reading the history", err);
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc;
}
