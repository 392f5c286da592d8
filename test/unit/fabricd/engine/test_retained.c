/* For how long ports are missing: over restarts, boots, and clocks that jump. */

#include "fabricd/engine/publisher.h"
#include "test/unit/store_fixture.h"
#include "test/unit/test.h"

#define S      1000000ll
#define RETIRE 600

/* A moment: so many seconds since the boot, with a wall clock that may say anything. */
static struct moment at(int64_t running, int64_t wall, const char *boot)
{
    struct moment now = {.wall = wall * S, .running = running * S};
    snprintf(now.boot, sizeof(now.boot), "%s", boot);
    return now;
}

/* A fabric, where the node of this name and leaf1 are missing. */
static void make(struct fab_inventory *inv, const char *missing)
{
    assert_int_equal(fabric_parse("fattree2:3,2,2", inv), PMIXFAB_OK);
    inv->nodes[fabric_find(inv, missing)].missing = 1;
    inv->nodes[fabric_find(inv, "leaf1")].missing = 1;
}

static void write_list(const char *path, const struct fab_inventory *inv, const struct retained *list)
{
    const struct absent none = {0}, absent = {.missing = *list};
    OWNED(store_close) struct store *store = open_store(path);
    SCOPED(fab_inventory) empty = empty_inventory();
    const struct store_publication publication = {.generation = 1,
                                                  .published = 1,
                                                  .before = &empty,
                                                  .after = inv,
                                                  .absent_before = &none,
                                                  .absent = &absent};
    must_do(store_publish(store, &publication, fresh_err()));
}

/* A restart goes on counting, whatever the wall clock says by then; a boot, or another machine, begins anew.
 */
TEST_WITH(it_counts_on_over_a_restart_and_anew_over_a_boot, folder_setup, folder_teardown)
{
    static const struct {
        int64_t running, wall, left;
        const char *boot;
    } cases[] = {
        {1100, 1000000100, 500, "a"},          /* as it should be */
        {1100, 1000000100 - 3600, 500, "a"},   /* the clock was set back meanwhile */
        {1100, 1000000100 + 3600, 500, "a"},   /* or forth */
        {90000, 1000000100, 0, "a"},           /* fabricd was stopped for a day */
        {30, 1000000100, 600, "b"},            /* the machine was booted */
        {90000, 1000000100 + 86400, 600, "b"}, /* that was yesterday */
        {900, 1000000100, 600, "a"},           /* a store from the future cannot be */
    };
    struct folder *folder = *state;
    struct fab_inventory inv, loaded;
    struct retained none = {0}, list, followed;
    struct absent read;
    struct moment now = at(1000, 1000000000, "a");
    make(&inv, "node0001");
    assert_int_equal(retained_follow(&none, &inv, &now, 4000 * S, &list), PMIXFAB_OK);
    write_list(folder->db, &inv, &list);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        OWNED(store_close) struct store *store = open_store(folder->db);
        now = at(cases[i].running, cases[i].wall, cases[i].boot);
        must_do(store_absent_load(store, &read, fresh_err()));
        must_do(store_load_inventory(store, &loaded, fresh_err()));
        assert_true(fab_inventory_equal(&loaded, &inv)); /* who is missing is part of it */
        assert_int_equal(retained_follow(&read.missing, &loaded, &now, 4000 * S, &followed), PMIXFAB_OK);
        assert_int_equal(followed.n, 2);
        assert_int_equal(followed.places[0].since, 1000000000 * S);
        assert_int_equal(followed.places[0].seen, 4000 * S);
        assert_int_equal(retained_next(&followed, RETIRE, &now), cases[i].left * S);
        absent_free(&read);
        retained_free(&followed);
        fab_inventory_destroy(&loaded);
    }
    now = at(1100, 1000000100, "a");
    for (uint32_t i = 0; i < list.n; i++)
        list.places[i].forgotten = true; /* by an operator */
    assert_int_equal(retained_next(&list, RETIRE, &now), 0);
    retained_free(&list);
    fab_inventory_destroy(&inv);
}
