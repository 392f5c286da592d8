/* The generators themselves: what they say they make, and what they write. */

#include "test/unit/generated.h"

struct counts {
    unsigned hcas, switches, cables;
};

static struct counts count(const struct fab_inventory *inv)
{
    struct counts c = {0};
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        c.hcas += inv->nodes[i].kind == FAB_HCA;
        c.switches += inv->nodes[i].kind == FAB_SWITCH;
    }
    for (uint32_t p = 0; p < inv->n_ports; p++)
        c.cables += inv->ports[p].peer != FAB_NONE && inv->ports[p].peer < p;
    return c;
}

/* Cables counted from the definition of each kind, not from the generator's loops. */
TEST(test_sizes)
{
    static const struct {
        const char *text;
        struct counts want;
    } cases[] = {
        {"fattree2:16,8,4", {64, 24, 64 + 128}},
        {"fattree2:3,2,1,4", {3, 5, 3 + 24}},
        {"fattree2:1,0,5", {5, 1, 5}},
        {"fattree3:2", {2, 5, 2 + 2 + 2}},
        {"fattree3:8", {128, 80, 3 * 128}},
        {"fattree3:34", {9826, 1445, 3 * 9826}},
        {"dragonfly:8,16,8", {16512, 2064, 16512 + 129 * 120 + 129 * 64}},
        {"dragonfly:1,1,1", {2, 2, 2 + 1}},
        {"torus:4,4,4:1", {64, 64, 64 + 192}},
        {"torus:2,3:2", {12, 6, 12 + 3 + 6}},
        {"mesh:4,4:2", {32, 16, 32 + 24}},
        {"mesh:1,1:0", {0, 1, 0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) inv = generated(cases[i].text);
        struct counts got = count(&inv);
        if (memcmp(&got, &cases[i].want, sizeof(got)) != 0)
            fail_msg("%s: %u HCAs, %u switches, %u cables", cases[i].text, got.hcas, got.switches,
                     got.cables);
        assert_true(inv.finished);
        assert_int_equal(inv.n_dangling, 0);
    }
}

/* Every pair of groups has one cable, every pair of routers in a group too. */
TEST(test_dragonfly_wiring)
{
    enum { A = 4, H = 2, GROUPS = A * H + 1 };
    unsigned between[GROUPS][GROUPS] = {{0}};
    SCOPED(fab_inventory) inv;
    assert_int_equal(fabric_dragonfly(&inv, 2, A, H), PMIXFAB_OK);
    for (uint32_t p = 0; p < inv.n_ports; p++) {
        uint32_t peer = inv.ports[p].peer;
        assert_int_not_equal(peer, FAB_NONE);
        const struct fab_node *a = &inv.nodes[inv.ports[p].node], *b = &inv.nodes[inv.ports[peer].node];
        if (a->kind == FAB_SWITCH && b->kind == FAB_SWITCH)
            between[(a->guid - 0x200000) / A][(b->guid - 0x200000) / A]++;
    }
    for (unsigned g = 0; g < GROUPS; g++)
        for (unsigned h = 0; h < GROUPS; h++)
            assert_int_equal(between[g][h], g == h ? A * (A - 1) : 1);
}
