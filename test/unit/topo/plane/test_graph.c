/* Planes: what they consist of, in which order, and what their cables cost. */

#include "test/fabrics/build.h"
#include "test/unit/generated.h"
#include "topo/base/natural.h"
#include "topo/plane/graph.h"

static uint32_t string(struct fab_inventory *inv, const char *text)
{
    uint32_t offset = fab_inventory_string(inv, text, strlen(text));
    assert_int_not_equal(offset, FAB_NONE);
    return offset;
}

/* An HCA with names of our choice. */
static uint32_t named_hca(struct build *b, const char *host, const char *name, unsigned ports)
{
    uint32_t node = build_hca(b, build_host(b), 1, 1, ports);
    assert_int_equal(b->rc, PMIXFAB_OK);
    b->inv->nodes[node].host = string(b->inv, host);
    b->inv->nodes[node].name = string(b->inv, name);
    return node;
}

static const struct fab_node *node_of(const struct fab_plane *plane, uint32_t device)
{
    return &plane->inv->nodes[plane->inv->ports[plane->devices[device].port].node];
}

/* Many, in no order, of few hosts: each comes behind the one before it. */
TEST(test_order_of_many)
{
    uint64_t dice = (uint64_t)(*state == NULL);
    for (unsigned n = 20; n <= 240; n += 20) {
        SCOPED(fab_inventory) inv;
        struct build b;
        build_begin(&b, &inv);
        uint32_t sw = build_switch(&b, 250, "sw");
        for (unsigned i = 0; i < n; i++) {
            const char *host = printed("node%u", (unsigned)(fabric_random_next(&dice) % 4));
            const char *name = printed("mlx5_%u", (unsigned)(fabric_random_next(&dice) % 30));
            build_cable(&b, sw, i + 1, named_hca(&b, host, name, 1), 1, 4, FAB_HDR);
        }
        assert_int_equal(build_end(&b), PMIXFAB_OK);
        SCOPED(fab_planes) planes = planes_of(&inv);
        const struct fab_plane *plane = &planes.planes[0];
        for (uint32_t i = 1; i < n; i++) {
            const struct fab_node *last = node_of(plane, i - 1), *node = node_of(plane, i);
            int order = fab_natural_cmp(fab_str(&inv, last->host), fab_str(&inv, node->host));
            order =
                order != 0 ? order : fab_natural_cmp(fab_str(&inv, last->name), fab_str(&inv, node->name));
            assert_true(order < 0 || (order == 0 && inv.ports[plane->devices[i - 1].port].guid <
                                                        inv.ports[plane->devices[i].port].guid));
        }
        assert_int_equal(plane->n_hosts, 4);
        for (uint32_t h = 0; h < plane->n_hosts; h++)
            for (uint32_t i = plane->hosts[h].first; i < plane->hosts[h].first + plane->hosts[h].n; i++) {
                assert_int_equal(plane->devices[i].host, h);
                assert_string_equal(fab_str(&inv, node_of(plane, i)->host), plane->hosts[h].name);
            }
    }
}

/* Most devices first, then most switches, then the lowest GUID; what has neither is no plane. */
TEST(test_plane_order)
{
    SCOPED(fab_inventory) inv;
    struct build b;
    build_begin(&b, &inv);
    uint32_t a = build_switch(&b, 8, "a"), c = build_switch(&b, 8, "c"), d = build_switch(&b, 8, "d");
    uint32_t e = build_switch(&b, 8, "e"), f = build_switch(&b, 8, "f");
    build_switch(&b, 8, "lonely");
    build_simple_host(&b, a, 1); /* one device, one switch */
    build_simple_host(&b, c, 1); /* two devices, one switch */
    build_simple_host(&b, c, 2);
    build_simple_host(&b, d, 1); /* one device, one switch, higher GUIDs */
    build_simple_host(&b, e, 1); /* one device, two switches */
    build_cable(&b, e, 2, f, 2, 4, FAB_HDR);
    uint32_t one = named_hca(&b, "r1", "x", 1), other = named_hca(&b, "r2", "x", 1);
    build_cable(&b, one, 1, other, 1, 4, FAB_HDR);
    inv.nodes[one].kind = inv.nodes[other].kind = FAB_ROUTER;
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    SCOPED(fab_planes) planes = planes_of(&inv);
    static const char *const first_switch[] = {"c", "e", "a", "d"};
    assert_int_equal(planes.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct fab_plane *plane = &planes.planes[i];
        assert_string_equal(fab_str(&inv, inv.nodes[plane->switches[0].node].name), first_switch[i]);
        assert_int_equal(plane->n_devices, i == 0 ? 2 : 1);
        assert_int_equal(plane->n_switches, i == 1 ? 2 : 1);
        assert_int_equal(plane->n_adj, i == 1 ? 2 : 0);
    }
}

