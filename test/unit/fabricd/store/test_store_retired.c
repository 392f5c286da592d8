/* What the store keeps of what was lost, and of names that follow each other. */
#include "fabricd/store/store_tables.h"
#include "test/unit/store_fixture.h"

/* ---- what was lost --------------------------------------------------------------------------------- */

static void random_list(struct fab_lost *lost, uint64_t *dice)
{
    char text[2][40];
    *lost = (struct fab_lost){0};
    for (unsigned i = 0; i < fabric_random_next(dice) % 20; i++) {
        uint64_t r = fabric_random_next(dice);
        snprintf(text[0], sizeof(text[0]), "node\xc3\xa4%u", (unsigned)(r % 9));
        snprintf(text[1], sizeof(text[1]), "HCA-%u", (unsigned)(r >> 8) % 3);
        const struct fab_lost_item node = {.guid = r % 30 - 15, /* from both ends of the numbers */
                                           .generation = 1 + (r >> 16) % 5,
                                           .seen = (int64_t)(r >> 20) % 1000,
                                           .kind = (uint8_t)(FAB_SWITCH + (r >> 40) % 2),
                                           .forgotten = (r >> 42) % 2 != 0,
                                           .host = text[0],
                                           .name = text[1]};
        assert_int_equal(fab_lost_add(lost, &node), 0);
    }
    for (unsigned i = 0; i < fabric_random_next(dice) % 20; i++) {
        uint64_t r = fabric_random_next(dice);
        snprintf(text[0], sizeof(text[0]), "leaf%u", (unsigned)(r >> 10) % 3);
        snprintf(text[1], sizeof(text[1]), "spine%u", (unsigned)(r >> 12) % 3);
        const struct fab_lost_item cable = {
            .end = {{r % 7 - 3, 1 + (r >> 20) % 254}, {r % 5 + 100, 1 + (r >> 30) % 3}},
            .generation = 1 + (r >> 40) % 5,
            .seen = (int64_t)(r >> 44) % 1000,
            .width = 4,
            .forgotten = (r >> 60) % 2 != 0,
            .speed = (uint8_t)((r >> 50) % FAB_SPEEDS),
            .text = {text[0], text[1]}};
        assert_int_equal(fab_lost_add(lost, &cable), 0);
    }
    fab_lost_finish(lost);
}

static void assert_same_list(const struct fab_lost_list *a, const struct fab_lost_list *b)
{
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct fab_lost_item *x = &a->items[i], *y = &b->items[i];
        assert_int_equal(fab_lost_order(x, y), 0);
        assert_true(x->generation == y->generation && x->seen == y->seen && x->kind == y->kind &&
                    x->width == y->width && x->speed == y->speed && x->forgotten == y->forgotten);
        assert_string_equal(x->text[0], y->text[0]);
        assert_string_equal(x->text[1], y->text[1]);
    }
}

static void assert_same(const struct fab_lost *a, const struct fab_lost *b)
{
    assert_same_list(&a->nodes, &b->nodes);
    assert_same_list(&a->cables, &b->cables);
}

static struct fab_lost load(struct store *store)
{
    struct absent absent;
    must_do(store_absent_load(store, &absent, fresh_err()));
    assert_int_equal(absent.missing.n, 0);
    return absent.lost;
}

static int publish_lost(struct store *store, uint64_t generation, const struct fab_inventory *inv,
                        const struct fab_lost *before, const struct fab_lost *after)
{
    const struct absent was = {.lost = *before}, is = {.lost = after == NULL ? *before : *after};
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation * 1000,
                                                  .before = inv,
                                                  .after = inv,
                                                  .absent_before = &was,
                                                  .absent = after == NULL ? NULL : &is};
    return store_publish(store, &publication, fresh_err());
}

