/* The history within bounds: what goes, what stays, how much a step does, what numbers follow. */
#include "test/unit/store_fixture.h"

#include <sys/stat.h>

#include "topo/changes/changes.h"

OWNER(sqlite3_close, sqlite3)

/* ---- publishing changes ------------------------------------------------------------------------------ */

struct model_row {
    uint64_t generation;
    int64_t time;
    char what[32], subject[16]; /* empty: about nobody */
};

struct model {
    struct model_row *rows;
    uint32_t n, cap, first; /* rows before first are trimmed */
    uint64_t newest;
    int64_t times[20001]; /* of each generation */
    uint64_t random;
};

static uint64_t draw(struct model *model, uint64_t below)
{
    return (fabric_random_next(&model->random) >> 16) % below;
}

static void publish(struct store *store, struct model *model, uint32_t n, int64_t time)
{
    char long_text[1024]; /* so that few changes make a large store */
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    OWNED(free) struct fab_change *changes = must_have((n + 1) * sizeof *changes);
    assert_true(model->newest < sizeof model->times / sizeof model->times[0] - 1);
    uint64_t generation = ++model->newest;
    model->times[generation] = time;
    if (model->n + n > model->cap) {
        model->cap = 2 * (model->n + n);
        model->rows = realloc(model->rows, model->cap * sizeof *model->rows);
        assert_non_null(model->rows);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct model_row *row = &model->rows[model->n + i];
        *row = (struct model_row){.generation = generation, .time = time};
        snprintf(row->what, sizeof row->what, "change %llu.%u", (unsigned long long)generation, i);
        if (draw(model, 3) != 0)
            snprintf(row->subject, sizeof row->subject, "node%03u", (unsigned)draw(model, 20));
        changes[i] = (struct fab_change){.kind = FAB_CHANGE_OTHER,
                                         .what = row->what,
                                         .before = long_text,
                                         .after = (char *)"b",
                                         .why = "",
                                         .subjects = row->subject}; /* zeros behind it end the list */
    }
    model->n += n;
    SCOPED(fab_inventory) none = empty_inventory();
    struct fab_diff diff = {.changes = changes, .n = n};
    const struct store_publication publication = {
        .generation = generation, .published = time, .before = &none, .after = &none, .diff = &diff};
    must_do(store_publish(store, &publication, fresh_err()));
}

/* The plain way: generation by generation from the oldest, never the newest. */
static uint64_t trim_model(struct model *model, const struct store_limits *limits, uint64_t trimmed)
{
    for (;;) {
        uint64_t next = trimmed + 1;
        bool old = limits->before != 0 && model->times[next] < limits->before;
        bool many = limits->changes != 0 && model->n - model->first > limits->changes;
        if (next >= model->newest || (!old && !many))
            return trimmed;
        while (model->first < model->n && model->rows[model->first].generation <= next)
            model->first++;
        trimmed = next;
    }
}

struct walk {
    const struct model *model;
    const char *subject; /* NULL: all */
    uint32_t at;
};

static int must_be_next(const struct store_change *change, void *cbdata)
{
    struct walk *walk = cbdata;
    const struct model *model = walk->model;
    while (walk->at < model->n && walk->subject != NULL &&
           strcmp(model->rows[walk->at].subject, walk->subject) != 0)
        walk->at++;
    assert_true(walk->at < model->n);
    const struct model_row *row = &model->rows[walk->at++];
    assert_string_equal(change->what, row->what);
    assert_true(change->generation == row->generation && change->time == row->time);
    return 0;
}

static void must_be_model(struct store *store, const struct model *model)
{
    struct store_bounds bounds;
    struct walk all = {.model = model, .at = model->first};
    must_do(store_history(store, 0, INT64_MAX, NULL, 0, must_be_next, &all, fresh_err()));
    assert_int_equal(all.at, model->n);
    for (unsigned i = 0; i < 20; i++) {
        const char *name = printed("node%03u", i);
        struct walk about = {.model = model, .subject = name, .at = model->first};
        must_do(store_history(store, 0, INT64_MAX, name, 0, must_be_next, &about, fresh_err()));
        for (; about.at < model->n; about.at++)
            assert_string_not_equal(model->rows[about.at].subject, name);
    }
    must_do(store_bounds(store, &bounds, fresh_err()));
    assert_int_equal(bounds.changes, model->n - model->first);
}

static int64_t count_of(struct store *store, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return value;
}

static int64_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static uint32_t trim_wholly(struct store *store, const struct store_limits *limits, uint64_t *trimmed)
{
    struct store_trimmed step = {.more = true};
    uint32_t steps = 0;
    for (; step.more; steps++) {
        must_do(store_trim(store, limits, &step, fresh_err()));
        assert_true(step.rows <= 100);
    }
    *trimmed = step.trimmed;
    return steps;
}

