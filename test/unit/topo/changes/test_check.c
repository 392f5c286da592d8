/* What looks wrong: nothing in a clean fabric, each fault that is planted exactly once. */
#include "test/unit/check_lines.h"
#include "test/unit/handmade.h"

#include "test/fabrics/details.h"
#include "topo/changes/check.h"
#include "topo/join/join.h"

static void check(const struct fab_inventory *inv, const struct fab_details *details,
                  struct fab_findings *found)
{
    assert_int_equal(fab_check(inv, details, NULL, found), 0);
    for (uint32_t i = 0; i < found->n; i++) {
        const struct fab_finding *f = &found->findings[i];
        assert_true(f->where[0] != '\0' && f->what[0] != '\0' && fab_check_hint(f->kind)[0] != '\0');
        assert_true(i == 0 || fab_check_severity(found->findings[i - 1].kind) >= fab_check_severity(f->kind));
        for (uint32_t other = 0; other < i; other++) /* no two are one */
            assert_int_not_equal(found->findings[other].id, f->id);
    }
}

/* All of it as lines "kind|where|what". */
static void assert_found(const struct fab_inventory *inv, const struct fab_details *details,
                         const char *const *lines, uint32_t n)
{
    SCOPED(fab_findings) found;
    check(inv, details, &found);
    assert_findings(&found, lines, n);
}

#define ASSERT_FOUND(inv, details, ...) assert_found(inv, details, LINES(__VA_ARGS__))

/* The believed fact of a kind, to be changed. */
static struct fab_detail *fact_of(struct fab_details *details, uint32_t port, enum fab_fact kind)
{
    for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++)
        if (details->facts[f].kind == kind)
            return &details->facts[f];
    fail_msg("port %u has no fact %s", port, fab_fact_name(kind));
    return NULL;
}

/* A text that the pool of the details does not have yet. */
static uint32_t add_text(struct fab_details *details, const char *text)
{
    uint32_t at = details->pool_size, len = (uint32_t)strlen(text) + 1;
    details->pool = realloc(details->pool, at + len);
    assert_non_null(details->pool);
    memcpy(details->pool + at, text, len);
    details->pool_size += len;
    return at;
}

/* Facts that fit the fabric: those of details.c without their contradictions, and of one firmware. */
static struct fab_details clean_details(const struct fab_inventory *inv)
{
    struct fab_details clean, *details = &clean;
    assert_int_equal(fabric_details(inv, 0, details), 0);
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t to = details->first[p];
        for (uint32_t f = details->first[p]; f < details->first[p + 1]; f++) {
            struct fab_detail fact = details->facts[f];
            if (fact.flags == FAB_DETAIL_CONFLICT)
                continue; /* its place stays empty, behind the others */
            fact.flags &= (uint8_t)~FAB_DETAIL_CONFLICT;
            details->facts[to++] = fact;
        }
        for (; to < details->first[p + 1]; to++)
            details->facts[to] = (struct fab_detail){0};
    }
    uint32_t text = add_text(details, "20.31.1014");
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (details->first[p + 1] > details->first[p])
            fact_of(details, p, FAB_FACT_FIRMWARE)->text = text;
    return clean;
}

static uint32_t port_of(const struct fab_inventory *inv, const char *node, unsigned num)
{
    uint32_t n = fabric_find(inv, node);
    assert_int_not_equal(n, FAB_NONE);
    uint32_t port = fab_inventory_port(inv, n, num);
    assert_int_not_equal(port, FAB_NONE);
    return port;
}

static void generate_anew(struct fab_inventory *inv, const char *fabric)
{
    fab_inventory_destroy(inv);
    *inv = generated(fabric);
}

/* ---- clean ---------------------------------------------------------------------------------------- */

static const char *const fabrics[] = {"fattree2:2,1,1",  "fattree2:16,8,4",    "fattree3:4",    "fattree3:8",
                                      "dragonfly:2,4,2", "torus:4,4,4:1",      "torus:5,3:2",   "mesh:4,4:2",
                                      "mesh:9,2:1",      "random:30,100,40:7", "random:1,5,0:3"};
