/* What was lost is remembered, and what comes is told as what it is: hands that take longer than a sweep. */
#include "test/unit/hands.h"
#include "topo/changes/lost_list.h"

/* The fabric as it is published, and what is remembered. */
struct world {
    struct fab_inventory now;
    struct fab_lost lost;
    struct fab_diff told; /* of the last step */
    uint64_t generation;
};

static struct world begin(const char *fabric)
{
    struct world w = {.generation = 1, .now = generated(fabric)};
    hands_prepare(&w.now, 254);
    return w;
}

static void world_destroy(struct world *w)
{
    fab_inventory_destroy(&w->now);
    fab_lost_destroy(&w->lost);
    fab_diff_destroy(&w->told);
}

static bool is_added(enum fab_change_kind kind)
{
    return kind == FAB_CHANGE_HOST_ADDED || kind == FAB_CHANGE_DEVICE_ADDED ||
           kind == FAB_CHANGE_SWITCH_ADDED || kind == FAB_CHANGE_LINK_ADDED;
}

static bool same_change(const struct fab_change *a, const struct fab_change *b)
{
    return a->kind == b->kind && a->guid == b->guid && a->port == b->port && a->n_raw == b->n_raw &&
           strcmp(a->what, b->what) == 0 && strcmp(a->before, b->before) == 0 &&
           strcmp(a->after, b->after) == 0 && strcmp(a->why, b->why) == 0;
}

/* What is told without the list stands, but for what came; no raw change is lost or told twice. */
static void check_told(const struct world *w, const struct fab_inventory *next)
{
    SCOPED(fab_diff) raw, plain;
    uint32_t n_raw = 0, n_plain = 0, n_announced = 0;
    assert_int_equal(fab_diff_compute(&w->now, next, &raw), 0);
    assert_int_equal(fab_diff_compute(&w->now, next, &plain), 0);
    assert_int_equal(fab_diff_correlate_with(&w->now, next, NULL, &plain), 0);
    assert_int_equal(w->told.n_lost, raw.n_lost);
    for (uint32_t i = 0; i < w->told.n; i++) {
        const struct fab_change *c = &w->told.changes[i];
        n_raw += c->n_raw;
        assert_true(c->n_raw > 0 && c->why[0] != '\0' && (c->guid == 0 || c->subjects[0] != '\0'));
        if (c->last_seen != 0) /* of what was lost */
            assert_non_null(strstr(c->why, "lost in generation "));
        n_announced += !is_added(c->kind) && c->last_seen == 0;
    }
    assert_int_equal(n_raw, raw.n);
    for (uint32_t i = 0; i < plain.n; i++) {
        const struct fab_change *c = &plain.changes[i];
        bool found = is_added(c->kind);
        n_plain += !found;
        for (uint32_t k = 0; k < w->told.n && !found; k++)
            found = same_change(c, &w->told.changes[k]);
        if (!found)
            fail_msg("not told any more: %s|%s|%s|%s", fab_change_name(c->kind), c->what, c->before,
                     c->after);
    }
    assert_int_equal(n_plain, n_announced);
}

static bool has_cable(const struct fab_inventory *inv, const struct fab_lost_item *cable)
{
    uint32_t ports[2];
    for (int i = 0; i < 2; i++) {
        uint32_t node = fab_inventory_find(inv, cable->end[i].guid);
        ports[i] = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, cable->end[i].num);
    }
    return ports[0] != FAB_NONE && ports[1] != FAB_NONE && inv->ports[ports[0]].peer == ports[1];
}

/* Nothing that is there is remembered as lost; everything once, in order. */
static void check_list(const struct world *w)
{
    for (uint32_t i = 0; i < w->lost.nodes.n; i++) {
        assert_int_equal(fab_inventory_find(&w->now, w->lost.nodes.items[i].guid), FAB_NONE);
        assert_true(w->lost.nodes.items[i].generation <= w->generation);
        assert_int_equal(fab_lost_find(&w->lost, w->lost.nodes.items[i].guid), i);
        if (i > 0)
            assert_true(fab_lost_order(&w->lost.nodes.items[i - 1], &w->lost.nodes.items[i]) < 0);
    }
    for (uint32_t i = 0; i < w->lost.cables.n; i++) {
        assert_false(has_cable(&w->now, &w->lost.cables.items[i]));
        if (i > 0)
            assert_true(fab_lost_order(&w->lost.cables.items[i - 1], &w->lost.cables.items[i]) < 0);
    }
}

