/* What changed from one inventory to the next. */
#include "test/unit/handmade.h"
#include "test/unit/hands.h"
#include "topo/base/natural.h"
#include "topo/changes/changes.h"

static struct fab_diff compute(const struct fab_inventory *before, const struct fab_inventory *after)
{
    struct fab_diff diff;
    assert_int_equal(fab_diff_compute(before, after, &diff), 0);
    assert_int_equal(diff.n == 0, fab_inventory_equal(before, after));
    for (uint32_t i = 0; i < diff.n; i++) {
        const struct fab_change *c = &diff.changes[i];
        assert_true(c->what[0] != '\0');
        assert_true(
            i == 0 || diff.changes[i - 1].kind < c->kind ||
            (diff.changes[i - 1].kind == c->kind && fab_natural_cmp(diff.changes[i - 1].what, c->what) <= 0));
        for (const char *text = c->what; text != NULL; text = text == c->what     ? c->before
                                                              : text == c->before ? c->after
                                                                                  : NULL) {
            for (const char *s = text; *s != '\0'; s++)
                assert_false((unsigned char)*s < 0x20 || *s == 0x7f);
        }
    }
    return diff;
}

/* All changes from the one to the other, as lines "kind|what|before|after"; n_lost says what is lost of them.
 */
static void assert_changes(const struct fab_inventory *before, const struct fab_inventory *after,
                           const char *const *lines, uint32_t n)
{
    SCOPED(fab_diff) diff = compute(before, after);
    uint32_t n_lost = 0;
    assert_lines(&diff, false, lines, n);
    for (uint32_t i = 0; i < n; i++)
        n_lost += strstr(lines[i], "-lost|") != NULL;
    assert_int_equal(diff.n_lost, n_lost);
}

#define CHANGES(before, after, ...) assert_changes(before, after, LINES(__VA_ARGS__))

TEST(test_kinds_have_words)
{
    for (int k = FAB_CHANGE_HOST_ADDED; k < FAB_CHANGE_KINDS; k++) {
        for (int other = FAB_CHANGE_HOST_ADDED; other < k; other++)
            assert_string_not_equal(fab_change_name((enum fab_change_kind)k),
                                    fab_change_name((enum fab_change_kind)other));
        assert_string_not_equal(fab_change_name((enum fab_change_kind)k), "unknown");
    }
    assert_string_equal(fab_change_name(0), "unknown");
    assert_string_equal(fab_change_name(FAB_CHANGE_KINDS), "unknown");
}

TEST(test_a_cable_of_a_host)
{
    SCOPED(fab_inventory) before = generated("fattree2:2,2,2"), after = inventory_copy(&before);
    assert_int_equal(fabric_unlink(&after, "leaf1", 2), 0);
    SCOPED(fab_diff) diff = compute(&before, &after);
    CHANGES(&before, &after, "host-lost|node0002|1 device|",
            "device-lost|node0002 HCA-1[1]|0x0000000000100002|",
            "link-lost|leaf1[2] - node0002 HCA-1[1]|4xHDR|");
    assert_int_equal(diff.changes[0].guid, 0x100002);
    assert_int_equal(diff.changes[0].port, 0);
    assert_int_equal(diff.changes[1].port, 1);
    assert_int_equal(diff.changes[2].guid, 0x100002);
    assert_int_equal(diff.changes[2].port, 1);
    CHANGES(&after, &before, "host-added|node0002||1 device",
            "device-added|node0002 HCA-1[1]||0x0000000000100002",
            "link-added|leaf1[2] - node0002 HCA-1[1]||4xHDR");
    fab_diff_destroy(NULL);
}

