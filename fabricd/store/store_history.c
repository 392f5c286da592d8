/*
 * store_history.c - generations, their changes, and one history for an object that was renamed.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/store/store_priv.h"

#define READING "reading the history"
#define WRITING "writing the history"

/* ---- generations ---- */

int store_generation(struct store *store, uint64_t *generation, int64_t *published, struct fab_err *err)
{
    sqlite3_stmt *row;
    *generation = 0;
    *published = 0;
    int rc =
        store_first(store, "SELECT generation, published FROM generation ORDER BY generation DESC LIMIT 1",
                    NULL, "reading the generation", &row, err);
    if (rc == 1) {
        *generation = (uint64_t)sqlite3_column_int64(row, 0);
        *published = sqlite3_column_int64(row, 1);
    }
    store_done(row);
    return rc == 1 ? PMIXFAB_OK : rc;
}

int store_generation_before(struct store *store, int64_t time, uint64_t *generation, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store, "SELECT max(generation) FROM generation WHERE published < ?1",
                         VALUES(INT(time)), "reading the generation", &row, err);
    *generation = rc == 1 ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

int store_newest_times(struct store *store, int64_t published[2], struct fab_err *err)
{
    sqlite3_stmt *row;
    published[0] = published[1] = 0;
    int rc = store_first(store, "SELECT published FROM generation ORDER BY generation DESC LIMIT 2", NULL,
                         "reading the generation", &row, err);
    for (int i = 0; i < 2 && rc == 1; i++) {
        published[i] = sqlite3_column_int64(row, 0);
        rc = store_next(store, row, "reading the generation", err);
    }
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

/* ---- writing ---- */

#define TIME(value) ((value) == 0 ? NONE : INT(value))

char *store_subject_lines(const char *subjects)
{
    const char *end = subjects;
    while (end != NULL && *end != '\0')
        end = fab_subject_next(end);
    const size_t size = end == subjects ? 0 : (size_t)(end - subjects) - 1; /* without the last terminator */
    char *lines = malloc(size + 1);
    for (size_t i = 0; lines != NULL && i < size; i++)
        lines[i] = subjects[i] == '\0' ? '\n' : subjects[i];
    if (lines != NULL)
        lines[size] = '\0';
    return lines;
}

static int write_subject(struct store *store, uint64_t generation, uint32_t seq, const char *name,
                         struct fab_err *err)
{
    return store_run_one(store, "INSERT INTO subject (name, generation, seq) VALUES (?1, ?2, ?3)",
                         VALUES(TEXT(name), INT(generation), INT(seq)), WRITING, err);
}

static int write_history(struct store *store, uint64_t generation, uint32_t seq,
                         const struct fab_change *change, struct fab_err *err)
{
    const char *subjects = change->subjects == NULL ? "" : change->subjects;
    char *lines = store_subject_lines(subjects);
    if (lines == NULL)
        return store_nomem(store, err);
    int rc = store_run_one(store,
                           "INSERT INTO change (generation, seq, kind, what, before, after, why, planned,"
                           " first_seen, last_seen, subjects)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                           VALUES(INT(generation), INT(seq), TEXT(fab_change_name(change->kind)),
                                  TEXT(change->what), TEXT(change->before), TEXT(change->after),
                                  TEXT(change->why == NULL ? "" : change->why), INT(change->planned),
                                  TIME(change->first_seen), TIME(change->last_seen), TEXT(lines)),
                           WRITING, err);
    free(lines);
    if (rc == PMIXFAB_OK && *subjects == '\0')
        rc = write_subject(store, generation, seq, "", err);
    for (; rc == PMIXFAB_OK && *subjects != '\0'; subjects = fab_subject_next(subjects))
        rc = write_subject(store, generation, seq, subjects, err);
    return rc;
}

/*
 * Store the names of changes with `renamed`: the first subject's name is replaced by the second's from this
 * generation on. A name that several objects had, or have now, is not linked.
 */
