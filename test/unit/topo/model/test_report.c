/* What a host says of its devices: forms of facts, limits, and one order whatever the order of building. */

#include "test/unit/report_random.h"
#include "test/unit/test.h"
#include "topo/model/report.h"

static uint32_t item_of(struct fab_report *report, enum fab_source source)
{
    uint32_t item = FAB_NONE;
    assert_int_equal(fab_report_item(report, source, &item), 0);
    return item;
}

static void start(struct fab_report *report)
{
    fab_report_init(report);
    assert_int_equal(fab_report_host(report, "node001", NULL), 0);
}

TEST(test_names)
{
    for (unsigned i = 0; i < FAB_SOURCES; i++)
        assert_int_equal(fab_source_parse(fab_source_name((enum fab_source)i)), i);
    assert_string_equal(fab_source_name(FAB_FROM_LIBFABRIC), "libfabric");
    assert_string_equal(fab_source_name(FAB_SOURCES), "?");
    assert_int_equal(fab_source_parse("Verbs"), FAB_SOURCES);
    assert_int_equal(fab_source_parse(NULL), FAB_SOURCES);
    for (unsigned i = 1; i < FAB_FACTS; i++) {
        assert_non_null(fab_fact_name((enum fab_fact)i));
        assert_int_equal(fab_fact_parse(fab_fact_name((enum fab_fact)i)), i);
    }
    assert_string_equal(fab_fact_name(FAB_FACT_SLOT_SPEED), "slot-speed");
    assert_null(fab_fact_name(0));
    assert_null(fab_fact_name(FAB_FACTS));
    assert_int_equal(fab_fact_parse("?"), 0);
    assert_int_equal(fab_fact_parse(NULL), 0);
    assert_true(fab_fact_many(FAB_FACT_GID) && fab_fact_many(FAB_FACT_TRANSPORT));
    assert_false(fab_fact_many(FAB_FACT_MAC) || fab_fact_many(0) || fab_fact_many(FAB_FACTS));
}

