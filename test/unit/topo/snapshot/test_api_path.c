/* Paths between devices, and costs among some of them and among hosts, against plain searches. */
#include "test/unit/snapshot_world.h"

#define FAR 1000000u

/* Floyd and Warshall over the plane's own graph; way[a * n + b] between switches. */
static uint32_t *plain_ways(const struct fab_plane *plane)
{
    const uint32_t n = plane->n_switches;
    uint32_t *way = must_have((size_t)n * n * sizeof(*way));
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++)
            way[a * n + b] = a == b ? 0 : FAR;
        for (uint32_t e = 0; e < plane->switches[a].n_adj; e++) {
            const struct fab_edge *edge = &plane->adj[plane->switches[a].adj_first + e];
            way[a * n + edge->to] = edge->cost;
        }
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t a = 0; a < n && !plane->switches[k].missing; a++)
            for (uint32_t b = 0; b < n; b++)
                if (way[a * n + k] + way[k * n + b] < way[a * n + b])
                    way[a * n + b] = way[a * n + k] + way[k * n + b];
    return way;
}

static uint32_t cable_between(const struct fab_plane *plane, uint32_t a, uint32_t b)
{
    for (uint32_t e = 0; e < plane->switches[a].n_adj; e++)
        if (plane->adj[plane->switches[a].adj_first + e].to == b)
            return plane->adj[plane->switches[a].adj_first + e].cost;
    return FAR;
}

/* It leads over cables that there are, through no missing switch, and costs as little as can be. */
static void check_path(const struct pmixfab *fab, const struct fab_plane *plane, const uint32_t *way,
                       uint32_t a, uint32_t b)
{
    const struct fab_device *from = &plane->devices[a], *to = &plane->devices[b];
    OWNED(free) uint32_t *path = must_have((plane->n_switches + 1) * sizeof(*path));
    uint32_t n = 77, sum = 0, short_n = 0;
    uint16_t cost;

    assert_int_equal(pmixfab_cost(fab, a, b, &cost), 0);
    const int rc = pmixfab_path(fab, a, b, path, plane->n_switches, &n);
    if (cost == PMIXFAB_NO_PATH) {
        assert_int_equal(rc, PMIXFAB_ERR_NOTFOUND);
        assert_int_equal(n, 77);
        return;
    }
    assert_int_equal(rc, 0);
    if (from->host == to->host || from->sw == FAB_NONE) {
        assert_int_equal(n, 0);
        return;
    }
    assert_true(n > 0 && path[0] == from->sw && path[n - 1] == to->sw);
    for (uint32_t i = 1; i < n; i++) {
        sum += cable_between(plane, path[i - 1], path[i]);
        assert_true(i == n - 1 || !plane->switches[path[i]].missing);
    }
    assert_int_equal(sum, way[from->sw * plane->n_switches + to->sw]);
    assert_int_equal(sum + from->access + to->access, cost);
    assert_int_equal(pmixfab_path(fab, a, b, path, n - 1, &short_n), PMIXFAB_ERR_RANGE);
    assert_int_equal(short_n, n);
}

static void check_layer(const struct layer *layer)
{
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    OWNED(free) uint32_t *way = plain_ways(layer->plane);
    for (uint32_t a = 0; a < layer->plane->n_devices; a++)
        for (uint32_t b = 0; b < layer->plane->n_devices; b++)
            check_path(fab, layer->plane, way, a, b);
}

/* Of every kind; and random ones with missing switches, and cables of another speed here and there. */
TEST(test_paths)
{
    unsigned seen_missing = 0;
    uint64_t dice = 15;
    for (unsigned seed = 1; seed <= 40 + WORLD_FABRICS; seed++) {
        SCOPED(world) world = {0};
        const bool random = seed > WORLD_FABRICS;
        const char *text = random ? printed("random:%u,%u,14:%u", 4 + seed % 13, 6 + seed % 31, seed)
                                  : world_fabrics[seed - 1];
        assert_int_equal(fabric_parse(text, &world.inv), 0);
        for (uint32_t i = 0; i < world.inv.n_nodes && random; i++)
            if (world.inv.nodes[i].kind == FAB_SWITCH)
                world.inv.nodes[i].missing = fabric_random_next(&dice) % 5 == 0;
        for (uint32_t i = 0; i < world.inv.n_ports && random; i++)
            if (world.inv.ports[i].peer < i && fabric_random_next(&dice) % 3 == 0)
                world.inv.ports[i].speed = world.inv.ports[world.inv.ports[i].peer].speed =
                    fabric_random_next(&dice) % 2 ? FAB_EDR : FAB_FDR;
        world_compute(&world);
        for (uint32_t p = 0; p < world.planes.n; p++) {
            seen_missing += world.planes.planes[p].n_missing;
            check_layer(&world.layers[p]);
        }
    }
    assert_true(seen_missing > 12);
}

