/* HCAs that their host has not named yet: what they keep, and what not. */
#include "test/unit/handmade.h"

#include "topo/changes/changes.h"
#include "topo/model/retain.h"

#define FACTORY "MT4129 ConnectX7   Mellanox Technologies"

/* Hosts with so many rails, a leaf each; desc[host * rails + rail], NULL: not seen. at: the leaf's port, 0:
 * as its number says. */
struct rails {
    uint32_t hosts, rails;
    const char *desc[64];
    uint8_t at[64];
    uint64_t leaves; /* GUID of the first */
};

static void make_rails(struct fab_inventory *inv, const struct rails *how)
{
    uint32_t leaf[8], spine;
    fab_inventory_init(inv);
    inv->n_subnets = 1;
    inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
    spine = hand_node(inv, FAB_SWITCH, 0x900, "spine", 36, 0);
    for (uint32_t r = 0; r < how->rails; r++) {
        leaf[r] = hand_node(inv, FAB_SWITCH, how->leaves + r, "leaf", 36, 0);
        hand_cable(inv, spine, r + 1, leaf[r], 36);
    }
    for (uint32_t i = 0; i < how->hosts * how->rails; i++)
        if (how->desc[i] != NULL)
            hand_cable(inv, leaf[i % how->rails], how->at[i] != 0 ? how->at[i] : i / how->rails + 1,
                       hand_node(inv, FAB_HCA, 0x1000 + 0x10 * (uint64_t)i, how->desc[i], 1, 0), 1);
    hand_finish(inv);
    hand_names(inv, NULL);
}

static bool may_always(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    (void)before, (void)port, (void)cbdata;
    return true;
}

static uint32_t keep(const struct fab_names_known *known, struct fab_inventory *inv)
{
    uint32_t n_kept = 0;
    must_do(fab_keep_names(known, inv, &n_kept));
    if (n_kept > 0)
        hand_names(inv, NULL);
    return n_kept;
}

/* As a sweep is published: *out is what is then, *diff what is told. */
static void publish_rails(const struct fab_inventory *current, const struct rails *sweep,
                          struct fab_inventory *out, struct fab_diff *diff)
{
    SCOPED(fab_inventory) swept = {0};
    make_rails(&swept, sweep);
    keep(&(struct fab_names_known){.before = current}, &swept);
    must_do(fab_retain(current, &swept, may_always, NULL, out, fresh_err()));
    hand_names(out, NULL);
    must_do(fab_diff_compute(current, out, diff));
    must_do(fab_diff_correlate_with(current, out, NULL, diff));
}

/* ---- the replay of a reboot ------------------------------------------------------------------------- */

enum { RAILS = 4, STATES = 3, ALL = 81 /* STATES^RAILS */ };

/* Which rails of the second of three hosts are there, gone, or not named yet. */
static struct rails rails_in_state(const char *const *named, const char *late, unsigned state)
{
    struct rails how = {.hosts = 3, .rails = RAILS, .leaves = 0x200};
    memcpy(how.desc, named, 3 * RAILS * sizeof(*named));
    for (unsigned r = 0; r < RAILS; r++, state /= STATES)
        if (state % STATES == 1)
            how.desc[RAILS + r] = NULL;
        else if (state % STATES == 2)
            how.desc[RAILS + r] = late;
    return how;
}

static void must_be_missing_or_back(const struct fab_diff *diff)
{
    for (uint32_t i = 0; i < diff->n; i++)
        if (diff->changes[i].kind != FAB_CHANGE_HOST_MISSING && diff->changes[i].kind != FAB_CHANGE_HOST_BACK)
            fail_msg("%s %s: %s -> %s", fab_change_name(diff->changes[i].kind), diff->changes[i].what,
                     diff->changes[i].before, diff->changes[i].after);
}

/*
 * Any state after every fifth of all others, which stands for every order of the rails and every sweep that
 * came in between: what is published of a state does not depend on the one before, so there is no need to
 * walk the orders.
 */
static void replay(const char *const named[3 * RAILS], const char *late)
{
    const struct rails whole = rails_in_state(named, late, 0);
    SCOPED(fab_inventory) full = {0};
    make_rails(&full, &whole);
    for (unsigned first = 0; first < ALL; first++) {
        const struct rails one = rails_in_state(named, late, first);
        SCOPED(fab_inventory) current = {0};
        SCOPED(fab_diff) told = {0};
        publish_rails(&full, &one, &current, &told);
        must_be_missing_or_back(&told);
        for (unsigned second = first % 5; second < ALL; second += 5) {
            const struct rails two = rails_in_state(named, late, second);
            SCOPED(fab_inventory) next = {0};
            SCOPED(fab_inventory) straight = {0};
            SCOPED(fab_diff) then = {0};
            SCOPED(fab_diff) other = {0};
            publish_rails(&current, &two, &next, &then);
            must_be_missing_or_back(&then);
            publish_rails(&full, &two, &straight, &other);
            assert_true(fab_inventory_equal(&next, &straight));
        }
    }
}

