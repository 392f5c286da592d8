/* Building, ordering, checking, copying and comparing inventories. */
#include "test/unit/handmade.h"
#include "topo/base/natural.h"
#include "topo/base/radix.h"

TEST(test_strings)
{
    SCOPED(fab_inventory) inv;
    fab_inventory_init(&inv);
    assert_string_equal(fab_str(&inv, 0), "");
    assert_int_equal(fab_inventory_string(&inv, "", 0), 0);
    assert_int_equal(fab_inventory_string(&inv, NULL, 7), 0);
    assert_int_equal(fab_inventory_string(&inv, "\0hidden", 7), 0);
    uint32_t a = fab_inventory_string(&inv, "leaf1 and more", 5), b = fab_inventory_string(&inv, "x\0y", 3);
    assert_true(a != 0 && b != 0 && a != b);
    for (int i = 0; i < 5000; i++) { /* past several growths */
        char text[16];
        int n = snprintf(text, sizeof(text), "node%d", i);
        assert_string_equal(fab_str(&inv, fab_inventory_string(&inv, text, (size_t)n)), text);
    }
    assert_string_equal(fab_str(&inv, a), "leaf1");
    assert_string_equal(fab_str(&inv, b), "x");
    assert_string_equal(fab_str(&inv, 0), "");
    fab_inventory_destroy(&inv);
    fab_inventory_destroy(NULL);
}

TEST(test_empty)
{
    struct fab_inventory inv;
    fab_inventory_init(&inv);
    assert_false(fab_inventory_equal(&inv, &inv));
    hand_finish(&inv);
    assert_int_equal(inv.n_subnets, 0);
    assert_true(fab_inventory_equal(&inv, &inv));
    SCOPED(fab_inventory) copy = inventory_copy(&inv);
    assert_true(fab_inventory_equal(&inv, &copy));
    assert_int_equal(fab_inventory_find(&inv, 1), FAB_NONE);
    assert_int_equal(fab_inventory_port(&inv, 0, 1), FAB_NONE);
}

/* The plain truth about an inventory: node by node and cable by cable, found by walking. */
static void assert_same_facts(const struct fab_inventory *a, const struct fab_inventory *b)
{
    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_int_equal(a->n_ports, b->n_ports);
    for (uint32_t i = 0; i < a->n_ports; i++) {
        const struct fab_port *p = &a->ports[i], *q = NULL;
        uint64_t guid = a->nodes[p->node].guid;
        for (uint32_t k = 0; k < b->n_ports && q == NULL; k++) {
            if (b->nodes[b->ports[k].node].guid == guid && b->ports[k].num == p->num)
                q = &b->ports[k];
        }
        assert_non_null(q);
        assert_string_equal(fab_str(a, a->nodes[p->node].desc), fab_str(b, b->nodes[q->node].desc));
        assert_int_equal(p->width, q->width);
        assert_int_equal(p->speed, q->speed);
        assert_int_equal(p->peer == FAB_NONE, q->peer == FAB_NONE);
        if (p->peer == FAB_NONE)
            continue;
        assert_int_equal(a->nodes[a->ports[p->peer].node].guid, b->nodes[b->ports[q->peer].node].guid);
        assert_int_equal(a->ports[p->peer].num, b->ports[q->peer].num);
    }
}

