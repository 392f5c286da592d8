/*
 * store_remembered.c - small tables: announced swaps, findings, generations that the store does not have,
 * endpoints of jobs, and missing or lost objects.
 *
 * A row is a struct. Each table has a list of the members that are columns, in the order of its statements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/file_io.h"
#include "fabricd/store/store_priv.h"
#include "topo/base/array.h"

#define COUNT(columns) ((int)(sizeof(columns) / sizeof((columns)[0])))

/* Write the columns of a row. */
static int put_row(struct store *store, const char *sql, const struct store_column *columns, int n,
                   const void *row, const char *doing, struct fab_err *err)
{
    struct store_value values[STORE_COLUMNS_MAX + 1];
    store_column_values(columns, n, row, values);
    return store_run(store, sql, values, doing, err);
}

/* ---- announced swaps ---- */

#define PLANNED(member) COLUMN(store_planned, member)
static const struct store_column planned_columns[] = {PLANNED(name), PLANNED(since), PLANNED(until),
                                                      PLANNED(uid)};

int store_planned_load(struct store *store, store_planned_fn fn, void *cbdata, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store, "SELECT name, since, until, uid FROM expected ORDER BY name", NULL,
                         "reading announced swaps", &row, err);
    while (rc == 1) {
        struct store_planned planned;
        if (store_read_columns(row, planned_columns, COUNT(planned_columns), &planned) &&
            fn(&planned, cbdata) != 0)
            break;
        rc = store_next(store, row, "reading announced swaps", err);
    }
    store_done(row);
    return rc == 1 ? PMIXFAB_OK : rc;
}

int store_planned_put(struct store *store, const struct store_planned *row, struct fab_err *err)
{
    return put_row(store, "INSERT OR REPLACE INTO expected (name, since, until, uid) VALUES (?1, ?2, ?3, ?4)",
                   planned_columns, COUNT(planned_columns), row, "writing an announced swap", err);
}

int store_planned_delete(struct store *store, const char *name, struct fab_err *err)
{
    return store_run(store, "DELETE FROM expected WHERE name = ?1", VALUES(TEXT(name)),
                     "removing an announced swap", err);
}

/* ---- findings ---- */

#define FINDING(member) COLUMN(store_finding, member)
static const struct store_column finding_columns[] = {
    FINDING(id),   FINDING(kind),    FINDING(place), FINDING(state),       FINDING(since),   FINDING(came),
    FINDING(gone), FINDING(comings), FINDING(acked), FINDING(acked_until), FINDING(acked_by)};
#define FINDING_COLUMNS "id, kind, place, state, since, came, gone, comings, acked, acked_until, acked_by"

struct finding_walk {
    store_finding_fn fn;
    void *cbdata;
};

static int walk_finding(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    const struct finding_walk *walk = cbdata;
    struct store_finding finding;
    if (!store_read_columns(row, finding_columns, COUNT(finding_columns), &finding) || finding.comings == 0)
        return store_corrupt(store, err, "a finding has invalid values");
    return walk->fn(&finding, walk->cbdata) != 0;
}

int store_findings_load(struct store *store, store_finding_fn fn, void *cbdata, struct fab_err *err)
{
    struct finding_walk walk = {fn, cbdata};
    return store_each(store, "SELECT " FINDING_COLUMNS " FROM finding ORDER BY id", NULL,
                      "reading the findings", walk_finding, &walk, err);
}

int store_findings_put(struct store *store, const struct store_finding *const *rows, uint32_t n,
                       struct fab_err *err)
{
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = rows[i]->comings > 0
                 ? put_row(store,
                           "INSERT OR REPLACE INTO finding (" FINDING_COLUMNS
                           ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                           finding_columns, COUNT(finding_columns), rows[i], "writing a finding", err)
                 : store_run(store, "DELETE FROM finding WHERE id = ?1", VALUES(INT(rows[i]->id)),
                             "removing a finding", err);
    return store_end(store, rc, err);
}

