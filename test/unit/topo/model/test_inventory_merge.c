/* One inventory from the views of several probes. */
#include "test/unit/handmade.h"

static void must_merge(struct fab_inventory *into, const struct fab_inventory *from)
{
    must_do(fab_inventory_merge(into, from, fresh_err()));
}

/* Random parts of one fabric, together again, whichever comes first. */
TEST(test_parts_make_the_whole)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct fab_inventory whole, part[2], joined;
        uint64_t dice = seed;
        assert_int_equal(fabric_random(&whole, 2 + (unsigned)seed % 7, 25, 10, 1, seed), 0);
        struct hand_without without[2] = {hand_without_new(&whole), hand_without_new(&whole)};
        uint32_t shared = FAB_NONE;
        for (uint32_t i = 0; i < whole.n_ports; i++) {
            unsigned who = (unsigned)(fabric_random_next(&dice) % 3);
            if (whole.ports[i].peer == FAB_NONE || whole.ports[i].peer < i)
                continue;
            if (shared == FAB_NONE)
                shared = i; /* one cable that both see: one subnet */
            else if (who < 2)
                without[who].cable[i] = true;
        }
        for (int i = 0; i < 2; i++) {
            hand_copy(&part[i], &whole, &without[i], seed + (unsigned)i);
            /* what the blind side knows of a port is that it is there */
            for (uint32_t p = 0; p < part[i].n_ports; p++) {
                struct fab_port *port = &part[i].ports[p];
                if (port->peer != FAB_NONE)
                    continue;
                port->lid = 0;
                port->width = port->speed = 0;
                port->state = FAB_PORT_DOWN;
            }
            hand_finish(&part[i]);
        }
        for (int first = 0; first < 2; first++) {
            fab_inventory_init(&joined);
            must_merge(&joined, &part[first]);
            must_merge(&joined, &part[1 - first]);
            must_merge(&joined, &part[first]); /* nothing new */
            hand_finish(&joined);
            assert_true(fab_inventory_equal(&joined, &whole));
            fab_inventory_destroy(&joined);
        }
        for (int i = 0; i < 2; i++) {
            hand_without_free(&without[i]);
            fab_inventory_destroy(&part[i]);
        }
        fab_inventory_destroy(&whole);
    }
}

/* Two rails: an HCA with a port on each, two switches that never see each other. */
static void rail(struct fab_inventory *inv, unsigned which)
{
    fab_inventory_init(inv);
    inv->n_subnets = 1;
    inv->subnets[0].prefix = 0xfec0000000000000u + which;
    uint32_t sw = hand_node(inv, FAB_SWITCH, 0x200 + which, which == 1 ? "rail1" : "rail2", 36, 0);
    uint32_t hca = hand_node(inv, FAB_HCA, 0x100, "node001 mlx5_0", 2, 0);
    hand_cable(inv, sw, 7, hca, which);
    uint32_t other = hand_port(inv, hca, 3 - which, 0x100 + 3 - which, 0);
    inv->ports[other].state = FAB_PORT_UNKNOWN;
    inv->ports[other].width = inv->ports[other].speed = 0;
    hand_finish(inv);
}

TEST(test_two_subnets_of_one_hca)
{
    SCOPED(fab_inventory) one, two, joined = {0};
    rail(&one, 1);
    rail(&two, 2);
    must_merge(&joined, &one);
    must_merge(&joined, &two);
    hand_finish(&joined);
    assert_int_equal(joined.n_subnets, 2);
    assert_int_equal(joined.n_nodes, 3);
    assert_int_equal(joined.n_ports, 4);
    assert_int_equal(joined.n_dangling, 0);
    uint32_t hca = fab_inventory_find(&joined, 0x100);
    for (unsigned port = 1; port <= 2; port++) {
        const struct fab_port *p = &joined.ports[fab_inventory_port(&joined, hca, port)];
        assert_int_equal(p->guid, 0x100 + port);
        assert_int_equal(p->subnet, port - 1);
        assert_int_equal(p->state, FAB_PORT_ACTIVE);
        assert_int_equal(joined.nodes[joined.ports[p->peer].node].guid, 0x200 + port);
        assert_int_equal(joined.ports[p->peer].subnet, port - 1);
        assert_true(joined.subnets[p->subnet].prefix == 0xfec0000000000000u + port);
    }
}

