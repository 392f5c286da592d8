/* What is lost, and the share of the bisection that went with it: against all halves of small fabrics. */
#include "test/unit/check_lines.h"
#include "test/unit/handmade.h"

#include <math.h>

#include "topo/changes/check.h"
#include "topo/changes/lost_list.h"

static void lose_node_only(struct fab_lost *lost, const struct fab_inventory *inv,
                           const struct fab_node *node)
{
    const struct fab_lost_item item = {.guid = node->guid,
                                       .generation = 7,
                                       .kind = node->kind,
                                       .host = (char *)fab_str(inv, node->host),
                                       .name = (char *)fab_str(inv, node->name)};
    assert_int_equal(fab_lost_add(lost, &item), 0);
}

static void lose_cable(struct fab_lost *lost, const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *near = &inv->ports[port], *far = &inv->ports[near->peer];
    assert_int_equal(
        fab_lost_add(lost, &(struct fab_lost_item){.end = {{inv->nodes[near->node].guid, near->num},
                                                           {inv->nodes[far->node].guid, far->num}},
                                                   .generation = 7,
                                                   .text = {"a[1]", "b[1]"},
                                                   .width = near->width,
                                                   .speed = near->speed}),
        0);
}

/* A switch is lost, with its cables and the hosts at them. */
static void lose(struct fab_lost *lost, const struct fab_inventory *inv, const char *name)
{
    const uint32_t n = fabric_find(inv, name);
    assert_int_not_equal(n, FAB_NONE);
    const struct fab_node *node = &inv->nodes[n];
    lose_node_only(lost, inv, node);
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE)
            continue;
        const struct fab_port *far = &inv->ports[port->peer];
        if (inv->nodes[far->node].kind == FAB_HCA)
            lose_node_only(lost, inv, &inv->nodes[far->node]);
        lose_cable(lost, inv, p);
    }
}

static struct fab_inventory without(const struct fab_inventory *inv, const char *const *names, uint32_t n)
{
    struct fab_inventory next;
    assert_int_equal(fab_inventory_copy(&next, inv), 0);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(fabric_lose(&next, names[i]), 0);
    return next;
}

/* One switch is gone, and known to be lost. */
static struct fab_inventory without_lost(const struct fab_inventory *inv, const char *name,
                                         struct fab_lost *lost)
{
    lose(lost, inv, name);
    fab_lost_finish(lost);
    return without(inv, &name, 1);
}

/* Of a tree of two levels: the cheapest cut between half of the leaves and the others, in cables. Each spine
 * is on the side where most of its cables are. */
static uint32_t narrowest(const struct fab_inventory *inv)
{
    uint32_t leaves[16], n = 0, best = UINT32_MAX;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_SWITCH && fab_str(inv, inv->nodes[i].name)[0] == 'l')
            leaves[n++] = i;
    for (uint32_t half = 0; half < 1u << n; half++) {
        uint32_t cut = 0;
        if (__builtin_popcount(half) != (int)n / 2)
            continue;
        for (uint32_t i = 0; i < inv->n_nodes; i++) {
            uint32_t side[2] = {0};
            const struct fab_node *spine = &inv->nodes[i];
            if (spine->kind != FAB_SWITCH || fab_str(inv, spine->name)[0] != 's')
                continue;
            for (uint32_t p = spine->first_port; p < spine->first_port + spine->n_ports; p++)
                for (uint32_t k = 0; inv->ports[p].peer != FAB_NONE && k < n; k++)
                    if (inv->ports[inv->ports[p].peer].node == leaves[k])
                        side[half >> k & 1]++;
            cut += side[0] < side[1] ? side[0] : side[1];
        }
        best = cut < best ? cut : best;
    }
    return best;
}

static const char *const spines[] = {"spine1", "spine2", "spine3", "spine4", "spine5", "spine6"};

TEST(test_spines_by_all_halves)
{
    static const struct {
        const char *fabric;
        uint32_t spines;
    } trees[] = {{"fattree2:4,2,2", 2}, {"fattree2:4,4,2", 4}, {"fattree2:6,3,4", 3}, {"fattree2:8,6,2", 6}};
    for (size_t t = 0; t < sizeof(trees) / sizeof(trees[0]); t++) {
        SCOPED(fab_inventory) inv = generated(trees[t].fabric);
        const double whole = narrowest(&inv);
        for (uint32_t n = 1; n < trees[t].spines; n++) {
            SCOPED(fab_inventory) now = without(&inv, spines, n);
            SCOPED(fab_lost) lost = {0};
            SCOPED(fab_findings) found = {0};
            for (uint32_t i = 0; i < n; i++)
                lose(&lost, &inv, spines[i]);
            fab_lost_finish(&lost);
            assert_int_equal(fab_check_lost(&now, &lost, &found), 0);
            assert_int_equal(found.n, n);
            double gone = 0;
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(found.findings[i].kind, FAB_CHECK_LOST);
                gone += found.findings[i].share;
            }
            assert_true(fabs(gone - (1 - narrowest(&now) / whole)) < 1e-9);
        }
    }
}

