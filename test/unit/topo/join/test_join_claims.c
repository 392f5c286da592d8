/* What several hosts say is theirs, and what several devices of one host say of themselves: nobody loses one.
 */
#include "test/unit/join_hosts.h"
#include "test/unit/report_liar.h"
#include "topo/base/natural.h"
#include "topo/join/join_state.h"

static const struct fab_ethernet_plane planes[] = {{"lan", "10.0.0.0/16"}, {"san", "10.1.0.0/16"}};

/* cbdata: the host that has everything; NULL: none. */
static const char *holder(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node)
{
    assert_true(kind == FAB_FACT_NODE_GUID || kind == FAB_FACT_PORT_GUID || kind == FAB_FACT_MAC ||
                kind == FAB_FACT_SYSTEM_GUID);
    assert_true(value != 0 && (node != 0) == (kind == FAB_FACT_SYSTEM_GUID));
    return cbdata;
}

static bool is_unsettled(void *cbdata, uint64_t guid)
{
    (void)cbdata;
    return guid == 0x100;
}

static void join(struct hosts *h, const char *held_by)
{
    const struct fab_prior_owners past = {holder, (void *)held_by, NULL, NULL};
    hosts_join(h, planes, 2, &past);
}

/* The only port of a host's device. */
static uint32_t port_of(const struct hosts *h, const char *name, const char *device)
{
    const struct fab_inventory *inv = &h->joined.inv;
    uint32_t found = FAB_NONE;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA && strcmp(fab_str(inv, inv->nodes[i].host), name) == 0 &&
            strcmp(fab_str(inv, inv->nodes[i].name), device) == 0) {
            assert_int_equal(found, FAB_NONE);
            assert_int_equal(inv->nodes[i].n_ports, 1);
            found = inv->nodes[i].first_port;
        }
    if (found == FAB_NONE)
        fail_msg("%s has no %s", name, device);
    return found;
}

static uint64_t node_guid(const struct hosts *h, uint32_t port)
{
    return h->joined.inv.nodes[h->joined.inv.ports[port].node].guid;
}

static unsigned flags(const struct hosts *h, uint32_t port, enum fab_fact kind)
{
    const struct fab_detail *detail = world_detail(&h->joined, port, kind);
    assert_non_null(detail);
    return detail->flags & (FAB_DETAIL_CONFLICT | FAB_DETAIL_OUTRANKED);
}

#define KEEPS  FAB_DETAIL_CONFLICT
#define YIELDS (FAB_DETAIL_CONFLICT | FAB_DETAIL_OUTRANKED)

