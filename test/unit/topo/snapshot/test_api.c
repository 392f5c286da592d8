/* The public library, cell by cell against what it was made from. */
#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"

static void compare_plane(const struct pmixfab *fab, const struct layer *layer)
{
    const struct fab_plane *plane = layer->plane;
    const struct fab_geometry *geometry = &layer->geometry;
    uint32_t unnamed = 0;

    struct pmixfab_plane out = plane_at(fab);
    assert_int_equal(out.generation, layer->meta.generation);
    assert_int_equal(out.published, layer->meta.published);
    assert_int_equal(out.index, layer->meta.index);
    assert_int_equal(out.is_default, layer->meta.is_default);
    assert_string_equal(out.name, layer->meta.name);
    assert_string_equal(out.vendor, layer->meta.vendor);
    assert_string_equal(out.identifier, layer->meta.identifier);
    assert_string_equal(out.kind, fab_kind_name(geometry->kind));
    assert_int_equal(out.n_devices, plane->n_devices);
    assert_int_equal(out.n_hosts, plane->n_hosts);
    assert_int_equal(out.n_switches, plane->n_switches);
    assert_int_equal(out.n_links, plane->n_cables);
    assert_int_equal(out.n_groups, layer->groups.n);
    assert_int_equal(out.fastest_mbps, plane->fastest_mbps);
    assert_int_equal(out.dims, geometry->dims);
    assert_int_equal(out.physical_dims, geometry->physical_dims);
    for (uint32_t d = 0; d < PMIXFAB_MAX_DIMS; d++) {
        assert_int_equal(out.shape[d], d < geometry->dims ? geometry->shape[d] : 0);
        assert_int_equal(out.physical_shape[d],
                         d < geometry->physical_dims ? geometry->physical_shape[d] : 0);
    }
    for (uint32_t h = 0; h < plane->n_hosts; h++)
        unnamed += strncmp(plane->hosts[h].name, "0x", 2) == 0;
    assert_int_equal(out.n_unnamed, unnamed);
}

static void compare_devices(const struct pmixfab *fab, const struct layer *layer)
{
    const struct fab_inventory *inv = layer->plane->inv;
    for (uint32_t i = 0; i < layer->plane->n_devices; i++) {
        const struct fab_device *device = &layer->plane->devices[i];
        const struct fab_port *port = &inv->ports[device->port];
        const struct fab_node *node = &inv->nodes[port->node];
        const uint32_t *coords;
        uint32_t dims;

        struct pmixfab_device out = device_at(fab, i);
        assert_int_equal(out.index, i);
        assert_int_equal(out.host_index, device->host);
        assert_int_equal(out.switch_index, device->sw);
        assert_int_equal(out.switch_port, device->sw == FAB_NONE ? 0 : inv->ports[port->peer].num);
        assert_int_equal(out.port, port->num);
        assert_int_equal(out.state, port->state == FAB_PORT_ACTIVE    ? PMIXFAB_STATE_UP
                                    : port->state == FAB_PORT_UNKNOWN ? PMIXFAB_STATE_UNKNOWN
                                                                      : PMIXFAB_STATE_DOWN);
        assert_true(out.node_guid == node->guid && out.port_guid == port->guid);
        assert_true(out.system_guid == node->system_guid);
        assert_int_equal(out.mbps, fab_rate_mbps(port->width, port->speed));
        assert_string_equal(out.host, fab_str(inv, node->host));
        assert_string_equal(out.name, fab_str(inv, node->name));
#define QUARTERS(guid)                                                                                       \
    (unsigned)((guid) >> 48), (unsigned)((guid) >> 32 & 0xffff), (unsigned)((guid) >> 16 & 0xffff),          \
        (unsigned)((guid)&0xffff)
        const char *id = printed("fab://%04x:%04x:%04x:%04x::%04x:%04x:%04x:%04x", QUARTERS(node->guid),
                                 QUARTERS(node->system_guid));
        assert_string_equal(out.id, id);
        assert_int_equal(pmixfab_coords(fab, i, PMIXFAB_LOGICAL, &coords, &dims), 0);
        assert_int_equal(dims, layer->geometry.dims);
        assert_memory_equal(coords, layer->geometry.logical + (size_t)i * dims, dims * sizeof(*coords));
        assert_int_equal(pmixfab_coords(fab, i, PMIXFAB_PHYSICAL, &coords, &dims), 0);
        assert_int_equal(dims, layer->geometry.physical_dims);
        assert_memory_equal(coords, layer->geometry.physical + (size_t)i * dims, dims * sizeof(*coords));
    }
}

