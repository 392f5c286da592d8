/* Announced swaps: kept, over restarts, until their time is over, and marked on what is about them. */
#include "fabricd/engine/publish.h"
#include "test/unit/store_fixture.h"

#define SECOND INT64_C(1000000)
#define NOW    (1000 * SECOND)

OWNER(planned_free, struct planned)

static struct planned *open_expected(struct store *store)
{
    struct planned *planned = NULL;
    must_do(planned_new(store, &planned, fresh_err()));
    return planned;
}

/* What is planned now, as one text. */
static void assert_names(struct planned *planned, int64_t now, const char *names)
{
    char text[400] = "";
    uint32_t n;
    const struct store_planned *all = planned_all(planned, now, &n);
    for (uint32_t i = 0; i < n; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, "%s%s", i == 0 ? "" : " ", all[i].name);
        assert_true(all[i].until > now);
    }
    assert_string_equal(text, names);
}

TEST_IN(test_kept, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    OWNED(store_close) struct store *store = open_store(folder->db);
    OWNED(planned_free) struct planned *planned = open_expected(store);
    uint32_t n;
    assert_names(planned, NOW, "");
    assert_int_equal(planned_add(planned, "node2", NOW, 100, 7, &err), 0);
    assert_int_equal(planned_add(planned, "node1", NOW, 50, 7, &err), 0);
    assert_int_equal(planned_add(planned, "leaf1", NOW, 200, 8, &err), 0);
    assert_names(planned, NOW, "leaf1 node1 node2");
    /* a second time replaces the first */
    assert_int_equal(planned_add(planned, "node1", NOW + SECOND, 99, 9, &err), 0);
    const struct store_planned *all = planned_all(planned, NOW, &n);
    assert_int_equal(n, 3);
    assert_int_equal(all[1].since, NOW + SECOND);
    assert_int_equal(all[1].until, NOW + 100 * SECOND);
    assert_int_equal(all[1].uid, 9);
    planned_free(planned);
    open_again(&store, folder->db);
    planned = open_expected(store);
    assert_names(planned, NOW + 99 * SECOND, "leaf1 node1 node2");
    assert_names(planned, NOW + 100 * SECOND, "leaf1");
    must_fail(planned_cancel(planned, "node1", NOW + 100 * SECOND, &err), PMIXFAB_ERR_NOTFOUND, &err,
              "node1");
    planned_free(planned);
    /* what is over is gone from the store, too, whatever the clock says later */
    planned = open_expected(store);
    assert_names(planned, NOW, "leaf1");
    assert_int_equal(planned_cancel(planned, "leaf1", NOW, &err), 0);
    assert_names(planned, NOW, "");
    planned_free(planned);
    planned = open_expected(store);
    assert_names(planned, NOW, "");
    planned_free(NULL);
}

TEST_IN(test_limits, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    OWNED(store_close) struct store *store = open_store(folder->db);
    OWNED(planned_free) struct planned *planned = open_expected(store);
    assert_int_equal(planned_add(planned, "node1", NOW, 0, 7, &err), PMIXFAB_ERR_RANGE);
    assert_int_equal(planned_add(planned, "node1", NOW, PLANNED_MAX_TIME + 1, 7, &err), PMIXFAB_ERR_RANGE);
    assert_int_equal(planned_add(planned, "node1", NOW, PLANNED_MAX_TIME, 7, &err), 0);
    for (int i = 2; i <= PLANNED_MAX; i++)
        assert_int_equal(planned_add(planned, printed("node%d", i), NOW, 10, 7, &err), 0);
    assert_int_equal(planned_add(planned, "one more", NOW, 10, 7, &err), PMIXFAB_ERR_RANGE);
    assert_int_equal(planned_add(planned, "node7", NOW, 10, 7, &err), 0);
    assert_int_equal(planned_add(planned, "one more", NOW + 10 * SECOND, 10, 7, &err), 0);
    assert_names(planned, NOW + 10 * SECOND, "node1 one more");
}

TEST_IN(test_marked, const struct folder *folder, folder_setup, folder_teardown)
{
    struct fab_err err = {""};
    OWNED(store_close) struct store *store = open_store(folder->db);
    OWNED(planned_free) struct planned *planned = open_expected(store);
    struct fab_change changes[] = {
        {.kind = FAB_CHANGE_HCA_REPLACED, .subjects = "node1\0leaf1\0"},
        {.kind = FAB_CHANGE_LINK_LOST, .subjects = "leaf1\0spine1\0"},
        {.kind = FAB_CHANGE_LINK_LOST, .subjects = "leaf1\0node10.site\0"},
        {.kind = FAB_CHANGE_OTHER, .subjects = ""},
        {.kind = FAB_CHANGE_OTHER},
    };
    struct fab_diff diff = {.changes = changes, .n = sizeof(changes) / sizeof(changes[0])};
    planned_mark(planned, &diff, NOW);
    for (uint32_t i = 0; i < diff.n; i++)
        assert_false(changes[i].planned);
    assert_int_equal(planned_add(planned, "node1", NOW, 10, 7, &err), 0);
    assert_int_equal(planned_add(planned, "node10", NOW, 20, 7, &err), 0);
    planned_mark(planned, &diff, NOW + 10 * SECOND); /* too late for node1 */
    assert_false(changes[0].planned);
    assert_false(changes[1].planned);
    assert_true(changes[2].planned);
    assert_int_equal(planned_add(planned, "node1", NOW, 30, 7, &err), 0);
    planned_mark(planned, &diff, NOW - 3600 * SECOND); /* the clock went back */
    assert_true(changes[0].planned);
    assert_false(changes[1].planned);
    assert_false(changes[3].planned);
    assert_false(changes[4].planned);
}
