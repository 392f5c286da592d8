/* The nearest device: what a person would choose. */
#include "test/unit/place_host.h"

/* Two sockets of 12 cores with two threads each, two HCAs on each. */
#define SOCKET0 "0-11,24-35"
#define SOCKET1 "12-23,36-47"
static const struct place_device two_sockets[4] = {{SOCKET0, SOCKET0, "mlx5_0", false},
                                                   {SOCKET0, SOCKET0, "mlx5_1", false},
                                                   {SOCKET1, SOCKET1, "mlx5_2", false},
                                                   {SOCKET1, SOCKET1, "mlx5_3", false}};

static void must_choose(const struct pmixfab *fab, const char *const *cpus, size_t n, const uint32_t *want)
{
    struct pmixfab_nearest got[64], again[64];
    assert_int_equal(pmixfab_nearest(fab, 0, 0, cpus, n, got), 0);
    assert_int_equal(pmixfab_nearest(fab, 0, 0, cpus, n, again), 0);
    assert_memory_equal(got, again, n * sizeof(*got));
    for (size_t r = 0; r < n; r++)
        if (got[r].device != want[r])
            fail_msg("rank %zu: device %u, not %u", r, got[r].device, want[r]);
}

static const char *why(const struct pmixfab *fab, const struct pmixfab_nearest *choice)
{
    char text[256];
    assert_int_equal(pmixfab_nearest_text(fab, choice, text, sizeof(text)), 0);
    return printed("%s", text);
}

/* Slurm's distribution block:cyclic, and each rank asked for by itself as in its forked child. */
TEST(twelve_ranks_across_sockets_one_by_one)
{
    static const char *const cpus[12] = {"0,24", "12,36", "1,25", "13,37", "2,26", "14,38",
                                         "3,27", "15,39", "4,28", "16,40", "5,29", "17,41"};
    static const uint32_t want[12] = {0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3};
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(two_sockets, 4);
    must_choose(fab, cpus, 12, want);
    for (uint32_t r = 0; r < 12; r++) {
        struct pmixfab_nearest one;
        assert_int_equal(pmixfab_nearest(fab, 0, r, &cpus[r], 1, &one), 0);
        assert_int_equal(one.device, want[r]);
        assert_int_equal(one.equal, 2);
    }
}

/* Bound to whole sockets: half of a socket's ranks each, in turn. */
TEST(ranks_of_whole_sockets)
{
    static const char *const cpus[6] = {SOCKET0, SOCKET1, ("hwloc:" SOCKET0), SOCKET1, SOCKET0, SOCKET1};
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(two_sockets, 4);
    struct pmixfab_nearest got[6];
    unsigned users[4] = {0};
    assert_int_equal(pmixfab_nearest(fab, 0, 0, cpus, 6, got), 0);
    for (unsigned r = 0; r < 6; r++) {
        assert_int_equal(got[r].device / 2, r % 2);
        users[got[r].device]++;
    }
    for (unsigned d = 0; d < 4; d++)
        assert_in_range(users[d], 1, 2);
    for (uint32_t r = 0; r < 6; r++) {
        struct pmixfab_nearest one;
        assert_int_equal(pmixfab_nearest(fab, 0, r, &cpus[r], 1, &one), 0);
        assert_int_equal(one.device, got[r].device);
    }
}

TEST(ranks_that_are_not_bound)
{
    static const char *const unreadable[5] = {NULL, "", "all", "0x3", "9999"};
    static const uint32_t want[5] = {0, 1, 2, 3, 0};
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(two_sockets, 4);
    must_choose(fab, NULL, 5, want);
    must_choose(fab, unreadable, 5, want);
    for (uint32_t r = 0; r < 5; r++) {
        struct pmixfab_nearest one;
        assert_int_equal(pmixfab_nearest(fab, 0, r, NULL, 1, &one), 0);
        assert_int_equal(one.device, want[r]);
        assert_string_equal(why(fab, &one), "not bound, in turn with 3 more");
    }
}

TEST(devices_that_are_down)
{
    struct place_device devices[4];
    struct pmixfab_nearest got[2];
    static const char *const cpus[2] = {"0", "12"};
    memcpy(devices, two_sockets, sizeof(devices));
    devices[0].down = devices[2].down = devices[3].down = true;
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(devices, 4);
    assert_int_equal(pmixfab_nearest(fab, 0, 0, cpus, 2, got), 0);
    assert_int_equal(got[0].device, 1);
    assert_string_equal(why(fab, &got[0]), "attached to its processors");
    assert_int_equal(got[1].device, 1);
    assert_string_equal(why(fab, &got[1]),
                        "in another package than its processors; HCA-3:1 is nearer, but not up");
    devices[1].down = true;
    OWNED(pmixfab_close) struct pmixfab *none = place_open(devices, 4);
    assert_int_equal(pmixfab_nearest(none, 0, 0, cpus, 2, got), 0);
    assert_int_equal(got[0].device, UINT32_MAX);
    assert_string_equal(why(none, &got[0]), "no device of the host is up");
}

/* A package of two NUMA nodes with an HCA on the first, and one elsewhere. */
TEST(the_package_counts)
{
    static const struct place_device devices[2] = {{"8-11", "8-15", NULL, false},
                                                   {"0-3", "0-7", NULL, false}};
    static const char *const cpus[4] = {"5", "12-15", "1", "16"};
    static const uint32_t want[4] = {1, 0, 1, 0};
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(devices, 2);
    struct pmixfab_nearest got[4];
    must_choose(fab, cpus, 4, want);
    assert_int_equal(pmixfab_nearest(fab, 0, 0, cpus, 4, got), 0);
    assert_string_equal(why(fab, &got[0]), "in the package of its processors");
    assert_string_equal(why(fab, &got[3]), "in another package than its processors, in turn with 1 more");
}

TEST(impossible_questions)
{
    OWNED(pmixfab_close) struct pmixfab *fab = place_open(two_sockets, 4);
    struct pmixfab_nearest got;
    char small[8];
    assert_int_equal(pmixfab_nearest(NULL, 0, 0, NULL, 1, &got), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_nearest(fab, 1, 0, NULL, 1, &got), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_nearest(fab, 0, 0, NULL, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_nearest(fab, 0, 0, NULL, 0, NULL), 0);
    assert_int_equal(pmixfab_nearest(fab, 0, UINT32_MAX, NULL, 1, &got), 0);
    assert_int_equal(pmixfab_nearest_text(fab, &got, small, sizeof(small)), PMIXFAB_ERR_RANGE);
    assert_int_equal(pmixfab_nearest_text(fab, NULL, small, sizeof(small)), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_nearest_text(fab, &got, small, 0), PMIXFAB_ERR_INVAL);
}
