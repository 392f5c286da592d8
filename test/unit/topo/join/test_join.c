/* Joining what the sweep saw with what hosts report: matching, names, places. */
#include "test/unit/join_hosts.h"

static void join(struct hosts *h)
{
    hosts_join(h, NULL, 0, NULL);
}

/* Two hosts on a switch: 0x100 (two ports, the second not cabled, no GUID known), 0x110 of "a", 0x120 of "b".
 */
static struct fab_inventory small_fabric(void)
{
    struct fab_inventory inv;
    HAND_STAR(&inv, 0x100, 1, "a HCA-1", "a HCA-2", "b");
    hand_uncabled(&inv, 0x100, 2, FAB_PORT_UNKNOWN);
    return inv;
}

TEST(test_a_whole_fabric)
{
    static const char *const fabrics[] = {"fattree2:4,2,3", "fattree3:4", "torus:3,3,3:1",
                                          "random:12,40,20:7"};
    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        SCOPED(hosts) h = {.swept = generated(fabrics[i])};
        SCOPED_BY(world_reports_free) struct report_world world;
        const struct fab_inventory *inv = &h.swept;
        const struct fab_joined *joined = &h.joined;
        world_reports(&world, inv);
        hosts_join_list(&h, world.list, world.n, NULL, 0, NULL);
        assert_string_equal(h.lines, "");
        assert_int_equal(joined->n_refused, 0);
        assert_int_equal(joined->inv.n_nodes, inv->n_nodes);
        assert_int_equal(joined->inv.n_ports, inv->n_ports);
        for (uint32_t p = 0; p < inv->n_ports; p++) {
            const struct fab_port *port = &inv->ports[p];
            const struct fab_node *node = &inv->nodes[port->node];
            if (node->kind != FAB_HCA)
                continue;
            assert_int_equal(joined->inv.ports[p].peer, port->peer);
            assert_true(strncmp(fab_str(&joined->inv, joined->inv.nodes[port->node].name), "mlx5_", 5) == 0);
            assert_string_equal(fab_str(&joined->inv, joined->inv.nodes[port->node].host),
                                fab_str(inv, node->host));
            assert_int_equal(joined->details.places[p].card, joined->details.places[p].numa);
            assert_facts(joined, p,
                         "firmware 20.31.1014, vendor Mellanox Technologies, transport rc_mlx5, "
                         "provider verbs;ofi_rxm");
            assert_true((world_detail(joined, p, FAB_FACT_LATENCY)->flags & FAB_DETAIL_ESTIMATE) != 0);
            assert_facts(joined, p, printed("port-guid 0x%016" PRIx64, port->guid));
            assert_int_equal(world_detail(joined, p, FAB_FACT_PORT_GUID)->sources,
                             1u << FAB_FROM_SUBNET | 1u << FAB_FROM_VERBS);
            assert_int_equal(joined->details.seen[p],
                             port->peer == FAB_NONE ? FAB_SEEN_NODE : FAB_SEEN_NODE | FAB_SEEN_SUBNET);
            for (uint32_t f = joined->details.first[p]; f < joined->details.first[p + 1]; f++)
                assert_int_equal(joined->details.facts[f].flags & FAB_DETAIL_CONFLICT, 0);
        }
    }
}

TEST(test_without_reports_the_sweep_is_what_it_was)
{
    SCOPED(hosts) h = {.swept = generated("random:12,40,20:7")}, nothing = {.n = 0};
    join(&h);
    assert_true(fab_inventory_equal(&h.swept, &h.joined.inv));
    for (uint32_t p = 0; p < h.swept.n_ports; p++) {
        assert_int_equal(h.joined.details.seen[p], FAB_SEEN_SUBNET);
        assert_int_equal(h.joined.details.places[p].card, 0);
        if (h.swept.nodes[h.swept.ports[p].node].kind == FAB_HCA)
            assert_facts(&h.joined, p, "type InfiniBand");
    }
    join(&nothing); /* an empty sweep is a sweep */
    assert_int_equal(nothing.joined.inv.n_nodes, 0);
}