static void compare_hosts(const struct pmixfab *fab, const struct fab_plane *plane)
{
    for (uint32_t h = 0; h < plane->n_hosts; h++) {
        const char *name;
        uint32_t first, n;
        assert_int_equal(pmixfab_host(fab, h, &name, &first, &n), 0);
        assert_string_equal(name, plane->hosts[h].name);
        assert_int_equal(first, plane->hosts[h].first);
        assert_int_equal(n, plane->hosts[h].n);
    }
}

static void compare_switches(const struct pmixfab *fab, const struct layer *layer)
{
    const struct fab_plane *plane = layer->plane;
    for (uint32_t i = 0; i < plane->n_switches; i++) {
        const struct fab_node *node = &plane->inv->nodes[plane->switches[i].node];
        uint32_t hosts = 0;
        for (uint32_t h = 0; h < plane->n_hosts; h++) {
            uint32_t on_it = 0;
            for (uint32_t d = 0; d < plane->hosts[h].n; d++)
                on_it |= plane->devices[plane->hosts[h].first + d].sw == i;
            hosts += on_it;
        }
        struct pmixfab_switch out = switch_at(fab, i);
        assert_int_equal(out.index, i);
        assert_int_equal(out.level, layer->geometry.level[i]);
        assert_int_equal(out.n_ports, node->num_ports);
        assert_int_equal(out.n_hosts, hosts);
        assert_true(out.guid == node->guid);
        assert_string_equal(out.name, fab_str(plane->inv, node->name));
        const char *id = printed("0x%016llx", (unsigned long long)node->guid);
        assert_string_equal(out.id, id);
        assert_int_equal(out.missing, node->missing);
    }
}

/* The slow way from a port to what it belongs to. */
static void compare_end(const struct pmixfab_end *end, const struct fab_plane *plane, uint32_t port)
{
    const struct fab_port *p = &plane->inv->ports[port];
    uint32_t index = FAB_NONE, is_switch = 0;

    for (uint32_t i = 0; i < plane->n_devices; i++)
        if (plane->devices[i].port == port)
            index = i;
    for (uint32_t i = 0; i < plane->n_switches; i++)
        if (plane->switches[i].node == p->node) {
            is_switch = 1;
            index = i;
        }
    assert_int_equal(end->is_switch, is_switch);
    assert_int_equal(end->index, index);
    assert_int_equal(end->port, p->num);
    assert_true(end->guid == plane->inv->nodes[p->node].guid);
}

static void compare_links(const struct pmixfab *fab, const struct fab_plane *plane)
{
    for (uint32_t i = 0; i < plane->n_cables; i++) {
        struct pmixfab_link out = link_at(fab, i);
        compare_end(&out.a, plane, plane->cables[i].a);
        compare_end(&out.b, plane, plane->cables[i].b);
        assert_int_equal(out.mbps, plane->cables[i].mbps);
        assert_int_equal(out.cost, plane->cables[i].cost);
        const struct fab_port *end = &plane->inv->ports[plane->cables[i].a];
        assert_int_equal(out.missing, fab_port_is_missing(plane->inv, end));
    }
}

static void compare_groups(const struct pmixfab *fab, const struct layer *layer)
{
    OWNED(free) char *text, *expected = NULL;
    size_t size;
    FILE *f = open_memstream(&expected, &size);
    assert_non_null(f);
    for (uint32_t g = 0; g < layer->groups.n; g++) {
        const uint32_t *hosts;
        uint32_t n, start = layer->groups.start[g];
        assert_int_equal(pmixfab_group(fab, g, &hosts, &n), 0);
        assert_int_equal(n, layer->groups.start[g + 1] - start);
        assert_memory_equal(hosts, layer->groups.members + start, n * sizeof(*hosts));
        uint32_t sw = 77;
        assert_int_equal(pmixfab_group_switch(fab, g, &sw), 0);
        assert_int_equal(sw, layer->groups.leaf[g]);
        fprintf(f, "%s%u:", g > 0 ? ";" : "", g);
        for (uint32_t m = 0; m < n; m++)
            fprintf(f, "%s%s", m > 0 ? "," : "", layer->plane->hosts[hosts[m]].name);
    }
    fclose(f);
    assert_int_equal(pmixfab_groups_string(fab, &text), 0);
    assert_string_equal(text, expected);
}

