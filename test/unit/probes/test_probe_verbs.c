/* The parts of the probe that ask no library: numbers, sysfs, items.
 * (test_probe_verbs.py has whole devices.) */
#include <sys/stat.h>
#include <unistd.h>

#include "probes/verbs/verbs_priv.h"
#include "test/unit/test.h"

extern const struct probe fabricd_probe;

TEST(test_numbers)
{
    for (unsigned code = 0; code < 256; code++) {
        unsigned lanes = probe_lanes(code);
        assert_int_equal(lanes, code == 1    ? 1
                                : code == 2  ? 4
                                : code == 4  ? 8
                                : code == 8  ? 12
                                : code == 16 ? 2
                                             : 0);
        enum fab_speed speed = verbs_speed(code);
        if (code == 0 || (code & (code - 1)) != 0) /* no single bit */
            assert_int_equal(speed, FAB_SPEED_UNKNOWN);
        else
            assert_int_equal(speed, FAB_SDR + __builtin_ctz(code));
    }
}

/* ---- a tree as that of sysfs ---- */

static char root[] = "/tmp/verbs-XXXXXX";

static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *slash = strchr(full + sizeof(root), '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    write_file(full, text, strlen(text));
}

static const char *interface_of(const char *device, unsigned port, unsigned n_ports)
{
    static char name[16];
    const char *folder = printed("%s/%s", root, device);
    return verbs_sysfs_interface(folder, port, n_ports, name, sizeof(name)) ? name : "none";
}

TEST(test_interfaces)
{
    assert_string_equal(interface_of("absent", 1, 1), "none");
    put("two/device/net/eth0/dev_port", "0\n");
    put("two/device/net/eth1/dev_port", "1\n");
    put("two/device/net/eth1/dev_id", "0x0\n");
    assert_string_equal(interface_of("two", 1, 2), "eth0");
    assert_string_equal(interface_of("two", 2, 2), "eth1");
    assert_string_equal(interface_of("two", 3, 3), "none");
    assert_string_equal(interface_of("two", 1, 1), "eth0"); /* the first in the order of people */
    put("many/device/net/ens10/dev_port", "0\n");
    put("many/device/net/ens9/dev_port", "0\n");
    put("many/device/net/ens1/phys_port_name", "pf0vf1\n");
    put("many/device/net/ens2/parent", "ens9\n");
    put("many/ports/1/gid_attrs/ndevs/0", "bond0\n");
    assert_string_equal(interface_of("many", 1, 2), "ens9");
    assert_string_equal(interface_of("many", 2, 2), "none");
    put("gids/ports/2/gid_attrs/ndevs/0", "bond0\n");
    assert_string_equal(interface_of("gids", 1, 2), "none");
    assert_string_equal(interface_of("gids", 2, 2), "bond0");
    put("rxe/parent", "eth7\n");
    assert_string_equal(interface_of("rxe", 1, 1), "eth7");
    put("long/device/net/abcdefghijklmnopqrst/dev_port", "0\n");
    assert_string_equal(interface_of("long", 1, 1), "none");
}

TEST(test_speed_of_the_kernel)
{
    static const struct {
        const char *text;
        enum fab_speed speed;
    } rates[] = {{"100 Gb/sec (4X EDR)\n", FAB_EDR},       {"800 Gb/sec (4X XDR)\n", FAB_XDR},
                 {"40 Gb/sec (4X FDR10)", FAB_FDR10},      {"10 Gb/sec (4X SDR)", FAB_SDR},
                 {"10 Gb/sec (4X)", FAB_SPEED_UNKNOWN},    {"", FAB_SPEED_UNKNOWN},
                 {"10 Gb/sec (4X SDR", FAB_SPEED_UNKNOWN}, {") ( SDR", FAB_SPEED_UNKNOWN},
                 {"(4X edr)", FAB_SPEED_UNKNOWN}};
    const char *folder = printed("%s/rate", root);
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        put("rate/ports/1/rate", rates[i].text);
        assert_int_equal(verbs_sysfs_speed(folder, 1), rates[i].speed);
    }
    assert_int_equal(verbs_sysfs_speed(folder, 2), FAB_SPEED_UNKNOWN);
}

/* ---- items ---- */

static void count_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)level;
    (void)line;
    ++*(unsigned *)cbdata;
}

TEST(test_item)
{
    unsigned notes = 0;
    const struct probe_sink sink = {count_note, &notes};
    SCOPED(fab_report) report = {0};
    struct probe_item item;
    uint8_t gid[16] = {0};
    fab_report_host(&report, "here", NULL);
    probe_item_open(&item, FAB_FROM_VERBS, "mlx5_0", &sink, &report);
    fact_printf(&item, FAB_FACT_NAME, "mlx5_%d", 0);
    fact_printf(&item, FAB_FACT_PORT, "%d", 255); /* left out */
    fact_add(&item, FAB_FACT_FIRMWARE, "");
    fact_guid(&item, FAB_FACT_NODE_GUID, 0);
    fact_pci(&item, FAB_FACT_PCI, 0x10000, 0xc1, 0x1f, 7);
    assert_int_equal(notes, 1);
    for (int i = 0; i < 3 * PROBE_MAX_GIDS; i++) {
        gid[15] = (uint8_t)(i / 2);
        assert_int_equal(probe_item_gid(&item, gid), i / 2 <= PROBE_MAX_GIDS); /* the first is zero */
    }
    assert_int_equal(notes, 2);
    assert_int_equal(item.rc, PMIXFAB_OK);
    assert_int_equal(fab_report_finish(&report, NULL), PMIXFAB_OK);
    assert_int_equal(report.n_items, 1);
    assert_int_equal(report.items[0].n, 2 + PROBE_MAX_GIDS);
    assert_string_equal(fab_report_text(&report, 0, FAB_FACT_PCI), "10000:c1:1f:07");
    probe_item_open(&item, FAB_FROM_VERBS, "late", &sink, &report);
    assert_int_equal(item.rc, PMIXFAB_ERR_INVAL); /* finished */
    fact_add(&item, FAB_FACT_NAME, "late");
    assert_int_equal(report.n_items, 1);
}

/* The library that is installed, here. */
TEST(test_this_host)
{
    const struct probe_config config = {0};
    SCOPED(fab_report) report = {0};
    struct fab_err err = {{0}};
    char text[200] = "";
    int rc = fabricd_probe.scan(&config, NULL, &report, &err);
    if (access("/sys/class/infiniband", F_OK) != 0) {
        assert_int_equal(rc, PMIXFAB_ERR_UNSUPPORTED);
        assert_int_equal(report.n_items, 0);
        assert_non_null(strstr(err.text, "/sys/class/infiniband is absent"));
    }
    assert_int_equal(fabricd_probe.available(text, sizeof(text)) == PMIXFAB_ERR_UNSUPPORTED,
                     rc == PMIXFAB_ERR_UNSUPPORTED);
    assert_string_not_equal(text, "");
}

FIXTURE(make_root)
{
    return mkdtemp(root) == NULL ? -1 : 0;
}

FIXTURE(remove_root)
{
    return system(printed("rm -r %s", root));
}

TEST_GROUP(make_root, remove_root)
