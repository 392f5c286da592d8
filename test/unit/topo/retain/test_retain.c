/* What keeps its place when a sweep does not see it any more. */
#include "test/unit/retain_world.h"
#include "topo/diff/diff.h"
#include "topo/geometry/geometry.h"

static bool is_port(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    const struct fab_port *wanted = cbdata;
    return inv->ports[port].node == wanted->node && inv->ports[port].num == wanted->num;
}

static bool is_not_port(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    return !is_port(inv, port, cbdata);
}

static uint32_t count_missing(const struct fab_inventory *inv, enum fab_node_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        n += inv->nodes[i].kind == kind && inv->nodes[i].missing;
    return n;
}

static bool missing_port(const struct fab_inventory *inv, uint64_t guid, unsigned num)
{
    uint32_t node = fab_inventory_find(inv, guid);
    uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, num);
    return port != FAB_NONE && inv->ports[port].missing;
}

static uint64_t guid_of(const struct fab_inventory *inv, const char *name)
{
    uint32_t node = fabric_find(inv, name);
    assert_int_not_equal(node, FAB_NONE);
    return inv->nodes[node].guid;
}

static void lose_guid(struct fab_inventory *inv, uint64_t guid)
{
    const char *name = node_name(inv, fab_inventory_find(inv, guid));
    assert_int_equal(fabric_lose(inv, name), PMIXFAB_OK);
}

/* The inventories of a test: what was published, what is swept now, and what comes of both. */
static struct {
    struct fab_inventory before, swept, out;
} t;

static void sweep_all(void)
{
    fab_inventory_destroy(&t.swept);
    copy(&t.before, &t.swept);
}

static void make(const char *kind)
{
    fab_inventory_destroy(&t.before);
    make_any(kind, &t.before);
    sweep_all();
}

static void keep_those(bool (*may)(const struct fab_inventory *, uint32_t, void *), void *cbdata)
{
    fab_inventory_destroy(&t.out);
    must_do(fab_retain(&t.before, &t.swept, may, cbdata, &t.out, fresh_err()));
}

static void keep_swept(void)
{
    keep_those(always, NULL);
}

/* These changes and no others, the first of this; a second of 0: there is none. Nothing is lost. */
static void assert_changes(const struct fab_inventory *from, const struct fab_inventory *to, unsigned first,
                           unsigned second, const char *what)
{
    SCOPED(fab_diff) diff;
    must_do(fab_diff_compute(from, to, &diff));
    assert_int_equal(diff.n_lost, 0);
    assert_int_equal(diff.n, second != 0 ? 2 : 1);
    assert_int_equal(diff.changes[0].kind, first);
    if (second != 0)
        assert_int_equal(diff.changes[1].kind, second);
    if (what != NULL)
        assert_string_equal(diff.changes[0].what, what);
}

/* ---- one thing at a time ------------------------------------------------------------------------- */

TEST(a_lost_host_stays_and_is_down)
{
    SCOPED(fab_inventory) seen;
    make("fattree2:4,2,3");
    must_do(fabric_lose(&t.swept, "node0005"));
    keep_swept();
    assert_int_equal(t.out.n_nodes, t.before.n_nodes);
    assert_int_equal(t.out.n_ports, t.before.n_ports);
    assert_int_equal(t.out.n_dangling, 0);
    for (uint32_t p = 0; p < t.out.n_ports; p++) {
        bool down = t.out.nodes[t.out.ports[p].node].missing ||
                    t.out.nodes[t.out.ports[t.out.ports[p].peer].node].missing;
        assert_int_equal(t.out.ports[p].peer, t.before.ports[p].peer);
        assert_int_equal(t.out.ports[p].state, down ? FAB_PORT_DOWN : t.before.ports[p].state);
        assert_int_equal(t.out.ports[p].width, t.before.ports[p].width);
    }
    assert_int_equal(count_missing(&t.out, FAB_HCA), 1);
    assert_true(is_missing(&t.out, guid_of(&t.before, "node0005")));
    assert_changes(&t.before, &t.out, FAB_CHANGE_HOST_MISSING, 0, "node0005 HCA-1");
    /* back again: nothing else changes, either */
    assert_changes(&t.out, &t.before, FAB_CHANGE_HOST_BACK, 0, NULL);
    must_do(fab_inventory_seen(&t.out, &seen, NULL));
    assert_true(fab_inventory_equal(&seen, &t.swept));
    fab_inventory_destroy(&seen);
}

