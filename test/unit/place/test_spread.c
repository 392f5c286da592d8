/* Orders of hosts, and what jobs would feel, against plain counts; and what bad questions get. */
#include "test/unit/place/place_world.h"

static const char *const spread_fabrics[] = {
    "fattree2:5,2,4",  "fattree3:4",      "dragonfly:2,3,1",   "torus:4,4:2",  "torus:3,3,3:1",
    "rails:4,4,6,2:5", "rails:3,3,4,2:0", "random:12,40,20:7", "uneven:10,30", "uneven:20,16"};

static struct pmixfab_spread spread_at(const struct pmixfab *fab, const uint32_t *hosts, uint32_t n)
{
    struct pmixfab_spread spread;
    assert_int_equal(pmixfab_spread(fab, hosts, n, &spread), 0);
    return spread;
}

static void host_devices(const struct pmixfab *fab, uint32_t host, uint32_t *first, uint32_t *end)
{
    const char *name;
    uint32_t n;
    assert_int_equal(pmixfab_host(fab, host, &name, first, &n), 0);
    *end = *first + n;
}

static bool share_leaf(const struct pmixfab *fab, uint32_t g, uint32_t h)
{
    uint32_t first_g, end_g, first_h, end_h;
    host_devices(fab, g, &first_g, &end_g);
    host_devices(fab, h, &first_h, &end_h);
    for (uint32_t a = first_g; a < end_g; a++)
        for (uint32_t b = first_h; b < end_h; b++)
            if (device_at(fab, a).switch_index == device_at(fab, b).switch_index)
                return true;
    return false;
}

/* By the leaves' units, or by the first number of the coordinates; UINT32_MAX: of none. */
static uint32_t plain_unit(const struct pmixfab *fab, uint32_t host)
{
    const struct pmixfab_plane plane = plane_at(fab);
    uint32_t first, end, dims;
    const uint32_t *coords;
    bool units = false;
    for (uint32_t s = 0; s < plane.n_switches; s++)
        units |= switch_at(fab, s).unit != UINT32_MAX;
    host_devices(fab, host, &first, &end);
    for (uint32_t d = first; d < end && units; d++) {
        const uint32_t sw = device_at(fab, d).switch_index;
        if (sw != UINT32_MAX && switch_at(fab, sw).unit != UINT32_MAX)
            return switch_at(fab, sw).unit;
    }
    if (units || (strcmp(plane.kind, "fat-tree-3") != 0 && strcmp(plane.kind, "dragonfly") != 0))
        return UINT32_MAX;
    assert_int_equal(pmixfab_coords(fab, first, PMIXFAB_LOGICAL, &coords, &dims), 0);
    return coords[0];
}

struct plain_share {
    double messages, leaf, unit;
};

static void plain_message(const struct pmixfab *fab, uint32_t g, uint32_t h, struct plain_share *share)
{
    const uint32_t unit = plain_unit(fab, g);
    share->messages++;
    share->leaf += !share_leaf(fab, g, h);
    share->unit += unit == UINT32_MAX || unit != plain_unit(fab, h);
}

static void check_shares(const struct pmixfab *fab, const uint32_t *hosts, uint32_t n,
                         const struct pmixfab_spread *spread)
{
    struct plain_share plain[PMIXFAB_PATTERNS] = {{0, 0, 0}};
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++)
            if (i != j)
                plain_message(fab, hosts[i], hosts[j], &plain[PMIXFAB_ALL_TO_ALL]);
        if (n > 1)
            plain_message(fab, hosts[i], hosts[(i + 1) % n], &plain[PMIXFAB_RING]);
        for (uint32_t k = 0; k < 31; k++)
            if ((i ^ (1u << k)) < n)
                plain_message(fab, hosts[i], hosts[i ^ (1u << k)], &plain[PMIXFAB_DOUBLING]);
    }
    for (int p = 0; p < PMIXFAB_PATTERNS; p++) {
        const double messages = plain[p].messages > 0 ? plain[p].messages : 1;
        assert_float_equal(spread->past_leaf[p], plain[p].leaf / messages, 1e-12);
        assert_float_equal(spread->past_unit[p], plain[p].unit / messages, 1e-12);
    }
}