#define FORMS 12
static const struct {
    enum fab_fact kind;
    const char *good[FORMS], *bad[FORMS];
} forms[] = {
    {FAB_FACT_NAME, {"mlx5_3", "a", "k\303\274che"}, {"", "a\tb", "\377", "\302\205"}},
    {FAB_FACT_PORT, {"1", "9", "254"}, {"0", "255", "01", "+1", " 1", "1 ", "0x1", "99999999999999999999"}},
    {FAB_FACT_INTERFACE, {"ib0", "ens1f0", "eth0.12"}, {"", "a\nb"}},
    {FAB_FACT_NODE_GUID,
     {"0x0002c903000f0001", "0xffffffffffffffff"},
     {"0x0000000000000000", "0x0002C903000f0001", "0x2c903000f0001", "0002c903000f0001",
      "0x0002c903000f00011", "0X0002c903000f0001", "0x", "0x0002c903000f000g"}},
    {FAB_FACT_SYSTEM_GUID, {"0x0000000000000001"}, {"0x0000000000000000", "1"}},
    {FAB_FACT_PORT_GUID, {"0x1000000000000000"}, {"0x0000000000000000", "0x1"}},
    {FAB_FACT_MAC,
     {"00:21:5e:c4:86:1a", "00:00:00:00:00:01", "ff:ff:ff:ff:ff:ff"},
     {"00:00:00:00:00:00", "00:21:5E:c4:86:1a", "00:21:5e:c4:86", "00:21:5e:c4:86:1a:00", "00-21-5e-c4-86-1a",
      "0:21:5e:c4:86:1a", "00:21:5e:c4:86:1", "00:21:5e:c4:86:1a ", "00215ec4861a"}},
    {FAB_FACT_PCI,
     {"0000:c1:00:01", "0000:00:1f:07", "10000:e1:00:00", "ffffffff:00:00:00"},
     {"0000:c1:00.1", "c1:00:01", "0000:c1:20:00", "0000:c1:00:08", "0000:c1:00:10", "0000:C1:00:01",
      "00000:c1:00:01", "000:c1:00:01", "0000:c1:00:01:00", "1ffffffff:00:00:00", "0000:c1:00:1"}},
    {FAB_FACT_BUS, {"PCI", "virtual", "USB"}, {"", "\001"}},
    {FAB_FACT_VENDOR, {"Mellanox Technologies"}, {"", "Mel\177"}},
    {FAB_FACT_VENDOR_ID, {"0x15b3", "0x0000"}, {"15b3", "0x15B3", "0x15b", "0x15b33", "0x15bg"}},
    {FAB_FACT_PART, {"MT28908 Family [ConnectX-6]"}, {"", "a\nb"}},
    {FAB_FACT_PART_ID, {"0x101b"}, {"4123", "0x101B", "0x101b0"}},
    {FAB_FACT_DRIVER, {"mlx5_core"}, {"", "a\rb"}},
    {FAB_FACT_FIRMWARE, {"20.31.1014"}, {"", "\033[1m"}},
    {FAB_FACT_TYPE, {"InfiniBand", "Ethernet"}, {"infiniband", "IB", "Ethernet ", ""}},
    {FAB_FACT_STATE, {"up", "down", "unknown"}, {"UP", "ACTIVE", ""}},
    {FAB_FACT_MTU, {"1500", "65536", "4294967295"}, {"0", "-1", "4294967296", "1500.0", "01500"}},
    {FAB_FACT_SPEED, {"100", "400000"}, {"0", "100G", "1e5"}},
    {FAB_FACT_LID, {"1", "49151", "65535"}, {"0", "65536", "0x12"}},
    {FAB_FACT_GID,
     {"fe80::c42:a103:1:1", "::1", "fe80::", "::ffff:10.0.0.1"},
     {"::", "FE80::1", "fe80:0::1", "fe80:0:0:0:0:0:0:1", "10.0.0.1", "fe80::1/64", "fe80::1%eth0"}},
    {FAB_FACT_ADDRESS,
     {"10.91.0.2/16", "fd00::2/64", "0.0.0.0/0", "::/0", "10.0.0.1/32", "fd00::1/128"},
     {"10.91.0.2", "10.91.0.2/33", "010.91.0.2/16", "10.91.0.2/016", "fd00:0::2/64", "FD00::2/64",
      "fd00::2/129", "10.91.0.2/", "/16", "10.91.0/16"}},
    {FAB_FACT_NUMA, {"0", "7", "4294967295"}, {"-1", "00", "4294967296", ""}},
    {FAB_FACT_PACKAGE, {"0", "1"}, {"-1", "a"}},
    {FAB_FACT_SWITCH, {"0000:c0:00:00"}, {"0000:c0:00.0", ""}},
    {FAB_FACT_SLOT_SPEED, {"0", "252000"}, {"31.5", ""}},
    {FAB_FACT_PROVIDER, {"verbs;ofi_rxm"}, {"", "a\nb"}},
    {FAB_FACT_PROTOCOL, {"FI_PROTO_RDMA_CM_IB_RC"}, {""}},
    {FAB_FACT_TRANSPORT, {"rc_mlx5"}, {""}},
    {FAB_FACT_BANDWIDTH, {"0", "188000"}, {"1.5", ""}},
    {FAB_FACT_LATENCY, {"0", "600"}, {"6e2", ""}},
    {FAB_FACT_SWITCH_ID,
     {"00:21:5e:c4:86:1a", "ifname Ethernet12", "local tor 1"},
     {"00:00:00:00:00:00", "tor1", "local ", "local  x", " local", "00:21:5E:C4:86:1A", ""}},
    {FAB_FACT_SWITCH_NAME, {"tor1.example.net", "tor 1"}, {"", "tor\n1"}},
    {FAB_FACT_SWITCH_PORT, {"Ethernet12", "00:21:5e:c4:86:1a"}, {""}},
    {FAB_FACT_SOFTWARE, {"yes"}, {"no", "Yes", "1", ""}},
    {FAB_FACT_CPUS,
     {"0", "0-11,24-35", "0-14:2", "1,3", "0,2,5-7"},
     {"0-0", "1,0", "0,1", "0x3", "0-", "4096", "0,2,4", "0-15:2", "1-3:1", "", " 0"}},
    {FAB_FACT_PACKAGE_CPUS, {"0-63"}, {"63-0", "all"}},
};