/* One of two cables: the device stays, down, and so does its index. */
TEST(one_of_two_cables_stays_and_is_down)
{
    SCOPED(fab_inventory) again;
    make("dual fattree2:4,2,3");
    uint64_t guid = guid_of(&t.before, "node0003");
    must_do(fabric_unlink(&t.swept, "node0003", 2));
    assert_true(fab_inventory_lacks_port(&t.before, &t.swept));
    keep_swept();
    assert_int_equal(t.out.n_ports, t.before.n_ports);
    assert_int_equal(count_missing(&t.out, FAB_HCA), 0);
    assert_true(fab_inventory_has_missing(&t.out));
    assert_true(missing_port(&t.out, guid, 2) && !missing_port(&t.out, guid, 1));
    assert_changes(&t.before, &t.out, FAB_CHANGE_PORT_MISSING, 0, "leaf2[1] - node0003 HCA-1[2]");
    assert_changes(&t.out, &t.before, FAB_CHANGE_PORT_BACK, 0, NULL);

    /* the other one goes, too: the HCA is missing, with both */
    must_do(fabric_lose(&t.swept, "node0003"));
    again = keep(&t.out, &t.swept);
    assert_true(is_missing(&again, guid));
    assert_false(missing_port(&again, guid, 1) || missing_port(&again, guid, 2));
    assert_int_equal(again.n_ports, t.before.n_ports);
    assert_changes(&t.out, &again, FAB_CHANGE_HOST_MISSING, 0, NULL);

    /* the first is back, the second is not */
    sweep_all();
    must_do(fabric_unlink(&t.swept, "node0003", 2));
    fab_inventory_destroy(&t.out);
    t.out = keep(&again, &t.swept);
    assert_true(missing_port(&t.out, guid, 2) && !is_missing(&t.out, guid));
    assert_changes(&again, &t.out, FAB_CHANGE_HOST_BACK, FAB_CHANGE_PORT_MISSING, NULL);
    fab_inventory_destroy(&again);
}

/* Who may not stay, is at another port, or has lost its place to another host, is lost. */
TEST(a_port_that_has_no_place_goes)
{
    make("dual fattree2:4,2,3");
    uint64_t guid = guid_of(&t.before, "node0003");
    must_do(fabric_unlink(&t.swept, "node0003", 2));
    struct fab_port wanted = {.node = fabric_find(&t.before, "node0003"), .num = 2};
    keep_those(is_not_port, &wanted);
    assert_true(fab_inventory_equal(&t.out, &t.swept));

    /* moved to another switch, where there is room since another port lost its cable */
    sweep_all();
    uint64_t other = guid_of(&t.before, "node0007");
    uint32_t leaf3 = fab_inventory_port(&t.before, fabric_find(&t.before, "node0007"), 1);
    unsigned at = t.before.ports[t.before.ports[leaf3].peer].num;
    must_do(fabric_unlink(&t.swept, "node0007", 1));
    must_do(fabric_move(&t.swept, "node0003", 2, "leaf3", at));
    keep_swept();
    assert_false(missing_port(&t.out, guid, 2));
    assert_true(missing_port(&t.out, other, 1)); /* its place is node0003's, so it stays in that one's */

    /* its port GUID is at the other port now: there cannot be two */
    sweep_all();
    must_do(fabric_unlink(&t.swept, "node0003", 2));
    uint32_t hca = fabric_find(&t.swept, "node0003");
    uint32_t one = fab_inventory_port(&t.swept, hca, 1), two = fab_inventory_port(&t.swept, hca, 2);
    uint64_t swapped = t.swept.ports[one].guid;
    t.swept.ports[one].guid = t.swept.ports[two].guid;
    t.swept.ports[two].guid = swapped;
    keep_swept();
    assert_true(fab_inventory_equal(&t.out, &t.swept));
}

/* The port of its switch is up and leads nowhere: it restarts, so it is its own. */
TEST(a_port_that_is_up_is_still_its_own)
{
    make("fattree2:4,2,3");
    uint32_t hca = fabric_find(&t.before, "node0005");
    struct fab_port port = t.before.ports[t.before.ports[t.before.nodes[hca].first_port].peer];
    must_do(fabric_lose(&t.swept, "node0005"));
    t.swept.finished = false;
    port.node = fabric_find(&t.swept, "leaf2");
    port.state = FAB_PORT_INIT;
    must_do(fab_inventory_add_port(&t.swept, &port, NULL));
    must_do(fab_inventory_finish(&t.swept, NULL));
    assert_int_equal(t.swept.n_dangling, 1);
    keep_swept();
    assert_true(is_missing(&t.out, t.before.nodes[hca].guid));
    assert_int_equal(t.out.n_ports, t.before.n_ports);
}

/* The port at the other end of a host's cable. */
static struct fab_port switch_port(const struct fab_inventory *inv, const char *host)
{
    uint32_t node = fabric_find(inv, host);
    assert_int_not_equal(node, FAB_NONE);
    uint32_t peer = inv->ports[inv->nodes[node].first_port].peer;
    assert_int_not_equal(peer, FAB_NONE);
    return inv->ports[peer];
}

static void add_empty_port(struct fab_inventory *inv, const char *sw, unsigned num)
{
    const struct fab_port port = {
        .node = fabric_find(inv, sw), .peer = FAB_NONE, .num = (uint8_t)num, .state = FAB_PORT_INIT};
    inv->finished = false;
    must_do(fab_inventory_add_port(inv, &port, NULL));
    must_do(fab_inventory_finish(inv, NULL));
}

