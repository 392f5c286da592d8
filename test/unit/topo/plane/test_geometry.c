/* Kinds that have no family of their own, what is true of all coordinates, and the physical view. */
#include "test/unit/rewire.h"

static void assert_coords(const uint32_t *coords, uint32_t a, uint32_t b, uint32_t c)
{
    assert_int_equal(coords[0], a);
    assert_int_equal(coords[1], b);
    assert_int_equal(coords[2], c);
}

/* Fabrics that no generator makes. */
static uint32_t add_node(struct fab_inventory *inv, uint64_t guid, enum fab_node_kind kind, const char *name)
{
    uint32_t index = hand_node(inv, kind, guid, name, 36, 0);
    inv->nodes[index].name = inv->nodes[index].desc;
    if (kind == FAB_HCA)
        inv->nodes[index].host = inv->nodes[index].desc;
    return index;
}

static void begin(struct fab_inventory *inv)
{
    fab_inventory_init(inv);
    inv->n_subnets = 1;
    inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
}

static struct scene finish(struct fab_inventory *inv)
{
    hand_finish(inv);
    return scene_take(inv);
}

TEST(names_of_kinds)
{
    static const char *const names[] = {"other",     "single-switch", "fat-tree-2", "fat-tree-3",
                                        "dragonfly", "mesh-2d",       "mesh-3d",    "torus-2d",
                                        "torus-3d",  "switchless",    "unattached"};
    for (unsigned kind = 0; kind < sizeof names / sizeof names[0]; kind++)
        assert_string_equal(fab_kind_name((enum fab_kind)kind), names[kind]);
    assert_string_equal(fab_kind_name((enum fab_kind)99), "other");
}

/* The smallest planes: a switch alone, a host alone, two hosts on one cable, a host on a switch. */
TEST(smallest)
{
    static const struct {
        bool sw;
        unsigned hosts;
        enum fab_kind kind;
        uint32_t at[3]; /* of the first device */
    } planes[] = {{true, 0, FAB_KIND_SINGLE, {0}},
                  {true, 1, FAB_KIND_SINGLE, {0, 0, 6}},
                  {false, 1, FAB_KIND_SWITCHLESS, {0, 0, 1}},
                  {false, 2, FAB_KIND_SWITCHLESS, {0, 0, 1}}};
    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++) {
        struct fab_inventory inv;
        uint32_t sw = FAB_NONE, hosts[2];
        begin(&inv);
        if (planes[i].sw)
            sw = add_node(&inv, 0x200000, FAB_SWITCH, "alone");
        for (unsigned h = 0; h < planes[i].hosts; h++)
            hosts[h] = add_node(&inv, 0x100000 + 0x10 * h, FAB_HCA, printed("node%u", h + 1));
        if (planes[i].sw && planes[i].hosts == 1)
            hand_cable(&inv, sw, 7, hosts[0], 2);
        else if (planes[i].hosts == 1)
            hand_port(&inv, hosts[0], 2, 0x100002, 0);
        else if (planes[i].hosts == 2)
            hand_cable(&inv, hosts[0], 2, hosts[1], 1);
        SCOPED(scene) scene = finish(&inv);
        assert_int_equal(scene.geo.kind, planes[i].kind);
        assert_int_equal(scene.geo.dims, 3);
        assert_int_equal(scene.plane->n_switches, planes[i].sw);
        assert_int_equal(scene.plane->n_devices, planes[i].hosts);
        scene_assert_sound(&scene);
        if (planes[i].hosts > 0)
            assert_memory_equal(scene_logical(&scene, 0), planes[i].at, sizeof planes[i].at);
        if (planes[i].hosts > 0)
            assert_coords(scene_physical(&scene, 0), 0, 0, planes[i].sw ? 7 : 2);
    }
}