TEST(test_conflicts_are_kept)
{
    SCOPED(hosts) h = {.swept = small_fabric()};
    hosts_add(
        &h, "a",
        "verbs: name mlx5_0, port 1, port-guid #101, state down, firmware 20.1, pci 0000:c1:00:00, lid 77\n"
        "hwloc: name mlx5_0, pci 0000:c2:00:00, numa 3\n"
        "libfabric: name mlx5_0, port 1, firmware 20.2\n"
        "libfabric: name mlx5_0, firmware 9.2");
    join(&h);
    uint32_t p = hosts_port(&h, 0x100, 1);
    /* of the state the subnet knows better; the sweep has no LID here */
    assert_facts(&h.joined, p, "state up, lid 77, firmware 20.1, pci 0000:c2:00:00, name mlx5_0");
    assert_true((world_detail(&h.joined, p, FAB_FACT_STATE)->flags & FAB_DETAIL_CONFLICT) != 0);
    const struct fab_detail *name = world_detail(&h.joined, p, FAB_FACT_NAME);
    assert_int_equal(name->flags, FAB_DETAIL_CHOSEN); /* HCA-1 is no conflict */
    assert_int_equal(name[1].sources, 1u << FAB_FROM_SUBNET);
    const struct fab_detail *firmware = world_detail(&h.joined, p, FAB_FACT_FIRMWARE);
    assert_string_equal(h.joined.details.pool + firmware[1].text, "9.2");
    assert_string_equal(h.joined.details.pool + firmware[2].text, "20.2");
    assert_int_equal(firmware[2].flags, FAB_DETAIL_CONFLICT);
    assert_int_equal(h.joined.inv.ports[p].state, FAB_PORT_ACTIVE); /* the sweep's part is as it was */
    assert_int_equal(h.joined.inv.ports[p].lid, 0);
    assert_int_equal(h.joined.details.places[p].numa, 1);
    assert_int_equal(h.joined.details.places[p].package, 0);
}

/* TCP can use any card: that does not make it one of software alone. What verbs calls software is. */
TEST(test_software_of_those_who_use_it)
{
    static const struct {
        enum fab_fact kind;
        unsigned flag;
    } ways[] = {{FAB_FACT_PROVIDER, FAB_DETAIL_SOFTWARE},
                {FAB_FACT_TRANSPORT, FAB_DETAIL_SOFTWARE},
                {FAB_FACT_PROTOCOL, 0},
                {FAB_FACT_MTU, 0},
                {FAB_FACT_NAME, 0}};
    SCOPED(hosts) h = {.swept = small_fabric()};
    hosts_add(&h, "a",
              "verbs: name mlx5_0, port 1, port-guid #101, interface ib0\n"
              "verbs: name rxe0, port 1, port-guid #111, software yes\n"
              "libfabric: interface ib0, provider tcp, software yes\n"
              "ucx: interface ib0, transport tcp, software yes\n"
              "libfabric: interface ib0, protocol x, mtu 9000, software yes\n"
              "libfabric: name mlx5_0, protocol x"); /* what another says without is not software */
    join(&h);
    uint32_t card = hosts_port(&h, 0x100, 1);
    assert_facts(&h.joined, card, "provider tcp, transport tcp, software");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        assert_int_equal(world_detail(&h.joined, card, ways[i].kind)->flags & FAB_DETAIL_SOFTWARE,
                         ways[i].flag);
    assert_facts(&h.joined, hosts_port(&h, 0x110, 1), "software yes");
}

TEST(test_another_hosts_devices_are_not_joined)
{
    SCOPED(hosts) h = {.swept = small_fabric()};
    hosts_add(&h, "a",
              "verbs: name x, port 1, port-guid #121\n"
              "hwloc: name x, numa 1\n"
              "verbs: name y, port 1, node-guid #200"); /* the switch */
    hosts_add(&h, "b.cluster",
              "verbs: name mlx5_0, port 1, node-guid #120\n"
              "verbs: name mlx5_9, port 1, port-guid #999");
    join(&h);
    assert_int_equal(h.joined.n_refused, 3);
    assert_int_equal(strcspn(h.lines, "\n"), strlen(h.lines) - 1);
    assert_non_null(strstr(h.lines, "a: 3 items"));
    assert_non_null(strstr(h.lines, "to b"));
    assert_called(&h, 0x120, "b mlx5_0"); /* the operator's name for the host */
    uint32_t p = hosts_port(&h, 0x120, 1);
    assert_facts(&h.joined, p, "numa");
    assert_int_equal(h.joined.details.seen[p], FAB_SEEN_SUBNET | FAB_SEEN_NODE);
    for (uint32_t i = 0; i < h.joined.inv.n_nodes; i++) /* what only b.cluster knows is of the same host b */
        assert_true(strcmp(fab_str(&h.joined.inv, h.joined.inv.nodes[i].host), "b.cluster") != 0);
}

