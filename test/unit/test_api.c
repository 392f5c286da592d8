/* The public library, cell by cell against what it was made from. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot_walk.h"
#include "snapshot_world.h"

static const char *const fabrics[] = {
    "fattree2:4,2,3", "fattree3:4",   "dragonfly:2,3,1",   "torus:3,4:2",         "torus:3,3,3:1",
    "mesh:4,4:2",     "mesh:2,3,4:1", "random:12,40,20:7", "random:30,100,40:11", "random:1,5,0:3",
};
#define N_FABRICS (sizeof(fabrics) / sizeof(fabrics[0]))

static struct pmixfab *open_layer(const struct layer *layer)
{
    struct pmixfab *fab = NULL;
    assert_int_equal(pmixfab_open_memory(layer->bytes, layer->size, &fab), 0);
    assert_non_null(fab);
    return fab;
}

/* ---- against the source ---- */

static void compare_plane(const struct pmixfab *fab, const struct layer *layer)
{
    const struct fab_plane *plane = layer->plane;
    const struct fab_geometry *geometry = &layer->geometry;
    struct pmixfab_plane out;
    uint32_t unnamed = 0;

    assert_int_equal(pmixfab_plane(fab, &out), 0);
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
        struct pmixfab_device out;
        const uint32_t *coords;
        uint32_t dims;
        char id[64];

        assert_int_equal(pmixfab_device(fab, i, &out), 0);
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
        snprintf(id, sizeof(id), "fab://%04x:%04x:%04x:%04x::%04x:%04x:%04x:%04x", QUARTERS(node->guid),
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
        struct pmixfab_switch out;
        uint32_t hosts = 0;
        char id[24];
        for (uint32_t h = 0; h < plane->n_hosts; h++) {
            uint32_t on_it = 0;
            for (uint32_t d = 0; d < plane->hosts[h].n; d++)
                on_it |= plane->devices[plane->hosts[h].first + d].sw == i;
            hosts += on_it;
        }
        assert_int_equal(pmixfab_switch(fab, i, &out), 0);
        assert_int_equal(out.index, i);
        assert_int_equal(out.level, layer->geometry.level[i]);
        assert_int_equal(out.n_ports, node->num_ports);
        assert_int_equal(out.n_hosts, hosts);
        assert_true(out.guid == node->guid);
        assert_string_equal(out.name, fab_str(plane->inv, node->name));
        snprintf(id, sizeof(id), "0x%016llx", (unsigned long long)node->guid);
        assert_string_equal(out.id, id);
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
        struct pmixfab_link out;
        assert_int_equal(pmixfab_link(fab, i, &out), 0);
        compare_end(&out.a, plane, plane->cables[i].a);
        compare_end(&out.b, plane, plane->cables[i].b);
        assert_int_equal(out.mbps, plane->cables[i].mbps);
        assert_int_equal(out.cost, plane->cables[i].cost);
    }
}

static void compare_groups(const struct pmixfab *fab, const struct layer *layer)
{
    char *text, *expected = NULL;
    size_t size;
    FILE *f = open_memstream(&expected, &size);
    assert_non_null(f);
    for (uint32_t g = 0; g < layer->groups.n; g++) {
        const uint32_t *hosts;
        uint32_t n, start = layer->groups.start[g];
        assert_int_equal(pmixfab_group(fab, g, &hosts, &n), 0);
        assert_int_equal(n, layer->groups.start[g + 1] - start);
        assert_memory_equal(hosts, layer->groups.members + start, n * sizeof(*hosts));
        fprintf(f, "%s%u:", g > 0 ? ";" : "", g);
        for (uint32_t m = 0; m < n; m++)
            fprintf(f, "%s%s", m > 0 ? "," : "", layer->plane->hosts[hosts[m]].name);
    }
    fclose(f);
    assert_int_equal(pmixfab_groups_string(fab, &text), 0);
    assert_string_equal(text, expected);
    free(text);
    free(expected);
}

static void compare_costs(const struct pmixfab *fab, const struct layer *layer)
{
    uint32_t n = layer->plane->n_devices;
    size_t cells = (size_t)n * n;
    uint16_t *matrix = calloc(cells + 1, sizeof(*matrix)), *row = calloc(n + 1, sizeof(*row)), *own = NULL;

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
    free(matrix);
    free(row);
}