/* ---- generations that the store does not have ---- */

int store_gone_load(struct store *store, struct store_gone **list, uint32_t *n, struct fab_err *err)
{
    sqlite3_stmt *row;
    uint32_t room = 0;
    *list = NULL;
    *n = 0;
    int rc = store_first(store,
                         "SELECT above, newest, found, why FROM gone"
                         " WHERE newest > (SELECT trimmed FROM history) ORDER BY above",
                         NULL, "reading missing generations", &row, err);
    while (rc == 1) {
        bool bad = false;
        if (!FAB_ARRAY_ROOM(list, &room, *n + 1)) {
            rc = store_nomem(store, err);
            break;
        }
        struct store_gone *gone = &(*list)[(*n)++];
        *gone = (struct store_gone){.above = (uint64_t)sqlite3_column_int64(row, 0),
                                    .newest = (uint64_t)sqlite3_column_int64(row, 1),
                                    .found = sqlite3_column_int64(row, 2)};
        snprintf(gone->why, sizeof(gone->why), "%s", store_text(row, 3, &bad));
        rc = store_next(store, row, "reading missing generations", err);
    }
    store_done(row);
    return rc;
}

/* The numbers are raised last: if the process dies before that, the next start finds the same gap again. */
int store_gone_add(struct store *store, const struct store_gone *gone, struct fab_err *err)
{
    return store_run(store, "INSERT OR REPLACE INTO gone (above, newest, found, why) VALUES (?1, ?2, ?3, ?4)",
                     VALUES(INT(gone->above), INT(gone->newest), INT(gone->found), TEXT(gone->why)),
                     "writing missing generations", err)
               ?: store_raise(store, gone->newest, err);
}

/* ---- endpoints of jobs ---- */

#define ENDPOINT(member) COLUMN(store_endpoints, member)
static const struct store_column endpoint_columns[] = {ENDPOINT(plane),   ENDPOINT(first), ENDPOINT(last),
                                                       ENDPOINT(job),     ENDPOINT(uid),   ENDPOINT(pid),
                                                       ENDPOINT(started), ENDPOINT(since), ENDPOINT(boot)};
#define ENDPOINT_COLUMNS "plane, first, last, job, uid, pid, started, since, boot"

int store_endpoints_load(struct store *store, store_endpoints_fn fn, void *cbdata, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_first(store, "SELECT " ENDPOINT_COLUMNS " FROM endpoint ORDER BY plane, first", NULL,
                         "reading endpoints", &row, err);
    while (rc == 1) {
        struct store_endpoints endpoints;
        if (store_read_columns(row, endpoint_columns, COUNT(endpoint_columns), &endpoints) &&
            fn(&endpoints, cbdata) != 0)
            break;
        rc = store_next(store, row, "reading endpoints", err);
    }
    store_done(row);
    return rc == 1 ? PMIXFAB_OK : rc;
}

int store_endpoints_forget(struct store *store, const char *boot, struct fab_err *err)
{
    if (strcmp(boot, BOOT_UNKNOWN) == 0)
        return PMIXFAB_OK;
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_run(store, "DELETE FROM endpoint WHERE boot NOT IN (?1, '" BOOT_UNKNOWN "')",
                   VALUES(TEXT(boot)), "removing endpoints", err);
    return store_end(store, rc, err);
}

int store_endpoints_add(struct store *store, const struct store_endpoints *rows, uint32_t n,
                        struct fab_err *err)
{
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < n; i++)
        rc = put_row(
            store, "INSERT INTO endpoint (" ENDPOINT_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            endpoint_columns, COUNT(endpoint_columns), &rows[i], "writing endpoints", err);
    return store_end(store, rc, err);
}

int store_endpoints_delete(struct store *store, const struct store_endpoints *who, struct fab_err *err)
{
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_run(
        store,
        "DELETE FROM endpoint WHERE pid = ?1 AND started = ?2 AND (?3 IS NULL OR (job = ?3 AND uid = ?4))",
        VALUES(INT(who->pid), INT(who->started), TEXT(who->job), INT(who->uid)), "removing endpoints", err);
    return store_end(store, rc, err);
}

