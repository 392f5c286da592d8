/* What was published is what is loaded, and no more is written than that takes. */
#include "test/unit/store_fixture.h"

#include <limits.h>

OWNER(sqlite3_close, sqlite3)

TEST_IN(test_bad_arguments, struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_inventory raw = {0};
    OWNED(store_close) struct store *store;
    assert_int_equal(store_open(NULL, &store, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(store_open("", &store, NULL), PMIXFAB_ERR_INVAL);
    store_close(NULL);
    store_planes_free(NULL, 3);

    store = open_store(folder->db);
    struct fab_inventory inv = empty_inventory();
    assert_int_equal(publish_inventory(store, 1, &inv, &raw, NULL), PMIXFAB_ERR_INVAL);
    must_hold(store, 0, &inv);
}

/* Chains of publications of inventories that have everything in them, read back each time. */
TEST_IN(test_round_trip, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct fab_inventory after;
    uint64_t generation = 0;
    SCOPED(fab_inventory) before = empty_inventory();
    for (unsigned seed = 0; seed < 6; seed++) {
        for (unsigned variant = 0; variant < 4; variant++) {
            after = odd_inventory(seed % 5 == 0 ? 1 + seed : 20 + 3 * seed, seed, variant);
            must_publish(store, ++generation, &before, &after);
            if (variant % 3 == 1)
                open_again(&store, folder->db);
            must_hold(store, generation, &after);
            fab_inventory_destroy(&before);
            before = after;
        }
    }
    after = empty_inventory();
    must_publish(store, ++generation, &before, &after);
    must_hold(store, generation, &after);
}

/* ---- only what differs is written ---- */

static int64_t ask_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

/* Rows of a table that only one of two databases has; a row that changed counts once if it keeps its key. */
static int64_t count_rows(sqlite3 *db, const char *table, const char *key)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM (SELECT %s FROM (SELECT * FROM main.%s EXCEPT SELECT * FROM other.%s)"
             " UNION SELECT %s FROM (SELECT * FROM other.%s EXCEPT SELECT * FROM main.%s))",
             key, table, table, key, table, table);
    return ask_number(db, sql);
}

/* How many rows differ between two databases, found by comparing all of them. */
static int64_t count_differences(const char *one, const char *two)
{
    OWNED(sqlite3_close) sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(one, &db), SQLITE_OK);
    const char *sql = printed("ATTACH '%s' AS other", two);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    int64_t n = count_rows(db, "subnet", "number") + count_rows(db, "node", "guid") +
                count_rows(db, "port", "node, num") + count_rows(db, "link", "a_node, a_num, b_node, b_num");
    return n;
}

static void make_store(const char *path, const struct fab_inventory *inv)
{
    unlink(path);
    struct fab_inventory empty = empty_inventory();
    OWNED(store_close) struct store *store = open_store(path);
    must_publish(store, 1, &empty, inv);
}

TEST_IN(test_only_differences_are_written, struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_inventory a, b;
    const char *one = printed("%s/one.db", folder->dir), *two = printed("%s/two.db", folder->dir);
    int64_t changed = 0;
    for (unsigned seed = 0; seed < 6; seed++) {
        a = odd_inventory(30, seed, seed % 2);
        b = odd_inventory(30, seed, seed % 4 == 3 ? 1 : 2);
        make_store(one, &a);
        make_store(two, &b);
        int64_t expected = count_differences(one, two);
        struct store *store = open_store(one);
        int before = sqlite3_total_changes(store->db);
        must_publish(store, 0, &a, &b);
        /* and the row that holds the digest */
        assert_int_equal(sqlite3_total_changes(store->db) - before, expected + 1);
        must_hold(store, 1, &b);
        store_close(store);
        assert_int_equal(count_differences(one, two), 0);
        changed += expected;
        assert_true(expected > 0 || seed % 4 == 3);
        fab_inventory_destroy(&a);
        fab_inventory_destroy(&b);
    }
    assert_true(changed > 100);
}

/* ---- each field alone ---- */

enum { NODE_FIELDS = 16, PORT_FIELDS = 7 };

