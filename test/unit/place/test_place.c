/* Placing jobs: small ones against all possible choices, larger ones against what a scheduler does with a
 * tree of switches. */
#include "test/fabrics/best_fit.h"
#include "test/unit/place/place_world.h"

#define MOST 14

/* Every subset of so many: the least of each objective. */
static struct place_values least_of_all(const struct pmixfab *fab, const uint32_t *from, uint32_t n_from,
                                        uint32_t n)
{
    struct place_values least = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    for (uint32_t set = 0; set < 1u << n_from; set++) {
        uint32_t hosts[MOST], k = 0;
        if ((uint32_t)__builtin_popcount(set) != n)
            continue;
        for (uint32_t i = 0; i < n_from; i++)
            if ((set >> i & 1) != 0)
                hosts[k++] = from[i];
        const struct place_values values = place_count(fab, hosts, n);
        for (int o = 0; o < 3; o++)
            least.of[o] = values.of[o] < least.of[o] ? values.of[o] : least.of[o];
    }
    return least;
}

/* Are they n different ones of `from`? */
static void check_members(const uint32_t *hosts, uint32_t n, const uint32_t *from, uint32_t n_from)
{
    for (uint32_t i = 0; i < n; i++) {
        bool given = false;
        for (uint32_t k = 0; k < n_from; k++)
            given |= from[k] == hosts[i];
        assert_true(given);
        for (uint32_t k = 0; k < i; k++)
            assert_int_not_equal(hosts[i], hosts[k]);
    }
}

static void compare_with_all(const char *text, const struct pmixfab *fab, uint64_t *dice)
{
    uint32_t from[MOST], hosts[MOST];
    const uint32_t n_from = place_free_hosts(fab, 60, MOST - 3, dice, from);
    if (n_from == 0)
        return;
    const uint32_t n = 1 + place_roll(dice, n_from);
    const struct place_values least = least_of_all(fab, from, n_from, n);
    for (unsigned o = 0; o < 3; o++) {
        struct pmixfab_placement placement;
        const int rc = pmixfab_place(fab, from, n_from, n, (enum pmixfab_objective)o, hosts, &placement);
        if (rc != 0)
            fail_msg("%s: %u of %u, objective %u: %d", text, n, n_from, o, rc);
        check_members(hosts, n, from, n_from);
        const uint64_t value = place_count(fab, hosts, n).of[o];
        if (value != least.of[o] || placement.value != value || placement.bound != value)
            fail_msg("%s: %u of %u, objective %u: %llu, said %llu and bound %llu, best %llu", text, n, n_from,
                     o, (unsigned long long)value, (unsigned long long)placement.value,
                     (unsigned long long)placement.bound, (unsigned long long)least.of[o]);
        assert_int_equal(placement.n_usable, n_from);
    }
}

TEST(small_jobs_get_the_best_hosts_there_are)
{
    static const char *const fabrics[] = {
        "fattree2:5,2,4",   "fattree3:4",   "dragonfly:2,3,1", "dragonfly:1,4,2", "torus:4,4:1",
        "torus:3,3,3:1",    "mesh:4,4:2",   "rails:3,3,4,2:0", "rails:4,4,6,2:5", "random:12,40,20:7",
        "random:8,30,4:11", "uneven:10,16", "uneven:20,16",    "uneven:6,24",     "random:1,5,0:3",
    };
    uint64_t dice = 3;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++)
        for (int round = 0; round < 2; round++) {
            OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(fabrics[f], &dice);
            for (int i = 0; i < 5; i++)
                compare_with_all(fabrics[f], fab, &dice);
        }
}

