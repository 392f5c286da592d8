/* The costs, held against a plain shortest-path search that is written here from the inventory alone: over
 * all devices and switches, one source after the other, in 64 bits. */

#include "test/fabrics/build.h"
#include "test/unit/generated.h"
#include "topo/plane/cost.h"
#include "topo/snapshot/cost_matrix.h"

#define FAR  UINT64_MAX
#define HOPS UINT64_MAX /* as `fastest`: each link costs 1 */

/* ---- the plain search ---- */

/* Each switch is a vertex, and each port of anything else. */
static uint32_t vertex(const struct fab_inventory *inv, uint32_t port)
{
    uint32_t node = inv->ports[port].node;
    return inv->nodes[node].kind == FAB_SWITCH ? node : inv->n_nodes + port;
}

static uint64_t rate(const struct fab_inventory *inv, uint32_t port)
{
    static const uint64_t lane[] = {0, 2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000};
    return inv->ports[port].width * lane[inv->ports[port].speed];
}

/* Distances from a port's vertex, with link costs relative to `fastest`; all 1 where that is HOPS, or 0: then
 * also through switches that are missing. */
static void plain_search(const struct fab_inventory *inv, uint32_t from, uint64_t fastest, uint64_t *dist)
{
    uint32_t n = inv->n_nodes + inv->n_ports, source = vertex(inv, from);
    uint32_t own = inv->ports[from].peer == FAB_NONE ? FAB_NONE : vertex(inv, inv->ports[from].peer);
    OWNED(free) uint8_t *done = must_have(n);
    for (uint32_t v = 0; v < n; v++)
        dist[v] = FAR;
    dist[source] = 0;
    for (;;) {
        uint32_t best = UINT32_MAX;
        for (uint32_t v = 0; v < n; v++)
            if (!done[v] && dist[v] != FAR && (best == UINT32_MAX || dist[v] < dist[best]))
                best = v;
        if (best == UINT32_MAX)
            break;
        done[best] = 1;
        if (best >= inv->n_nodes && best != source)
            continue; /* a device passes nothing on */
        bool is_switch = best < inv->n_nodes;
        uint32_t first = is_switch ? inv->nodes[best].first_port : best - inv->n_nodes;
        uint32_t count = is_switch ? inv->nodes[best].n_ports : 1;
        bool ends = fastest != 0 && is_switch && inv->nodes[best].missing && best != own;
        for (uint32_t p = first; p < first + count; p++) {
            uint32_t peer = inv->ports[p].peer;
            if (peer == FAB_NONE || (ends && vertex(inv, peer) < inv->n_nodes))
                continue;
            uint64_t cost = 1, mbps = rate(inv, p);
            if (fastest != 0 && fastest != HOPS)
                cost = mbps == 0 ? 10 : (10 * fastest + mbps - 1) / mbps;
            uint32_t to = vertex(inv, peer);
            if (dist[best] + cost < dist[to])
                dist[to] = dist[best] + cost;
        }
    }
}

/* The fastest rate among the cables that the search reached. 1 where none is known: costs are 10 then. */
static uint64_t fastest_of(const struct fab_inventory *inv, const uint64_t *dist)
{
    uint64_t fastest = 1;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (inv->ports[p].peer != FAB_NONE && dist[vertex(inv, p)] != FAR && rate(inv, p) > fastest)
            fastest = rate(inv, p);
    return fastest;
}

static uint16_t plain_cost(const struct fab_plane *plane, uint32_t i, uint32_t j, const uint64_t *dist)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t a = plane->devices[i].port, b = plane->devices[j].port;
    if (i == j)
        return 0;
    if (strcmp(fab_str(inv, inv->nodes[inv->ports[a].node].host),
               fab_str(inv, inv->nodes[inv->ports[b].node].host)) == 0)
        return 5;
    uint64_t d = dist[vertex(inv, b)];
    return d == FAR ? 65535 : d > 65534 ? 65534 : (uint16_t)d;
}

/* ---- comparing ---- */

static void compare_cells(const char *what, const struct fab_plane *plane, const uint16_t *got,
                          const uint16_t *want)
{
    uint32_t n = plane->n_devices;
    for (size_t i = 0; i < (size_t)n * n; i++)
        if (got[i] != want[i])
            fail_msg("%s: cell %zu,%zu of %u is %u, should be %u", what, i / n, i % n, n, got[i], want[i]);
}