#define N_FABRICS (sizeof(fabrics) / sizeof(fabrics[0]))

/* Wiring at random has no usual; what of it is not about uplinks and ports is as clean as the others. */
static void drop_wiring(struct fab_findings *found)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < found->n; i++) {
        struct fab_finding *f = &found->findings[i];
        if (f->kind == FAB_CHECK_FEW_UPLINKS || f->kind == FAB_CHECK_FEW_PORTS ||
            f->kind == FAB_CHECK_MANY_PORTS || f->kind == FAB_CHECK_SLOW_LINK ||
            f->kind == FAB_CHECK_OTHER_KIND)
            free(f->where);
        else
            found->findings[kept++] = *f;
    }
    found->n = kept;
}

TEST(test_clean)
{
    for (size_t i = 0; i < N_FABRICS; i++) {
        SCOPED(fab_inventory) inv = generated(fabrics[i]);
        SCOPED_BY(fabric_details_destroy) struct fab_details details = clean_details(&inv);
        for (int with = 0; with < 2; with++) {
            SCOPED(fab_findings) found;
            check(&inv, with ? &details : NULL, &found);
            if (strncmp(fabrics[i], "random", 6) == 0)
                drop_wiring(&found);
            if (found.n > 0)
                fail_msg("%s: %s: %s: %s", fabrics[i], fab_check_name(found.findings[0].kind),
                         found.findings[0].where, found.findings[0].what);
        }
    }
}

TEST(test_words)
{
    for (int k = FAB_CHECK_STALE; k < FAB_CHECK_KINDS; k++) {
        assert_string_not_equal(fab_check_name((enum fab_check_kind)k), "unknown");
        assert_true(strlen(fab_check_hint((enum fab_check_kind)k)) > 10);
        for (int other = FAB_CHECK_STALE; other < k; other++)
            assert_string_not_equal(fab_check_name((enum fab_check_kind)k),
                                    fab_check_name((enum fab_check_kind)other));
    }
    assert_string_equal(fab_check_name(0), "unknown");
    assert_string_equal(fab_check_name(FAB_CHECK_KINDS), "unknown");
    assert_string_equal(fab_check_hint(FAB_CHECK_KINDS), "");
    assert_string_equal(fab_severity_name(FAB_SEVERITY_ERROR), "error");
    assert_string_equal(fab_severity_name(FAB_SEVERITY_WARNING), "warning");
    assert_string_equal(fab_severity_name(FAB_SEVERITY_NOTICE), "notice");
}

TEST(test_refused)
{
    SCOPED(fab_inventory) inv = {0};
    SCOPED(fab_findings) found = {.n = 7};
    struct fab_details details = {.n_ports = 1};
    assert_int_equal(fab_check(&inv, NULL, NULL, &found), PMIXFAB_ERR_INVAL);
    assert_int_equal(found.n, 0);
    assert_int_equal(fab_inventory_finish(&inv, NULL), 0);
    assert_int_equal(fab_check(&inv, &details, NULL, &found), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_check(&inv, NULL, NULL, &found), 0);
    assert_int_equal(found.n, 0);
    fab_findings_destroy(NULL);
}

/* ---- cables --------------------------------------------------------------------------------------- */

