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

TEST(test_random_is_by_seed)
{
    SCOPED(fab_inventory) one, same, other;
    assert_int_equal(fabric_random(&one, 20, 200, 30, 1, 5), PMIXFAB_OK);
    assert_int_equal(fabric_random(&same, 20, 200, 30, 1, 5), PMIXFAB_OK);
    assert_int_equal(fabric_random(&other, 20, 200, 30, 1, 6), PMIXFAB_OK);
    assert_true(fab_inventory_equal(&one, &same));
    assert_false(fab_inventory_equal(&one, &other));
    unsigned dual = 0, second = 0, slow = 0;
    for (uint32_t i = 0; i < one.n_nodes; i++) {
        dual += one.nodes[i].kind == FAB_HCA && one.nodes[i].num_ports == 2;
        second += strcmp(fab_str(&one, one.nodes[i].name), "HCA-2") == 0;
    }
    for (uint32_t p = 0; p < one.n_ports; p++)
        slow += one.ports[p].speed != FAB_HDR;
    assert_true(dual > 5);
    assert_true(second > 5);
    assert_true(slow > 50);
}

TEST(test_parse_refuses)
{
    static const char *const syntax[] = {"",
                                         "fattree2",
                                         "fattree2:",
                                         "fattree2:1,2",
                                         "fattree2:1,2,3,4,5",
                                         "fattree2:1,2,3:4",
                                         "fattree2:1,2,x",
                                         "fattree2:1,,2",
                                         "torus:4,4",
                                         "torus:4:1",
                                         "torus:4,4:1:2",
                                         "torus:4,4:1,2",
                                         "nothing:1",
                                         "random:1,2,3",
                                         "fattree3:99999999999999999999",
                                         "fat:1,2,3",
                                         "fattree3:-4"};
    static const char *const range[] = {"fattree3:3",         "fattree3:0",          "fattree2:0,1,1",
                                        "fattree2:2,100,200", "dragonfly:200,40,40", "dragonfly:1,0,1",
                                        "torus:0,4:1",        "mesh:4,4:249",        "torus:2000,2:1",
                                        "random:0,1,1:1",     "random:1,300,0:1"};
    struct fab_inventory inv;
    for (size_t i = 0; i < sizeof(syntax) / sizeof(syntax[0]); i++)
        if (fabric_parse(syntax[i], &inv) != PMIXFAB_ERR_SYNTAX)
            fail_msg("'%s' was not refused", syntax[i]);
    for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
        if (fabric_parse(range[i], &inv) != PMIXFAB_ERR_RANGE)
            fail_msg("'%s' was not refused", range[i]);
}

TEST(test_unlink)
{
    SCOPED(fab_inventory) inv = generated("fattree2:2,1,2"), before = inventory_copy(&inv);
    assert_int_equal(fabric_unlink(&inv, "leaf1", 9), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(fabric_unlink(&inv, "nobody", 1), PMIXFAB_ERR_NOTFOUND);
    assert_true(fab_inventory_equal(&inv, &before));
    /* a cable between switches: both ports go */
    assert_int_equal(fabric_unlink(&inv, "leaf1", 3), PMIXFAB_OK);
    assert_true(inv.finished);
    assert_int_equal(count(&inv).cables, count(&before).cables - 1);
    assert_int_equal(inv.n_ports, before.n_ports - 2);
    assert_int_equal(inv.n_dangling, 0);
    assert_int_equal(fab_inventory_port(&inv, fabric_find(&inv, "leaf1"), 3), FAB_NONE);
    assert_int_equal(fab_inventory_port(&inv, fabric_find(&inv, "spine1"), 1), FAB_NONE);
    assert_int_equal(fabric_unlink(&inv, "leaf1", 3), PMIXFAB_ERR_NOTFOUND);
    /* a host's: its own port stays, down */
    assert_int_equal(fabric_unlink(&inv, "node0002", 1), PMIXFAB_OK);
    uint32_t port = fab_inventory_port(&inv, fabric_find(&inv, "node0002"), 1);
    assert_int_not_equal(port, FAB_NONE);
    assert_int_equal(inv.ports[port].peer, FAB_NONE);
    assert_int_equal(inv.ports[port].state, FAB_PORT_DOWN);
    assert_int_equal(inv.n_ports, before.n_ports - 3);
}

TEST(test_set_rate)
{
    SCOPED(fab_inventory) inv = generated("fattree2:2,1,2");
    assert_int_equal(fabric_set_rate(&inv, "spine1", 2, 1, FAB_QDR), PMIXFAB_OK);
    uint32_t port = fab_inventory_port(&inv, fabric_find(&inv, "leaf2"), 3);
    assert_int_equal(inv.ports[port].speed, FAB_QDR);
    assert_int_equal(inv.ports[port].width, 1);
    assert_int_equal(fabric_set_rate(&inv, "spine1", 3, 1, FAB_QDR), PMIXFAB_ERR_NOTFOUND);
}

TEST(test_names)
{
    SCOPED(fab_inventory) inv = generated("random:6,60,4:3");
    for (uint32_t i = 0; i < inv.n_nodes; i++) {
        const char *name = node_name(&inv, i);
        assert_true(strlen(name) < 31);
        assert_int_equal(fabric_find(&inv, name), i);
        bool second = strcmp(fab_str(&inv, inv.nodes[i].name), "HCA-2") == 0;
        assert_int_equal(second, inv.nodes[i].kind == FAB_HCA && strchr(name, '-') != NULL);
    }
}

/* Text of a writer, in memory. */
static char *written(const struct fab_inventory *inv, int (*writer)(const struct fab_inventory *, FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(writer(inv, out), PMIXFAB_OK);
    fclose(out);
    return text;
}

TEST(test_writers)
{
    SCOPED(fab_inventory) inv = generated("fattree2:1,1,1");
    OWNED(free)
    char *net = written(&inv, fabric_write_netfile), *capture = written(&inv, fabric_write_capture);
    assert_non_null(
        strstr(net, "switchguid=0x200000\nSwitch 2 \"leaf1\"  # \"leaf1\" enhanced port 0 lid 0 lmc 0\n"
                    "[1] \"node0001\"[1]  # \"node0001\" lid 0 4xHDR\n"
                    "[2] \"spine1\"[1]  # \"spine1\" lid 0 4xHDR\n\n"));
    assert_non_null(strstr(net, "caguid=0x100000\nCa 1 \"node0001\"  # \"node0001\"\n"
                                "[1] \"leaf1\"[1]  # lid 0 lmc 0 \"leaf1\" lid 0 4xHDR\n"));
    assert_non_null(strstr(capture,
                           "switchguid=0x200000(200000)\n"
                           "Switch\t2 \"S-0000000000200000\"\t\t# \"leaf1\" enhanced port 0 lid 1 lmc 0\n"
                           "[1]\t\"H-0000000000100000\"[1](100001) \t\t# \"node0001\" lid 3 4xHDR\n"
                           "[2]\t\"S-0000000000200001\"[1]\t\t# \"spine1\" lid 2 4xHDR\n"));
    assert_non_null(
        strstr(capture, "caguid=0x100000\nCa\t1 \"H-0000000000100000\"\t\t# \"node0001\"\n"
                        "[1](100001) \t\"S-0000000000200000\"[1]\t\t# lid 3 lmc 0 \"leaf1\" lid 1 4xHDR\n"));
}