static void compare_with_best_fit(const char *text, const struct pmixfab *fab, uint64_t *dice)
{
    const struct pmixfab_plane plane = plane_at(fab);
    OWNED(free) uint32_t *from = must_have(plane.n_hosts * sizeof(*from));
    OWNED(free) uint32_t *ours = must_have(plane.n_hosts * sizeof(*ours));
    OWNED(free) uint32_t *fitted = must_have(plane.n_hosts * sizeof(*fitted));
    const uint32_t n_from = place_free_hosts(fab, 10 + place_roll(dice, 80), plane.n_hosts, dice, from);
    const uint32_t n = 1 + place_roll(dice, n_from);
    struct pmixfab_placement placement;
    struct pmixfab_spread spread;
    assert_int_equal(fabric_best_fit(fab, from, n_from, n, fitted), 0);
    assert_int_equal(pmixfab_spread(fab, fitted, n, &spread), 0);
    assert_int_equal(pmixfab_place(fab, from, n_from, n, PMIXFAB_PLACE_SUM, ours, &placement), 0);
    check_members(ours, n, from, n_from);
    if (placement.value > spread.cost || placement.bound > placement.value)
        fail_msg("%s: %u of %u: %llu, bound %llu, best fit %llu", text, n, n_from,
                 (unsigned long long)placement.value, (unsigned long long)placement.bound,
                 (unsigned long long)spread.cost);
    assert_int_equal(placement.bound, placement.value); /* in a tree it is known to be the best */
    assert_int_equal(pmixfab_place(fab, from, n_from, n, PMIXFAB_PLACE_SWITCHES, ours, &placement), 0);
    assert_true(placement.value <= spread.n_switches);
    assert_int_equal(placement.bound, placement.value);
}

TEST(in_trees_no_job_is_placed_worse_than_by_a_best_fit)
{
    static const char *const fabrics[] = {"fattree2:20,4,12", "fattree3:10"};
    uint64_t dice = 5;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(fabrics[f], &dice);
        for (int i = 0; i < 40; i++)
            compare_with_best_fit(fabrics[f], fab, &dice);
    }
}

/* Leaves that the hosts of a plane are attached to, as sets. */
struct plain_leaves {
    uint32_t n, at[8];
};

static struct plain_leaves plain_leaves(const struct pmixfab *fab, uint32_t host)
{
    struct plain_leaves leaves = {0, {0}};
    uint32_t first, devices;
    const char *name;
    assert_int_equal(pmixfab_host(fab, host, &name, &first, &devices), 0);
    for (uint32_t d = first; d < first + devices; d++)
        leaves.at[leaves.n++] = device_at(fab, d).switch_index;
    return leaves;
}

static uint32_t plain_new(const struct plain_leaves *leaves, const bool *used)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < leaves->n; i++)
        n += !used[leaves->at[i]];
    return n;
}

/* Always the host next that brings most free hosts for each leaf more. */
static uint32_t plain_cover(const struct pmixfab *fab, const uint32_t *from, uint32_t n_from, uint32_t n)
{
    OWNED(free) struct plain_leaves *leaves = must_have(n_from * sizeof(*leaves));
    OWNED(free) bool *used = must_have(plane_at(fab).n_switches), *with = must_have(plane_at(fab).n_switches);
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < n_from; i++)
        leaves[i] = plain_leaves(fab, from[i]);
    for (uint32_t covered = 0; covered < n;) {
        double most = -1;
        uint32_t best = 0;
        for (uint32_t i = 0; i < n_from; i++) {
            const uint32_t more = plain_new(&leaves[i], used);
            uint32_t gain = 0;
            memcpy(with, used, plane_at(fab).n_switches);
            for (uint32_t k = 0; k < leaves[i].n; k++)
                with[leaves[i].at[k]] = true;
            for (uint32_t h = 0; h < n_from; h++)
                gain += plain_new(&leaves[h], with) == 0;
            gain = gain < n ? gain - covered : n - covered;
            if (more > 0 && (double)gain / more > most) {
                most = (double)gain / more;
                best = i;
            }
        }
        n_used += plain_new(&leaves[best], used);
        for (uint32_t k = 0; k < leaves[best].n; k++)
            used[leaves[best].at[k]] = true;
        covered = 0;
        for (uint32_t h = 0; h < n_from; h++)
            covered += plain_new(&leaves[h], used) == 0;
    }
    return n_used;
}