/* With names of devices, of hosts only, or numbered ones; and what a host says that is not ready yet. */
TEST(test_a_host_of_four_rails_reboots)
{
    static const struct {
        const char *device, *late;
    } sorts[] = {{" mlx5_%u", FACTORY},
                 {" hfi1_%u", "node1"},
                 {" hfi1_%u", "localhost hfi1_0"},
                 {"", "Intel Infiniband HCA node1"}};
    for (size_t s = 0; s < sizeof(sorts) / sizeof(sorts[0]); s++) {
        const char *named[3 * RAILS];
        for (unsigned i = 0; i < 3 * RAILS; i++) {
            char device[16];
            snprintf(device, sizeof(device), sorts[s].device, i % RAILS);
            named[i] = printed("node%u%s", i / RAILS, device);
        }
        replay(named, sorts[s].late);
    }
}

/* ---- one by one ------------------------------------------------------------------------------------- */

struct told_names {
    char text[4][200];
    bool kept[4];
    unsigned n;
};

static void on_told(const struct fab_node *node, const char *what, const char *text, bool kept, void *cbdata)
{
    struct told_names *told = cbdata;
    (void)node;
    assert_true(told->n < 4);
    snprintf(told->text[told->n], sizeof(told->text[0]), "%s %s", what, text);
    told->kept[told->n++] = kept;
}

static const char *host_of(const struct fab_inventory *inv, uint64_t guid)
{
    return fab_str(inv, inv->nodes[fab_inventory_find(inv, guid)].host);
}

/* What HCAs said in one sweep and say in the next, and which host each of them is of then; NULL: as it says.
 */
