/* What an operator's hand did, put together from what changed. */
#include "test/unit/hands.h"

static struct fab_diff raw_diff(const struct fab_inventory *before, const struct fab_inventory *after)
{
    struct fab_diff diff;
    assert_int_equal(fab_diff_compute(before, after, &diff), 0);
    return diff;
}

/* No change is lost and none told twice. */
static struct fab_diff understand(const struct fab_inventory *before, const struct fab_inventory *after)
{
    SCOPED(fab_diff) raw = raw_diff(before, after);
    struct fab_diff diff = raw_diff(before, after);
    uint32_t n_raw = 0;
    assert_int_equal(fab_diff_correlate_with(before, after, NULL, &diff), 0);
    assert_int_equal(diff.n_lost, raw.n_lost);
    for (uint32_t i = 0; i < diff.n; i++) {
        const struct fab_change *c = &diff.changes[i];
        assert_true(c->n_raw > 0);
        assert_true(c->what[0] != '\0' && c->why[0] != '\0');
        assert_true(c->guid == 0 || c->subjects[0] != '\0');
        n_raw += c->n_raw;
        for (const char *s = c->subjects; *s != '\0'; s = fab_subject_next(s)) {
            for (const char *t = fab_subject_next(s); *t != '\0'; t = fab_subject_next(t))
                assert_string_not_equal(s, t);
        }
    }
    assert_int_equal(n_raw, raw.n);
    return diff;
}

/* A fabric, and one that a hand is laid on. */
struct pair {
    struct fab_inventory before, after;
};

static void pair_destroy(struct pair *p)
{
    fab_inventory_destroy(&p->before);
    fab_inventory_destroy(&p->after);
}

static struct pair make(const char *fabric)
{
    struct pair p = {.before = generated(fabric)};
    hands_prepare(&p.before, 254);
    p.after = inventory_copy(&p.before);
    return p;
}

static void make_anew(struct pair *p, const char *fabric)
{
    pair_destroy(p);
    *p = make(fabric);
}

static void assert_told(const struct fab_inventory *before, const struct fab_inventory *after,
                        const char *const *lines, uint32_t n)
{
    SCOPED(fab_diff) diff = understand(before, after);
    assert_lines(&diff, true, lines, n);
}

/* Why the change of this number is what it is; n_raw of 0: as many raw ones as it may be. */
static void assert_why(const struct fab_inventory *before, const struct fab_inventory *after, uint32_t i,
                       uint32_t n_raw, const char *why)
{
    SCOPED(fab_diff) diff = understand(before, after);
    assert_true(diff.n > i);
    assert_string_equal(diff.changes[i].why, why);
    if (n_raw != 0)
        assert_int_equal(diff.changes[i].n_raw, n_raw);
}

/* The whole story of a pair, forth and back; and why its changes are what they are. */
#define TOLD(before, after, ...) assert_told(before, after, LINES(__VA_ARGS__))
#define STORY(p, ...)            assert_told(&(p).before, &(p).after, LINES(__VA_ARGS__))
#define BACK(p, ...)             assert_told(&(p).after, &(p).before, LINES(__VA_ARGS__))
#define WHY(p, i, n, why)        assert_why(&(p).before, &(p).after, i, n, why)

static struct fab_port *port_at(struct fab_inventory *inv, const char *node, unsigned num)
{
    return &inv->ports[fab_inventory_port(inv, fabric_find(inv, node), num)];
}