int store_endpoints_take_over(struct store *store, const char *path, struct fab_err *err)
{
    sqlite3_stmt *row;
    int rc = store_run(store, "ATTACH ?1 AS old", VALUES(TEXT(path)), "opening the old store", err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_first(store, "SELECT 1 FROM old.sqlite_schema WHERE type = 'table' AND name = 'endpoint'",
                     NULL, "reading the old store", &row, err);
    store_done(row);
    if (rc == 1) {
        const int done = sqlite3_exec(store->db,
                                      "BEGIN; DELETE FROM main.endpoint; INSERT INTO main.endpoint"
                                      " SELECT * FROM old.endpoint; COMMIT",
                                      NULL, NULL, NULL);
        rc = done == SQLITE_OK ? PMIXFAB_OK : store_fail(store, done, "taking endpoints over", err);
        if (done != SQLITE_OK)
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    sqlite3_exec(store->db, "DETACH old", NULL, NULL, NULL);
    return rc;
}

/* ---- missing and lost objects ---- */

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

#define MISSING(member) COLUMN(retained_place, member)
static const struct store_column missing_columns[] = {MISSING(guid), COLUMN_TO(retained_place, port, 254),
                                                      MISSING(since), MISSING(seen), MISSING(counted)};

#define LOST(member)          COLUMN(fab_lost_item, member)
#define LOST_TO(member, most) COLUMN_TO(fab_lost_item, member, most)
/* For both tables; a statement with fewer parameters uses the first ones. */
static const struct store_column lost_columns[] = {LOST(end[0].guid),
                                                   LOST_TO(end[0].num, 254),
                                                   LOST(end[1].guid),
                                                   LOST_TO(end[1].num, 254),
                                                   LOST(text[0]),
                                                   LOST(text[1]),
                                                   LOST_TO(kind, FAB_HCA),
                                                   LOST(width),
                                                   LOST_TO(speed, FAB_SPEEDS - 1),
                                                   LOST_TO(generation, STORE_MAX_GENERATION),
                                                   LOST(seen),
                                                   LOST_TO(forgotten, 1)};

static int absent_corrupt(const struct store *store, struct fab_err *err)
{
    return store_corrupt(store, err, "a lost device has invalid values");
}

static int read_missing(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    struct retained *missing = cbdata;
    struct retained_place place = {0},
                          *larger = reallocarray(missing->places, (size_t)missing->n + 1, sizeof(*larger));
    bool bad = false;
    if (larger == NULL)
        return store_nomem(store, err);
    missing->places = larger;
    if (!store_read_columns(row, missing_columns, COUNT(missing_columns), &place))
        return absent_corrupt(store, err);
    missing->places[missing->n++] = place;
    snprintf(missing->boot, sizeof(missing->boot), "%s", store_text(row, COUNT(missing_columns), &bad));
    return PMIXFAB_OK;
}

static int read_lost(struct store *store, sqlite3_stmt *row, void *cbdata, struct fab_err *err)
{
    struct fab_lost_item item = {0};
    if (!store_read_columns(row, lost_columns, COUNT(lost_columns), &item))
        return absent_corrupt(store, err);
    return fab_lost_add(cbdata, &item) == PMIXFAB_OK ? PMIXFAB_OK : store_nomem(store, err);
}

int store_absent_load(struct store *store, struct absent *out, struct fab_err *err)
{
    *out = (struct absent){0};
    /* GUIDs are signed in the table; restore the unsigned order. */
    int rc = store_each(
        store, "SELECT node, num, since, seen, counted, boot FROM missing ORDER BY node < 0, node, num", NULL,
        "reading missing devices", read_missing, &out->missing, err)
                 ?: store_each(store,
                               "SELECT guid, 0, 0, 0, host, name, nullif(kind, 0), 0, 0, generation, seen,"
                               " forgotten FROM lost_node",
                               NULL, "reading lost devices", read_lost, &out->lost, err)
                 ?: store_each(store,
                               "SELECT a_node, a_num, b_node, b_num, a_text, b_text, 0, width, speed,"
                               " generation, seen, forgotten FROM lost_cable",
                               NULL, "reading lost devices", read_lost, &out->lost, err);
    if (rc == PMIXFAB_OK)
        fab_lost_finish(&out->lost);
    else
        absent_free(out);
    return rc;
}

static int write_missing(struct store *store, const struct retained *missing, struct fab_err *err)
{
    struct store_value values[STORE_COLUMNS_MAX + 1];
    const int n = COUNT(missing_columns);
    int rc = store_run(store, "DELETE FROM missing", NULL, "writing missing devices", err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < missing->n; i++) {
        store_column_values(missing_columns, n, &missing->places[i], values);
        values[n] = TEXT(missing->boot);
        values[n + 1].type = 0;
        rc = store_run_one(store,
                           "INSERT INTO missing (node, num, since, seen, counted, boot)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                           values, "writing missing devices", err);
    }
    return rc;
}

/* Compare two items with the same ends. */
static bool same_lost(const struct fab_lost_item *a, const struct fab_lost_item *b)
{
    return a->generation == b->generation && a->seen == b->seen && a->kind == b->kind &&
           a->forgotten == b->forgotten && a->width == b->width && a->speed == b->speed &&
           strcmp(a->text[0], b->text[0]) == 0 && strcmp(a->text[1], b->text[1]) == 0;
}

/* `put` uses all columns, `drop` the first `keys`. */
static int write_lost(struct store *store, const char *put, const char *drop, int keys,
                      const struct fab_lost_list *before, const struct fab_lost_list *after,
                      struct fab_err *err)
{
    uint32_t b = 0, a = 0;
    int rc = PMIXFAB_OK;
    while (rc == PMIXFAB_OK && (b < before->n || a < after->n)) {
        int order = b == before->n  ? 1
                    : a == after->n ? -1
                                    : fab_lost_order(&before->items[b], &after->items[a]);
        if (order < 0)
            rc = put_row(store, drop, lost_columns, keys, &before->items[b], "writing lost devices", err);
        else if (order > 0 || !same_lost(&before->items[b], &after->items[a]))
            rc = put_row(store, put, lost_columns, COUNT(lost_columns), &after->items[a],
                         "writing lost devices", err);
        b += order <= 0;
        a += order >= 0;
    }
    return rc;
}

int store_write_absent(struct store *store, const struct absent *before, const struct absent *after,
                       bool lost, struct fab_err *err)
{
    int rc = write_missing(store, &after->missing, err);
    if (rc != PMIXFAB_OK || !lost)
        return rc;
    return write_lost(store,
                      "INSERT OR REPLACE INTO lost_node (guid, host, name, kind, generation, seen, forgotten)"
                      " VALUES (?1, ?5, ?6, ?7, ?10, ?11, ?12)",
                      "DELETE FROM lost_node WHERE guid = ?1", 1, &before->lost.nodes, &after->lost.nodes,
                      err)
               ?: write_lost(store,
                             "INSERT OR REPLACE INTO lost_cable (a_node, a_num, b_node, b_num, a_text, "
                             "b_text, width,"
                             " speed, generation, seen, forgotten)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?8, ?9, ?10, ?11, ?12)",
                             "DELETE FROM lost_cable WHERE a_node = ?1 AND a_num = ?2 AND b_node = ?3 AND "
                             "b_num = ?4",
                             4, &before->lost.cables, &after->lost.cables, err);
}

int store_lost_put(struct store *store, const struct absent *before, const struct absent *after,
                   struct fab_err *err)
{
    int rc = store_begin(store, err);
    return rc == PMIXFAB_OK ? store_end(store, store_write_absent(store, before, after, true, err), err) : rc;
}