TEST(test_what_is_kept)
{
    static const struct {
        const char *about;
        struct rails was, is;
        uint32_t n_kept;
        const char *hosts[3];
    } cases[] = {
        {"a card in another host, whose own is in the drawer, does not carry its name",
         {2, 1, {"node1 mlx5_0", "node2 mlx5_0"}, {0}, 0x200},
         {2, 1, {FACTORY, NULL}, {2}, 0x200},
         0,
         {"0x0000000000001000"}},
        {"all leaves are others, too: their places are known by their cables",
         {3, 1, {"node1 mlx5_0", "node2 mlx5_0", "node3 mlx5_0"}, {0}, 0x200},
         {3, 1, {FACTORY, "node2 mlx5_0", "node3 mlx5_0"}, {0}, 0x300},
         1,
         {"node1", "node2", "node3"}},
        {"what was never named stays unnamed, and localhost is better than nothing",
         {3, 1, {FACTORY, "localhost mlx5_0", "(none)"}, {0}, 0x200},
         {3, 1, {FACTORY, FACTORY, "localhost"}, {0}, 0x200},
         1,
         {"0x0000000000001000", "localhost", "localhost"}},
        {"what says another name, or another device, has it",
         {3, 1, {"node1 mlx5_0", "node2 mlx5_0", "node3 mlx5_0"}, {0}, 0x200},
         {3, 1, {"node9 mlx5_0", "node2 mlx5_1", "node"}, {0}, 0x200},
         0,
         {"node9", "node2", "node"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) before = {0};
        SCOPED(fab_inventory) now = {0};
        make_rails(&before, &cases[i].was);
        make_rails(&now, &cases[i].is);
        const uint32_t n_kept = keep(&(struct fab_names_known){.before = &before}, &now);
        if (n_kept != cases[i].n_kept)
            fail_msg("%s: %u names are kept", cases[i].about, n_kept);
        for (unsigned h = 0; h < 3 && cases[i].hosts[h] != NULL; h++)
            assert_string_equal(host_of(&now, 0x1000 + 0x10 * h), cases[i].hosts[h]);
    }
}

/* Elsewhere it goes unnamed, with a remark. What it said is read otherwise by another pattern: that is
 * nothing late. */
TEST(test_what_is_told)
{
    const struct rails was = {2, 1, {"node1 mlx5_0", "node2 mlx5_0"}, {0}, 0x200};
    const struct rails is = {2, 1, {FACTORY, "node2 mlx5_0"}, {9}, 0x200};
    struct told_names told = {.n = 0};
    SCOPED(fab_inventory) before = {0};
    SCOPED(fab_inventory) now = {0};
    const struct fab_names_known known = {.before = &before, .told = on_told, .cbdata = &told};
    make_rails(&before, &was);
    make_rails(&now, &is);
    assert_int_equal(keep(&known, &now), 0);
    assert_string_equal(host_of(&now, 0x1000), "0x0000000000001000");
    assert_int_equal(told.n, 1);
    assert_false(told.kept[0]);
    assert_string_equal(told.text[0], "node1 mlx5_0 its description is \"" FACTORY
                                      "\": it is not at the place where it had that name, leaf[9]");
    fab_inventory_destroy(&before);
    make_rails(&before, &is);
    hand_names(&before, "^(MT[0-9]+)");
    assert_string_equal(host_of(&before, 0x1000), "MT4129");
    assert_int_equal(keep(&known, &now), 0);
    assert_int_equal(told.n, 1);
}

/* It was away for so long that its place was given up. */
TEST(test_what_was_lost_has_its_name_back_at_its_port)
{
    const struct rails was = {2, 1, {"node1 mlx5_0", "node2 mlx5_0"}, {0}, 0x200};
    const struct rails gone = {2, 1, {NULL, "node2 mlx5_0"}, {0}, 0x200};
    SCOPED(fab_inventory) before = {0};
    SCOPED(fab_inventory) without = {0};
    SCOPED(fab_diff) told = {0};
    SCOPED(fab_lost) none = {0};
    SCOPED(fab_lost) lost = {0};
    make_rails(&before, &was);
    make_rails(&without, &gone);
    must_do(fab_diff_compute(&before, &without, &told));
    must_do(fab_diff_correlate_with(&before, &without, NULL, &told));
    must_do(fab_lost_update(&none, &before, &without, &told, 2, 0, &lost));
    for (uint8_t port = 1; port <= 3; port += 2) {
        struct rails is = {2, 1, {FACTORY, "node2 mlx5_0"}, {port}, 0x200};
        SCOPED(fab_inventory) now = {0};
        make_rails(&now, &is);
        assert_int_equal(keep(&(struct fab_names_known){.before = &without, .lost = &lost}, &now), port == 1);
        assert_string_equal(host_of(&now, 0x1000), port == 1 ? "node1" : "0x0000000000001000");
        if (port == 1)
            assert_string_equal(fab_str(&now, now.nodes[fab_inventory_find(&now, 0x1000)].name), "mlx5_0");
    }
}

/* ---- against the plain way -------------------------------------------------------------------------- */

/* Switches stay: a place is a GUID and a port. */
static bool plain_at_home(const struct fab_inventory *before, uint32_t b, const struct fab_inventory *now,
                          uint32_t a)
{
    for (uint32_t p = 0; p < now->nodes[a].n_ports; p++) {
        const struct fab_port *mine = &now->ports[now->nodes[a].first_port + p];
        for (uint32_t q = 0; q < before->nodes[b].n_ports; q++) {
            const struct fab_port *then = &before->ports[before->nodes[b].first_port + q];
            if (then->num != mine->num || then->peer == FAB_NONE || mine->peer == FAB_NONE)
                continue;
            const struct fab_port *x = &before->ports[then->peer], *y = &now->ports[mine->peer];
            if (x->num == y->num && before->nodes[x->node].guid == now->nodes[y->node].guid)
                return true;
        }
    }
    return false;
}

TEST(test_random_as_the_plain_way)
{
    static const char *const descs[] = {"node1 mlx5_0", "node2 mlx5_0", "node2",     "node1",
                                        "localhost",    FACTORY,        "n3 hfi1_0", "(none) hfi1_0"};
    uint64_t seed = 7;
    uint32_t all = 0;
    for (int round = 0; round < 1000; round++) {
        struct rails was = {6, 2, {NULL}, {0}, 0x200}, is = was;
        for (uint32_t i = 0; i < 12; i++) {
            was.desc[i] = descs[fabric_random_next(&seed) % 8];
            is.desc[i] = fabric_random_next(&seed) % 4 == 0 ? NULL : descs[fabric_random_next(&seed) % 8];
            was.at[i] = (uint8_t)(i / 2 + 1);
            is.at[i] = (uint8_t)(i / 2 + 1 + (fabric_random_next(&seed) % 3 == 0 ? 10 : 0));
        }
        SCOPED(fab_inventory) before = {0};
        SCOPED(fab_inventory) now = {0};
        SCOPED(fab_inventory) raw = {0};
        make_rails(&before, &was);
        make_rails(&now, &is);
        must_do(fab_inventory_copy(&raw, &now));
        all += keep(&(struct fab_names_known){.before = &before}, &now);
        for (uint32_t a = 0; a < now.n_nodes; a++) {
            const uint32_t b = fab_inventory_find(&before, now.nodes[a].guid);
            const char *said = fab_str(&raw, raw.nodes[a].desc), *want = said;
            if (now.nodes[a].kind == FAB_HCA && !before.nodes[b].unnamed &&
                plain_at_home(&before, b, &now, a)) {
                const char *had = fab_str(&before, before.nodes[b].desc);
                const bool shorter = strncmp(had, said, strlen(said)) == 0 && had[strlen(said)] == ' ';
                if (shorter || raw.nodes[a].unnamed ||
                    (strcmp(said, "localhost") == 0 && strcmp(had, "localhost") != 0))
                    want = had;
            }
            assert_string_equal(fab_str(&now, now.nodes[a].desc), want);
        }
    }
    assert_true(all > 1000);
}