static void compare_costs(const struct pmixfab *fab, const struct layer *layer)
{
    uint32_t n = layer->plane->n_devices;
    size_t cells = (size_t)n * n;
    OWNED(free) uint16_t *matrix = calloc(cells + 1, sizeof(*matrix)), *row = calloc(n + 1, sizeof(*row));
    uint16_t *own = NULL;

    assert_non_null(matrix);
    assert_non_null(row);
    matrix[cells] = row[n] = 0xbeef;
    assert_int_equal(pmixfab_matrix(fab, matrix, cells, 2), 0);
    assert_int_equal(pmixfab_matrix_alloc(fab, 0, &own), 0);
    assert_memory_equal(own, matrix, cells * sizeof(*matrix));
    for (uint32_t a = 0; a < n; a++) {
        assert_int_equal(pmixfab_row(fab, a, row, n), 0);
        for (uint32_t b = 0; b < n; b++) {
            uint16_t cost;
            assert_int_equal(pmixfab_cost(fab, a, b, &cost), 0);
            assert_int_equal(cost, fab_cost_of(&layer->costs.view, a, b));
            assert_int_equal(cost, matrix[(size_t)a * n + b]);
            assert_int_equal(cost, row[b]);
        }
    }
    assert_int_equal(matrix[cells], 0xbeef);
    assert_int_equal(row[n], 0xbeef);
    pmixfab_matrix_free(own, n);
}

static void compare_all(const struct layer *layer)
{
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    const void *bytes;
    size_t size;
    compare_plane(fab, layer);
    compare_devices(fab, layer);
    compare_hosts(fab, layer->plane);
    compare_switches(fab, layer);
    compare_links(fab, layer->plane);
    compare_groups(fab, layer);
    compare_costs(fab, layer);
    walk_everything(fab);
    assert_int_equal(pmixfab_bytes(fab, &bytes, &size), 0);
    assert_int_equal(size, layer->size);
    assert_memory_equal(bytes, layer->bytes, size);
}

/* Whole, and with switches, hosts and ports that keep their places: they and their cables say so. */
TEST(test_generated_fabrics)
{
    uint64_t dice = 5;
    for (size_t f = 0; f < 2 * WORLD_FABRICS; f++) {
        SCOPED(world) world = {0};
        assert_int_equal(fabric_parse(world_fabrics[f / 2], &world.inv), 0);
        for (uint32_t i = 0; i < world.inv.n_nodes && f % 2 == 1; i++)
            world.inv.nodes[i].missing = fabric_random_next(&dice) % 6 == 0;
        for (uint32_t p = 0; p < world.inv.n_ports && f % 2 == 1; p++) /* what is on a missing switch, too */
            if (world.inv.nodes[world.inv.ports[p].node].kind == FAB_HCA)
                world.inv.ports[p].missing = fabric_random_next(&dice) % 6 == 0 ||
                                             fab_port_is_missing(&world.inv, &world.inv.ports[p]);
        world_compute(&world);
        for (uint32_t p = 0; p < world.planes.n; p++)
            compare_all(&world.layers[p]);
    }
}

TEST(test_odd_names_and_ends)
{
    SCOPED(world) world;
    unsigned others = 0, routers = 0, aggregators = 0;
    world_odd(&world);
    assert_int_equal(world.planes.n, 1);
    compare_all(&world.layers[0]);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    for (uint32_t i = 0; i < world.layers[0].plane->n_cables; i++) {
        struct pmixfab_link cable = link_at(fab, i);
        others += cable.a.index == UINT32_MAX || cable.b.index == UINT32_MAX;
        const struct pmixfab_end *ends[] = {&cable.a, &cable.b};
        for (unsigned e = 0; e < 2; e++) {
            assert_int_equal(ends[e]->kind == PMIXFAB_END_SWITCH, ends[e]->is_switch);
            routers += ends[e]->kind == PMIXFAB_END_ROUTER;
            aggregators += ends[e]->kind == PMIXFAB_END_AGGREGATION;
        }
    }
    assert_int_equal(others, 2); /* the router's and the aggregation node's */
    assert_true(routers == 1 && aggregators == 1);
}

