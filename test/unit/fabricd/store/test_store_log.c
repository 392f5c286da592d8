/* The store's log as somebody leaves it behind fabricd's back: nothing is lost unsaid. */
#include "test/unit/store_fixture.h"

OWNER(sqlite3_close, sqlite3)

struct logged {
    struct folder *folder;
    struct store *store;
    struct fab_inventory inv[4]; /* of a generation each; 0: empty */
    const char *log;
};

/* A store whose two generations are in its log. */
FIXTURE(publish_two)
{
    struct logged *logged = must_have(sizeof(*logged));
    void *folder = NULL;
    if (folder_setup(&folder) != 0)
        return -1;
    logged->folder = folder;
    logged->inv[0] = empty_inventory();
    for (unsigned i = 1; i < 4; i++)
        logged->inv[i] = odd_inventory(5, 3, i);
    logged->store = open_store(logged->folder->db);
    logged->log = printed("%s-wal", logged->folder->db);
    must_publish(logged->store, 1, &logged->inv[0], &logged->inv[1]);
    must_publish(logged->store, 2, &logged->inv[1], &logged->inv[2]);
    *state = logged;
    return 0;
}

FIXTURE(remove_logged)
{
    OWNED(free) struct logged *logged = *state;
    void *folder = logged->folder;
    store_close(logged->store);
    for (unsigned i = 0; i < 4; i++)
        fab_inventory_destroy(&logged->inv[i]);
    return folder_teardown(&folder);
}

static off_t log_size(const struct logged *logged)
{
    struct stat st;
    return stat(logged->log, &st) == 0 ? st.st_size : 0;
}

static sqlite3 *other_connection(const struct logged *logged)
{
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(logged->folder->db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "SELECT max(generation) FROM generation", NULL, NULL, NULL),
                     SQLITE_OK);
    return other;
}

static int publish_third(struct logged *logged)
{
    return publish_inventory(logged->store, 3, &logged->inv[2], &logged->inv[3], fresh_err());
}

/* SQLite leaves it where somebody else has the database open. */
TEST_IN(it_is_folded_at_a_close, struct logged *logged, publish_two, remove_logged)
{
    OWNED(sqlite3_close) sqlite3 *other = other_connection(logged);
    assert_true(log_size(logged) > 0);
    store_close(logged->store);
    logged->store = NULL;
    assert_int_equal(log_size(logged), 0);
}

TEST_IN(one_that_is_removed_is_saved_at_a_close, struct logged *logged, publish_two, remove_logged)
{
    assert_int_equal(unlink(logged->log), 0);
    must_refuse(publish_third(logged), PMIXFAB_ERR_IO,
                "was removed while fabricd has it open: restart fabricd");
    must_hold(logged->store, 2, &logged->inv[2]);
    open_again(&logged->store, logged->folder->db);
    must_hold(logged->store, 2, &logged->inv[2]);
    must_do(publish_third(logged));
}

TEST_IN(one_that_is_cut_is_told, struct logged *logged, publish_two, remove_logged)
{
    assert_int_equal(truncate(logged->log, 0), 0);
    must_refuse(publish_third(logged), PMIXFAB_ERR_IO, "another program truncated it or its log (-wal)");
}

TEST_IN(another_connection_may_fold_it, struct logged *logged, publish_two, remove_logged)
{
    OWNED(sqlite3_close) sqlite3 *other = other_connection(logged);
    assert_int_equal(sqlite3_exec(other, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(log_size(logged), 0);
    must_do(publish_third(logged));
    must_hold(logged->store, 3, &logged->inv[3]);
}

/* The name of a store is no part of an address, also where it is read before it is opened. */
TEST_IN(a_name_may_be_odd, struct folder *folder, folder_setup, folder_teardown)
{
    const char *odd = printed("%s/a?b#c %%41", folder->dir), *path = printed("%s/fabric.db", odd);
    struct fab_inventory none = empty_inventory();
    assert_int_equal(mkdir(odd, 0700), 0);
    struct store *store = open_store(path);
    must_publish(store, 1, &none, &none);
    open_again(&store, path);
    must_hold(store, 1, &none);
    store_close(store);
}