static int write_renamed(struct store *store, uint64_t generation, const struct fab_diff *diff,
                         struct fab_err *err)
{
    uint32_t i = 0;
    while (i < diff->n && !diff->changes[i].renamed)
        i++;
    if (i == diff->n)
        return PMIXFAB_OK;
    int rc = store_run(store, "DELETE FROM renamed WHERE generation <= (SELECT trimmed FROM history)", NULL,
                       WRITING, err);
    for (; rc == PMIXFAB_OK && i < diff->n; i++) {
        const char *former = diff->changes[i].subjects;
        if (!diff->changes[i].renamed || former == NULL || *former == '\0' ||
            *fab_subject_next(former) == '\0')
            continue;
        rc = store_run(store, "INSERT OR IGNORE INTO renamed (former, name, generation) VALUES (?1, ?2, ?3)",
                       VALUES(TEXT(former), TEXT(fab_subject_next(former)), INT(generation)), WRITING, err);
    }
    return rc
               ?: store_run(
                      store,
                      "DELETE FROM renamed WHERE generation = ?1 AND (former IN (SELECT former FROM renamed"
                      "  WHERE generation = ?1 GROUP BY former HAVING count(*) > 1)"
                      " OR name IN (SELECT name FROM renamed"
                      "  WHERE generation = ?1 GROUP BY name HAVING count(*) > 1))",
                      VALUES(INT(generation)), WRITING, err);
}

int store_write_generation(struct store *store, const struct store_publication *publication,
                           struct fab_err *err)
{
    const struct fab_diff *diff = publication->diff;
    int rc = store_run_one(
        store, "INSERT INTO generation (generation, published, partial) VALUES (?1, ?2, ?3)",
        VALUES(INT(publication->generation), INT(publication->published), INT(publication->partial)),
        "writing the generation", err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && diff != NULL && i < diff->n; i++)
        rc = write_history(store, publication->generation, i, &diff->changes[i], err);
    if (rc == PMIXFAB_OK && diff != NULL)
        rc = write_renamed(store, publication->generation, diff, err);
    return rc;
}

/* ---- reading ---- */

/*
 * A common table expression: `line`, the names that belong to the history of ?3, each with its generations
 * (after, until]. The name itself: always. Backwards: former names, each for the time when the object had it.
 * Forwards: later names. Other objects that had such a name before or later are not followed.
 */
#define LINE                                                                                                 \
    "WITH RECURSIVE line (name, after, until, way) AS ("                                                     \
    " SELECT ?3, 0, 9223372036854775807, 0"                                                                  \
    " UNION SELECT r.former, ifnull((SELECT max(o.generation) FROM renamed AS o"                             \
    "   WHERE o.former = r.former AND o.generation < r.generation), 0), r.generation, -1"                    \
    "  FROM line JOIN renamed AS r ON r.name = line.name"                                                    \
    "  WHERE way <= 0 AND r.generation > line.after AND r.generation <= line.until"                          \
    " UNION SELECT r.name, r.generation - 1, ifnull((SELECT min(o.generation) FROM renamed AS o"             \
    "   WHERE o.former = r.name AND o.generation > r.generation), 9223372036854775807), 1"                   \
    "  FROM line JOIN renamed AS r ON r.former = line.name"                                                  \
    "  WHERE way >= 0 AND r.generation > line.after AND r.generation <= line.until"                          \
    " LIMIT 64) "

#define COLUMNS                                                                                              \
    "SELECT generation, published, kind, what, before, after, why, planned, first_seen, last_seen, "         \
    "subjects, seq"
#define IN_RANGE "(generation, seq) >= (?1, ?2) AND (generation, seq) < (?4, ?5)"
#define IN_TEXT  "(?3 IS NULL OR instr(what, ?3) > 0 OR instr(before, ?3) > 0 OR instr(after, ?3) > 0)"

/* Adds changes without a subject that mention the text; then selects all. */
#define OTHERS                                                                                               \
    "  UNION SELECT generation, seq FROM subject JOIN change USING (generation, seq)"                        \
    "  WHERE name = '' AND " IN_RANGE " AND instr(what, ?3) > 0"                                             \
    "  ORDER BY generation DESC, seq DESC LIMIT ?6)"                                                         \
    " JOIN change USING (generation, seq) JOIN generation USING (generation)"                                \
    " ORDER BY generation, seq"

