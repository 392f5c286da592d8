/* Fat trees: recognised under any labels, numbered as people read names, and steady under an operator's
 * hands. */
#include "test/unit/rewire.h"
#include "topo/base/natural.h"

/* Leaves are numbered by their names as they are now, within the pods of the generator. */
TEST(two_levels)
{
    static const char *const texts[] = {"fattree2:2,1,1", "fattree2:2,2,1",  "fattree2:16,8,4",
                                        "fattree2:3,3,1", "fattree2:12,3,9", "fattree2:5,4,2,3",
                                        "fattree2:1,2,3", "fattree2:4,4,1"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            SCOPED(scene) scene = scene_make(texts[t], seed);
            const struct fab_plane *plane = scene.plane;
            scene_assert_kind(&scene, FAB_KIND_FATTREE_2, texts[t]);
            scene_assert_sound(&scene);
            assert_int_equal(scene.geo.shape[0], 1);
            for (uint32_t i = 0; i < plane->n_devices; i++) {
                const struct fab_device *device = &plane->devices[i];
                const char *name =
                    fab_str(scene.inv, scene.inv->nodes[plane->switches[device->sw].node].name);
                uint32_t before = 0;
                for (uint32_t s = 0; s < plane->n_switches; s++)
                    before +=
                        plane->switches[s].n_devices > 0 &&
                        fab_natural_cmp(fab_str(scene.inv, scene.inv->nodes[plane->switches[s].node].name),
                                        name) < 0;
                assert_int_equal(scene_logical(&scene, i)[0], 0);
                assert_int_equal(scene_logical(&scene, i)[1], before);
                assert_int_equal(scene_logical(&scene, i)[2],
                                 scene.inv->ports[scene.inv->ports[device->port].peer].num - 1);
            }
            for (uint32_t s = 0; s < plane->n_switches; s++) {
                assert_int_equal(scene.geo.level[s], scene_old_name(&scene, s)[0] == 's');
                assert_int_equal(scene.geo.pod[s], 0);
            }
        }
    }
}

/* The pod that stands in a generated name: "leaf3-1", "mid3-0". */
static unsigned old_pod(const struct scene *scene, uint32_t sw)
{
    const char *name = scene_old_name(scene, sw);
    return (unsigned)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
}

static void assert_pods(const struct scene *scene)
{
    const struct fab_plane *plane = scene->plane;
    for (uint32_t a = 0; a < plane->n_switches; a++) {
        static const char levels[] = "lmc"; /* leaf, mid, core */
        assert_int_equal(levels[scene->geo.level[a]], scene_old_name(scene, a)[0]);
        if (scene->geo.level[a] == 2) {
            assert_int_equal(scene->geo.pod[a], FAB_NONE);
            continue;
        }
        for (uint32_t b = 0; b < plane->n_switches; b++)
            if (scene->geo.level[b] < 2)
                assert_int_equal(scene->geo.pod[a] == scene->geo.pod[b],
                                 old_pod(scene, a) == old_pod(scene, b));
    }
    for (uint32_t i = 0; i < plane->n_devices; i++)
        assert_int_equal(scene_logical(scene, i)[0], scene->geo.pod[plane->devices[i].sw]);
}

TEST(three_levels)
{
    for (unsigned k = 2; k <= 12; k += 2) {
        for (uint64_t seed = 0; seed < 6; seed++) {
            const char *text = printed("fattree3:%u", k);
            SCOPED(scene) scene = scene_make(text, seed);
            scene_assert_kind(&scene, FAB_KIND_FATTREE_3, text);
            scene_assert_sound(&scene);
            assert_int_equal(scene.geo.shape[0], k);
            assert_int_equal(scene.geo.shape[1], k / 2);
            assert_int_equal(scene.geo.shape[2], k / 2);
            assert_pods(&scene);
            for (uint32_t i = 0; i < scene.plane->n_devices && seed == 0; i++) {
                const uint32_t *at = scene_logical(&scene, i); /* as in the generator's names */
                assert_string_equal(scene_old_name(&scene, scene.plane->devices[i].sw),
                                    printed("leaf%u-%u", at[0], at[1]));
            }
        }
    }
}

