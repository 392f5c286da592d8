/* Small machines in hwloc's XML: what is reported, and which devices share a PCI switch.
 * (test_probe_hwloc.py compares every attribute.) */

#include <unistd.h>

#include "probes/hwloc/hwloc_priv.h"
#include "test/unit/test.h"

extern const struct probe fabricd_probe;

static int look(const char *path, const struct probe_sink *sink, struct fab_report *report,
                struct fab_err *err)
{
    const struct probe_config config = {.arg = path};
    fab_report_init(report);
    int rc = fabricd_probe.scan(&config, sink, report, err);
    if (rc == PMIXFAB_OK) {
        assert_int_equal(fab_report_host(report, "here", NULL), PMIXFAB_OK);
        assert_int_equal(fab_report_finish(report, NULL), PMIXFAB_OK);
    }
    return rc;
}

/* The item of a device (its first port) or interface, FAB_NONE. */
static uint32_t find(const struct fab_report *report, const char *name)
{
    for (uint32_t i = 0; i < report->n_items; i++) {
        const char *device = fab_report_text(report, i, FAB_FACT_NAME);
        const char *interface = fab_report_text(report, i, FAB_FACT_INTERFACE);
        assert_int_equal(report->items[i].source, FAB_FROM_HWLOC);
        if (strcmp(device != NULL ? device : interface != NULL ? interface : "", name) == 0)
            return i;
    }
    return FAB_NONE;
}

static void assert_fact(const struct fab_report *report, const char *name, enum fab_fact kind,
                        const char *want)
{
    uint32_t item = find(report, name);
    assert_int_not_equal(item, FAB_NONE);
    const char *has = fab_report_text(report, item, kind);
    if (want == NULL)
        assert_null(has);
    else
        assert_string_equal(has == NULL ? "nothing" : has, want);
}

TEST(test_facts)
{
    SCOPED(fab_report) report;
    assert_int_equal(look(TEST_DATA "/hwloc/switches.xml", NULL, &report, NULL), PMIXFAB_OK);
    assert_fact(&report, "mlx5_0", FAB_FACT_NODE_GUID, "0xb8599f0300fa1234");
    assert_fact(&report, "mlx5_0", FAB_FACT_PCI, "0000:03:00:00");
    assert_fact(&report, "mlx5_0", FAB_FACT_SLOT_SPEED, "252062");
    assert_fact(&report, "mlx5_2", FAB_FACT_STATE, "down");
    assert_fact(&report, "mlx5_2", FAB_FACT_LID, NULL);
    assert_fact(&report, "ens1f1", FAB_FACT_MAC, "b8:59:9f:fa:12:35");
    assert_fact(&report, "eno1", FAB_FACT_SWITCH, NULL);
    assert_fact(&report, "eth3", FAB_FACT_NUMA, "1");
}

/* A recorded machine, as each local probe takes it; and what another hwloc wrote. */
TEST(test_recorded)
{
    static const struct {
        const char *text, *words;
        int code;
    } cases[] = {
        {"{\"host\": \"c7\", \"items\": [{\"source\": \"hwloc\", \"name\": \"mlx5_9\", \"port\": \"1\"},"
         " {\"source\": \"ethernet\", \"interface\": \"eth0\"}]}",
         NULL, PMIXFAB_OK},
        {" \n{\"host\": \"c7\", \"items\": [{\"source\": \"hwloc\", \"name\": \"mlx5_9\"}]}", NULL,
         PMIXFAB_OK},
        {"{\"host\": \"c7\", \"items\": [{\"source\": \"ethernet\", \"interface\": \"eth0\"}]}",
         "has no items of hwloc", PMIXFAB_ERR_UNSUPPORTED},
        {"{\"host\": \"c7\"", "expected near", PMIXFAB_ERR_SYNTAX},
        {"<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc99.dtd\">\n<topology version=\"99.1\">\n",
         "recorded with hwloc 99.1, but this hwloc is version ", PMIXFAB_ERR_NEWER},
    };
    char path[] = "/tmp/fabhwloc.XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_report) report;
        struct fab_err err = {{0}};
        write_file(path, cases[i].text, strlen(cases[i].text));
        assert_int_equal(look(path, NULL, &report, &err), cases[i].code);
        if (cases[i].code == PMIXFAB_OK)
            assert_fact(&report, "mlx5_9", FAB_FACT_NAME, "mlx5_9");
        else if (strstr(err.text, cases[i].words) == NULL)
            fail_msg("case %zu gave \"%s\"", i, err.text);
    }
    unlink(path);
}

