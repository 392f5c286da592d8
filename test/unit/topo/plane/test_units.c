/* Units and rails: of generated fabrics, whose leaves' names say what they are; and units against leaves that
 * are put together plainly, pair by pair. */
#include <stdio.h>

#include "test/unit/rewire.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/snapshot.h"

static const char *leaf_name(const struct scene *scene, uint32_t sw)
{
    return fab_str(scene->inv, scene->inv->nodes[scene->plane->switches[sw].node].name);
}

/* Is it a leaf with devices? By the generator's word: *unit and *rail, from 0 on. */
static bool is_leaf(const struct scene *scene, uint32_t sw, uint32_t *unit, uint32_t *rail)
{
    if (scene->plane->switches[sw].n_devices == 0 ||
        sscanf(leaf_name(scene, sw), "leaf%u-%u", unit, rail) != 2)
        return false;
    --*unit;
    --*rail;
    return true;
}

static uint32_t find_leaf(const struct scene *scene, const char *name)
{
    for (uint32_t s = 0; s < scene->plane->n_switches; s++)
        if (strcmp(leaf_name(scene, s), name) == 0)
            return s;
    fail_msg("no leaf %s", name);
    return FAB_NONE;
}

static void must_be_as_built(const struct scene *scene, const char *what)
{
    const struct fab_units *units = &scene->geo.units;
    for (uint32_t s = 0; s < scene->plane->n_switches; s++) {
        uint32_t unit = FAB_NONE, rail = FAB_NONE;
        bool leaf = is_leaf(scene, s, &unit, &rail);
        if (units->unit[s] != (leaf ? unit : FAB_NONE) || units->rail[s] != (leaf ? rail : FAB_NONE))
            fail_msg("%s: %s is rail %d of unit %d", what, leaf_name(scene, s), (int)units->rail[s],
                     (int)units->unit[s]);
    }
}

/* Also with cards without a name, names of another driver, cards and leaves that are not there. */
TEST(units_as_they_were_built)
{
    static const char *const texts[] = {"rails:1,2,2,1", "rails:4,8,16,4", "rails:3,4,9,2", "rails:40,8,4,2"};
    const unsigned n = sizeof texts / sizeof texts[0];
    for (unsigned i = 0; i < n + 60; i++) {
        const char *text =
            i < n ? texts[i] : printed("rails:%u,%u,%u,2:%u", 2 + i % 7, 3 + i % 6, 12 + i % 9, i);
        SCOPED(scene) scene = scene_make(text, 0);
        must_be_as_built(&scene, text);
        assert_int_equal(scene.geo.units.n_strays, 0);
        scene_assert_sound(&scene);
    }
    SCOPED(scene) one_rail = scene_make("rails:4,1,8,2", 0);
    assert_int_equal(one_rail.geo.units.n, 0);
    for (uint32_t s = 0; s < one_rail.plane->n_switches; s++)
        assert_true(one_rail.geo.units.unit[s] == FAB_NONE && one_rail.geo.units.rail[s] == FAB_NONE);
}

/* ---- groups ---- */

/* ---- numbers that stay ---- */

/* The scene's plane as it is published. Free it. */
static void *publish_scene(const struct scene *scene, struct pmixfab **fab)
{
    const struct fab_snapshot_meta meta = {.name = "p"};
    void *bytes = NULL;
    size_t size;
    SCOPED(fab_groups) groups;
    SCOPED(fab_costs) costs = costs_of(scene->plane, 1);
    assert_int_equal(fab_groups_compute(scene->plane, &scene->geo, FAB_GROUP_AUTO, &groups), 0);
    must_do(fab_snapshot_build(scene->plane, &costs, &scene->geo, &groups, NULL, &meta, &bytes, &size));
    must_do(fab_snapshot_borrow(bytes, size, fab, fresh_err()));
    return bytes;
}

/* The device of a host on a rail, both from 0 on: of a fabric without a seed. */
static uint32_t device_on(const struct scene *scene, uint32_t host, uint32_t rail)
{
    return scene->plane->hosts[host].first + rail;
}

/* The cables in two ports change their places at the other ends. */
static void swap_cables(struct fab_inventory *inv, uint32_t x, uint32_t y)
{
    uint32_t at_x = inv->ports[x].peer, at_y = inv->ports[y].peer;
    inv->ports[x].peer = at_y;
    inv->ports[at_y].peer = x;
    inv->ports[y].peer = at_x;
    inv->ports[at_x].peer = y;
}