static bool is_switch_cable(const struct fab_inventory *inv, uint32_t port)
{
    uint32_t peer = inv->ports[port].peer;
    return peer != FAB_NONE && inv->nodes[inv->ports[port].node].kind == FAB_SWITCH &&
           inv->nodes[inv->ports[peer].node].kind == FAB_SWITCH;
}

/* A change that leaves all in one plane must leave kind and coordinates as they were. */
static void assert_steady(const struct scene *whole, struct rewire how, const char *text)
{
    SCOPED(scene) changed = scene_change(whole->inv, how);
    bool parted = changed.planes.n > 1;
    if (!parted) {
        scene_assert_kind(&changed, whole->geo.kind, text);
        if (!scene_stable(whole, &changed))
            fail_msg("%s: coordinates moved", text);
    }
    scene_assert_sound(&changed);
}

/* Any cable between switches is pulled; any spine, middle switch or core is lost; a rack is switched off
 * while its leaf goes on: one at a time. */
TEST(any_one_thing_gone)
{
    static const char *const texts[] = {"fattree2:6,3,2", "fattree2:3,2,2", "fattree2:4,2,1,2",
                                        "fattree2:3,3,1", "fattree2:2,2,1", "fattree3:4",
                                        "fattree3:6",     "fattree3:2"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        SCOPED(scene) whole = scene_make(texts[t], t);
        const bool idle_leaves =
            strcmp(texts[t], "fattree3:2") != 0; /* a chain without one of its two hosts */
        for (uint32_t i = 0; i < whole.inv->n_ports; i++) {
            if (is_switch_cable(whole.inv, i))
                assert_steady(&whole, without_cable(i), texts[t]);
        }
        for (uint32_t s = 0; s < whole.plane->n_switches; s++) {
            const struct fab_vertex *sw = &whole.plane->switches[s];
            if (sw->n_devices == 0) {
                assert_steady(&whole, without_node(sw->node), texts[t]);
            } else if (idle_leaves) {
                assert_steady(&whole, without_hosts(sw->node), texts[t]);
                SCOPED(scene) idle = scene_change(whole.inv, without_hosts(sw->node));
                assert_int_equal(idle.geo.level[s], 2);
                assert_int_equal(idle.geo.pod[s], whole.geo.pod[s]);
            }
        }
    }
}

/* Cables that no tree has: within a level, or a host above the leaves. */
TEST(not_a_tree)
{
    static const char *const pairs[][3] = {
        {"fattree2:6,3,2", "leaf1", "leaf4"}, {"fattree2:6,3,2", "spine1", "spine2"},
        {"fattree3:4", "leaf0-0", "leaf2-1"}, {"fattree3:4", "mid0-0", "mid1-0"},
        {"fattree3:4", "core1", "core2"},     {"fattree3:6", "leaf0-0", "core4"}};
    for (size_t t = 0; t < sizeof pairs / sizeof pairs[0]; t++) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            SCOPED(scene) whole = scene_make(pairs[t][0], seed);
            SCOPED(scene)
            odd = scene_change(whole.inv,
                               with_cable(scene_node(&whole, pairs[t][1]), scene_node(&whole, pairs[t][2])));
            scene_assert_kind(&odd, FAB_KIND_OTHER, pairs[t][1]);
            scene_assert_sound(&odd);
        }
    }
}

/* One pod of a larger tree: levels 0 to 2, but a core that joins nothing. */
TEST(one_pod)
{
    SCOPED(scene) scene = scene_make("fattree3:6", 0);
    for (unsigned pod = 1; pod < 6; pod++) {
        for (unsigned i = 0; i < 6; i++) {
            const char *name = printed(i < 3 ? "leaf%u-%u" : "mid%u-%u", pod, i % 3);
            scene_replace(&scene, without_node(scene_node(&scene, name)));
        }
    }
    assert_int_equal(scene.planes.planes[0].n_switches, 3 + 3 + 9);
    scene_assert_kind(&scene, FAB_KIND_OTHER, "one pod");
    for (uint32_t i = 0; i < scene.plane->n_devices; i++) {
        assert_int_equal(scene_logical(&scene, i)[0], 0);
        assert_int_equal(scene_logical(&scene, i)[1], i / 3);
    }
}