static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b)
{
    for (; a != NULL; a = a->parent) {
        for (hwloc_obj_t at = b; at != NULL; at = at->parent) {
            if (at == a)
                return a;
        }
    }
    return NULL;
}

/* The root ports of switches.xml are 00:01.0, 00:02.0 and 00:03.0. */
static bool way_passes_root_port(hwloc_obj_t a, hwloc_obj_t b)
{
    hwloc_obj_t common = common_ancestor(a, b);
    return common->type != HWLOC_OBJ_BRIDGE || common->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI ||
           common->attr->bridge.upstream.pci.bus == 0;
}

TEST(test_switches)
{
    hwloc_topology_t machine;
    unsigned shared = 0, apart = 0;
    assert_int_equal(hwloc_machine_load(TEST_DATA "/hwloc/switches.xml", &machine, NULL), PMIXFAB_OK);
    for (hwloc_obj_t a = hwloc_get_next_pcidev(machine, NULL); a != NULL;
         a = hwloc_get_next_pcidev(machine, a)) {
        for (hwloc_obj_t b = hwloc_get_next_pcidev(machine, a); b != NULL;
             b = hwloc_get_next_pcidev(machine, b)) {
            hwloc_obj_t above = hwloc_switch_above(a);
            bool same = above != NULL && above == hwloc_switch_above(b);
            if (a->attr->pcidev.bus == b->attr->pcidev.bus)
                continue; /* one card */
            assert_int_equal(same, !way_passes_root_port(a, b));
            same ? shared++ : apart++;
        }
    }
    assert_true(shared >= 3 && apart >= 10);
    hwloc_topology_destroy(machine);
}

TEST(test_same_each_time)
{
    static const char *const files[] = {TEST_DATA "/hwloc/switches.xml", TEST_DATA "/hwloc/places.xml",
                                        TEST_DATA "/hwloc/odd.xml"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        SCOPED(fab_report) a, b;
        assert_int_equal(look(files[i], NULL, &a, NULL), PMIXFAB_OK);
        assert_int_equal(look(files[i], NULL, &b, NULL), PMIXFAB_OK);
        assert_true(fab_report_equal(&a, &b));
        assert_true(a.n_items > 5);
    }
}

static void count_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)level;
    assert_non_null(line);
    ++*(unsigned *)cbdata;
}

/* A name that is too long, and more GIDs than there is room for: noted, the rest is reported. */
TEST(test_odd)
{
    unsigned notes = 0;
    const struct probe_sink sink = {count_note, &notes};
    SCOPED(fab_report) report;
    assert_int_equal(look(TEST_DATA "/hwloc/odd.xml", &sink, &report, NULL), PMIXFAB_OK);
    assert_int_equal(notes, 2);
    assert_fact(&report, "guids", FAB_FACT_NODE_GUID, NULL);
    assert_fact(&report, "guids", FAB_FACT_SYSTEM_GUID, "0x98039b0300fa1234");
    assert_fact(&report, "zero", FAB_FACT_MAC, NULL);
    assert_fact(&report, "letters", FAB_FACT_MAC, NULL);
}

TEST(test_refused)
{
    static const struct {
        const char *path;
        int code;
        const char *says;
    } cases[] = {
        {"/nonexistent.xml", PMIXFAB_ERR_NOTFOUND, "/nonexistent.xml: No such file"},
        {TEST_DATA "/hwloc/no_network.xml", PMIXFAB_ERR_UNSUPPORTED, "no network and no RDMA device"},
        {TEST_DATA "/ibsim_small.txt", PMIXFAB_ERR_CORRUPT, "not a machine that hwloc can read"},
        {TEST_DATA, PMIXFAB_ERR_CORRUPT, "hwloc: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_report) report;
        struct fab_err err = {{0}};
        must_fail(look(cases[i].path, NULL, &report, &err), cases[i].code, &err, cases[i].says);
        assert_int_equal(report.n_items, 0);
    }
}
