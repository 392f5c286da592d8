/* Ports that only their host knows: one plane of their own, which connects nothing, and planes beside it. */
#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"
#include "topo/join/join.h"

#define MAC UINT64_C(0x00215ec40000)

/* `hosts` with `cards` uncabled HCAs of `ports` ports each, all in the subnet of the unattached. */
static void lonely(struct fab_inventory *inv, unsigned hosts, unsigned cards, unsigned ports)
{
    struct world world = {0};
    fab_inventory_init(&world.inv);
    for (unsigned h = 0; h < hosts; h++)
        for (unsigned c = 0; c < cards; c++) {
            const char *host = printed("lone%u", h + 1), *name = printed("eth%u", c);
            uint64_t guid = FAB_ETHERNET_GUID | (MAC + (uint64_t)h * 64 + c);
            uint32_t node = world_node(&world, FAB_HCA, guid, host, name);
            for (unsigned p = 1; p <= ports; p++) {
                uint32_t port = world_port(&world, node, p, FAB_PORT_ACTIVE);
                world.inv.ports[port].guid = (guid << 8) + p;
            }
        }
    world.inv.n_subnets = 1;
    world.inv.subnets[0].prefix = FAB_UNATTACHED;
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    *inv = world.inv;
}

/* What they cost and where they stand, without any quadratic step. */
static void must_be_unattached(const struct layer *layer, uint32_t devices, uint32_t hosts)
{
    const struct fab_plane *plane = layer->plane;
    const struct fab_cost_view *v = &layer->costs.view;
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);

    assert_true(plane->unattached && plane->prefix == FAB_UNATTACHED);
    assert_true(plane->inv->subnets[plane->subnet].prefix == FAB_UNATTACHED);
    assert_int_equal(plane->n_devices, devices);
    assert_int_equal(plane->n_hosts, hosts);
    assert_int_equal(plane->n_switches + plane->n_cables, 0);
    assert_int_equal(v->n_edges, 1);
    for (uint32_t i = 0; i < devices; i++) {
        uint32_t other = (i * 7919u + 1) % devices;
        uint16_t cost;
        assert_int_equal(pmixfab_cost(fab, i, other, &cost), 0);
        assert_int_equal(cost, i == other                     ? 0
                               : v->host[i] == v->host[other] ? FAB_COST_SAME_HOST
                                                              : PMIXFAB_NO_PATH);
        const uint32_t *at = layer->geometry.logical + (size_t)i * 3,
                       *phys = layer->geometry.physical + (size_t)i * 3;
        unsigned num = plane->inv->ports[plane->devices[i].port].num;
        assert_true(at[0] == 0 && at[1] == i && at[2] == num - 1);
        assert_true(phys[0] == 0 && phys[1] == i && phys[2] == num);
    }
    struct pmixfab_plane out = plane_at(fab);
    assert_string_equal(out.kind, "unattached");
    assert_int_equal(out.n_groups, hosts);
    assert_int_equal(layer->groups.n_members, hosts);
    for (uint32_t g = 0; g < hosts; g++)
        assert_int_equal(layer->groups.members[layer->groups.start[g]], g);
    walk_everything(fab);
}

/* The other planes are what they are without them. */
TEST(test_beside_others)
{
    for (size_t f = 0; f < WORLD_FABRICS; f++) {
        SCOPED(world) with;
        WORLD(without, world_fabrics[f]);
        memset(&with, 0, sizeof(with));
        lonely(&with.inv, 3, 1, 1);
        SCOPED(fab_inventory) fabric = generated(world_fabrics[f]);
        assert_int_equal(fab_inventory_merge(&with.inv, &fabric, NULL), 0);
        assert_int_equal(fab_inventory_finish(&with.inv, NULL), 0);
        world_compute(&with);
        assert_int_equal(with.planes.n, without.planes.n + 1);
        for (uint32_t p = 0; p < without.planes.n; p++) {
            assert_false(with.layers[p].plane->unattached);
            assert_true(with.layers[p].plane->prefix == FAB_DEFAULT_PREFIX);
            assert_int_equal(with.layers[p].size, without.layers[p].size);
            assert_memory_equal(with.layers[p].bytes, without.layers[p].bytes, with.layers[p].size);
        }
        must_be_unattached(&with.layers[without.planes.n], 3, 3);
    }
}