TEST(test_slow_links)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,2,4");
    assert_int_equal(fabric_set_rate(&inv, "leaf1", 2, 4, FAB_EDR), 0);
    ASSERT_FOUND(&inv, NULL,
                 "slow-link|leaf1[2] - node0002 HCA-1[1]|4xEDR (100 Gb/s); 15 of 16 links of hosts there "
                 "have 200 Gb/s");
    assert_int_equal(fabric_set_rate(&inv, "leaf2", 5, 1, FAB_HDR), 0);
    ASSERT_FOUND(&inv, NULL,
                 "slow-link|leaf1[2] - node0002 HCA-1[1]|4xEDR (100 Gb/s); 15 of 16 links of hosts there "
                 "have 200 Gb/s",
                 "slow-link|leaf2[5] - spine1[2]|1xHDR (50 Gb/s); 7 of 8 links of switches there have 200 "
                 "Gb/s");
    /* a faster one, one end that is not known, and links of switches that are faster than those of hosts */
    generate_anew(&inv, "fattree2:4,2,4");
    assert_int_equal(fabric_set_rate(&inv, "leaf1", 1, 4, FAB_NDR), 0);
    inv.ports[port_of(&inv, "node0002", 1)].width = 0;
    for (unsigned leaf = 1; leaf <= 4; leaf++)
        for (unsigned up = 5; up <= 6; up++)
            assert_int_equal(fabric_set_rate(&inv, printed("leaf%u", leaf), up, 4, FAB_NDR), 0);
    assert_found(&inv, NULL, NULL, 0);
    /* half of them: nobody knows which is right */
    generate_anew(&inv, "fattree2:2,1,4");
    for (unsigned p = 1; p <= 4; p++)
        assert_int_equal(fabric_set_rate(&inv, "leaf1", p, 4, FAB_EDR), 0);
    assert_found(&inv, NULL, NULL, 0);
}

TEST(test_states)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,2,4");
    inv.ports[port_of(&inv, "leaf1", 2)].state = FAB_PORT_INIT;
    inv.ports[port_of(&inv, "node0002", 1)].state = FAB_PORT_INIT;
    inv.ports[port_of(&inv, "leaf2", 1)].state = FAB_PORT_DOWN;
    ASSERT_FOUND(&inv, NULL, "port-down|leaf2[1] - node0005 HCA-1[1]|leaf2[1] is DOWN",
                 "inactive|leaf1[2] - node0002 HCA-1[1]|node0002 HCA-1[1] is INIT");
    for (uint32_t p = 0; p < inv.n_ports; p++)
        inv.ports[p].state = FAB_PORT_INIT;
    ASSERT_FOUND(&inv, NULL, "no-manager|the fabric|48 of 48 cabled ports are not active");
}

TEST(test_missing)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,2,4");
    inv.nodes[fabric_find(&inv, "node0002")].missing = 1;
    inv.ports[port_of(&inv, "leaf1", 2)].state = FAB_PORT_DOWN;
    inv.ports[port_of(&inv, "node0002", 1)].state = FAB_PORT_DOWN;
    ASSERT_FOUND(&inv, NULL, "missing|node0002 HCA-1|no longer seen; its place is kept at leaf1[2]");
    inv.nodes[fabric_find(&inv, "node0002")].missing = 0;
    inv.ports[port_of(&inv, "node0002", 1)].missing = 1; /* its other port would be seen */
    ASSERT_FOUND(&inv, NULL,
                 "missing|node0002 HCA-1[1]|its cable is no longer seen; its place is kept at leaf1[2]");
}

static uint64_t id_of(enum fab_check_kind kind, struct fab_about about)
{
    SCOPED(fab_findings) found = {0};
    assert_int_equal(fab_findings_add(&found, kind, about, "somewhere", "something"), 0);
    return found.findings[0].id;
}

/* It stands in stores, and on paper: it is the same for ever, and does not depend on how things are called.
 */
