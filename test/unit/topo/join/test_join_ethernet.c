/* Ethernet planes of joined inventories: who stands in which, switches of LLDP's, segments. */
#include "test/unit/join_hosts.h"
#include "topo/plane/cost.h"

static const struct fab_ethernet_plane one_plane[] = {{"eth0", "10.91.0.0/16"}};

/* An interface; texts may be NULL. `port` with the switch `sw`, tor1. */
static void interface(struct fab_report *report, const char *name, const char *mac, const char *address,
                      const char *mbps, const char *sw, const char *port)
{
    report_say(report, "ethernet: interface %s, mac %s, address %s, speed %s, state up", name,
               mac == NULL ? "" : mac, address == NULL ? "" : address, mbps == NULL ? "" : mbps);
    if (sw != NULL)
        report_say(report, "lldp: interface %s, switch-id %s, switch-name tor1, switch-port %s", name, sw,
                   port);
}

static void join(struct hosts *h, const struct fab_ethernet_plane *planes, uint32_t n)
{
    hosts_join(h, planes, n, NULL);
}

static uint32_t node_of(const struct hosts *h, uint64_t mac)
{
    return fab_inventory_find(&h->joined.inv, FAB_ETHERNET_GUID | mac);
}

/* A node by name; FAB_NONE. */
static uint32_t node_named(const struct fab_inventory *inv, const char *name)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (strcmp(fab_str(inv, inv->nodes[i].name), name) == 0)
            return i;
    return FAB_NONE;
}

/* The node at the other end of port 1. */
static uint32_t leads_to(const struct fab_inventory *inv, uint32_t node)
{
    uint32_t p = fab_inventory_port(inv, node, 1);
    assert_true(p != FAB_NONE && inv->ports[p].peer != FAB_NONE);
    return inv->ports[inv->ports[p].peer].node;
}

/* Port 1 of a node is cabled to port `num` of another. */
static void must_lead(const struct fab_inventory *inv, uint32_t node, uint32_t to, unsigned num)
{
    assert_int_equal(leads_to(inv, node), to);
    assert_int_equal(inv->ports[inv->ports[fab_inventory_port(inv, node, 1)].peer].num, num);
}

TEST(test_segment)
{
    SCOPED(hosts) h = {.n = 0};
    interface(hosts_begin(&h, "a"), "ens1", "02:00:00:00:00:0a", "10.91.0.1/16", "25000", NULL, NULL);
    struct fab_report *b = hosts_begin(&h, "b");
    interface(b, "ens1", "02:00:00:00:00:0b", "10.91.0.2/16", "10000", NULL, NULL);
    interface(b, "ens2", "02:00:00:00:00:0c", "10.92.0.2/16", NULL, NULL, NULL); /* in no plane */
    join(&h, one_plane, 1);
    const struct fab_inventory *inv = &h.joined.inv;
    assert_int_equal(inv->n_nodes, 3);
    assert_int_equal(inv->n_subnets, 1);
    assert_true(inv->subnets[0].prefix == fab_ethernet_prefix("eth0"));
    uint32_t a = node_of(&h, 0x02000000000a), other = node_of(&h, 0x02000000000b);
    assert_called(&h, inv->nodes[a].guid, "a ens1");
    assert_int_equal(inv->nodes[a].kind, FAB_HCA);
    assert_int_equal(inv->nodes[a].num_ports, 1);
    uint32_t segment = leads_to(inv, a);
    must_lead(inv, a, segment, 1);
    must_lead(inv, other, segment, 2);
    assert_int_equal(inv->nodes[segment].kind, FAB_SWITCH);
    assert_string_equal(fab_str(inv, inv->nodes[segment].name), "eth0");
    const struct fab_port *port = &inv->ports[inv->nodes[a].first_port];
    assert_true(port->guid == (FAB_ETHERNET_GUID | UINT64_C(0x02000000000a)));
    assert_int_equal(port->width, 1);
    assert_int_equal(port->speed, FAB_EDR);
    assert_int_equal(port->state, FAB_PORT_ACTIVE);
    assert_int_equal(h.joined.details.seen[inv->nodes[a].first_port], FAB_SEEN_NODE);
    assert_string_equal(world_text(&h.joined, inv->nodes[a].first_port, FAB_FACT_MAC), "02:00:00:00:00:0a");
    assert_string_equal(h.lines, "");
}