/* From one list to the next, the store closed in between at random. */
TEST_IN(test_lists, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    SCOPED(fab_inventory) none = {0};
    struct fab_lost now = {0};
    uint64_t dice = 5;
    assert_int_equal(fab_inventory_finish(&none, NULL), 0);
    for (uint64_t generation = 1; generation <= 60; generation++) {
        struct fab_lost next, stored;
        random_list(&next, &dice);
        assert_int_equal(publish_lost(store, generation, &none, &now, &next), PMIXFAB_OK);
        if (fabric_random_next(&dice) % 3 == 0)
            open_again(&store, folder->db);
        stored = load(store);
        assert_same(&stored, &next);
        fab_lost_destroy(&stored);
        fab_lost_destroy(&now);
        now = next;
    }
    /* a generation without: it stays */
    assert_int_equal(publish_lost(store, 61, &none, &now, NULL), PMIXFAB_OK);
    struct fab_lost stored = load(store);
    assert_same(&stored, &now);
    /* one that is refused: nothing of it */
    assert_int_equal(publish_lost(store, 99, &none, &now, &(struct fab_lost){0}), PMIXFAB_ERR_CONFLICT);
    fab_lost_destroy(&stored);
    stored = load(store);
    assert_same(&stored, &now);
    fab_lost_destroy(&stored);
    fab_lost_destroy(&now);
}

TEST_IN(test_bad_rows, struct folder *folder, folder_setup, folder_teardown)
{
    static const char *const bad[] = {
        "INSERT INTO lost_node VALUES (1, 3, 'h', 'n', 1, 0, 0)",
        "INSERT INTO lost_node VALUES (1, 0, 'h', 'n', 1, 0, 0)",
        "INSERT INTO lost_node VALUES (1, 2, 'h', 'n', -1, 0, 0)",
        "INSERT INTO lost_cable VALUES (1, 300, 2, 1, 'a', 'b', 4, 7, 1, 0, 0)",
        "INSERT INTO lost_cable VALUES (1, 1, 2, 1, 'a', 'b', 4, 77, 1, 0, 0)",
        "INSERT INTO lost_node VALUES (1, 2, 'h', 'n', 1, 0, 2)",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        OWNED(store_close) struct store *store = open_store(folder->db);
        struct fab_err err = {{0}};
        struct absent lost;
        assert_int_equal(sqlite3_exec(store->db, bad[i], NULL, NULL, NULL), SQLITE_OK);
        must_fail(store_absent_load(store, &lost, &err), PMIXFAB_ERR_CORRUPT, &err,
                  "a lost device has invalid values");
        sqlite3_exec(store->db, "DELETE FROM lost_node; DELETE FROM lost_cable", NULL, NULL, NULL);
    }
}

/* ---- names ----------------------------------------------------------------------------------------- */

/* A generation with one change: of `what`, which is called `name` since (NULL: it is not). */
static void tell(struct store *store, uint64_t generation, const char *what, const char *name)
{
    SCOPED(fab_inventory) none = {0};
    char subjects[200];
    assert_int_equal(fab_inventory_finish(&none, NULL), 0);
    int n = snprintf(subjects, sizeof(subjects) - 1, "%s%c%s", what, '\0', name == NULL ? "" : name);
    subjects[n + 1] = '\0';
    struct fab_change change = {.kind = name == NULL ? FAB_CHANGE_LID : FAB_CHANGE_NAME,
                                .what = (char *)what,
                                .before = (char *)"",
                                .after = (char *)"",
                                .why = "",
                                .subjects = subjects,
                                .renamed = name != NULL};
    const struct fab_diff diff = {.changes = &change, .n = 1};
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation,
                                                  .before = &none,
                                                  .after = &none,
                                                  .diff = &diff};
    must_do(store_publish(store, &publication, fresh_err()));
}

static int append_change(const struct store_change *change, void *text)
{
    size_t used = strlen(text);
    snprintf((char *)text + used, 400 - used, "%s%llu", used == 0 ? "" : " ",
             (unsigned long long)change->generation);
    return 0;
}

static int append_name(const struct store_name *name, void *text)
{
    size_t used = strlen(text);
    snprintf((char *)text + used, 400 - used, "%s%s:%llu-%llu", used == 0 ? "" : " ", name->name,
             (unsigned long long)name->from, (unsigned long long)name->to);
    return 0;
}

static void assert_history(struct store *store, const char *what, uint32_t limit, const char *generations,
                           const char *others)
{
    char text[400] = "";
    must_do(store_history(store, 0, INT64_MAX, what, limit, append_change, text, fresh_err()));
    assert_string_equal(text, generations);
    text[0] = '\0';
    assert_int_equal(store_names(store, what, append_name, text, fresh_err()), PMIXFAB_OK);
    assert_string_equal(text, others);
}

