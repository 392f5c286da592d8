/* What keeps its place when a sweep does not see it any more. Random losses on every kind of fabric are held
 * against what is said of keeping, written here once more from the cables alone, and against the costs of the
 * fabric as it is seen. */

#include "test/unit/generated.h"
#include "topo/diff/diff.h"
#include "topo/geometry/geometry.h"
#include "topo/retain/retain.h"

static bool always(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    (void)before, (void)port, (void)cbdata;
    return true;
}

/* All but the ports of the node with this name. */
static bool all_but(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    return strcmp(node_name(before, before->ports[port].node), cbdata) != 0;
}

static bool is_port(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    const struct fab_port *wanted = cbdata;
    return inv->ports[port].node == wanted->node && inv->ports[port].num == wanted->num;
}

static bool is_not_port(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    return !is_port(inv, port, cbdata);
}

static void keep(const struct fab_inventory *before, const struct fab_inventory *swept,
                 struct fab_inventory *out)
{
    must_do(fab_retain(before, swept, always, NULL, out, fresh_err()));
}

static void copy(const struct fab_inventory *from, struct fab_inventory *to)
{
    assert_int_equal(fab_inventory_copy(to, from), PMIXFAB_OK);
}

static uint32_t count_missing(const struct fab_inventory *inv, enum fab_node_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        n += inv->nodes[i].kind == kind && inv->nodes[i].missing;
    return n;
}

static bool is_missing(const struct fab_inventory *inv, uint64_t guid)
{
    uint32_t node = fab_inventory_find(inv, guid);
    return node != FAB_NONE && inv->nodes[node].missing;
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

/* The HCA of each second host becomes the second port of the one before. */
static void make_dual(struct fab_inventory *inv)
{
    uint32_t *to = must_have(((size_t)inv->n_nodes + 1) * sizeof(*to)), n = 0, first = FAB_NONE;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        bool second = inv->nodes[i].kind == FAB_HCA && first != FAB_NONE;
        to[i] = second ? first : n;
        if (inv->nodes[i].kind == FAB_HCA)
            first = second ? FAB_NONE : n;
        if (second)
            inv->nodes[to[i]].num_ports = 2;
        else
            inv->nodes[n++] = inv->nodes[i];
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t node = inv->ports[p].node;
        bool second = node > 0 && to[node] == to[node - 1];
        inv->ports[p].node = to[node];
        inv->ports[p].num = second ? 2 : inv->ports[p].num;
    }
    inv->n_nodes = n;
    inv->finished = false;
    free(to);
    assert_int_equal(fab_inventory_finish(inv, NULL), PMIXFAB_OK);
}

