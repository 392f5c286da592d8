/* Dragonflies: groups are found under any labels and numbers of global cables, and stay under an operator's
 * hands. */
#include "test/fabrics/build.h"
#include "test/unit/rewire.h"

static bool adjacent(const struct fab_plane *plane, uint32_t a, uint32_t b)
{
    const struct fab_vertex *v = &plane->switches[a];
    for (uint32_t e = v->adj_first; e < v->adj_first + v->n_adj; e++)
        if (plane->adj[e].to == b)
            return true;
    return false;
}

/* The group that stands in a generated name: "r12-3". */
static unsigned old_group(const struct scene *scene, uint32_t sw)
{
    return (unsigned)strtoul(scene_old_name(scene, sw) + 1, NULL, 10);
}

/* Groups are those of the generator, numbered densely; all to all inside where `whole`. */
static void assert_groups(const struct scene *scene, unsigned n_groups, bool whole)
{
    const struct fab_plane *plane = scene->plane;
    for (uint32_t a = 0; a < plane->n_switches; a++) {
        assert_in_range(scene->geo.pod[a], 0, n_groups - 1);
        for (uint32_t b = 0; b < plane->n_switches; b++) {
            bool same = scene->geo.pod[a] == scene->geo.pod[b];
            assert_int_equal(same, old_group(scene, a) == old_group(scene, b));
            if (whole && same && a != b)
                assert_true(adjacent(plane, a, b));
        }
    }
    for (uint32_t i = 0; i < plane->n_devices; i++)
        assert_int_equal(scene_logical(scene, i)[0], scene->geo.pod[plane->devices[i].sw]);
}

TEST(canonical)
{
    static const unsigned sizes[][3] = {{1, 3, 1}, {2, 3, 2}, {1, 4, 1}, {2, 4, 2}, {1, 3, 5},
                                        {1, 5, 3}, {3, 6, 1}, {2, 8, 2}, {1, 4, 6}, {4, 8, 4}};
    for (size_t t = 0; t < sizeof sizes / sizeof sizes[0]; t++) {
        unsigned p = sizes[t][0], a = sizes[t][1], h = sizes[t][2];
        for (uint64_t seed = 0; seed < 3; seed++) {
            const char *text = printed("dragonfly:%u,%u,%u", p, a, h);
            SCOPED(scene) scene = scene_make(text, seed);
            scene_assert_kind(&scene, FAB_KIND_DRAGONFLY, text);
            scene_assert_sound(&scene);
            assert_groups(&scene, a * h + 1, true);
            assert_int_equal(scene.geo.shape[0], a * h + 1);
            assert_int_equal(scene.geo.shape[1], a);
            assert_int_equal(scene.geo.shape[2], p);
            for (uint32_t i = 0; i < scene.plane->n_devices && seed == 0; i++) {
                const uint32_t *at = scene_logical(&scene, i); /* as in the generator's names */
                assert_string_equal(scene_old_name(&scene, scene.plane->devices[i].sw),
                                    printed("r%u-%u", at[0], at[1]));
            }
        }
    }
}

/* Groups of `a` routers, `m` cables between each pair of groups (`between` says which), a host a router;
 * dealt anew. */
static struct scene groups_of(unsigned n, unsigned a, unsigned m,
                              bool (*between)(unsigned n, unsigned x, unsigned y), uint64_t seed)
{
    SCOPED(fab_inventory) inv;
    struct rewire how = REWIRE_NONE;
    struct build b;
    OWNED(free) unsigned *ports = must_have((size_t)n * a * sizeof *ports);
    build_begin(&b, &inv);
    for (unsigned r = 0; r < n * a; r++) {
        build_switch(&b, 254, "r%u-%u", r / a, r % a);
        ports[r] = 2;
    }
    for (unsigned r = 0; r < n * a; r++) {
        build_simple_host(&b, r, 1);
        for (unsigned other = r + 1; other < (r / a + 1) * a; other++) {
            unsigned from = ports[r]++, to = ports[other]++;
            build_cable(&b, r, from, other, to, 4, FAB_HDR);
        }
    }
    /* Each group's cables go round its routers, each pair starting where the last one ended. */
    unsigned next[64] = {0};
    for (unsigned x = 0; x < n; x++) {
        for (unsigned y = x + 1; y < n; y++) {
            for (unsigned i = 0; i < m && between(n, x, y); i++) {
                unsigned r = x * a + next[x]++ % a, other = y * a + next[y]++ % a;
                unsigned from = ports[r]++, to = ports[other]++;
                build_cable(&b, r, from, other, to, 4, FAB_HDR);
            }
        }
    }
    assert_int_equal(build_end(&b), 0);
    how.seed = seed;
    return scene_change(&inv, how);
}

static bool all_pairs(unsigned n, unsigned x, unsigned y)
{
    (void)n;
    return x != y;
}

static bool neighbours(unsigned n, unsigned x, unsigned y)
{
    return y == x + 1 || (x == 0 && y == n - 1);
}

static bool first_with_all(unsigned n, unsigned x, unsigned y)
{
    (void)n;
    return x == 0 && y > 0;
}