/* Joined in the other order from that in which they were added. */
static void turn_round(struct hosts *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        h->list[h->n - 1 - i] = &h->reports[i];
}

TEST(test_who_names_the_unnamed)
{
    SCOPED(hosts) h = {.n = 0};
    HAND_STAR(&h.swept, 0x100, 1, "MT4123", "localhost mlx5_0", "localhost mlx5_0");
    hosts_add(&h, "n10", "verbs: name mlx5_3, port 1, port-guid #111");
    hosts_add(&h, "n2", "verbs: name mlx5_3, port 1, port-guid #101");
    hosts_add(&h, "n10.x", "verbs: name mlx5_3, port 1, port-guid #101");
    turn_round(&h); /* order means nothing */
    join(&h);
    assert_int_equal(hosts_node(&h, 0x100)->unnamed, 1); /* two hosts claim it */
    assert_called(&h, 0x110, "n10 mlx5_3");
    assert_called(&h, 0x120, "localhost mlx5_0");
    assert_int_equal(h.joined.n_refused, 0);
    assert_string_equal(h.lines,
                        "n2: the node GUID of mlx5_3 is also claimed by n10.x; it belongs to no host\n"
                        "n10.x: the node GUID of mlx5_3 is also claimed by n2; it belongs to no host\n");
    assert_int_equal(h.joined.inv.n_nodes, h.swept.n_nodes + 2); /* each has a device all the same */
    assert_int_equal(h.joined.hosts[0].devices, 1);
    assert_int_equal(h.joined.hosts[2].devices, 1);
}