TEST(test_hca_replaced)
{
    SCOPED(pair) p = make(SMALL);
    assert_int_equal(fabric_replace(&p.after, "node0002", 0x990002, 9), 0);
    STORY(p, "hca-replaced|node0002 HCA-1|0x0000000000100002|0x0000000000990002|node0002,leaf1");
    SCOPED(fab_diff) diff = understand(&p.before, &p.after);
    assert_string_equal(diff.changes[0].why,
                        "another GUID under the same host's and device's name at the same port leaf1[2]");
    assert_int_equal(diff.changes[0].n_raw, 4);
    assert_int_equal(diff.changes[0].guid, 0x990002);
    assert_int_equal(diff.n_lost, 2);
    BACK(p, "hca-replaced|node0002 HCA-1|0x0000000000990002|0x0000000000100002|node0002,leaf1");
    /* a slower one */
    assert_int_equal(fabric_set_rate(&p.after, "leaf1", 2, 4, FAB_EDR), 0);
    STORY(p, "hca-replaced|node0002 HCA-1|0x0000000000100002, 4xHDR|0x0000000000990002, "
             "4xEDR|node0002,leaf1");
    /* and put at another port as well */
    assert_int_equal(fabric_move(&p.after, "node0002", 1, "leaf2", 30), 0);
    STORY(p, "hca-replaced|node0002 HCA-1|0x0000000000100002|0x0000000000990002|node0002",
          "host-moved|node0002 HCA-1[1]|leaf1[2], 4xHDR|leaf2[30], 4xEDR|node0002,leaf1,leaf2");
}

/* The host has not said its name to the new one yet. */
TEST(test_hca_replaced_without_a_name)
{
    SCOPED(pair) p = make(SMALL);
    assert_int_equal(fabric_replace(&p.after, "node0002", 0x990002, 9), 0);
    SCOPED(fab_inventory) named = inventory_copy(&p.after);
    struct fab_node *node = &p.after.nodes[fab_inventory_find(&p.after, 0x990002)];
    node->host = fab_inventory_string(&p.after, "0x0000000000990002", 18);
    node->desc = fab_inventory_string(&p.after, "MT4123", 6);
    node->unnamed = 1;
    STORY(p, "hca-replaced|node0002 HCA-1|0x0000000000100002 node0002 HCA-1|0x0000000000990002 "
             "0x0000000000990002 HCA-1|node0002,0x0000000000990002,leaf1");
    WHY(p, 0, 6, "another GUID at the same port leaf1[2]");
    TOLD(&p.after, &named, "name|0x0000000000990002|0x0000000000990002|node0002|0x0000000000990002,node0002");
}

static void assert_back(const struct pair *p, const char *why)
{
    SCOPED(fab_diff) diff = understand(&p->before, &p->after);
    const struct fab_change *back = NULL;
    for (uint32_t i = 0; i < diff.n; i++)
        if (diff.changes[i].kind == FAB_CHANGE_HOST_BACK)
            back = &diff.changes[i];
    assert_non_null(back);
    assert_string_equal(back->why, why);
}

/* What was missing is back, with all of its cables, or some, or none, where they were. */
TEST(test_where_it_is_back)
{
    SCOPED(pair) p = make("random:4,40,6:5");
    uint32_t hca = 0;
    while (p.before.nodes[hca].kind != FAB_HCA || p.before.nodes[hca].n_ports != 2 ||
           p.before.ports[p.before.nodes[hca].first_port].peer == FAB_NONE ||
           p.before.ports[p.before.nodes[hca].first_port + 1].peer == FAB_NONE)
        hca++;
    const struct fab_port *port = &p.before.ports[p.before.nodes[hca].first_port];
    const char *host = fab_str(&p.before, p.before.nodes[hca].host), *sw[2];
    for (int i = 0; i < 2; i++)
        sw[i] = fab_str(&p.before, p.before.nodes[p.before.ports[port[i].peer].node].name);
    p.before.nodes[hca].missing = 1;
    assert_back(&p, "it is seen again, at its old place");
    assert_int_equal(fabric_move(&p.after, host, port[0].num, sw[1], 150), 0);
    assert_back(&p, "it is seen again, with some of its cables at another place");
    assert_int_equal(fabric_move(&p.after, host, port[1].num, sw[0], 151), 0);
    assert_back(&p, "it is seen again, at another place");
    assert_int_equal(fabric_unlink(&p.after, host, port[1].num), 0);
    assert_back(&p, "it is seen again, at another place");
}