TEST(hosts_on_several_leaves_are_on_no_more_of_them_than_a_greedy_cover)
{
    static const char *const fabrics[] = {"rails:10,4,16,4:5", "rails:20,8,32,8:4"};
    uint64_t dice = 13;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(fabrics[f], &dice);
        const uint32_t n_hosts = plane_at(fab).n_hosts;
        OWNED(free) uint32_t *from = must_have(n_hosts * sizeof(*from));
        OWNED(free) uint32_t *hosts = must_have(n_hosts * sizeof(*hosts));
        for (int i = 0; i < 3; i++) {
            struct pmixfab_placement placement;
            const uint32_t n_from = place_free_hosts(fab, 30 + 10 * i, n_hosts, &dice, from);
            const uint32_t n = n_from / (2 + place_roll(&dice, 8)), cover = plain_cover(fab, from, n_from, n);
            assert_int_equal(pmixfab_place(fab, from, n_from, n, PMIXFAB_PLACE_SWITCHES, hosts, &placement),
                             0);
            if (placement.value > cover)
                fail_msg("%s: %u of %u: on %llu leaves, a greedy cover on %u", fabrics[f], n, n_from,
                         (unsigned long long)placement.value, cover);
        }
    }
}

/* Any choice weighs at least the bound; a random one is rarely better. */
TEST(larger_jobs_are_within_their_bounds)
{
    static const char *const fabrics[] = {"dragonfly:2,4,2", "torus:5,5,5:1",      "mesh:8,8:2",
                                          "rails:9,4,8,4:3", "random:40,200,60:9", "uneven:40,150"};
    uint64_t dice = 9;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(fabrics[f], &dice);
        const uint32_t n_hosts = plane_at(fab).n_hosts;
        OWNED(free) uint32_t *from = must_have(n_hosts * sizeof(*from));
        OWNED(free) uint32_t *hosts = must_have(n_hosts * sizeof(*hosts));
        for (int i = 0; i < 6; i++) {
            const uint32_t n_from = place_free_hosts(fab, 30 + 10 * i, n_hosts, &dice, from);
            const uint32_t n = 1 + place_roll(&dice, n_from);
            uint64_t farthest_by_sum = 0;
            for (unsigned o = 0; o < 3; o++) {
                struct pmixfab_placement placement;
                const uint64_t any = place_count(fab, from, n).of[o];
                assert_int_equal(
                    pmixfab_place(fab, from, n_from, n, (enum pmixfab_objective)o, hosts, &placement), 0);
                check_members(hosts, n, from, n_from);
                assert_int_equal(place_count(fab, hosts, n).of[o], placement.value);
                assert_true(placement.bound <= placement.value && placement.value <= any);
                if (o == PMIXFAB_PLACE_SUM)
                    farthest_by_sum = place_count(fab, hosts, n).of[PMIXFAB_PLACE_MAX];
                assert_true(o != PMIXFAB_PLACE_MAX || placement.value <= farthest_by_sum);
            }
        }
    }
}

/* Three hosts have lost one of their two cards, and the five of another unit have both. By costs all are
 * equal. */
TEST(test_hosts_that_lack_cards)
{
    SCOPED(world) world = {0};
    struct build b;
    build_begin(&b, &world.inv);
    for (unsigned s = 0; s < 5; s++) /* a spine, and two leaves of each unit */
        build_switch(&b, 64, "switch%u", s);
    for (unsigned s = 1; s < 5; s++)
        build_cable(&b, 0, s, s, 64, 4, FAB_HDR);
    for (unsigned h = 0; h < 8; h++) {
        const unsigned host = build_host(&b), cards = h < 3 ? 1 : 2;
        for (unsigned card = 1; card <= cards; card++)
            build_cable(&b, (h < 3 ? 0 : 2) + card, h + 1, build_hca(&b, host, card, cards, 1), 1, 4,
                        FAB_HDR);
    }
    assert_int_equal(build_end(&b), 0);
    world_compute(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    for (unsigned o = PMIXFAB_PLACE_SUM; o <= PMIXFAB_PLACE_MAX; o++) {
        struct pmixfab_placement placement;
        uint32_t hosts[3];
        assert_int_equal(pmixfab_place(fab, NULL, 0, 3, (enum pmixfab_objective)o, hosts, &placement), 0);
        assert_int_equal(placement.value, placement.bound);
        for (unsigned i = 0; i < 3; i++)
            assert_true(hosts[i] >= 3);
    }
}