/* As plainly as it can be said: sums over all cables, of each level by itself. */
TEST(test_in_three_levels)
{
    SCOPED(fab_inventory) inv = generated("fattree3:4");
    static const char *const names[] = {"core1", "mid0-0", "leaf0-0"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        SCOPED(fab_lost) lost = {0};
        SCOPED(fab_findings) found = {0};
        SCOPED(fab_inventory) now = without_lost(&inv, names[i], &lost);
        assert_int_equal(fab_check_lost(&now, &lost, &found), 0);
        assert_int_equal(found.n, i == 2 ? 3 : 1); /* a leaf with two hosts */
        for (uint32_t k = 0; k < found.n; k++)
            if (strcmp(found.findings[k].where, names[i]) != 0)
                assert_true(found.findings[k].share == 0);
        fab_findings_sort(&found);
        /* 16 cables between each two levels: a core switch has 4 of them, the others 2 */
        assert_true(fabs(found.findings[0].share - (i == 0 ? 4. / 16 : 2. / 16)) < 1e-9);
    }
}

/* A port that somebody switched off is told as that, also when the place of the HCA behind it is given up;
 * a switch is lost, whatever its neighbours' ports say. */
TEST(test_behind_ports_that_are_switched_off)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,4,2");
    SCOPED(fab_lost) lost = {0};
    SCOPED(fab_findings) found = {0};
    SCOPED(fab_inventory) now = without(&inv, (const char *[]){"spine1", "node0001", "node0002"}, 3);
    lose(&lost, &inv, "spine1");
    lose(&lost, &inv, "node0001");
    lose(&lost, &inv, "node0002");
    fab_lost_finish(&lost);
    const struct fab_node *leaf = &inv.nodes[fabric_find(&inv, "leaf1")];
    now.finished = false; /* a sweep sees ports without a cable where they are switched off */
    for (uint32_t p = leaf->first_port; p < leaf->first_port + 3; p++) {
        const struct fab_port off = {.node = fabric_find(&now, "leaf1"),
                                     .num = inv.ports[p].num,
                                     .subnet = inv.ports[p].subnet,
                                     .state = FAB_PORT_DISABLED};
        assert_int_equal(fab_inventory_add_port(&now, &off, NULL), 0);
    }
    assert_int_equal(fab_inventory_finish(&now, NULL), 0);
    assert_int_equal(fab_check_lost(&now, &lost, &found), 0);
    assert_int_equal(found.n, 3);
    fab_findings_sort(&found);
    assert_string_equal(found.findings[0].where, "spine1");
    assert_int_equal(found.findings[0].kind, FAB_CHECK_LOST);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(found.findings[i].kind, FAB_CHECK_PORT_DISABLED);
        assert_non_null(strstr(found.findings[i].what, "it is switched off; its cable to "));
    }
    fab_findings_destroy(&found);
    for (uint32_t i = 0; i < lost.nodes.n; i++) /* nobody waits for them */
        lost.nodes.items[i].forgotten = true;
    assert_int_equal(fab_check_lost(&now, &lost, &found), 0);
    assert_int_equal(found.n, 0);
}

/* A cable that is lost between what is there; and one of a host, which is called as when it was missing. */
TEST(test_cables)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,4,2");
    SCOPED(fab_lost) all = {0};
    SCOPED(fab_lost) lost = {0};
    SCOPED(fab_findings) found = {0};
    lose(&all, &inv, "leaf1");
    for (uint32_t i = 0; i < all.cables.n; i++)
        assert_int_equal(fab_lost_add(&lost, &all.cables.items[i]), 0);
    fab_lost_finish(&lost);
    /* The cables are out, the switch and its hosts are there. */
    const uint32_t leaf = fabric_find(&inv, "leaf1");
    for (uint32_t p = inv.nodes[leaf].first_port; p < inv.nodes[leaf].first_port + inv.nodes[leaf].n_ports;
         p++)
        if (inv.ports[p].peer != FAB_NONE) {
            inv.ports[inv.ports[p].peer].peer = FAB_NONE;
            inv.ports[p].peer = FAB_NONE;
        }
    assert_int_equal(fab_check_lost(&inv, &lost, &found), 0);
    assert_int_equal(found.n, 6);
    uint32_t n[2] = {0};
    for (uint32_t i = 0; i < found.n; i++) {
        const bool uplink = found.findings[i].kind == FAB_CHECK_LINK_LOST;
        n[uplink]++;
        assert_true(fabs(found.findings[i].share - (uplink ? 1. / 16 : 0)) < 1e-9);
    }
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 4);
}

/* ---- what is told of their neighbours --------------------------------------------------------------- */

/* The findings of fab_check() as lines "kind|where|what". */
static void assert_told(const struct fab_inventory *inv, const struct fab_lost *lost,
                        const char *const *lines, uint32_t n)
{
    SCOPED(fab_findings) found = {0};
    assert_int_equal(fab_check(inv, NULL, lost, &found), 0);
    assert_findings(&found, lines, n);
}

#define ASSERT_TOLD(inv, lost, ...) assert_told(inv, lost, LINES(__VA_ARGS__))