/* Chassis and slots are facts of the inventory; switches are numbered by them, spines left out. */
TEST(physical_view)
{
    static const struct {
        const char *name;
        uint16_t chassis;
        uint8_t slot_type, slot, chip;
        uint32_t expected; /* number within the chassis */
    } leaves[] = {{"a", 2, 1, 9, 2, 2}, {"b", 0, 0, 0, 0, 0}, {"c", 2, 1, 9, 1, 1},
                  {"d", 2, 1, 3, 1, 0}, {"e", 1, 1, 1, 1, 0}, {"f", 0, 0, 0, 0, 1}};
    struct fab_inventory inv;
    begin(&inv);
    uint32_t spine = add_node(&inv, 0x200000, FAB_SWITCH, "spine");
    inv.nodes[spine].chassis = 2;
    inv.nodes[spine].slot_type = 1;
    for (uint8_t i = 0; i < 6; i++) {
        uint32_t leaf = add_node(&inv, 0x200001u + i, FAB_SWITCH, leaves[i].name);
        inv.nodes[leaf].chassis = leaves[i].chassis;
        inv.nodes[leaf].slot_type = leaves[i].slot_type;
        inv.nodes[leaf].slot = leaves[i].slot;
        inv.nodes[leaf].chip = leaves[i].chip;
        hand_cable(&inv, leaf, 36, spine, i + 1);
        const char *host = printed("node%d", i + 1);
        hand_cable(&inv, leaf, 5, add_node(&inv, 0x100000u + 16u * i, FAB_HCA, host), 1);
    }
    SCOPED(scene) scene = finish(&inv);
    for (uint32_t i = 0; i < 6; i++) {
        assert_coords(scene_physical(&scene, i), leaves[i].chassis, leaves[i].expected, 5);
        assert_coords(scene_logical(&scene, i), 0, i, 4);
    }
    assert_coords(scene.geo.physical_shape, 3, 3, 6);
    scene_assert_sound(&scene);
}

/* Other: one group, edge switches in natural order. A chain and a ring are other, a clique is. */
TEST(everything_else)
{
    static const char *const texts[] = {"mesh:9,1:2",      "mesh:2,1:1",      "dragonfly:2,5,0",
                                        "dragonfly:1,3,0", "dragonfly:1,2,1", "dragonfly:2,1,4"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        SCOPED(scene) scene = scene_make(texts[t], 0);
        scene_assert_kind(&scene, FAB_KIND_OTHER, texts[t]);
        scene_assert_sound(&scene);
        for (uint32_t i = 0; i < scene.plane->n_devices; i++) {
            const struct fab_device *device = &scene.plane->devices[i];
            uint32_t port = scene.inv->ports[scene.inv->ports[device->port].peer].num;
            assert_coords(scene_logical(&scene, i), 0, device->sw,
                          port - 1); /* GUIDs are in order of names */
        }
    }
}

/* Levels against their definition: the longest cables rule, one switch at a time until nothing changes. */
static void assert_levels(const struct scene *scene)
{
    const struct fab_plane *plane = scene->plane;
    bool any = false;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        any = any || plane->switches[s].n_devices > 0;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        unsigned level = scene->geo.level[s], lowest = 255;
        const struct fab_vertex *v = &plane->switches[s];
        for (uint32_t e = v->adj_first; e < v->adj_first + v->n_adj; e++)
            if (scene->geo.level[plane->adj[e].to] < lowest)
                lowest = scene->geo.level[plane->adj[e].to];
        const bool tree = scene->geo.kind == FAB_KIND_FATTREE_2 || scene->geo.kind == FAB_KIND_FATTREE_3;
        if (!any || (v->n_devices > 0 && (level == 0 || !tree))) /* few may be above the leaves of a tree */
            assert_int_equal(level, 0);
        else
            assert_int_equal(level, lowest + 1);
    }
}

TEST(random_fabrics)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t dice = seed;
        unsigned switches = 1 + (unsigned)(fabric_random_next(&dice) % 25);
        const char *text = printed("random:%u,%u,%u:%u", switches, (unsigned)(fabric_random_next(&dice) % 60),
                                   (unsigned)(fabric_random_next(&dice) % (2ull * switches)), (unsigned)seed);
        SCOPED(scene) scene = scene_make(text, seed);
        scene_assert_sound(&scene);
        assert_levels(&scene);
        SCOPED(scene) again = scene_change(scene.inv, REWIRE_NONE);
        assert_int_equal(scene.geo.kind, again.geo.kind);
        assert_true(scene_stable(&scene, &again));
    }
}

TEST(destroy_nothing)
{
    struct fab_geometry geo = {0};
    fab_geometry_destroy(NULL);
    fab_geometry_destroy(&geo);
    fab_geometry_destroy(&geo);
    assert_null(geo.logical);
}