/* ---- costs among some ------------------------------------------------------------------------------ */

static uint16_t plain_host_cost(const struct pmixfab *fab, const struct fab_plane *plane, uint32_t a,
                                uint32_t b)
{
    uint16_t least = a == b ? 0 : PMIXFAB_NO_PATH, cost;
    for (uint32_t i = 0; i < plane->n_devices; i++)
        for (uint32_t k = 0; k < plane->n_devices; k++)
            if (plane->devices[i].host == a && plane->devices[k].host == b) {
                assert_int_equal(pmixfab_cost(fab, i, k, &cost), 0);
                least = cost < least ? cost : least;
            }
    return least;
}

/* Some of n, in any order, some of them twice. */
static uint32_t *some_of(uint32_t n, uint32_t count, uint64_t *dice)
{
    uint32_t *some = must_have(count * sizeof(*some));
    for (uint32_t i = 0; i < count; i++)
        some[i] = (uint32_t)(fabric_random_next(dice) % n);
    return some;
}

static void check_among(const struct layer *layer, uint64_t *dice)
{
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    const struct fab_plane *plane = layer->plane;
    const uint32_t n = 1 + (uint32_t)(fabric_random_next(dice) % 9);
    if (plane->n_devices == 0)
        return;
    OWNED(free) uint32_t *devices = some_of(plane->n_devices, n, dice);
    OWNED(free) uint32_t *hosts = some_of(plane->n_hosts, n, dice);
    uint16_t cells[9 * 9 + 1], cost;

    cells[n * n] = 0xbeef;
    assert_int_equal(pmixfab_device_costs(fab, devices, n, cells), 0);
    for (uint32_t i = 0; i < n * n; i++) {
        assert_int_equal(pmixfab_cost(fab, devices[i / n], devices[i % n], &cost), 0);
        assert_int_equal(cells[i], cost);
    }
    assert_int_equal(pmixfab_host_costs(fab, hosts, n, cells), 0);
    for (uint32_t i = 0; i < n * n; i++) {
        assert_int_equal(pmixfab_host_cost(fab, hosts[i / n], hosts[i % n], &cost), 0);
        assert_int_equal(cost, plain_host_cost(fab, plane, hosts[i / n], hosts[i % n]));
        assert_int_equal(cells[i], cost);
    }
    assert_int_equal(cells[n * n], 0xbeef);
}

TEST(test_costs_among_some)
{
    uint64_t dice = 3;
    for (size_t f = 0; f < WORLD_FABRICS; f++) {
        WORLD(world, world_fabrics[f]);
        for (uint32_t p = 0; p < 8 * world.planes.n; p++)
            check_among(&world.layers[p / 8], &dice);
    }
    SCOPED(world) odd;
    world_odd(&odd); /* hosts with several devices */
    for (unsigned i = 0; i < 20; i++)
        check_among(&odd.layers[0], &dice);
}

TEST(test_refused)
{
    WORLD(world, "fattree2:2,2,2");
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    uint32_t some[2] = {0, 4}, path[4], n;
    uint16_t cells[4];
#define REFUSED(call) assert_int_equal(call, PMIXFAB_ERR_INVAL)
    REFUSED(pmixfab_path(NULL, 0, 1, path, 4, &n));
    REFUSED(pmixfab_path(fab, 4, 1, path, 4, &n));
    REFUSED(pmixfab_path(fab, 0, 4, path, 4, &n));
    REFUSED(pmixfab_path(fab, 0, 1, NULL, 4, &n));
    REFUSED(pmixfab_path(fab, 0, 1, path, 4, NULL));
    assert_int_equal(pmixfab_path(fab, 0, 3, NULL, 0, &n), PMIXFAB_ERR_RANGE);
    assert_int_equal(n, 3);
    REFUSED(pmixfab_host_cost(NULL, 0, 0, cells));
    REFUSED(pmixfab_host_cost(fab, 4, 0, cells));
    REFUSED(pmixfab_host_cost(fab, 0, 4, cells));
    REFUSED(pmixfab_host_cost(fab, 0, 0, NULL));
    REFUSED(pmixfab_device_costs(NULL, some, 1, cells));
    REFUSED(pmixfab_device_costs(fab, some, 2, cells));
    REFUSED(pmixfab_device_costs(fab, NULL, 1, cells));
    REFUSED(pmixfab_device_costs(fab, some, 1, NULL));
    REFUSED(pmixfab_host_costs(NULL, some, 1, cells));
    REFUSED(pmixfab_host_costs(fab, some, 2, cells));
    assert_int_equal(pmixfab_device_costs(fab, NULL, 0, NULL), 0);
    assert_int_equal(pmixfab_host_costs(fab, NULL, 0, NULL), 0);
}