/* Of two planes of one HCA with equal sizes, the first port's comes first. */
TEST(test_planes_of_one_hca)
{
    SCOPED(fab_inventory) inv;
    struct build b;
    build_begin(&b, &inv);
    uint32_t dual = named_hca(&b, "a", "x", 2), one = named_hca(&b, "b", "x", 1),
             two = named_hca(&b, "c", "x", 1);
    build_cable(&b, dual, 2, two, 1, 4, FAB_HDR);
    build_cable(&b, dual, 1, one, 1, 4, FAB_HDR);
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    SCOPED(fab_planes) planes = planes_of(&inv);
    assert_int_equal(planes.n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(planes.planes[i].n_devices, 2);
        assert_int_equal(inv.ports[planes.planes[i].devices[0].port].num, i + 1);
    }
}

/* Without any cable: the first HCA port, or else each switch, or nothing. */
TEST(test_uncabled)
{
    SCOPED(fab_inventory) inv = {0};
    struct build b;
    assert_int_equal(fab_inventory_finish(&inv, NULL), PMIXFAB_OK);
    SCOPED(fab_planes) planes = planes_of(&inv);
    assert_int_equal(planes.n, 0);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);

    build_begin(&b, &inv);
    build_switch(&b, 8, "one");
    build_switch(&b, 8, "two");
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    planes = planes_of(&inv);
    assert_int_equal(planes.n, 2);
    assert_int_equal(planes.planes[1].n_switches, 1);
    assert_int_equal(planes.planes[1].switches[0].node, 1);
    assert_int_equal(planes.planes[1].fastest_mbps, 0);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);

    build_begin(&b, &inv);
    build_switch(&b, 8, "one");
    build_hca(&b, build_host(&b), 1, 1, 2);
    build_hca(&b, build_host(&b), 1, 1, 1);
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    planes = planes_of(&inv);
    assert_int_equal(planes.n, 1);
    const struct fab_plane *plane = &planes.planes[0];
    assert_int_equal(plane->n_devices, 1);
    assert_int_equal(plane->n_switches, 0);
    assert_int_equal(plane->devices[0].sw, FAB_NONE);
    assert_int_equal(plane->devices[0].access, 0);
    assert_string_equal(plane->hosts[0].name, "node0001");
    assert_int_equal(inv.ports[plane->devices[0].port].num, 1);
}