TEST(test_switches_of_lldp)
{
    static const char tor1[] = "00:21:5e:00:00:01", tor2[] = "local rack 2";
    SCOPED(hosts) h = {.n = 0};
    interface(hosts_begin(&h, "a"), "e0", "02:00:00:00:00:01", "10.91.0.1/16", "25000", tor1, "Ethernet12");
    interface(hosts_begin(&h, "b"), "e0", "02:00:00:00:00:02", "10.91.0.2/16", "25000", tor1,
              "Eth1/12"); /* taken */
    interface(hosts_begin(&h, "c"), "e0", "02:00:00:00:00:03", "10.91.0.3/16", "25000", tor1,
              "00:21:5e:00:00:77");
    join(&h, one_plane, 1);
    const struct fab_inventory *inv = &h.joined.inv;
    assert_int_equal(inv->n_nodes, 4); /* one switch and nothing else: no segment */
    uint32_t sw = node_of(&h, 0x00215e000001);
    assert_string_equal(fab_str(inv, inv->nodes[sw].name), "tor1");
    must_lead(inv, node_of(&h, 0x020000000001), sw, 12);
    must_lead(inv, node_of(&h, 0x020000000002), sw, 1);
    must_lead(inv, node_of(&h, 0x020000000003), sw, 2);

    interface(hosts_begin(&h, "d"), "e0", "02:00:00:00:00:04", "10.91.0.4/16", "25000", tor2, "254");
    interface(hosts_begin(&h, "e"), "e0", "02:00:00:00:00:05", "10.91.0.5/16", "25000", NULL, NULL);
    join(&h, one_plane, 1);
    assert_int_equal(inv->n_nodes, 8);
    uint32_t segment = node_named(inv, "eth0");
    assert_int_equal(leads_to(inv, node_of(&h, 0x020000000005)), segment);
    assert_int_not_equal(leads_to(inv, node_of(&h, 0x020000000004)), segment);
    must_lead(inv, node_of(&h, 0x020000000004), leads_to(inv, node_of(&h, 0x020000000004)), 254);
    sw = node_of(&h, 0x00215e000001);
    assert_int_equal(inv->nodes[sw].n_ports, 4); /* three devices and the segment */
    assert_int_equal(inv->nodes[segment].n_ports, 3);
}

/* A bond has the address, what it is made of hears LLDP. */
TEST(test_bonds)
{
    SCOPED(hosts) h = {.n = 0};
    struct fab_report *a = hosts_begin(&h, "a");
    interface(a, "bond0", "02:00:00:00:00:01", "10.91.0.1/16", "25000", NULL, NULL);
    interface(a, "ens10", "02:00:00:00:00:01", NULL, "25000", "00:21:5e:00:00:02", "p8");
    interface(a, "ens2", "02:00:00:00:00:01", NULL, "25000", "00:21:5e:00:00:01", "p9");
    struct fab_report *b = hosts_begin(&h, "b");
    interface(b, "ens2", "02:00:00:00:00:02", "10.91.0.2/16", "25000", NULL, NULL);
    interface(b, "ens3", "02:00:00:00:00:03", NULL, "25000", "00:21:5e:00:00:01", "p1"); /* not its */
    join(&h, one_plane, 1);
    const struct fab_inventory *inv = &h.joined.inv;
    must_lead(inv, node_of(&h, 0x020000000001), node_of(&h, 0x00215e000001), 9);
    assert_int_equal(leads_to(inv, node_of(&h, 0x020000000002)), node_named(inv, "eth0"));
    assert_int_equal(inv->n_nodes, 4);
}