/* The next sweep, which is emptied: w->told is what it comes to. */
static void sweep(struct world *w, struct fab_inventory *next)
{
    struct fab_lost lost;
    fab_diff_destroy(&w->told);
    assert_int_equal(fab_diff_compute(&w->now, next, &w->told), 0);
    assert_int_equal(fab_diff_correlate_with(&w->now, next, &w->lost, &w->told), 0);
    check_told(w, next);
    w->generation++;
    for (uint32_t i = 0; i < w->told.n; i++) { /* as when it is published */
        if (w->told.changes[i].last_seen == 0)
            w->told.changes[i].last_seen = (int64_t)w->generation * 1000000;
    }
    assert_int_equal(fab_lost_update(&w->lost, &w->now, next, &w->told, w->generation, 0, &lost), 0);
    fab_lost_destroy(&w->lost);
    w->lost = lost;
    fab_inventory_destroy(&w->now);
    w->now = *next;
    fab_inventory_init(next);
    check_list(w);
}

#define ASSERT_TOLD(w, ...) assert_lines(&(w)->told, false, LINES(__VA_ARGS__))

/* Swept without it, then with it. */
static void away(struct world *w, const char *node)
{
    struct fab_inventory next = inventory_copy(&w->now);
    assert_int_equal(fabric_lose(&next, node), 0);
    sweep(w, &next);
}

static void unplugged(struct world *w, const char *node, unsigned port)
{
    struct fab_inventory next = inventory_copy(&w->now);
    assert_int_equal(fabric_unlink(&next, node, port), 0);
    sweep(w, &next);
}

/* ---- one hand at a time ---------------------------------------------------------------------------- */

/* The card of a host that was lost is in a host that is new, and another card is in its place. */
TEST(test_a_card_in_another_host)
{
    SCOPED(world) w = begin(SMALL);
    SCOPED(fab_inventory) next = inventory_copy(&w.now);
    assert_int_equal(fabric_lose(&w.now, "node0002"), 0);
    away(&w, "node0001");
    assert_int_equal(fabric_replace(&next, "node0001", 0x990001, 9), 0);
    assert_int_equal(fabric_replace(&next, "node0002", 0x100000, 9), 0);
    sweep(&w, &next);
    ASSERT_TOLD(&w, "host-added|node0002||1 device: 0x0000000000100000 at leaf1[2]",
                "hca-replaced|node0001 HCA-1|0x0000000000100000|0x0000000000990001");
    assert_int_equal(w.lost.nodes.n + w.lost.cables.n, 0);
}

/* Two cables that were lost at once, and one from each: nobody knows which of them it is. */
TEST(test_no_guess)
{
    SCOPED(world) w = begin(SMALL);
    struct fab_inventory third = inventory_copy(&w.now);
    unplugged(&w, "leaf1", 4); /* - spine2[1] */
    struct fab_inventory next = inventory_copy(&w.now);
    assert_int_equal(fabric_unlink(&next, "leaf1", 3), 0); /* - spine1[1] */
    assert_int_equal(fabric_unlink(&next, "leaf2", 4), 0); /* - spine2[2] */
    sweep(&w, &next);
    assert_int_equal(fabric_unlink(&third, "leaf1", 3), 0);
    assert_int_equal(fabric_unlink(&third, "leaf2", 4), 0);
    assert_int_equal(fabric_move(&third, "leaf1", 4, "spine2", 2), 0);
    assert_int_equal(fabric_move(&third, "spine2", 2, "leaf1", 3), 0);
    sweep(&w, &third);
    ASSERT_TOLD(&w, "link-added|leaf1[3] - spine2[2]||4xHDR");
    assert_int_equal(w.lost.cables.n, 3);
    world_destroy(&w);
    w = begin("fattree2:2,1,1,2"); /* one of two between the same switches */
    third = inventory_copy(&w.now);
    next = inventory_copy(&w.now);
    for (unsigned port = 2; port <= 3; port++)
        assert_int_equal(fabric_unlink(&next, "leaf1", port), 0);
    sweep(&w, &next);
    assert_int_equal(fabric_unlink(&third, "leaf1", 3), 0);
    assert_int_equal(fabric_move(&third, "leaf1", 2, "spine1", 40), 0);
    assert_int_equal(fabric_move(&third, "spine1", 40, "leaf1", 41), 0);
    sweep(&w, &third);
    ASSERT_TOLD(&w, "link-added|leaf1[41] - spine1[40]||4xHDR");
    world_destroy(&w);
    w = begin(SMALL); /* a name that two have recognises neither */
    next = inventory_copy(&w.now);
    assert_int_equal(fabric_lose(&next, "node0001"), 0);
    assert_int_equal(fabric_lose(&next, "node0003"), 0);
    struct fab_inventory back = inventory_copy(&w.now);
    sweep(&w, &next);
    assert_int_equal(fabric_replace(&back, "node0001", 0x990001, 9), 0);
    assert_int_equal(fabric_replace(&back, "node0003", 0x990003, 9), 0);
    assert_int_equal(fabric_move(&back, "node0001", 1, "leaf2", 40), 0);
    assert_int_equal(fabric_move(&back, "node0003", 1, "leaf1", 40), 0);
    rename_to(&back, "node0003", "node0001 HCA-1");
    hand_names(&back, NULL);
    sweep(&w, &back);
    for (uint32_t i = 0; i < w.told.n; i++)
        assert_true(is_added(w.told.changes[i].kind));
    assert_int_equal(w.lost.nodes.n, 2);
}

