/* rewire.h - for tests of geometry and groups: a fabric with other GUIDs and names, with something pulled or
 * added, and what is computed from it. */
#ifndef FAB_TEST_REWIRE_H
#define FAB_TEST_REWIRE_H

#include "test/unit/handmade.h"
#include "topo/plane/groups.h"

/* What to change. Start from REWIRE_NONE. */
struct rewire {
    uint64_t seed; /* not 0: switches get their GUIDs and names dealt anew; desc keeps the generator's name */
    uint32_t lose_node;  /* node index, or FAB_NONE */
    uint32_t lose_cable; /* index of one of its ports, or FAB_NONE */
    uint32_t lose_hosts; /* node index of a switch whose devices are all cut off, or FAB_NONE */
    uint32_t add[2];     /* two switches (node indices) to cable together, or FAB_NONE */
};
#define REWIRE_NONE ((struct rewire){0, FAB_NONE, FAB_NONE, FAB_NONE, {FAB_NONE, FAB_NONE}})

/* One change. */
static inline struct rewire without_node(uint32_t node)
{
    struct rewire how = REWIRE_NONE;
    how.lose_node = node;
    return how;
}

static inline struct rewire without_cable(uint32_t port)
{
    struct rewire how = REWIRE_NONE;
    how.lose_cable = port;
    return how;
}

static inline struct rewire without_hosts(uint32_t sw)
{
    struct rewire how = REWIRE_NONE;
    how.lose_hosts = sw;
    return how;
}

static inline struct rewire with_cable(uint32_t a, uint32_t b)
{
    struct rewire how = REWIRE_NONE;
    how.add[0] = a;
    how.add[1] = b;
    return how;
}

static inline bool rewire_keeps_cable(const struct fab_inventory *inv, const struct rewire *how,
                                      uint32_t port)
{
    uint32_t peer = inv->ports[port].peer;
    const uint32_t ends[2] = {port, peer};
    if (peer == FAB_NONE || how->lose_cable == port || how->lose_cable == peer)
        return false;
    for (int i = 0; i < 2; i++) {
        uint32_t node = inv->ports[ends[i]].node, other = inv->ports[ends[1 - i]].node;
        if (node == how->lose_node || (node == how->lose_hosts && inv->nodes[other].kind == FAB_HCA))
            return false;
    }
    return true;
}

/* deal[i]: the node whose GUID and name node i gets. Switches change among themselves. */
static inline void rewire_deal(const struct fab_inventory *inv, uint64_t seed, uint32_t *deal)
{
    uint32_t *switches = must_have(inv->n_nodes * sizeof *switches), n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        deal[i] = i;
        if (inv->nodes[i].kind == FAB_SWITCH)
            switches[n++] = i;
    }
    for (uint32_t i = n; seed != 0 && i-- > 1;) {
        uint32_t j = (uint32_t)(fabric_random_next(&seed) % (i + 1)), held = deal[switches[i]];
        deal[switches[i]] = deal[switches[j]];
        deal[switches[j]] = held;
    }
    free(switches);
}

/* `to` is initialised here, and finished. As after a sweep a switch's port without a cable is not listed. */
static inline void rewire(const struct fab_inventory *from, struct rewire how, struct fab_inventory *to)
{
    OWNED(free) uint32_t *deal = must_have(from->n_nodes * sizeof *deal);
    SCOPED_BY(hand_without_free) struct hand_without without = hand_without_new(from);
    for (uint32_t i = 0; i < from->n_ports; i++) {
        without.cable[i] = !rewire_keeps_cable(from, &how, i);
        without.port[i] = without.cable[i] && from->nodes[from->ports[i].node].kind == FAB_SWITCH;
    }
    if (how.lose_node != FAB_NONE)
        without.node[how.lose_node] = true;
    hand_copy(to, from, &without, 0);
    for (uint32_t i = 0; i < to->n_ports; i++)
        to->ports[i].state = to->ports[i].peer == FAB_NONE ? FAB_PORT_DOWN : to->ports[i].state;
    rewire_deal(from, how.seed, deal);
    for (uint32_t i = 0, at = 0; i < from->n_nodes; i++) {
        if (i == how.lose_node)
            continue;
        const struct fab_node *label = &from->nodes[deal[i]];
        to->nodes[at].guid = label->guid;
        to->nodes[at].system_guid = label->system_guid;
        to->nodes[at++].name = hand_string(to, from, label->name);
    }
    if (how.add[0] != FAB_NONE) {
        uint32_t ends[2];
        for (int i = 0; i < 2; i++) {
            const uint32_t node = how.add[i] - (how.add[i] > how.lose_node);
            ends[i] = hand_port(to, node, ++to->nodes[node].num_ports, 0, 0);
        }
        assert_int_equal(fab_inventory_link(to, ends[0], ends[1]), 0);
    }
    hand_finish(to);
}

/* A fabric, its first plane, and the plane's geometry. */
struct scene {
    struct fab_inventory *inv;
    struct fab_planes planes;
    const struct fab_plane *plane;
    struct fab_geometry geo;
};

/* From an inventory that the scene takes over. */
static inline struct scene scene_take(const struct fab_inventory *inv)
{
    struct scene scene = {.inv = must_have(sizeof(*inv))};
    *scene.inv = *inv;
    must_do(fab_planes_build(scene.inv, FAB_COST_RATE, &scene.planes, fresh_err()));
    assert_true(scene.planes.n > 0);
    scene.plane = &scene.planes.planes[0];
    assert_int_equal(fab_geometry_settle(scene.plane, NULL, &scene.geo), 0);
    return scene;
}