/* From one cable a pair of groups to several a router. */
TEST(numbers_of_global_cables)
{
    static const unsigned sizes[][3] = {/* groups, routers, cables a pair */
                                        {2, 4, 1},   {2, 8, 4},   {2, 8, 8},  {3, 4, 1},  {3, 6, 6},
                                        {4, 3, 1},   {5, 8, 3},   {8, 16, 4}, {9, 8, 4},  {8, 16, 16},
                                        {6, 10, 20}, {17, 16, 1}, {20, 4, 1}, {16, 8, 2}, {12, 6, 1}};
    for (size_t t = 0; t < sizeof sizes / sizeof sizes[0]; t++) {
        for (uint64_t seed = 1; seed < 4; seed++) {
            SCOPED(scene) scene = groups_of(sizes[t][0], sizes[t][1], sizes[t][2], all_pairs, seed);
            const char *what = printed("%u groups of %u, %u cables", sizes[t][0], sizes[t][1], sizes[t][2]);
            scene_assert_kind(&scene, FAB_KIND_DRAGONFLY, what);
            scene_assert_sound(&scene);
            assert_groups(&scene, sizes[t][0], true);
        }
    }
}

/* Routers at one place of nine groups of eight form groups of nine themselves: those are taken. */
TEST(hyperx)
{
    SCOPED(scene) scene = groups_of(9, 8, 8, all_pairs, 7);
    scene_assert_kind(&scene, FAB_KIND_DRAGONFLY, "a HyperX");
    assert_int_equal(scene.geo.shape[0], 8);
    assert_int_equal(scene.geo.shape[1], 9);
    scene_assert_sound(&scene);
}

TEST(not_a_dragonfly)
{
    static const struct {
        unsigned n, a, m;
        bool (*between)(unsigned n, unsigned x, unsigned y);
    } groups[] = {
        {6, 5, 2, neighbours},     /* a ring of groups */
        {5, 4, 1, neighbours},     /* with one cable each */
        {4, 3, 2, neighbours},     /* with small groups */
        {6, 5, 2, first_with_all}, /* a star of groups */
        {8, 2, 1, all_pairs},      /* groups of two */
        {2, 3, 1, all_pairs},      /* groups of three, too few */
        {3, 3, 2, all_pairs},      /* still too few */
        {5, 5, 5, all_pairs},      /* a HyperX with equal sides */
        {4, 4, 4, all_pairs},      /* a smaller one */
        {1, 6, 0, all_pairs},      /* one group */
    };
    for (size_t t = 0; t < sizeof groups / sizeof groups[0]; t++) {
        SCOPED(scene) scene = groups_of(groups[t].n, groups[t].a, groups[t].m, groups[t].between, t + 1);
        scene_assert_kind(&scene, FAB_KIND_OTHER, "a case");
        scene_assert_sound(&scene);
    }
}

/* Groups of three tell nothing with a cable missing inside; larger ones stay what they are. */
TEST(any_cable_pulled)
{
    static const char *const texts[] = {"dragonfly:1,3,1", "dragonfly:2,4,1", "dragonfly:1,5,2"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        SCOPED(scene) whole = scene_make(texts[t], t + 1);
        for (uint32_t i = 0; i < whole.inv->n_ports; i++) {
            uint32_t peer = whole.inv->ports[i].peer, a = whole.inv->ports[i].node;
            if (peer == FAB_NONE || peer < i || whole.inv->nodes[a].kind != FAB_SWITCH)
                continue;
            SCOPED(scene) less = scene_change(whole.inv, without_cable(i));
            const char *names[2] = {fab_str(whole.inv, whole.inv->nodes[a].desc),
                                    fab_str(whole.inv, whole.inv->nodes[whole.inv->ports[peer].node].desc)};
            bool inside = strtoul(names[0] + 1, NULL, 10) == strtoul(names[1] + 1, NULL, 10);
            if (inside && t == 0) {
                assert_int_equal(less.geo.kind, FAB_KIND_OTHER);
            } else {
                scene_assert_kind(&less, FAB_KIND_DRAGONFLY, texts[t]);
                assert_true(scene_stable(&whole, &less));
            }
            scene_assert_sound(&less);
        }
    }
}

/* An additional cable anywhere: explained as a global one, and nobody moves. */
TEST(any_cable_added)
{
    SCOPED(scene) whole = scene_make("dragonfly:1,5,1", 4);
    const struct fab_vertex *switches = whole.plane->switches;
    for (uint32_t a = 0; a < whole.plane->n_switches; a++) {
        for (uint32_t b = a + 1; b < whole.plane->n_switches; b++) {
            SCOPED(scene) more = scene_change(whole.inv, with_cable(switches[a].node, switches[b].node));
            scene_assert_kind(&more, FAB_KIND_DRAGONFLY, "with a cable more");
            assert_true(scene_stable(&whole, &more));
        }
    }
}

/* Dense random graphs are no dragonflies. */
TEST(by_chance)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        uint64_t dice = seed;
        unsigned switches = 8 + (unsigned)(fabric_random_next(&dice) % 10);
        const char *text = printed("random:%u,%u,%u:%u", switches, 20u,
                                   switches * (unsigned)(fabric_random_next(&dice) % 5), seed);
        SCOPED(scene) scene = scene_make(text, 0);
        assert_int_not_equal(scene.geo.kind, FAB_KIND_DRAGONFLY);
    }
}
