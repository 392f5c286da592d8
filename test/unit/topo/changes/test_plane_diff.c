/* Which device indices moved from one snapshot to the next. */
#include "test/unit/snapshot_world.h"

#include "topo/changes/changes.h"

/* The snapshot of a fabric's first plane without these hosts. */
static void *snapshot(const char *fabric, const char *lost, const char *also)
{
    SCOPED(fab_planes) planes;
    SCOPED(layer) layer = {0};
    SCOPED(fab_inventory) inv = generated(fabric);
    assert_true(lost == NULL || fabric_lose(&inv, lost) == 0);
    assert_true(also == NULL || fabric_lose(&inv, also) == 0);
    must_do(fab_planes_build(&inv, FAB_COST_RATE, &planes, fresh_err()));
    layer_compute(&layer, &planes.planes[0], "ib0", 0);
    void *bytes = layer.bytes;
    layer.bytes = NULL;
    return bytes;
}

static void assert_moved(void *before, void *after, const char *line)
{
    SCOPED(fab_diff) diff = {0};
    char told[900] = "";
    assert_int_equal(fab_index_changes(before, after, &diff), 0);
    assert_true(diff.n <= 1);
    if (diff.n == 1)
        snprintf(told, sizeof(told), "%s|%s|%s|%s|%s", fab_change_name(diff.changes[0].kind),
                 diff.changes[0].what, diff.changes[0].before, diff.changes[0].after, diff.changes[0].why);
    assert_string_equal(told, line);
}

TEST(test_ranges)
{
    void *whole = snapshot("fattree2:4,2,3", NULL, NULL),
         *less = snapshot("fattree2:4,2,3", "node0003", NULL);
    void *two = snapshot("fattree2:4,2,3", "node0003", "node0011"),
         *last = snapshot("fattree2:4,2,3", "node0012", NULL);
    assert_moved(whole, whole, "");
    assert_moved(whole, last, "");
    assert_moved(last, whole, "");
    assert_moved(whole, less, "index|ib0|3-11|2-10|0 devices came and 1 went");
    assert_moved(less, whole, "index|ib0|2-10|3-11|1 device came and 0 went");
    assert_moved(whole, two, "index|ib0|3-9, 11|2-8, 9|0 devices came and 2 went");
    assert_moved(less, last, "index|ib0|2-9|3-10|1 device came and 1 went");
    free(whole);
    free(less);
    free(two);
    free(last);
}