/* h1 says it has what h5 has. Who was published with it keeps it; else the first. */
TEST(test_a_claim_takes_nothing_away)
{
    static const char *const past[] = {"h5", NULL, "h1", "h9"};
    for (unsigned i = 0; i < 4; i++) {
        SCOPED(hosts) h = {.n = 0};
        const bool first = i != 0;
        hosts_add(&h, "h5",
                  "verbs: name mlx5_0, port 1, node-guid #500, system-guid #599, port-guid #501\n"
                  "ethernet: interface eth0, mac 02:00:00:00:00:05, address 10.0.0.5/16");
        hosts_add(&h, "h1",
                  "verbs: name x, port 1, node-guid #500, port-guid #501\n"
                  "ethernet: interface e, mac 02:00:00:00:00:05, address %s",
                  i == 3 ? "10.1.0.9/16" : "10.0.0.9/16");
        join(&h, past[i]);
        uint32_t real = port_of(&h, "h5", "mlx5_0"), fake = port_of(&h, "h1", "x");
        assert_true((node_guid(&h, real) == 0x500) == !first && (node_guid(&h, fake) == 0x500) == first);
        assert_true(FAB_GUID_IS_MADE_UP(node_guid(&h, first ? real : fake)));
        assert_true((h.joined.inv.ports[real].guid == 0x501) == !first);
        assert_string_equal(world_text(&h.joined, real, FAB_FACT_NODE_GUID), "0x0000000000000500");
        assert_int_equal(flags(&h, real, FAB_FACT_NODE_GUID), first ? YIELDS : KEEPS);
        assert_int_equal(flags(&h, fake, FAB_FACT_NODE_GUID), first ? KEEPS : YIELDS);
        assert_int_equal(flags(&h, real, FAB_FACT_PORT_GUID), first ? YIELDS : KEEPS);
        assert_int_equal(flags(&h, real, FAB_FACT_SYSTEM_GUID), 0);
        real = port_of(&h, "h5", "eth0");
        fake = port_of(&h, "h1", "e");
        const uint64_t guid = FAB_ETHERNET_GUID | UINT64_C(0x020000000005);
        assert_true(node_guid(&h, first ? fake : real) == guid && node_guid(&h, first ? real : fake) != guid);
        assert_int_equal(flags(&h, real, FAB_FACT_MAC), first ? YIELDS : KEEPS);
        assert_int_equal(flags(&h, fake, FAB_FACT_MAC), first ? KEEPS : YIELDS);
        assert_int_not_equal(h.joined.inv.ports[real].peer, FAB_NONE);
        assert_int_equal(h.joined.n_refused, 0);
        assert_string_equal(
            h.lines,
            first
                ? "h1: the node GUID of x is also claimed by h5 (and 2 more)\n"
                  "h5: the node GUID of mlx5_0 is also that of a device of h1, which keeps it (and 2 more)\n"
                : "h1: the node GUID of x is also that of a device of h5, which keeps it (and 2 more)\n"
                  "h5: the node GUID of mlx5_0 is also claimed by h1 (and 2 more)\n");
    }
}

/* What a sweep sees is whose the sweep says. What it names nobody for is nobody's while two hosts claim it,
 * whoever had it before. */
TEST(test_claims_to_what_is_swept)
{
    for (unsigned round = 0; round < 3; round++) {
        SCOPED(hosts) h = {.n = 0};
        hand_star(&h.swept, 0x100, 1, (const char *[]){round == 0 ? "h5" : "MT4123"}, 1);
        hosts_add(&h, "h1", "verbs: name mlx5_0, port 1, node-guid #100, port-guid #101");
        hosts_add(&h, "h5", "verbs: name mlx5_0, port 1, node-guid #100, port-guid #101");
        join(&h, round == 2 ? "h5" : NULL);
        const struct fab_node *node = hosts_node(&h, 0x100);
        assert_int_equal(h.joined.n_refused, round == 0);
        assert_int_equal(h.joined.n_contested, round > 0);
        if (round == 0) {
            assert_int_equal(h.joined.inv.n_nodes, 2);
            assert_int_equal(node->first_port, port_of(&h, "h5", "mlx5_0"));
            assert_int_equal(flags(&h, node->first_port, FAB_FACT_NODE_GUID), 0);
            assert_string_equal(h.lines, "h1: 1 item is not joined: the devices belong to h5\n");
            continue;
        }
        assert_true(h.joined.contested[0] == 0x100 && node->unnamed == 1);
        assert_int_equal(h.joined.inv.n_nodes, 4);
        assert_int_equal(flags(&h, node->first_port, FAB_FACT_NODE_GUID), 0);
        for (unsigned i = 0; i < 2; i++) {
            const uint32_t own = port_of(&h, i == 0 ? "h1" : "h5", "mlx5_0");
            assert_int_equal(flags(&h, own, FAB_FACT_PORT_GUID), YIELDS);
            assert_true(FAB_GUID_IS_MADE_UP(h.joined.inv.ports[own].guid));
            assert_int_equal(h.joined.inv.ports[own].peer, FAB_NONE);
        }
        assert_string_equal(h.lines,
                            "h1: the node GUID of mlx5_0 is also claimed by h5; it belongs to no host\n"
                            "h5: the node GUID of mlx5_0 is also claimed by h1; it belongs to no host\n");
    }
}

/* A host that claims a card stands nowhere near it for that, though it says the card's system GUID. One that
 * is alone has it, also by a long name and a short one, unless claims to it came and went. */