TEST(test_port_states)
{
    static const enum pmixfab_state served[] = {
        [FAB_PORT_UNKNOWN] = PMIXFAB_STATE_UNKNOWN, [FAB_PORT_DOWN] = PMIXFAB_STATE_DOWN,
        [FAB_PORT_INIT] = PMIXFAB_STATE_DOWN,       [FAB_PORT_ARMED] = PMIXFAB_STATE_DOWN,
        [FAB_PORT_ACTIVE] = PMIXFAB_STATE_UP,
    };
    SCOPED(world) world = {.layers = NULL};
    assert_int_equal(fabric_parse("fattree2:1,1,5", &world.inv), 0);
    uint32_t next = 0;
    for (uint32_t p = 0; p < world.inv.n_ports; p++)
        if (world.inv.nodes[world.inv.ports[p].node].kind == FAB_HCA)
            world.inv.ports[p].state = (uint8_t)next++;
    assert_int_equal(next, 5);
    world_compute(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    for (uint32_t i = 0; i < next; i++) {
        struct pmixfab_device device = device_at(fab, i);
        assert_int_equal(device.state, served[i]);
    }
}

TEST(test_empty_plane)
{
    SCOPED(world) world;
    world_empty(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    uint16_t cell = 9, *cells = &cell;
    uint32_t index = 77;
    char *text = NULL, shape[32];

    walk_everything(fab);
    struct pmixfab_plane plane = plane_at(fab);
    assert_int_equal(plane.n_devices + plane.n_hosts + plane.n_switches + plane.n_links + plane.n_groups, 0);
    assert_int_equal(pmixfab_matrix(fab, NULL, 0, 0), 0);
    assert_int_equal(pmixfab_matrix(fab, &cell, 0, 0), 0);
    assert_int_equal(pmixfab_matrix(fab, &cell, 1, 0), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_matrix_alloc(fab, 0, &cells), 0);
    assert_null(cells);
    pmixfab_matrix_free(cells, 0);
    assert_int_equal(pmixfab_row(fab, 0, &cell, 0), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_cost(fab, 0, 0, &cell), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_find(fab, "node0001", &index), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_find(fab, "fab://0000:0000:0010:0000::0000:0000:0010:0000", &index),
                     PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(index, 77);
    assert_int_equal(cell, 9);
    assert_int_equal(pmixfab_groups_string(fab, &text), 0);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, shape, sizeof(shape)), 0);
}

TEST(test_shape_string)
{
    char buf[32];
    WORLD(world, "torus:3,4,5:1");
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    assert_int_equal(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, sizeof(buf)), 0);
    assert_string_equal(buf, "5x4x3");
    assert_int_equal(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, 6), 0);
    strcpy(buf, "kept");
    assert_int_equal(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, 5), PMIXFAB_ERR_RANGE);
    assert_string_equal(buf, "kept");
}

TEST(test_large_matrix_memory)
{
    uint16_t *cells[3];
    WORLD(world, "fattree2:32,4,40"); /* 1280 devices: 3.1 MiB, so on huge pages where they exist */
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pmixfab_matrix_alloc(fab, (unsigned)i, &cells[i]), 0);
        assert_int_equal((uintptr_t)cells[i] % 64, 0);
    }
    assert_memory_equal(cells[0], cells[1], sizeof(uint16_t) * 1280 * 1280);
    assert_memory_equal(cells[0], cells[2], sizeof(uint16_t) * 1280 * 1280);
    for (int i = 0; i < 3; i++)
        pmixfab_matrix_free(cells[i], 1280);
}

/* A leaf's group has its switch; what stands for several switches has none, whatever it is called. */
TEST(test_groups_of_each_sort)
{
    static const char *const fabrics[] = {"fattree3:4", "dragonfly:2,3,1", "rails:3,2,5,2:1", "torus:3,4:2"};
    unsigned with = 0, without = 0;
    for (unsigned f = 0; f < 4; f++)
        for (enum fab_group_by by = FAB_GROUP_LEAF; by <= FAB_GROUP_AUTO; by++) {
            WORLD(world, fabrics[f]);
            for (uint32_t p = 0; p < world.planes.n; p++) {
                struct layer *layer = &world.layers[p];
                fab_groups_destroy(&layer->groups);
                assert_int_equal(fab_groups_compute(layer->plane, &layer->geometry, by, &layer->groups), 0);
                layer_tell(layer, NULL);
                OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
                compare_groups(fab, layer);
                for (uint32_t g = 0; g < layer->groups.n; g++)
                    *(layer->groups.leaf[g] == FAB_NONE ? &without : &with) += 1;
            }
        }
    assert_true(with > 20 && without > 10);
}