/* clang-format off */
static void change_node(struct fab_inventory *inv, struct fab_node *node, int field)
{
    switch (field) {
    case 0: node->system_guid ^= 1ull << 63; break;
    case 1: node->vendor_id ^= 1u << 31; break;
    case 2: node->device_id ^= 1; break;
    case 3: node->desc = fab_inventory_string(inv, "another\xff", 8); break;
    case 4: node->host = fab_inventory_string(inv, "another", 7); break;
    case 5: node->name = fab_inventory_string(inv, "another", 7); break;
    case 6: node->lid ^= 0x8000; break;
    case 7: node->chassis ^= 1; break;
    case 8: node->slot_type ^= 1; break;
    case 9: node->slot ^= 0x80; break;
    case 10: node->chip ^= 1; break;
    case 11: node->kind = node->kind == FAB_ROUTER ? FAB_AGGREGATOR : FAB_ROUTER; break;
    case 12: node->lmc ^= 1; break;
    case 13: node->num_ports = node->num_ports == 254 ? 253 : 254; break;
    case 14: node->enhanced ^= 1; break;
    default: node->unnamed ^= 1; break;
    }
}

static void change_port(const struct fab_inventory *inv, struct fab_port *port, int field)
{
    switch (field) {
    case 0: port->guid ^= 1ull << 63; break;
    case 1: port->lid ^= 0x8000; break;
    case 2: port->lmc ^= 1; break;
    case 3: port->state = (uint8_t)((port->state + 1) % 5); break;
    case 4: port->width = port->width == 4 ? 1 : 4; break;
    case 5: port->speed = (uint8_t)((port->speed + 1) % 10); break;
    default: port->subnet = (uint8_t)((port->subnet + 1) % inv->n_subnets); break;
    }
}

/* clang-format on */
TEST_IN(test_every_field, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    uint64_t generation = 1;
    struct fab_inventory after = odd_inventory(20, 4, 0);
    assert_true(after.n_subnets > 1);
    SCOPED(fab_inventory) before = empty_inventory();
    must_publish(store, generation, &before, &after);
    before = after;
    for (int field = 0; field < NODE_FIELDS + PORT_FIELDS; field++) {
        after = inventory_copy(&before);
        if (field < NODE_FIELDS)
            change_node(&after, &after.nodes[7], field);
        else
            change_port(&after, &after.ports[after.n_ports / 2], field - NODE_FIELDS);
        assert_int_equal(fab_inventory_finish(&after, NULL), PMIXFAB_OK);
        assert_false(fab_inventory_equal(&before, &after));
        assert_int_not_equal(store_inventory_digest(&before), store_inventory_digest(&after));
        int written = sqlite3_total_changes(store->db);
        must_publish(store, ++generation, &before, &after);
        assert_int_equal(sqlite3_total_changes(store->db) - written,
                         4); /* generation and its digest, row, digest */
        must_hold(store, generation, &after);
        fab_inventory_destroy(&before);
        before = after;
    }
}

/* ---- generations ---- */

TEST_IN(test_generations_follow_each_other, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct fab_err err = {{0}};
    struct fab_inventory empty = empty_inventory();
    SCOPED(fab_inventory) a = odd_inventory(10, 1, 0), b = odd_inventory(10, 1, 1);
    SCOPED(fab_inventory) c = odd_inventory(10, 1, 2);
    must_fail(publish_inventory(store, 2, &empty, &a, &err), PMIXFAB_ERR_CONFLICT, &err,
              "generation 2 cannot follow generation 0");
    assert_int_equal(publish_inventory(store, 1, &a, &b, &err), PMIXFAB_ERR_CONFLICT);
    must_hold(store, 0, &empty);
    must_publish(store, 1, &empty, &a);
    assert_int_equal(publish_inventory(store, 1, &a, &b, &err), PMIXFAB_ERR_CONFLICT);
    assert_int_equal(publish_inventory(store, 3, &a, &b, &err), PMIXFAB_ERR_CONFLICT);
    assert_int_equal(publish_inventory(store, UINT64_MAX, &a, &b, &err), PMIXFAB_ERR_CONFLICT);
    must_hold(store, 1, &a);
    must_publish(store, 0, &a, &b);
    must_hold(store, 1, &b);
    must_publish(store, 2, &b, &a);
    must_hold(store, 2, &a);
    /* a change of what is not there */
    must_fail(publish_inventory(store, 3, &b, &c, &err), PMIXFAB_ERR_CONFLICT, &err,
              "does not hold the inventory on which the change is based");
    assert_int_equal(publish_inventory(store, 3, &empty, &c, &err), PMIXFAB_ERR_CONFLICT);
    must_hold(store, 2, &a);
    must_publish(store, 3, &a, &c);
    must_hold(store, 3, &c);
}