TEST(test_identity)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,2,4");
    const struct fab_port *port = &inv.ports[port_of(&inv, "leaf2", 6)], *peer = &inv.ports[port->peer];
    struct fab_about fixed = {.end = {{0x2c903000a1b2c3, 8}, {0x2c90300001111, 1}}, .text = "state"};
    assert_int_equal(id_of(FAB_CHECK_CONFLICT, fixed), 0xaa9114d7d523be3f);
    uint64_t id = id_of(FAB_CHECK_SLOW_LINK, fab_about_cable(&inv, port));
    assert_int_equal(id, id_of(FAB_CHECK_SLOW_LINK, fab_about_cable(&inv, peer)));
    assert_int_not_equal(id, id_of(FAB_CHECK_PORT_DOWN, fab_about_cable(&inv, port)));
    assert_int_not_equal(id, id_of(FAB_CHECK_SLOW_LINK, fab_about_port(&inv, port)));
    assert_int_not_equal(id, id_of(FAB_CHECK_SLOW_LINK, fab_about_node(&inv.nodes[port->node])));
    struct fab_about worse = fab_about_cable(&inv, port);
    worse.state = 7;
    assert_int_equal(id, id_of(FAB_CHECK_SLOW_LINK, worse));
    /* What is missing, and then lost, is one finding. */
    assert_int_equal(id_of(FAB_CHECK_MISSING, fab_about_text("x")),
                     id_of(FAB_CHECK_LOST, fab_about_text("x")));
}

TEST(test_nowhere)
{
    SCOPED(fab_inventory) cut, inv = generated("fattree2:4,2,4");
    SCOPED_BY(hand_without_free) struct hand_without without = hand_without_new(&inv);
    without.node[fabric_find(&inv, "node0003")] = true;
    hand_copy(&cut, &inv, &without, 0);
    hand_finish(&cut);
    ASSERT_FOUND(&cut, NULL, "leads-nowhere|leaf1[3]|ACTIVE, but nothing is seen at its other end");
    cut.ports[port_of(&cut, "leaf1", 3)].state = FAB_PORT_UNKNOWN;
    ASSERT_FOUND(&cut, NULL,
                 "leads-nowhere|leaf1[3]|it does not answer, but nothing is seen at its other end");
    cut.ports[port_of(&cut, "leaf1", 3)].state = FAB_PORT_DOWN;
    assert_found(&cut, NULL, NULL, 0);
}

/* ---- uplinks -------------------------------------------------------------------------------------- */

TEST(test_an_uplink)
{
    SCOPED(fab_inventory) inv = generated("fattree2:8,4,4");
    assert_int_equal(fabric_unlink(&inv, "leaf3", 6), 0);
    ASSERT_FOUND(&inv, NULL, "few-uplinks|leaf3|3 cables up, 7 of 8 such switches have 4; none to spine2");
    /* of two in parallel */
    generate_anew(&inv, "fattree2:8,4,4,2");
    assert_int_equal(fabric_unlink(&inv, "leaf3", 6), 0);
    ASSERT_FOUND(&inv, NULL,
                 "few-uplinks|leaf3|7 cables up, 7 of 8 such switches have 8; to spine1: 1 of the usual 2");
    /* in the wrong place: leaf3 has as many as others, where the last leaf's cable was */
    generate_anew(&inv, "fattree2:8,4,4");
    assert_int_equal(fabric_unlink(&inv, "leaf8", 5), 0);
    assert_int_equal(fabric_move(&inv, "leaf3", 6, "spine1", 8), 0);
    ASSERT_FOUND(&inv, NULL,
                 "few-uplinks|leaf3|cables to 3 switches above, 6 of 8 such switches to 4; none to spine2",
                 "few-uplinks|leaf8|3 cables up, 7 of 8 such switches have 4; none to spine1");
    /* above the leaves */
    generate_anew(&inv, "fattree3:8");
    char name[64];
    uint32_t n = FAB_NONE;
    for (uint32_t i = 0; i < inv.n_nodes && n == FAB_NONE; i++)
        if (strncmp(fabric_node_name(&inv, i, name, sizeof(name)), "core", 4) == 0)
            n = i;
    assert_int_not_equal(n, FAB_NONE);
    assert_int_equal(fabric_unlink(&inv, name, 3), 0);
    SCOPED(fab_findings) found;
    check(&inv, NULL, &found);
    assert_int_equal(found.n, 1);
    assert_int_equal(found.findings[0].kind, FAB_CHECK_FEW_UPLINKS);
    assert_non_null(strstr(found.findings[0].what, "3 cables up, 31 of 32 such switches have 4; none to "));
    assert_non_null(strstr(found.findings[0].what, name));
}

