/* snapshot_world.h - a fabric with everything computed from it and its planes' snapshots, for tests. */
#ifndef FAB_TEST_SNAPSHOT_WORLD_H
#define FAB_TEST_SNAPSHOT_WORLD_H

#include "test/unit/generated.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/snapshot.h"

/* One of every kind, and some of none. */
#define WORLD_FABRICS 10
static const char *const world_fabrics[WORLD_FABRICS] = {
    "fattree2:4,2,3", "fattree3:4",   "dragonfly:2,3,1",   "torus:3,4:2",         "torus:3,3,3:1",
    "mesh:4,4:2",     "mesh:2,3,4:1", "random:12,40,20:7", "random:30,100,40:11", "random:1,5,0:3",
};

/* One plane of a world. `plane` points into world.planes. */
struct layer {
    const struct fab_plane *plane;
    struct fab_costs costs;
    struct fab_geometry geometry;
    struct fab_groups groups;
    struct fab_snapshot_meta meta;
    void *bytes;
    size_t size;
};

struct world {
    struct fab_inventory inv;
    struct fab_planes planes;
    struct layer *layers;
    char (*names)[16];
};

/* A snapshot of the layer with this of it, and what is told of its devices (NULL: nothing). free() it. */
static inline void *layer_bytes(const struct layer *layer, const struct fab_snapshot_meta *meta,
                                const struct fab_details *details, size_t *size)
{
    void *bytes = NULL;
    must_do(fab_snapshot_build(layer->plane, &layer->costs, &layer->geometry, &layer->groups, details, meta,
                               &bytes, size));
    return bytes;
}

/* The snapshot anew, with what is told of the devices. */
static inline void layer_tell(struct layer *layer, const struct fab_details *details)
{
    free(layer->bytes);
    layer->bytes = layer_bytes(layer, &layer->meta, details, &layer->size);
}

static inline void layer_make(struct layer *layer, const struct fab_plane *plane,
                              const struct fab_snapshot_meta *meta, const struct fab_details *details)
{
    *layer = (struct layer){.plane = plane, .meta = *meta};
    assert_int_equal(fab_costs_compute(plane, 1, &layer->costs), 0);
    assert_int_equal(fab_geometry_settle(plane, NULL, &layer->geometry), 0);
    assert_int_equal(fab_groups_compute(plane, &layer->geometry, FAB_GROUP_LEAF, &layer->groups), 0);
    layer_tell(layer, details);
}

static inline void layer_compute(struct layer *layer, const struct fab_plane *plane, const char *name,
                                 uint32_t index)
{
    const struct fab_snapshot_meta meta = {
        .generation = 7,
        .published = 1700000000123456,
        .index = index,
        .is_default = index == 0,
        .name = name,
        .vendor = "Mellanox",
        .identifier = "fe80000000000000",
    };
    layer_make(layer, plane, &meta, NULL);
}

static inline struct pmixfab *layer_open(const struct layer *layer)
{
    struct pmixfab *fab = NULL;
    assert_int_equal(pmixfab_open_memory(layer->bytes, layer->size, &fab), 0);
    assert_non_null(fab);
    return fab;
}

/* What a handle says, as values. */
static inline struct pmixfab_plane plane_at(const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    assert_int_equal(pmixfab_plane(fab, &plane), 0);
    return plane;
}

static inline struct pmixfab_device device_at(const struct pmixfab *fab, uint32_t index)
{
    struct pmixfab_device device;
    assert_int_equal(pmixfab_device(fab, index, &device), 0);
    return device;
}

static inline struct pmixfab_switch switch_at(const struct pmixfab *fab, uint32_t index)
{
    struct pmixfab_switch sw;
    assert_int_equal(pmixfab_switch(fab, index, &sw), 0);
    return sw;
}

static inline struct pmixfab_link link_at(const struct pmixfab *fab, uint32_t index)
{
    struct pmixfab_link cable;
    assert_int_equal(pmixfab_link(fab, index, &cable), 0);
    return cable;
}

static inline void layer_destroy(struct layer *layer)
{
    fab_costs_destroy(&layer->costs);
    fab_geometry_destroy(&layer->geometry);
    fab_groups_destroy(&layer->groups);
    free(layer->bytes);
}

/* Compute everything of world->inv, which is finished. */
static inline void world_compute(struct world *world)
{
    assert_int_equal(fab_planes_build(&world->inv, FAB_COST_RATE, &world->planes, NULL), 0);
    world->layers = calloc(world->planes.n + 1, sizeof(*world->layers));
    world->names = calloc(world->planes.n + 1, sizeof(*world->names));
    assert_non_null(world->layers);
    assert_non_null(world->names);
    for (uint32_t i = 0; i < world->planes.n; i++) {
        snprintf(world->names[i], sizeof(world->names[i]), "ib%u", i);
        layer_compute(&world->layers[i], &world->planes.planes[i], world->names[i], i);
    }
}