/* Every way to the costs of one plane, for each number of threads. */
static void check_views(const char *what, const struct fab_plane *plane, const uint16_t *want)
{
    size_t n = plane->n_devices;
    OWNED(free) uint16_t *got = must_have((n * n + 1) * sizeof(*got));
    for (unsigned threads = 0; threads <= 3; threads++) {
        SCOPED(fab_costs) costs = costs_of(plane, threads);
        const struct fab_cost_view *v = &costs.view;
        assert_int_equal(v->n_devices, n);
        for (uint32_t e = 0; e < v->n_edges; e++)
            for (uint32_t f = 0; f <= e; f++)
                assert_int_equal(v->dist[(size_t)e * v->n_edges + f], v->dist[(size_t)f * v->n_edges + e]);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                got[i * n + j] = fab_cost_of(v, i, j);
        compare_cells(what, plane, got, want);
        memset(got, 0xa5, n * n * sizeof(*got));
        for (uint32_t i = 0; i < n; i++)
            fab_cost_row(v, i, got + i * n);
        compare_cells(what, plane, got, want);
        memset(got, 0xa5, n * n * sizeof(*got));
        got[n * n] = 0x1234;
        assert_int_equal(fab_cost_matrix(v, got, threads), PMIXFAB_OK);
        compare_cells(what, plane, got, want);
        assert_int_equal(got[n * n], 0x1234);
    }
}

static void check_plane(const char *what, const struct fab_plane *plane)
{
    const struct fab_inventory *inv = plane->inv;
    size_t n = plane->n_devices;
    OWNED(free) uint16_t *want = must_have((n * n + 1) * sizeof(*want));
    uint64_t *dist = must_have(((size_t)inv->n_nodes + inv->n_ports + 1) * sizeof(*dist)), fastest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t port = plane->devices[i].port;
        if (i == 0) {
            plain_search(inv, port, 0, dist);
            fastest = plane->model == FAB_COST_HOPS ? HOPS : fastest_of(inv, dist);
        }
        plain_search(inv, port, fastest, dist);
        for (uint32_t j = 0; j < n; j++)
            want[i * n + j] = plain_cost(plane, i, j, dist);
    }
    check_views(what, plane, want);
    free(dist);
}

static void check_model(const char *what, const struct fab_inventory *inv, enum fab_cost_model model)
{
    SCOPED(fab_planes) planes;
    assert_int_equal(fab_planes_build(inv, model, &planes, NULL), PMIXFAB_OK);
    for (uint32_t i = 0; i < planes.n; i++)
        check_plane(what, &planes.planes[i]);
}

/* Both models, and every body of the kernels that this processor can run. */
static void check_all(const char *what, const struct fab_inventory *inv)
{
    static const enum fab_isa isas[] = {FAB_ISA_ANY, FAB_ISA_AVX2, FAB_ISA_AVX512};
    for (int i = 0; i < 3; i++) {
        fab_cost_limit_isa(isas[i]);
        check_model(what, inv, FAB_COST_RATE);
    }
    check_model(what, inv, FAB_COST_HOPS);
}

/* ---- inventories ---- */

/* Give the HCAs' hosts to one another, so that neighbours in the order are strangers on the switches. */
static void shuffle_hosts(struct fab_inventory *inv, uint64_t *state)
{
    for (uint32_t i = 1; i < inv->n_nodes; i++) {
        uint32_t j = (uint32_t)(fabric_random_next(state) % (i + 1));
        if (inv->nodes[i].kind != FAB_HCA || inv->nodes[j].kind != FAB_HCA)
            continue;
        uint32_t host = inv->nodes[i].host;
        inv->nodes[i].host = inv->nodes[j].host;
        inv->nodes[j].host = host;
    }
}

/* Any width and speed, unknown ones among them. */
static void shuffle_rates(struct fab_inventory *inv, uint64_t *state)
{
    static const uint8_t widths[] = {1, 2, 4, 8, 12};
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t peer = inv->ports[p].peer;
        if (peer == FAB_NONE || peer < p)
            continue;
        inv->ports[p].width = inv->ports[peer].width = widths[fabric_random_next(state) % 5];
        inv->ports[p].speed = inv->ports[peer].speed = (uint8_t)(fabric_random_next(state) % 10);
    }
}

/* Pull up to n cables, anywhere. */
static void pull_cables(struct fab_inventory *inv, unsigned n, uint64_t *state)
{
    for (; n > 0; n--) {
        uint32_t p = (uint32_t)(fabric_random_next(state) % (inv->n_ports + 1));
        if (p == inv->n_ports || inv->ports[p].peer == FAB_NONE)
            continue;
        const char *name = node_name(inv, inv->ports[p].node);
        assert_int_equal(fabric_unlink(inv, name, inv->ports[p].num), PMIXFAB_OK);
    }
}