/* An uncabled port of another subnet is no plane where there are cables, and one where there are none. */
TEST(test_uncabled_is_another_thing)
{
    struct world world = {0}, lone = {0};
    lonely(&lone.inv, 2, 1, 1);
    fab_inventory_init(&world.inv);
    world_port(&world, world_node(&world, FAB_HCA, 0x500, "n1", "mlx5_0"), 1, FAB_PORT_DOWN);
    world_port(&world, world_node(&world, FAB_HCA, 0x600, "n2", "mlx5_0"), 1, FAB_PORT_DOWN);
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    assert_int_equal(fab_inventory_merge(&world.inv, &lone.inv, NULL), 0);
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    fab_inventory_destroy(&lone.inv);
    world_compute(&world);
    assert_int_equal(world.planes.n, 2);
    assert_int_equal(world.planes.planes[0].n_devices, 1);
    assert_false(world.planes.planes[0].unattached);
    must_be_unattached(&world.layers[1], 2, 2);
    world_destroy(&world);
}

/* A cable takes a port of that subnet out of the plane: it is where the cable leads. */
TEST(test_a_cable_counts)
{
    SCOPED(world) world = {0};
    fab_inventory_init(&world.inv);
    uint32_t sw = world_node(&world, FAB_SWITCH, 0x9000, "", "leaf");
    uint32_t hca = world_node(&world, FAB_HCA, 0x500, "n1", "mlx5_0");
    world_cable(&world, sw, 1, hca, 1);
    world_port(&world, hca, 2, FAB_PORT_DOWN);
    world_port(&world, sw, 2, FAB_PORT_ACTIVE); /* a switch's port is no device */
    world.inv.n_subnets = 1;
    world.inv.subnets[0].prefix = FAB_UNATTACHED;
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    world_compute(&world);
    assert_int_equal(world.planes.n, 2);
    assert_int_equal(world.planes.planes[0].n_switches, 1);
    assert_int_equal(world.planes.planes[0].n_devices, 1);
    must_be_unattached(&world.layers[1], 1, 1);
}

/* Ids of what has a MAC and no GUID, there and back. */
TEST(test_ids)
{
    SCOPED(world) world = {0};
    static const char *const nothing[] = {"ipv4://",
                                          "ipv4://00:21:5e:c4:00:0",
                                          "ipv4://00:21:5e:c4:00:000",
                                          "ipv4://00:21:5e:c4:00:00:00",
                                          "ipv4://00:21:5e:c4:00:99",
                                          "ipv4://00-21-5e-c4-00-00",
                                          "ipv4://0021:5ec4:0000",
                                          "ipv4://00:21:5g:c4:00:00",
                                          "ipv4://ff:ff:00:21:5e:c4:00:00",
                                          "ipv6://00:21:5e:c4:00:00",
                                          "00:21:5e:c4:00:00"};
    uint32_t index;
    lonely(&world.inv, 3, 2, 2);
    world_compute(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    for (uint32_t i = 0; i < 12; i++) {
        struct pmixfab_device device = device_at(fab, i);
        const char *id = printed("ipv4://00:21:5e:c4:00:%02x", i / 4 * 64 + i % 4 / 2);
        assert_string_equal(device.id, id);
        assert_int_equal(pmixfab_find(fab, id, &index), 0);
        assert_int_equal(index, i / 2 * 2);
    }
    assert_int_equal(pmixfab_find(fab, "ipv4://00:21:5E:C4:00:40", &index), 0);
    assert_int_equal(index, 4);
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
        assert_int_equal(pmixfab_find(fab, nothing[i], &index), PMIXFAB_ERR_NOTFOUND);
}

/* Nothing here may take the square of their number: that would be 200 MB. */
TEST(test_ten_thousand)
{
    SCOPED(world) world = {0};
    lonely(&world.inv, 5000, 2, 1);
    world_compute(&world);
    assert_int_equal(world.planes.n, 1);
    assert_true(world.layers[0].size < 2u << 20);
    must_be_unattached(&world.layers[0], 10000, 5000);
}
