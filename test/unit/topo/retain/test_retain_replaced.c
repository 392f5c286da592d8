/* Switches that are replaced cable by cable, while sweeps go on. On every kind of fabric some are taken away
 * and their successors' cables come in any order; nobody may be lost, every host keeps the port that it had,
 * and the story says once of each that it was replaced. */

#include "test/unit/retain_world.h"
#include "topo/correlate/correlate.h"

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
static void tell(struct fab_inventory *now, const struct fab_inventory *swept, struct fab_retired *lost,
                 uint64_t generation, const char *expected)
{
    struct fab_inventory next = keep(now, swept);
    SCOPED(fab_diff) diff;
    struct fab_retired after;
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
    assert_int_equal(fab_retired_update(lost, now, &next, &diff, generation, 0, &after), PMIXFAB_OK);
    fab_retired_destroy(lost);
    fab_inventory_destroy(now);
    *lost = after;
    *now = next;
}

/* Its place is taken, and the one where it is kept meanwhile, too; then it is seen where it is kept. */
TEST(a_host_that_is_displaced_twice)
{
    SCOPED(fab_retired) lost = {0};
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
    SCOPED(fab_retired) lost = {0}, after, later;
    const struct fab_diff nothing = {0};
    const uint64_t hca = now.nodes[fabric_find(&now, "node0002")].guid;
    const uint64_t leaf = now.nodes[fabric_find(&now, "leaf4")].guid;
    const struct fab_lost_item cable = {
        .end = {{hca, 1}, {leaf, 9}}, .generation = 1, .text = {"node0002 HCA-1[1]", "leaf4[9]"}};
    assert_int_equal(fab_lost_add(&lost, &cable), PMIXFAB_OK);
    fab_retired_finish(&lost);
    assert_int_equal(fabric_lose(&swept, "node0002"), PMIXFAB_OK);
    SCOPED(fab_inventory) kept = keep(&now, &swept);
    assert_int_equal(fab_retired_update(&lost, &now, &kept, &nothing, 2, 0, &after), PMIXFAB_OK);
    assert_int_equal(after.cables.n, 1);
    assert_int_equal(fab_retired_update(&lost, &kept, &now, &nothing, 2, 0, &later), PMIXFAB_OK);
    assert_int_equal(later.cables.n, 0);
}

/* ---- anything at random ---------------------------------------------------------------------------- */

struct work {
    const char *what;
    struct fab_inventory whole, now; /* with all successors and cables; as it is kept */
    uint8_t *in;                     /* ports of whole: the cable is in again */
    struct fab_retired lost;
    uint64_t generation;
    unsigned n_replaced, wanted; /* told so far; all */
    bool strict;                 /* no two neighbours are replaced */
    uint64_t replaced[16];
};

static void work_destroy(struct work *w)
{
    free(w->in);
    fab_retired_destroy(&w->lost);
    fab_inventory_destroy(&w->now);
    fab_inventory_destroy(&w->whole);
}

static bool is_new(const struct fab_node *node)
{
    return node->kind == FAB_SWITCH && node->guid >= NEW;
}

/* What a sweep sees: no cable that is not in, and no successor that has no way up. */
static struct fab_inventory sweep(const struct work *w)
{
    const struct fab_inventory *whole = &w->whole;
    OWNED(free) uint8_t *seen = must_have(whole->n_nodes);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t p = 0; p < whole->n_ports; p++) {
            const struct fab_node *node = &whole->nodes[whole->ports[p].node];
            const struct fab_port *peer = &whole->ports[whole->ports[p].peer];
            const struct fab_node *far = &whole->nodes[peer->node];
            if (!is_new(node) || seen[whole->ports[p].node] || !w->in[p] || far->kind != FAB_SWITCH ||
                (is_new(far) && !seen[peer->node]))
                continue;
            seen[whole->ports[p].node] = 1;
            more = true;
        }
    }
    struct fab_inventory out = inventory_copy(whole);
    for (uint32_t i = 0; i < whole->n_nodes; i++) {
        const struct fab_node *node = &whole->nodes[i];
        const char *name = node_name(whole, i);
        if (is_new(node) && !seen[i])
            assert_int_equal(fabric_lose(&out, name), PMIXFAB_OK);
        for (uint32_t p = node->first_port; is_new(node) && seen[i] && p < node->first_port + node->n_ports;
             p++)
            if (!w->in[p])
                fabric_unlink(&out, name, whole->ports[p].num);
    }
    return out;
}

/* Every host is there, at the port that it had. */
static void compare_places(const struct work *w)
{
    for (uint32_t i = 0; i < w->whole.n_nodes; i++) {
        if (w->whole.nodes[i].kind != FAB_HCA)
            continue;
        uint32_t hca = fab_inventory_find(&w->now, w->whole.nodes[i].guid);
        if (hca == FAB_NONE)
            fail_msg("%s: HCA %llx is lost", w->what, (unsigned long long)w->whole.nodes[i].guid);
        const struct fab_port is = place_of(&w->now, hca), was = place_of(&w->whole, i);
        const uint64_t sw = w->now.nodes[is.node].guid, final = w->whole.nodes[was.node].guid;
        if (is.num != was.num || (sw != final && sw + NEW != final))
            fail_msg("%s: HCA %llx is at %llx[%u]", w->what, (unsigned long long)w->whole.nodes[i].guid,
                     (unsigned long long)sw, is.num);
    }
}

