/* The store on the disk of test/sim: a kill and a power cut at each call that changes or syncs something. */
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
