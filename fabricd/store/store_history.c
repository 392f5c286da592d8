/* store_history.c - generations, and what each of them changed. */
#include <stdlib.h>

#include "fabricd/store/store_renames.h"
#include "fabricd/store/tables_priv.h"

#define COLUMNS                                                                                              \
    "SELECT generation, published, kind, what, before, after, why, planned, first_seen, last_seen, "         \
    "subjects, seq"
#define IN_RANGE "(generation, seq) >= (?1, ?2) AND (generation, seq) < (?4, ?5)"
#define IN_TEXT  "(?3 IS NULL OR instr(what, ?3) > 0 OR instr(before, ?3) > 0 OR instr(after, ?3) > 0)"

/* Those that are about nobody by name, and what is told of all that were found. */
#define OTHERS                                                                                               \
    "  UNION SELECT generation, seq FROM subject JOIN change USING (generation, seq)"                        \
    "  WHERE name = '' AND " IN_RANGE " AND instr(what, ?3) > 0"                                             \
    "  ORDER BY generation DESC, seq DESC LIMIT ?6)"                                                         \
    " JOIN change USING (generation, seq) JOIN generation USING (generation)"                                \
    " ORDER BY generation, seq"

int store_history_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->newest, "SELECT generation, published FROM generation ORDER BY generation DESC LIMIT 1"},
        {&store->generation_insert,
         "INSERT INTO generation (generation, published, partial) VALUES (?1, ?2, ?3)"},
        {&store->change_insert,
         "INSERT INTO change (generation, seq, kind, what, before, after, why, planned,"
         " first_seen, last_seen, subjects)"
         " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"},
        {&store->subject_insert, "INSERT INTO subject (name, generation, seq) VALUES (?1, ?2, ?3)"},
        {&store->subject_known, "SELECT EXISTS (SELECT 1 FROM renamed WHERE former = ?1)"
                                " OR EXISTS (SELECT 1 FROM renamed WHERE name = ?1)"
                                " FROM subject WHERE name = ?1 LIMIT 1"},
        {&store->changes, COLUMNS " FROM change JOIN generation USING (generation)"
                                  " WHERE " IN_RANGE " AND " IN_TEXT " ORDER BY generation, seq LIMIT ?6"},
        {&store->changes_newest, COLUMNS " FROM (SELECT * FROM change WHERE " IN_RANGE " AND " IN_TEXT
                                         "  ORDER BY generation DESC, seq DESC LIMIT ?6)"
                                         " JOIN generation USING (generation) ORDER BY generation, seq"},
        {&store->changes_about, COLUMNS " FROM (SELECT generation, seq FROM subject"
                                        "  WHERE name = ?3 AND " IN_RANGE OTHERS},
        {&store->changes_line,
         STORE_LINE COLUMNS " FROM (SELECT generation, seq FROM line JOIN subject USING (name)"
                            "  WHERE generation > after AND generation <= until AND " IN_RANGE OTHERS},
        {&store->changes_behind, "SELECT generation, seq FROM change WHERE " IN_RANGE " AND ?3 IS NULL"
                                 " ORDER BY generation DESC, seq DESC LIMIT 1 OFFSET ?6"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

int store_generation(struct store *store, uint64_t *generation, int64_t *published, struct fab_err *err)
{
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

int store_generation_before(struct store *store, int64_t time, uint64_t *generation, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    *generation = 0;
    int rc =
        store_prepare_one(store, "SELECT max(generation) FROM generation WHERE published < ?1", &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = sqlite3_bind_int64(stmt, 1, time);
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the generation", err)
                         : store_step(store, stmt, "reading the generation", err);
    if (rc == 1)
        *generation = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return rc < 0 ? rc : PMIXFAB_OK;
}

int store_newest_times(struct store *store, int64_t published[2], struct fab_err *err)
{
    sqlite3_stmt *stmt;
    published[0] = published[1] = 0;
    int rc = store_prepare_one(store, "SELECT published FROM generation ORDER BY generation DESC LIMIT 2",
                               &stmt, err);
    for (int i = 0; i < 2 && rc == PMIXFAB_OK; i++) {
        int step = store_step(store, stmt, "reading the generation", err);
        if (step == 1)
            published[i] = sqlite3_column_int64(stmt, 0);
        rc = step < 0 ? step : PMIXFAB_OK;
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int bind_time(sqlite3_stmt *stmt, int column, int64_t time)
{
    return time == 0 ? sqlite3_bind_null(stmt, column) : sqlite3_bind_int64(stmt, column, time);
}

/* The list as lines, which SQLite frees. */
static int bind_subjects(sqlite3_stmt *stmt, int column, const char *subjects)
{
    const char *end = subjects;
    while (*end != '\0')
        end = fab_subject_next(end);
    if (end == subjects)
        return store_bind_text(stmt, column, "");
    size_t size = (size_t)(end - subjects) - 1; /* without the last one's end */
    char *lines = malloc(size);
    if (lines == NULL)
        return SQLITE_NOMEM;
    for (size_t i = 0; i < size; i++)
        lines[i] = subjects[i] == '\0' ? '\n' : subjects[i];
    return sqlite3_bind_text64(stmt, column, lines, size, free, SQLITE_UTF8);
}

static int write_subject(struct store *store, uint64_t generation, uint32_t seq, const char *name,
                         struct fab_err *err)
{
    sqlite3_stmt *stmt = store->subject_insert;
    int bound = store_bind_text(stmt, 1, name);
    bound |= sqlite3_bind_int64(stmt, 2, (int64_t)generation);
    bound |= sqlite3_bind_int64(stmt, 3, seq);
    return store_run_one(store, stmt, bound, "writing the history", err);
}

static int history_write_change(struct store *store, uint64_t generation, uint32_t seq,
                                const struct fab_change *change, struct fab_err *err)
{
    const char *subjects = change->subjects == NULL ? "" : change->subjects;
    sqlite3_stmt *stmt = store->change_insert;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)generation);
    bound |= sqlite3_bind_int64(stmt, 2, seq);
    bound |= store_bind_text(stmt, 3, fab_change_name(change->kind));
    bound |= store_bind_text(stmt, 4, change->what);
    bound |= store_bind_text(stmt, 5, change->before);
    bound |= store_bind_text(stmt, 6, change->after);
    bound |= store_bind_text(stmt, 7, change->why == NULL ? "" : change->why);
    bound |= sqlite3_bind_int(stmt, 8, change->planned);
    bound |= bind_time(stmt, 9, change->first_seen);
    bound |= bind_time(stmt, 10, change->last_seen);
    bound |= bind_subjects(stmt, 11, subjects);
    int rc = store_run_one(store, stmt, bound, "writing the history", err);
    if (rc == PMIXFAB_OK && *subjects == '\0')
        rc = write_subject(store, generation, seq, "", err);
    for (; rc == PMIXFAB_OK && *subjects != '\0'; subjects = fab_subject_next(subjects))
        rc = write_subject(store, generation, seq, subjects, err);
    return rc;
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
        rc = history_write_change(store, publication->generation, i, &diff->changes[i], err);
    if (rc == PMIXFAB_OK && diff != NULL)
        rc = store_write_renamed(store, publication->generation, diff, err);
    return rc;
}

static const char *history_column_text(sqlite3_stmt *stmt, int column)
{
    const char *said = (const char *)sqlite3_column_text(stmt, column);
    return said == NULL ? "" : said;
}

/* Which statement finds them: by subject, where there is such a one, under all its names where it has others.
 */
static int history_select(struct store *store, const char *what, bool newest, sqlite3_stmt **out,
                          struct fab_err *err)
{
    *out = newest ? store->changes_newest : store->changes;
    if (what == NULL || *what == '\0')
        return PMIXFAB_OK;
    sqlite3_stmt *stmt = store->subject_known;
    int rc = store_bind_text(stmt, 1, what);
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the history", err)
                         : store_step(store, stmt, "reading the history", err);
    const bool other_names = rc == 1 && sqlite3_column_int(stmt, 0) != 0;
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    if (rc == 1)
        *out = other_names ? store->changes_line : store->changes_about;
    return rc < 0 ? rc : PMIXFAB_OK;
}

static struct store_change read_change(sqlite3_stmt *stmt)
{
    return (struct store_change){.generation = (uint64_t)sqlite3_column_int64(stmt, 0),
                                 .time = sqlite3_column_int64(stmt, 1),
                                 .kind = history_column_text(stmt, 2),
                                 .what = history_column_text(stmt, 3),
                                 .before = history_column_text(stmt, 4),
                                 .after = history_column_text(stmt, 5),
                                 .why = history_column_text(stmt, 6),
                                 .planned = sqlite3_column_int(stmt, 7) != 0,
                                 .first_seen = sqlite3_column_int64(stmt, 8),
                                 .last_seen = sqlite3_column_int64(stmt, 9),
                                 .subjects = history_column_text(stmt, 10),
                                 .seq = (uint32_t)sqlite3_column_int64(stmt, 11)};
}

static int bind_range(sqlite3_stmt *stmt, const struct store_range *range, const char *what, int64_t limit)
{
    int rc = sqlite3_bind_int64(stmt, 1, (int64_t)range->first.generation);
    rc |= sqlite3_bind_int64(stmt, 2, range->first.seq);
    rc |= what == NULL ? sqlite3_bind_null(stmt, 3) : store_bind_text(stmt, 3, what);
    rc |= sqlite3_bind_int64(stmt, 4, (int64_t)range->end.generation);
    rc |= sqlite3_bind_int64(stmt, 5, range->end.seq);
    return rc | sqlite3_bind_int64(stmt, 6, limit);
}

/* limit 0: none. fn hears of each and ends the walk where it likes; 1: it did. */
static int history_walk(struct store *store, sqlite3_stmt *stmt, const struct store_range *range,
                        const char *what, uint32_t limit, store_change_fn fn, void *cbdata,
                        struct fab_err *err)
{
    int rc = bind_range(stmt, range, what, limit == 0 ? -1 : (int64_t)limit);
    if (rc != SQLITE_OK)
        rc = store_fail(store, rc, "reading the history", err);
    else
        rc = store_step(store, stmt, "reading the history", err);
    while (rc == 1) {
        const struct store_change change = read_change(stmt);
        rc = fn(&change, cbdata) != 0 ? PMIXFAB_OK : store_step(store, stmt, "reading the history", err);
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc;
}

struct store_range store_range(uint64_t from, uint64_t to)
{
    const uint64_t most = STORE_MAX_GENERATION;
    return (struct store_range){.first = {(from < most ? from : most) + 1, 0},
                                .end = {(to < most ? to : most) + 1, 0}};
}

int store_history(struct store *store, uint64_t from, uint64_t to, const char *what, uint32_t limit,
                  store_change_fn fn, void *cbdata, struct fab_err *err)
{
    const struct store_range range = store_range(from, to);
    sqlite3_stmt *stmt;
    int rc = history_select(store, what, limit != 0, &stmt, err);
    return rc != PMIXFAB_OK ? rc : history_walk(store, stmt, &range, what, limit, fn, cbdata, err);
}

/* ---- page by page ---------------------------------------------------------------------------------- */

/* The place of the change that has `n` between it and the end; the first place where there are not so many.
 */
static int history_behind(struct store *store, const struct store_range *range, uint32_t n,
                          struct store_place *out, struct fab_err *err)
{
    sqlite3_stmt *stmt = store->changes_behind;
    int rc = bind_range(stmt, range, NULL, n);
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the history", err)
                         : store_step(store, stmt, "reading the history", err);
    *out = range->first;
    if (rc == 1)
        *out = (struct store_place){(uint64_t)sqlite3_column_int64(stmt, 0),
                                    (uint32_t)sqlite3_column_int64(stmt, 1)};
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc < 0 ? rc : PMIXFAB_OK;
}

/* A page on its way: how many were told, the first of them and the last. */
struct paging {
    store_change_fn fn;
    void *cbdata;
    uint32_t n;
    bool ended; /* by fn */
    struct store_place first, last;
};

static int on_page_change(const struct store_change *change, void *cbdata)
{
    struct paging *paging = cbdata;
    paging->last = (struct store_place){change->generation, change->seq};
    if (paging->n++ == 0)
        paging->first = paging->last;
    paging->ended = paging->fn(change, paging->cbdata) != 0;
    return paging->ended;
}

int store_history_older(struct store *store, struct store_range *range, const char *what, uint32_t limit,
                        store_change_fn fn, void *cbdata, struct fab_err *err)
{
    struct paging paging = {.fn = fn, .cbdata = cbdata};
    struct store_range part = *range;
    sqlite3_stmt *stmt;
    int rc = history_select(store, what, true, &stmt, err);
    if (rc == PMIXFAB_OK && what != NULL)
        rc = history_behind(store, range, STORE_LOOKED_THROUGH - 1, &part.first, err);
    if (rc == PMIXFAB_OK)
        rc = history_walk(store, stmt, &part, what, limit, on_page_change, &paging, err);
    if (rc == PMIXFAB_OK)
        range->end = paging.n == limit ? paging.first : part.first;
    return rc;
}

int store_history_newer(struct store *store, struct store_range *range, uint32_t limit, store_change_fn fn,
                        void *cbdata, struct fab_err *err)
{
    struct paging paging = {.fn = fn, .cbdata = cbdata};
    int rc = history_walk(store, store->changes, range, NULL, limit, on_page_change, &paging, err);
    if (rc == PMIXFAB_OK && paging.n < limit && !paging.ended)
        range->first = range->end;
    else if (rc == PMIXFAB_OK)
        range->first = (struct store_place){paging.last.generation, paging.last.seq + 1};
    return rc;
}

int store_knows_subject(struct store *store, const char *name, bool *known, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(store, "SELECT 1 FROM subject WHERE name = ?1 LIMIT 1", &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_bind_text(stmt, 1, name);
    rc = rc != SQLITE_OK ? store_fail(store, rc, "reading the history", err)
                         : store_step(store, stmt, "reading the history", err);
    *known = rc == 1;
    sqlite3_finalize(stmt);
    return rc < 0 ? rc : PMIXFAB_OK;
}