TEST(test_planes_by_name)
{
    static const struct fab_ethernet_plane planes[] = {{"net10", "fd00::/64"},
                                                       {"net2", "10.2.0.0/16"},
                                                       {"net10", "10.10.0.0/16"},
                                                       {"empty", "10.77.0.0/16"}};
    SCOPED(hosts) h = {.n = 0};
    struct fab_report *a = hosts_begin(&h, "a");
    report_say(a, "ethernet: interface e0, mac 02:00:00:00:00:01, address 10.10.0.1/16, address 10.2.0.1/16");
    interface(a, "e1", "02:00:00:00:00:02", "fd00::9/64", NULL, "00:21:5e:00:00:01", "1");
    interface(a, "e2", "02:00:00:00:00:03", "10.2.0.9/16", NULL, "00:21:5e:00:00:01", "2");
    interface(a, "e3", "02:00:00:00:00:04", "10.10.9.9/24", NULL, NULL, NULL);
    join(&h, planes, 4);
    const struct fab_inventory *inv = &h.joined.inv;
    assert_string_equal(h.lines, "a: e0 has addresses in planes net2 and net10; it is placed in net2\n");
    assert_int_equal(inv->n_subnets, 2);
    assert_true(inv->subnets[0].prefix == fab_ethernet_prefix("net2"));
    assert_true(inv->subnets[1].prefix == fab_ethernet_prefix("net10"));
    static const unsigned subnet[] = {0, 1, 0, 1};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(inv->ports[inv->nodes[node_of(&h, 0x020000000001 + i)].first_port].subnet,
                         subnet[i]);
    SCOPED(fab_planes) cut; /* one switch in two planes is two, or the planes would be one */
    cut = planes_of(inv);
    assert_int_equal(cut.n, 2);
}

TEST(test_one_mac_twice)
{
    static const struct fab_ethernet_plane planes[] = {{"a", "10.1.0.0/16"}, {"b", "10.2.0.0/16"}};
    SCOPED(hosts) h = {.n = 0};
    struct fab_report *n1 = hosts_begin(&h, "n1");
    interface(n1, "e0", "02:00:00:00:00:01", "10.1.0.1/16", NULL, NULL, NULL);
    interface(n1, "e0.5", "02:00:00:00:00:01", "10.1.5.1/16", NULL, NULL, NULL); /* its own: both are there */
    interface(hosts_begin(&h, "n2"), "e0", "02:00:00:00:00:01", "10.1.0.2/16", NULL, NULL, NULL);
    interface(hosts_begin(&h, "n3"), "e0", "02:00:00:00:00:01", "10.2.0.3/16", NULL, NULL,
              NULL); /* another plane */
    join(&h, planes, 2);
    assert_string_equal(h.lines, "n1: the MAC of e0 is also claimed by n2 (and 1 more)\n"
                                 "n2: the MAC of e0 is also that of a device of n1, which keeps it\n"
                                 "n3: the MAC of e0 is also that of a device of n1, which keeps it\n");
    const struct fab_inventory *inv = &h.joined.inv;
    unsigned hosts[4] = {0};
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA)
            hosts[fab_str(inv, inv->nodes[i].host)[1] - '0']++;
    assert_int_equal(hosts[1], 2);
    assert_int_equal(hosts[2], 1);
    assert_int_equal(hosts[3], 1);
    assert_string_equal(fab_str(inv, inv->nodes[node_of(&h, 0x020000000001)].name), "e0");
}