/* "dual " before a kind: each two HCAs are one with two ports. */
static void make_any(const char *kind, struct fab_inventory *inv)
{
    const bool dual = strncmp(kind, "dual ", 5) == 0;
    assert_int_equal(fabric_parse(dual ? kind + 5 : kind, inv), PMIXFAB_OK);
    if (dual)
        make_dual(inv);
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

TEST(seen_without_a_cable_is_missing_too)
{
    make("fattree2:4,2,3");
    must_do(fabric_unlink(&t.swept, "node0005", 1));
    assert_int_not_equal(fab_inventory_find(&t.swept, guid_of(&t.before, "node0005")), FAB_NONE);
    keep_swept();
    assert_int_equal(t.out.n_ports, t.before.n_ports);
    assert_true(is_missing(&t.out, guid_of(&t.before, "node0005")));
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
    keep(&t.out, &t.swept, &again);
    assert_true(is_missing(&again, guid));
    assert_false(missing_port(&again, guid, 1) || missing_port(&again, guid, 2));
    assert_int_equal(again.n_ports, t.before.n_ports);
    assert_changes(&t.out, &again, FAB_CHANGE_HOST_MISSING, 0, NULL);

    /* the first is back, the second is not */
    sweep_all();
    must_do(fabric_unlink(&t.swept, "node0003", 2));
    fab_inventory_destroy(&t.out);
    keep(&again, &t.swept, &t.out);
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

/* A leaf that restarts, with hosts that are seen through another one. */
TEST(a_leaf_of_second_ports_stays)
{
    make("dual fattree2:2,2,1"); /* one host, a port on each leaf */
    must_do(fabric_lose(&t.swept, "leaf2"));
    keep_swept();
    assert_int_equal(count_missing(&t.out, FAB_SWITCH), 1);
    assert_int_equal(count_missing(&t.out, FAB_HCA), 0);
    assert_true(missing_port(&t.out, guid_of(&t.before, "node0001"), 2));
    assert_int_equal(t.out.n_ports, t.before.n_ports);
    /* without that port it is lost */
    struct fab_port wanted = {.node = fabric_find(&t.before, "node0001"), .num = 2};
    keep_those(is_not_port, &wanted);
    assert_true(fab_inventory_equal(&t.out, &t.swept));
    /* and so is that port alone where another one keeps the leaf */
    make("dual fattree2:2,2,3"); /* node0003 has a port on each leaf, node0005 two on leaf2 */
    lose_guid(&t.swept, guid_of(&t.before, "node0005"));
    must_do(fabric_lose(&t.swept, "leaf2"));
    uint64_t guid = guid_of(&t.before, "node0003");
    keep_those(all_but, "node0003");
    assert_int_equal(count_missing(&t.out, FAB_SWITCH), 1);
    assert_int_equal(count_missing(&t.out, FAB_HCA), 1);
    assert_false(missing_port(&t.out, guid, 2));
    keep_swept();
    assert_true(missing_port(&t.out, guid, 2));
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

TEST(who_may_not_goes)
{
    make("fattree2:4,2,3");
    must_do(fabric_lose(&t.swept, "node0005"));
    must_do(fabric_lose(&t.swept, "node0006"));
    keep_those(all_but, "node0005");
    assert_int_equal(t.out.n_nodes, t.before.n_nodes - 1);
    assert_true(is_missing(&t.out, guid_of(&t.before, "node0006")));
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

static void lose_with_hosts(struct fab_inventory *inv, const struct fab_inventory *before, const char *name)
{
    uint32_t sw = fabric_find(before, name);
    const struct fab_node *node = &before->nodes[sw];
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        uint32_t peer = before->ports[p].peer;
        if (peer != FAB_NONE && before->nodes[before->ports[peer].node].kind == FAB_HCA)
            fabric_lose(inv, node_name(before, before->ports[peer].node));
    }
    must_do(fabric_lose(inv, name));
}

TEST(a_leaf_stays_with_its_hosts_and_a_spine_does_not)
{
    make("fattree2:4,2,3");
    lose_with_hosts(&t.swept, &t.before, "leaf2");
    keep_swept();
    assert_int_equal(t.out.n_nodes, t.before.n_nodes);
    assert_int_equal(t.out.n_ports, t.before.n_ports);
    assert_int_equal(count_missing(&t.out, FAB_SWITCH), 1);
    assert_int_equal(count_missing(&t.out, FAB_HCA), 3);
    must_do(fabric_lose(&t.swept, "spine1"));
    keep_swept();
    assert_int_equal(t.out.n_nodes, t.before.n_nodes - 1);
    make("fattree2:4,2,3");
    must_do(fabric_lose(&t.swept, "spine1"));
    keep_swept();
    assert_true(fab_inventory_equal(&t.out, &t.swept));
    /* the leaf came back as another one, its hosts as they were */
    make("fattree2:4,2,3");
    must_do(fabric_replace(&t.swept, "leaf2", 0x77aa, 99));
    keep_swept();
    assert_true(fab_inventory_equal(&t.out, &t.swept));
}

/* A whole pod: its leaves reach what is seen through its other switches only. */
TEST(a_pod_stays_in_its_plane)
{
    SCOPED(fab_geometry) g, h;
    unsigned lost = 0;
    make("fattree3:4");
    uint32_t hca = fabric_find(&t.before, "node0001");
    uint32_t leaf = t.before.ports[t.before.ports[t.before.nodes[hca].first_port].peer].node;
    /* everything but the core switches that is two cables from the leaf, or less */
    for (uint32_t i = 0; i < t.before.n_nodes; i++) {
        const char *name = node_name(&t.before, i);
        bool near = i == leaf;
        for (uint32_t p = 0; p < t.before.n_ports && !near; p++) {
            if (t.before.ports[p].node != i || t.before.ports[p].peer == FAB_NONE)
                continue;
            const struct fab_node *next = &t.before.nodes[t.before.ports[t.before.ports[p].peer].node];
            for (uint32_t q = next->first_port; q < next->first_port + next->n_ports; q++)
                near |=
                    next == &t.before.nodes[leaf] || (t.before.ports[q].peer != FAB_NONE &&
                                                      t.before.ports[t.before.ports[q].peer].node == leaf);
        }
        if (near && t.before.nodes[i].kind == FAB_SWITCH && strncmp(name, "core", 4) != 0) {
            lose_with_hosts(&t.swept, &t.before, name);
            lost++;
        }
    }
    assert_int_equal(lost, 4);
    keep_swept();
    assert_int_equal(t.out.n_nodes, t.before.n_nodes);
    assert_int_equal(count_missing(&t.out, FAB_SWITCH), 4);
    SCOPED(fab_planes) was = planes_of(&t.before), is = planes_of(&t.out);
    assert_int_equal(is.n, 1);
    assert_int_equal(fab_geometry_settle(&was.planes[0], NULL, &g), PMIXFAB_OK);
    assert_int_equal(fab_geometry_settle(&is.planes[0], NULL, &h), PMIXFAB_OK);
    assert_int_equal(g.dims, h.dims);
    assert_memory_equal(g.logical, h.logical, sizeof(*g.logical) * g.dims * was.planes[0].n_devices);
}

/* ---- anything at random -------------------------------------------------------------------------- */

static uint32_t there(const struct fab_inventory *swept, const struct fab_node *node)
{
    return fab_inventory_find(swept, node->guid);
}

/* Has the node of swept a cable? */
static bool cabled(const struct fab_inventory *swept, uint32_t node)
{
    for (uint32_t p = 0; node != FAB_NONE && p < swept->n_ports; p++)
        if (swept->ports[p].node == node && swept->ports[p].peer != FAB_NONE)
            return true;
    return false;
}

/* Is the port of `before` there, and free? */
static bool is_free(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t port)
{
    uint32_t node = there(swept, &before->nodes[before->ports[port].node]);
    uint32_t same = node == FAB_NONE ? FAB_NONE : fab_inventory_port(swept, node, before->ports[port].num);
    return node != FAB_NONE && (same == FAB_NONE || swept->ports[same].peer == FAB_NONE);
}

/* Does a switch that is not there lead to one that is, through others that are not? */
static bool leads_back(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t sw,
                       uint8_t *been)
{
    been[sw] = 1;
    for (uint32_t p = 0; p < before->n_ports; p++) {
        uint32_t peer = before->ports[p].peer;
        if (before->ports[p].node != sw || peer == FAB_NONE)
            continue;
        uint32_t to = before->ports[peer].node;
        if (before->nodes[to].kind != FAB_SWITCH || been[to])
            continue;
        if (there(swept, &before->nodes[to]) != FAB_NONE ? is_free(before, swept, peer)
                                                         : leads_back(before, swept, to, been))
            return true;
    }
    return false;
}

/* Should this port of an HCA, with its cable to a switch, stay without being seen? */
static bool should_stay(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t p)
{
    const struct fab_port *port = &before->ports[p];
    if (port->peer == FAB_NONE || before->nodes[port->node].kind != FAB_HCA ||
        before->nodes[before->ports[port->peer].node].kind != FAB_SWITCH)
        return false;
    if (there(swept, &before->nodes[port->node]) != FAB_NONE && !is_free(before, swept, p))
        return false;
    uint32_t sw = before->ports[port->peer].node;
    if (there(swept, &before->nodes[sw]) != FAB_NONE)
        return is_free(before, swept, port->peer);
    OWNED(free) uint8_t *been = must_have(before->n_nodes + 1u);
    return leads_back(before, swept, sw, been);
}

/* The switch of swept where this one's port can be: it, or the one that more than half of its cables lead to.
 */
static uint32_t switch_now(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t sw)
{
    const struct fab_node *node = &before->nodes[sw];
    uint32_t *votes = must_have(((size_t)swept->n_nodes + 1) * sizeof(*votes)), all = 0,
             now = there(swept, node);
    for (uint32_t p = node->first_port; now == FAB_NONE && p < node->first_port + node->n_ports; p++) {
        uint32_t far = before->ports[p].peer;
        uint32_t same = far == FAB_NONE ? FAB_NONE : there(swept, &before->nodes[before->ports[far].node]);
        same = same == FAB_NONE ? FAB_NONE : fab_inventory_port(swept, same, before->ports[far].num);
        if (same == FAB_NONE || swept->ports[same].peer == FAB_NONE)
            continue;
        votes[swept->ports[swept->ports[same].peer].node]++;
        all++;
    }
    for (uint32_t i = 0; now == FAB_NONE && i < swept->n_nodes; i++)
        if (2 * votes[i] > all)
            now = i;
    free(votes);
    return now == FAB_NONE || swept->nodes[now].kind != FAB_SWITCH ? FAB_NONE : now;
}

/* A port whose place is not free: it stays elsewhere, if there is any room at its switch. */
static bool should_stay_elsewhere(const struct fab_inventory *before, const struct fab_inventory *swept,
                                  uint32_t p)
{
    const struct fab_port *port = &before->ports[p];
    if (port->peer == FAB_NONE || before->nodes[port->node].kind != FAB_HCA ||
        before->nodes[before->ports[port->peer].node].kind != FAB_SWITCH || should_stay(before, swept, p))
        return false;
    return switch_now(before, swept, before->ports[port->peer].node) != FAB_NONE &&
           (there(swept, &before->nodes[port->node]) == FAB_NONE || is_free(before, swept, p));
}

/* Are all of the ports used where this port's switch is now? */
static bool is_full(const struct fab_inventory *before, const struct fab_inventory *swept,
                    const struct fab_inventory *inv, uint32_t port)
{
    uint32_t now = switch_now(before, swept, before->ports[before->ports[port].peer].node);
    uint32_t node = fab_inventory_find(inv, swept->nodes[now].guid);
    return inv->nodes[node].n_ports == inv->nodes[node].num_ports;
}

/* Of two ports of out, the HCA's one stays elsewhere. */
static bool is_elsewhere(const struct fab_inventory *before, const struct fab_inventory *swept,
                         const struct fab_inventory *out, uint32_t p)
{
    const struct fab_port *port = &out->ports[p];
    if (out->nodes[port->node].kind != FAB_HCA)
        port = &out->ports[port->peer];
    uint32_t node = fab_inventory_find(before, out->nodes[port->node].guid);
    uint32_t was = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, port->num);
    return was != FAB_NONE && should_stay_elsewhere(before, swept, was);
}

static void compare_with_plain(const char *what, const struct fab_inventory *before,
                               const struct fab_inventory *swept, const struct fab_inventory *out)
{
    for (uint32_t i = 0; i < before->n_nodes; i++) {
        const struct fab_node *node = &before->nodes[i];
        const bool seen = cabled(swept, there(swept, node));
        uint32_t now = fab_inventory_find(out, node->guid), stay = 0;
        if (node->kind != FAB_HCA)
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            bool stays = should_stay(before, swept, p);
            uint32_t same = now == FAB_NONE ? FAB_NONE : fab_inventory_port(out, now, before->ports[p].num);
            const struct fab_port *port = same == FAB_NONE ? NULL : &out->ports[same];
            bool stayed = port != NULL && port->peer != FAB_NONE && port->state == FAB_PORT_DOWN;
            if (should_stay_elsewhere(before, swept, p)) {
                stays = stayed;
                if (!stayed && !is_full(before, swept, out, p))
                    fail_msg("%s: there was room for port %u of HCA %llx", what, before->ports[p].num,
                             (unsigned long long)node->guid);
            }
            stay += stays;
            if (stayed != stays || (port != NULL && port->missing != (seen && stays)))
                fail_msg("%s: port %u of HCA %llx %s", what, before->ports[p].num,
                         (unsigned long long)node->guid, stays ? "went" : "stayed");
        }
        if (is_missing(out, node->guid) != (!seen && stay > 0))
            fail_msg("%s: HCA %llx %s", what, (unsigned long long)node->guid, stay > 0 ? "went" : "stayed");
    }
    for (uint32_t i = 0; i < swept->n_nodes; i++) {
        uint32_t same = fab_inventory_find(out, swept->nodes[i].guid);
        assert_int_not_equal(same, FAB_NONE);
        assert_true(!out->nodes[same].missing || !cabled(swept, i));
    }
    for (uint32_t p = 0; p < out->n_ports; p++) { /* a cable is one of before's, or is seen */
        const struct fab_port *port = &out->ports[p];
        if (port->peer == FAB_NONE)
            continue;
        const struct fab_port *peer = &out->ports[port->peer];
        bool kept = out->nodes[port->node].missing || out->nodes[peer->node].missing || port->missing ||
                    peer->missing;
        assert_int_equal(kept, fab_port_is_missing(out, port));
        if (kept && is_elsewhere(before, swept, out, p))
            continue;
        const struct fab_inventory *of = kept ? before : swept;
        uint32_t node = fab_inventory_find(of, out->nodes[port->node].guid);
        uint32_t same = fab_inventory_port(of, node, port->num);
        assert_int_not_equal(same, FAB_NONE);
        const struct fab_port *other = &of->ports[of->ports[same].peer];
        assert_true(of->nodes[other->node].guid == out->nodes[peer->node].guid && other->num == peer->num);
        assert_int_equal(port->state, kept ? FAB_PORT_DOWN : of->ports[same].state);
    }
}

/* The cost between two ports by their GUIDs. */
static uint16_t cost_by_guid(const struct fab_planes *planes, const struct fab_costs *costs, uint64_t a,
                             uint64_t b)
{
    for (uint32_t k = 0; k < planes->n; k++) {
        const struct fab_plane *plane = &planes->planes[k];
        uint32_t i = FAB_NONE, j = FAB_NONE;
        for (uint32_t d = 0; d < plane->n_devices; d++) {
            uint64_t guid = plane->inv->ports[plane->devices[d].port].guid;
            i = guid == a ? d : i;
            j = guid == b ? d : j;
        }
        if (i != FAB_NONE && j != FAB_NONE)
            return fab_cost_of(&costs[k].view, i, j);
    }
    return FAB_COST_NO_PATH;
}

static struct fab_costs *all_costs(const struct fab_planes *planes)
{
    struct fab_costs *costs = must_have((planes->n + 1) * sizeof(*costs));
    for (uint32_t k = 0; k < planes->n; k++)
        costs[k] = costs_of(&planes->planes[k], 1);
    return costs;
}

static void free_costs(struct fab_planes *planes, struct fab_costs *costs)
{
    for (uint32_t k = 0; k < planes->n; k++)
        fab_costs_destroy(&costs[k]);
    free(costs);
    fab_planes_destroy(planes);
}

/* Between devices that are seen, costs are those of what is seen. */
static void compare_costs(const struct fab_inventory *swept, const struct fab_inventory *out, uint64_t *dice)
{
    struct fab_planes p = planes_of(swept), q = planes_of(out);
    struct fab_costs *c = all_costs(&p), *d = all_costs(&q);
    for (unsigned i = 0; i < 60 && swept->n_ports > 0; i++) {
        uint32_t a = (uint32_t)(fabric_random_next(dice) % swept->n_ports);
        uint32_t b = (uint32_t)(fabric_random_next(dice) % swept->n_ports);
        if (swept->nodes[swept->ports[a].node].kind != FAB_HCA || swept->ports[a].peer == FAB_NONE ||
            swept->nodes[swept->ports[b].node].kind != FAB_HCA || swept->ports[b].peer == FAB_NONE)
            continue;
        assert_int_equal(cost_by_guid(&p, c, swept->ports[a].guid, swept->ports[b].guid),
                         cost_by_guid(&q, d, swept->ports[a].guid, swept->ports[b].guid));
    }
    free_costs(&p, c);
    free_costs(&q, d);
}

/* Lose hosts and switches, pull cables, put a pulled cable elsewhere. */
static void lose_some(struct fab_inventory *swept, unsigned n, uint64_t *dice)
{
    for (; n > 0 && swept->n_nodes > 2 && swept->n_ports > 2; n--) {
        uint32_t node = (uint32_t)(fabric_random_next(dice) % swept->n_nodes);
        uint32_t port = (uint32_t)(fabric_random_next(dice) % swept->n_ports);
        switch (fabric_random_next(dice) % 4) {
        case 0:
            fabric_lose(swept, node_name(swept, node));
            break;
        case 1:
            if (swept->nodes[node].kind == FAB_SWITCH)
                fabric_lose(swept, node_name(swept, node));
            break;
        case 2:
            if (swept->ports[port].peer != FAB_NONE)
                fabric_unlink(swept, node_name(swept, swept->ports[port].node), swept->ports[port].num);
            break;
        default:
            if (swept->ports[port].peer == FAB_NONE || swept->nodes[node].kind != FAB_SWITCH)
                break;
            fabric_move(swept, node_name(swept, swept->ports[port].node), swept->ports[port].num,
                        node_name(swept, node),
                        1 + (unsigned)(fabric_random_next(dice) % swept->nodes[node].num_ports));
        }
    }
}

/* What libibnetdisc gives of an HCA is the ports that it came by: those without a cable are not listed. */
static void unlist_empty(struct fab_inventory *inv)
{
    uint32_t n = 0, *now = must_have(((size_t)inv->n_ports + 1) * sizeof(*now));
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        now[p] = n;
        n += inv->ports[p].peer != FAB_NONE;
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t peer = inv->ports[p].peer;
        if (peer == FAB_NONE)
            continue;
        inv->ports[now[p]] = inv->ports[p];
        inv->ports[now[p]].peer = now[peer];
    }
    inv->n_ports = n;
    inv->finished = false;
    free(now);
    assert_int_equal(fab_inventory_finish(inv, NULL), PMIXFAB_OK);
}

