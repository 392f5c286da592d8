/* What hosts report: stored whole, replaced, forgotten; what was published of it stays
 * known until something else is. */
#include "test/unit/store_fixture.h"

OWNER(sqlite3_close, sqlite3)

enum { HOSTS = 12 };

/* A model of the two tables: what each host has stored, and what was published of it. 0: nothing. */
struct model {
    unsigned stored[HOSTS], published[HOSTS];
};

/* Report number k of a host, in memory of the caller's. */
struct sample {
    char host[32];
    unsigned char bytes[600];
    struct store_report report;
};

static void make_sample(struct sample *sample, unsigned host, unsigned k)
{
    snprintf(sample->host, sizeof sample->host, "node%02u", host);
    sample->report = (struct store_report){
        .host = sample->host,
        .digest = (uint64_t)k << 60 | (uint64_t)host << 32 | k,
        .received = (int64_t)k * 1000000 + host,
        .uid = k % 3 == 0 ? UINT32_MAX : k,
        .bytes = sample->bytes,
        .size = k % 5 == 0 ? 0 : (host * 37 + k * 101) % sizeof sample->bytes,
    };
    for (size_t i = 0; i < sample->report.size; i++)
        sample->bytes[i] = (unsigned char)(i * k + host);
}

static int put(struct store *store, unsigned host, unsigned k, struct fab_err *err)
{
    struct sample sample;
    make_sample(&sample, host, k);
    return store_reports_put(store, &sample.report, 1, err);
}

struct walked {
    const struct model *model;
    unsigned n, last;
};

static int check_stored(const struct store_report *report, void *cbdata)
{
    struct walked *walked = cbdata;
    unsigned host = (unsigned)strtoul(report->host + 4, NULL, 10);
    struct sample sample;
    assert_true(host < HOSTS);
    assert_true(walked->n == 0 || host > walked->last);
    make_sample(&sample, host, walked->model->stored[host]);
    assert_string_equal(report->host, sample.host);
    assert_true(report->digest == sample.report.digest);
    assert_true(report->received == sample.report.received);
    assert_int_equal(report->uid, sample.report.uid);
    assert_int_equal(report->size, sample.report.size);
    assert_memory_equal(report->bytes, sample.bytes, report->size);
    walked->last = host;
    walked->n++;
    return 0;
}

static int check_published(const struct store_report *report, void *cbdata)
{
    struct walked *walked = cbdata;
    unsigned host = (unsigned)strtoul(report->host + 4, NULL, 10);
    struct sample sample;
    make_sample(&sample, host, walked->model->published[host]);
    assert_true(report->digest == sample.report.digest);
    walked->n++;
    return 0;
}

static void must_be(struct store *store, const struct model *model)
{
    struct walked stored = {.model = model}, published = {.model = model};
    unsigned n_stored = 0, n_published = 0;
    must_do(store_reports_load(store, check_stored, &stored, fresh_err()));
    must_do(store_reports_published(store, check_published, &published, fresh_err()));
    for (unsigned host = 0; host < HOSTS; host++) {
        struct sample sample;
        void *bytes = &sample;
        size_t size = 7;
        make_sample(&sample, host, model->published[host]);
        int rc = store_report_published(store, sample.host, &bytes, &size, fresh_err());
        n_stored += model->stored[host] != 0;
        n_published += model->published[host] != 0;
        assert_int_equal(rc, model->published[host] != 0 ? PMIXFAB_OK : PMIXFAB_ERR_NOTFOUND);
        if (rc != PMIXFAB_OK) {
            assert_null(bytes);
            continue;
        }
        assert_int_equal(size, sample.report.size);
        assert_memory_equal(bytes, sample.bytes, size);
        free(bytes);
    }
    assert_int_equal(stored.n, n_stored);
    assert_int_equal(published.n, n_published);
}

/* Publish what is stored, of some hosts (a bit each); a generation, or (0) none. */
static int tell(struct store *store, uint64_t generation, const struct fab_inventory *inv,
                const struct model *model, unsigned hosts, struct fab_err *err)
{
    struct sample samples[HOSTS];
    struct store_report told[HOSTS];
    uint32_t n = 0;
    for (unsigned host = 0; host < HOSTS; host++) {
        if ((hosts >> host & 1) == 0)
            continue;
        make_sample(&samples[host], host, model->stored[host]);
        told[n++] = (struct store_report){
            .host = samples[host].host, .digest = model->stored[host] == 0 ? 0 : samples[host].report.digest};
    }
    const struct store_publication publication = {.generation = generation,
                                                  .published = 1000,
                                                  .before = inv,
                                                  .after = inv,
                                                  .announced = told,
                                                  .n_announced = n};
    return store_publish(store, &publication, err);
}

