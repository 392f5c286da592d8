/* Databases of every older version are brought up to date, newer ones are refused. */
#include "test/unit/store_fixture.h"

#include "fabricd/store/store.h"
#include "fabricd/store/store_priv.h"
#include "fabricd/store/store_tables.h"

OWNER(sqlite3_close, sqlite3)

/* The schema as it could be in a few releases: what is built in, and these. */
static const char *const later[] = {
    "CREATE TABLE cable_label (a_node INTEGER PRIMARY KEY, label TEXT NOT NULL) STRICT;\n"
    "INSERT INTO cable_label SELECT guid, 'a ''quoted''; text' FROM node; -- several; statements\n",
    /* rebuilds a table that others refer to, as SQLite wants it done */
    "CREATE TABLE new_node (guid INTEGER PRIMARY KEY, system_guid INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " description BLOB NOT NULL, host TEXT NOT NULL, name TEXT NOT NULL, unnamed INTEGER NOT NULL,"
    " vendor_id INTEGER NOT NULL, device_id INTEGER NOT NULL, num_ports INTEGER NOT NULL,"
    " enhanced INTEGER NOT NULL, lid INTEGER NOT NULL, lmc INTEGER NOT NULL, chassis INTEGER NOT NULL,"
    " slot_type INTEGER NOT NULL, slot INTEGER NOT NULL, chip INTEGER NOT NULL,"
    " missing INTEGER NOT NULL, serial TEXT NOT NULL DEFAULT '') STRICT;\n"
    "INSERT INTO new_node SELECT *, '' FROM node;\n"
    "DROP TABLE node;\n"
    "ALTER TABLE new_node RENAME TO node;\n",
};

#define MAX_STEPS 32

/* The first n steps of all. */
struct schema {
    const char *steps[MAX_STEPS];
    int n, built_in;
};

static struct schema make_schema(int n)
{
    struct schema schema = {.n = 0};
    while (schema_sql[schema.built_in] != NULL)
        schema.built_in++;
    int all = schema.built_in + (int)(sizeof later / sizeof later[0]);
    assert_true(all < MAX_STEPS);
    if (n < 0 || n > all)
        n = all;
    for (; schema.n < n; schema.n++)
        schema.steps[schema.n] =
            schema.n < schema.built_in ? schema_sql[schema.n] : later[schema.n - schema.built_in];
    return schema;
}