/* ---- planes ---- */

static struct store_plane make_plane(uint32_t index, uint64_t generation, const char *name, size_t size,
                                     unsigned seed)
{
    struct store_plane plane = {.index = index, .generation = generation, .size = size};
    uint64_t random = seed + 1;
    snprintf(plane.name, sizeof plane.name, "%s", name);
    if (size > 0) {
        plane.snapshot = malloc(size);
        assert_non_null(plane.snapshot);
        for (size_t i = 0; i < size; i++)
            ((uint8_t *)plane.snapshot)[i] = (uint8_t)(fabric_random_next(&random) >> 24);
    }
    return plane;
}

static int publish_planes(struct store *store, uint64_t generation, const struct store_plane *planes,
                          uint32_t n, struct fab_err *err)
{
    struct fab_inventory empty = empty_inventory();
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation * 1000,
                                                  .before = &empty,
                                                  .after = &empty,
                                                  .planes = planes,
                                                  .n_planes = n};
    return store_publish(store, &publication, err);
}

static void must_hold_planes(struct store *store, const struct store_plane *expected, uint32_t n)
{
    struct store_plane *planes;
    uint32_t found;
    struct fab_err err = {{0}};
    assert_int_equal(store_load_planes(store, &planes, &found, &err), PMIXFAB_OK);
    assert_int_equal(found, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(planes[i].index, expected[i].index);
        assert_int_equal(planes[i].retired, expected[i].retired);
        assert_int_equal(planes[i].generation, expected[i].generation);
        assert_string_equal(planes[i].name, expected[i].name);
        assert_int_equal(planes[i].size, expected[i].size);
        if (expected[i].size > 0)
            assert_memory_equal(planes[i].snapshot, expected[i].snapshot, expected[i].size);
    }
    store_planes_free(planes, found);
}

TEST_IN(test_planes, struct folder *folder, folder_setup, folder_teardown)
{
    struct store *store = open_store(folder->db);
    const char *longest = "123456789012345678901234567890123456789012345678901234567890123"; /* 63 */
    struct store_plane planes[] = {make_plane(0, 1, "plane0", 200000, 1), make_plane(1, 1, "'); --", 0, 2),
                                   make_plane(UINT32_MAX, 1, longest, 5, 3)};
    must_do(publish_planes(store, 1, planes, 3, fresh_err()));
    must_hold_planes(store, planes, 3);

    /* The same size with few bytes changed, a larger one, a retired one; the others are left alone. */
    ((uint8_t *)planes[0].snapshot)[100000] ^= 1;
    planes[0].generation = 2;
    must_do(publish_planes(store, 2, planes, 1, fresh_err()));
    must_hold_planes(store, planes, 3);
    free(planes[1].snapshot);
    planes[1] = make_plane(1, 3, "renamed", 70000, 4);
    must_do(publish_planes(store, 3, &planes[1], 1, fresh_err()));
    planes[2].retired = true;
    must_do(publish_planes(store, 0, &planes[2], 1, fresh_err()));
    must_hold_planes(store, planes, 3);
    open_again(&store, folder->db);
    must_hold_planes(store, planes, 3);

    /* A plane of a generation that is not there, and nonsense. */
    struct store_plane bad = planes[0];
    bad.generation = 9;
    assert_int_equal(publish_planes(store, 4, &bad, 1, fresh_err()), PMIXFAB_ERR_CONFLICT);
    bad = planes[0];
    bad.snapshot = NULL;
    assert_int_equal(publish_planes(store, 4, &bad, 1, fresh_err()), PMIXFAB_ERR_INVAL);
    bad = planes[0];
    memset(bad.name, 'x', sizeof bad.name);
    assert_int_equal(publish_planes(store, 4, &bad, 1, fresh_err()), PMIXFAB_ERR_INVAL);
    must_hold_planes(store, planes, 3);
    store_close(store);
    for (int i = 0; i < 3; i++)
        free(planes[i].snapshot);
}