/* Unknown facts are filled in, known ones stay. */
TEST(test_facts)
{
    SCOPED(fab_inventory) one, two;
    rail(&one, 1);
    rail(&two, 1);
    one.nodes[0].vendor_id = 0x2c9;
    two.nodes[0].vendor_id = 0x15b3;
    two.nodes[0].lid = 5;
    two.nodes[0].lmc = 1;
    two.nodes[1].chassis = 3;
    two.nodes[1].slot = 4;
    one.ports[0].lid = 9;
    two.ports[0].lid = 10;
    one.ports[0].state = FAB_PORT_INIT;
    two.ports[1].guid = 0;
    must_merge(&one, &two);
    hand_finish(&one);
    assert_int_equal(one.n_subnets, 1);
    assert_int_equal(one.nodes[0].vendor_id, 0x2c9);
    assert_int_equal(one.nodes[0].lid, 5);
    assert_int_equal(one.nodes[0].lmc, 1);
    assert_int_equal(one.nodes[1].chassis, 3);
    assert_int_equal(one.nodes[1].slot, 4);
    assert_int_equal(one.ports[0].lid, 9);
    assert_int_equal(one.ports[0].state, FAB_PORT_INIT);
    assert_int_equal(one.ports[1].guid, 0x102);
}

/* A port that the other view knows nothing of but that it is there keeps even what is not known of it. */
TEST(test_the_cabled_view_holds)
{
    SCOPED(fab_inventory) one, two;
    rail(&one, 1); /* sees port 1 cabled */
    rail(&two, 2); /* sees port 1 without a cable */
    one.ports[0].state = FAB_PORT_UNKNOWN;
    two.ports[0].state = FAB_PORT_DOWN;
    two.ports[0].lid = 77;
    two.ports[0].width = 1;
    two.ports[0].speed = FAB_SDR;
    for (int first = 0; first < 2; first++) {
        SCOPED(fab_inventory) joined = {0};
        must_merge(&joined, first == 0 ? &one : &two);
        must_merge(&joined, first == 0 ? &two : &one);
        hand_finish(&joined);
        assert_int_equal(joined.ports[0].num, 1);
        assert_int_equal(joined.ports[0].state, FAB_PORT_UNKNOWN);
        assert_int_equal(joined.ports[0].lid, 0);
        assert_int_equal(joined.ports[0].width, 4);
        assert_int_equal(joined.ports[0].speed, FAB_HDR);
    }
}

static void spoil_kind(struct fab_inventory *inv)
{
    inv->nodes[0].kind = FAB_ROUTER;
}

static void spoil_ports(struct fab_inventory *inv)
{
    inv->nodes[1].num_ports = 40;
}

static void spoil_guid(struct fab_inventory *inv)
{
    inv->ports[0].guid = 0x999;
}

static void spoil_cable(struct fab_inventory *inv)
{
    inv->ports[2].num = 8; /* the switch's end */
}

TEST(test_contradictions)
{
    static const struct {
        void (*spoil)(struct fab_inventory *inv);
        const char *text;
    } cases[] = {
        {spoil_kind, "node 0x0000000000000100 has two views: kind 2 with 2 ports, and kind 3 with 2 ports"},
        {spoil_ports,
         "node 0x0000000000000201 has two views: kind 1 with 36 ports, and kind 1 with 40 ports"},
        {spoil_guid, "port 1 of node 0x0000000000000100 is seen with two port GUIDs, 0x0000000000000101 and "
                     "0x0000000000000999"},
        {spoil_cable, "the cable from port 1 of node 0x0000000000000100 to port 8 of node 0x0000000000000201 "
                      "contradicts another at one of its ends"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) one, two;
        struct fab_err err = {{0}};
        rail(&one, 1);
        rail(&two, 1);
        cases[i].spoil(&two);
        hand_finish(&two);
        assert_int_equal(fab_inventory_merge(&one, &two, &err), PMIXFAB_ERR_CONFLICT);
        assert_string_equal(err.text, cases[i].text);
        fab_inventory_destroy(&one);
        rail(&one, 1);
        assert_int_equal(fab_inventory_merge(&one, &two, NULL), PMIXFAB_ERR_CONFLICT);
    }
}

TEST(test_misuse)
{
    struct fab_inventory one, two = {0};
    rail(&one, 1);
    assert_int_equal(fab_inventory_merge(&one, &two, fresh_err()), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_inventory_merge(&one, &one, fresh_err()), PMIXFAB_ERR_INVAL);
    assert_true(one.finished);
    fab_inventory_destroy(&one);
}

TEST(test_too_many_subnets)
{
    struct fab_inventory all = {0}, one;
    struct fab_err err = {{0}};
    for (unsigned i = 0; i <= FAB_MAX_SUBNETS; i++) {
        fab_inventory_init(&one);
        hand_node(&one, FAB_SWITCH, 0x200 + i, "lone", 8, 0);
        hand_finish(&one);
        assert_int_equal(fab_inventory_merge(&all, &one, &err), i < FAB_MAX_SUBNETS ? 0 : PMIXFAB_ERR_RANGE);
        fab_inventory_destroy(&one);
    }
    assert_string_equal(err.text, "more than 32 subnets");
    fab_inventory_destroy(&all);
}