static void compare_all(const struct layer *layer)
{
    struct pmixfab *fab = open_layer(layer);
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
    pmixfab_close(fab);
}

static void test_generated_fabrics(void **state)
{
    (void)state;
    for (size_t f = 0; f < N_FABRICS; f++) {
        struct world world;
        world_open(&world, fabrics[f]);
        for (uint32_t p = 0; p < world.planes.n; p++)
            compare_all(&world.layers[p]);
        world_close(&world);
    }
}

static void test_odd_names_and_ends(void **state)
{
    (void)state;
    struct world world;
    unsigned others = 0;
    world_odd(&world);
    assert_int_equal(world.planes.n, 1);
    compare_all(&world.layers[0]);
    struct pmixfab *fab = open_layer(&world.layers[0]);
    for (uint32_t i = 0; i < world.layers[0].plane->n_cables; i++) {
        struct pmixfab_link cable;
        assert_int_equal(pmixfab_link(fab, i, &cable), 0);
        others += cable.a.index == UINT32_MAX || cable.b.index == UINT32_MAX;
    }
    assert_int_equal(others, 2); /* the router's and the aggregation node's */
    pmixfab_close(fab);
    world_close(&world);
}

static void test_port_states(void **state)
{
    (void)state;
    static const enum pmixfab_state served[] = {
        [FAB_PORT_UNKNOWN] = PMIXFAB_STATE_UNKNOWN, [FAB_PORT_DOWN] = PMIXFAB_STATE_DOWN,
        [FAB_PORT_INIT] = PMIXFAB_STATE_DOWN,       [FAB_PORT_ARMED] = PMIXFAB_STATE_DOWN,
        [FAB_PORT_ACTIVE] = PMIXFAB_STATE_UP,
    };
    struct world world = {.layers = NULL};
    assert_int_equal(fabric_parse("fattree2:1,1,5", &world.inv), 0);
    uint32_t next = 0;
    for (uint32_t p = 0; p < world.inv.n_ports; p++)
        if (world.inv.nodes[world.inv.ports[p].node].kind == FAB_HCA)
            world.inv.ports[p].state = (uint8_t)next++;
    assert_int_equal(next, 5);
    world_compute(&world);
    struct pmixfab *fab = open_layer(&world.layers[0]);
    for (uint32_t i = 0; i < next; i++) {
        struct pmixfab_device device;
        assert_int_equal(pmixfab_device(fab, i, &device), 0);
        assert_int_equal(device.state, served[i]);
    }
    pmixfab_close(fab);
    world_close(&world);
}

static void test_empty_plane(void **state)
{
    (void)state;
    struct world world;
    world_empty(&world);
    struct pmixfab *fab = open_layer(&world.layers[0]);
    struct pmixfab_plane plane;
    uint16_t cell = 9, *cells = &cell;
    uint32_t index = 77;
    char *text = NULL, shape[32];

    walk_everything(fab);
    assert_int_equal(pmixfab_plane(fab, &plane), 0);
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
    pmixfab_close(fab);
    world_close(&world);
}

/* ---- finding ---- */

/* The first device that a plain search over all of them says has this host, name and port (0: any). */
static uint32_t plain_find(const struct pmixfab *fab, uint32_t n, const char *host, const char *name,
                           uint32_t port)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pmixfab_device device;
        assert_int_equal(pmixfab_device(fab, i, &device), 0);
        if (strcmp(device.host, host) == 0 && (name == NULL || strcmp(device.name, name) == 0) &&
            (port == 0 || device.port == port))
            return i;
    }
    return FAB_NONE;
}

static void must_find(const struct pmixfab *fab, const char *what, uint32_t expected)
{
    uint32_t index = FAB_NONE;
    int rc = pmixfab_find(fab, what, &index);
    if (rc != 0 || index != expected)
        fail_msg("%s: %d, %u instead of %u", what, rc, index, expected);
}