/* Two hosts on a switch, one of them with two HCAs; a router and a lone HCA. */
static struct fab_inventory small(void)
{
    struct fab_inventory small_one, *inv = &small_one;
    fab_inventory_init(inv);
    uint32_t sw = hand_node(inv, FAB_SWITCH, 0x200, "leaf1", 36, 0);
    uint32_t spine = hand_node(inv, FAB_SWITCH, 0x201, "spine1", 36, 0);
    uint32_t a1 = hand_node(inv, FAB_HCA, 0x100, "a HCA-1", 2, 0);
    uint32_t a2 = hand_node(inv, FAB_HCA, 0x110, "a HCA-2", 1, 0);
    uint32_t b = hand_node(inv, FAB_HCA, 0x120, "b HCA-1", 1, 0);
    uint32_t router = hand_node(inv, FAB_ROUTER, 0x300, "router1", 1, 0);
    hand_cable(inv, sw, 1, a1, 1);
    hand_cable(inv, sw, 2, a2, 1);
    hand_cable(inv, sw, 3, b, 1);
    hand_cable(inv, sw, 10, spine, 1);
    hand_cable(inv, sw, 11, spine, 2);
    hand_cable(inv, sw, 20, router, 1);
    inv->ports[hand_port(inv, a1, 2, 0x102, 0)].state = FAB_PORT_DOWN;
    hand_finish(inv);
    hand_names(inv, NULL);
    return small_one;
}

TEST(test_from_and_to_nothing)
{
    SCOPED(fab_inventory) whole = small(), nothing = {0}; /* need not even be finished */
    struct fab_diff diff;
    assert_int_equal(fab_diff_compute(&nothing, &whole, &diff), 0);
    assert_lines(&diff, false,
                 LINES("host-added|a||2 devices", "host-added|b||1 device",
                       "device-added|a HCA-1[1]||0x0000000000000100",
                       "device-added|a HCA-2[1]||0x0000000000000110",
                       "device-added|b HCA-1[1]||0x0000000000000120",
                       "switch-added|leaf1||0x0000000000000200", "switch-added|spine1||0x0000000000000201",
                       "link-added|leaf1[1] - a HCA-1[1]||4xHDR", "link-added|leaf1[2] - a HCA-2[1]||4xHDR",
                       "link-added|leaf1[3] - b HCA-1[1]||4xHDR", "link-added|leaf1[10] - spine1[1]||4xHDR",
                       "link-added|leaf1[11] - spine1[2]||4xHDR", "link-added|leaf1[20] - router1[1]||4xHDR",
                       "other|router1||router", "other|subnet 0: prefix||0xfe80000000000000"));
    fab_diff_destroy(&diff);
    hand_finish(&nothing);
    diff = compute(&whole, &nothing);
    assert_int_equal(diff.n, 15);
    assert_int_equal(diff.n_lost, 13);
    fab_diff_destroy(&diff);
    diff = compute(&nothing, &nothing);
    assert_int_equal(diff.n, 0);
    nothing.finished = false;
    assert_int_equal(fab_diff_compute(&whole, &nothing, &diff), PMIXFAB_ERR_INVAL);
    whole.finished = false;
    assert_int_equal(fab_diff_compute(&whole, &whole, &diff), PMIXFAB_ERR_INVAL);
}

static struct fab_port *port_of(struct fab_inventory *inv, uint64_t guid, unsigned num)
{
    return &inv->ports[fab_inventory_port(inv, fab_inventory_find(inv, guid), num)];
}

TEST(test_states_and_rates)
{
    SCOPED(fab_inventory) before = small(), after = small();
    port_of(&after, 0x100, 1)->state = FAB_PORT_INIT;
    port_of(&after, 0x100, 2)->state = FAB_PORT_INIT; /* not cabled: not served */
    port_of(&after, 0x120, 1)->width = 1;             /* the ends do not agree: one change all the same */
    port_of(&after, 0x200, 11)->speed = FAB_XDR;
    port_of(&after, 0x201, 2)->speed = FAB_XDR;
    port_of(&after, 0x201, 1)->width = 0;
    port_of(&after, 0x201, 1)->speed = 0;
    CHANGES(&before, &after, "link-rate|leaf1[3] - b HCA-1[1]|4xHDR|1xHDR",
            "link-rate|leaf1[10] - spine1[1]|4xHDR|?", "link-rate|leaf1[11] - spine1[2]|4xHDR|4xXDR",
            "port-state|a HCA-1[1]|ACTIVE|INIT", "other|a HCA-1[2]: state|DOWN|INIT");
    port_of(&before, 0x100, 1)->state = FAB_PORT_ARMED; /* not up before, not up after */
    SCOPED(fab_diff) diff = compute(&before, &after);
    assert_string_equal(diff.changes[3].what, "a HCA-1[1]: state");
    assert_int_equal(diff.changes[3].kind, FAB_CHANGE_OTHER);
}