TEST(test_claims_to_what_nobody_named)
{
    static const char *const claim =
        "verbs: name mlx5_0, port 1, node-guid #100, port-guid #101, system-guid #199, state up, "
        "type InfiniBand";
    for (unsigned round = 0; round < 4; round++) {
        SCOPED(hosts) h = {.n = 0};
        const struct fab_prior_owners past = {holder, NULL, NULL, round == 3 ? is_unsettled : NULL};
        hand_star(&h.swept, 0x100, 1, (const char *[]){"MT4123"}, 1);
        h.swept.nodes[1].system_guid = h.swept.nodes[0].system_guid = 0x199;
        hosts_add(&h, "h5", claim);
        if (round == 0)
            hosts_add(&h, "h1", claim);
        if (round == 2)
            hosts_add(&h, "h5.x", claim);
        hosts_join(&h, planes, 2, &past);
        const struct fab_node *node = hosts_node(&h, 0x100);
        const bool alone = round == 1 || round == 2;
        assert_int_equal(node->unnamed, !alone);
        assert_int_equal(h.joined.n_contested, round == 0);
        const uint32_t own = port_of(&h, "h5", "mlx5_0");
        assert_int_equal(own == node->first_port, alone);
        if (!alone) {
            assert_int_equal(h.joined.inv.ports[own].sibling, 0);
            assert_int_equal(h.joined.inv.ports[own].peer, FAB_NONE);
        }
        if (round == 3)
            assert_string_equal(h.lines, "h5: the node GUID of mlx5_0 was claimed by others again and again; "
                                         "it belongs to no host for now\n");
    }
}

/* Two reports of one host do not double its devices. */
TEST(test_two_reports_of_one_host)
{
    SCOPED(hosts) h = {.n = 0};
    hand_node(&h.swept, FAB_HCA, 0x100, "n", 1, 0);
    hand_finish(&h.swept);
    hand_names(&h.swept, NULL);
    hosts_add(&h, "n.x",
              "verbs: name long, port 1, node-guid #900\n"
              "ethernet: interface e0, mac 02:00:00:00:00:05, address 10.0.0.5/16\n"
              "ethernet: interface e1, mac 02:00:00:00:00:06, address 10.0.0.6/16");
    hosts_add(&h, "n",
              "verbs: name short, port 1, node-guid #900\n"
              "ethernet: interface e0, mac 02:00:00:00:00:05, address 10.0.0.5/16\n"
              "ethernet: interface e1, mac 02:00:00:00:00:06, address 10.0.0.6/16");
    join(&h, "n");
    assert_string_equal(h.lines,
                        "n.x: 1 item is not joined: the devices belong to n\n"
                        "n.x: e0 is left out of plane lan: its MAC is that of a device of n (and 1 more)\n");
    assert_int_equal(flags(&h, port_of(&h, "n", "short"), FAB_FACT_NODE_GUID), 0);
    assert_int_equal(flags(&h, port_of(&h, "n", "e0"), FAB_FACT_MAC), 0);
}

/* An item of a driver that gives all of its devices one node GUID. */
#define CARD(rest) "verbs: port 1, node-guid #020000fffe000000, " rest "\n"