TEST(test_roce)
{
    SCOPED(hosts) h = {.n = 0};
    struct fab_report *a = hosts_begin(&h, "a");
    report_say(
        a, "verbs: name mlx5_0, port 1, node-guid #100, port-guid #101, type Ethernet, pci 0000:c1:00:00, "
           "speed 100000\n"
           "hwloc: interface ens1, pci 0000:c1:00:00");
    interface(a, "ens1", "02:00:00:00:00:01", "10.91.0.1/16", "100000", "00:21:5e:00:00:01", "swp3");
    /* InfiniBand with an address of the plane stays what it is */
    report_say(a, "verbs: name mlx5_1, port 1, node-guid #200, type InfiniBand, interface ib0\n"
                  "ethernet: interface ib0, address 10.91.0.9/16\n"
                  "ethernet: interface ib7, type InfiniBand, address 10.91.0.8/16");
    interface(hosts_begin(&h, "b"), "e0", "02:00:00:00:00:02", "10.91.0.2/16", "25000", "00:21:5e:00:00:01",
              "swp4");
    join(&h, one_plane, 1);
    const struct fab_inventory *inv = &h.joined.inv;
    uint32_t roce = fab_inventory_find(inv, 0x100);
    assert_int_equal(inv->n_nodes, 4); /* one device for port and interface */
    assert_string_equal(fab_str(inv, inv->nodes[roce].name), "mlx5_0");
    must_lead(inv, roce, node_of(&h, 0x00215e000001), 3);
    uint32_t p = inv->nodes[roce].first_port;
    assert_true(inv->ports[p].guid == 0x101);
    assert_int_equal(fab_rate_mbps(inv->ports[p].width, (enum fab_speed)inv->ports[p].speed), 100000);
    assert_facts(&h.joined, p, "interface ens1, address 10.91.0.1/16");
    p = inv->nodes[fab_inventory_find(inv, 0x200)].first_port;
    assert_int_equal(inv->ports[p].peer, FAB_NONE);
    assert_true(inv->subnets[inv->ports[p].subnet].prefix == FAB_UNATTACHED);
}

/* A cabled port of the sweep goes nowhere, whatever address it has; an uncabled one may be an Ethernet port.
 */
TEST(test_ports_of_the_sweep)
{
    SCOPED(hosts) h = {.n = 0};
    assert_int_equal(fabric_parse("fattree2:2,2,2", &h.swept), 0);
    assert_int_equal(fabric_unlink(&h.swept, "node0002", 1), 0);
    uint32_t n1 = fabric_find(&h.swept, "node0001"), n2 = fabric_find(&h.swept, "node0002");
    uint64_t guid1 = h.swept.nodes[n1].guid, guid2 = h.swept.nodes[n2].guid;
    h.swept.ports[h.swept.nodes[n2].first_port].state = FAB_PORT_DOWN;
    uint32_t peer = h.swept.ports[h.swept.nodes[n1].first_port].peer;
    for (unsigned i = 0; i < 2; i++) {
        struct fab_report *r = hosts_begin(&h, i == 0 ? "node0001" : "node0002");
        report_say(r, "verbs: name mlx5_0, port 1, node-guid #%" PRIx64 ", interface e0",
                   i == 0 ? guid1 : guid2);
        interface(r, "e0", i == 0 ? "02:00:00:00:00:01" : "02:00:00:00:00:02",
                  i == 0 ? "10.91.0.1/16" : "10.91.0.2/16", "25000", NULL, NULL);
    }
    join(&h, one_plane, 1);
    const struct fab_inventory *inv = &h.joined.inv;
    uint32_t segment = node_named(inv, "eth0");
    assert_int_equal(inv->ports[inv->nodes[n1].first_port].peer, peer);
    assert_int_equal(leads_to(inv, fab_inventory_find(inv, guid2)), segment);
    uint32_t p = inv->nodes[fab_inventory_find(inv, guid2)].first_port;
    assert_true(fab_prefix_is_ethernet(inv->subnets[inv->ports[p].subnet].prefix));
    assert_int_equal(inv->ports[p].state, FAB_PORT_ACTIVE);
    assert_string_equal(world_text(&h.joined, p, FAB_FACT_STATE), "up");
    assert_int_equal(h.joined.details.seen[p], FAB_SEEN_NODE);
}