/* A host on a spine makes a leaf of it, with nothing above. */
TEST(test_a_host_on_a_spine)
{
    SCOPED(fab_inventory) inv = {0};
    uint32_t leaf[4], spine[2];
    char name[32];
    for (uint32_t i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), i < 4 ? "leaf%u" : "spine%u", i % 4 + 1);
        *(i < 4 ? &leaf[i] : &spine[i - 4]) = hand_node(&inv, FAB_SWITCH, 0x200 + i, name, 36, 0);
    }
    for (uint32_t i = 0; i < 8; i++) { /* two hosts and both spines on each leaf */
        snprintf(name, sizeof(name), "node%u HCA-1", i + 1);
        hand_cable(&inv, leaf[i / 2], 10 + i % 2, spine[i % 2], 1 + i / 2);
        hand_cable(&inv, leaf[i / 2], 1 + i % 2, hand_node(&inv, FAB_HCA, 0x1000 + 16 * i, name, 1, 0), 1);
    }
    hand_cable(&inv, spine[0], 30, hand_node(&inv, FAB_HCA, 0x2000, "manager HCA-1", 1, 0), 1);
    hand_finish(&inv);
    hand_names(&inv, NULL);
    assert_found(&inv, NULL, NULL, 0);
}

/* ---- hosts and names ------------------------------------------------------------------------------ */

/* HCAs on one switch as they describe themselves, and all that is found. */
TEST(test_ports_and_names_of_hosts)
{
    static const struct {
        const char *descs[10], *lines[5];
    } stars[] = {
        {{"n1 mlx5_0", "n1 mlx5_1", "n2 mlx5_0", "n2 mlx5_1", "n3 mlx5_0", "n10 mlx5_0", "n10 mlx5_1",
          "login1 mlx5_0"},
         {"few-ports|n3|1 cabled port, 3 of 4 such hosts have 2"}},
        /* without device names, two of one name are one host with more ports */
        {{"n1", "n2", "n3", "n4", "n4"},
         {"duplicate-name|n4|2 devices have only this name as their description: 0x0000000000001030, "
          "0x0000000000001040; check that all belong to one host",
          "many-ports|n4|2 cabled ports, 3 of 4 such hosts have 1"}},
        {{"n1", "n2", "n1", "n2", "login1"}, {NULL}}, /* built so */
        {{"n1", "n1", "n3", "n3", "n5", "n5", "n7"},  /* also where most are doubled */
         {"duplicate-name|n1|2 devices have only this name as their description: 0x0000000000001000, "
          "0x0000000000001010; check that all belong to one host",
          "duplicate-name|n3|2 devices have only this name as their description: 0x0000000000001020, "
          "0x0000000000001030; check that all belong to one host",
          "duplicate-name|n5|2 devices have only this name as their description: 0x0000000000001040, "
          "0x0000000000001050; check that all belong to one host",
          "few-ports|n7|1 cabled port, 3 of 4 such hosts have 2"}},
        {{"n1 mlx5_0", "n2 mlx5_0", "n2 mlx5_0"},
         {"duplicate-name|n2 mlx5_0|2 devices have this name: 0x0000000000001010, 0x0000000000001020"}},
        {{"n1 mlx5_0", "MT4123 ConnectX6", "localhost mlx5_0"},
         {"unnamed|0x0000000000001010 HCA-1|named by its GUID: no source names its host; its cable is at "
          "leaf1[2]",
          "unnamed|localhost mlx5_0|its host has no name of its own; its cable is at leaf1[3]"}},
        /* names that are taken for others */
        {{"n1 mlx5_0", "N1 mlx5_0", "n1 mlx5_1", "N1 mlx5_1", "n2.a mlx5_0", "n2.b mlx5_0", "10.0.0.7 mlx5_0",
          "10.0.0.8 mlx5_0", "10.0.0.7 mlx5_1"},
         {"confusing-name|10.0.0.7|its name is an IP address: a resolver may assign that to another host",
          "confusing-name|10.0.0.8|its name is an IP address: a resolver may assign that to another host",
          "confusing-name|n1|its name differs from that of N1 by case only: a resolver takes them for one "
          "host"}},
    };
    for (size_t i = 0; i < sizeof(stars) / sizeof(stars[0]); i++) {
        SCOPED(fab_inventory) inv;
        uint32_t n_descs = 0, n_lines = 0;
        while (stars[i].descs[n_descs] != NULL)
            n_descs++;
        while (stars[i].lines[n_lines] != NULL)
            n_lines++;
        hand_star(&inv, 0x1000, 1, stars[i].descs, n_descs);
        assert_found(&inv, NULL, stars[i].lines, n_lines);
    }
}

