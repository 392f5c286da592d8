/* What keeps its place when a sweep does not see it any more. */
#include "test/unit/retain_world.h"
#include "topo/changes/changes.h"

static bool is_port(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    const struct fab_port *wanted = cbdata;
    return inv->ports[port].node == wanted->node && inv->ports[port].num == wanted->num;
}

static bool is_not_port(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    return !is_port(inv, port, cbdata);
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

/* ---- one thing at a time ------------------------------------------------------------------------- */

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

/* ---- cutting ------------------------------------------------------------------------------------- */

/* ---- switches that are replaced ---------------------------------------------------------------------- */

#define NEW 0x990000 /* is added to the GUID of a switch that is replaced */

static bool name_is_missing(const struct fab_inventory *inv, const char *name)
{
    uint32_t node = fabric_find(inv, name);
    assert_int_not_equal(node, FAB_NONE);
    return inv->nodes[node].missing;
}

/* The port at the other end of a host's cable. */
static struct fab_port place_of(const struct fab_inventory *inv, uint32_t hca)
{
    uint32_t peer = inv->ports[inv->nodes[hca].first_port].peer;
    assert_int_not_equal(peer, FAB_NONE);
    return inv->ports[peer];
}

/* ---- one at a time --------------------------------------------------------------------------------- */

/* The leaf goes, and another one comes with this cable alone; *out is what is kept of it all. */
static void come_with(const char *leaf, unsigned num_ports, unsigned port, const char *spine,
                      struct fab_inventory *before, struct fab_inventory *out)
{
    *before = generated("fattree2:4,2,3");
    SCOPED(fab_inventory) swept = inventory_copy(before);
    uint32_t sw = fabric_find(before, leaf), far = FAB_NONE;
    const uint64_t guid = before->nodes[sw].guid;
    struct fab_node node = before->nodes[sw];
    const char *name = fab_str(before, node.name);
    for (uint32_t p = node.first_port; p < node.first_port + node.n_ports; p++) {
        char text[64];
        uint32_t peer = before->ports[p].peer;
        if (strcmp(fabric_node_name(before, before->ports[peer].node, text, sizeof(text)), spine) == 0)
            far = before->ports[peer].num;
        if (before->nodes[before->ports[peer].node].kind == FAB_HCA)
            assert_int_equal(fabric_lose(&swept, text), PMIXFAB_OK);
    }
    assert_int_equal(fabric_lose(&swept, leaf), PMIXFAB_OK);
    SCOPED(fab_inventory) gone = keep(before, &swept);
    assert_true(name_is_missing(&gone, leaf));
    swept.finished = false;
    node.guid = guid + NEW;
    node.num_ports = (uint8_t)num_ports;
    node.name = node.desc = fab_inventory_string(&swept, name, strlen(name));
    uint32_t number, a, b;
    const uint32_t top = fabric_find(&swept, spine);
    assert_int_equal(fab_inventory_add_node(&swept, &node, &number), PMIXFAB_OK);
    struct fab_port end = {
        .node = number, .num = (uint8_t)port, .state = FAB_PORT_ACTIVE, .width = 4, .speed = FAB_HDR};
    assert_int_equal(fab_inventory_add_port(&swept, &end, &a), PMIXFAB_OK);
    end.node = top;
    end.num = (uint8_t)far;
    assert_int_equal(fab_inventory_add_port(&swept, &end, &b), PMIXFAB_OK);
    assert_int_equal(fab_inventory_link(&swept, a, b), PMIXFAB_OK);
    assert_int_equal(fab_inventory_finish(&swept, NULL), PMIXFAB_OK);
    *out = keep(&gone, &swept);
    assert_int_equal(fab_inventory_find(out, guid), FAB_NONE);
    assert_int_not_equal(fab_inventory_find(out, guid + NEW), FAB_NONE);
    assert_false(name_is_missing(out, leaf));
}

static unsigned port_of(const struct fab_inventory *inv, const char *host)
{
    uint32_t hca = fabric_find(inv, host);
    if (hca == FAB_NONE)
        return 0;
    assert_true(inv->nodes[hca].missing);
    assert_int_equal(place_of(inv, hca).node, fabric_find(inv, "leaf2"));
    return place_of(inv, hca).num;
}

/* It has fewer ports, or uses one of a host for its way up: who has no port gets a free one, while there are
 * any. */
TEST(a_leaf_with_other_ports)
{
    SCOPED(fab_inventory) before, out;
    come_with("leaf2", 4, 1, "spine2", &before, &out);
    assert_int_equal(port_of(&out, "node0004"), 4);
    assert_int_equal(port_of(&out, "node0005"), 2);
    assert_int_equal(port_of(&out, "node0006"), 3);
    fab_inventory_destroy(&before);
    fab_inventory_destroy(&out);
    come_with("leaf2", 3, 2, "spine2", &before, &out);
    assert_int_equal(port_of(&out, "node0004"), 1);
    assert_int_equal(port_of(&out, "node0005"), 0);
    assert_int_equal(port_of(&out, "node0006"), 3);
}

/* ---- a host whose place is another's --------------------------------------------------------------- */

/* What is kept of a sweep, and what is told of it, as "kind what before -> after" in lines. */
static void tell(struct fab_inventory *now, const struct fab_inventory *swept, struct fab_lost *lost,
                 uint64_t generation, const char *expected)
{
    struct fab_inventory next = keep(now, swept);
    SCOPED(fab_diff) diff;
    struct fab_lost after;
    char text[2000] = "";
    assert_int_equal(fab_diff_compute(now, &next, &diff), PMIXFAB_OK);
    uint32_t n_raw = diff.n, n = 0;
    assert_int_equal(fab_diff_correlate_with(now, &next, lost, &diff), PMIXFAB_OK);
    for (uint32_t i = 0; i < diff.n; i++) {
        const struct fab_change *c = &diff.changes[i];
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s %s %s -> %s\n", fab_change_name(c->kind), c->what,
                 c->before, c->after);
        n += c->n_raw;
    }
    assert_string_equal(text, expected);
    assert_int_equal(n, n_raw);
    assert_int_equal(fab_lost_update(lost, now, &next, &diff, generation, 0, &after), PMIXFAB_OK);
    fab_lost_destroy(lost);
    fab_inventory_destroy(now);
    *lost = after;
    *now = next;
}