static void must_not_find(const struct pmixfab *fab, const char *what)
{
    uint32_t index = 77;
    assert_int_equal(pmixfab_find(fab, what, &index), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(index, 77);
}

/* A colon in a device's name makes "host:a:b:2" mean device "a:b:2" where there is one: the plain search
 * knows. */
static void find_all(const struct layer *layer)
{
    struct pmixfab *fab = open_layer(layer);
    uint32_t n = layer->plane->n_devices;

    for (uint32_t i = 0; i < n; i++) {
        struct pmixfab_device device, other;
        char what[256];
        assert_int_equal(pmixfab_device(fab, i, &device), 0);
        uint32_t same_id = i;
        for (uint32_t k = 0; k < i && same_id == i; k++) {
            assert_int_equal(pmixfab_device(fab, k, &other), 0);
            if (other.node_guid == device.node_guid)
                same_id = k;
        }
        must_find(fab, device.id, same_id);
        for (char *c = strchr(device.id, '/'); *c != '\0'; c++)
            if (*c >= 'a' && *c <= 'f')
                *c = (char)(*c - 'a' + 'A');
        must_find(fab, device.id, same_id);
        must_find(fab, device.host, plain_find(fab, n, device.host, NULL, 0));
        snprintf(what, sizeof(what), "%s:%s", device.host, device.name);
        must_find(fab, what, plain_find(fab, n, device.host, device.name, 0));
        snprintf(what, sizeof(what), "%s:%s:%u", device.host, device.name, device.port);
        uint32_t full = plain_find(fab, n, device.host, what + strlen(device.host) + 1, 0);
        must_find(fab, what, full != FAB_NONE ? full : i);
        snprintf(what, sizeof(what), "0x%016llx", (unsigned long long)device.port_guid);
        must_find(fab, what, i);
    }
    pmixfab_close(fab);
}

static void test_find_every_device(void **state)
{
    (void)state;
    struct world world;
    for (size_t f = 0; f < N_FABRICS; f++) {
        world_open(&world, fabrics[f]);
        for (uint32_t p = 0; p < world.planes.n; p++)
            find_all(&world.layers[p]);
        world_close(&world);
    }
    world_odd(&world);
    find_all(&world.layers[0]);
    world_close(&world);
}

static void test_find_refuses(void **state)
{
    (void)state;
    struct world world;
    world_odd(&world);
    struct pmixfab *fab = open_layer(&world.layers[0]);
    static const char *const nothing[] = {
        "",
        ":",
        "::",
        "n",
        "n1",
        "n02",
        "N2",
        "n2 ",
        "n2:",
        "n2:mlx5_1",
        "n2:mlx5",
        "n2:mlx5_0:",
        "n2:mlx5_0:2",
        "n2:mlx5_0:01",
        "n2:mlx5_0:0",
        "n2:mlx5_0:-1",
        "n2:mlx5_0:+1",
        "n2:mlx5_0:1x",
        "n2:mlx5_0:1:1",
        "n2:mlx5_0:4294967297",
        "n2:mlx5_0:257",
        "n10:a:b:3",
        "n10:a",
        "router",
        "0x",
        "0x1",
        "0x0000000000000001",
        "0x00000000000010510",
        "0x9999",
        "0x0000000000009999",
        "fab://",
        "fab://0000:0000:0000:0050",
        "fab://0000:0000:0000:0050::0000:0000:0000:0050",
        "fab://0000:0000:0000:0050:0000:0000:0000:0053",
        "fab://0000:0000:0000:0050::0000:0000:0000:00531",
        "fab://0000:0000:0000:005::0000:0000:0000:0053",
        "fab://0000-0000-0000-0050::0000:0000:0000:0053",
        "FAB://0000:0000:0000:0050::0000:0000:0000:0053",
        "fab://000000000000000050::0000000000000053",
        "fab://zzzz:0000:0000:0050::0000:0000:0000:0053",
    };
    must_find(fab, "fab://0000:0000:0000:0050::0000:0000:0000:0053", 2);
    must_find(fab, "n2:mlx5_0:1", 2);
    must_find(fab, "0x0000000000000050", 2); /* node GUID */
    must_find(fab, "0x0000000000001042", 4); /* port GUID of n10 a:b, second port */
    must_find(fab, "n10:a:b:2", 5);          /* the device of that name, not port 2 of a:b */
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
        must_not_find(fab, nothing[i]);
    char *huge = malloc(1 << 20);
    assert_non_null(huge);
    memset(huge, 'n', 1 << 20);
    huge[(1 << 20) - 1] = '\0';
    must_not_find(fab, huge);
    huge[1 << 19] = ':';
    must_not_find(fab, huge);
    free(huge);
    pmixfab_close(fab);
    world_close(&world);
}

/* ---- nulls and impossible numbers ---- */

static void test_null_and_out_of_range(void **state)
{
    (void)state;
    struct world world;
    world_open(&world, "fattree2:2,2,2");
    struct pmixfab *fab = open_layer(&world.layers[0]);
    struct pmixfab *out = fab;
    struct pmixfab_plane plane;
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    struct pmixfab_link cable;
    const char *name;
    char *text, **names, buf[32];
    const uint32_t *coords;
    const void *bytes;
    uint16_t cells[16], *own;
    uint32_t a, b;
    size_t n;

    assert_int_equal(pmixfab_plane(fab, &plane), 0);
#define REFUSED(call) assert_int_equal(call, PMIXFAB_ERR_INVAL)
    REFUSED(pmixfab_open_rundir("x", "ib0", NULL));
    REFUSED(pmixfab_open_rundir("", "ib0", &out));
    assert_null(out);
    REFUSED(pmixfab_open_file("x", NULL));
    REFUSED(pmixfab_open_file(NULL, &out));
    REFUSED(pmixfab_open_file("", &out));
    REFUSED(pmixfab_open_memory("x", 1, NULL));
    REFUSED(pmixfab_open_memory(NULL, 0, &out));
    REFUSED(pmixfab_open_memory(NULL, 99, &out));
    assert_int_equal(pmixfab_open_memory("x", 0, &out), PMIXFAB_ERR_TRUNCATED);
    REFUSED(fab_snapshot_borrow(NULL, 0, &out, NULL));
    REFUSED(fab_snapshot_borrow(world.layers[0].bytes, world.layers[0].size, NULL, NULL));
    REFUSED(pmixfab_list_rundir("x", NULL, &n));
    REFUSED(pmixfab_list_rundir("x", &names, NULL));
    REFUSED(pmixfab_list_rundir("", &names, &n));
    pmixfab_list_free(NULL, 7);
    pmixfab_close(NULL);
    REFUSED(pmixfab_plane(NULL, &plane));
    REFUSED(pmixfab_plane(fab, NULL));
    REFUSED(pmixfab_cost(NULL, 0, 0, cells));
    REFUSED(pmixfab_cost(fab, 0, 0, NULL));
    REFUSED(pmixfab_cost(fab, 4, 0, cells));
    REFUSED(pmixfab_cost(fab, 0, UINT32_MAX, cells));
    REFUSED(pmixfab_row(NULL, 0, cells, 4));
    REFUSED(pmixfab_row(fab, 0, NULL, 4));
    REFUSED(pmixfab_row(fab, 4, cells, 4));
    REFUSED(pmixfab_row(fab, 0, cells, 3));
    REFUSED(pmixfab_row(fab, 0, cells, 5));
    REFUSED(pmixfab_matrix(NULL, cells, 16, 1));
    REFUSED(pmixfab_matrix(fab, NULL, 16, 1));
    REFUSED(pmixfab_matrix(fab, cells, 15, 1));
    REFUSED(pmixfab_matrix(fab, cells, 0, 1));
    REFUSED(pmixfab_matrix_alloc(NULL, 1, &own));
    REFUSED(pmixfab_matrix_alloc(fab, 1, NULL));
    assert_int_equal(pmixfab_matrix(fab, cells, 16, UINT32_MAX), 0); /* more threads than there can be */
    pmixfab_matrix_free(NULL, 4);
    pmixfab_matrix_free(NULL, UINT32_MAX);
    REFUSED(pmixfab_device(NULL, 0, &device));
    REFUSED(pmixfab_device(fab, 0, NULL));
    REFUSED(pmixfab_device(fab, 4, &device));
    REFUSED(pmixfab_device(fab, UINT32_MAX, &device));
    REFUSED(pmixfab_find(NULL, "x", &a));
    REFUSED(pmixfab_find(fab, NULL, &a));
    REFUSED(pmixfab_find(fab, "node0001", NULL));
    REFUSED(pmixfab_host(NULL, 0, &name, &a, &b));
    REFUSED(pmixfab_host(fab, 0, NULL, &a, &b));
    REFUSED(pmixfab_host(fab, 0, &name, NULL, &b));
    REFUSED(pmixfab_host(fab, 0, &name, &a, NULL));
    REFUSED(pmixfab_host(fab, 4, &name, &a, &b));
    REFUSED(pmixfab_coords(NULL, 0, PMIXFAB_LOGICAL, &coords, &a));
    REFUSED(pmixfab_coords(fab, 0, PMIXFAB_LOGICAL, NULL, &a));
    REFUSED(pmixfab_coords(fab, 0, PMIXFAB_LOGICAL, &coords, NULL));
    REFUSED(pmixfab_coords(fab, 4, PMIXFAB_LOGICAL, &coords, &a));
    REFUSED(pmixfab_coords(fab, 0, (enum pmixfab_view)0, &coords, &a));
    REFUSED(pmixfab_coords(fab, 0, (enum pmixfab_view)3, &coords, &a));
    REFUSED(pmixfab_switch(NULL, 0, &sw));
    REFUSED(pmixfab_switch(fab, 0, NULL));
    REFUSED(pmixfab_switch(fab, plane.n_switches, &sw));
    REFUSED(pmixfab_link(NULL, 0, &cable));
    REFUSED(pmixfab_link(fab, 0, NULL));
    REFUSED(pmixfab_link(fab, plane.n_links, &cable));
    REFUSED(pmixfab_group(NULL, 0, &coords, &a));
    REFUSED(pmixfab_group(fab, 0, NULL, &a));
    REFUSED(pmixfab_group(fab, 0, &coords, NULL));
    REFUSED(pmixfab_group(fab, plane.n_groups, &coords, &a));
    REFUSED(pmixfab_groups_string(NULL, &text));
    REFUSED(pmixfab_groups_string(fab, NULL));
    REFUSED(pmixfab_shape_string(NULL, PMIXFAB_LOGICAL, buf, sizeof(buf)));
    REFUSED(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, NULL, sizeof(buf)));
    REFUSED(pmixfab_shape_string(fab, (enum pmixfab_view)9, buf, sizeof(buf)));
    REFUSED(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, 0));
    REFUSED(pmixfab_bytes(NULL, &bytes, &n));
    REFUSED(pmixfab_bytes(fab, NULL, &n));
    REFUSED(pmixfab_bytes(fab, &bytes, NULL));
    pmixfab_close(fab);
    world_close(&world);
}

