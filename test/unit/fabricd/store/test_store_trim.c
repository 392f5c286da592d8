/* test_trim.c - the history within bounds: what goes, what stays, how much a step does, what numbers follow.
 */
#include "test/unit/store_fixture.h"

#include <sys/stat.h>

#include "topo/diff/diff.h"

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
    char long_text[256]; /* so that few changes make a large store */
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct fab_change *changes = calloc(n + 1, sizeof *changes);
    struct fab_inventory none;
    struct fab_err err = {{0}};
    assert_non_null(changes);
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
    empty_inventory(&none);
    struct fab_diff diff = {.changes = changes, .n = n};
    const struct store_publication publication = {
        .generation = generation, .published = time, .before = &none, .after = &none, .diff = &diff};
    int rc = store_publish(store, &publication, &err);
    if (rc != PMIXFAB_OK)
        print_error("%s\n", err.text);
    assert_int_equal(rc, PMIXFAB_OK);
    fab_inventory_destroy(&none);
    free(changes);
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
    struct fab_err err = {{0}};
    struct store_bounds bounds;
    struct walk all = {.model = model, .at = model->first};
    assert_int_equal(store_history(store, 0, INT64_MAX, NULL, 0, must_be_next, &all, &err), PMIXFAB_OK);
    assert_int_equal(all.at, model->n);
    for (unsigned i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "node%03u", i);
        struct walk about = {.model = model, .subject = name, .at = model->first};
        assert_int_equal(store_history(store, 0, INT64_MAX, name, 0, must_be_next, &about, &err), PMIXFAB_OK);
        for (; about.at < model->n; about.at++)
            assert_string_not_equal(model->rows[about.at].subject, name);
    }
    assert_int_equal(store_bounds(store, &bounds, &err), PMIXFAB_OK);
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
    struct fab_err err = {{0}};
    uint32_t steps = 0;
    for (; step.more; steps++) {
        int rc = store_trim(store, limits, &step, &err);
        if (rc != PMIXFAB_OK)
            print_error("%s\n", err.text);
        assert_int_equal(rc, PMIXFAB_OK);
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

static struct model *model_new(uint64_t seed)
{
    struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    model->random = seed;
    return model;
}

/* ---- what goes --------------------------------------------------------------------------------------- */

/* Clocks go back and forth, limits come and go, the store is closed in between. */
TEST_WITH(test_like_the_plain_way, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct model *model = model_new(seed);
        struct store *store;
        char path[PATH_SIZE];
        uint64_t trimmed = 0, expected = 0, next;
        int64_t time = 1000000;
        snprintf(path, sizeof path, "%s/%llu.db", folder->dir, (unsigned long long)seed);
        store = open_store(path);
        for (unsigned round = 0; round < 40; round++) {
            for (uint64_t i = draw(model, 6); i > 0; i--) {
                time += (int64_t)draw(model, 100) - 20;
                publish(store, model, (uint32_t)draw(model, 8), time);
            }
            if (draw(model, 5) == 0) {
                store_close(store);
                store = open_store(path);
            }
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
        store_close(store);
        model_free(model);
    }
}

/* A step that was the last before a kill leaves the generation that it was at half removed. */
TEST_WITH(test_goes_on_after_a_restart, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    struct model *model = model_new(5);
    struct store *store = open_store(folder->db);
    const struct store_limits limits = {.changes = 10};
    struct store_trimmed step = {.more = true};
    publish(store, model, 5000, 1);
    publish(store, model, 5, 2);
    unsigned steps = 0;
    for (; step.more; steps++) {
        assert_int_equal(store_trim(store, &limits, &step, NULL), PMIXFAB_OK);
        assert_true(step.rows <= 1000);
        assert_int_equal(step.trimmed, 1); /* said from the first step on: half a generation is none */
        store_close(store);
        store = open_store(folder->db);
    }
    assert_true(steps >= 5);
    model->first = 5000;
    must_be_model(store, model);
    assert_int_equal(count_of(store, "SELECT count(*) FROM subject"), 5);
    store_close(store);
    model_free(model);
}

TEST_WITH(test_the_newest_stays, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    struct model *model = model_new(6);
    struct store *store = open_store(folder->db);
    const struct store_limits all = {.before = INT64_MAX, .changes = 1};
    uint64_t trimmed, next;
    int64_t published;
    for (unsigned i = 1; i <= 9; i++)
        publish(store, model, 3, i);
    trim_wholly(store, &all, &trimmed);
    assert_int_equal(trimmed, 8);
    store_close(store);
    store = open_store(folder->db);
    assert_int_equal(store_next_generation(store, &next, NULL), PMIXFAB_OK);
    assert_int_equal(next, 10);
    assert_int_equal(store_generation(store, &next, &published, NULL), PMIXFAB_OK);
    assert_true(next == 9 && published == 9);
    model->first = 24;
    must_be_model(store, model);
    store_close(store);
    model_free(model);
}

/* A plane that did not change for long refers to the generation of its last change. */
TEST_WITH(test_a_plane_keeps_its_generation, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    struct model *model = model_new(7);
    struct store *store = open_store(folder->db);
    const struct store_limits all = {.before = INT64_MAX};
    struct fab_inventory none;
    struct store_plane plane = {.generation = 1, .name = "ib0", .snapshot = (void *)"bytes", .size = 5},
                       *planes;
    uint64_t trimmed;
    uint32_t n;
    empty_inventory(&none);
    const struct store_publication first = {
        .generation = 1, .published = 1, .before = &none, .after = &none, .planes = &plane, .n_planes = 1};
    assert_int_equal(store_publish(store, &first, NULL), PMIXFAB_OK);
    model->newest = 1;
    for (unsigned i = 2; i <= 9; i++)
        publish(store, model, 3, i);
    trim_wholly(store, &all, &trimmed);
    assert_int_equal(trimmed, 8);
    assert_int_equal(count_of(store, "SELECT group_concat(generation, '') FROM generation"), 19);
    store_close(store);
    store = open_store(folder->db);
    assert_int_equal(store_load_planes(store, &planes, &n, NULL), PMIXFAB_OK);
    assert_true(n == 1 && planes[0].generation == 1);
    store_planes_free(planes, n);
    store_close(store);
    fab_inventory_destroy(&none);
    model_free(model);
}

TEST_WITH(test_nothing_to_do_writes_nothing, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    struct model *model = model_new(8);
    struct store *store = open_store(folder->db);
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
    store_close(store);
    model_free(model);
}

/* ---- the disk ---------------------------------------------------------------------------------------- */

/* What steps write goes from the log into the file in small parts; a publication waits for the disk as
 * before.
 */
TEST_WITH(test_the_log_stays_small, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    struct model *model = model_new(21);
    struct store *store = open_store(folder->db);
    const struct store_limits limits = {.changes = 10};
    char log[PATH_SIZE + 8];
    uint64_t trimmed;
    snprintf(log, sizeof log, "%s-wal", folder->db);
    for (unsigned i = 1; i <= 400; i++)
        publish(store, model, 20, i);
    assert_int_equal(sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
                     SQLITE_OK);
    assert_true(trim_wholly(store, &limits, &trimmed) > 20);
    assert_in_range(size_of(log), 1, 4 << 20);
    assert_int_equal(count_of(store, "PRAGMA synchronous"), 2);
    assert_int_equal(count_of(store, "PRAGMA wal_autocheckpoint"), STORE_WAL_PAGES);
    model->first = model->n - 20; /* the newest generation's stay */
    must_be_model(store, model);
    store_close(store);
    model_free(model);
}

/* ---- numbers ----------------------------------------------------------------------------------------- */

TEST_WITH(test_raise, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    struct model *model = model_new(9);
    struct store *store = open_store(folder->db);
    struct fab_err err = {{0}};
    uint64_t next;
    publish(store, model, 1, 1);
    assert_int_equal(store_raise(store, 41, &err), PMIXFAB_OK);
    assert_int_equal(store_raise(store, 17, &err), PMIXFAB_OK); /* no way back */
    store_close(store);
    store = open_store(folder->db);
    assert_int_equal(store_next_generation(store, &next, &err), PMIXFAB_OK);
    assert_int_equal(next, 42);
    model->newest = 41;
    publish(store, model, 1, 2);
    publish(store, model, 1, 3);
    must_be_model(store, model);
    assert_int_equal(store_raise(store, UINT64_MAX, &err), PMIXFAB_ERR_RANGE);
    check_line(&err, "too high to be one");
    store_close(store);
    model_free(model);
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

TEST_WITH(test_the_file_becomes_smaller, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    struct model *model = model_new(10);
    struct store *store = open_store(folder->db);
    const struct store_limits limits = {.changes = 100};
    struct store_pages pages;
    uint64_t trimmed;
    publish(store, model, 40000, 1);
    publish(store, model, 100, 2);
    trim_wholly(store, &limits, &trimmed);
    model->first = 40000;
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
    model_free(model);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        print_error("%s: %s\n", sql, sqlite3_errmsg(db));
    assert_int_equal(rc, SQLITE_OK);
    sqlite3_close(db);
}

/* As an older fabricd has made it: a small one is made anew, a large one stays, and its room is used again.
 */
TEST_WITH(test_stores_of_an_older_fabricd, folder_setup, folder_teardown)
{
    struct folder *folder = *state;
    static const char old[] = "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM";
    for (unsigned large = 0; large < 2; large++) {
        struct model *model = model_new(11);
        char path[PATH_SIZE];
        struct store_pages pages, later;
        const struct store_limits limits = {.changes = 100};
        uint64_t trimmed;
        snprintf(path, sizeof path, "%s/%u.db", folder->dir, large);
        struct store *store = open_store(path);
        publish(store, model, large ? 60000 : 1000, 1);
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
        publish(store, model, large ? 45000 : 900, 3);
        assert_int_equal(store_pages(store, &later, NULL), PMIXFAB_OK);
        assert_true(later.pages <= pages.pages + pages.pages / 50 + 4);
        store_close(store);
        model_free(model);
    }
}