static void model_free(struct model *model)
{
    free(model->rows);
    free(model);
}

OWNER(model_free, struct model)

static struct model *model_new(uint64_t seed)
{
    struct model *model = must_have(sizeof *model);
    model->random = seed;
    return model;
}

/* ---- what goes --------------------------------------------------------------------------------------- */

/* Clocks go back and forth, limits come and go, the store is closed in between. */
TEST_IN(test_like_the_plain_way, struct folder *folder, folder_setup, folder_teardown)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct model *model = model_new(seed);
        OWNED(store_close) struct store *store;
        uint64_t trimmed = 0, expected = 0, next;
        int64_t time = 1000000;
        const char *path = printed("%s/%llu.db", folder->dir, (unsigned long long)seed);
        store = open_store(path);
        for (unsigned round = 0; round < 40; round++) {
            for (uint64_t i = draw(model, 6); i > 0; i--) {
                time += (int64_t)draw(model, 100) - 20;
                publish(store, model, (uint32_t)draw(model, 8), time);
            }
            if (draw(model, 5) == 0)
                open_again(&store, path);
            struct store_limits limits = {.before =
                                              draw(model, 2) == 0 ? 0 : time - (int64_t)draw(model, 400),
                                          .changes = draw(model, 2) * draw(model, 60)};
            if (model->newest == 0)
                continue;
            expected = trim_model(model, &limits, expected);
            trim_wholly(store, &limits, &trimmed);
            assert_int_equal(trimmed, expected);
            must_be_model(store, model);
            assert_int_equal(store_next_generation(store, &next, NULL), PMIXFAB_OK);
            assert_int_equal(next, model->newest + 1);
            assert_int_equal(count_of(store, "SELECT count(*) FROM generation"), model->newest - trimmed);
        }
        model_free(model);
    }
}

/* A step that was the last before a kill leaves the generation that it was at half removed. */
TEST_IN(test_goes_on_after_a_restart, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(model_free) struct model *model = model_new(5);
    OWNED(store_close) struct store *store = open_store(folder->db);
    const struct store_limits limits = {.changes = 10};
    struct store_trimmed step = {.more = true};
    publish(store, model, 5000, 1);
    publish(store, model, 5, 2);
    unsigned steps = 0;
    for (; step.more; steps++) {
        assert_int_equal(store_trim(store, &limits, &step, NULL), PMIXFAB_OK);
        assert_true(step.rows <= 1000);
        assert_int_equal(step.trimmed, 1); /* said from the first step on: half a generation is none */
        open_again(&store, folder->db);
    }
    assert_true(steps >= 5);
    model->first = 5000;
    must_be_model(store, model);
    assert_int_equal(count_of(store, "SELECT count(*) FROM subject"), 5);
}

/* A plane that did not change for long refers to the generation of its last change. */
TEST_IN(test_a_plane_keeps_its_generation, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(model_free) struct model *model = model_new(7);
    OWNED(store_close) struct store *store = open_store(folder->db);
    const struct store_limits all = {.before = INT64_MAX};
    struct store_plane plane = {.generation = 1, .name = "ib0", .snapshot = (void *)"bytes", .size = 5},
                       *planes;
    uint64_t trimmed;
    uint32_t n;
    SCOPED(fab_inventory) none = empty_inventory();
    const struct store_publication first = {
        .generation = 1, .published = 1, .before = &none, .after = &none, .planes = &plane, .n_planes = 1};
    assert_int_equal(store_publish(store, &first, NULL), PMIXFAB_OK);
    model->newest = 1;
    for (unsigned i = 2; i <= 9; i++)
        publish(store, model, 3, i);
    trim_wholly(store, &all, &trimmed);
    assert_int_equal(trimmed, 8);
    assert_int_equal(count_of(store, "SELECT group_concat(generation, '') FROM generation"), 19);
    open_again(&store, folder->db);
    assert_int_equal(store_load_planes(store, &planes, &n, NULL), PMIXFAB_OK);
    assert_true(n == 1 && planes[0].generation == 1);
    store_planes_free(planes, n);
}

TEST_IN(test_nothing_to_do_writes_nothing, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(model_free) struct model *model = model_new(8);
    OWNED(store_close) struct store *store = open_store(folder->db);
    const struct store_limits limits = {.before = 5, .changes = 100}, none = {0};
    struct store_trimmed step;
    assert_int_equal(store_trim(store, &limits, &step, NULL), PMIXFAB_OK); /* nothing was published */
    for (unsigned i = 5; i <= 9; i++)
        publish(store, model, 3, i);
    int written = sqlite3_total_changes(store->db);
    assert_int_equal(store_trim(store, &limits, &step, NULL), PMIXFAB_OK);
    assert_false(step.more);
    assert_int_equal(store_trim(store, &none, &step, NULL), PMIXFAB_OK);
    assert_int_equal(step.rows, 0);
    assert_int_equal(sqlite3_total_changes(store->db), written);
}