TEST(test_states_of_no_link)
{
    SCOPED(pair) p = make(SMALL);
    struct fab_port *was = port_at(&p.before, "leaf1", 3), *is = port_at(&p.after, "leaf1", 3);
    was->state = FAB_PORT_DOWN;
    is->state = FAB_PORT_LOOPED;
    STORY(p, "other|leaf1[3]: state|DOWN|LOOPED|leaf1");
    WHY(p, 0, 1, "both ends of its cable are on the same node");
    assert_why(&p.after, &p.before, 0, 1, "its cable no longer has both ends on the same node");
    is->state = FAB_PORT_DISABLED;
    WHY(p, 0, 1, "the port was switched off");
    assert_why(&p.after, &p.before, 0, 1, "the port is no longer switched off");
    is->state = FAB_PORT_INIT;
    WHY(p, 0, 1, "found by the sweep");
}

TEST(test_cable_moved)
{
    SCOPED(pair) p = make(SMALL);
    assert_int_equal(fabric_move(&p.after, "leaf1", 3, "spine1", 30), 0);
    STORY(p, "cable-moved|leaf1[3] - spine1[1]|spine1[1]|spine1[30]|leaf1,spine1");
    assert_int_equal(fabric_move(&p.after, "spine1", 30, "leaf1", 31), 0);
    STORY(p, "cable-moved|leaf1[3] - spine1[1]|leaf1[3] - spine1[1]|leaf1[31] - spine1[30]|leaf1,spine1");
}

/* Two hosts swap their HCAs, their cables, or their names. */
TEST(test_two_swap_places)
{
    SCOPED(pair) p = make(SMALL);
    hand_names(&p.before, NULL);
    rename_to(&p.after, "node0001", "tmp HCA-1");
    rename_to(&p.after, "node0003", "node0001 HCA-1");
    hand_names(&p.after, NULL);
    rename_to(&p.after, "tmp", "node0003 HCA-1");
    hand_names(&p.after, NULL);
    STORY(p, "name|node0001 HCA-1|node0001 HCA-1|node0003 HCA-1|node0001,node0003",
          "name|node0003 HCA-1|node0003 HCA-1|node0001 HCA-1|node0003,node0001");
    /* and now the cables as well, so that each GUID is where the other was: two HCAs were replaced */
    assert_int_equal(fabric_move(&p.after, "node0001", 1, "leaf1", 30), 0);
    assert_int_equal(fabric_move(&p.after, "node0003", 1, "leaf2", 1), 0);
    assert_int_equal(fabric_move(&p.after, "node0001", 1, "leaf1", 1), 0);
    STORY(p, "hca-replaced|node0001 HCA-1|0x0000000000100000|0x0000000000100004|node0001,leaf1",
          "hca-replaced|node0003 HCA-1|0x0000000000100004|0x0000000000100000|node0003,leaf2");
    make_anew(&p, SMALL);
    assert_int_equal(fabric_move(&p.after, "node0001", 1, "leaf2", 30), 0);
    assert_int_equal(fabric_move(&p.after, "node0003", 1, "leaf1", 1), 0);
    assert_int_equal(fabric_move(&p.after, "node0001", 1, "leaf2", 1), 0);
    STORY(p, "host-moved|node0001 HCA-1[1]|leaf1[1]|leaf2[1]|node0001,leaf1,leaf2",
          "host-moved|node0003 HCA-1[1]|leaf2[1]|leaf1[1]|node0003,leaf2,leaf1");
}

