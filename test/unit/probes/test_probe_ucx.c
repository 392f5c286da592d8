/* From UCX's transports to facts: made ones, and those of this host. */
#include <math.h>

#include "probes/ucx/ucx.h"
#include "test/unit/report_text.h"

extern const struct probe fabricd_probe;

/* A host with these interfaces. */
static enum fact_interface interface(const char *name)
{
    if (strcmp(name, "lo") == 0)
        return FACT_LOOPBACK;
    return strcmp(name, "eth0") == 0 || strcmp(name, "ib0") == 0 ? FACT_INTERFACE : FACT_NO_INTERFACE;
}

static void expect(const struct ucx_resource *list, size_t n, const char *items)
{
    struct fab_report report = {0};
    assert_int_equal(ucx_report(list, n, interface, &report), PMIXFAB_OK);
    expect_items(&report, items);
}

#define N(list) (sizeof(list) / sizeof((list)[0]))

/* A card of InfiniBand with its transports between others: the best of each figure, in whatever order. */
TEST(test_ports)
{
    const struct ucx_resource list[] = {
        {"rc_verbs", "mlx5_0:1", UCT_DEVICE_TYPE_NET, "0000:c1:00:00", 12.1e9, 800e-9},
        {"rc_mlx5", "mlx5_1:2", UCT_DEVICE_TYPE_NET, "0000:c1:00:01", 24.5e9, 600e-9},
        {"ud_mlx5", "mlx5_0:1", UCT_DEVICE_TYPE_NET, "", 11e9, 630.4e-9},
        {"dc_mlx5", "mlx5_0:1", UCT_DEVICE_TYPE_NET, "0000:c1:00:00", 12.25e9, 860e-9},
        {"rc_mlx5", "mlx5_0:1", UCT_DEVICE_TYPE_NET, "0000:c1:00:00", 12e9, 640e-9},
    };
    expect(
        list, N(list),
        "{'source': 'ucx', 'name': 'mlx5_0', 'port': '1', 'pci': '0000:c1:00:00', 'transport': ['dc_mlx5', "
        "'rc_mlx5', 'rc_verbs', 'ud_mlx5'], 'estimates': {'bandwidth': '98000', 'latency': '630'}}\n"
        "{'source': 'ucx', 'name': 'mlx5_1', 'port': '2', 'pci': '0000:c1:00:01', 'transport': ['rc_mlx5'], "
        "'estimates': {'bandwidth': '196000', 'latency': '600'}}\n");
}

/* tcp needs no hardware of its own; loopback is nobody's device; memory joins nothing. */
TEST(test_software)
{
    const struct ucx_resource list[] = {
        {"self", "memory0", UCT_DEVICE_TYPE_SELF, "", 7e9, 0},
        {"tcp", "lo", UCT_DEVICE_TYPE_NET, "", 1e9, 1e-6},
        {"tcp", "eth0", UCT_DEVICE_TYPE_NET, "", 125e6, 5.2e-6},
        {"tcp", "ib0", UCT_DEVICE_TYPE_NET, "0000:c1:00:00", 0, -1},
        {"sysv", "memory", UCT_DEVICE_TYPE_SHM, "", 12e9, 80e-9},
        {"posix", "memory", UCT_DEVICE_TYPE_SHM, "", 12e9, 80e-9},
        {"cuda_copy", "cuda", UCT_DEVICE_TYPE_ACC, "", 10e9, 8e-6},
    };
    expect(list, N(list),
           "{'source': 'ucx', 'interface': 'eth0', 'transport': ['tcp'], 'software': 'yes', 'estimates': "
           "{'bandwidth': '1000', 'latency': '5200'}}\n"
           "{'source': 'ucx', 'interface': 'ib0', 'pci': '0000:c1:00:00', 'transport': ['tcp'], 'software': "
           "'yes'}\n"
           "{'source': 'ucx', 'transport': ['cuda_copy'], 'estimates': {'bandwidth': '80000', 'latency': "
           "'8000'}}\n"
           "{'source': 'ucx', 'transport': ['posix', 'sysv'], 'software': 'yes', 'estimates': {'bandwidth': "
           "'96000', 'latency': '80'}}\n"
           "{'source': 'ucx', 'transport': ['self'], 'software': 'yes', 'estimates': {'bandwidth': '56000', "
           "'latency': '0'}}\n");
}