/* ---- the disk ---------------------------------------------------------------------------------------- */

/* What steps write goes from the log into the file in small parts; a publication waits for the disk as
 * before. */
TEST_IN(test_the_log_stays_small, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(model_free) struct model *model = model_new(21);
    OWNED(store_close) struct store *store = open_store(folder->db);
    const struct store_limits limits = {.changes = 10};
    uint64_t trimmed;
    const char *log = printed("%s-wal", folder->db);
    for (unsigned i = 1; i <= 400; i++)
        publish(store, model, 10, i);
    assert_int_equal(sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
                     SQLITE_OK);
    assert_true(trim_wholly(store, &limits, &trimmed) > 20);
    assert_in_range(size_of(log), 1, 4 << 20);
    assert_int_equal(count_of(store, "PRAGMA synchronous"), 2);
    assert_int_equal(count_of(store, "PRAGMA wal_autocheckpoint"), STORE_WAL_PAGES);
    model->first = model->n - 10; /* the newest generation's stay */
    must_be_model(store, model);
}

/* ---- numbers ----------------------------------------------------------------------------------------- */

TEST_IN(test_raise, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(model_free) struct model *model = model_new(9);
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct fab_err err = {{0}};
    uint64_t next;
    publish(store, model, 1, 1);
    assert_int_equal(store_raise(store, 41, &err), PMIXFAB_OK);
    assert_int_equal(store_raise(store, 17, &err), PMIXFAB_OK); /* no way back */
    open_again(&store, folder->db);
    assert_int_equal(store_next_generation(store, &next, &err), PMIXFAB_OK);
    assert_int_equal(next, 42);
    model->newest = 41;
    publish(store, model, 1, 2);
    publish(store, model, 1, 3);
    must_be_model(store, model);
    must_fail(store_raise(store, UINT64_MAX, &err), PMIXFAB_ERR_RANGE, &err, "too high to be one");
}

/* ---- the file ---------------------------------------------------------------------------------------- */

static void shrink_wholly(struct store *store)
{
    bool more = true;
    for (unsigned i = 0; more; i++) {
        assert_true(i < 10000);
        assert_int_equal(store_shrink(store, &more, NULL), PMIXFAB_OK);
    }
}

TEST_IN(test_the_file_becomes_smaller, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(model_free) struct model *model = model_new(10);
    struct store *store = open_store(folder->db);
    const struct store_limits limits = {.changes = 100};
    struct store_pages pages;
    uint64_t trimmed;
    publish(store, model, 10000, 1);
    publish(store, model, 100, 2);
    trim_wholly(store, &limits, &trimmed);
    model->first = 10000;
    must_be_model(store, model);
    store_close(store);
    int64_t before = size_of(folder->db);
    store = open_store(folder->db);
    shrink_wholly(store);
    must_be_model(store, model);
    assert_int_equal(store_pages(store, &pages, NULL), PMIXFAB_OK);
    assert_true(pages.shrinks);
    store_close(store);
    print_message("%lld bytes before, %lld behind\n", (long long)before, (long long)size_of(folder->db));
    assert_true(size_of(folder->db) < before / 2);
}

static void run_sql(const char *path, const char *sql)
{
    OWNED(sqlite3_close) sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        print_error("%s: %s\n", sql, sqlite3_errmsg(db));
    assert_int_equal(rc, SQLITE_OK);
}

/* As an older fabricd has made it: a small one is made anew, a large one stays, and its room is used again */
TEST_IN(test_stores_of_an_older_fabricd, struct folder *folder, folder_setup, folder_teardown)
{
    static const char old[] = "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM";
    for (unsigned large = 0; large < 2; large++) {
        struct model *model = model_new(11);
        struct store_pages pages, later;
        const struct store_limits limits = {.changes = 100};
        uint64_t trimmed;
        const char *path = printed("%s/%u.db", folder->dir, large);
        OWNED(store_close) struct store *store = open_store(path);
        publish(store, model, large ? 9000 : 1000, 1);
        publish(store, model, 10, 2);
        store_close(store);
        run_sql(path, old);
        assert_int_equal(size_of(path) > STORE_VACUUM_MAX, large);
        store = open_store(path);
        assert_int_equal(store_pages(store, &pages, NULL), PMIXFAB_OK);
        assert_int_equal(pages.shrinks, !large);
        must_be_model(store, model);
        trim_wholly(store, &limits, &trimmed);
        shrink_wholly(store);
        publish(store, model, large ? 6800 : 900, 3);
        assert_int_equal(store_pages(store, &later, NULL), PMIXFAB_OK);
        assert_true(later.pages <= pages.pages + pages.pages / 50 + 4);
        model_free(model);
    }
}
