/* The life of a finding: it comes, goes, comes again, is acknowledged, and all that over a restart. */
#include "fabricd/engine/findings.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/store_fixture.h"
#include "topo/base/natural.h"

#define SECOND INT64_C(1000000)
#define START  (1700000000 * SECOND)

struct world {
    struct folder *folder;
    struct config config;
    struct store *store;
    struct findings *findings;
    struct fab_findings now;
    int64_t time;
};

static void world_open(struct world *world)
{
    world->store = open_store(world->folder->db);
    assert_int_equal(findings_new(&world->config, world->store, &world->findings, NULL), 0);
}

static void world_close(struct world *world)
{
    findings_free(world->findings);
    store_close(world->store);
    fab_findings_destroy(&world->now);
}

/* It stays where it is: the findings look into its settings. */
static void begin(struct world *world, struct folder *folder)
{
    *world = (struct world){.folder = folder, .time = START, .config.inactive_seconds = 600};
    world_open(world);
}

static void restart(struct world *world)
{
    world_close(world);
    world_open(world);
}

static void find(struct world *world, enum fab_check_kind kind, const char *name, uint64_t state)
{
    struct fab_about about = fab_about_text(name);
    about.state = state;
    assert_int_equal(fab_findings_add(&world->now, kind, about, name, "it is so"), 0);
}

/* Look at what was found by find() since the last look; what was told of it, as "event kind where; ...". */
static char *look(struct world *world, int64_t seconds)
{
    const struct fab_findings *now = &world->now;
    static char told[4096];
    size_t used = 0, i;
    json_t *one;
    world->time += seconds * SECOND;
    assert_int_equal(findings_look(world->findings, &now, 1, world->time, true, NULL), 0);
    fab_findings_destroy(&world->now);
    json_t *news = findings_news(world->findings);
    told[0] = '\0';
    json_array_foreach(news, i, one)
    {
        if (used < sizeof(told))
            used += (size_t)snprintf(told + used, sizeof(told) - used, "%s%s %s %s", used > 0 ? "; " : "",
                                     json_string_value(json_object_get(one, "event")),
                                     json_string_value(json_object_get(one, "kind")),
                                     json_string_value(json_object_get(one, "where")));
    }
    json_decref(news);
    return told;
}

static const struct finding *only(const struct world *world)
{
    uint32_t n;
    const struct finding *const *all = findings_all(world->findings, &n);
    assert_int_equal(n, 1);
    return all[0];
}

static int say(struct world *world, const char *which, int64_t seconds, bool cancel)
{
    const struct findings_ack ack = {.which = which, .seconds = seconds, .cancel = cancel, .uid = 7};
    json_t *list = json_array();
    uint32_t at = 0, n;
    int rc;
    findings_all(world->findings, &n);
    do {
        const size_t before = json_array_size(list);
        rc = findings_ack(world->findings, &ack, world->time, &at, list, NULL);
        assert_in_range(json_array_size(list) - before, 0, FINDINGS_ACKS);
    } while (rc == 0 && at < n);
    assert_int_equal(json_array_size(list) > 0, rc == 0);
    json_decref(list);
    return rc;
}

static int rows(const struct world *world)
{
    char text[20];
    assert_int_equal(
        store_ask(world->store, "SELECT count(*) FROM finding", text, sizeof(text), "counting", NULL), 0);
    return atoi(text);
}