TEST(test_names_of_switches)
{
    SCOPED(fab_inventory) inv = {0};
    uint32_t sw[6];
    for (uint32_t i = 0; i < 6; i++)
        sw[i] = hand_node(&inv, FAB_SWITCH, 0x200 + i, i < 5 ? "Quantum" : "leaf\t1", 36, 0);
    for (uint32_t i = 0; i < 5; i++)
        hand_cable(&inv, sw[i], 1, sw[i + 1], 2);
    hand_finish(&inv);
    hand_names(&inv, NULL);
    ASSERT_FOUND(&inv, NULL,
                 "unnamed|Quantum|5 switches have this name: 0x0000000000000200, 0x0000000000000201, "
                 "0x0000000000000202, 0x0000000000000203, ...");
}

TEST(test_names_that_something_else_has)
{
    SCOPED(fab_inventory) inv;
    HAND_STAR(&inv, 0x1000, 1, "leaf1 mlx5_0", "leaf1 mlx5_1", "Leaf1a mlx5_0", "n2 mlx5_0", "ib7 mlx5_0");
    ASSERT_FOUND(
        &inv, NULL,
        "same-name|leaf1|a host and the switch 0x0000000000000200 have this name: programs that read "
        "a file with both confuse them");
    struct fab_findings planes = {0};
    must_do(fab_check_plane_name(&inv, "ib0", &planes));
    assert_int_equal(planes.n, 0);
    must_do(fab_check_plane_name(&inv, "ib7", &planes));
    assert_int_equal(planes.n, 1);
    assert_string_equal(planes.findings[0].where, "ib7");
    assert_int_equal(planes.findings[0].kind, FAB_CHECK_SAME_NAME);
    fab_findings_destroy(&planes);
}

TEST(test_names_that_nobody_writes)
{
    SCOPED(fab_inventory) inv;
    HAND_STAR(&inv, 0x1000, 1, "n1 mlx5_0", "n1 mlx5_1", "MT4123 ConnectX6");
    for (uint32_t i = 0; i < inv.n_nodes; i++)
        if (strcmp(fab_str(&inv, inv.nodes[i].host), "n1") == 0)
            inv.nodes[i].host = fab_inventory_string(&inv, "login 1", 7);
    ASSERT_FOUND(
        &inv, NULL,
        "confusing-name|login 1|its name has other characters than letters, digits, '.', '_' and '-': "
        "exports leave it out",
        "unnamed|0x0000000000001020 HCA-1|named by its GUID: no source names its host; its cable is at "
        "leaf1[3]");
}

/* ---- facts ---------------------------------------------------------------------------------------- */

