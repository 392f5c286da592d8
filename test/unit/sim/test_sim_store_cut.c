/* The store on the disk of test/sim: a kill and a power cut at each call that changes or syncs something. */
#include "fabricd/base/log.h"
#include "test/unit/sim/store_site.h"

struct cuts {
    struct site site;
    bool changed;             /* something became durable since the last image without what was not synced */
    unsigned images, without; /* of those, without the generation under way */
};

static void must_look_good(struct cuts *cuts, enum disk_loss how, const struct disk_call *call)
{
    static const char *const names[] = {"a kill", "a power cut", "a power cut that tears"};
    uint64_t newest = 0;
    const char *wrong = look_at_image(&cuts->site, how, call->number, &newest);
    cuts->images++;
    cuts->without += newest < cuts->site.offered;
    if (wrong != NULL)
        fail_msg("%s before call %llu (%s %s at %lld, %lld bytes): %s", names[how],
                 (unsigned long long)call->number, disk_op_name(call->op), call->file,
                 (long long)call->offset, (long long)call->size, wrong);
}

/* A kill in the middle of a row of writes is one of the ways in which they can be torn. */
static int cut_at_call(void *arg, const struct disk_call *call)
{
    struct cuts *cuts = arg;
    if (call->op == DISK_READ)
        return 0;
    if (call->op != DISK_WRITE)
        must_look_good(cuts, DISK_KEEPS, call);
    if (cuts->changed)
        must_look_good(cuts, DISK_LOSES, call);
    must_look_good(cuts, DISK_TORN, call);
    cuts->changed = call->op == DISK_SYNC || call->op == DISK_DELETE;
    return 0;
}

static void play_cuts(struct cuts *cuts, const step_fn *steps, unsigned images)
{
    cuts->changed = true;
    disk_on_call(cuts->site.disk, cut_at_call, cuts);
    must_play(&cuts->site, steps);
    disk_on_call(cuts->site.disk, NULL, NULL);
    print_message("%llu calls, %u images, %u without the generation under way\n",
                  (unsigned long long)disk_calls(cuts->site.disk), cuts->images, cuts->without);
    assert_true(cuts->images > images);
    assert_true(cuts->without > 0);
}

TEST(a_power_cut_loses_nothing_that_was_acknowledged)
{
    static const step_fn story[] = {open_it,      publish, publish,  take_reports, publish,  publish,
                                    trim,         publish, fold_log, publish,      close_it, open_it,
                                    take_reports, publish, trim,     close_it,     NULL};
    struct cuts cuts = {0};
    site_begin(&cuts.site);
    play_cuts(&cuts, story, 500);
    site_end(&cuts.site);
}

/* Killed, and cut off once more while the log is read and folded. */
TEST(a_power_cut_while_a_log_is_recovered_loses_nothing)
{
    static const step_fn first[] = {open_it, publish, take_reports, publish, NULL};
    static const step_fn second[] = {open_it, publish, close_it, NULL};
    struct site killed = {0};
    struct cuts cuts = {0};
    site_begin(&killed);
    must_play(&killed, first);
    site_begin_after(&cuts.site, &killed);
    play_cuts(&cuts, second, 90);
    site_end(&cuts.site);
    site_end(&killed);
}

/* ---- a store of an older fabricd -------------------------------------------------------------------- */

struct upgrade {
    struct site site;
    uint64_t generation, changes;
    unsigned images;
};

static int count_change(const struct store_change *change, void *cbdata)
{
    (void)change;
    ++*(uint64_t *)cbdata;
    return 0;
}

/* Everything that can be read of a store, and as much as there was. */
static void must_have_all(struct store *store, uint64_t generation, uint64_t changes)
{
    SCOPED(fab_inventory) inventory;
    struct store_plane *planes;
    uint32_t n;
    uint64_t newest, found = 0;
    int64_t published;
    fab_inventory_init(&inventory);
    must_do(store_generation(store, &newest, &published, fresh_err()));
    must_do(store_history(store, 0, INT64_MAX, NULL, 0, count_change, &found, fresh_err()));
    must_do(store_load_inventory(store, &inventory, fresh_err()));
    must_do(store_load_planes(store, &planes, &n, fresh_err()));
    store_planes_free(planes, n);
    assert_true(newest == generation && found == changes && n > 0 && inventory.n_nodes > 0);
}

static int cut_upgrade(void *arg, const struct disk_call *call)
{
    static const enum disk_loss ways[] = {DISK_KEEPS, DISK_LOSES, DISK_TORN};
    struct upgrade *upgrade = arg;
    const char *folder = printed("%s.image", upgrade->site.folder);
    for (size_t i = 0; call->op != DISK_READ && i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (call->op == DISK_WRITE && ways[i] != DISK_TORN)
            continue;
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(disk_image(upgrade->site.disk, ways[i], call->number, folder), 0);
        struct store *store = open_store(printed("%s/fabric.db", folder));
        must_have_all(store, upgrade->generation, upgrade->changes);
        store_close(store);
        assert_int_equal(remove_folder(folder), 0);
        upgrade->images++;
    }
    return 0;
}

TEST(a_power_cut_while_the_schema_is_brought_up_to_date_loses_nothing)
{
    struct upgrade upgrade = {0};
    int64_t published;
    log_set_level(PMIXFAB_LOG_WARNING);
    site_begin(&upgrade.site);
    const char *other = printed("%s/other.db", upgrade.site.folder);
    copy_file(TEST_DATA "/store_v11.db", other);
    struct store *store = open_store(other);
    must_do(store_generation(store, &upgrade.generation, &published, fresh_err()));
    must_do(store_history(store, 0, INT64_MAX, NULL, 0, count_change, &upgrade.changes, fresh_err()));
    must_have_all(store, upgrade.generation, upgrade.changes);
    store_close(store);
    copy_file(TEST_DATA "/store_v11.db", upgrade.site.path);
    disk_on_call(upgrade.site.disk, cut_upgrade, &upgrade);
    must_play(&upgrade.site, (const step_fn[]){open_it, close_it, NULL});
    print_message("%u images\n", upgrade.images);
    assert_true(upgrade.images > 100);
    disk_free(upgrade.site.disk);
    assert_int_equal(remove_folder(upgrade.site.folder), 0);
}

FIXTURE(make_inventories)
{
    site_make_inventories();
    return 0;
}

FIXTURE(free_inventories)
{
    site_free_inventories();
    return 0;
}

TEST_GROUP(make_inventories, free_inventories)