/* From another fabric, or from a generator's text, with something changed. */
static inline struct scene scene_change(const struct fab_inventory *from, struct rewire how)
{
    struct fab_inventory inv;
    rewire(from, how, &inv);
    return scene_take(&inv);
}

static inline struct scene scene_make(const char *text, uint64_t seed)
{
    SCOPED(fab_inventory) inv = generated(text);
    struct rewire how = REWIRE_NONE;
    how.seed = seed;
    return scene_change(&inv, how);
}

static inline void scene_destroy(struct scene *scene)
{
    fab_geometry_destroy(&scene->geo);
    fab_planes_destroy(&scene->planes);
    fab_inventory_destroy(scene->inv);
    free(scene->inv);
}

/* The same scene with one thing changed more. */
static inline void scene_replace(struct scene *scene, struct rewire how)
{
    struct scene next = scene_change(scene->inv, how);
    scene_destroy(scene);
    *scene = next;
}

static inline void scene_assert_kind(const struct scene *scene, enum fab_kind kind, const char *what)
{
    if (scene->geo.kind != kind)
        fail_msg("%s is %s", what, fab_kind_name(scene->geo.kind));
}

static inline const uint32_t *scene_logical(const struct scene *scene, uint32_t device)
{
    return scene->geo.logical + (size_t)device * scene->geo.dims;
}

static inline const uint32_t *scene_physical(const struct scene *scene, uint32_t device)
{
    return scene->geo.physical + (size_t)device * scene->geo.physical_dims;
}

/* The name that the generator gave to a switch of the plane. */
static inline const char *scene_old_name(const struct scene *scene, uint32_t sw)
{
    return fab_str(scene->inv, scene->inv->nodes[scene->plane->switches[sw].node].desc);
}

/* Node of a switch by the generator's name. */
static inline uint32_t scene_node(const struct scene *scene, const char *old_name)
{
    for (uint32_t i = 0; i < scene->inv->n_nodes; i++)
        if (scene->inv->nodes[i].kind == FAB_SWITCH &&
            strcmp(fab_str(scene->inv, scene->inv->nodes[i].desc), old_name) == 0)
            return i;
    fail_msg("no switch %s", old_name);
    return FAB_NONE;
}

static inline int scene_compare_rows(const void *a, const void *b, void *dims)
{
    return memcmp(a, b, *(const uint32_t *)dims * sizeof(uint32_t));
}

static inline void scene_assert_view(const uint32_t *coords, uint32_t n, uint32_t dims, const uint32_t *shape,
                                     bool shape_is_tight)
{
    uint32_t most[PMIXFAB_MAX_DIMS] = {0};
    OWNED(free) uint32_t *rows = must_have((size_t)n * dims * sizeof *rows);
    assert_in_range(dims, 2, PMIXFAB_MAX_DIMS);
    memcpy(rows, coords, (size_t)n * dims * sizeof *rows);
    qsort_r(rows, n, dims * sizeof *rows, scene_compare_rows, &dims);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(i == 0 ||
                    memcmp(rows + (size_t)(i - 1) * dims, rows + (size_t)i * dims, dims * sizeof *rows) != 0);
        for (uint32_t d = 0; d < dims; d++)
            if (rows[(size_t)i * dims + d] >= most[d])
                most[d] = rows[(size_t)i * dims + d] + 1;
    }
    for (uint32_t d = 0; d < dims; d++) {
        assert_true(most[d] <= shape[d]);
        assert_true(!shape_is_tight || most[d] == shape[d]);
    }
    for (uint32_t d = dims; d < PMIXFAB_MAX_DIMS; d++)
        assert_int_equal(shape[d], 0);
}

static inline bool scene_is_grid(const struct scene *scene)
{
    return scene->geo.kind >= FAB_KIND_MESH_2D;
}

/* No two devices share coordinates, in either view, and the shapes hold them. */
static inline void scene_assert_sound(const struct scene *scene)
{
    const struct fab_geometry *geo = &scene->geo;
    scene_assert_view(geo->logical, scene->plane->n_devices, geo->dims, geo->shape, !scene_is_grid(scene));
    scene_assert_view(geo->physical, scene->plane->n_devices, geo->physical_dims, geo->physical_shape, true);
    assert_int_equal(geo->physical_dims, 3);
}

static inline uint64_t scene_port_guid(const struct scene *scene, uint32_t device)
{
    return scene->inv->ports[scene->plane->devices[device].port].guid;
}

/* Do all devices of `after` stand where they stood in `before`, in both views? */
static inline bool scene_stable(const struct scene *before, const struct scene *after)
{
    const struct fab_plane *plane = after->plane;
    if (before->geo.dims != after->geo.dims)
        return false;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint32_t j = 0;
        while (j < before->plane->n_devices && scene_port_guid(before, j) != scene_port_guid(after, i))
            j++;
        assert_true(j < before->plane->n_devices);
        if (memcmp(scene_logical(before, j), scene_logical(after, i), after->geo.dims * sizeof(uint32_t)) !=
                0 ||
            memcmp(scene_physical(before, j), scene_physical(after, i), 3 * sizeof(uint32_t)) != 0)
            return false;
    }
    return true;
}

#endif