/* Up to n switches are missing. */
static void lose_switches(struct fab_inventory *inv, unsigned n, uint64_t *state)
{
    for (; n > 0; n--) {
        uint32_t i = (uint32_t)(fabric_random_next(state) % (inv->n_nodes + 1));
        if (i < inv->n_nodes && inv->nodes[i].kind == FAB_SWITCH)
            inv->nodes[i].missing = 1;
    }
}

/* ---- tests ---- */

TEST(test_every_kind)
{
    static const char *const kinds[] = {"fattree2:5,3,4",  "fattree2:4,2,3,2", "fattree3:4",
                                        "dragonfly:2,4,2", "dragonfly:1,1,1",  "torus:3,4,2:1",
                                        "torus:5,5:2",     "mesh:4,3:1",       "mesh:2,3,3:2",
                                        "mesh:1,70:1",     "torus:9,9:1",      "random:12,40,10:3"};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        SCOPED(fab_inventory) inv = generated(kinds[k]);
        check_all(kinds[k], &inv);
        uint64_t seed = k;
        shuffle_hosts(&inv, &seed);
        check_all(kinds[k], &inv);
        shuffle_rates(&inv, &seed);
        check_all(kinds[k], &inv);
        fab_inventory_destroy(&inv);
        inv = generated(kinds[k]);
        lose_switches(&inv, 30, &seed);
        check_all(kinds[k], &inv);
        shuffle_rates(&inv, &seed);
        check_all(kinds[k], &inv);
    }
}

TEST(test_random)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        SCOPED(fab_inventory) inv;
        uint64_t dice = seed;
        unsigned switches = 1 + (unsigned)(fabric_random_next(&dice) % 20);
        unsigned hosts = (unsigned)(fabric_random_next(&dice) % 30);
        unsigned extra = (unsigned)(fabric_random_next(&dice) % 20);
        const char *what = printed("random:%u,%u,%u:%u", switches, hosts, extra, (unsigned)seed);
        assert_int_equal(fabric_random(&inv, switches, hosts, extra, seed % 3 != 0, seed), PMIXFAB_OK);
        if (seed % 4 >= 2)
            pull_cables(&inv, 12, &dice);
        if (seed % 2 == 0)
            shuffle_hosts(&inv, &dice);
        if (seed % 5 == 0)
            shuffle_rates(&inv, &dice);
        if (seed % 7 >= 4)
            lose_switches(&inv, 9, &dice);
        fab_cost_limit_isa(seed % 3 == 0 ? FAB_ISA_ANY : seed % 3 == 1 ? FAB_ISA_AVX2 : FAB_ISA_AVX512);
        check_model(what, &inv, FAB_COST_RATE);
        check_model(what, &inv, FAB_COST_HOPS);
    }
    fab_cost_limit_isa(FAB_ISA_AVX512);
}

/* More edge switches than fit two blocks of sources, a number that ends inside a vector. */
TEST(test_many_switches)
{
    static const char *const kinds[] = {"torus:29,37:1", "random:577,620,900:5"};
    for (size_t k = 0; k < 2; k++) {
        SCOPED(fab_inventory) inv = generated(kinds[k]);
        SCOPED(fab_planes) planes = planes_of(&inv);
        struct fab_plane *plane = &planes.planes[0];
        size_t n = plane->n_devices;
        OWNED(free) uint64_t *dist = must_have(((size_t)inv.n_nodes + inv.n_ports) * sizeof(*dist));
        OWNED(free) uint16_t *cells = must_have(n * n * sizeof(*cells));
        for (unsigned threads = 1; threads <= 3; threads++) {
            SCOPED(fab_costs) costs = costs_of(plane, threads);
            assert_int_equal(fab_cost_matrix(&costs.view, cells, threads), PMIXFAB_OK);
            for (uint32_t i = threads; i < n; i += 499) {
                plain_search(&inv, plane->devices[i].port, plane->fastest_mbps, dist);
                for (uint32_t j = 0; j < n; j++) {
                    assert_int_equal(fab_cost_of(&costs.view, i, j), plain_cost(plane, i, j, dist));
                    assert_int_equal(cells[i * n + j], plain_cost(plane, i, j, dist));
                }
            }
        }
    }
}