/* Numbers that no device reaches, names that are none of a port: the fact is missing, the item stands. */
TEST(test_nonsense)
{
    const struct ucx_resource list[] = {
        {"a", "dev:x", UCT_DEVICE_TYPE_NET, "rubbish", INFINITY, NAN},
        {"b", "dev:0", UCT_DEVICE_TYPE_NET, "", NAN, INFINITY},
        {"c", "dev:999", UCT_DEVICE_TYPE_NET, "", 1e300, 1e300},
        {"d", ":1", UCT_DEVICE_TYPE_NET, "", -5, -5},
        {"e", "", UCT_DEVICE_TYPE_NET, "", 1, 0.1e-9},
    };
    expect(list, N(list),
           "{'source': 'ucx', 'name': 'dev', 'transport': ['b']}\n"
           "{'source': 'ucx', 'name': 'dev', 'transport': ['c']}\n"
           "{'source': 'ucx', 'name': 'dev:x', 'transport': ['a']}\n"
           "{'source': 'ucx', 'port': '1', 'transport': ['d']}\n"
           "{'source': 'ucx', 'transport': ['e'], 'estimates': {'bandwidth': '0', 'latency': '0'}}\n");
    expect(NULL, 0, "");
}

/* More transports than an item can hold, and devices of one name and two types. */
TEST(test_many)
{
    struct ucx_resource list[200];
    SCOPED(fab_report) report = {0};
    for (size_t i = 0; i < N(list); i++) {
        list[i] = (struct ucx_resource){.type = i % 2 == 0 ? UCT_DEVICE_TYPE_NET : UCT_DEVICE_TYPE_SHM};
        snprintf(list[i].transport, sizeof(list[i].transport), "t%zu", i);
        snprintf(list[i].device, sizeof(list[i].device), "same");
    }
    assert_int_equal(ucx_report(list, N(list), interface, &report), PMIXFAB_OK);
    free(report_text(&report));
    assert_int_equal(report.n_items, 2);
    assert_null(fab_report_text(&report, 0, FAB_FACT_SOFTWARE));
    assert_string_equal(fab_report_text(&report, 1, FAB_FACT_SOFTWARE), "yes");
    assert_true(report.items[0].n <= FAB_REPORT_MAX_FACTS);
}

/* The real library on this host, which has memory at least; twice the same. */
TEST(test_this_host)
{
    const struct probe_config config = {0};
    struct fab_report reports[2];
    bool memory = false;
    char text[256] = "";
    for (int i = 0; i < 2; i++) {
        fab_report_init(&reports[i]);
        must_do(fabricd_probe.scan(&config, NULL, &reports[i], fresh_err()));
        free(report_text(&reports[i]));
    }
    assert_true(fab_report_equal(&reports[0], &reports[1]));
    for (uint32_t i = 0; i < reports[0].n_items; i++) {
        assert_int_equal(reports[0].items[i].source, FAB_FROM_UCX);
        assert_non_null(fab_report_text(&reports[0], i, FAB_FACT_TRANSPORT));
        memory = memory || strcmp(fab_report_text(&reports[0], i, FAB_FACT_TRANSPORT), "self") == 0;
    }
    assert_true(memory);
    for (uint32_t i = 0; i < reports[0].n_facts; i++) {
        const struct fab_report_fact *fact = &reports[0].facts[i];
        assert_int_equal(fact->estimate, fact->kind == FAB_FACT_BANDWIDTH || fact->kind == FAB_FACT_LATENCY);
    }
    assert_int_equal(fabricd_probe.available(text, sizeof(text)), PMIXFAB_OK);
    assert_non_null(strstr(text, "UCX has transports on"));
    fab_report_destroy(&reports[0]);
    fab_report_destroy(&reports[1]);
}