TEST(test_two_hosts_of_one_name)
{
    SCOPED(pair) p = make(SMALL);
    hand_names(&p.before, NULL);
    rename_to(&p.after, "node0004", "node0001 HCA-1");
    hand_names(&p.after, NULL);
    STORY(p, "name|node0004 HCA-1|node0004 HCA-1|node0001 HCA-1|node0004,node0001");
    WHY(p, 0, 0,
        "two hosts claim the name node0001: 0x0000000000100006 at leaf2[2], and "
        "0x0000000000100000 at leaf1[1]");
    BACK(p, "name|node0001 HCA-1 (0x0000000000100006)|node0001 HCA-1|node0004 HCA-1|node0001,node0004");
    assert_why(&p.after, &p.before, 0, 0,
               "two hosts claimed the name node0001: 0x0000000000100006 at leaf2[2] has its own now");
    /* the second one goes, and comes again */
    SCOPED(fab_inventory) one = inventory_copy(&p.after);
    SCOPED_BY(hand_without_free) struct hand_without without = hand_without_new(&p.after);
    without.node[fab_inventory_find(&p.after, 0x100006)] = true;
    for (uint32_t i = 0; i < p.after.n_ports; i++) {
        uint32_t peer = p.after.ports[i].peer;
        without.port[i] = peer != FAB_NONE && p.after.nodes[p.after.ports[peer].node].guid == 0x100006;
    }
    fab_inventory_destroy(&one);
    hand_copy(&one, &p.after, &without, 1);
    hand_finish(&one);
    TOLD(
        &one, &p.after,
        "device-added|node0001 HCA-1 (0x0000000000100006)[1]||0x0000000000100006 at leaf2[2]|node0001,leaf2");
    TOLD(&p.after, &one,
         "device-lost|node0001 HCA-1 (0x0000000000100006)[1]|0x0000000000100006 at leaf2[2]||node0001,leaf2");
    assert_why(&one, &p.after, 0, 0,
               "a cable at leaf2[2] came; another HCA has the same host and device name: check for two hosts "
               "with one name");
    /* neither of them is mistaken for the other's replacement */
    assert_int_equal(fabric_replace(&p.after, "node0001", 0x990001, 9), 0);
}

/* ---- random edits: nothing is lost, and the same every time --------------------------------------- */

TEST(test_random_edits)
{
    static const char *const fabrics[] = {"fattree2:4,2,4,1", "dragonfly:2,3,1", "torus:3,3:1",
                                          "random:6,25,8:3"};
    uint32_t seen[FAB_CHANGE_KINDS] = {0};
    for (uint64_t seed = 1; seed <= 500; seed++) {
        SCOPED(pair) p = make(fabrics[seed % 4]);
        uint64_t dice = seed * 77;
        hand_names(&p.before, NULL);
        for (unsigned i = 0; i < 1 + seed % 7; i++) {
            if (!has_switch_and_hca(&p.after))
                break;
            random_edit(&p.after, &dice);
        }
        SCOPED(fab_diff)
        diff = understand(&p.before, &p.after), again = understand(&p.before, &p.after),
        back = understand(&p.after, &p.before);
        assert_int_equal(diff.n, again.n);
        assert_true((diff.n == 0) == (back.n == 0));
        for (uint32_t i = 0; i < diff.n; i++) {
            char one[4000], two[4000];
            line_of(&diff.changes[i], true, one, sizeof(one));
            line_of(&again.changes[i], true, two, sizeof(two));
            assert_string_equal(one, two);
            seen[diff.changes[i].kind]++;
        }
    }
    for (int kind = FAB_CHANGE_HOST_ADDED; kind <= FAB_CHANGE_PORT_DOWN; kind++)
        if (seen[kind] == 0 && kind != FAB_CHANGE_HOST_ADDED && kind != FAB_CHANGE_SWITCH_ADDED &&
            kind != FAB_CHANGE_DEVICE_ADDED && kind != FAB_CHANGE_PORT_STATE &&
            (kind <= FAB_CHANGE_OTHER || kind >= FAB_CHANGE_HCA_REPLACED))
            fail_msg("no %s is told", fab_change_name((enum fab_change_kind)kind));
    assert_int_equal(seen[FAB_CHANGE_PORT_STATE], 0);
}