TEST(test_order_does_not_matter)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        SCOPED(fab_inventory) a, b;
        assert_int_equal(fabric_random(&a, 1 + (unsigned)seed % 9, 40, 12, 1, seed), 0);
        SCOPED_BY(hand_without_free) struct hand_without without = hand_without_new(&a);
        hand_copy(&b, &a, &without, seed);
        hand_finish(&b);
        assert_true(fab_inventory_equal(&a, &b));
        assert_same_facts(&a, &b);
        uint32_t at = 0;
        for (uint32_t i = 0; i < b.n_nodes; i++) {
            assert_true(i == 0 || b.nodes[i - 1].guid < b.nodes[i].guid);
            assert_int_equal(fab_inventory_find(&b, b.nodes[i].guid), i);
            assert_int_equal(b.nodes[i].first_port, at);
            for (unsigned num = 0; num < 256; num++) {
                uint32_t found = FAB_NONE;
                for (uint32_t p = 0; p < b.n_ports; p++)
                    found = b.ports[p].node == i && b.ports[p].num == num ? p : found;
                assert_int_equal(fab_inventory_port(&b, i, num), found);
            }
            at += b.nodes[i].n_ports;
        }
        assert_int_equal(at, b.n_ports);
        assert_int_equal(fab_inventory_find(&b, 0), FAB_NONE);
        assert_int_equal(fab_inventory_find(&b, 0x100000 - 1), FAB_NONE);
        assert_int_equal(fab_inventory_find(&b, UINT64_MAX), FAB_NONE);
        assert_int_equal(fab_inventory_port(&b, b.n_nodes, 1), FAB_NONE);
        hand_finish(&b); /* again */
        assert_true(fab_inventory_equal(&a, &b));
    }
}