TEST(what_a_job_feels_is_what_is_counted)
{
    uint64_t dice = 11;
    for (size_t f = 0; f < sizeof(spread_fabrics) / sizeof(spread_fabrics[0]); f++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(spread_fabrics[f], &dice);
        OWNED(free) uint32_t *hosts = must_have(plane_at(fab).n_hosts * sizeof(*hosts));
        for (int round = 0; round < 5; round++) {
            const uint32_t n = place_free_hosts(fab, 60, 1 + place_roll(&dice, 20), &dice, hosts);
            if (n == 0)
                continue;
            const struct pmixfab_spread spread = spread_at(fab, hosts, n);
            const struct place_values values = place_count(fab, hosts, n);
            uint64_t ring = 0;
            for (uint32_t i = 0; i < n && n > 1; i++)
                ring += place_cost(fab, hosts[i], hosts[(i + 1) % n]);
            assert_int_equal(spread.cost, values.of[PMIXFAB_PLACE_SUM]);
            assert_int_equal(spread.ring_cost, ring);
            assert_int_equal(spread.worst, values.of[PMIXFAB_PLACE_MAX]);
            assert_int_equal(spread.n_switches, values.of[PMIXFAB_PLACE_SWITCHES]);
            if (n > 1)
                assert_int_equal(place_cost(fab, spread.worst_a, spread.worst_b), spread.worst);
            if (n > 1 && strncmp(spread_fabrics[f], "fattree", 7) == 0) /* cables of one rate, 10 each */
                assert_int_equal(spread.worst_switches, spread.worst / 10 - 1);
            check_shares(fab, hosts, n, &spread);
        }
    }
}

TEST(pods_groups_and_units_are_counted)
{
    static const struct {
        const char *fabric;
        uint32_t units;
    } has[] = {{"fattree3:4", 4}, {"dragonfly:2,3,1", 4}, {"rails:4,4,6,2:0", 4}, {"fattree2:4,2,3", 0}};
    uint64_t dice = 1;
    for (size_t i = 0; i < sizeof(has) / sizeof(has[0]); i++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(has[i].fabric, &dice);
        uint32_t hosts[64];
        const uint32_t n = place_free_hosts(fab, 100, 64, &dice, hosts);
        assert_int_equal(spread_at(fab, hosts, n).n_units, has[i].units);
    }
}

/* ---- orders ---- */

static uint64_t path_cost(const struct pmixfab *fab, const uint32_t *hosts, uint32_t n)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        cost += place_cost(fab, hosts[i], hosts[i + 1]);
    return cost;
}

/* No path through all hosts costs less than their spanning tree. */
static uint64_t spanning_cost(const struct pmixfab *fab, const uint32_t *hosts, uint32_t n)
{
    OWNED(free) uint32_t *near = must_have(n * sizeof(*near));
    uint64_t cost = 0;
    for (uint32_t i = 0; i < n; i++)
        near[i] = i == 0 ? 0 : UINT32_MAX - 1;
    for (uint32_t round = 0; round < n; round++) {
        uint32_t next = UINT32_MAX;
        for (uint32_t i = 0; i < n; i++)
            if (near[i] != UINT32_MAX && (next == UINT32_MAX || near[i] < near[next]))
                next = i;
        cost += near[next];
        near[next] = UINT32_MAX;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t between = i == next ? 0 : place_cost(fab, hosts[i], hosts[next]);
            if (near[i] != UINT32_MAX && between < near[i])
                near[i] = between;
        }
    }
    return cost;
}