/* Those of two devices. */
static struct scene with_swapped(const struct scene *scene, uint32_t a, uint32_t b)
{
    struct fab_inventory inv = inventory_copy(scene->inv);
    swap_cables(&inv, scene->plane->devices[a].port, scene->plane->devices[b].port);
    return scene_take(&inv);
}

/* What readers are told. */
TEST(units_in_a_snapshot)
{
    struct pmixfab *fab;
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    uint32_t at, should, unit;
    SCOPED(scene) right = scene_make("rails:3,4,6,2", 0);
    SCOPED(scene) wrong = with_swapped(&right, device_on(&right, 7, 2), device_on(&right, 7, 3));
    OWNED(free) void *bytes = publish_scene(&wrong, &fab);
    assert_string_equal(pmixfab_group_name(fab, 0), "unit1");
    assert_string_equal(pmixfab_group_name(fab, 2), "unit3");
    assert_null(pmixfab_group_name(fab, 3));
    assert_int_equal(pmixfab_device(fab, device_on(&wrong, 7, 2), &device), 0);
    assert_int_equal(device.rail, 4);
    assert_int_equal(pmixfab_switch(fab, find_leaf(&wrong, "leaf2-3"), &sw), 0);
    assert_true(sw.unit == 2 && sw.rail == 3);
    assert_int_equal(pmixfab_switch(fab, find_leaf(&wrong, "spine1"), &sw), 0);
    assert_true(sw.unit == UINT32_MAX && sw.rail == UINT32_MAX);
    assert_int_equal(pmixfab_misplaced(fab, 1, &at, &should, &unit), 0);
    assert_true(at == device_on(&wrong, 7, 3) && should == find_leaf(&wrong, "leaf2-4") && unit == 2);
    assert_int_equal(pmixfab_misplaced(fab, 2, &at, &should, &unit), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_misplaced(fab, 0, NULL, &should, &unit), PMIXFAB_ERR_INVAL);
    pmixfab_close(fab);
}

/* ---- in the wrong rail ---- */

/* Two devices that changed places, within a host and between units, are all that is told. */
TEST(swapped_devices_stray)
{
    static const struct {
        struct {
            uint32_t host, rail;
            const char *leaf; /* where it belongs */
            uint32_t unit;
        } device[2];
    } swaps[] = {{{{7, 2, "leaf2-3", 1}, {7, 3, "leaf2-4", 1}}},
                 {{{1, 0, "leaf1-1", 0}, {17, 0, "leaf3-1", 2}}}};
    for (int s = 0; s < 2; s++) {
        SCOPED(scene) right = scene_make("rails:3,4,6,2", 0);
        uint32_t at[2];
        for (int i = 0; i < 2; i++)
            at[i] = device_on(&right, swaps[s].device[i].host, swaps[s].device[i].rail);
        SCOPED(scene) wrong = with_swapped(&right, at[0], at[1]);
        const struct fab_units *units = &wrong.geo.units;
        must_be_as_built(&wrong, "swapped");
        assert_int_equal(units->n_strays, 2);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(units->strays[i].device, at[i]);
            assert_int_equal(units->strays[i].sw, find_leaf(&wrong, swaps[s].device[i].leaf));
            assert_int_equal(units->strays[i].unit, swaps[s].device[i].unit);
        }
    }
}

/* A host that has lost a card: the driver may call the others by other names. */
TEST(fewer_cards_are_not_judged)
{
    struct fab_inventory inv = generated("rails:2,4,6,2");
    char name[16];
    for (uint32_t i = 0; i < inv.n_nodes; i++) {
        struct fab_node *node = &inv.nodes[i];
        if (node->kind != FAB_HCA || strcmp(fab_str(&inv, node->host), "node0003") != 0)
            continue;
        int number = atoi(fab_str(&inv, node->name) + 4);
        snprintf(name, sizeof(name), "HCA-%d", number > 1 ? number - 1 : 9);
        node->name = fab_inventory_string(&inv, name, strlen(name));
    }
    assert_int_equal(fabric_lose(&inv, "node0003-9"), 0);
    SCOPED(scene) scene = scene_take(&inv);
    must_be_as_built(&scene, "fewer cards");
    assert_int_equal(scene.geo.units.n_strays, 0);
}

/* ---- plainly ---- */