/* A snapshot in which little changed costs the log a few pages, not all of them. */
TEST_IN(test_like_snapshot_is_updated_in_place, struct folder *folder, folder_setup, folder_teardown)
{
    struct stat before, after;
    const char *wal = printed("%s-wal", folder->db);
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct store_plane plane = make_plane(0, 1, "plane0", 1000000, 1);
    must_do(publish_planes(store, 1, &plane, 1, fresh_err()));
    /* SQLite stores 0 and 1 in no byte, so generation 2 makes the row longer. */
    plane.generation = 2;
    must_do(publish_planes(store, 2, &plane, 1, fresh_err()));
    assert_int_equal(stat(wal, &before), 0);
    ((uint8_t *)plane.snapshot)[500000] ^= 1;
    plane.generation = 3;
    must_do(publish_planes(store, 3, &plane, 1, fresh_err()));
    assert_int_equal(stat(wal, &after), 0);
    assert_true(before.st_size > 2000000);
    assert_true(after.st_size - before.st_size < 20L * 4200);
    must_hold_planes(store, &plane, 1);
    /* Nor does one that is a little shorter, or longer again. */
    for (unsigned i = 0; i < 2; i++) {
        before = after;
        plane.generation++;
        plane.size = i == 0 ? 999976 : 1000000;
        must_do(publish_planes(store, plane.generation, &plane, 1, fresh_err()));
        assert_int_equal(stat(wal, &after), 0);
        assert_true(after.st_size - before.st_size < 20L * 4200);
        must_hold_planes(store, &plane, 1);
    }
    free(plane.snapshot);
}

/* ---- history ---- */

struct heard {
    unsigned n, stop_after;
    struct {
        uint64_t generation;
        int64_t time;
        char kind[32], what[128], before[64], after[64];
    } changes[64];
};

static int hear(const struct store_change *change, void *cbdata)
{
    struct heard *heard = cbdata;
    assert_true(heard->n < 64);
    heard->changes[heard->n].generation = change->generation;
    heard->changes[heard->n].time = change->time;
    snprintf(heard->changes[heard->n].kind, 32, "%s", change->kind);
    snprintf(heard->changes[heard->n].what, 128, "%s", change->what);
    snprintf(heard->changes[heard->n].before, 64, "%s", change->before);
    snprintf(heard->changes[heard->n].after, 64, "%s", change->after);
    heard->n++;
    return heard->n == heard->stop_after;
}

static unsigned history(struct store *store, uint64_t from, uint64_t to, const char *what, uint32_t limit,
                        struct heard *heard)
{
    heard->n = 0;
    must_do(store_history(store, from, to, what, limit, hear, heard, fresh_err()));
    return heard->n;
}

static void publish_changes(struct store *store, uint64_t generation, struct fab_change *changes, uint32_t n)
{
    struct fab_diff diff = {.changes = changes, .n = n};
    struct fab_inventory empty = empty_inventory();
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation * 1000,
                                                  .before = &empty,
                                                  .after = &empty,
                                                  .diff = &diff};
    must_do(store_publish(store, &publication, fresh_err()));
}

static char *writable(const char *text)
{
    return (char *)(uintptr_t)text; /* fab_change owns its texts elsewhere; the store only reads them */
}

static struct fab_change make_change(enum fab_change_kind kind, const char *what, const char *before,
                                     const char *after)
{
    return (struct fab_change){
        .kind = kind, .what = writable(what), .before = writable(before), .after = writable(after)};
}

static void write_history(struct store *store)
{
    struct fab_change first[] = {
        make_change(FAB_CHANGE_HOST_ADDED, "node1", "", ""),
        make_change(FAB_CHANGE_HOST_ADDED, "node10", "", ""),
        make_change(FAB_CHANGE_LINK_ADDED, "leaf1[8] - node1 HCA-1[1]", "", "4xHDR")};
    struct fab_change second[] = {
        make_change(FAB_CHANGE_LINK_RATE, "leaf1[8] - node1 HCA-1[1]", "4xHDR", "1xSDR"),
        make_change(FAB_CHANGE_NAME, "it's 100%_odd", "'); DROP TABLE change; --",
                    "Z\xc3\xbcrich\n\x01\xff")};
    publish_changes(store, 1, first, 3);
    publish_changes(store, 2, NULL, 0);
    publish_changes(store, 3, second, 2);
    publish_changes(store, 0, second, 2); /* no generation, no history */
}

