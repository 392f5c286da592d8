/* What changed from one report of a host to the next, as its operator reads it. */

#include "test/unit/report_random.h"
#include "test/unit/test.h"
#include "topo/base/natural.h"
#include "topo/changes/changes.h"

static void assert_sound(const struct fab_diff *diff)
{
    for (uint32_t i = 1; i < diff->n; i++) {
        const struct fab_change *x = &diff->changes[i - 1], *y = &diff->changes[i];
        assert_true(x->kind < y->kind || (x->kind == y->kind && fab_natural_cmp(x->what, y->what) < 0));
    }
    for (uint32_t i = 0; i < diff->n; i++)
        assert_string_not_equal(diff->changes[i].before, diff->changes[i].after);
    assert_int_equal(diff->n_lost, 0);
}

/* The changes as lines "kind|what|before|after". */
static void expect(const char *before, const char *after, const char *expected)
{
    SCOPED(fab_report) b = report_said("node017", "%s", before == NULL ? "" : before);
    SCOPED(fab_report) a = report_said("node017", "%s", after == NULL ? "" : after);
    SCOPED(fab_diff) diff = {0};
    char lines[4000] = "";
    assert_int_equal(fab_report_changes(before != NULL ? &b : NULL, after != NULL ? &a : NULL, &diff), 0);
    assert_sound(&diff);
    for (uint32_t i = 0; i < diff.n; i++) {
        size_t used = strlen(lines);
        snprintf(lines + used, sizeof(lines) - used, "%s|%s|%s|%s\n", fab_change_name(diff.changes[i].kind),
                 diff.changes[i].what, diff.changes[i].before, diff.changes[i].after);
    }
    assert_string_equal(lines, expected);
}

/* One port as verbs, hwloc, libfabric, UCX and the kernel tell of it. */
#define GUID  ", port-guid #2c90300000001"
#define VERBS "verbs: name mlx5_0, port 1, node-guid #2c90300000000" GUID
#define REST                                                                                                 \
    "\nhwloc: name mlx5_0, pci 0000:c1:00:00, firmware 20.31, part ConnectX-6"                               \
    "\nlibfabric: pci 0000:c1:00:00, mtu 4096"                                                               \
    "\nucx: name mlx5_0, port 1, transport rc, transport ud, latency 600"                                    \
    "\nethernet: interface eth0, mac 02:00:00:00:00:01, address 10.91.0.2/16"
#define WHOLE VERBS ", firmware 20.31, state up, mtu 4096" REST

TEST(test_first_and_last)
{
    expect(NULL, WHOLE, "report-added|node017||2 devices\n");
    expect(WHOLE, NULL, "report-lost|node017|2 devices|\n");
    expect(NULL, "lldp: interface eth0", "report-added|node017||1 device\n");
    expect(WHOLE, WHOLE, "");
    expect("", WHOLE,
           "device-added|node017 eth0||device\n"
           "device-added|node017 mlx5_0[1]||ConnectX-6\n");
    expect(WHOLE, "",
           "device-lost|node017 eth0|device|\n"
           "device-lost|node017 mlx5_0[1]|ConnectX-6|\n");
}

TEST(test_one_entry_a_kind)
{
    expect(WHOLE,
           VERBS ", firmware 20.32, state down, mtu 2048"
                 "\nhwloc: name mlx5_0, pci 0000:c1:00:00, firmware 20.32, part ConnectX-6"
                 "\nlibfabric: pci 0000:c1:00:00, mtu 2048"
                 "\nucx: name mlx5_0, port 1, transport dc, transport ud, latency 700"
                 "\nethernet: interface eth0, mac 02:00:00:00:00:01, address 10.91.0.3/16, "
                 "address 10.91.0.2/16, speed 25000, driver ice",
           "firmware|node017 mlx5_0[1]|20.31|20.32\n"
           "driver|node017 eth0||ice\n"
           "state|node017 mlx5_0[1]|up|down\n"
           "speed|node017 eth0||25000\n"
           "mtu|node017 mlx5_0[1]|4096|2048\n"
           "fact|node017 eth0: address||10.91.0.3/16\n"
           "fact|node017 mlx5_0[1]: transport|rc|dc\n");
    /* a source that falls silent where others say the same is no change; one that disagrees is */
    expect(WHOLE, VERBS ", state up, mtu 4096" REST, "");
    expect(WHOLE, VERBS ", firmware 20.32, state up, mtu 4096" REST,
           "firmware|node017 mlx5_0[1]|20.31|20.31, 20.32\n");
    /* estimates are not told */
    expect(WHOLE, WHOLE ", ~speed 10", "");
}