/* Its place is taken, and the one where it is kept meanwhile, too; then it is seen where it is kept. */
TEST(a_host_that_is_displaced_twice)
{
    SCOPED(fab_lost) lost = {0};
    SCOPED(fab_inventory) now = generated("fattree2:4,2,3");
    now.nodes[fabric_find(&now, "leaf3")].num_ports = 8;
    SCOPED(fab_inventory) swept = inventory_copy(&now), with = inventory_copy(&now);
    assert_int_equal(fabric_lose(&swept, "node0008"), PMIXFAB_OK);
    tell(&now, &swept, &lost, 1, "host-missing node0008 HCA-1 there -> missing\n");
    assert_int_equal(fabric_move(&swept, "node0005", 1, "leaf3", 2), PMIXFAB_OK);
    tell(&now, &swept, &lost, 2,
         "link-lost leaf3[2] - node0008 HCA-1[1] 4xHDR -> \n"
         "host-moved node0005 HCA-1[1] leaf2[2] -> leaf3[2]\n");
    assert_int_equal(lost.cables.n, 1);
    assert_int_equal(fabric_move(&swept, "node0009", 1, "leaf2", 2), PMIXFAB_OK);
    tell(&now, &swept, &lost, 3,
         "other node0008 HCA-1[1]: kept at leaf2[2] -> leaf3[3]\n"
         "host-moved node0009 HCA-1[1] leaf3[3] -> leaf2[2]\n");
    assert_int_equal(lost.cables.n, 1);
    assert_int_equal(fabric_move(&with, "node0008", 1, "leaf3", 7), PMIXFAB_OK);
    assert_int_equal(fabric_move(&with, "node0005", 1, "leaf3", 2), PMIXFAB_OK);
    assert_int_equal(fabric_move(&with, "node0009", 1, "leaf2", 2), PMIXFAB_OK);
    assert_int_equal(fabric_move(&with, "node0008", 1, "leaf3", 3), PMIXFAB_OK);
    tell(&now, &with, &lost, 4, "host-moved node0008 HCA-1[1] leaf3[2] -> leaf3[3]\n");
    assert_int_equal(lost.cables.n, 0);
    assert_true(fab_inventory_equal(&now, &with));
}

/* A cable that an HCA's port had is of no use any more when that port is seen with another one. */
TEST(a_port_with_a_cable_waits_for_none)
{
    SCOPED(fab_inventory) now = generated("fattree2:4,2,3"), swept = inventory_copy(&now);
    SCOPED(fab_lost) lost = {0}, after, later;
    const struct fab_diff nothing = {0};
    const uint64_t hca = now.nodes[fabric_find(&now, "node0002")].guid;
    const uint64_t leaf = now.nodes[fabric_find(&now, "leaf4")].guid;
    const struct fab_lost_item cable = {
        .end = {{hca, 1}, {leaf, 9}}, .generation = 1, .text = {"node0002 HCA-1[1]", "leaf4[9]"}};
    assert_int_equal(fab_lost_add(&lost, &cable), PMIXFAB_OK);
    fab_lost_finish(&lost);
    assert_int_equal(fabric_lose(&swept, "node0002"), PMIXFAB_OK);
    SCOPED(fab_inventory) kept = keep(&now, &swept);
    assert_int_equal(fab_lost_update(&lost, &now, &kept, &nothing, 2, 0, &after), PMIXFAB_OK);
    assert_int_equal(after.cables.n, 1);
    assert_int_equal(fab_lost_update(&lost, &kept, &now, &nothing, 2, 0, &later), PMIXFAB_OK);
    assert_int_equal(later.cables.n, 0);
}