TEST_IN(test_history, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    OWNED(free) struct heard *heard = must_have(sizeof *heard);
    write_history(store);
    assert_int_equal(history(store, 0, UINT64_MAX, NULL, 0, heard), 5);
    static const uint64_t generations[] = {1, 1, 1, 3, 3};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(heard->changes[i].generation, generations[i]);
        assert_int_equal(heard->changes[i].time, (int64_t)generations[i] * 1000);
    }
    assert_string_equal(heard->changes[0].kind, fab_change_name(FAB_CHANGE_HOST_ADDED));
    assert_string_equal(heard->changes[0].what, "node1");
    assert_string_equal(heard->changes[3].kind, "link-rate");
    assert_string_equal(heard->changes[3].before, "4xHDR");
    assert_string_equal(heard->changes[3].after, "1xSDR");
    assert_string_equal(heard->changes[4].before, "'); DROP TABLE change; --");
    assert_string_equal(heard->changes[4].after, "Z\xc3\xbcrich\n\x01\xff");

    assert_int_equal(history(store, 0, 1, NULL, 0, heard), 3);
    assert_int_equal(history(store, 1, 2, NULL, 0, heard), 0);
    assert_int_equal(history(store, 1, 3, NULL, 0, heard), 2);
    assert_int_equal(history(store, 3, 3, NULL, 0, heard), 0);
    assert_int_equal(history(store, UINT64_MAX, UINT64_MAX, NULL, 0, heard), 0);

    /* The newest, but told from the oldest on. */
    assert_int_equal(history(store, 0, 9, NULL, 3, heard), 3);
    assert_string_equal(heard->changes[0].kind, "link-added");
    assert_string_equal(heard->changes[2].what, "it's 100%_odd");
    assert_int_equal(history(store, 0, 1, NULL, 2, heard), 2);
    assert_string_equal(heard->changes[0].what, "node10");
    assert_int_equal(history(store, 0, 9, NULL, UINT32_MAX, heard), 5);

    /* A part of the text, no pattern. */
    assert_int_equal(history(store, 0, 9, "node1", 0, heard), 4);
    assert_int_equal(history(store, 0, 9, "node1 ", 0, heard), 2);
    assert_int_equal(history(store, 0, 9, "%", 0, heard), 1);
    assert_int_equal(history(store, 0, 9, "_", 5, heard), 1);
    assert_int_equal(history(store, 0, 9, "it's", 0, heard), 1);
    assert_int_equal(history(store, 0, 9, "", 0, heard), 5);
    assert_int_equal(history(store, 0, 9, "nowhere", 0, heard), 0);

    heard->stop_after = 2;
    assert_int_equal(history(store, 0, 9, NULL, 0, heard), 2);
}

/* ---- page by page ---- */

/* Numbers of changes, in the order in which they are told. */
struct numbers {
    uint64_t *list;
    uint32_t n, stop_after;
};

static int hear_number(const struct store_change *change, void *cbdata)
{
    struct numbers *numbers = cbdata;
    numbers->list[numbers->n++] = change->generation * 1000000 + change->seq;
    return numbers->n == numbers->stop_after;
}

/* Pages from the newest to the oldest, and from the oldest to the newest (of all): each is what the whole is.
 */
static unsigned compare_pages(struct store *store, const char *what, uint32_t limit,
                              const struct numbers *whole)
{
    OWNED(free) uint64_t *list = must_have((whole->n + limit + 1) * sizeof(*list));
    struct store_range range = store_range(0, 9);
    uint32_t told = 0;
    unsigned pages = 0;
    while (range.end.generation > range.first.generation || range.end.seq > range.first.seq) {
        struct numbers page = {.list = list};
        must_do(store_history_older(store, &range, what, limit, hear_number, &page, fresh_err()));
        assert_true(page.n <= limit && told + page.n <= whole->n);
        told += page.n;
        assert_memory_equal(list, whole->list + whole->n - told, page.n * sizeof(*list));
        pages++;
    }
    assert_int_equal(told, whole->n);
    range = store_range(0, 9);
    struct numbers all = {.list = list};
    while (what == NULL &&
           (range.end.generation > range.first.generation || range.end.seq > range.first.seq)) {
        all.stop_after = all.n + limit / 2 + 1; /* it may end before its limit */
        must_do(store_history_newer(store, &range, limit, hear_number, &all, fresh_err()));
    }
    assert_true(what != NULL || all.n == whole->n);
    assert_memory_equal(list, whole->list, all.n * sizeof(*list));
    return pages;
}