/* One edge for parallel cables, at the cheapest; costs rounded up; unknown rates and disagreeing ends. */
TEST(test_cable_costs)
{
    SCOPED(fab_inventory) inv;
    struct build b;
    build_begin(&b, &inv);
    uint32_t x = build_switch(&b, 20, "x"), y = build_switch(&b, 20, "y"), z = build_switch(&b, 20, "z");
    build_simple_host(&b, x, 1); /* 200 Gb/s */
    build_cable(&b, x, 2, y, 2, 4, FAB_QDR);
    build_cable(&b, x, 3, y, 3, 4, FAB_FDR); /* 56: 35.7 */
    build_cable(&b, y, 4, x, 4, 4, FAB_DDR);
    build_cable(&b, x, 5, z, 5, 0, FAB_SPEED_UNKNOWN);
    build_cable(&b, y, 6, z, 6, 4, FAB_EDR);
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    uint32_t end = fab_inventory_port(&inv, fabric_find(&inv, "z"), 6);
    inv.ports[end].speed = FAB_HDR; /* its other end still says EDR */
    SCOPED(fab_planes) planes = planes_of(&inv);
    const struct fab_plane *plane = &planes.planes[0];
    assert_int_equal(plane->fastest_mbps, 200000);
    assert_int_equal(plane->n_cables, 6);
    assert_int_equal(plane->n_adj, 6);
    static const struct {
        uint32_t to;
        unsigned cost, cables;
    } want[] = {{1, 36, 3}, {2, 10, 1}, {0, 36, 3}, {2, 20, 1}, {0, 10, 1}, {1, 20, 1}};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(plane->adj[i].to, want[i].to);
        assert_int_equal(plane->adj[i].cost, want[i].cost);
        assert_int_equal(plane->adj[i].cables, want[i].cables);
    }
    assert_int_equal(plane->devices[0].access, 10);
    assert_int_equal(plane->switches[plane->devices[0].sw].n_devices, 1);
    fab_planes_destroy(&planes);
    assert_int_equal(fab_planes_build(&inv, FAB_COST_HOPS, &planes, NULL), PMIXFAB_OK);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(planes.planes[0].adj[i].cost, 1);
    assert_int_equal(planes.planes[0].devices[0].access, 1);
}

/* Neither a dual-port HCA nor a router joins what it is cabled to. An aggregation node is no device. */
TEST(test_only_switches_connect)
{
    SCOPED(fab_inventory) inv;
    struct build b;
    build_begin(&b, &inv);
    uint32_t x = build_switch(&b, 20, "x"), y = build_switch(&b, 20, "y");
    uint32_t dual = build_hca(&b, build_host(&b), 1, 1, 2);
    build_cable(&b, x, 1, dual, 1, 4, FAB_HDR);
    build_cable(&b, y, 1, dual, 2, 4, FAB_HDR);
    uint32_t router = named_hca(&b, "", "router", 2), sharp = named_hca(&b, "", "sharp", 1);
    build_cable(&b, x, 2, router, 1, 4, FAB_NDR);
    build_cable(&b, y, 2, router, 2, 4, FAB_HDR);
    build_cable(&b, x, 3, sharp, 1, 4, FAB_HDR);
    build_simple_host(&b, x, 4);
    inv.nodes[router].kind = FAB_ROUTER;
    inv.nodes[sharp].kind = FAB_AGGREGATOR;
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    SCOPED(fab_planes) planes = planes_of(&inv);
    assert_int_equal(planes.n, 2);
    assert_int_equal(planes.planes[0].n_devices, 2);
    assert_int_equal(planes.planes[0].n_cables, 4);
    assert_int_equal(planes.planes[0].fastest_mbps, 200000); /* the router's cable does not count */
    assert_int_equal(planes.planes[0].switches[0].n_devices, 2);
    assert_int_equal(planes.planes[1].n_devices, 1);
    assert_int_equal(planes.planes[1].n_cables, 2);
    assert_int_equal(inv.ports[planes.planes[1].devices[0].port].num, 2);
}

TEST(test_bad_arguments)
{
    SCOPED(fab_inventory) inv = {0};
    SCOPED(fab_planes) planes;
    must_refuse(fab_planes_build(&inv, FAB_COST_RATE, &planes, fresh_err()), PMIXFAB_ERR_INVAL,
                "not finished");
    assert_null(planes.planes);
    assert_int_equal(fab_planes_build(NULL, FAB_COST_RATE, &planes, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_planes_build(&inv, FAB_COST_RATE, NULL, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_inventory_finish(&inv, NULL), PMIXFAB_OK);
    assert_int_equal(fab_planes_build(&inv, (enum fab_cost_model)77, &planes, NULL), PMIXFAB_ERR_INVAL);
    fab_planes_destroy(&planes);
    fab_planes_destroy(NULL);
}