/* A driver that gives all of its devices one node GUID. */
TEST(test_one_guid_for_all)
{
    SCOPED(hosts) h = {.n = 0};
    hosts_add(&h, "a",
              CARD("name usnic_0, pci 0000:0b:00:00") CARD("name usnic_1, pci 0000:0c:00:00")
                  CARD("name usnic_2, pci 0000:88:00:00")
                      CARD("port-guid #901, pci 0000:0c:00:00")  /* a port of usnic_1, by its PCI function */
              CARD("port-guid #902, pci 0000:99:00:00"));        /* of none of them */
    hosts_add(&h, "b", CARD("name usnic_0, pci 0000:0b:00:00")); /* alone on its host */
    join(&h, NULL);
    const struct fab_inventory *inv = &h.joined.inv;
    assert_int_equal(inv->n_nodes, 5);
    assert_true(node_guid(&h, port_of(&h, "b", "usnic_0")) == UINT64_C(0x020000fffe000000));
    assert_int_equal(flags(&h, port_of(&h, "b", "usnic_0"), FAB_FACT_NODE_GUID), 0);
    uint32_t p = port_of(&h, "a", "usnic_0"), q = port_of(&h, "a", "usnic_2");
    assert_true(FAB_GUID_IS_MADE_UP(node_guid(&h, p)) && FAB_GUID_IS_MADE_UP(node_guid(&h, q)));
    assert_true(node_guid(&h, p) != node_guid(&h, q));
    assert_int_equal(flags(&h, p, FAB_FACT_NODE_GUID), KEEPS);
    assert_int_not_equal(h.joined.details.places[p].card, h.joined.details.places[q].card);
    unsigned two = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (strcmp(fab_str(inv, inv->nodes[i].name), "usnic_1") == 0)
            two = inv->nodes[i].n_ports;
    assert_int_equal(two, 2);
    assert_string_equal(h.lines, "");
    const uint64_t was = node_guid(&h, p);
    hosts_silence(&h); /* the numbers that are made up do not depend on who else is there */
    hosts_add(&h, "a", CARD("name usnic_9, pci 0000:07:00:00") CARD("name usnic_0, pci 0000:0b:00:00"));
    hosts_add(&h, "Z", CARD("name usnic_0, pci 0000:0b:00:00"));
    join(&h, NULL);
    assert_true(node_guid(&h, port_of(&h, "a", "usnic_0")) == was);
}

/* The ids of such devices, node and system image GUID together, are not another host's to take either. */
TEST(test_claims_to_ids)
{
    for (unsigned round = 0; round < 4; round++) {
        SCOPED(hosts) h = {.n = 0};
        const bool held = round % 2 == 0;
        for (unsigned i = 0; i < 2; i++) {
            hosts_add(&h, i == 0 ? "h5" : "h1", CARD("name u0, system-guid #800"));
            if (i == 0 || round < 2) /* h1: two of them, or one alone */
                report_say(&h.reports[i], CARD("name u1, system-guid #801"));
        }
        join(&h, held ? "h5" : NULL);
        assert_int_equal(h.joined.hosts[1].devices, 2);
        assert_int_equal(flags(&h, port_of(&h, "h5", "u0"), FAB_FACT_NODE_GUID), held ? KEEPS : YIELDS);
        assert_int_equal(flags(&h, port_of(&h, "h1", "u0"), FAB_FACT_NODE_GUID), held ? YIELDS : KEEPS);
        assert_int_equal(FAB_GUID_IS_MADE_UP(node_guid(&h, port_of(&h, "h1", "u0"))), held || round < 2);
        assert_true(FAB_GUID_IS_MADE_UP(node_guid(&h, port_of(&h, "h5", "u0"))));
    }
}

/* Nor is the id of another port of a node that the sweep has, even where it was another's before. */
TEST(test_claims_to_an_id_of_the_sweep)
{
    SCOPED(hosts) h = {.n = 0};
    HAND_STAR(&h.swept, 0x100, 2, "h5");
    hosts_add(&h, "h5", "verbs: name mlx5_0, port 2, node-guid #100, system-guid #199");
    hosts_begin(&h, "h1");
    for (unsigned i = 0; i < 3; i++)
        report_say(&h.reports[1], "verbs: name x%u, port 2, node-guid #100, system-guid #199", i);
    join(&h, "h1");
    const struct fab_node *node = &h.joined.inv.nodes[fab_inventory_find(&h.joined.inv, 0x100)];
    assert_int_equal(node->n_ports, 2);
    assert_int_equal(flags(&h, node->first_port + 1, FAB_FACT_NODE_GUID), KEEPS);
    assert_int_equal(flags(&h, port_of(&h, "h1", "x1"), FAB_FACT_NODE_GUID), YIELDS);
}