/* Nodes without a port, after that. */
static void drop_cableless(struct fab_inventory *inv)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node node = inv->nodes[i];
        for (uint32_t p = node.first_port; p < node.first_port + node.n_ports; p++)
            inv->ports[p].node = n;
        inv->nodes[n] = node;
        n += node.n_ports > 0;
    }
    inv->n_nodes = n;
    inv->finished = false;
    assert_int_equal(fab_inventory_finish(inv, NULL), PMIXFAB_OK);
}

/* Without what is missing there is the sweep; what of it has no cable need not be the same. */
static void compare_seen(const char *what, const struct fab_inventory *out, const struct fab_inventory *swept)
{
    SCOPED(fab_inventory) seen, plain;
    assert_int_equal(fab_inventory_seen(out, &seen, NULL), PMIXFAB_OK);
    assert_false(fab_inventory_has_missing(&seen));
    copy(swept, &plain);
    unlist_empty(&seen);
    unlist_empty(&plain);
    drop_cableless(&plain);
    drop_cableless(&seen);
    if (!fab_inventory_equal(&seen, &plain))
        fail_msg("%s: what is seen is not what was swept", what);
}

TEST(random_losses)
{
    static const char *const kinds[] = {"fattree2:5,3,4",  "fattree2:4,2,3,2",  "fattree3:4",
                                        "dragonfly:2,4,2", "torus:3,4,2:1",     "mesh:4,3:1",
                                        "mesh:1,12:1",     "random:12,40,10:3", "dual fattree2:5,3,4",
                                        "dual fattree3:4", "dual torus:3,3,3:2"};
    const size_t n_kinds = sizeof(kinds) / sizeof(kinds[0]);
    for (uint64_t seed = 1; seed <= 550; seed++) {
        struct fab_inventory before, out;
        SCOPED(fab_inventory) swept, back;
        uint64_t dice = seed * 77;
        const char *what = printed("%s, %u", kinds[seed % n_kinds], (unsigned)seed);
        make_any(kinds[seed % n_kinds], &before);
        copy(&before, &swept);
        for (unsigned round = 0; round < 3;
             round++) { /* what is kept is kept again, more goes, some returns */
            lose_some(&swept, 1 + (unsigned)(seed % 9), &dice);
            if (seed % 3 == 0)
                unlist_empty(&swept);
            keep(&before, &swept, &out);
            compare_with_plain(what, &before, &swept, &out);
            if (seed % 4 == 0)
                compare_costs(&swept, &out, &dice);
            SCOPED(fab_inventory) again;
            keep(&out, &swept, &again);
            if (!fab_inventory_equal(&again, &out))
                fail_msg("%s: kept twice is something else", what);
            compare_seen(what, &out, &swept);
            fab_inventory_destroy(&before);
            before = out;
        }
        make_any(kinds[seed % n_kinds], &back);
        keep(&before, &back, &out); /* all is as it was */
        assert_true(fab_inventory_equal(&out, &back));
        fab_inventory_destroy(&before);
        fab_inventory_destroy(&out);
    }
}

/* ---- cutting ------------------------------------------------------------------------------------- */

TEST(a_cut_cable_is_as_a_pulled_one)
{
    SCOPED(fab_inventory) before = generated("fattree2:3,2,2");
    for (uint32_t p = 0; p < before.n_ports; p++) {
        struct fab_port wanted = before.ports[p];
        SCOPED(fab_inventory) pulled = inventory_copy(&before), out;
        node_name(&before, wanted.node);
        uint32_t a = wanted.node, b = before.ports[wanted.peer].node;
        uint32_t hca = before.nodes[a].kind == FAB_HCA ? a : before.nodes[b].kind == FAB_HCA ? b : FAB_NONE;
        if (hca != FAB_NONE) /* it has one cable */
            assert_int_equal(fabric_lose(&pulled, node_name(&before, hca)), 0);
        assert_int_equal(fab_inventory_cut(&before, is_port, &wanted, &out, NULL), PMIXFAB_OK);
        assert_int_equal(out.n_dangling, 0);
        if (hca != FAB_NONE)
            assert_true(fab_inventory_equal(&out, &pulled));
        else
            assert_int_equal(out.n_ports, before.n_ports - 2);
    }
}