TEST_IN(test_names_are_followed, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    tell(store, 1, "a", NULL);
    tell(store, 2, "x", NULL); /* of nobody here */
    tell(store, 3, "a", "b");
    tell(store, 4, "a", NULL); /* another one that is called so now */
    tell(store, 5, "b", NULL);
    tell(store, 6, "b", "c");
    tell(store, 7, "c", NULL);
    tell(store, 8, "b", NULL); /* another one again */
    assert_history(store, "c", 0, "1 3 5 6 7", "a:1-3 b:1-6");
    assert_history(store, "b", 0, "1 3 5 6 7 8", "a:1-3 c:6-0");
    assert_history(store, "a", 0, "1 3 4 5 6 7", "b:3-6 c:6-0");
    assert_history(store, "c", 2, "6 7", "a:1-3 b:1-6");
    assert_history(store, "x", 0, "2", "");
    /* the second one that was called a goes on as d, and as c when the first one is not any more */
    tell(store, 9, "a", "d");
    tell(store, 10, "c", "e");
    tell(store, 11, "d", "c");
    tell(store, 12, "c", NULL);
    assert_history(store, "e", 0, "1 3 5 6 7 10", "a:1-3 b:1-6 c:1-10");
    assert_history(store, "d", 0, "4 9 11 12", "a:4-9 c:11-0");
    open_again(&store, folder->db);
    assert_history(store, "d", 0, "4 9 11 12", "a:4-9 c:11-0");
}

/* Pairs of one generation, of what was called and is: pairs[0], pairs[1], ... ended by NULL. */
static void tell_all(struct store *store, uint64_t generation, const char *const *pairs)
{
    SCOPED(fab_inventory) none = {0};
    struct fab_change changes[8];
    char subjects[8][100];
    struct fab_diff diff = {.changes = changes};
    assert_int_equal(fab_inventory_finish(&none, NULL), 0);
    for (; *pairs != NULL; pairs += 2, diff.n++) {
        int n = snprintf(subjects[diff.n], 99, "%s%c%s", pairs[0], '\0', pairs[1]);
        subjects[diff.n][n + 1] = '\0';
        changes[diff.n] = (struct fab_change){.kind = FAB_CHANGE_NAME,
                                              .what = (char *)pairs[0],
                                              .before = (char *)"",
                                              .after = (char *)"",
                                              .why = "",
                                              .subjects = subjects[diff.n],
                                              .renamed = true};
    }
    const struct store_publication publication = {.generation = generation,
                                                  .published = (int64_t)generation,
                                                  .before = &none,
                                                  .after = &none,
                                                  .diff = &diff};
    must_do(store_publish(store, &publication, fresh_err()));
}

/* A name map that is lost for a while: all switches have one name then, and it says of none which it was. */
TEST_IN(test_names_of_several, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    static const char *const lost[] = {"leaf1", "SX", "leaf2", "SX", "spine1", "SY", NULL};
    static const char *const back[] = {"SX", "leaf1", "SX", "leaf2", "SY", "spine1", NULL};
    tell(store, 1, "leaf2", NULL);
    tell_all(store, 2, lost);
    tell(store, 3, "SX", NULL);
    tell_all(store, 4, back);
    tell(store, 5, "leaf2", NULL);
    assert_history(store, "leaf1", 0, "2 4", "");
    assert_history(store, "leaf2", 0, "1 2 4 5", "");
    assert_history(store, "spine1", 0, "2 4", "SY:1-4");
}

static int count_name(const struct store_name *name, void *n)
{
    (void)name;
    ++*(uint32_t *)n;
    return 0;
}

static int count_change(const struct store_change *change, void *n)
{
    (void)change;
    ++*(uint32_t *)n;
    return 0;
}

/* To and fro, and long chains: an end is found. */
TEST_IN(test_names_in_circles, struct folder *folder, folder_setup, folder_teardown)
{
    OWNED(store_close) struct store *store = open_store(folder->db);
    for (uint64_t i = 1; i <= 100; i++)
        tell(store, i, i % 2 == 1 ? "a" : "b", i % 2 == 1 ? "b" : "a");
    for (uint64_t i = 101; i <= 300; i++) {
        const char *one = printed("n%u", (unsigned)i), *other = printed("n%u", (unsigned)i + 1);
        tell(store, i, one, other);
    }
    uint32_t n = 0;
    assert_int_equal(store_names(store, "n301", count_name, &n, fresh_err()), PMIXFAB_OK);
    assert_int_equal(n, STORE_NAMES_MAX - 1);
    n = 0;
    must_do(store_history(store, 0, INT64_MAX, "a", 0, count_change, &n, fresh_err()));
    assert_int_equal(n, 100);
}