TEST(what_took_its_place_ends_it)
{
    /* another GUID in the same place */
    make("fattree2:4,2,3");
    must_do(fabric_replace(&t.swept, "node0005", 0x77aa, 1));
    keep_swept();
    assert_true(fab_inventory_equal(&t.out, &t.swept));
    /* the same HCA at another port, where another host was: that one stays where this one was */
    make("fattree2:4,2,3");
    must_do(fabric_lose(&t.swept, "node0008"));
    const struct fab_port place = switch_port(&t.before, "node0008"),
                          left = switch_port(&t.before, "node0005");
    must_do(fabric_move(&t.swept, "node0005", 1, "leaf3", place.num));
    keep_swept();
    assert_false(is_missing(&t.out, guid_of(&t.before, "node0005")));
    assert_true(is_missing(&t.out, guid_of(&t.before, "node0008")));
    assert_int_equal(switch_port(&t.out, "node0008").node, fabric_find(&t.out, "leaf2"));
    assert_int_equal(switch_port(&t.out, "node0008").num, left.num);
    assert_int_equal(t.out.n_ports, t.before.n_ports);
    /* and where there is no such place, in the first port of its switch that is free */
    make("fattree2:4,2,3");
    uint32_t leaf = fabric_find(&t.before, "leaf3");
    t.before.nodes[leaf].num_ports = t.swept.nodes[leaf].num_ports = 7;
    must_do(fabric_lose(&t.swept, "node0008"));
    must_do(fabric_move(&t.swept, "leaf1", 4, "leaf3", place.num));
    keep_swept();
    assert_int_equal(switch_port(&t.out, "node0008").num, 6);
    /* else nowhere */
    for (unsigned n = 0; n < 2; n++)
        add_empty_port(&t.swept, "leaf3", 6 + n);
    keep_swept();
    assert_int_equal(fab_inventory_find(&t.out, guid_of(&t.before, "node0008")), FAB_NONE);
}

/* A new HCA of a host, elsewhere: it is the one that is missing, of several the one of its own name. */
TEST(the_same_host_elsewhere_ends_it)
{
    make("fattree2:4,2,3");
    uint32_t first = fabric_find(&t.before, "node0005"), second = fabric_find(&t.before, "node0006");
    uint64_t one = t.before.nodes[first].guid, two = t.before.nodes[second].guid;
    uint32_t leaf = t.before.ports[t.before.ports[t.before.nodes[first].first_port].peer].node;
    t.before.nodes[first].host = t.before.nodes[second].host; /* two HCAs of node0006 now */
    sweep_all();
    lose_guid(&t.swept, one);
    lose_guid(&t.swept, two);
    keep_swept();
    assert_true(is_missing(&t.out, one) && is_missing(&t.out, two));

    /* the second one's successor, in a port that the leaf had not */
    struct fab_node node = t.before.nodes[second];
    const char *desc = fab_str(&t.before, node.desc), *host = fab_str(&t.before, node.host);
    uint32_t at, a, b, sw = fab_inventory_find(&t.swept, t.before.nodes[leaf].guid);
    node.guid = 0x77aa;
    t.swept.finished = false;
    node.desc = fab_inventory_string(&t.swept, desc, strlen(desc));
    node.host = node.name = fab_inventory_string(&t.swept, host, strlen(host));
    must_do(fab_inventory_add_node(&t.swept, &node, &at));
    struct fab_port port = {.guid = 0x77ab, .node = at, .num = 1, .state = FAB_PORT_ACTIVE};
    must_do(fab_inventory_add_port(&t.swept, &port, &a));
    port = (struct fab_port){.node = sw, .num = ++t.swept.nodes[sw].num_ports, .state = FAB_PORT_ACTIVE};
    must_do(fab_inventory_add_port(&t.swept, &port, &b));
    must_do(fab_inventory_link(&t.swept, a, b));
    must_do(fab_inventory_finish(&t.swept, NULL));
    keep_swept();
    assert_int_equal(fab_inventory_find(&t.out, two), FAB_NONE);
    assert_true(is_missing(&t.out, one));
}

TEST(a_port_guid_that_moved_ends_it)
{
    make("fattree2:4,2,3");
    uint32_t gone = fabric_find(&t.before, "node0005"), other = fabric_find(&t.swept, "node0008");
    uint64_t guid = t.before.ports[t.before.nodes[gone].first_port].guid;
    t.swept.ports[t.swept.nodes[other].first_port].guid = guid;
    must_do(fabric_lose(&t.swept, "node0005"));
    keep_swept();
    assert_int_equal(fab_inventory_find(&t.out, t.before.nodes[gone].guid), FAB_NONE);
}

/* ---- cutting ------------------------------------------------------------------------------------- */
