/* What changed from one report of a host to the next, as its operator reads it. */

#include "test/unit/report_random.h"
#include "test/unit/test.h"
#include "topo/diff/report_diff.h"

/* A report from lines "source kind text", a blank line between items. */
static void make(struct fab_report *report, const char *lines)
{
    uint32_t item = FAB_NONE;
    char source[20], kind[20], text[200];

    fab_report_init(report);
    assert_int_equal(fab_report_host(report, "node017", NULL), 0);
    for (const char *at = lines; *at != '\0'; at = strchr(at, '\n') + 1) {
        if (*at == '\n') {
            item = FAB_NONE;
            continue;
        }
        assert_int_equal(sscanf(at, "%19s %19s %199[^\n]", source, kind, text), 3);
        if (item == FAB_NONE)
            assert_int_equal(fab_report_item(report, fab_source_parse(source), &item), 0);
        bool estimate = kind[0] == '~';
        enum fab_fact fact = fab_fact_parse(kind + estimate);
        assert_int_equal(estimate ? fab_report_estimate(report, item, fact, text)
                                  : fab_report_fact(report, item, fact, text),
                         0);
    }
    assert_int_equal(fab_report_finish(report, NULL), 0);
}

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
    struct fab_report b, a;
    struct fab_diff diff = {0};
    char lines[4000] = "";

    if (before != NULL)
        make(&b, before);
    if (after != NULL)
        make(&a, after);
    assert_int_equal(fab_report_changes(before != NULL ? &b : NULL, after != NULL ? &a : NULL, &diff), 0);
    assert_sound(&diff);
    for (uint32_t i = 0; i < diff.n; i++) {
        size_t used = strlen(lines);
        snprintf(lines + used, sizeof(lines) - used, "%s|%s|%s|%s\n", fab_change_name(diff.changes[i].kind),
                 diff.changes[i].what, diff.changes[i].before, diff.changes[i].after);
    }
    assert_string_equal(lines, expected);
    fab_diff_destroy(&diff);
    if (before != NULL)
        fab_report_destroy(&b);
    if (after != NULL)
        fab_report_destroy(&a);
}

/* One port as verbs, hwloc, libfabric, UCX and the kernel tell of it. */
#define GUID  "verbs port-guid 0x0002c90300000001\n"
#define VERBS "verbs name mlx5_0\nverbs port 1\nverbs node-guid 0x0002c90300000000\n" GUID
#define REST                                                                                                 \
    "\nhwloc name mlx5_0\nhwloc pci 0000:c1:00:00\nhwloc firmware 20.31\nhwloc part ConnectX-6\n"            \
    "\nlibfabric pci 0000:c1:00:00\nlibfabric mtu 4096\n"                                                    \
    "\nucx name mlx5_0\nucx port 1\nucx transport rc\nucx transport ud\nucx latency 600\n"                   \
    "\nethernet interface eth0\nethernet mac 02:00:00:00:00:01\nethernet address 10.91.0.2/16\n"
#define WHOLE VERBS "verbs firmware 20.31\nverbs state up\nverbs mtu 4096\n" REST

TEST(test_first_and_last)
{
    expect(NULL, WHOLE, "report-added|node017||2 devices\n");
    expect(WHOLE, NULL, "report-lost|node017|2 devices|\n");
    expect(NULL, "lldp interface eth0\n", "report-added|node017||1 device\n");
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
           VERBS "verbs firmware 20.32\nverbs state down\nverbs mtu 2048\n"
                 "\nhwloc name mlx5_0\nhwloc pci 0000:c1:00:00\nhwloc firmware 20.32\nhwloc part ConnectX-6\n"
                 "\nlibfabric pci 0000:c1:00:00\nlibfabric mtu 2048\n"
                 "\nucx name mlx5_0\nucx port 1\nucx transport dc\nucx transport ud\nucx latency 700\n"
                 "\nethernet interface eth0\nethernet mac 02:00:00:00:00:01\nethernet address 10.91.0.3/16\n"
                 "ethernet address 10.91.0.2/16\nethernet speed 25000\nethernet driver ice\n",
           "firmware|node017 mlx5_0[1]|20.31|20.32\n"
           "driver|node017 eth0||ice\n"
           "state|node017 mlx5_0[1]|up|down\n"
           "speed|node017 eth0||25000\n"
           "mtu|node017 mlx5_0[1]|4096|2048\n"
           "fact|node017 eth0: address||10.91.0.3/16\n"
           "fact|node017 mlx5_0[1]: transport|rc|dc\n");
    /* a source that falls silent where others say the same is no change; one that disagrees is */
    expect(WHOLE, VERBS "verbs state up\nverbs mtu 4096\n" REST, "");
    expect(WHOLE, VERBS "verbs firmware 20.32\nverbs state up\nverbs mtu 4096\n" REST,
           "firmware|node017 mlx5_0[1]|20.31|20.31, 20.32\n");
    /* estimates are not told */
    expect(WHOLE, WHOLE "ethernet ~speed 10\n", "");
}

TEST(test_names)
{
    /* the same GUID or MAC under another name */
    expect("verbs name mlx5_0\nverbs port 1\n" GUID, "verbs name rocep1\nverbs port 1\n" GUID,
           "name|node017 rocep1[1]|mlx5_0[1]|rocep1[1]\n");
    expect("ethernet interface eth0\nethernet mac 02:00:00:00:00:01\n"
           "\nethernet interface eth1\nethernet mac 02:00:00:00:00:02\n",
           "ethernet interface eth1\nethernet mac 02:00:00:00:00:01\n"
           "\nethernet interface eth0\nethernet mac 02:00:00:00:00:02\n",
           "name|node017 eth0|eth1|eth0\nname|node017 eth1|eth0|eth1\n");
    /* another card in its place */
    expect("ethernet interface eth0\nethernet mac 02:00:00:00:00:01\n",
           "ethernet interface eth0\nethernet mac 02:00:00:00:00:02\n",
           "fact|node017 eth0: mac|02:00:00:00:00:01|02:00:00:00:00:02\n");
    /* an interface of an RDMA device is told under the device */
    expect(
        "verbs name mlx5_0\nverbs port 1\nverbs interface ib0\n\nethernet interface ib0\nethernet mtu 2044\n",
        "verbs name mlx5_0\nverbs port 1\nverbs interface ib0\n\nethernet interface ib0\nethernet mtu 4092\n",
        "mtu|node017 mlx5_0[1]|2044|4092\n");
    expect("hwloc pci 0000:c1:00:00\nhwloc numa 0\n", "hwloc pci 0000:c1:00:00\nhwloc numa 1\n",
           "fact|node017 0000:c1:00:00: numa|0|1\n");
    expect("ucx transport tcp\n", "ucx transport self\n", "fact|node017 ucx: transport|tcp|self\n");
    expect(VERBS "verbs lid 4\n", VERBS "verbs lid 5\n", "lid|node017 mlx5_0[1]|4|5\n");
}

TEST(test_where_it_is)
{
    struct fab_report b, a;
    struct fab_diff diff = {0};

    make(&b, VERBS "verbs state up\n");
    make(&a, VERBS "verbs state down\n");
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
    fab_diff_destroy(&diff);
    fab_report_destroy(&a);
    fab_report_destroy(&b);
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

    for (unsigned round = 0; round < 2000; round++) {
        struct fab_report before, after;
        struct fab_diff diff = {0}, back = {0};
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
        fab_diff_destroy(&diff);
        fab_diff_destroy(&back);
        fab_report_destroy(&before);
        fab_report_destroy(&after);
    }
    assert_in_range(told, 2000, 200000);
}
