/* Devices by id, by name and by GUID, against a plain search. */
#include "test/unit/snapshot_world.h"
#include "topo/snapshot/reader.h"

/* The first device that a plain search over all of them says has this host, name and port (0: any). */
static uint32_t plain_find(const struct pmixfab *fab, uint32_t n, const char *host, const char *name,
                           uint32_t port)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pmixfab_device device = device_at(fab, i);
        if (strcmp(device.host, host) == 0 && (name == NULL || strcmp(device.name, name) == 0) &&
            (port == 0 || device.port == port))
            return i;
    }
    return FAB_NONE;
}

static void must_find(const struct pmixfab *fab, const char *what, uint32_t expected)
{
    uint32_t index = FAB_NONE;
    int rc = pmixfab_find(fab, what, &index);
    if (rc != 0 || index != expected)
        fail_msg("%s: %d, %u instead of %u", what, rc, index, expected);
}

static void must_not_find(const struct pmixfab *fab, const char *what)
{
    uint32_t index = 77;
    assert_int_equal(pmixfab_find(fab, what, &index), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(index, 77);
}

/* A colon in a device's name makes "host:a:b:2" mean device "a:b:2" where there is one: the plain search
 * knows. */
static void find_all(const struct layer *layer)
{
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    uint32_t n = layer->plane->n_devices;

    for (uint32_t i = 0; i < n; i++) {
        struct pmixfab_device other;
        char what[256];
        struct pmixfab_device device = device_at(fab, i);
        uint32_t same_id = i;
        for (uint32_t k = 0; k < i && same_id == i; k++) {
            other = device_at(fab, k);
            if (other.node_guid == device.node_guid)
                same_id = k;
        }
        must_find(fab, device.id, same_id);
        for (char *c = strchr(device.id, '/'); *c != '\0'; c++)
            if (*c >= 'a' && *c <= 'f')
                *c = (char)(*c - 'a' + 'A');
        must_find(fab, device.id, same_id);
        must_find(fab, device.host, plain_find(fab, n, device.host, NULL, 0));
        snprintf(what, sizeof(what), "%s:%s", device.host, device.name);
        must_find(fab, what, plain_find(fab, n, device.host, device.name, 0));
        snprintf(what, sizeof(what), "%s:%s:%u", device.host, device.name, device.port);
        uint32_t full = plain_find(fab, n, device.host, what + strlen(device.host) + 1, 0);
        must_find(fab, what, full != FAB_NONE ? full : i);
        snprintf(what, sizeof(what), "0x%016llx", (unsigned long long)device.port_guid);
        must_find(fab, what, i);
    }
}

TEST(test_find_refuses)
{
    SCOPED(world) world;
    world_odd(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    static const char *const nothing[] = {
        "",
        ":",
        "::",
        "n",
        "n1",
        "n02",
        "N2",
        "n2 ",
        "n2:",
        "n2:mlx5_1",
        "n2:mlx5",
        "n2:mlx5_0:",
        "n2:mlx5_0:2",
        "n2:mlx5_0:01",
        "n2:mlx5_0:0",
        "n2:mlx5_0:-1",
        "n2:mlx5_0:+1",
        "n2:mlx5_0:1x",
        "n2:mlx5_0:1:1",
        "n2:mlx5_0:4294967297",
        "n2:mlx5_0:257",
        "n10:a:b:3",
        "n10:a",
        "router",
        "0x",
        "0x1",
        "0x0000000000000001",
        "0x00000000000010510",
        "0x9999",
        "0x0000000000009999",
        "fab://",
        "fab://0000:0000:0000:0050",
        "fab://0000:0000:0000:0050::0000:0000:0000:0050",
        "fab://0000:0000:0000:0050:0000:0000:0000:0053",
        "fab://0000:0000:0000:0050::0000:0000:0000:00531",
        "fab://0000:0000:0000:005::0000:0000:0000:0053",
        "fab://0000-0000-0000-0050::0000:0000:0000:0053",
        "FAB://0000:0000:0000:0050::0000:0000:0000:0053",
        "fab://000000000000000050::0000000000000053",
        "fab://zzzz:0000:0000:0050::0000:0000:0000:0053",
    };
    must_find(fab, "fab://0000:0000:0000:0050::0000:0000:0000:0053", 2);
    must_find(fab, "n2:mlx5_0:1", 2);
    must_find(fab, "0x0000000000000050", 2); /* node GUID */
    must_find(fab, "0x0000000000001042", 4); /* port GUID of n10 a:b, second port */
    must_find(fab, "n10:a:b:2", 5);          /* the device of that name, not port 2 of a:b */
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
        must_not_find(fab, nothing[i]);
    OWNED(free) char *huge = must_have(1 << 20);
    memset(huge, 'n', 1 << 20);
    huge[(1 << 20) - 1] = '\0';
    must_not_find(fab, huge);
    huge[1 << 19] = ':';
    must_not_find(fab, huge);
}

/* From PMIx 7 on the library has such ids for devices without a GUID or an address. */
TEST(test_ids_of_a_host_and_a_name)
{
    SCOPED(world) world;
    world_odd(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    static const char *const ids[] = {"fab://n2::mlx5_0", "net://n2::mlx5_0", "net://n2.cluster::mlx5_0",
                                      "fab://0000:0000:0000:0000::0000:0000:0000:0000::n2::mlx5_0"};
    static const char *const nothing[] = {"fab://n3::mlx5_0",
                                          "fab://n2::mlx5_9",
                                          "fab://n2::",
                                          "fab://::mlx5_0",
                                          "fab://n2:mlx5_0",
                                          "net://n2",
                                          "net://",
                                          "gpu://n2::mlx5_0",
                                          "net://0000:0000:0000:0000::0000:0000:0000:0000::n2::mlx5_0",
                                          "fab://0000:0000:0000:0000::n2::mlx5_0"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        must_find(fab, ids[i], 2);
        for (uint32_t d = 0; d < world.layers[0].plane->n_devices; d++)
            assert_int_equal(fab_reader_has_id(fab, d, ids[i]), d == 2);
    }
    must_find(fab, "fab://n10::a:b:2", 5);
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        must_not_find(fab, nothing[i]);
        assert_false(fab_reader_has_id(fab, 2, nothing[i]));
    }
    OWNED(free) char *huge = must_have(1 << 20);
    memset(huge, 'n', 1 << 20);
    memcpy(huge, "net://", 6);
    memcpy(huge + (1 << 19), "::", 2);
    huge[(1 << 20) - 1] = '\0';
    must_not_find(fab, huge);
}

/* ---- hosts and switches ---------------------------------------------------------------------------- */

static void find_hosts_and_switches(const struct layer *layer)
{
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    const uint32_t n = layer->plane->n_switches;

    for (uint32_t h = 0; h < layer->plane->n_hosts; h++) {
        uint32_t found = FAB_NONE;
        assert_int_equal(pmixfab_find_host(fab, layer->plane->hosts[h].name, &found), 0);
        assert_int_equal(found, h);
    }
    for (uint32_t s = 0; s < n; s++) {
        const struct pmixfab_switch sw = switch_at(fab, s);
        unsigned same = 0;
        for (uint32_t k = 0; k < n; k++)
            same += strcmp(switch_at(fab, k).name, sw.name) == 0;
        uint32_t found = FAB_NONE;
        assert_int_equal(pmixfab_find_switch(fab, sw.id, &found), 0);
        assert_int_equal(found, s);
        found = FAB_NONE;
        assert_int_equal(pmixfab_find_switch(fab, sw.name, &found), same == 1 ? 0 : PMIXFAB_ERR_CONFLICT);
        assert_int_equal(found, same == 1 ? s : FAB_NONE);
    }
}

TEST(test_find_everything)
{
    for (size_t f = 0; f <= WORLD_FABRICS; f++) {
        SCOPED(world) world;
        if (f < WORLD_FABRICS)
            world_open(&world, world_fabrics[f]);
        else
            world_odd(&world);
        for (uint32_t p = 0; p < world.planes.n; p++) {
            find_all(&world.layers[p]);
            find_hosts_and_switches(&world.layers[p]);
        }
    }
}

TEST(test_switches_of_one_name)
{
    SCOPED(world) world = {0};
    fab_inventory_init(&world.inv);
    uint32_t one = world_node(&world, FAB_SWITCH, 0x9000, "", "SwitchX -  Mellanox Technologies");
    uint32_t two = world_node(&world, FAB_SWITCH, 0x8000, "", "SwitchX -  Mellanox Technologies");
    world_cable(&world, one, 1, two, 1);
    world_cable(&world, world_node(&world, FAB_HCA, 0x50, "n2", "mlx5_0"), 1, one, 2);
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    world_compute(&world);
    find_hosts_and_switches(&world.layers[0]);
}

TEST(test_find_refuses_hosts_and_switches)
{
    WORLD(world, "fattree2:2,2,2");
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    static const char *const nothing[] = {
        "", "leaf", "leaf11", "node1", "0x", "0x0000000000000001", "node0001:HCA-1"};
    uint32_t found = 77;
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        assert_int_equal(pmixfab_find_switch(fab, nothing[i], &found), PMIXFAB_ERR_NOTFOUND);
        assert_int_equal(pmixfab_find_host(fab, nothing[i], &found), PMIXFAB_ERR_NOTFOUND);
    }
    assert_int_equal(pmixfab_find_host(fab, "leaf1", &found), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_find_switch(fab, "node0001", &found), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_find_host(NULL, "x", &found), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_find_host(fab, NULL, &found), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_find_host(fab, "x", NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_find_switch(NULL, "x", &found), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_find_switch(fab, NULL, &found), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_find_switch(fab, "x", NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(found, 77);
}