static void test_shape_string(void **state)
{
    (void)state;
    struct world world;
    char buf[32];
    world_open(&world, "torus:3,4,5:1");
    struct pmixfab *fab = open_layer(&world.layers[0]);
    assert_int_equal(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, sizeof(buf)), 0);
    assert_string_equal(buf, "5x4x3");
    assert_int_equal(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, 6), 0);
    strcpy(buf, "kept");
    assert_int_equal(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, 5), PMIXFAB_ERR_RANGE);
    assert_string_equal(buf, "kept");
    pmixfab_close(fab);
    world_close(&world);
}

static void test_large_matrix_memory(void **state)
{
    (void)state;
    struct world world;
    uint16_t *cells[3];
    world_open(&world, "fattree2:32,4,40"); /* 1280 devices: 3.1 MiB, so on huge pages where they exist */
    struct pmixfab *fab = open_layer(&world.layers[0]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pmixfab_matrix_alloc(fab, (unsigned)i, &cells[i]), 0);
        assert_int_equal((uintptr_t)cells[i] % 64, 0);
    }
    pmixfab_close(fab);
    assert_memory_equal(cells[0], cells[1], 1280 * 1280 * sizeof(uint16_t));
    assert_memory_equal(cells[0], cells[2], 1280 * 1280 * sizeof(uint16_t));
    for (int i = 0; i < 3; i++)
        pmixfab_matrix_free(cells[i], 1280);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generated_fabrics),     cmocka_unit_test(test_odd_names_and_ends),
        cmocka_unit_test(test_port_states),           cmocka_unit_test(test_empty_plane),
        cmocka_unit_test(test_find_every_device),     cmocka_unit_test(test_find_refuses),
        cmocka_unit_test(test_null_and_out_of_range), cmocka_unit_test(test_shape_string),
        cmocka_unit_test(test_large_matrix_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