TEST(test_facts)
{
    SCOPED(fab_inventory) inv = generated("fattree2:4,2,4");
    SCOPED_BY(fabric_details_destroy) struct fab_details details = clean_details(&inv);
    uint32_t one = port_of(&inv, "node0003", 1), two = port_of(&inv, "node0004", 1);
    fact_of(&details, one, FAB_FACT_FIRMWARE)->text = add_text(&details, "20.28.2006");
    *fact_of(&details, two, FAB_FACT_NUMA) = (struct fab_detail){.kind = FAB_FACT_SLOT_SPEED,
                                                                 .text = add_text(&details, "126016"),
                                                                 .sources = 1u << FAB_FROM_HWLOC,
                                                                 .flags = FAB_DETAIL_CHOSEN};
    ASSERT_FOUND(&inv, &details,
                 "slow-slot|node0004 HCA-1|its PCI slot has 126.016 Gb/s, the link of port 1 200 Gb/s",
                 "firmware|node0003 HCA-1|20.28.2006; 15 of 16 MT28908 Family [ConnectX-6] have 20.31.1014");
    fact_of(&details, two, FAB_FACT_SLOT_SPEED)->text = add_text(&details, "252000");
    fact_of(&details, one, FAB_FACT_FIRMWARE)->text = fact_of(&details, two, FAB_FACT_FIRMWARE)->text;
    assert_found(&inv, &details, NULL, 0);
    /* what sources say otherwise */
    struct fab_detail *speed = fact_of(&details, one, FAB_FACT_SPEED),
                      *mtu = fact_of(&details, one, FAB_FACT_MTU);
    speed->flags |= FAB_DETAIL_CONFLICT;
    speed->sources = 1u << FAB_FROM_SUBNET;
    *mtu = *speed;
    mtu->flags = FAB_DETAIL_CONFLICT;
    mtu->sources = 1u << FAB_FROM_VERBS | 1u << FAB_FROM_UCX;
    mtu->text = add_text(&details, "100000");
    ASSERT_FOUND(&inv, &details,
                 "conflict|node0003 HCA-1[1]|speed: 100 Gb/s (verbs, ucx); 200 Gb/s (subnet)");
}

TEST(test_seen_by_one)
{
    SCOPED(fab_inventory) inv;
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    HAND_STAR(&inv, 0x1000, 1, "n1 mlx5_0", "n1 mlx5_1", "n2 mlx5_0", "n2 mlx5_1");
    details = clean_details(&inv);
    uint32_t p = fab_inventory_port(&inv, fab_inventory_find(&inv, 0x1010), 1);
    details.seen[p] = FAB_SEEN_SUBNET;
    ASSERT_FOUND(
        &inv, &details,
        "not-reported|n1 mlx5_1[1]|it is at leaf1[2], but the report of its host does not contain it");
    /* a host of which no word came says nothing by that */
    details.seen[fab_inventory_port(&inv, fab_inventory_find(&inv, 0x1000), 1)] = FAB_SEEN_SUBNET;
    assert_found(&inv, &details, NULL, 0);
    fabric_details_destroy(&details);
    fab_inventory_destroy(&inv);
    /* up by its host's word, and in no subnet that is swept */
    fab_inventory_init(&inv);
    uint32_t sw = hand_node(&inv, FAB_SWITCH, 0x200, "leaf1", 36, 0);
    hand_cable(&inv, sw, 1, hand_node(&inv, FAB_HCA, 0x1000, "n1 mlx5_0", 1, 0), 1);
    uint32_t other = hand_node(&inv, FAB_HCA, 0x1010, "n1 mlx5_1", 1, 0);
    inv.subnets[0].prefix = FAB_DEFAULT_PREFIX;
    inv.subnets[1].prefix = FAB_UNATTACHED;
    inv.n_subnets = 2;
    inv.ports[hand_port(&inv, other, 1, 0x1011, 0)].subnet = 1;
    hand_finish(&inv);
    hand_names(&inv, NULL);
    details = clean_details(&inv);
    p = fab_inventory_port(&inv, fab_inventory_find(&inv, 0x1010), 1);
    details.seen[p] = FAB_SEEN_NODE;
    ASSERT_FOUND(&inv, &details, "not-swept|n1 mlx5_1[1]|its host reports it as up, but no sweep sees it");
    inv.ports[p].state = FAB_PORT_DOWN;
    assert_found(&inv, &details, NULL, 0);
}