static void rename_node(struct fab_inventory *inv, uint64_t guid, const char *desc)
{
    inv->nodes[fab_inventory_find(inv, guid)].desc = fab_inventory_string(inv, desc, strlen(desc));
}

TEST(test_names)
{
    SCOPED(fab_inventory) before = small(), after = small();
    rename_node(&after, 0x200, "top\x1b[2Jof\nrack");
    rename_node(&after, 0x110, "c HCA-2"); /* a keeps HCA-1: only c comes */
    rename_node(&after, 0x120, "d HCA-1"); /* b goes, d comes */
    rename_node(&after, 0x300, "router2");
    hand_names(&after, NULL);
    CHANGES(&before, &after, "host-added|c||1 device", "host-added|d||1 device", "host-lost|b|1 device|",
            "name|a HCA-2|a HCA-2|c HCA-2", "name|b HCA-1|b HCA-1|d HCA-1", "name|leaf1|leaf1|top?[2Jof?rack",
            "name|router1|router1|router2");
    /* another description under the same name; what stands in it stays out of the terminal */
    rename_node(&before, 0x120, "b\n HCA-1");
    fab_inventory_destroy(&after);
    after = small();
    CHANGES(&before, &after, "other|b HCA-1: description|b? HCA-1|b HCA-1");
}

/* Names that never went through naming: what is in them stays out of the texts. */
TEST(test_dirty_names)
{
    SCOPED(fab_inventory) before = small(), after = small();
    struct fab_node *leaf = &before.nodes[fab_inventory_find(&before, 0x200)];
    struct fab_node *b = &before.nodes[fab_inventory_find(&before, 0x120)];
    leaf->name = fab_inventory_string(&before, "le\x1b[2Jaf\n", 9);
    b->host = fab_inventory_string(&before, "b\r\xff", 3);
    port_of(&after, 0x120, 1)->width = 1;
    CHANGES(&before, &after, "host-added|b||1 device", "host-lost|b??|1 device|",
            "link-rate|leaf1[3] - b HCA-1[1]|4xHDR|1xHDR", "name|b?? HCA-1|b?? HCA-1|b HCA-1",
            "name|le?[2Jaf?|le?[2Jaf?|leaf1");
}

TEST(test_everything_else)
{
    SCOPED(fab_inventory) before = small(), after = small();
    struct fab_node *leaf = &after.nodes[fab_inventory_find(&after, 0x200)];
    struct fab_port *port = port_of(&after, 0x120, 1), *down = port_of(&after, 0x100, 2);
    leaf->lid = 12;
    leaf->vendor_id = 0x2c9;
    leaf->device_id = 0xd2f0;
    leaf->system_guid = 0x200;
    leaf->num_ports = 41;
    leaf->chassis = 1;
    leaf->slot_type = 2;
    leaf->slot = 3;
    leaf->chip = 4;
    leaf->enhanced = 1;
    leaf->lmc = 2;
    port->lid = 7;
    port->lmc = 1;
    port->guid = 0x1234;
    down->width = 0;
    after.n_subnets = 2;
    after.subnets[0].prefix = 0xfec0000000000000u;
    down->subnet = 1;
    CHANGES(&before, &after, "lid|b HCA-1[1]|0|7", "lid|leaf1|0|12", "other|a HCA-1[2]: rate|4xHDR|?xHDR",
            "other|a HCA-1[2]: subnet|0|1", "other|b HCA-1[1]: LMC|0|1",
            "other|b HCA-1[1]: port GUID|0x0000000000000121|0x0000000000001234", "other|leaf1: LMC|0|2",
            "other|leaf1: chassis|0|1", "other|leaf1: chip|0|4", "other|leaf1: device id|0x0000|0xd2f0",
            "other|leaf1: enhanced port 0|0|1", "other|leaf1: number of ports|36|41", "other|leaf1: slot|0|3",
            "other|leaf1: slot type|0|2",
            "other|leaf1: system image GUID|0x0000000000000000|0x0000000000000200",
            "other|leaf1: vendor|0x000000|0x0002c9",
            "other|subnet 0: prefix|0xfe80000000000000|0xfec0000000000000",
            "other|subnet 1: prefix||0x0000000000000000");
}

