/* Coordinates that stay: what is on its switch and port still has its numbers, whatever changes around it. */
#include "test/unit/edits.h"
#include "test/unit/rewire.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/snapshot.h"

#define FABRICS (sizeof(fabrics) / sizeof(fabrics[0]))
static const char *const fabrics[] = {
    "fattree2:4,2,3",   "fattree2:8,4,2",      "fattree3:4",  "fattree3:6",    "dragonfly:2,3,1",
    "dragonfly:1,4,2",  "torus:3,4:2",         "torus:4,4:1", "torus:4,4,4:1", "torus:5,3,3:1",
    "torus:2,4,3:1",    "mesh:4,4:2",          "mesh:4,4:1",  "mesh:2,3,4:1",  "mesh:2,2,2:1",
    "random:12,40,9:7", "random:30,100,40:11",
};

/* The largest plane of a fabric as it was published. */
struct published {
    struct fab_inventory inv;
    struct fab_planes planes;
    const struct fab_plane *plane;
    struct fab_geometry geometry; /* settled */
    struct fab_geometry plain;    /* from nothing */
    struct pmixfab *fab;
    void *bytes;
};

static struct counts {
    unsigned kept, compared, same_kind, moved_from_plain;
} counts;

/* Takes the inventory over. */
static void publish(struct published *p, const struct fab_inventory *inv, const struct pmixfab *before)
{
    struct fab_err err = {{0}};
    SCOPED(fab_groups) groups;
    size_t size;
    const struct fab_snapshot_meta meta = {.name = "p"};
    memset(p, 0, sizeof(*p));
    p->inv = *inv;
    must(fab_planes_build(&p->inv, FAB_COST_RATE, &p->planes, &err), &err);
    assert_true(p->planes.n > 0);
    p->plane = &p->planes.planes[0];
    assert_int_equal(fab_geometry_settle(p->plane, before, &p->geometry), 0);
    assert_int_equal(fab_geometry_settle(p->plane, NULL, &p->plain), 0);
    SCOPED(fab_costs) costs = costs_of(p->plane, 1);
    assert_int_equal(fab_groups_compute(p->plane, &p->geometry, FAB_GROUP_LEAF, &groups), 0);
    must_do(fab_snapshot_build(p->plane, &costs, &p->geometry, &groups, NULL, &meta, &p->bytes, &size));
    assert_int_equal(fab_snapshot_borrow(p->bytes, size, &p->fab, &err), 0);
}

static void published_destroy(struct published *p)
{
    pmixfab_close(p->fab);
    free(p->bytes);
    fab_geometry_destroy(&p->geometry);
    fab_geometry_destroy(&p->plain);
    fab_planes_destroy(&p->planes);
    fab_inventory_destroy(&p->inv);
}

/* Some switches stand in chassis. */
static void make(const char *fabric, struct fab_inventory *inv)
{
    assert_int_equal(fabric_parse(fabric, inv), 0);
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_SWITCH && i % 3 != 0) {
            inv->nodes[i].chassis = (uint16_t)(1 + i / 5);
            inv->nodes[i].slot_type = 1;
            inv->nodes[i].slot = (uint8_t)(1 + i % 5);
        }
}

/* ---- what must hold ---- */

static uint64_t guid_of(const struct published *p, uint32_t sw)
{
    return p->inv.nodes[p->plane->switches[sw].node].guid;
}

/* The device with this port GUID on the same switch and switch port; FAB_NONE. */
static uint32_t same_place(const struct published *before, const struct published *after, uint32_t i)
{
    const struct fab_device *device = &after->plane->devices[i];
    const struct fab_port *port = &after->inv.ports[device->port];
    for (uint32_t j = 0; device->sw != FAB_NONE && j < before->plane->n_devices; j++) {
        const struct fab_device *old = &before->plane->devices[j];
        const struct fab_port *old_port = &before->inv.ports[old->port];
        if (old_port->guid == port->guid && old->sw != FAB_NONE &&
            guid_of(before, old->sw) == guid_of(after, device->sw) &&
            before->inv.ports[old_port->peer].num == after->inv.ports[port->peer].num)
            return j;
    }
    return FAB_NONE;
}