/* What leaves the history goes if the operator has forgotten it. */
TEST(test_bounds)
{
    SCOPED(world) w = begin(SMALL);
    struct fab_lost next, none = {0};
    struct fab_diff nothing = {0};
    away(&w, "spine1");
    away(&w, "node0001");
    assert_int_equal(w.lost.nodes.n, 2);
    assert_int_equal(fab_lost_update(&w.lost, &w.now, &w.now, &nothing, 4, 3, &next), 0);
    assert_int_equal(next.nodes.n, 2);
    assert_int_equal(next.cables.n, w.lost.cables.n);
    fab_lost_destroy(&next);
    for (uint32_t i = 0; i < 2; i++)
        w.lost.nodes.items[i].forgotten = true;
    for (uint32_t i = 0; i < w.lost.cables.n; i++)
        w.lost.cables.items[i].forgotten = true;
    assert_int_equal(fab_lost_update(&w.lost, &w.now, &w.now, &nothing, 4, 2, &next), 0);
    assert_int_equal(next.nodes.n, 1);
    assert_int_equal(next.cables.n, 1);
    assert_string_equal(next.nodes.items[0].host, "node0001");
    fab_lost_destroy(&next);
    assert_int_equal(fab_lost_update(&w.lost, &w.now, &w.now, &nothing, 4, 3, &next), 0);
    assert_int_equal(next.nodes.n + next.cables.n, 0);
    fab_lost_destroy(&next);
    for (uint64_t i = 1; i <= FAB_LOST_MAX + 10; i++) {
        const struct fab_lost_item node = {.guid = i,
                                           .generation = i % 7 + (i <= 10 ? 0 : 7),
                                           .host = (char *)"h",
                                           .name = (char *)"n",
                                           .kind = FAB_HCA};
        assert_int_equal(fab_lost_add(&none, &node), 0);
    }
    fab_lost_finish(&none);
    assert_int_equal(none.nodes.n, FAB_LOST_MAX);
    assert_int_equal(none.nodes.items[0].guid, 11); /* those lost first went */
    fab_lost_destroy(&none);
}

/* ---- every kind of fabric: slow is told as quick --------------------------------------------------- */

/* What a hand is told as. The change that is told of a hand at once is told of its second half as well. */
static const enum fab_change_kind hand_kinds[] = {FAB_CHANGE_HCA_REPLACED, FAB_CHANGE_SWITCH_REPLACED,
                                                  FAB_CHANGE_HOST_MOVED, FAB_CHANGE_CABLE_MOVED};