/* Matrices so large that they are streamed past the caches, at every alignment of the first cell. */
TEST(test_large_matrix)
{
    static const char *const kinds[] = {"fattree2:8,2,190", "random:60,1501,100:9"};
    for (size_t k = 0; k < 4; k++) {
        uint64_t seed = k;
        SCOPED(fab_inventory) inv = generated(kinds[k % 2]);
        if (k >= 2)
            shuffle_hosts(&inv, &seed);
        SCOPED(fab_planes) planes = planes_of(&inv);
        SCOPED(fab_costs) costs = costs_of(&planes.planes[0], 2);
        size_t n = costs.view.n_devices;
        assert_true(n * n * 2 > 4 << 20);
        OWNED(free) uint16_t *memory = must_have((n * n + 40) * sizeof(*memory));
        for (unsigned shift = 1; shift < 36; shift += 7) {
            uint16_t *cells = memory + shift;
            memset(memory, 0x5a, (n * n + 40) * sizeof(*memory));
            assert_int_equal(fab_cost_matrix(&costs.view, cells, 1 + shift % 3), PMIXFAB_OK);
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = 0; j < n; j++)
                    if (cells[i * n + j] != fab_cost_of(&costs.view, i, j))
                        fail_msg("%s: cell %u,%u", kinds[k % 2], i, j);
            assert_int_equal(cells[-1], 0x5a5a);
            assert_int_equal(cells[n * n], 0x5a5a);
        }
    }
}

/* A chain of links 960 times slower than the fastest: costs end at 65534, far before the other end. */
TEST(test_saturation)
{
    SCOPED(fab_inventory) inv = generated("mesh:1,40:2");
    for (unsigned i = 0; i < 39; i++) {
        assert_int_equal(fabric_set_rate(&inv, printed("s0-%u", i), 2 + 2 * 1 + 1, 1, FAB_SDR), PMIXFAB_OK);
    }
    check_all("chain of equally slow links", &inv);
    assert_int_equal(fabric_set_rate(&inv, "node0001", 1, 12, FAB_XDR), PMIXFAB_OK);
    check_all("chain of equally slow links, one host fast", &inv);
    for (unsigned i = 0; i < 39; i += 2) {
        assert_int_equal(fabric_set_rate(&inv, printed("s0-%u", i), 2 + 2 * 1 + 1, 1, FAB_DDR), PMIXFAB_OK);
    }
    check_all("chain of unequally slow links", &inv);
    SCOPED(fab_planes) planes = planes_of(&inv);
    SCOPED(fab_costs) costs = costs_of(&planes.planes[0], 1);
    assert_int_equal(fab_cost_of(&costs.view, 0, 79), 65534);
}

/* The smallest fabrics: a lone switch, hosts alone, hosts cabled to each other, to a router, to themselves */
TEST(test_smallest)
{
    SCOPED(fab_inventory) inv = {0};
    struct build b;
    assert_int_equal(fab_inventory_finish(&inv, NULL), PMIXFAB_OK);
    check_all("nothing", &inv);
    fab_inventory_destroy(&inv);

    assert_int_equal(fabric_random(&inv, 1, 0, 0, 0, 1), PMIXFAB_OK);
    check_all("a lone switch", &inv);
    fab_inventory_destroy(&inv);

    build_begin(&b, &inv);
    build_hca(&b, build_host(&b), 1, 1, 1);
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    check_all("a lone host", &inv);
    fab_inventory_destroy(&inv);

    build_begin(&b, &inv);
    for (int i = 0; i < 3; i++) {
        uint32_t one = build_hca(&b, build_host(&b), 1, 1, 1), other = build_hca(&b, build_host(&b), 1, 1, 1);
        build_cable(&b, one, 1, other, 1, 4, i == 1 ? FAB_SPEED_UNKNOWN : FAB_EDR);
    }
    uint32_t host = build_host(&b), first = build_hca(&b, host, 1, 2, 1),
             second = build_hca(&b, host, 2, 2, 1);
    build_cable(&b, first, 1, second, 1, 4, FAB_HDR);
    assert_int_equal(build_end(&b), PMIXFAB_OK);
    check_all("hosts back to back", &inv);
    SCOPED(fab_planes) planes = planes_of(&inv);
    assert_int_equal(planes.n, 4);
    SCOPED(fab_costs) costs = costs_of(&planes.planes[0], 1);
    assert_int_equal(fab_cost_of(&costs.view, 0, 1), 10);
    fab_costs_destroy(&costs);
    costs = costs_of(&planes.planes[3], 1);
    assert_int_equal(fab_cost_of(&costs.view, 0, 1), 5);
}