static bool plain_has(const struct fab_plane *plane, uint32_t host, uint32_t sw)
{
    for (uint32_t d = plane->hosts[host].first; d < plane->hosts[host].first + plane->hosts[host].n; d++)
        if (plane->devices[d].sw == sw)
            return true;
    return false;
}

static bool plain_counts(const struct fab_plane *plane, uint32_t host)
{
    const struct fab_inventory *inv = plane->inv;
    return plane->hosts[host].n <= 64 &&
           !inv->nodes[inv->ports[plane->devices[plane->hosts[host].first].port].node].unnamed;
}

static bool plain_together(const struct fab_plane *plane, uint32_t a, uint32_t b)
{
    unsigned on_a = 0, on_b = 0, both = 0;
    for (uint32_t h = 0; h < plane->n_hosts; h++) {
        if (!plain_counts(plane, h))
            continue;
        on_a += plain_has(plane, h, a);
        on_b += plain_has(plane, h, b);
        both += plain_has(plane, h, a) && plain_has(plane, h, b);
    }
    return both >= 2 && 2 * both > on_a && 2 * both > on_b;
}

/* label[s]: the lowest switch of its unit; its own where it is in none. */
static void plain_units(const struct fab_plane *plane, uint32_t *label)
{
    uint32_t n = plane->n_switches;
    for (uint32_t s = 0; s < n; s++)
        label[s] = s;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++)
                if (label[a] < label[b] && plain_together(plane, a, b)) {
                    label[b] = label[a];
                    again = true;
                }
    }
    for (uint32_t root = 0; root < n; root++) {
        unsigned leaves = 0, hosts = 0, places = 0;
        for (uint32_t s = 0; s < n; s++)
            leaves += label[s] == root;
        for (uint32_t h = 0; h < plane->n_hosts; h++) {
            unsigned here = 0;
            for (uint32_t s = 0; s < n && plain_counts(plane, h); s++)
                here += label[s] == root && plain_has(plane, h, s);
            hosts += here > 0;
            places += here;
        }
        for (uint32_t s = 0; s < n && 2 * places <= leaves * hosts; s++)
            label[s] = label[s] == root ? s : label[s];
    }
}

static unsigned compare_with_plain(const struct scene *scene, const char *what)
{
    uint32_t n = scene->plane->n_switches, *label = must_have((n + 1) * sizeof *label);
    const uint32_t *unit = scene->geo.units.unit;
    plain_units(scene->plane, label);
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            bool together = a == b || (unit[a] != FAB_NONE && unit[a] == unit[b]);
            if (together != (label[a] == label[b]))
                fail_msg("%s: switches %u and %u", what, a, b);
        }
    }
    free(label);
    return scene->geo.units.n;
}

/* Cables change their places by chance: by few there is still a unit, by many there is none. */
static struct scene scattered(uint64_t seed)
{
    uint64_t dice = seed;
    unsigned leaves = 2 + (unsigned)(fabric_random_next(&dice) % 7);
    struct fab_inventory inv =
        generated(printed("rails:%u,%u,%u,1", 1 + (unsigned)(seed % 4), leaves, 2 + (unsigned)(seed % 12)));
    OWNED(free) uint32_t *cards = must_have(inv.n_ports * sizeof *cards);
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv.n_ports; i++) {
        if (inv.nodes[inv.ports[i].node].kind != FAB_HCA)
            continue;
        cards[n++] = i;
        inv.nodes[inv.ports[i].node].unnamed = fabric_random_next(&dice) % 12 == 0;
        if (fabric_random_next(&dice) % 5 >= seed % 5)
            continue;
        swap_cables(&inv, i, cards[fabric_random_next(&dice) % n]);
    }
    return scene_take(&inv);
}

TEST(units_as_plainly_put_together)
{
    unsigned units = 0, none = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        SCOPED(scene) scene = scattered(seed);
        unsigned n = compare_with_plain(&scene, printed("scattered %u", (unsigned)seed));
        units += n;
        none += n == 0;
    }
    assert_true(units > 150 && none > 25);
    for (unsigned seed = 1; seed <= 60; seed++) {
        const char *text = printed("random:%u,%u,%u:%u", 2 + seed % 9, 5 + seed % 40, seed % 7, seed);
        SCOPED(scene) scene = scene_make(text, seed);
        compare_with_plain(&scene, text);
    }
}