/* Oldest first, and newest first: ?1 to ?5 are the range and a part of the texts, ?6 is the limit. */
static const char changes_sql[] =
    COLUMNS " FROM change JOIN generation USING (generation)"
            " WHERE " IN_RANGE " AND " IN_TEXT " ORDER BY generation, seq LIMIT ?6";
static const char newest_sql[] = COLUMNS " FROM (SELECT * FROM change WHERE " IN_RANGE " AND " IN_TEXT
                                         "  ORDER BY generation DESC, seq DESC LIMIT ?6)"
                                         " JOIN generation USING (generation) ORDER BY generation, seq";
/* Of the subject ?3; and of a subject with other names. */
static const char about_sql[] = COLUMNS " FROM (SELECT generation, seq FROM subject"
                                        "  WHERE name = ?3 AND " IN_RANGE OTHERS;
static const char line_sql[] =
    LINE COLUMNS " FROM (SELECT generation, seq FROM line JOIN subject USING (name)"
                 "  WHERE generation > after AND generation <= until AND " IN_RANGE OTHERS;

/* Choose the statement: by subject, if that subject exists. */
static int select_changes(struct store *store, const char *what, bool newest, const char **sql,
                          struct fab_err *err)
{
    sqlite3_stmt *row;
    *sql = newest ? newest_sql : changes_sql;
    if (what == NULL || *what == '\0')
        return PMIXFAB_OK;
    int rc = store_first(store,
                         "SELECT EXISTS (SELECT 1 FROM renamed WHERE former = ?1)"
                         " OR EXISTS (SELECT 1 FROM renamed WHERE name = ?1)"
                         " FROM subject WHERE name = ?1 LIMIT 1",
                         VALUES(TEXT(what)), READING, &row, err);
    if (rc == 1)
        *sql = sqlite3_column_int(row, 0) != 0 ? line_sql : about_sql;
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

#define RANGE(range, what, limit)                                                                            \
    VALUES(INT((range)->first.generation), INT((range)->first.seq), TEXT(what),                              \
           INT((range)->end.generation), INT((range)->end.seq), INT(limit))

/* A walk: the number of changes passed, the first and the last of them. */
struct history_walk {
    store_change_fn fn;
    void *cbdata;
    uint32_t n;
    bool ended; /* by fn */
    struct store_place first, last;
};

static int walk_change(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    (void)store, (void)err;
    struct history_walk *walk = cbdata;
    bool bad = false;
    const struct store_change change = {.generation = (uint64_t)sqlite3_column_int64(row, 0),
                                        .time = sqlite3_column_int64(row, 1),
                                        .kind = store_text(row, 2, &bad),
                                        .what = store_text(row, 3, &bad),
                                        .before = store_text(row, 4, &bad),
                                        .after = store_text(row, 5, &bad),
                                        .why = store_text(row, 6, &bad),
                                        .planned = sqlite3_column_int(row, 7) != 0,
                                        .first_seen = sqlite3_column_int64(row, 8),
                                        .last_seen = sqlite3_column_int64(row, 9),
                                        .subjects = store_text(row, 10, &bad),
                                        .seq = (uint32_t)sqlite3_column_int64(row, 11)};
    walk->last = (struct store_place){change.generation, change.seq};
    if (walk->n++ == 0)
        walk->first = walk->last;
    walk->ended = walk->fn(&change, walk->cbdata) != 0;
    return walk->ended;
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
    struct history_walk walk = {.fn = fn, .cbdata = cbdata};
    const char *sql;
    return select_changes(store, what, limit != 0, &sql, err)
               ?: store_each(store, sql, RANGE(&range, what, limit == 0 ? -1 : (int64_t)limit), READING,
                             walk_change, &walk, err);
}

/* Return the place of the change with `n` changes between it and the end; the first place if there are fewer.
 */
static int place_behind(struct store *store, const struct store_range *range, uint32_t n,
                        struct store_place *out, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store,
                         "SELECT generation, seq FROM change WHERE " IN_RANGE " AND ?3 IS NULL"
                         " ORDER BY generation DESC, seq DESC LIMIT 1 OFFSET ?6",
                         RANGE(range, NULL, n), READING, &row, err);
    *out = range->first;
    if (rc == 1)
        *out = (struct store_place){(uint64_t)sqlite3_column_int64(row, 0),
                                    (uint32_t)sqlite3_column_int64(row, 1)};
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

int store_history_older(struct store *store, struct store_range *range, const char *what, uint32_t limit,
                        store_change_fn fn, void *cbdata, struct fab_err *err)
{
    struct history_walk walk = {.fn = fn, .cbdata = cbdata};
    struct store_range part = *range;
    const char *sql;
    int rc = select_changes(store, what, true, &sql, err);
    if (rc == PMIXFAB_OK && what != NULL)
        rc = place_behind(store, range, STORE_LOOKED_THROUGH - 1, &part.first, err);
    rc = rc ?: store_each(store, sql, RANGE(&part, what, limit), READING, walk_change, &walk, err);
    if (rc == PMIXFAB_OK)
        range->end = walk.n == limit ? walk.first : part.first;
    return rc;
}

int store_history_newer(struct store *store, struct store_range *range, uint32_t limit, store_change_fn fn,
                        void *cbdata, struct fab_err *err)
{
    struct history_walk walk = {.fn = fn, .cbdata = cbdata};
    int rc = store_each(store, changes_sql, RANGE(range, NULL, limit), READING, walk_change, &walk, err);
    if (rc == PMIXFAB_OK && walk.n < limit && !walk.ended)
        range->first = range->end;
    else if (rc == PMIXFAB_OK)
        range->first = (struct store_place){walk.last.generation, walk.last.seq + 1};
    return rc;
}

int store_knows_subject(struct store *store, const char *name, bool *known, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store, "SELECT 1 FROM subject WHERE name = ?1 LIMIT 1", VALUES(TEXT(name)), READING,
                         &row, err);
    *known = rc == 1;
    store_done(row);
    return rc < 0 ? rc : PMIXFAB_OK;
}