static int number_cmp(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* *most: what the path may cost in hundredths of the spanning tree. */
static void check_order(const char *text, unsigned percent, unsigned most)
{
    uint64_t dice = 17;
    OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(text, &dice);
    const uint32_t n_hosts = plane_at(fab).n_hosts;
    OWNED(free) uint32_t *hosts = must_have(n_hosts * sizeof(*hosts));
    OWNED(free) uint32_t *ordered = must_have(n_hosts * sizeof(*ordered));
    const uint32_t n = place_free_hosts(fab, percent, n_hosts, &dice, hosts);
    for (uint32_t i = 0; i < n; i++)
        ordered[i] = hosts[n - 1 - i];
    assert_int_equal(pmixfab_order(fab, ordered, n), 0);
    const uint64_t least = spanning_cost(fab, hosts, n), cost = path_cost(fab, ordered, n);
    if (100 * cost > most * least)
        fail_msg("%s: the path costs %llu, the spanning tree %llu", text, (unsigned long long)cost,
                 (unsigned long long)least);
    qsort(ordered, n, sizeof(*ordered), number_cmp);
    assert_memory_equal(ordered, hosts, n * sizeof(*hosts));
}

TEST(neighbours_in_an_order_are_near)
{
    check_order("fattree2:20,4,12", 100, 100);
    check_order("fattree2:20,4,12", 30, 100);
    check_order("fattree3:8", 100, 100);
    check_order("fattree3:8", 40, 100);
    check_order("rails:6,4,8,4:0", 50, 100);
    check_order("torus:4,4,4:1", 100, 100);
    check_order("mesh:5,6:2", 100, 100);
    check_order("dragonfly:2,4,2", 100, 105);
    check_order("torus:6,6:2", 50, 125);
    check_order("dragonfly:2,4,2", 40, 125);
    check_order("uneven:20,60", 100, 125);
}

/* ---- bad questions ---- */

TEST(bad_questions_are_refused)
{
    uint64_t dice = 1;
    OWNED(pmixfab_close) struct pmixfab *fab = place_fabric("fattree2:4,2,3", &dice);
    uint32_t hosts[16], twice[] = {1, 2, 1}, beyond[] = {1, 12};
    struct pmixfab_placement placement;
    struct pmixfab_spread spread;
    assert_int_equal(pmixfab_place(NULL, NULL, 0, 1, PMIXFAB_PLACE_SUM, hosts, &placement),
                     PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place(fab, NULL, 0, 0, PMIXFAB_PLACE_SUM, hosts, &placement), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place(fab, NULL, 3, 1, PMIXFAB_PLACE_SUM, hosts, &placement), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place(fab, NULL, 0, 1, (enum pmixfab_objective)3, hosts, &placement),
                     PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place(fab, NULL, 0, 1, PMIXFAB_PLACE_SUM, NULL, &placement), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place(fab, NULL, 0, 1, PMIXFAB_PLACE_SUM, hosts, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place(fab, beyond, 2, 1, PMIXFAB_PLACE_SUM, hosts, &placement),
                     PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_order(fab, beyond, 2), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_order(fab, twice, 3), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_order(fab, hosts, 0), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_spread(fab, twice, 3, &spread), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_spread(fab, twice, 0, &spread), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_spread(fab, twice, 2, NULL), PMIXFAB_ERR_INVAL);
    /* more than there are; in a list of which one host is there twice, too */
    assert_int_equal(pmixfab_place(fab, NULL, 0, 13, PMIXFAB_PLACE_SUM, hosts, &placement),
                     PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(placement.n_usable, 12);
    assert_int_equal(pmixfab_place(fab, twice, 3, 3, PMIXFAB_PLACE_SUM, hosts, &placement),
                     PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(placement.n_usable, 2);
}

TEST(one_host_is_a_job_and_costs_nothing)
{
    uint64_t dice = 1;
    OWNED(pmixfab_close) struct pmixfab *fab = place_fabric("fattree2:4,2,3", &dice);
    const uint32_t from[] = {0, 1, 2,
                             4, 5, 7}; /* three on the first leaf, two on the next, one on the third */
    struct pmixfab_placement placement;
    uint32_t host;
    for (unsigned o = 0; o < 3; o++) {
        assert_int_equal(pmixfab_place(fab, from, 6, 1, (enum pmixfab_objective)o, &host, &placement), 0);
        assert_int_equal(placement.value, o == PMIXFAB_PLACE_SWITCHES);
        assert_int_equal(placement.bound, placement.value);
        assert_int_equal(host, 7); /* where it leaves the least over */
    }
    const struct pmixfab_spread spread = spread_at(fab, &host, 1);
    assert_int_equal(spread.worst_a, UINT32_MAX);
    assert_int_equal(spread.worst, 0);
}

/* What is down is passed over; where one of two devices is, the other one counts. */
TEST(hosts_that_are_down_are_passed_over)
{
    SCOPED(world) world = {0};
    assert_int_equal(fabric_parse("rails:2,2,3,2:0", &world.inv), 0);
    for (uint32_t p = 0; p < world.inv.n_ports; p++) {
        const struct fab_node *node = &world.inv.nodes[world.inv.ports[p].node];
        const char *host = fab_str(&world.inv, node->host), *name = fab_str(&world.inv, node->name);
        if (strcmp(host, "node0001") == 0 || (strcmp(host, "node0002") == 0 && strcmp(name, "HCA-1") == 0) ||
            (strcmp(host, "node0003") == 0 && strcmp(name, "HCA-2") == 0))
            world.inv.ports[p].state = FAB_PORT_INIT;
    }
    world_compute(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    const uint32_t from[] = {0, 1, 2}, pair[] = {1, 2};
    uint32_t hosts[3];
    struct pmixfab_placement placement;
    assert_int_equal(pmixfab_place(fab, from, 3, 3, PMIXFAB_PLACE_SUM, hosts, &placement),
                     PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(placement.n_usable, 2);
    assert_int_equal(placement.n_down, 1);
    assert_int_equal(pmixfab_place(fab, from, 3, 2, PMIXFAB_PLACE_SUM, hosts, &placement), 0);
    assert_int_equal(placement.value, 40); /* up and down again: what is left of them is on two leaves */
    assert_int_equal(spread_at(fab, pair, 2).cost, 40);
}

/* On a plane without cables nobody reaches anybody. */
TEST(hosts_without_a_path_are_no_job)
{
    SCOPED(world) world = {0};
    uint32_t hosts[2];
    struct pmixfab_placement placement;
    fab_inventory_init(&world.inv);
    for (uint64_t i = 1; i <= 3; i++)
        world_port(&world, world_node(&world, FAB_HCA, i << 8, printed("lone%u", (unsigned)i), "eth0"), 1,
                   FAB_PORT_ACTIVE);
    world.inv.n_subnets = 1;
    world.inv.subnets[0].prefix = FAB_UNATTACHED;
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    world_compute(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    for (unsigned o = 0; o < 3; o++) {
        assert_int_equal(pmixfab_place(fab, NULL, 0, 2, (enum pmixfab_objective)o, hosts, &placement),
                         PMIXFAB_ERR_NOTFOUND);
        assert_int_equal(placement.n_usable, 3);
    }
}