TEST(test_from_nothing_and_errors)
{
    SCOPED(pair) p = make(SMALL);
    SCOPED(fab_inventory) nothing = {0};
    TOLD(&nothing, &p.after, "host-added|node0001||1 device: 0x0000000000100000 at leaf1[1]|node0001,leaf1",
         "host-added|node0002||1 device: 0x0000000000100002 at leaf1[2]|node0002,leaf1",
         "host-added|node0003||1 device: 0x0000000000100004 at leaf2[1]|node0003,leaf2",
         "host-added|node0004||1 device: 0x0000000000100006 at leaf2[2]|node0004,leaf2",
         "switch-added|leaf1||0x0000000000200000|leaf1,spine1,spine2",
         "switch-added|leaf2||0x0000000000200001|leaf2,spine1,spine2",
         "switch-added|spine1||0x0000000000200002|spine1", "switch-added|spine2||0x0000000000200003|spine2",
         "other|subnet 0: prefix||0xfe80000000000000|");
    SCOPED(fab_diff) diff = raw_diff(&p.before, &p.after);
    assert_int_equal(fab_diff_correlate_with(&p.before, &p.after, NULL, &diff), 0);
    assert_int_equal(diff.n, 0);
    p.before.finished = false;
    assert_int_equal(fab_diff_correlate_with(&p.before, &p.after, NULL, &diff), PMIXFAB_ERR_INVAL);
}

/* A host of several devices is one change; three hosts claim one name. */
TEST(test_hosts_that_are_called_otherwise)
{
    SCOPED(pair) p = make("rails:1,4,3,1");
    for (unsigned card = 1; card <= 4; card++)
        for (unsigned host = 1; host <= 2; host++)
            rename_to(&p.after, printed(card == 1 ? "node000%u" : "node000%u-%u", host, card),
                      printed("new%u HCA-%u", host, host == 1 && card == 2 ? 7 : card));
    hand_names(&p.after, NULL);
    STORY(p, "name|node0001|node0001|new1|node0001,new1", "name|node0002|node0002|new2|node0002,new2");
    WHY(p, 0, 6, "the same GUIDs under another host's name; device HCA-2 is called HCA-7 now");
    WHY(p, 1, 6, "the same GUIDs under another host's name");
    make_anew(&p, SMALL);
    for (unsigned i = 3; i <= 4; i++)
        rename_to(&p.after, printed("node%04u", i), "node0002 HCA-1");
    hand_names(&p.after, NULL);
    WHY(p, 0, 0,
        "3 hosts claim the name node0002: 0x0000000000100004 at leaf2[1], and "
        "0x0000000000100002 at leaf1[2]");
}

/* What is back is back, unless it waits for a subnet manager that is not there. */
TEST(what_is_back_without_a_subnet_manager_is_inactive)
{
    struct pair p = make("fattree2:4,2,4");
    uint32_t hca = 0;
    while (p.after.nodes[hca].kind != FAB_HCA)
        hca++;
    struct fab_port *port = &p.after.ports[p.after.nodes[hca].first_port];
    p.before.nodes[hca].missing = 1;
    const unsigned states[] = {FAB_PORT_ACTIVE, FAB_PORT_ARMED, FAB_PORT_INIT};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        port->state = (uint8_t)states[i];
        SCOPED(fab_diff) diff = understand(&p.before, &p.after);
        bool back = false, inactive = false;
        for (uint32_t k = 0; k < diff.n; k++)
            back |= diff.changes[k].kind == FAB_CHANGE_HOST_BACK;
        assert_true(back);
        fab_diff_mark_inactive(&p.after, &diff);
        for (uint32_t k = 0; k < diff.n; k++)
            inactive |= diff.changes[k].kind == FAB_CHANGE_INACTIVE;
        assert_int_equal(inactive, states[i] != FAB_PORT_ACTIVE);
    }
    pair_destroy(&p);
}