TEST_IN(test_comes_and_goes, struct folder *folder, folder_setup, folder_teardown)
{
    struct world world;
    begin(&world, folder);
    find(&world, FAB_CHECK_SLOW_LINK, "leaf1", 1);
    assert_string_equal(look(&world, 0), "came slow-link leaf1");
    find(&world, FAB_CHECK_SLOW_LINK, "leaf1", 1);
    assert_string_equal(look(&world, 60), "");
    assert_string_equal(look(&world, 60), "gone slow-link leaf1");
    /* Each minute: once more it is told, and no more. */
    for (int i = 0; i < 100; i++) {
        find(&world, FAB_CHECK_SLOW_LINK, "leaf1", 1);
        assert_string_equal(look(&world, 30), i == 0 ? "again slow-link leaf1" : "");
        assert_int_equal(only(&world)->row.comings, i + 2);
        assert_int_equal(only(&world)->row.since, START);
        if (i % 10 == 0)
            restart(&world);
        assert_string_equal(look(&world, 30), "");
    }
    assert_int_equal(findings_wait(world.findings, world.time), FINDINGS_QUIET);
    assert_string_equal(look(&world, 3599), "");
    assert_string_equal(look(&world, 1), "gone slow-link leaf1");
    assert_int_equal(findings_wait(world.findings, world.time), -1);
    assert_int_equal(rows(&world), 0);
    find(&world, FAB_CHECK_SLOW_LINK, "leaf1", 1);
    assert_string_equal(look(&world, 0), "came slow-link leaf1");
    assert_int_equal(only(&world)->row.comings, 1);
    world_close(&world);
}