static uint32_t port_at(const struct fab_inventory *inv, const char *name, unsigned num)
{
    return fab_inventory_port(inv, fabric_find(inv, name), num);
}

TEST(test_ports_of_lost_cables_are_disabled_for_a_reason)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,4,2");
    SCOPED(fab_inventory) now = {0};
    SCOPED(fab_lost) lost = {0};
    must_do(fab_inventory_copy(&now, &inv));
    for (unsigned num = 3; num <= 4; num++) {
        must_do(fabric_unlink(&now, "leaf2", num));
        hand_uncabled(&now, now.nodes[fabric_find(&now, "leaf2")].guid, num, FAB_PORT_DISABLED);
    }
    lose_cable(&lost, &inv, port_at(&inv, "leaf2", 3));
    ASSERT_TOLD(
        &now, &lost,
        "few-uplinks|leaf2|counting 1 that is lost or switched off: 3 cables up, 3 of 4 such switches "
        "have 4; none to spine2",
        "disabled-ports|leaf2|1 port is disabled: 4");
    lose_cable(&lost, &inv, port_at(&inv, "leaf2", 4));
    fab_lost_finish(&lost);
    assert_told(&now, &lost, NULL, 0);
}

/* Of a port that has lost several cables one is back; no port is made up, and no cable to its own switch. */
TEST(test_what_cannot_be_put_back)
{
    SCOPED(fab_inventory) inv = generated("fattree2:8,4,4");
    SCOPED(fab_inventory) now = {0};
    SCOPED(fab_lost) lost = {0};
    must_do(fab_inventory_copy(&now, &inv));
    must_do(fabric_unlink(&now, "leaf3", 6));
    const struct fab_node gone = {.guid = 1, .kind = FAB_SWITCH};
    const uint64_t leaf = inv.nodes[fabric_find(&inv, "leaf3")].guid;
    const struct fab_lost_item cables[] = {{.end = {{1, 1}, {leaf, 6}}}, {.end = {{1, 2}, {leaf, 6}}},
                                           {.end = {{1, 3}, {leaf, 0}}}, {.end = {{1, 4}, {leaf, 200}}},
                                           {.end = {{1, 5}, {1, 6}}},    {.end = {{1, 300}, {leaf, 6}}}};
    lose_node_only(&lost, &inv, &gone);
    for (size_t i = 0; i < sizeof(cables) / sizeof(cables[0]); i++) {
        struct fab_lost_item cable = cables[i];
        cable.text[0] = cable.text[1] = (char *)"a[1]";
        must_do(fab_lost_add(&lost, &cable));
    }
    lose_cable(&lost, &inv, port_at(&inv, "leaf3", 6));
    fab_lost_finish(&lost);
    assert_told(&now, &lost, NULL, 0);
}

/* The plain way: from the whole fabric only that is taken of which nothing is known. */
TEST(test_random_cables_as_the_plain_way)
{
    static const char *const fabrics[] = {"fattree2:8,4,4,2", "fattree3:4", "fattree2:6,3,4"};
    uint64_t seed = 12;
    uint32_t all = 0;
    for (unsigned round = 0; round < 300; round++) {
        SCOPED(fab_inventory) inv = generated(fabrics[round % 3]);
        SCOPED(fab_inventory) now = {0};
        SCOPED(fab_inventory) plain = {0};
        SCOPED(fab_lost) lost = {0};
        SCOPED(fab_findings) found = {0};
        SCOPED(fab_findings) want = {0};
        must_do(fab_inventory_copy(&now, &inv));
        must_do(fab_inventory_copy(&plain, &inv));
        for (uint32_t p = 0; p < inv.n_ports; p++) {
            const struct fab_port *port = &inv.ports[p];
            const struct fab_node *node = &inv.nodes[port->node];
            if (port->peer < p || inv.nodes[inv.ports[port->peer].node].kind != FAB_SWITCH ||
                node->kind != FAB_SWITCH || fabric_random_next(&seed) % 6 != 0)
                continue;
            const char *name = fab_str(&inv, node->name);
            const bool known = fabric_random_next(&seed) % 2 == 0;
            must_do(fabric_unlink(&now, name, port->num));
            if (known)
                lose_cable(&lost, &inv, p);
            else
                must_do(fabric_unlink(&plain, name, port->num));
        }
        fab_lost_finish(&lost);
        assert_int_equal(fab_check(&now, NULL, &lost, &found), 0);
        assert_int_equal(fab_check(&plain, NULL, NULL, &want), 0);
        assert_int_equal(found.n, want.n);
        all += want.n;
        for (uint32_t i = 0; i < want.n; i++) {
            const char *what = found.findings[i].what;
            if (strncmp(what, "counting ", 9) == 0)
                what = strchr(what, ':') + 2;
            assert_int_equal(found.findings[i].kind, FAB_CHECK_FEW_UPLINKS);
            assert_string_equal(found.findings[i].where, want.findings[i].where);
            assert_string_equal(what, want.findings[i].what);
        }
    }
    assert_true(all > 50);
}