static inline void world_open(struct world *world, const char *fabric)
{
    memset(world, 0, sizeof(*world));
    assert_int_equal(fabric_parse(fabric, &world->inv), 0);
    world_compute(world);
}

static inline void world_destroy(struct world *world)
{
    for (uint32_t i = 0; i < world->planes.n; i++)
        layer_destroy(&world->layers[i]);
    free(world->layers);
    free(world->names);
    fab_planes_destroy(&world->planes);
    fab_inventory_destroy(&world->inv);
}

/* A world that ends with its block; it is pointed into, so it is no value. */
/* NOLINTBEGIN(bugprone-macro-parentheses): `name` is declared */
#define WORLD(name, fabric)                                                                                  \
    SCOPED(world) name;                                                                                      \
    world_open(&(name), fabric)
/* NOLINTEND(bugprone-macro-parentheses) */

/* A world by hand: nodes and cables in any order, then world_compute(). */
static inline uint32_t world_node(struct world *world, enum fab_node_kind kind, uint64_t guid,
                                  const char *host, const char *name)
{
    struct fab_inventory *inv = &world->inv;
    struct fab_node node = {.guid = guid, .system_guid = guid + 3, .kind = (uint8_t)kind, .num_ports = 8};
    uint32_t index;

    node.host = fab_inventory_string(inv, host, strlen(host));
    node.name = fab_inventory_string(inv, name, strlen(name));
    assert_int_equal(fab_inventory_add_node(inv, &node, &index), 0);
    return index;
}

static inline uint32_t world_port(struct world *world, uint32_t node, unsigned num, enum fab_port_state state)
{
    const struct fab_node *owner = &world->inv.nodes[node];
    struct fab_port port = {
        .guid = owner->kind == FAB_SWITCH ? 0 : owner->guid + 0x1000 + num,
        .node = node,
        .peer = FAB_NONE,
        .num = (uint8_t)num,
        .state = (uint8_t)state,
        .width = 4,
        .speed = FAB_HDR,
    };
    uint32_t index;
    assert_int_equal(fab_inventory_add_port(&world->inv, &port, &index), 0);
    return index;
}

static inline void world_cable(struct world *world, uint32_t node_a, unsigned a, uint32_t node_b, unsigned b)
{
    uint32_t port_a = world_port(world, node_a, a, FAB_PORT_ACTIVE);
    uint32_t port_b = world_port(world, node_b, b, FAB_PORT_ACTIVE);
    assert_int_equal(fab_inventory_link(&world->inv, port_a, port_b), 0);
}

/* "zwei hosts" with odd names, two HCAs, two ports, a router, an aggregation node. */
static inline void world_odd(struct world *world)
{
    memset(world, 0, sizeof(*world));
    fab_inventory_init(&world->inv);
    uint32_t leaf = world_node(world, FAB_SWITCH, 0x9000, "", "leaf \"one\"");
    uint32_t spine = world_node(world, FAB_SWITCH, 0x8000, "", "sp\xc3\xaene;1,2:3");
    world_cable(world, leaf, 7, spine, 1);
    world_cable(world, leaf, 8, spine, 2);
    world_cable(world, world_node(world, FAB_HCA, 0x50, "n2", "mlx5_0"), 1, leaf, 1);
    uint32_t dual = world_node(world, FAB_HCA, 0x40, "n10", "a:b");
    world_cable(world, dual, 1, leaf, 2);
    world_cable(world, dual, 2, spine, 3);
    world_cable(world, world_node(world, FAB_HCA, 0x60, "n10", "a:b:2"), 1, leaf, 3);
    world_cable(world, world_node(world, FAB_HCA, 0x70, "h\xc3\xb6st \"q\"", ""), 1, leaf, 4);
    uint32_t bare = world_node(world, FAB_HCA, 0xfedcba9876543210, "0xfedcba9876543210", "HCA-1");
    world->inv.nodes[bare].unnamed = 1;
    world_cable(world, bare, 1, spine, 4);
    world_cable(world, world_node(world, FAB_ROUTER, 0x9999, "", "router"), 1, spine, 5);
    world_cable(world, world_node(world, FAB_AGGREGATOR, 0x10, "", "sharp"), 1, leaf, 5);
    assert_int_equal(fab_inventory_finish(&world->inv, NULL), 0);
    world_compute(world);
}

/* An empty plane: no inventory has one, but nothing forbids to publish it. */
static inline void world_empty(struct world *world)
{
    memset(world, 0, sizeof(*world));
    fab_inventory_init(&world->inv);
    assert_int_equal(fab_inventory_finish(&world->inv, NULL), 0);
    world->planes.planes = calloc(1, sizeof(*world->planes.planes));
    world->layers = calloc(1, sizeof(*world->layers));
    world->planes.n = 1;
    assert_non_null(world->planes.planes);
    assert_non_null(world->layers);
    world->planes.planes[0].inv = &world->inv;
    layer_compute(&world->layers[0], &world->planes.planes[0], "ib0", 0);
}

#endif