TEST(test_finished_is_closed)
{
    SCOPED(fab_inventory) inv = generated("fattree2:2,2,2");
    struct fab_node node = {.guid = 9, .kind = FAB_HCA, .num_ports = 1};
    struct fab_port port = {.num = 1};
    assert_int_equal(fab_inventory_add_node(&inv, &node, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_inventory_add_port(&inv, &port, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_inventory_link(&inv, 0, 1), PMIXFAB_ERR_INVAL);
}

TEST(test_link)
{
    SCOPED(fab_inventory) inv;
    fab_inventory_init(&inv);
    uint32_t sw = hand_node(&inv, FAB_SWITCH, 1, "sw", 8, 0);
    hand_port(&inv, sw, 1, 0, 0);
    hand_port(&inv, sw, 2, 0, 0);
    hand_port(&inv, sw, 3, 0, 0);
    assert_int_equal(fab_inventory_link(&inv, 0, 3), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_inventory_link(&inv, FAB_NONE, 0), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_inventory_link(&inv, 0, 1), 0);
    assert_int_equal(fab_inventory_link(&inv, 2, 1), PMIXFAB_ERR_CONFLICT);
    assert_int_equal(fab_inventory_link(&inv, 0, 2), PMIXFAB_ERR_CONFLICT);
}

/* A switch with four ports and two HCAs, one of them with two ports: lines 10, 20, 30 and their ports'
 * behind. */
static void small(struct fab_inventory *inv)
{
    fab_inventory_init(inv);
    uint32_t sw = hand_node(inv, FAB_SWITCH, 0x200, "leaf1", 4, 10);
    uint32_t one = hand_node(inv, FAB_HCA, 0x100, "node001 HCA-1", 1, 20);
    uint32_t two = hand_node(inv, FAB_HCA, 0x110, "node002 HCA-1", 2, 30);
    hand_port(inv, sw, 1, 0, 11);      /* 0 */
    hand_port(inv, sw, 2, 0, 12);      /* 1 */
    hand_port(inv, sw, 3, 0, 13);      /* 2: leads nowhere */
    hand_port(inv, one, 1, 0x101, 21); /* 3 */
    hand_port(inv, two, 1, 0x111, 31); /* 4 */
    hand_port(inv, two, 2, 0x112, 32); /* 5: down */
    inv->ports[5].state = FAB_PORT_DOWN;
    inv->n_subnets = 1;
    inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
    assert_int_equal(fab_inventory_link(inv, 0, 3), 0);
    assert_int_equal(fab_inventory_link(inv, 1, 4), 0);
}

TEST(test_dangling)
{
    struct fab_inventory inv;
    for (unsigned s = FAB_PORT_UNKNOWN; s <= FAB_PORT_DISABLED; s++) {
        small(&inv);
        inv.ports[2].state = (uint8_t)s;
        hand_finish(&inv);
        /* a switch's port: unknown means that it did not answer */
        assert_int_equal(inv.n_dangling,
                         (s >= FAB_PORT_INIT && s != FAB_PORT_DISABLED) || s == FAB_PORT_UNKNOWN);
        fab_inventory_destroy(&inv);
    }
}

TEST(test_unknown_facts_are_fine)
{
    SCOPED(fab_inventory) inv;
    small(&inv);
    inv.n_subnets = 0; /* finish gives the default one */
    for (int i = 0; i < 6; i++) {
        inv.ports[i].width = inv.ports[i].speed = inv.ports[i].state = 0;
        inv.ports[i].guid = 0;
    }
    hand_finish(&inv);
    assert_int_equal(inv.n_subnets, 1);
    assert_true(inv.subnets[0].prefix == FAB_DEFAULT_PREFIX);
}

/* The small one with this done to it is refused, with this message. */
#define REFUSED(what, code, message)                                                                         \
    do {                                                                                                     \
        SCOPED(fab_inventory) refused;                                                                       \
        struct fab_inventory *inv = &refused;                                                                \
        small(inv);                                                                                          \
        what;                                                                                                \
        assert_refused(inv, PMIXFAB_ERR_##code, message);                                                    \
    } while (0)

static void assert_refused(struct fab_inventory *inv, int code, const char *message)
{
    struct fab_err err = {{0}};
    assert_int_equal(fab_inventory_finish(inv, &err), code);
    assert_string_equal(err.text, message);
    assert_false(inv->finished);
    assert_int_equal(fab_inventory_finish(inv, NULL), code);
}

TEST(test_refusals)
{
    REFUSED(inv->nodes[2].guid = 0x100, CONFLICT,
            "line 30: two nodes have the GUID 0x0000000000000100, first in line 20");
    REFUSED((inv->nodes[1].line = inv->nodes[2].line = 0, inv->nodes[2].guid = 0x100), CONFLICT,
            "two nodes have the GUID 0x0000000000000100");
    REFUSED(inv->nodes[1].guid = 0, RANGE, "line 20: node \"node001 HCA-1\" has no GUID (0)");
    REFUSED(inv->nodes[1].kind = 0, RANGE, "line 20: node 0x0000000000000100 has an unknown kind (0)");
    REFUSED(inv->nodes[1].kind = 5, RANGE, "line 20: node 0x0000000000000100 has an unknown kind (5)");
    REFUSED(inv->nodes[1].num_ports = 0, RANGE,
            "line 20: node 0x0000000000000100 has 0 ports; 1 to 254 are possible");
    REFUSED(inv->nodes[0].num_ports = 255, RANGE,
            "line 10: node 0x0000000000000200 has 255 ports; 1 to 254 are possible");
    REFUSED(inv->ports[1].num = 1, CONFLICT,
            "line 12: node 0x0000000000000200 has two ports 1, first in line 11");
    REFUSED(inv->ports[4].guid = 0x101, CONFLICT,
            "line 31: two HCA ports have the port GUID 0x0000000000000101 (nodes 0x0000000000000100 and "
            "0x0000000000000110), first in line 21");
    REFUSED(inv->ports[1].num = 0, RANGE, "line 12: node 0x0000000000000200 has no port 0, it has 1 to 4");
    REFUSED(inv->ports[1].num = 255, RANGE,
            "line 12: node 0x0000000000000200 has no port 255, it has 1 to 4");
    REFUSED(inv->ports[2].num = 5, RANGE, "line 13: node 0x0000000000000200 has no port 5, it has 1 to 4");
    REFUSED(inv->ports[2].peer = 2, CONFLICT,
            "line 13: port 3 of node 0x0000000000000200 is cabled to itself");
    REFUSED((inv->ports[2].peer = 1, inv->ports[1].peer = 2, inv->ports[4].peer = FAB_NONE), CONFLICT,
            "line 12: port 2 of node 0x0000000000000200 is cabled to port 3 of the same node");
    REFUSED(inv->ports[1].peer = 3, CONFLICT,
            "line 12: port 2 of node 0x0000000000000200 leads to port 1 of node 0x0000000000000100, which "
            "does not lead back");
    REFUSED(inv->ports[5].peer = 2, CONFLICT,
            "line 32: port 2 of node 0x0000000000000110 leads to port 3 of node 0x0000000000000200, which "
            "does not lead back");
    REFUSED(inv->ports[5].peer = 6, CORRUPT,
            "line 32: port 2 of node 0x0000000000000110 is cabled to no port");
    REFUSED(inv->ports[5].node = 3, CORRUPT, "line 32: a port is of no node");
    REFUSED(inv->ports[4].node = 99, CORRUPT, "line 31: a port is of no node");
    REFUSED(inv->ports[1].width = 3, RANGE,
            "line 12: port 2 of node 0x0000000000000200 has an unknown width (3)");
    REFUSED(inv->ports[1].speed = FAB_SPEEDS, RANGE,
            "line 12: port 2 of node 0x0000000000000200 has an unknown speed (11)");
    REFUSED(inv->ports[1].state = 7, RANGE,
            "line 12: port 2 of node 0x0000000000000200 has an unknown state (7)");
    REFUSED(inv->ports[1].subnet = 1, RANGE,
            "line 12: port 2 of node 0x0000000000000200 is of no subnet (1)");
    REFUSED(inv->n_subnets = 33, RANGE, "33 subnets; at most 32 are possible");
    REFUSED(inv->nodes[1].name = inv->pool_size, CORRUPT,
            "line 20: node 0x0000000000000100 has a name outside the pool of names");
    REFUSED(inv->nodes[1].desc = FAB_NONE, CORRUPT,
            "line 20: node 0x0000000000000100 has a name outside the pool of names");
}

/* A switch's ports have no GUID, and may all say 0; a control character in a name stays out of the message */
TEST(test_refusal_is_one_clean_line)
{
    SCOPED(fab_inventory) inv;
    struct fab_err err = {{0}};
    fab_inventory_init(&inv);
    hand_node(&inv, FAB_SWITCH, 0, "leaf\n1\x1b[2J", 4, 7);
    assert_int_equal(fab_inventory_finish(&inv, &err), PMIXFAB_ERR_RANGE);
    assert_string_equal(err.text, "line 7: node \"leaf?1?[2J\" has no GUID (0)");
}

TEST(test_copy_stands_alone)
{
    SCOPED(fab_inventory) a, b;
    small(&a);
    assert_int_equal(fab_inventory_copy(&b, &a), PMIXFAB_ERR_INVAL);
    hand_finish(&a);
    b = inventory_copy(&a);
    assert_true(fab_inventory_equal(&a, &b));
    assert_int_equal(b.n_dangling, 1);
    b.ports[0].lid = 77;
    assert_false(fab_inventory_equal(&a, &b));
    assert_int_not_equal(a.ports[0].lid, 77);
    assert_string_equal(fab_str(&b, b.nodes[0].desc), "node001 HCA-1");
}

/* Every field counts, but for lines and where in the pool a string stands. */
TEST(test_equal_sees_every_field)
{
    SCOPED(fab_inventory) a;
    small(&a);
    hand_finish(&a);
    SCOPED(fab_inventory) b = inventory_copy(&a);
    b.nodes[0].line = b.ports[0].line = 4711;
    b.nodes[0].desc = fab_inventory_string(&b, "node001 HCA-1", 13);
    assert_true(fab_inventory_equal(&a, &b));

#define DIFFERS(field, value)                                                                                \
    do {                                                                                                     \
        uint64_t kept = (field);                                                                             \
        (field) = (value);                                                                                   \
        assert_false(fab_inventory_equal(&a, &b));                                                           \
        (field) = kept;                                                                                      \
        assert_true(fab_inventory_equal(&a, &b));                                                            \
    } while (0)
    struct fab_node *node = &b.nodes[1];
    struct fab_port *port = &b.ports[2];
    uint32_t other = fab_inventory_string(&b, "other", 5);
    DIFFERS(node->guid, 0x111);
    DIFFERS(node->system_guid, 1);
    DIFFERS(node->vendor_id, 1);
    DIFFERS(node->device_id, 1);
    DIFFERS(node->desc, other);
    DIFFERS(node->host, other);
    DIFFERS(node->name, other);
    DIFFERS(node->lid, 1);
    DIFFERS(node->chassis, 1);
    DIFFERS(node->slot_type, 1);
    DIFFERS(node->slot, 1);
    DIFFERS(node->chip, 1);
    DIFFERS(node->kind, FAB_ROUTER);
    DIFFERS(node->lmc, 1);
    DIFFERS(node->num_ports, 9);
    DIFFERS(node->enhanced, 1);
    DIFFERS(node->unnamed, 1);
    DIFFERS(node->missing, 1);
    DIFFERS(port->guid, 1);
    DIFFERS(port->node, 2);
    DIFFERS(port->peer, 0);
    DIFFERS(port->lid, 1);
    DIFFERS(port->num, 9);
    DIFFERS(port->lmc, 1);
    DIFFERS(port->state, FAB_PORT_INIT);
    DIFFERS(port->width, 1);
    DIFFERS(port->speed, FAB_SDR);
    DIFFERS(port->subnet, 1);
    DIFFERS(port->missing, 1);
    DIFFERS(b.subnets[0].prefix, 1);
    DIFFERS(b.n_subnets, 2);
    DIFFERS(b.n_ports, 3);
    DIFFERS(b.n_nodes, 2);
}

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

TEST(test_natural_order)
{
    static const char *const sorted[] = {"",
                                         "-",
                                         "0",
                                         "00",
                                         "001",
                                         "01",
                                         "1",
                                         "2",
                                         "10",
                                         "node",
                                         "node-1",
                                         "node01",
                                         "node1",
                                         "node1a",
                                         "node1a2",
                                         "node1a10",
                                         "node02",
                                         "node2",
                                         "node010",
                                         "node10",
                                         "node10b1",
                                         "node100",
                                         "node99999999999999999999998",
                                         "node99999999999999999999999",
                                         "nodeA",
                                         "nodea",
                                         "rack2-n3",
                                         "rack10-n1",
                                         "\xc3\xa9"};
    int n = sizeof(sorted) / sizeof(sorted[0]);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            if (sign(fab_natural_cmp(sorted[i], sorted[k])) != sign(i - k))
                fail_msg("\"%s\" against \"%s\"", sorted[i], sorted[k]);
        }
    }
    assert_true(fab_natural_cmp("a01b2", "a1b3") < 0); /* the values decide before the zeros do */
    assert_true(fab_natural_cmp("a1b2", "a01b3") < 0);
}

static int compare_keys(const void *a, const void *b)
{
    const struct fab_key *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The sort against qsort(), on keys with few, many and only high bits in use. */
TEST(test_sort_by_number)
{
    enum { MOST = 300 };
    static const uint64_t masks[] = {
        0, 1, 0xff, 0xf00f, 0xffffff00, UINT64_MAX, 0xffull << 56, 0x8000000000000001u, 0xff00ff00ull << 8,
        7};
    uint64_t seed = 2;
    for (int round = 0; round < 800; round++) {
        struct fab_key keys[MOST] = {{0}}, plain[MOST] = {{0}}, scratch[MOST];
        uint32_t n = (uint32_t)(fabric_random_next(&seed) % (round % 7 == 0 ? 4 : MOST + 1));
        uint64_t mask = masks[(size_t)round % (sizeof(masks) / sizeof(masks[0]))];
        for (uint32_t i = 0; i < n; i++)
            keys[i] = plain[i] =
                (struct fab_key){(fabric_random_next(&seed) ^ fabric_random_next(&seed) << 32) & mask, i};
        qsort(plain, n, sizeof(*plain), compare_keys);
        bool changed = false;
        for (uint32_t i = 0; i < n; i++)
            changed = changed || plain[i].index != i;
        assert_int_equal(fab_radix_sort(keys, scratch, n), changed);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(keys[i].value == plain[i].value);
            assert_int_equal(keys[i].index, plain[i].index);
            if (i == 0 || keys[i - 1].value != keys[i].value)
                assert_int_equal(fab_radix_find(keys, n, keys[i].value), keys[i].index);
        }
        assert_int_equal(fab_radix_find(keys, n, mask + 1),
                         mask == UINT64_MAX && n > 0 && keys[0].value == 0 ? keys[0].index : UINT32_MAX);
    }
}