/* Are the switches that both have and that carry devices in the same pods, whatever their numbers? */
static bool same_pods(const struct published *before, const struct published *after)
{
    uint32_t to[4096], back[4096];
    memset(to, 0xff, sizeof(to));
    memset(back, 0xff, sizeof(back));
    for (uint32_t s = 0; s < after->plane->n_switches; s++)
        for (uint32_t o = 0; o < before->plane->n_switches; o++) {
            if (guid_of(before, o) != guid_of(after, s) || after->plane->switches[s].n_devices == 0 ||
                before->plane->switches[o].n_devices == 0)
                continue;
            uint32_t a = before->plain.pod[o], b = after->plain.pod[s];
            assert_true(a < 4096 && b < 4096);
            if ((to[a] != FAB_NONE && to[a] != b) || (back[b] != FAB_NONE && back[b] != a))
                return false;
            to[a] = b;
            back[b] = a;
        }
    return true;
}

static bool same_sizes(const struct published *before, const struct published *after)
{
    uint32_t n = after->plain.dims;
    for (uint32_t d = 0; after->plain.kind >= FAB_KIND_MESH_2D && d < n && d < 3; d++)
        if (before->plain.shape[d] != after->plain.shape[d])
            return false;
    return true;
}

static void compare(const char *what, const struct published *before, const struct published *after)
{
    const struct fab_geometry *was = &before->geometry, *is = &after->geometry;
    bool grid = is->kind >= FAB_KIND_MESH_2D && is->kind <= FAB_KIND_TORUS_3D;
    bool same_kind = was->kind == is->kind,
         same_parts = same_pods(before, after) && same_sizes(before, after);
    uint32_t dims = was->dims < is->dims ? was->dims : is->dims;
    scene_assert_view(is->logical, after->plane->n_devices, is->dims, is->shape, !grid);
    scene_assert_view(is->physical, after->plane->n_devices, 3, is->physical_shape, true);
    assert_int_equal(is->kind, after->plain.kind);
    counts.same_kind += same_kind;
    for (uint32_t i = 0; i < after->plane->n_devices; i++) {
        uint32_t j = same_place(before, after, i);
        if (j == FAB_NONE)
            continue;
        counts.compared++;
        if (memcmp(is->physical + 3 * (size_t)i, was->physical + 3 * (size_t)j, 3 * sizeof(uint32_t)) != 0)
            fail_msg("%s: device %u stands elsewhere as wired", what, i);
        if (!same_kind || !same_parts)
            continue;
        assert_true(was->dims <= is->dims);
        if (memcmp(is->logical + (size_t)i * is->dims, was->logical + (size_t)j * was->dims,
                   dims * sizeof(uint32_t)) != 0)
            fail_msg("%s: device %u, %s, moved from %u %u %u to %u %u %u", what, i, fab_kind_name(is->kind),
                     was->logical[j * was->dims], was->logical[j * was->dims + 1],
                     was->dims > 2 ? was->logical[j * was->dims + 2] : 0, is->logical[i * is->dims],
                     is->logical[i * is->dims + 1], is->dims > 2 ? is->logical[i * is->dims + 2] : 0);
        counts.kept++;
        if (is->dims == after->plain.dims)
            counts.moved_from_plain +=
                memcmp(is->logical + (size_t)i * is->dims, after->plain.logical + (size_t)i * is->dims,
                       is->dims * sizeof(uint32_t)) != 0;
    }
}

/* ---- chains of edits ---- */

static void run_chain(const char *fabric, uint64_t seed, unsigned steps, unsigned kinds, unsigned most)
{
    struct edits_source source = {seed, 1};
    struct published before = {.plane = NULL}, after;
    struct fab_inventory inv;
    uint32_t nodes = 0;
    for (unsigned step = 0; step < steps; step++) {
        const char *what = printed("%s, seed %llu, step %u", fabric, (unsigned long long)seed, step);
        if (before.plane == NULL || before.plane->n_switches < nodes / 2 || before.plane->n_devices < 2) {
            if (before.plane != NULL)
                published_destroy(&before);
            make(fabric, &inv);
            publish(&before, &inv, NULL);
            nodes = before.plane->n_switches;
        }
        inv = inventory_copy(&before.inv);
        edits_random(&inv, &source, kinds, most);
        publish(&after, &inv, before.fab);
        compare(what, &before, &after);
        published_destroy(&before);
        before = after;
    }
    published_destroy(&before);
}

TEST(random_edits)
{
    counts = (struct counts){0};
    for (size_t f = 0; f < FABRICS; f++) {
        run_chain(fabrics[f], 1 + f, 30, (1u << EDITS_KINDS) - 1, 1);
        run_chain(fabrics[f], 1001 + f, 30, (1u << EDITS_KINDS) - 1, 5);
    }
    assert_true(counts.compared > 5000);
    assert_true(counts.same_kind > FABRICS * 30);
}