TEST(test_forms)
{
    char text[300];
    unsigned seen[FAB_FACTS] = {0};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        enum fab_fact kind = forms[i].kind;
        struct fab_err err = {{0}};
        seen[kind]++;
        for (unsigned k = 0; k < FORMS && forms[i].good[k] != NULL; k++) {
            if (fab_fact_check(kind, forms[i].good[k], &err) != 0)
                fail_msg("%s refused: %s", forms[i].good[k], err.text);
        }
        for (unsigned k = 0; k < FORMS && forms[i].bad[k] != NULL; k++) {
            err.text[0] = '\0';
            if (fab_fact_check(kind, forms[i].bad[k], &err) != PMIXFAB_ERR_SYNTAX)
                fail_msg("%s taken for %s", forms[i].bad[k], fab_fact_name(kind));
            assert_non_null(strstr(err.text, fab_fact_name(kind)));
        }
        assert_true(forms[i].good[0] != NULL && forms[i].bad[0] != NULL);
    }
    for (unsigned k = 1; k < FAB_FACTS; k++)
        assert_int_equal(seen[k], 1);
    memset(text, 'x', sizeof(text));
    text[FAB_REPORT_MAX_TEXT + 1] = '\0';
    assert_int_equal(fab_fact_check(FAB_FACT_PART, text, NULL), PMIXFAB_ERR_SYNTAX);
    text[FAB_REPORT_MAX_TEXT] = '\0';
    assert_int_equal(fab_fact_check(FAB_FACT_PART, text, NULL), 0);
    text[64] = '\0';
    assert_int_equal(fab_fact_check(FAB_FACT_NAME, text, NULL), PMIXFAB_ERR_SYNTAX);
    text[63] = '\0';
    assert_int_equal(fab_fact_check(FAB_FACT_NAME, text, NULL), 0);
    assert_int_equal(fab_fact_check(0, "x", NULL), PMIXFAB_ERR_SYNTAX);
    assert_int_equal(fab_fact_check(FAB_FACTS, "x", NULL), PMIXFAB_ERR_SYNTAX);
}

TEST(test_host_names)
{
    static const char *const bad[] = {"", ".a", "-a", "a b", "a/b", "a\n", "k\303\274che"};
    char name[FAB_HOST_MAX + 2];
    SCOPED(fab_report) report;

    start(&report);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(fab_report_host(&report, bad[i], fresh_err()), PMIXFAB_ERR_SYNTAX);
        assert_string_equal(report.host, "node001");
    }
    memset(name, 'n', sizeof(name));
    name[FAB_HOST_MAX + 1] = '\0';
    assert_int_equal(fab_report_host(&report, name, NULL), PMIXFAB_ERR_SYNTAX);
    name[FAB_HOST_MAX] = '\0';
    assert_int_equal(fab_report_host(&report, name, NULL), 0);
    assert_string_equal(report.host, name);
    fab_report_destroy(&report);
    assert_int_equal(fab_report_finish(&report, fresh_err()), PMIXFAB_ERR_SYNTAX); /* of nobody */
}

TEST(test_building)
{
    SCOPED(fab_report) report;
    char text[400];
    uint32_t item = 7;

    start(&report);
    assert_int_equal(fab_report_item(&report, FAB_FROM_SUBNET, &item), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_item(&report, FAB_SOURCES, &item), PMIXFAB_ERR_INVAL);
    assert_int_equal(item, 7);
    item = item_of(&report, FAB_FROM_VERBS);
    assert_int_equal(fab_report_fact(&report, item + 1, FAB_FACT_NAME, "a"), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_fact(&report, item, 0, "a"), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_fact(&report, item, FAB_FACTS, "a"), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_fact(&report, item, FAB_FACT_NAME, NULL), 0);
    assert_int_equal(fab_report_fact(&report, item, FAB_FACT_NAME, ""), 0);
    assert_int_equal(fab_report_printf(&report, item, FAB_FACT_NAME, "mlx5_%d", 3), 0);
    assert_int_equal(fab_report_fact(&report, item, FAB_FACT_VENDOR, "Mel\nlanox\377"), 0);
    memset(text, 'x', sizeof(text));
    memcpy(text + 254, "\303\274", 3); /* the last character does not fit */
    assert_int_equal(fab_report_fact(&report, item, FAB_FACT_PART, text), 0);
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(fab_report_printf(&report, item, FAB_FACT_FIRMWARE, "%s", text), 0);
    assert_null(fab_report_text(&report, item, FAB_FACT_NAME)); /* not finished */
    assert_int_equal(fab_report_finish(&report, NULL), 0);
    assert_int_equal(fab_report_finish(&report, NULL), 0);
    assert_string_equal(fab_report_text(&report, 0, FAB_FACT_NAME), "mlx5_3");
    assert_string_equal(fab_report_text(&report, 0, FAB_FACT_VENDOR), "Mel?lanox?");
    assert_int_equal(strlen(fab_report_text(&report, 0, FAB_FACT_PART)), 254);
    assert_int_equal(strlen(fab_report_text(&report, 0, FAB_FACT_FIRMWARE)), FAB_REPORT_MAX_TEXT);
    assert_null(fab_report_text(&report, 0, FAB_FACT_MAC));
    assert_null(fab_report_text(&report, 1, FAB_FACT_NAME));
    assert_int_equal(fab_report_item(&report, FAB_FROM_VERBS, &item), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_fact(&report, 0, FAB_FACT_NAME, "b"), PMIXFAB_ERR_INVAL);
    fab_report_destroy(NULL);
}