/* ---- many at random ------------------------------------------------------------------------------- */

static unsigned roll(uint64_t *dice, unsigned n)
{
    return (unsigned)(fabric_random_next(dice) % n);
}

/* Whatever is planted where: it is found, once, and nothing else is. */
TEST(test_planted)
{
    uint64_t dice = 17;
    for (int round = 0; round < 150; round++) {
        SCOPED(fab_inventory) inv;
        SCOPED(fab_findings) found;
        const unsigned leaves = 4 + roll(&dice, 12), spines = 2 + roll(&dice, 6);
        const unsigned hosts = 3 + roll(&dice, 8), cables = 1 + roll(&dice, 3);
        assert_int_equal(fabric_fattree2(&inv, leaves, spines, hosts, cables), 0);
        const char *leaf = printed("leaf%u", 1 + roll(&dice, leaves));
        unsigned port = 1 + roll(&dice, hosts + spines * cables);
        enum fab_check_kind kind = FAB_CHECK_SLOW_LINK;
        switch (fabric_random_next(&dice) % 3) {
        case 0:
            assert_int_equal(fabric_set_rate(&inv, leaf, port, 1 + roll(&dice, 2), FAB_HDR), 0);
            break;
        case 1:
            port = hosts + 1 + roll(&dice, spines * cables);
            assert_int_equal(fabric_unlink(&inv, leaf, port), 0);
            kind = FAB_CHECK_FEW_UPLINKS;
            break;
        default:
            inv.ports[port_of(&inv, leaf, port)].state = FAB_PORT_ARMED;
            kind = FAB_CHECK_INACTIVE;
            break;
        }
        check(&inv, NULL, &found);
        if (found.n != 1 || found.findings[0].kind != kind ||
            strncmp(found.findings[0].where, leaf, strlen(leaf)) != 0)
            fail_msg("round %d: %s planted at %s[%u] of %u,%u,%u,%u: %u found, first %s %s: %s", round,
                     fab_check_name(kind), leaf, port, leaves, spines, hosts, cables, found.n,
                     found.n > 0 ? fab_check_name(found.findings[0].kind) : "-",
                     found.n > 0 ? found.findings[0].where : "-", found.n > 0 ? found.findings[0].what : "-");
    }
}

/* Random fabrics with random facts and states: never more than an answer, the same for each order of input */
TEST(test_any)
{
    uint64_t dice = 5;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        SCOPED(fab_inventory) inv, other;
        SCOPED_BY(fabric_details_destroy) struct fab_details details;
        SCOPED(fab_findings) found, again;
        assert_int_equal(fabric_random(&inv, 1 + (unsigned)(seed % 20), (unsigned)(seed * 3 % 70),
                                       (unsigned)(seed % 30), 1, seed),
                         0);
        for (uint32_t p = 0; p < inv.n_ports; p++)
            if (fabric_random_next(&dice) % 5 == 0)
                inv.ports[p].state = (uint8_t)(fabric_random_next(&dice) % 5);
        for (uint32_t n = 0; n < inv.n_nodes; n++)
            inv.nodes[n].missing = fabric_random_next(&dice) % 20 == 0;
        assert_int_equal(fabric_details(&inv, seed, &details), 0);
        check(&inv, &details, &found);
        fab_findings_destroy(&found);
        SCOPED_BY(hand_without_free) struct hand_without without = hand_without_new(&inv);
        hand_copy(&other, &inv, &without, seed);
        hand_finish(&other);
        check(&inv, NULL, &found);
        check(&other, NULL, &again);
        assert_int_equal(found.n, again.n);
        for (uint32_t i = 0; i < found.n; i++) {
            assert_string_equal(found.findings[i].where, again.findings[i].where);
            assert_string_equal(found.findings[i].what, again.findings[i].what);
        }
    }
}