/* What leaves the kind as it is, so that the numbers go a long way from those from nothing. */
TEST(edits_that_keep_the_kind)
{
    const unsigned hosts = 1u << EDIT_ADD_HOST | 1u << EDIT_PULL_HOST | 1u << EDIT_MOVE_HOST |
                           1u << EDIT_LOSE_HOST | 1u << EDIT_RATE;
    counts = (struct counts){0};
    for (size_t f = 0; f < FABRICS; f++) {
        run_chain(fabrics[f], 2001 + f, 40, 1u << EDIT_REPLACE_SWITCH, 2);
        run_chain(fabrics[f], 3001 + f, 40, hosts | 1u << EDIT_REPLACE_SWITCH, 3);
    }
    assert_true(counts.kept > 5000);
    assert_true(counts.moved_from_plain > counts.kept / 8);
}

/* Does every device of both, wherever it is now, stand where it stood, in both views? */
static void assert_all_stay(const char *what, const struct published *before, const struct published *after)
{
    unsigned n = 0;
    assert_int_equal(before->geometry.dims, after->geometry.dims);
    for (uint32_t i = 0; i < after->plane->n_devices; i++)
        for (uint32_t j = 0; j < before->plane->n_devices; j++) {
            uint32_t dims = after->geometry.dims;
            if (after->inv.ports[after->plane->devices[i].port].guid !=
                before->inv.ports[before->plane->devices[j].port].guid)
                continue;
            n++;
            if (memcmp(after->geometry.logical + (size_t)i * dims,
                       before->geometry.logical + (size_t)j * dims, dims * sizeof(uint32_t)) != 0)
                fail_msg("%s: device %u moved", what, i);
            assert_memory_equal(after->geometry.physical + 3 * (size_t)i,
                                before->geometry.physical + 3 * (size_t)j, 3 * sizeof(uint32_t));
        }
    assert_true(n > 0);
}

/* Switches with other GUIDs in the places of the old ones: nobody moves, whatever the new GUIDs are. */
TEST(replaced_switches)
{
    for (size_t f = 0; f < FABRICS; f++) {
        struct edits_source source = {4001 + f, 1};
        struct published before, after;
        struct fab_inventory inv;
        make(fabrics[f], &inv);
        publish(&before, &inv, NULL);
        for (unsigned step = 0; step < 15; step++) {
            inv = inventory_copy(&before.inv);
            edits_random(&inv, &source, 1u << EDIT_REPLACE_SWITCH, 3);
            publish(&after, &inv, before.fab);
            assert_all_stay(fabrics[f], &before, &after);
            published_destroy(&before);
            before = after;
        }
        published_destroy(&before);
    }
}

/* A row of switches more at the far end, and less; the longer dimension need not be the first any more. */
TEST(grids_that_grow)
{
    static const char *const sizes[][2] = {
        {"mesh:4,4:1", "mesh:5,4:1"},   {"mesh:3,4:1", "mesh:4,4:1"},       {"mesh:3,4:2", "mesh:6,4:2"},
        {"torus:4,5:1", "torus:6,5:1"}, {"torus:3,3,3:1", "torus:4,3,3:1"}, {"torus:4,4:1", "torus:5,4:1"},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        SCOPED(published) small, large, again;
        struct fab_inventory inv = generated(sizes[i][0]);
        publish(&small, &inv, NULL);
        inv = generated(sizes[i][1]);
        publish(&large, &inv, small.fab);
        assert_all_stay(sizes[i][1], &small, &large);
        inv = generated(sizes[i][0]);
        publish(&again, &inv, large.fab);
        assert_all_stay(sizes[i][0], &large, &again);
    }
}

/* Lost, the others stay where they are; a newcomer takes the lowest number that is free. */
TEST(holes_are_filled)
{
    SCOPED(published) all, lost, back;
    SCOPED_BY(edits_end) struct edits edits;
    struct edits_source source = {1, 1};
    struct fab_inventory inv = generated("fattree2:4,2,1");
    publish(&all, &inv, NULL);
    edits_begin(&edits, &all.inv);
    edits.drop_node[fabric_find(&all.inv, "leaf2")] = 1;
    edits_apply(&all.inv, &edits, &source, &inv);
    publish(&lost, &inv, all.fab);
    assert_int_equal(lost.plane->n_devices, 3);
    static const uint32_t ranks[] = {0, 2, 3};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(lost.geometry.logical[3 * i + 1], ranks[i]);
    assert_int_equal(lost.geometry.shape[1], 4);
    assert_int_equal(lost.plain.shape[1], 3);
    inv = generated("fattree2:4,2,1");
    publish(&back, &inv, lost.fab);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(back.geometry.logical[3 * i + 1], i);
}