static void listen(struct work *w, const struct fab_diff *diff)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        const struct fab_change *c = &diff->changes[i];
        switch (c->kind) {
        case FAB_CHANGE_HOST_MOVED:
        case FAB_CHANGE_SWITCH_ADDED:
        case FAB_CHANGE_LINK_ADDED:
            if (!w->strict)
                break;
            fail_msg("%s: it says %s %s", w->what, fab_change_name(c->kind), c->what);
            break;
        case FAB_CHANGE_HOST_LOST:
        case FAB_CHANGE_HOST_ADDED:
        case FAB_CHANGE_DEVICE_LOST:
        case FAB_CHANGE_DEVICE_ADDED:
            fail_msg("%s: it says %s %s", w->what, fab_change_name(c->kind), c->what);
            break;
        case FAB_CHANGE_SWITCH_REPLACED:
            for (unsigned k = 0; k < w->n_replaced; k++)
                assert_true(w->replaced[k] != c->guid);
            assert_true(w->n_replaced < 16 && c->former + NEW == c->guid);
            w->replaced[w->n_replaced++] = c->guid;
            break;
        default:
            break;
        }
    }
}

static void step(struct work *w)
{
    SCOPED(fab_inventory) swept = sweep(w);
    struct fab_inventory next = keep(&w->now, &swept);
    SCOPED(fab_inventory) again = keep(&next, &swept);
    SCOPED(fab_diff) diff;
    struct fab_retired lost;
    if (!fab_inventory_equal(&again, &next))
        fail_msg("%s: kept twice is something else", w->what);
    assert_int_equal(fab_diff_compute(&w->now, &next, &diff), PMIXFAB_OK);
    assert_int_equal(fab_diff_correlate_with(&w->now, &next, &w->lost, &diff), PMIXFAB_OK);
    listen(w, &diff);
    must_do(fab_retired_update(&w->lost, &w->now, &next, &diff, ++w->generation, 0, &lost));
    fab_retired_destroy(&w->lost);
    w->lost = lost;
    fab_inventory_destroy(&w->now);
    w->now = next;
    compare_places(w);
}

/* Has it a neighbour that stays (or none that goes), other than this switch? */
static bool has_neighbour(const struct fab_inventory *inv, uint32_t sw, uint32_t other, bool that_goes)
{
    const struct fab_node *node = &inv->nodes[sw];
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        uint32_t far = inv->ports[inv->ports[p].peer].node;
        if (far != other && inv->nodes[far].kind == FAB_SWITCH && is_new(&inv->nodes[far]) == that_goes)
            return true;
    }
    return false;
}

/* It may be taken away. Where two neighbours go, the story may be another one: one that is seen only through
 * another that came with it is not known again. */
static bool can_go(const struct work *w, uint32_t sw)
{
    const struct fab_inventory *inv = &w->whole;
    const struct fab_node *node = &inv->nodes[sw];
    if (node->kind != FAB_SWITCH || is_new(node) || !has_neighbour(inv, sw, FAB_NONE, false) ||
        (w->strict && has_neighbour(inv, sw, FAB_NONE, true)))
        return false;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        uint32_t far = inv->ports[inv->ports[p].peer].node;
        if (is_new(&inv->nodes[far]) && !has_neighbour(inv, far, sw, false))
            return false;
    }
    return true;
}

/* Some switches of w->now get successors in w->whole; all their cables are out. */
static void take_away(struct work *w, unsigned n, uint64_t *dice)
{
    for (unsigned tries = 0; n > 0 && tries < 100; tries++) {
        uint32_t i = (uint32_t)(fabric_random_next(dice) % w->whole.n_nodes);
        if (!can_go(w, i))
            continue;
        const char *name = node_name(&w->whole, i);
        assert_int_equal(fabric_replace(&w->whole, name, w->whole.nodes[i].guid + NEW, 255), PMIXFAB_OK);
        w->wanted++;
        n--;
    }
    w->in = must_have((size_t)w->whole.n_ports + 1);
    for (uint32_t p = 0; p < w->whole.n_ports; p++)
        w->in[p] = !is_new(&w->whole.nodes[w->whole.ports[p].node]) &&
                   !is_new(&w->whole.nodes[w->whole.ports[w->whole.ports[p].peer].node]);
}

/* Put some cables in, any of those that are out. False: there are none. */
static bool put_in(struct work *w, uint64_t *dice)
{
    uint32_t first = (uint32_t)(fabric_random_next(dice) % w->whole.n_ports), n = 1 + first % 2;
    bool any = false;
    for (uint32_t i = 0; i < w->whole.n_ports && n > 0; i++) {
        uint32_t p = (first + i) % w->whole.n_ports;
        if (w->in[p])
            continue;
        w->in[p] = w->in[w->whole.ports[p].peer] = 1;
        any = true;
        n--;
    }
    return any;
}

TEST(random_replacements)
{
    static const char *const kinds[] = {"fattree2:5,3,4",   "fattree2:4,2,3,2", "fattree3:4",
                                        "dragonfly:2,4,2",  "torus:3,4,2:1",    "mesh:4,3:1",
                                        "random:12,40,10:3"};
    const size_t n_kinds = sizeof(kinds) / sizeof(kinds[0]);
    unsigned told = 0;
    for (uint64_t seed = 1; seed <= 224; seed++) {
        uint64_t dice = seed * 77;
        char what[80];
        SCOPED(work)
        w = {.what = what, .strict = seed % 4 != 0, .whole = generated(kinds[seed / 4 % n_kinds])};
        snprintf(what, sizeof(what), "%s, %u", kinds[seed / 4 % n_kinds], (unsigned)seed);
        w.now = inventory_copy(&w.whole);
        take_away(&w, 1 + (unsigned)(seed % 3), &dice);
        do
            step(&w);
        while (put_in(&w, &dice));
        assert_true(fab_inventory_equal(&w.now, &w.whole));
        if (w.strict && w.n_replaced != w.wanted)
            fail_msg("%s: %u of %u are told", what, w.n_replaced, w.wanted);
        told += w.n_replaced;
    }
    assert_true(told > 80);
}