TEST_IN(test_history_in_pages, struct folder *folder, folder_setup, folder_teardown)
{
    enum { MANY = 2 * STORE_LOOKED_THROUGH + 10 };
    OWNED(store_close) struct store *store = open_store(folder->db);
    OWNED(free) struct fab_change *changes = must_have(MANY * sizeof(*changes));
    OWNED(free) uint64_t *list = must_have((MANY + 10) * sizeof(*list));
    for (uint32_t i = 0; i < MANY; i++)
        changes[i] = make_change(FAB_CHANGE_OTHER, i == 3 ? "a needle" : "hay", "", "");
    write_history(store);
    publish_changes(store, 4, changes, MANY);
    static const struct {
        const char *what;
        uint32_t limit;
    } asked[] = {{NULL, 1000}, {NULL, 29999}, {"needle", 1000}, {"hay", 7000}, {"nowhere", 1}, {"node1", 2}};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct numbers whole = {.list = list};
        must_do(store_history(store, 0, 9, asked[i].what, 0, hear_number, &whole, fresh_err()));
        const unsigned pages = compare_pages(store, asked[i].what, asked[i].limit, &whole);
        assert_true(pages >= 3); /* none looks through all */
    }
}

/* ---- whom changes are about ---- */

static int hear_story(const struct store_change *change, void *cbdata)
{
    char *told = cbdata;
    size_t used = strlen(told);
    snprintf(told + used, 1000 - used, "%llu %s|%s|%s|%d|%lld|%lld;", (unsigned long long)change->generation,
             change->what, change->why, change->subjects, change->planned, (long long)change->first_seen,
             (long long)change->last_seen);
    return 0;
}

static void assert_story(struct store *store, const char *what, uint32_t limit, const char *expected)
{
    char told[1000] = "";
    struct fab_err err = {{0}};
    assert_int_equal(store_history(store, 0, 9, what, limit, hear_story, told, &err), PMIXFAB_OK);
    assert_string_equal(told, expected);
}

TEST_IN(test_subjects, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    struct fab_change first[] = {make_change(FAB_CHANGE_HCA_REPLACED, "node1 HCA-1", "0x1", "0x2"),
                                 make_change(FAB_CHANGE_INDEX, "ib0 of node1", "17-39", "16-38")};
    struct fab_change second[] = {
        make_change(FAB_CHANGE_HOST_MOVED, "node10 HCA-1[1]", "leaf1[1]", "leaf2[1]")};
    first[0].why = "because";
    first[0].subjects = "node1\0leaf1\0";
    first[0].planned = true;
    first[0].first_seen = 7;
    first[0].last_seen = 5;
    second[0].subjects = "node10\0leaf1\0leaf2\0";
    publish_changes(store, 1, first, 2);
    publish_changes(store, 2, second, 1);
    /* a subject: exactly; what is about nobody: by its text */
    assert_story(store, "node1", 0, "1 node1 HCA-1|because|node1\nleaf1|1|7|5;1 ib0 of node1|||0|0|0;");
    assert_story(store, "leaf1", 0,
                 "1 node1 HCA-1|because|node1\nleaf1|1|7|5;2 node10 HCA-1[1]||node10\nleaf1\nleaf2|0|0|0;");
    assert_story(store, "leaf1", 1, "2 node10 HCA-1[1]||node10\nleaf1\nleaf2|0|0|0;");
    assert_story(store, "leaf2", 5, "2 node10 HCA-1[1]||node10\nleaf1\nleaf2|0|0|0;");
    /* anything else is a part of what, before or after */
    assert_story(store, "0x2", 0, "1 node1 HCA-1|because|node1\nleaf1|1|7|5;");
    assert_story(store, "leaf2[", 0, "2 node10 HCA-1[1]||node10\nleaf1\nleaf2|0|0|0;");
    assert_story(store, "because", 0, "");
    static const char *const names[] = {"node1", "leaf2", "node", "ib0"};
    for (int i = 0; i < 4; i++) {
        bool known;
        must_do(store_knows_subject(store, names[i], &known, fresh_err()));
        assert_int_equal(known, i < 2);
    }
}