static void one_slow_hand(const char *fabric, uint64_t *dice)
{
    SCOPED(world) w = begin(fabric);
    SCOPED(fab_inventory) next = inventory_copy(&w.now), between = inventory_copy(&w.now);
    SCOPED(fab_diff) quick = {0};
    char name[64], other[64];
    unsigned what = (unsigned)(fabric_random_next(dice) % 4);
    uint32_t node = pick(&next, what % 2 == 0 ? FAB_HCA : FAB_SWITCH, dice, name),
             to = pick(&next, FAB_SWITCH, dice, other);
    const struct fab_port *port =
        &next.ports[next.nodes[node].first_port + fabric_random_next(dice) % next.nodes[node].n_ports];
    unsigned num = port->num;
    bool fine = port->peer != FAB_NONE;
    if (what < 2) {
        assert_int_equal(fabric_lose(&between, name), 0);
        assert_int_equal(fabric_replace(&next, name, 0x990001, 999), 0);
    } else if (fine) {
        fine = (what == 2 || next.nodes[next.ports[port->peer].node].kind == FAB_SWITCH) && to != node;
        fine = fine && fabric_move(&next, name, num, other, free_port(&next, to)) == 0;
        if (fine && fabric_random_next(dice) % 2 == 0) /* another cable */
            assert_int_equal(fabric_set_rate(&next, name, num, 4, FAB_EDR), 0);
        assert_int_equal(fabric_unlink(&between, name, num), 0);
    }
    if (fine) {
        SCOPED(fab_inventory) at_once = inventory_copy(&next);
        assert_int_equal(fab_diff_compute(&w.now, &at_once, &quick), 0);
        assert_int_equal(fab_diff_correlate_with(&w.now, &at_once, NULL, &quick), 0);
        assert_int_equal(quick.n, 1);
        assert_int_equal(quick.changes[0].kind, hand_kinds[what]);
        sweep(&w, &between);
        sweep(&w, &next);
        const struct fab_change *told = NULL;
        for (uint32_t i = 0; i < w.told.n; i++) {
            if (w.told.changes[i].kind == quick.changes[0].kind && told == NULL)
                told = &w.told.changes[i];
            else if (what != 1 ||
                     (w.told.changes[i].kind != FAB_CHANGE_HOST_BACK && /* its hosts were away, */
                      w.told.changes[i].kind != FAB_CHANGE_PORT_BACK))  /* or one of their ports */
                fail_msg("%s: hand %u on %s: %s|%s|%s|%s|%s", fabric, what, name,
                         fab_change_name(w.told.changes[i].kind), w.told.changes[i].what,
                         w.told.changes[i].before, w.told.changes[i].after, w.told.changes[i].why);
        }
        assert_non_null(told);
        assert_string_equal(told->what, quick.changes[0].what);
        assert_string_equal(told->before, quick.changes[0].before);
        assert_string_equal(told->after, quick.changes[0].after);
        assert_string_equal(told->subjects, quick.changes[0].subjects);
        assert_int_equal(w.lost.nodes.n + w.lost.cables.n, 0);
    }
}

TEST(test_slow_as_quick)
{
    uint64_t dice = 17;
    for (unsigned i = 0; i < 200; i++)
        one_slow_hand(hands_fabrics[i % HANDS_FABRICS], &dice);
}

/* ---- random hands, one after the other -------------------------------------------------------------- */

/* Forth from one state to the next, and at random back to one that was before: much returns, and much is
 * replaced meanwhile. sweep() checks each step. */
TEST(test_random_steps)
{
    static const char *const fabrics[] = {"fattree2:4,2,4,1", "dragonfly:2,3,1", "torus:3,3:1",
                                          "random:6,25,8:3"};
    uint32_t seen[FAB_CHANGE_KINDS] = {0};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        SCOPED(world) w = begin(fabrics[seed % 4]);
        SCOPED(fab_inventory) past = inventory_copy(&w.now);
        uint64_t dice = seed * 77;
        for (unsigned step = 0; step < 16; step++) {
            struct fab_inventory next = inventory_copy(fabric_random_next(&dice) % 3 == 0 ? &past : &w.now);
            for (unsigned i = 0; i < fabric_random_next(&dice) % 5 && has_switch_and_hca(&next); i++)
                random_hand(&next, &dice);
            if (fabric_random_next(&dice) % 6 == 0) {
                fab_inventory_destroy(&past);
                past = inventory_copy(&next);
            }
            sweep(&w, &next);
            for (uint32_t i = 0; i < w.told.n; i++)
                seen[w.told.changes[i].kind] += strstr(w.told.changes[i].why, "lost in generation ") != NULL;
        }
    }
    static const enum fab_change_kind kinds[] = {
        FAB_CHANGE_HCA_REPLACED, FAB_CHANGE_HOST_MOVED,  FAB_CHANGE_CABLE_MOVED, FAB_CHANGE_SWITCH_REPLACED,
        FAB_CHANGE_HOST_BACK,    FAB_CHANGE_SWITCH_BACK, FAB_CHANGE_LINK_BACK};
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (seen[kinds[i]] == 0)
            fail_msg("no %s was told of anything lost", fab_change_name(kinds[i]));
    }
}