/* Two functions without a name are two, one function's ports are one's, and so are ports that are alone. */
TEST(test_devices_without_a_name)
{
    SCOPED(hosts) h = {.n = 0};
    hosts_add(&h, "a",
              CARD("pci 0000:0b:00:00, port-guid #901") CARD("pci 0000:0b:00:00, port-guid #902")
                  CARD("pci 0000:0c:00:00, port-guid #903"));
    hosts_add(&h, "b",
              "verbs: node-guid #700, port-guid #701, name x, pci 0000:01:00:00\n"
              "verbs: node-guid #700, port-guid #702");
    join(&h, NULL);
    assert_int_equal(h.joined.inv.n_nodes, 3);
    assert_int_equal(h.joined.inv.nodes[fab_inventory_find(&h.joined.inv, 0x700)].n_ports, 2);
}

/* One of several devices with the GUID of a swept node is it: that with the port's GUID, or the first. */
TEST(test_one_guid_for_all_and_swept)
{
    for (unsigned round = 0; round < 2; round++) {
        SCOPED(hosts) h = {.n = 0};
        HAND_STAR(&h.swept, UINT64_C(0x020000fffe000000), 1, "a");
        hosts_add(&h, "a", CARD("name u0, pci 0000:0b:00:00") CARD("name u1, pci 0000:0c:00:00, port-guid%s"),
                  round == 0 ? "" : " #020000fffe000001");
        join(&h, NULL);
        assert_int_equal(h.joined.inv.n_nodes, 3);
        assert_true(node_guid(&h, port_of(&h, "a", round == 0 ? "u0" : "u1")) ==
                    UINT64_C(0x020000fffe000000));
        assert_string_equal(h.lines, "");
    }
}

/* Whatever others say: a host has as many devices beside them as alone. */
TEST(test_nobody_loses_a_device)
{
    static const char *const names[HOSTS_MAX] = {"node0001", "node0002", "node0003",  "node0004",
                                                 "n9",       "x1",       "localhost", "zz"};
    uint64_t seed = 41;
    unsigned disputed = 0, yielded = 0;
    for (unsigned round = 0; round < 500; round++) {
        SCOPED(hosts) h = {.n = 0};
        uint32_t alone[HOSTS_MAX];
        assert_int_equal(fabric_parse("fattree2:2,1,3", &h.swept), 0);
        for (uint32_t i = 0; i < h.swept.n_nodes; i++)
            h.swept.nodes[i].unnamed = h.swept.nodes[i].kind == FAB_HCA && liar_below(&seed, 3) == 0;
        fabric_unlink(&h.swept, "node0002", 1);
        if (liar_below(&seed, 2) == 0)
            h.swept.ports[h.swept.nodes[fabric_find(&h.swept, "node0002")].first_port].guid = 0;
        for (h.n = 0; h.n < HOSTS_MAX; h.n++) {
            liar_report(&h.reports[h.n], names[h.n], &h.swept, &seed);
            h.list[h.n] = &h.reports[h.n];
        }
        const char *past = names[liar_below(&seed, HOSTS_MAX)];
        for (uint32_t i = 0; i < HOSTS_MAX; i++) {
            const struct fab_prior_owners nothing = {holder, NULL, NULL, NULL};
            SCOPED(fab_joined) joined;
            assert_int_equal(fab_join(NULL,
                                      &(struct fab_join_input){&h.swept, &h.list[i], NULL, 1, planes, 2,
                                                               &nothing, NULL, NULL},
                                      &joined, NULL),
                             0);
            alone[i] = joined.hosts[0].devices;
        }
        join(&h, past);
        for (uint32_t i = 0; i < HOSTS_MAX; i++) {
            uint32_t at = 0;
            for (uint32_t k = 0; k < HOSTS_MAX; k++)
                at += fab_natural_cmp(names[k], names[i]) < 0;
            if (h.joined.hosts[at].devices < alone[i])
                fail_msg("round %u: %s has %u devices, alone %u", round, names[i], h.joined.hosts[at].devices,
                         alone[i]);
        }
        const struct fab_details *d = &h.joined.details;
        for (uint32_t f = 0; f < d->first[d->n_ports]; f++) {
            disputed += (d->facts[f].flags & FAB_DETAIL_CONFLICT) != 0;
            yielded += (d->facts[f].flags & FAB_DETAIL_OUTRANKED) != 0;
        }
    }
    assert_true(disputed > 500 && yielded > 500);
}