static int64_t ask_number(const char *path, const char *sql)
{
    OWNED(sqlite3_close) sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

static void run_sql(const char *path, const char *sql)
{
    OWNED(sqlite3_close) sqlite3 *db = NULL;
    char *said = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
}

static int open_with(const char *path, const struct schema *schema, struct store **store, struct fab_err *err)
{
    return store_open_schema(path, schema->steps, true, store, err);
}

/* A database as an fabricd of that version left it: written by its steps, filled where it has the tables. */
static void write_version(const char *path, const struct schema *schema, const struct fab_inventory *inv)
{
    struct store *store = NULL;
    struct fab_inventory empty;
    unlink(path);
    if (schema->n >= schema->built_in) {
        empty = empty_inventory();
        must_do(open_with(path, schema, &store, fresh_err()));
        must_publish(store, 1, &empty, inv);
        store_close(store);
        return;
    }
    for (int i = 0; i < schema->n; i++)
        run_sql(path, schema->steps[i]);
    const char *sql = printed("PRAGMA user_version = %d; PRAGMA application_id = %d", schema->n,
                              schema->n == 0 ? 0 : STORE_APPLICATION_ID);
    run_sql(path, sql);
}

TEST_IN(test_every_older_version, struct folder *folder, folder_setup, folder_teardown)
{
    struct schema newest = make_schema(-1);
    struct fab_err err = {{0}};
    SCOPED(fab_inventory) inv = odd_inventory(30, 3, 0), next = odd_inventory(30, 3, 1);
    for (int version = 0; version <= newest.n; version++) {
        struct schema older = make_schema(version);
        OWNED(store_close) struct store *store = NULL;
        write_version(folder->db, &older, &inv);
        must(open_with(folder->db, &newest, &store, &err), &err);
        if (version >= newest.built_in) {
            must_hold(store, 1, &inv);
            must_publish(store, 2, &inv, &next);
            must_hold(store, 2, &next);
        }
        store_close(store);
        assert_int_equal(ask_number(folder->db, "PRAGMA user_version"), newest.n);
        assert_int_equal(ask_number(folder->db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
        /* Once is enough: a second time, the steps would fail. */
        assert_int_equal(open_with(folder->db, &newest, &store, &err), PMIXFAB_OK);
    }
}

static int count_change(const struct store_change *change, void *cbdata)
{
    assert_int_equal(change->generation, 1);
    ++*(unsigned *)cbdata;
    return 0;
}

static int count_report(const struct store_report *report, void *cbdata)
{
    assert_string_equal(report->host, "node001");
    ++*(unsigned *)cbdata;
    return 0;
}

/* A file that the first fabricd left, which knew no reports: all that it held is there, and reports can be */
TEST_IN(test_file_of_version_1, struct folder *folder, folder_setup, folder_teardown)
{
    SCOPED(fab_inventory) inv;
    struct store_plane *planes = NULL;
    uint64_t generation = 0;
    int64_t published = 0;
    uint32_t n = 0;
    unsigned changes = 0, reports = 0;
    copy_file(TEST_DATA "/store_v1.db", folder->db);
    assert_int_equal(ask_number(folder->db, "PRAGMA user_version"), 1);
    OWNED(store_close) struct store *store = open_store(folder->db);
    must_do(store_generation(store, &generation, &published, fresh_err()));
    assert_int_equal(generation, 1);
    must_do(store_load_inventory(store, &inv, fresh_err()));
    assert_int_equal(inv.n_nodes, 11);
    must_do(store_load_planes(store, &planes, &n, fresh_err()));
    assert_int_equal(n, 1);
    assert_string_equal(planes[0].name, "ib0");
    assert_true(planes[0].size > 1000);
    store_planes_free(planes, n);
    must_do(store_history(store, 0, 9, NULL, 0, count_change, &changes, fresh_err()));
    assert_int_equal(changes, 36);
    must_do(store_reports_load(store, count_report, &reports, fresh_err()));
    assert_int_equal(reports, 0);

    const struct store_report report = {.host = "node001", .digest = 7, .bytes = "x", .size = 1};
    must_do(store_reports_put(store, &report, 1, fresh_err()));
    must_publish(store, 2, &inv, &inv);
    open_again(&store, folder->db);
    must_hold(store, 2, &inv);
    must_do(store_reports_load(store, count_report, &reports, fresh_err()));
    assert_int_equal(reports, 1);
}

static int keep_subjects(const struct store_change *change, void *cbdata)
{
    char *told = cbdata;
    size_t used = strlen(told);
    snprintf(told + used, 1000 - used, "%s=%s;", change->what, change->subjects);
    return 0;
}

/* A history from before changes had subjects: those whose text leaves no doubt have them, the others are
 * found by their text. */
TEST_IN(test_history_gets_subjects, struct folder *folder, folder_setup, folder_teardown)
{
    for (int version = 1; version <= 3; version++) {
        struct schema older = make_schema(version);
        OWNED(store_close) struct store *store = NULL;
        struct fab_err err = {{0}};
        char told[1000] = "";
        SCOPED(fab_inventory) none = empty_inventory();
        write_version(folder->db, &older, &none);
        run_sql(folder->db,
                "INSERT INTO generation VALUES (1, 5, 0);"
                "INSERT INTO change VALUES (1, 0, 'host-lost', 'node1', '', ''),"
                " (1, 1, 'device-lost', 'node1 HCA-1[1]', '', ''),"
                " (1, 2, 'link-lost', 'leaf1[8] - node1 HCA-1[1]', '', ''),"
                " (1, 3, 'link-added', 'leaf1[8] - spine1[2]', '', ''),"
                " (1, 4, 'switch-lost', 'a switch', '', ''), (1, 5, 'firmware', 'node1 eth0', '1', '2'),"
                " (1, 6, 'link-lost', 'a switch[1] - node1 HCA-1[1]', '', ''),"
                " (1, 7, 'lid', 'node1 HCA-1[1]', '1', '2'), (1, 8, 'host-lost', 'node10', '', '')");
        assert_int_equal(store_open(folder->db, &store, &err), PMIXFAB_OK);
        assert_int_equal(store_history(store, 0, 9, NULL, 0, keep_subjects, told, &err), PMIXFAB_OK);
        assert_string_equal(told, "node1=node1;node1 HCA-1[1]=node1;leaf1[8] - node1 HCA-1[1]=leaf1\nnode1;"
                                  "leaf1[8] - spine1[2]=leaf1\nspine1;a switch=a switch;node1 eth0=node1;"
                                  "a switch[1] - node1 HCA-1[1]=;node1 HCA-1[1]=;node10=node10;");
        told[0] = '\0';
        assert_int_equal(store_history(store, 0, 9, "spine1", 0, keep_subjects, told, &err), PMIXFAB_OK);
        assert_string_equal(told, "leaf1[8] - spine1[2]=leaf1\nspine1;");
        unsigned changes = 0;
        assert_int_equal(store_history(store, 0, 9, "node1", 0, count_change, &changes, &err), PMIXFAB_OK);
        assert_int_equal(changes, 6); /* four by subject, two by their text, and not node10's */
    }
}

/* A history from before names were followed: those whose text leaves no doubt are. */
TEST_IN(test_history_gets_names, struct folder *folder, folder_setup, folder_teardown)
{
    struct schema older = make_schema(8);
    SCOPED(fab_inventory) none = empty_inventory();
    write_version(folder->db, &older, &none);
    run_sql(
        folder->db,
        "INSERT INTO generation VALUES (1, 5, 0), (2, 6, 0), (3, 7, 0), (4, 8, 0), (5, 9, 0);"
        "INSERT INTO change (generation, seq, kind, what, before, after, subjects) VALUES"
        " (1, 0, 'lid', 'node1', '1', '2', 'node1'),"
        " (2, 0, 'name', 'node1', 'node1', 'gpu1', 'node1' || char(10) || 'gpu1'),"
        " (3, 0, 'name', 'x HCA-1', 'x HCA-1', 'y HCA-1', 'x' || char(10) || 'y')," /* a part of x */
        " (4, 0, 'switch-replaced', 'leaf1', '0x00000000000000a1 leaf1', '0x00000000000000b1 swx',"
        "  'leaf1' || char(10) || 'swx' || char(10) || 'spine1'),"
        " (5, 0, 'switch-replaced', 'leaf2', '0x00000000000000a2', '0x00000000000000b2',"
        "  'leaf2' || char(10) || 'spine1'),"
        " (5, 1, 'name', 'm1', 'm1', 'M', 'm1' || char(10) || 'M')," /* two that are called M: of neither */
        " (5, 2, 'name', 'm2', 'm2', 'M', 'm2' || char(10) || 'M');"
        "INSERT INTO subject (name, generation, seq) VALUES ('node1', 1, 0), ('node1', 2, 0), ('gpu1', 2, 0),"
        " ('x', 3, 0), ('y', 3, 0), ('leaf1', 4, 0), ('swx', 4, 0), ('spine1', 4, 0), ('leaf2', 5, 0),"
        " ('spine1', 5, 0)");
    struct store *store = open_store(folder->db);
    char told[1000] = "";
    must_do(store_history(store, 0, 9, "gpu1", 0, keep_subjects, told, fresh_err()));
    assert_string_equal(told, "node1=node1;node1=node1\ngpu1;");
    store_close(store);
    assert_int_equal(ask_number(folder->db, "SELECT count(*) FROM renamed"), 2);
    assert_int_equal(ask_number(folder->db, "SELECT count(*) FROM renamed WHERE (former, generation, name) IN"
                                            " (VALUES ('node1', 2, 'gpu1'), ('leaf1', 4, 'swx'))"),
                     2);
}

/* A step that fails in its second statement takes back everything, the steps before it too. */
static void check_failing(const char *path, const char *bad, const struct fab_inventory *inv)
{
    struct schema newest = make_schema(-1), older = make_schema(newest.built_in);
    OWNED(store_close) struct store *store = NULL;
    struct fab_err err = {{0}};
    write_version(path, &older, inv);
    newest.steps[newest.n - 1] = bad;
    assert_int_equal(open_with(path, &newest, &store, &err), PMIXFAB_ERR_CORRUPT);
    assert_null(store);
    check_line(&err, path);
    assert_int_equal(ask_number(path, "PRAGMA user_version"), older.n);
    assert_int_equal(ask_number(path, "SELECT count(*) FROM sqlite_schema WHERE name IN"
                                      " ('cable_label', 'half')"),
                     0);
    store = open_store(path);
    must_hold(store, 1, inv);
}

TEST_IN(test_failing_step_changes_nothing, struct folder *folder, folder_setup, folder_teardown)
{
    SCOPED(fab_inventory) inv = odd_inventory(10, 3, 0);
    check_failing(folder->db, "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);", &inv);
    check_failing(folder->db, "CREATE TABLE half (x); this is not SQL", &inv);
    check_failing(folder->db, "CREATE TABLE half (x); DELETE FROM node", &inv); /* ports without nodes */
}

TEST_IN(test_two_migrate_at_once, struct folder *folder, folder_setup, folder_teardown)
{
    struct schema newest = make_schema(-1);
    OWNED(store_close) struct store *store = NULL;
    struct fab_err err = {{0}};
    sqlite3 *other = NULL;
    SCOPED(fab_inventory) inv = odd_inventory(10, 3, 0);
    struct schema older = make_schema(newest.built_in);
    write_version(folder->db, &older, &inv);
    assert_int_equal(sqlite3_open(folder->db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(open_with(folder->db, &newest, &store, &err), PMIXFAB_ERR_BUSY);
    assert_null(store);
    check_line(&err, "locked");
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_int_equal(ask_number(folder->db, "PRAGMA user_version"), older.n);
    assert_int_equal(open_with(folder->db, &newest, &store, &err), PMIXFAB_OK);
    must_hold(store, 1, &inv);
}

/* The store as it was is kept beside the one of a newer schema; the older fabricd names it, and goes back to
 * it with numbers above those that the newer one gave out. */
TEST_IN(test_going_back, struct folder *folder, folder_setup, folder_teardown)
{
    struct schema newest = make_schema(-1), older = make_schema(newest.built_in);
    SCOPED(fab_inventory) inv = odd_inventory(10, 3, 0), next = odd_inventory(10, 3, 1);
    OWNED(store_close) struct store *store = NULL;
    struct fab_err err = {{0}};
    char put_away[PATH_SIZE];
    uint64_t number;
    write_version(folder->db, &older, &inv);
    must_do(open_with(folder->db, &newest, &store, fresh_err()));
    must_publish(store, 2, &inv, &next);
    must_publish(store, 3, &next, &inv);
    store_close(store);
    const char *kept = printed("%s.schema-%d", folder->db, older.n);
    assert_int_equal(ask_number(kept, "PRAGMA user_version"), older.n);
    assert_int_equal(ask_number(kept, "SELECT max(generation) FROM generation"), 1);

    assert_int_equal(store_open(folder->db, &store, &err), PMIXFAB_ERR_NEWER);
    check_line(
        &err,
        printed("written by a newer fabricd (schema %d, this one supports %d); upgrade fabricd, or use the "
                "old store: fabricd --restore %s",
                newest.n, older.n, kept));
    int fd = open(kept, O_RDONLY | O_CLOEXEC);
    must_do(store_restore(folder->db, kept, fd, put_away, sizeof put_away, fresh_err()));
    close(fd);
    assert_string_equal(put_away, printed("%s.before-restore", folder->db));
    assert_int_equal(ask_number(put_away, "PRAGMA user_version"), newest.n);
    store = open_store(folder->db);
    must_hold(store, 1, &inv);
    must_do(store_next_generation(store, &number, fresh_err()));
    assert_int_equal(number, 4);
}

/* An upgrade that fails leaves nothing; and without a place for what was there is none. */
TEST_IN(test_nothing_is_kept_of_no_upgrade, struct folder *folder, folder_setup, folder_teardown)
{
    struct schema newest = make_schema(-1), older = make_schema(newest.built_in);
    SCOPED(fab_inventory) inv = odd_inventory(10, 3, 0);
    OWNED(store_close) struct store *store = NULL;
    struct fab_err err = {{0}};
    const char *kept = printed("%s.schema-%d", folder->db, older.n);
    check_failing(folder->db, "this is not SQL", &inv);
    assert_int_not_equal(access(kept, F_OK), 0);
    write_version(folder->db, &older, &inv);
    const char *copy = printed("%s.restoring", folder->db);
    assert_int_equal(mkdir(copy, 0700), 0);
    assert_int_equal(open_with(folder->db, &newest, &store, &err), PMIXFAB_ERR_IO);
    check_line(&err, "restoring: cannot be created");
    assert_int_equal(ask_number(folder->db, "PRAGMA user_version"), older.n);
}