TEST_IN(test_bad_arguments, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct store_report nameless = {.digest = 1}, empty = {.host = "a", .size = 3};
    assert_int_equal(store_reports_put(store, &nameless, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(store_reports_put(store, &empty, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(store_reports_put(store, NULL, 0, NULL), PMIXFAB_OK);
    must_be(store, &(struct model){.stored = {0}});
}

/* Random puts, publications and losses, with the store closed now and then, held against the model. */
TEST_IN(test_against_model, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct model model = {.stored = {0}};
    struct fab_err err = {{0}};
    uint64_t random = 11, generation = 0;
    unsigned forgotten = 0, kept = 0;
    struct fab_inventory inv = empty_inventory();
    for (int i = 0; i < 600; i++) {
        uint64_t pick = fabric_random_next(&random) >> 12;
        unsigned host = (unsigned)(pick / 16 % HOSTS), k = (unsigned)(1 + pick / 256 % 5);
        const char *name = printed("node%02u", host);
        if (pick % 16 < 9) {
            assert_int_equal(put(store, host, k, &err), PMIXFAB_OK);
            kept += model.stored[host] == model.published[host] && model.stored[host] != k;
            model.stored[host] = k;
        } else if (pick % 16 < 11) {
            int expected = model.stored[host] == 0 ? PMIXFAB_ERR_NOTFOUND : PMIXFAB_OK;
            assert_int_equal(store_report_forget(store, name, &err), expected);
            forgotten += expected == PMIXFAB_OK;
            model.stored[host] = 0;
        } else if (pick % 16 < 15) {
            unsigned hosts = (unsigned)(pick >> 12) & ((1u << HOSTS) - 1);
            uint64_t next = pick % 2 == 0 ? ++generation : 0;
            assert_int_equal(tell(store, next, &inv, &model, hosts, &err), PMIXFAB_OK);
            for (unsigned h = 0; h < HOSTS; h++)
                if ((hosts >> h & 1) != 0)
                    model.published[h] = model.stored[h];
        } else {
            open_again(&store, folder->db);
        }
        must_be(store, &model);
    }
    assert_true(forgotten > 10 && kept > 10);
}

/* All of a list or nothing; and a publication of what is not stored any more is none at all. */
TEST_IN(test_whole_or_not, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct fab_err err = {{0}};
    struct model model = {.stored = {0}};
    struct sample a, b;
    struct fab_inventory inv = empty_inventory();
    SCOPED(fab_inventory) next = odd_inventory(5, 1, 0);
    make_sample(&a, 1, 1);
    make_sample(&b, 2, 1);
    b.report.host = NULL;
    assert_int_equal(store_reports_put(store, (struct store_report[]){a.report, b.report}, 2, &err),
                     PMIXFAB_ERR_INVAL);
    must_be(store, &model);

    assert_int_equal(put(store, 1, 1, &err), PMIXFAB_OK);
    model.stored[1] = 2; /* another than the one that is there */
    must_fail(tell(store, 1, &inv, &model, 1u << 1, &err), PMIXFAB_ERR_CONFLICT, &err,
              "writing published reports");
    model.stored[1] = 1;
    must_be(store, &model);
    must_publish(store, 1, &inv, &next);
    assert_int_equal(tell(store, 2, &next, &model, 1u << 1, &err), PMIXFAB_OK);
    model.published[1] = 1;
    must_be(store, &model);
}

static int stop_at_first(const struct store_report *report, void *cbdata)
{
    unsigned *n = cbdata;
    assert_non_null(report->host);
    return ++*n == 1;
}

TEST_IN(test_walk_ends, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    unsigned n = 0;
    must_do(put(store, 1, 1, fresh_err()));
    must_do(put(store, 2, 1, fresh_err()));
    must_do(store_reports_load(store, stop_at_first, &n, fresh_err()));
    assert_int_equal(n, 1);
    must_do(put(store, 3, 1, fresh_err())); /* nothing is left open */
}

static void change_row(const char *path, const char *sql)
{
    OWNED(sqlite3_close) sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
}

/* Rows that are sound to SQLite and not what was written. */
TEST_WITH(test_changed_rows, folder_setup, folder_teardown)
{
    static const char *const damage[] = {
        "UPDATE report SET host = 'node77'",
        "UPDATE report SET digest = digest + 1",
        "UPDATE report SET received = 0",
        "UPDATE report SET uid = 0",
        "UPDATE report SET uid = -1",
        "UPDATE report SET bytes = zeroblob(length(bytes))",
        "UPDATE report SET bytes = x''",
        "UPDATE report SET checksum = 0",
        "UPDATE report_published SET host='x'",
        "UPDATE report_published SET digest = digest + 1",
        "UPDATE report_published SET checksum = 0",
    };
    struct folder *folder = *state;
    struct fab_err err = {{0}};
    struct fab_inventory inv = empty_inventory();
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        unsigned n = 0;
        unlink(folder->db);
        OWNED(store_close) struct store *store = open_store(folder->db);
        assert_int_equal(put(store, 1, 3, &err), PMIXFAB_OK);
        assert_int_equal(tell(store, 1, &inv, &(struct model){.stored = {0, 3}}, 1u << 1, &err), PMIXFAB_OK);
        store_close(store);
        change_row(folder->db, damage[i]);
        store = open_store(folder->db);
        int rc = store_reports_load(store, stop_at_first, &n, &err);
        if (rc == PMIXFAB_OK)
            rc = store_reports_published(store, stop_at_first, &n, &err);
        if (rc != PMIXFAB_ERR_CORRUPT)
            print_error("not noticed: %s\n", damage[i]);
        assert_int_equal(rc, PMIXFAB_ERR_CORRUPT);
        check_line(&err, "does not match its checksum");
    }
}