TEST(test_equal_things_become_one)
{
    SCOPED(fab_report) report;

    start(&report);
    for (unsigned round = 0; round < 3; round++) {
        uint32_t item = item_of(&report, FAB_FROM_UCX);
        item_of(&report, FAB_FROM_HWLOC);  /* of nothing */
        for (unsigned i = 0; i < 200; i++) /* far more than an item can hold, but all the same */
            assert_int_equal(fab_report_fact(&report, item, FAB_FACT_TRANSPORT, i % 2 == 0 ? "rc" : "ud"), 0);
        assert_int_equal(fab_report_estimate(&report, item, FAB_FACT_LATENCY, "600"), 0);
        if (round > 0) /* measured once is measured, before and behind */
            assert_int_equal(fab_report_fact(&report, item, FAB_FACT_LATENCY, "600"), 0);
        assert_int_equal(fab_report_estimate(&report, item, FAB_FACT_LATENCY, "600"), 0);
    }
    assert_int_equal(fab_report_finish(&report, NULL), 0);
    assert_int_equal(report.n_items, 2);
    assert_int_equal(report.n_facts, 6);
    assert_int_equal(report.items[0].n, 3);
    assert_int_equal(report.facts[2].estimate + report.facts[5].estimate, 1);
}

TEST(test_refused)
{
    static const struct {
        const char *says;
        int code;
        const char *message;
    } bad[] = {
        {"lldp: interface eth0, mac 00:21:5E:C4:86:1A", PMIXFAB_ERR_SYNTAX,
         "node001: lldp of \"eth0\": \"00:21:5E:C4:86:1A\""},
        {"verbs: name mlx5_0, state up, ~state down", PMIXFAB_ERR_CONFLICT,
         "\"mlx5_0\": two of state, \"down\" and \"up\""},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        SCOPED(fab_report) report;
        struct fab_err err = {{0}};
        start(&report);
        report_say(&report, "%s", bad[i].says);
        const uint32_t n = report.n_facts;
        must_fail(fab_report_finish(&report, &err), bad[i].code, &err, bad[i].message);
        assert_false(report.finished);
        assert_int_equal(report.n_facts, n);
    }
}

TEST(test_limits)
{
    SCOPED(fab_report) report;
    uint32_t item;

    start(&report);
    item = item_of(&report, FAB_FROM_LIBFABRIC);
    for (int i = 0; i < FAB_REPORT_MAX_FACTS; i++)
        assert_int_equal(fab_report_printf(&report, item, FAB_FACT_PROVIDER, "p%d", i), 0);
    assert_int_equal(fab_report_fact(&report, item, FAB_FACT_PROVIDER, "p0"), 0); /* it is there */
    assert_int_equal(fab_report_fact(&report, item, FAB_FACT_PROVIDER, "more"), PMIXFAB_ERR_RANGE);
    for (int i = 1; i < FAB_REPORT_MAX_ITEMS; i++)
        report_say(&report, "verbs: name d%d", i);
    assert_int_equal(fab_report_item(&report, FAB_FROM_VERBS, &item), PMIXFAB_ERR_RANGE);
    assert_int_equal(fab_report_finish(&report, NULL), 0);
    assert_int_equal(report.n_items, FAB_REPORT_MAX_ITEMS);
    fab_report_destroy(&report);

    start(&report); /* each item is fine, all together are too much */
    for (int i = 0; i < FAB_REPORT_MAX_SIZE / 256 + 1; i++)
        report_say(&report, "verbs: part %0255d", i);
    must_refuse(fab_report_finish(&report, fresh_err()), PMIXFAB_ERR_RANGE, "262144");
}

/* The same said in another order, some of it twice, facts of all items in between each other. */
static void shuffle(struct fab_report *to, const struct fab_report *from, uint64_t *random)
{
    uint32_t n = from->n_facts, n_items = from->n_items;
    OWNED(free)
    uint32_t *facts = malloc((n + 1) * sizeof(*facts)), *items = malloc((n_items + 1) * sizeof(*items));

    start(to);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = report_random_below(random, i + 1);
        facts[i] = facts[at];
        facts[at] = i;
    }
    for (uint32_t i = 0; i < n_items; i++)
        items[i] = FAB_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_report_fact *fact = &from->facts[facts[i]];
        uint32_t *item = &items[from->owner[facts[i]]];
        if (*item == FAB_NONE)
            *item = item_of(to, from->items[from->owner[facts[i]]].source);
        for (uint32_t times = 1 + report_random_below(random, 2); times > 0; times--)
            assert_int_equal(fact->estimate
                                 ? fab_report_estimate(to, *item, fact->kind, from->pool + fact->text)
                                 : fab_report_fact(to, *item, fact->kind, from->pool + fact->text),
                             0);
    }
    assert_int_equal(fab_report_finish(to, NULL), 0);
}