TEST(test_names_tell_devices_apart)
{
    static const struct {
        const char *says, *first, *second;
    } names[] = {
        /* both HCAs claim one name: both keep the sweep's */
        {"verbs: name same, port-guid #101\nverbs: name same, port-guid #111", "a HCA-1", "a HCA-2"},
        /* one claims what the other keeps */
        {"verbs: name HCA-2, port-guid #101", "a HCA-1", "a HCA-2"},
        /* changing places is no conflict */
        {"verbs: name HCA-2, port-guid #101\nverbs: name HCA-1, port-guid #111", "a HCA-2", "a HCA-1"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        SCOPED(hosts) h = {.swept = small_fabric()};
        hosts_add(&h, "a", "%s", names[i].says);
        join(&h);
        assert_called(&h, 0x100, names[i].first);
        assert_called(&h, 0x110, names[i].second);
    }
}

TEST(test_what_only_the_host_knows)
{
    SCOPED(hosts) h = {.swept = small_fabric()};
    const struct fab_inventory *inv = &h.joined.inv;
    /* the second port of an HCA of the sweep, which has no cable */
    hosts_add(&h, "a",
              "verbs: name mlx5_0, port 1, port-guid #101, node-guid #100\n"
              "verbs: name mlx5_0, port 2, port-guid #102, state down, speed 10000");
    /* an HCA that is in no sweep: port 3 of it, and one whose number nobody says; one without any GUID */
    report_say(
        &h.reports[0],
        "verbs: name mlx5_7, port 3, node-guid #700, system-guid #777, state up, speed 100000, lid 12, "
        "pci 0000:01:00:00\n"
        "verbs: name mlx5_7, port-guid #703\n"
        "ucx: name irdma0, port 1, transport rc_verbs");
    /* contradictions: a port that the HCA has not, another GUID for a port of the sweep */
    report_say(&h.reports[0],
               "verbs: name mlx5_0, port 9\nverbs: name z, port 1, node-guid #110, port-guid #fff");
    join(&h);
    assert_string_equal(h.lines, "a: 2 items are left out: contradiction to the fabric or to other items\n");
    assert_int_equal(h.joined.n_refused, 0);
    assert_int_equal(inv->n_nodes, h.swept.n_nodes + 2);
    const struct fab_locality *places = h.joined.details.places;

    uint32_t p = hosts_port(&h, 0x100, 2);
    const struct fab_port *port = &inv->ports[p];
    assert_true(inv->subnets[port->subnet].prefix == FAB_UNATTACHED);
    assert_true(port->guid == 0x102);
    assert_int_equal(port->state, FAB_PORT_DOWN);
    assert_int_equal(fab_rate_mbps(port->width, (enum fab_speed)port->speed), 10000);
    assert_int_equal(h.joined.details.seen[p], FAB_SEEN_NODE);
    assert_facts(&h.joined, p, "port 2");
    assert_int_equal(places[p].card, places[hosts_port(&h, 0x100, 1)].card);
    assert_int_not_equal(places[p].card, 0);

    p = hosts_port(&h, 0x700, 3);
    assert_true(p != FAB_NONE);
    assert_int_equal(inv->ports[p].state, FAB_PORT_ACTIVE);
    assert_int_equal(inv->ports[p].lid, 12);
    assert_true(inv->subnets[inv->ports[p].subnet].prefix == FAB_UNATTACHED);
    assert_true(FAB_GUID_IS_MADE_UP(inv->ports[p].guid));
    assert_int_equal(hosts_node(&h, 0x700)->num_ports, 3);
    assert_true(hosts_node(&h, 0x700)->system_guid == 0x777);
    assert_called(&h, 0x700, "a mlx5_7");
    assert_int_equal(places[p].card, places[hosts_port(&h, 0x700, 1)].card);
    assert_true(inv->ports[hosts_port(&h, 0x700, 1)].guid == 0x703);

    const struct fab_node *last = &inv->nodes[inv->n_nodes - 1]; /* made-up GUIDs are above all others */
    assert_true(FAB_GUID_IS_MADE_UP(last->guid));
    assert_string_equal(fab_str(inv, last->name), "irdma0");
    assert_int_equal(places[last->first_port].card, 0);
    assert_int_equal(inv->n_subnets, 2);
}

TEST(test_places)
{
    static const struct {
        const char *says;
        struct fab_locality place;
    } devs[] = {
        {"pci 0000:02:00:00, switch 0000:01:00:00, numa 10, package 1", {1, 1, 2, 2}},
        {"pci 0000:02:00:01, switch 0000:01:00:00, numa 10, package 1", {1, 1, 2, 2}},
        {"pci 0000:03:00:00, switch 0000:01:00:00, numa 9, package 0", {2, 1, 1, 1}},
        {"pci 0001:02:00:00, numa 10", {3, 0, 2, 0}},
        {"pci", {0, 0, 0, 0}},
    };
    SCOPED(hosts) h = {.n = 0};
    hosts_begin(&h, "a");
    for (unsigned i = 0; i < 5; i++)
        report_say(&h.reports[0], "verbs: node-guid #1%02x, port-guid #1%02x, name mlx5_%u, %s", i, i, i,
                   devs[i].says);
    join(&h);
    for (unsigned i = 0; i < 5; i++)
        assert_memory_equal(&h.joined.details.places[hosts_port(&h, 0x100 + i, 1)], &devs[i].place,
                            sizeof(devs[i].place));
}

/* What is said of a device, and not of a port of it, is said of all its ports but for what each has itself */
TEST(test_shared_items)
{
    SCOPED(hosts) h = {.n = 0};
    hosts_add(&h, "a", "hwloc: name mlx5_0, numa 1, state down, gid fe80::1");
    for (unsigned i = 0; i < 4; i++) /* two devices of two ports, no address known */
        report_say(&h.reports[0], "verbs: name mlx5_%u, port %u, node-guid #1%02x", i / 2, i % 2 + 1, i / 2);
    join(&h);
    for (unsigned i = 0; i < 4; i++) {
        uint32_t p = hosts_port(&h, 0x100 + i / 2, i % 2 + 1);
        assert_int_equal(world_text(&h.joined, p, FAB_FACT_NUMA) != NULL, i < 2);
        assert_facts(&h.joined, p, "state, gid");
        assert_int_equal(h.joined.details.places[p].card, i / 2 + 1);
        assert_int_equal(h.joined.details.places[p].numa, i < 2);
        assert_int_equal(h.joined.inv.ports[p].state, FAB_PORT_UNKNOWN);
    }
}

TEST(test_numbers_and_names_of_new_nodes)
{
    SCOPED(hosts) h = {.n = 0};
    hosts_add(&h, "a", /* who knows its number has it, whoever is first */
              "verbs: name x, node-guid #100, port-guid #101\n"
              "hwloc: name x, node-guid #100, port-guid #102, port 1");
    report_say(&h.reports[0], /* another name is another device, whatever GUID they share */
               "verbs: name first, node-guid #200, port-guid #201, port 1\n"
               "hwloc: name second, node-guid #200, port-guid #202, port 2");
    join(&h);
    assert_true(h.joined.inv.ports[hosts_port(&h, 0x100, 1)].guid == 0x102);
    assert_true(h.joined.inv.ports[hosts_port(&h, 0x100, 2)].guid == 0x101);
    assert_int_equal(fab_inventory_find(&h.joined.inv, 0x200), FAB_NONE);
    assert_int_equal(h.joined.inv.n_nodes, 3);
}

/* Devices that hosts have, and how many of them no sweep sees: in the order of their names. */
static void assert_counts(const struct hosts *h, const struct fab_joined_host *counts)
{
    assert_int_equal(h->joined.n_hosts, 3);
    assert_memory_equal(h->joined.hosts, counts, 3 * sizeof(*counts));
}

/* The sweep calls a host n, its report calls it n.x; and the other way round. */
TEST(test_long_and_short_names)
{
    SCOPED(hosts) h = {.n = 0};
    HAND_STAR(&h.swept, 0x100, 2, "n HCA-1", "n HCA-2", "MT4123", "m", "m.b");
    hand_uncabled(&h.swept, 0x140, 2, FAB_PORT_DOWN);
    hosts_add(&h, "n", "verbs: port-guid #101, pci 0000:01:00:00");
    hosts_add(&h, "n.x", "verbs: port-guid #111, pci 0000:01:00:00\nverbs: port-guid #121");
    hosts_add(&h, "m.b",
              "verbs: port-guid #900, node-guid #900\n"
              "verbs: name x, port 2, node-guid #140, port-guid #142");
    join(&h);
    assert_int_equal(h.joined.n_refused, 0);
    assert_string_equal(fab_str(&h.joined.inv, hosts_node(&h, 0x120)->host), "n"); /* n.x is n: n's device */
    assert_string_equal(fab_str(&h.joined.inv, hosts_node(&h, 0x900)->host), "m.b");
    /* two reports of one host: their addresses are two machines' */
    assert_int_equal(h.joined.details.places[hosts_port(&h, 0x100, 1)].card, 1);
    assert_int_equal(h.joined.details.places[hosts_port(&h, 0x110, 1)].card, 2);
    const struct fab_port *port = &h.joined.inv.ports[hosts_port(&h, 0x140, 2)];
    assert_int_equal(port->state, FAB_PORT_DOWN); /* its host does not say */
    assert_true(port->guid == 0x142);
    assert_counts(&h, (const struct fab_joined_host[]){{2, 2}, {1, 0}, {2, 0}}); /* m.b, n, n.x */
}

TEST(test_bad_calls)
{
    SCOPED(fab_inventory) inv = {0};
    SCOPED(fab_report) a;
    struct fab_joined joined;
    struct fab_err err = {{0}};
    const struct fab_report *list[] = {&a};
    struct fab_ethernet_plane plane = {"net", "10.0.0.1/8"};
    assert_int_equal(fab_join(NULL, &(struct fab_join_input){&inv, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL},
                              &joined, &err),
                     PMIXFAB_ERR_INVAL);
    hand_finish(&inv);
    world_begin(&a, "a");
    must_fail(fab_join(NULL, &(struct fab_join_input){&inv, list, NULL, 1, NULL, 0, NULL, NULL, NULL},
                       &joined, &err),
              PMIXFAB_ERR_INVAL, &err, "not finished");
    world_finish(&a);
    must_fail(fab_join(NULL, &(struct fab_join_input){&inv, list, NULL, 1, &plane, 1, NULL, NULL, NULL},
                       &joined, &err),
              PMIXFAB_ERR_SYNTAX, &err, "plane net");
    assert_null(joined.details.first);
    assert_int_equal(
        fab_join(NULL, &(struct fab_join_input){&inv, list, NULL, 1, NULL, 0, NULL, NULL, NULL}, NULL, &err),
        PMIXFAB_ERR_INVAL);
    fab_joined_destroy(NULL);
}