/* ---- names ---- */

/* A name that is held back, since the next row may continue its range. */
struct name_walk {
    store_name_fn fn;
    void *cbdata;
    char *name; /* NULL: none */
    int64_t after, until;
};

/* Non-zero: fn has ended the walk. */
static int give_name(struct name_walk *walk)
{
    const struct store_name name = {.name = walk->name,
                                    .from = (uint64_t)walk->after + 1,
                                    .to = walk->until == INT64_MAX ? 0 : (uint64_t)walk->until};
    const int ended = walk->name == NULL ? 0 : walk->fn(&name, walk->cbdata);
    free(walk->name);
    walk->name = NULL;
    return ended != 0;
}

static int walk_name(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    struct name_walk *walk = cbdata;
    bool bad = false;
    const char *name = store_text(row, 0, &bad);
    const int64_t after = sqlite3_column_int64(row, 1), until = sqlite3_column_int64(row, 2);
    if (walk->name != NULL && strcmp(walk->name, name) == 0 && after <= walk->until) {
        walk->until = until > walk->until ? until : walk->until;
        return 0;
    }
    if (give_name(walk) != 0)
        return 1;
    walk->name = strdup(name);
    walk->after = after;
    walk->until = until;
    return walk->name == NULL ? store_nomem(store, err) : PMIXFAB_OK;
}

int store_names(struct store *store, const char *what, store_name_fn fn, void *cbdata, struct fab_err *err)
{
    struct name_walk walk = {.fn = fn, .cbdata = cbdata};
    int rc = store_each(store,
                        LINE "SELECT name, after, until FROM line WHERE way <> 0 AND name <> ?3"
                             " ORDER BY name, after, until",
                        VALUES(NONE, NONE, TEXT(what)), READING, walk_name, &walk, err);
    if (rc == PMIXFAB_OK)
        give_name(&walk);
    free(walk.name);
    return rc;
}