/* n hosts of an interface each: connected, in one plane, with costs that are what the tree says. */
static void many(unsigned n, bool lldp, unsigned n_switches)
{
    OWNED(free) struct fab_report *reports = calloc(n, sizeof(*reports));
    const struct fab_report **list = calloc(n, sizeof(*list));
    SCOPED(fab_inventory) swept = {0};
    SCOPED(fab_joined) joined;
    struct fab_costs costs;
    for (unsigned i = 0; i < n; i++) {
        const char *name = printed("n%u", i);
        const char *mac = printed("02:00:00:%02x:%02x:%02x", i >> 16, i >> 8 & 0xff, i & 0xff);
        const char *address = printed("10.%u.%u.%u/8", i >> 16, i >> 8 & 0xff, i & 0xff);
        world_begin(&reports[i], name);
        interface(&reports[i], "e0", mac, address, "25000", lldp ? "00:21:5e:00:00:01" : NULL, "Ethernet1");
        world_finish(&reports[i]);
        list[i] = &reports[i];
    }
    struct fab_ethernet_plane plane = {"net", "10.0.0.0/8"};
    hand_finish(&swept);
    assert_int_equal(fab_join(NULL,
                              &(struct fab_join_input){&swept, list, NULL, n, &plane, 1, NULL, NULL, NULL},
                              &joined, NULL),
                     0);
    SCOPED(fab_planes) planes = planes_of(&joined.inv);
    assert_int_equal(planes.n, 1);
    assert_int_equal(planes.planes[0].n_devices, n);
    assert_int_equal(planes.planes[0].n_hosts, n);
    assert_int_equal(planes.planes[0].n_switches, n_switches);
    assert_true(node_named(&joined.inv, "net") != FAB_NONE || n_switches == 1);
    if (n <= 20000) {
        costs = costs_of(&planes.planes[0], 1);
        assert_int_equal(fab_cost_of(&costs.view, 0, 1), 20);
        assert_true(fab_cost_of(&costs.view, 0, n - 1) <= 60);
        fab_costs_destroy(&costs);
    }
    for (unsigned i = 0; i < n; i++)
        fab_report_destroy(&reports[i]);
    free(list);
}

TEST(test_many_interfaces)
{
    many(2, false, 1);
    many(200, false, 1);
    many(201, false, 3);
    many(100000, false, 504); /* 500 of them, three above, one on top */
    many(253, true, 1);
    many(254, true, 2); /* what does not fit a switch is cabled to the segment */
    many(500, true, 4);
}

TEST(test_too_many_subnets)
{
    SCOPED(hosts) h = {.n = 0};
    struct fab_ethernet_plane planes[FAB_MAX_SUBNETS + 1];
    char names[FAB_MAX_SUBNETS + 1][16], networks[FAB_MAX_SUBNETS + 1][24];
    struct fab_report *a = hosts_begin(&h, "a");
    for (unsigned i = 0; i <= FAB_MAX_SUBNETS; i++) {
        snprintf(names[i], sizeof(names[i]), "net%u", i);
        snprintf(networks[i], sizeof(networks[i]), "10.%u.0.0/16", i);
        planes[i] = (struct fab_ethernet_plane){names[i], networks[i]};
        const char *name = printed("e%u", i), *address = printed("10.%u.0.1/16", i);
        interface(a, name, NULL, address, NULL, NULL, NULL);
    }
    join(&h, planes, FAB_MAX_SUBNETS);
    assert_int_equal(h.joined.inv.n_subnets, FAB_MAX_SUBNETS);
    for (uint32_t s = 0; s < FAB_MAX_SUBNETS; s++) {
        assert_true(fab_prefix_is_ethernet(h.joined.inv.subnets[s].prefix));
        assert_true(s == 0 || h.joined.inv.subnets[s].prefix != h.joined.inv.subnets[s - 1].prefix);
    }
    assert_false(fab_prefix_is_ethernet(FAB_UNATTACHED) || fab_prefix_is_ethernet(FAB_DEFAULT_PREFIX));
    fab_joined_destroy(&h.joined);
    must_refuse(fab_join(NULL,
                         &(struct fab_join_input){&h.swept, h.list, NULL, h.n, planes, FAB_MAX_SUBNETS + 1,
                                                  NULL, NULL, NULL},
                         &h.joined, fresh_err()),
                PMIXFAB_ERR_RANGE, "subnets");
    assert_int_equal(h.joined.inv.n_nodes, 0);
}