TEST_IN(test_acknowledged, struct folder *folder, folder_setup, folder_teardown)
{
    struct world world;
    begin(&world, folder);
    assert_int_equal(say(&world, "leaf1", 0, false), PMIXFAB_ERR_NOTFOUND);
    for (int i = 0; i < 2; i++) {
        find(&world, FAB_CHECK_FEW_UPLINKS, "leaf1", 3);
        find(&world, FAB_CHECK_FEW_UPLINKS, "leaf10", 3);
        look(&world, 0);
    }
    assert_int_equal(say(&world, "leaf", 0, false), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(say(&world, "", 0, false), PMIXFAB_ERR_SYNTAX);
    assert_int_equal(say(&world, "leaf1", -1, false), PMIXFAB_ERR_RANGE);
    assert_int_equal(say(&world, "leaf1", (int64_t)FINDINGS_MAX_ACK + 1, false), PMIXFAB_ERR_RANGE);
    assert_int_equal(say(&world, "leaf1", 0, false), 0);
    assert_int_equal(findings_count(world.findings, FAB_CHECK_FEW_UPLINKS, true), 1);
    assert_int_equal(say(&world, "few-uplinks", 0, false), 0);
    assert_int_equal(findings_count(world.findings, FAB_CHECK_FEW_UPLINKS, true), 2);
    restart(&world);
    /* Worse undoes it; the same does not. */
    find(&world, FAB_CHECK_FEW_UPLINKS, "leaf1", 2);
    find(&world, FAB_CHECK_FEW_UPLINKS, "leaf10", 3);
    assert_string_equal(look(&world, 5), "changed few-uplinks leaf1");
    assert_int_equal(findings_count(world.findings, FAB_CHECK_FEW_UPLINKS, true), 1);
    assert_int_equal(say(&world, "leaf10", 0, true), 0);
    assert_int_equal(findings_count(world.findings, FAB_CHECK_FEW_UPLINKS, true), 0);
    /* For a time. */
    assert_int_equal(say(&world, "leaf10", 100, false), 0);
    assert_int_equal(findings_wait(world.findings, world.time), 100 * SECOND);
    find(&world, FAB_CHECK_FEW_UPLINKS, "leaf10", 3);
    assert_string_equal(look(&world, 99), "gone few-uplinks leaf1");
    find(&world, FAB_CHECK_FEW_UPLINKS, "leaf10", 3);
    assert_string_equal(look(&world, 1), "unacked few-uplinks leaf10");
    world_close(&world);
}

/* What a full or damaged store does not take is tried again; a row that is none is told. */
TEST_IN(test_store, struct folder *folder, folder_setup, folder_teardown)
{
    struct world world;
    begin(&world, folder);
    struct fab_err err = {""};
    assert_int_equal(sqlite3_exec(world.store->db, "ALTER TABLE finding RENAME TO other", NULL, NULL, NULL),
                     0);
    find(&world, FAB_CHECK_MISSING, "node1", 0);
    assert_string_equal(look(&world, 0), "came missing node1");
    assert_int_not_equal(say(&world, "node1", 0, false), 0);
    assert_int_equal(findings_count(world.findings, FAB_CHECK_MISSING, true), 0);
    assert_int_equal(sqlite3_exec(world.store->db, "ALTER TABLE other RENAME TO finding", NULL, NULL, NULL),
                     0);
    find(&world, FAB_CHECK_MISSING, "node1", 0);
    look(&world, 1);
    assert_int_equal(rows(&world), 1);
    assert_int_equal(sqlite3_exec(world.store->db, "UPDATE finding SET comings = 0", NULL, NULL, NULL), 0);
    findings_free(world.findings);
    assert_int_equal(findings_new(&world.config, world.store, &world.findings, &err), PMIXFAB_ERR_CORRUPT);
    assert_non_null(strstr(err.text, "a finding has invalid values"));
    assert_int_equal(sqlite3_exec(world.store->db,
                                  "UPDATE finding SET comings = 1, kind = 'of a newer fabricd'", NULL, NULL,
                                  NULL),
                     0);
    findings_free(world.findings);
    assert_int_equal(findings_new(&world.config, world.store, &world.findings, &err), 0);
    uint32_t n;
    findings_all(world.findings, &n);
    assert_int_equal(n, 0);
    world_close(&world);
}

/* Gravest first, then by kind and as people count, whatever came, went, became graver or is called otherwise;
 * and behind each is the next one. */
TEST_IN(test_order, struct folder *folder, folder_setup, folder_teardown)
{
    struct world world;
    uint64_t seed = 3, there = 0, names = 0;
    begin(&world, folder);
    for (int round = 0; round < 400; round++) {
        uint32_t n, at, wanted = 0;
        if (round % 8 == 0)
            there = fabric_random_next(&seed);
        if (round % 3 != 0) /* else the same again */
            names = fabric_random_next(&seed);
        for (uint32_t i = 0; i < 20; i++) {
            const enum fab_check_kind of_node = (names >> i) % 2 == 0 ? FAB_CHECK_MISSING : FAB_CHECK_LOST;
            char thing[16], where[16];
            snprintf(thing, sizeof(thing), "t%u", i);
            snprintf(where, sizeof(where), "node%u", (unsigned)(names >> i) % 100);
            if ((there >> i) % 4 == 0)
                continue;
            assert_int_equal(fab_findings_add(&world.now, i % 2 == 0 ? FAB_CHECK_FEW_PORTS : of_node,
                                              fab_about_text(thing), where, "so"),
                             0);
            wanted++;
        }
        look(&world, 1);
        const struct finding *const *all = findings_all(world.findings, &n);
        assert_int_equal(n, wanted);
        for (uint32_t i = 0; i < n; i++) {
            json_t *place = findings_place(all[i]);
            assert_true(findings_behind(world.findings, json_string_value(place), &at));
            assert_int_equal(at, i + 1);
            json_decref(place);
            if (i > 0) {
                const int graver =
                    (int)fab_check_severity(all[i - 1]->kind) - (int)fab_check_severity(all[i]->kind);
                const int kind = (int)all[i - 1]->kind - (int)all[i]->kind;
                const int name = fab_natural_cmp(all[i - 1]->row.place, all[i]->row.place);
                assert_true(graver > 0 || (graver == 0 && (kind < 0 || (kind == 0 && name <= 0))));
            }
        }
    }
    assert_false(findings_behind(world.findings, "", &(uint32_t){0}));
    assert_false(findings_behind(world.findings, "missing", &(uint32_t){0}));
    assert_false(findings_behind(world.findings, "of-no-kind 12 node1", &(uint32_t){0}));
    world_close(&world);
}
