/* The history has a digest of each generation: whatever is changed behind fabricd's back is found, by its
 * generation.
 */
#include "fabricd/base/log.h"
#include "fabricd/store/store.h"
#include "test/unit/store_fixture.h"

#define GENERATIONS 6

static void publish_changes(struct store *store, uint64_t generation)
{
    SCOPED(fab_inventory) none = empty_inventory();
    char text[] = "a cable", nothing[] = "";
    struct fab_change changes[3];
    for (unsigned i = 0; i < 3; i++)
        changes[i] = (struct fab_change){.kind = FAB_CHANGE_LINK_ADDED,
                                         .what = text,
                                         .before = nothing,
                                         .after = text,
                                         .why = "",
                                         .subjects = "node1\0",
                                         .first_seen = 1000,
                                         .last_seen = 900};
    struct fab_diff diff = {.changes = changes, .n = 3};
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation * 1000,
                                                  .before = &none,
                                                  .after = &none,
                                                  .diff = &diff};
    must_do(store_publish(store, &publication, fresh_err()));
}

static struct store *open_with_history(const char *path)
{
    struct store *store = open_store(path);
    for (uint64_t generation = 1; generation <= GENERATIONS; generation++)
        publish_changes(store, generation);
    return store;
}

static void must_be_good(struct store *store, uint64_t newest, uint64_t checked, uint64_t without)
{
    struct store_history_checked found;
    must_do(store_history_check(store, newest, NULL, NULL, &found, fresh_err()));
    assert_int_equal(found.checked, checked);
    assert_int_equal(found.without, without);
}

/* The change is made, found, and taken back. */
static void must_be_found(struct store *store, const char *sql, const char *first)
{
    struct store_history_checked found;
    assert_int_equal(sqlite3_exec(store->db, "PRAGMA foreign_keys = OFF; BEGIN", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(store->db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_changes(store->db) > 0);
    must_refuse(store_history_check(store, GENERATIONS, NULL, NULL, &found, fresh_err()), PMIXFAB_ERR_CORRUPT,
                printed("its history was changed: %s; restore it from a backup", first));
    assert_int_equal(sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
}

TEST_IN(what_was_changed_is_found, struct folder *folder, folder_setup, folder_teardown)
{
    static const struct {
        const char *sql;
        unsigned generation;
    } cases[] = {
        {"UPDATE change SET after = 'nothing' WHERE generation = 3", 3},
        {"UPDATE change SET planned = 1 - planned WHERE generation = 1 AND seq = 2", 1},
        {"UPDATE change SET first_seen = NULL WHERE generation = 4", 4},
        {"UPDATE generation SET published = published + 1 WHERE generation = 5", 5},
        {"UPDATE generation SET digest = digest + 1 WHERE generation = 2", 2},
        {"UPDATE generation SET digest = NULL WHERE generation = 4", 4},
        {"DELETE FROM change WHERE generation = 2", 2},
        {"INSERT INTO change (generation, seq, kind, what, before, after) VALUES (5, 999, 'a', 'b', 'c', "
         "'d')",
         5},
        {"UPDATE change SET seq = 1000 WHERE generation = 1 AND seq = 0", 1},
    };
    OWNED(store_close) struct store *store = open_with_history(folder->db);
    must_be_good(store, GENERATIONS, GENERATIONS, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        must_be_found(store, cases[i].sql,
                      printed("generation %u does not match its digest", cases[i].generation));
    must_be_found(store,
                  "DELETE FROM change WHERE generation = 3; DELETE FROM generation WHERE generation = 3",
                  "generation 3 is missing, or generation 4 does not match its digest");
    must_be_found(store,
                  "DELETE FROM change WHERE generation = 6; DELETE FROM generation WHERE generation = 6",
                  "generation 6 is missing, although it was published");
    must_be_good(store, GENERATIONS, GENERATIONS, 0);
}

TEST_IN(it_goes_on_behind_what_was_trimmed, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_with_history(folder->db);
    struct store_trimmed step = {.more = true};
    while (step.more)
        must_do(store_trim(store, &(struct store_limits){.changes = 9}, &step, fresh_err()));
    assert_int_equal(step.trimmed, 3);
    must_be_good(store, GENERATIONS, 3, 0);
    must_be_found(store, "UPDATE trimmed_digest SET digest = digest + 1",
                  "generation 4 does not match its digest");
    publish_changes(store, GENERATIONS + 1);
    must_be_good(store, GENERATIONS + 1, 4, 0);
}

TEST_IN(a_history_without_digests_is_counted, struct folder *folder, folder_setup, folder_teardown)
{
    uint64_t before;
    int64_t published;
    log_set_level(PMIXFAB_LOG_WARNING);
    copy_file(TEST_DATA "/store_v11.db", folder->db);
    OWNED(store_close) struct store *store = open_store(folder->db);
    must_do(store_generation(store, &before, &published, fresh_err()));
    assert_true(before > 0);
    must_be_good(store, before, 0, before);
    SCOPED(fab_inventory) inventory;
    must_do(store_load_inventory(store, &inventory, fresh_err()));
    must_publish(store, before + 1, &inventory, &inventory);
    must_be_good(store, before + 1, 1, before);
}