static void assert_canonical(const struct fab_report *report)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < report->n_items; i++) {
        assert_true(i == 0 || report->items[i - 1].source <= report->items[i].source);
        assert_int_equal(report->items[i].first, at);
        assert_true(report->items[i].n > 0);
        for (uint32_t k = 0; k < report->items[i].n; k++, at++) {
            assert_int_equal(report->owner[at], i);
            assert_true(
                k == 0 || report->facts[at - 1].kind < report->facts[at].kind ||
                strcmp(report->pool + report->facts[at - 1].text, report->pool + report->facts[at].text) < 0);
        }
    }
    assert_int_equal(at, report->n_facts);
}

TEST(test_order_does_not_matter)
{
    uint64_t random = 4711;
    for (unsigned round = 0; round < 300; round++) {
        SCOPED(fab_report) report, other, later;
        report_random(&report, &random, "node001", report_random_below(&random, 6),
                      report_random_below(&random, 4));
        assert_canonical(&report);
        shuffle(&other, &report, &random);
        assert_canonical(&other);
        assert_true(fab_report_equal(&report, &other));
        assert_int_equal(fab_report_digest(&report), fab_report_digest(&other));
        report_random_later(&later, &report, &random, 20);
        assert_int_equal(fab_report_equal(&report, &later),
                         fab_report_digest(&report) == fab_report_digest(&later));
    }
}

TEST(test_merge_and_copy)
{
    uint64_t random = 12;
    SCOPED(fab_report) whole, parts;
    struct fab_report copy;

    for (unsigned round = 0; round < 100; round++) {
        report_random(&whole, &random, "node001", 1 + report_random_below(&random, 6),
                      report_random_below(&random, 4));
        start(&parts);
        for (unsigned source = FAB_SOURCES - 1; source > 0; source--) /* as probes report, each for itself */
            assert_int_equal(fab_report_merge_source(&parts, &whole, (enum fab_source)source), 0);
        assert_false(parts.finished);
        assert_int_equal(fab_report_finish(&parts, NULL), 0);
        assert_true(fab_report_equal(&whole, &parts));
        assert_int_equal(fab_report_merge(&parts, &whole), 0); /* again: nothing new, and finished is open */
        assert_false(parts.finished);
        assert_int_equal(fab_report_finish(&parts, NULL), 0);
        assert_true(fab_report_equal(&whole, &parts));
        assert_int_equal(fab_report_copy(&copy, &whole), 0);
        assert_true(fab_report_equal(&whole, &copy));
        assert_int_equal(fab_report_host(&copy, "node002", NULL), 0);
        assert_int_equal(fab_report_finish(&copy, NULL), 0);
        assert_false(fab_report_equal(&whole, &copy));
        fab_report_destroy(&copy);
        fab_report_destroy(&whole);
        fab_report_destroy(&parts);
    }
    start(&whole);
    start(&parts);
    assert_int_equal(fab_report_merge(&whole, &parts), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_copy(&copy, &parts), PMIXFAB_ERR_INVAL);
    assert_int_equal(copy.n_items, 0);
    assert_int_equal(fab_report_finish(&parts, NULL), 0);
    assert_int_equal(fab_report_merge(&parts, &parts), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_merge_source(&whole, &parts, FAB_FROM_SUBNET), PMIXFAB_ERR_INVAL);
}

/* What does not fit leaves no trace. */
TEST(test_merge_too_much)
{
    SCOPED(fab_report) a, b;

    start(&a);
    start(&b);
    for (int i = 0; i < 3000; i++) {
        report_say(&a, "verbs: name a%d", i);
        report_say(&b, "verbs: name b%d", i);
    }
    assert_int_equal(fab_report_finish(&a, NULL), 0);
    assert_int_equal(fab_report_finish(&b, NULL), 0);
    uint64_t digest = fab_report_digest(&a);
    assert_int_equal(fab_report_merge(&a, &b), PMIXFAB_ERR_RANGE);
    assert_true(a.finished);
    assert_int_equal(fab_report_digest(&a), digest);
}