TEST(test_names)
{
    /* the same GUID or MAC under another name */
    expect("verbs: name mlx5_0, port 1" GUID, "verbs: name rocep1, port 1" GUID,
           "name|node017 rocep1[1]|mlx5_0[1]|rocep1[1]\n");
    expect("ethernet: interface eth0, mac 02:00:00:00:00:01\nethernet: interface eth1, mac 02:00:00:00:00:02",
           "ethernet: interface eth1, mac 02:00:00:00:00:01\nethernet: interface eth0, mac 02:00:00:00:00:02",
           "name|node017 eth0|eth1|eth0\nname|node017 eth1|eth0|eth1\n");
    /* another card in its place */
    expect("ethernet: interface eth0, mac 02:00:00:00:00:01",
           "ethernet: interface eth0, mac 02:00:00:00:00:02",
           "fact|node017 eth0: mac|02:00:00:00:00:01|02:00:00:00:00:02\n");
    /* an interface of an RDMA device is told under the device */
    expect("verbs: name mlx5_0, port 1, interface ib0\nethernet: interface ib0, mtu 2044",
           "verbs: name mlx5_0, port 1, interface ib0\nethernet: interface ib0, mtu 4092",
           "mtu|node017 mlx5_0[1]|2044|4092\n");
    expect("hwloc: pci 0000:c1:00:00, numa 0", "hwloc: pci 0000:c1:00:00, numa 1",
           "fact|node017 0000:c1:00:00: numa|0|1\n");
    expect("ucx: transport tcp", "ucx: transport self", "fact|node017 ucx: transport|tcp|self\n");
    expect(VERBS ", lid 4", VERBS ", lid 5", "lid|node017 mlx5_0[1]|4|5\n");
}

TEST(test_where_it_is)
{
    SCOPED(fab_report) b = report_said("node017", VERBS ", state up");
    SCOPED(fab_report) a = report_said("node017", VERBS ", state down");
    SCOPED(fab_diff) diff = {0};

    assert_int_equal(fab_report_changes(&b, &a, &diff), 0);
    assert_int_equal(fab_report_changes(&b, NULL, &diff), 0); /* appended, and in order again */
    assert_int_equal(diff.n, 2);
    assert_int_equal(diff.changes[0].kind, FAB_CHANGE_REPORT_LOST);
    assert_true(diff.changes[1].guid == 0x0002c90300000000u);
    assert_int_equal(diff.changes[1].port, 1);
    assert_int_equal(fab_report_host(&a, "node018", NULL), 0);
    assert_int_equal(fab_report_changes(&b, &a, &diff), PMIXFAB_ERR_INVAL); /* unfinished */
    assert_int_equal(fab_report_finish(&a, NULL), 0);
    assert_int_equal(fab_report_changes(&b, &a, &diff), PMIXFAB_ERR_INVAL); /* two hosts */
    assert_int_equal(fab_report_changes(NULL, NULL, &diff), PMIXFAB_ERR_INVAL);
    assert_int_equal(diff.n, 2);
}

/* Is this fact of a (source and item aside) in b too? Written without the order that reports have. */
static bool says(const struct fab_report *b, unsigned kind, const char *text)
{
    for (uint32_t i = 0; i < b->n_facts; i++) {
        if (b->facts[i].kind == kind && strcmp(b->pool + b->facts[i].text, text) == 0)
            return true;
    }
    return false;
}

/* A firmware that nobody spoke of before is told, and whatever is told was said. */
TEST(test_random)
{
    uint64_t random = 77;
    unsigned told = 0;

    for (unsigned round = 0; round < 600; round++) {
        SCOPED(fab_report) before, after;
        SCOPED(fab_diff) diff = {0}, back = {0};
        report_random(&before, &random, "node017", report_random_below(&random, 5),
                      report_random_below(&random, 4));
        report_random_later(&after, &before, &random, report_random_below(&random, 25));
        assert_int_equal(fab_report_changes(&before, &after, &diff), 0);
        assert_int_equal(fab_report_changes(&after, &before, &back), 0);
        assert_sound(&diff);
        assert_int_equal(diff.n, back.n);
        bool firmware = false, lost = false;
        for (uint32_t i = 0; i < diff.n; i++) {
            const struct fab_change *change = &diff.changes[i];
            firmware |= change->kind == FAB_CHANGE_FIRMWARE || change->kind == FAB_CHANGE_DEVICE_ADDED;
            lost |= change->kind == FAB_CHANGE_DEVICE_LOST;
            if (change->kind == FAB_CHANGE_FIRMWARE && change->after[0] != '\0')
                assert_true(says(&after, FAB_FACT_FIRMWARE, change->after));
        }
        for (uint32_t i = 0; i < after.n_facts; i++) {
            const char *text = after.pool + after.facts[i].text;
            if (after.facts[i].kind == FAB_FACT_FIRMWARE && !says(&before, FAB_FACT_FIRMWARE, text))
                assert_true(firmware);
        }
        for (uint32_t i = 0; i < before.n_facts; i++) {
            const char *text = before.pool + before.facts[i].text;
            if (before.facts[i].kind == FAB_FACT_NAME && !says(&after, FAB_FACT_NAME, text))
                assert_true(lost);
        }
        told += diff.n;
    }
    assert_in_range(told, 600, 60000);
}