TEST(test_another_kind_under_one_guid)
{
    SCOPED(fab_inventory) before = small(), after = small();
    after.nodes[fab_inventory_find(&after, 0x120)].kind = FAB_AGGREGATOR;
    hand_names(&after, NULL);
    CHANGES(&before, &after, "host-lost|b|1 device|", "device-lost|b HCA-1[1]|0x0000000000000120|",
            "other|b HCA-1||aggregation node");
}

/* ---- against plain sets --------------------------------------------------------------------------- */

/* The things of an inventory as texts that say which they are, by walking over everything. */
struct set {
    char (*items)[96];
    uint32_t n;
};

static void set_add(struct set *set, const char *text)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (strcmp(set->items[i], text) == 0)
            return;
    }
    set->items = realloc(set->items, (set->n + 1u) * sizeof(*set->items));
    snprintf(set->items[set->n++], sizeof(*set->items), "%s", text);
}

static struct set collect(const struct fab_inventory *inv, enum fab_change_kind added)
{
    struct set set = {0};
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        if (added == FAB_CHANGE_SWITCH_ADDED && inv->nodes[i].kind == FAB_SWITCH) {
            set_add(&set, printed("%llx", (unsigned long long)inv->nodes[i].guid));
        }
    }
    for (uint32_t i = 0; i < inv->n_ports; i++) {
        const struct fab_port *p = &inv->ports[i];
        const struct fab_node *node = &inv->nodes[p->node];
        if (p->peer == FAB_NONE)
            continue;
        const struct fab_port *q = &inv->ports[p->peer];
        const struct fab_node *other = &inv->nodes[q->node];
        if (added == FAB_CHANGE_HOST_ADDED && node->kind == FAB_HCA)
            set_add(&set, fab_str(inv, node->host));
        if (added == FAB_CHANGE_DEVICE_ADDED && node->kind == FAB_HCA)
            set_add(&set, printed("%llx/%u", (unsigned long long)node->guid, p->num));
        if (added == FAB_CHANGE_LINK_ADDED && node->guid < other->guid)
            set_add(&set, printed("%llx/%u-%llx/%u", (unsigned long long)node->guid, p->num,
                                  (unsigned long long)other->guid, q->num));
    }
    return set;
}

/* How many of a are not in b. */
static uint32_t set_missing(const struct set *a, const struct set *b)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->n; k++)
            found = found || strcmp(a->items[i], b->items[k]) == 0;
        missing += !found;
    }
    return missing;
}

static uint32_t count_kind(const struct fab_diff *diff, int kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < diff->n; i++)
        n += (int)diff->changes[i].kind == kind;
    return n;
}

TEST(test_against_plain_sets)
{
    uint32_t seen[FAB_CHANGE_OTHER + 1] = {0};
    for (uint64_t seed = 1; seed <= 120; seed++) {
        SCOPED(fab_inventory) a, b;
        uint64_t dice = seed * 77;
        assert_int_equal(fabric_random(&a, 6, 25, 8, 1, seed), 0);
        hands_prepare(&a, 254);
        b = inventory_copy(&a);
        for (unsigned i = 0; i < seed % 6; i++)
            random_edit(&a, &dice);
        for (unsigned i = 0; i < seed / 10; i++)
            random_edit(&b, &dice);
        SCOPED(fab_diff) diff = compute(&a, &b), back = compute(&b, &a);
        struct fab_diff none = compute(&a, &a);
        assert_int_equal(none.n, 0);
        assert_int_equal(diff.n, back.n);
        uint32_t lost = 0;
        for (int kind = FAB_CHANGE_HOST_ADDED; kind <= FAB_CHANGE_LINK_ADDED; kind += 2) {
            struct set before = collect(&a, (enum fab_change_kind)kind);
            struct set after = collect(&b, (enum fab_change_kind)kind);
            assert_int_equal(count_kind(&diff, kind), set_missing(&after, &before));
            assert_int_equal(count_kind(&diff, kind + 1), set_missing(&before, &after));
            assert_int_equal(count_kind(&back, kind), set_missing(&before, &after));
            lost += set_missing(&before, &after);
            free(before.items);
            free(after.items);
        }
        assert_int_equal(diff.n_lost, lost);
        for (uint32_t i = 0; i < diff.n; i++)
            seen[diff.changes[i].kind]++;
    }
    for (int kind = FAB_CHANGE_HOST_ADDED; kind <= FAB_CHANGE_OTHER; kind++)
        assert_true(seen[kind] > 0); /* the dice reached every kind */
}
