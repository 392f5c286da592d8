/* place_world.h - fabrics to place jobs in, random sets of their hosts, and plain counts of what those cost.
 */
#ifndef FAB_TEST_PLACE_WORLD_H
#define FAB_TEST_PLACE_WORLD_H

#include "test/fabrics/build.h"
#include "test/unit/snapshot_world.h"

static inline unsigned place_roll(uint64_t *dice, unsigned sides)
{
    return (unsigned)(fabric_random_next(dice) % sides);
}

/* A tree of switches of any shape; hosts anywhere on it, some on slow cables. */
static inline void place_uneven_tree(struct fab_inventory *inv, unsigned switches, unsigned hosts,
                                     uint64_t *dice)
{
    struct build b;
    unsigned ports[64] = {0};

    build_begin(&b, inv);
    for (unsigned s = 0; s < switches; s++)
        build_switch(&b, 64, "switch%u", s + 1);
    for (unsigned s = 1; s < switches; s++) {
        const unsigned up = place_roll(dice, s);
        build_cable(&b, s, ++ports[s], up, ++ports[up], 4, place_roll(dice, 4) == 0 ? FAB_EDR : FAB_HDR);
    }
    for (unsigned h = 0; h < hosts; h++) {
        const unsigned sw = place_roll(dice, switches);
        const uint32_t hca = build_hca(&b, build_host(&b), 1, 1, 1);
        build_cable(&b, sw, ++ports[sw], hca, 1, 4, place_roll(dice, 4) == 0 ? FAB_EDR : FAB_HDR);
    }
    assert_int_equal(build_end(&b), 0);
}

/* As fabric_parse() has it, or "uneven:SWITCHES,HOSTS". Close what comes back. */
static inline struct pmixfab *place_fabric(const char *text, uint64_t *dice)
{
    SCOPED(world) world = {0};
    unsigned switches, hosts;

    if (sscanf(text, "uneven:%u,%u", &switches, &hosts) == 2)
        place_uneven_tree(&world.inv, switches, hosts, dice);
    else
        assert_int_equal(fabric_parse(text, &world.inv), 0);
    world_compute(&world);
    return layer_open(&world.layers[0]);
}

/* Some of the plane's hosts, each with this chance in a hundred; `most` at most. Returns how many. */
static inline uint32_t place_free_hosts(const struct pmixfab *fab, unsigned chance, uint32_t most,
                                        uint64_t *dice, uint32_t *hosts)
{
    const uint32_t n_hosts = plane_at(fab).n_hosts;
    uint32_t n = 0;
    for (uint32_t h = 0, seen = 0; h < n_hosts; h++)
        if (place_roll(dice, 100) < chance) {
            const uint32_t at = n < most ? n++ : place_roll(dice, ++seen + most);
            if (at < most)
                hosts[at] = h;
        }
    return n;
}

/* The cheapest pair of devices. */
static inline uint16_t place_cost(const struct pmixfab *fab, uint32_t g, uint32_t h)
{
    uint32_t first_g, n_g, first_h, n_h;
    uint16_t least = PMIXFAB_NO_PATH, cost;
    const char *name;
    assert_int_equal(pmixfab_host(fab, g, &name, &first_g, &n_g), 0);
    assert_int_equal(pmixfab_host(fab, h, &name, &first_h, &n_h), 0);
    for (uint32_t a = first_g; a < first_g + n_g; a++)
        for (uint32_t b = first_h; b < first_h + n_h; b++) {
            assert_int_equal(pmixfab_cost(fab, a, b, &cost), 0);
            least = cost < least ? cost : least;
        }
    return least;
}

/* What each objective counts. */
struct place_values {
    uint64_t of[3];
};

static inline struct place_values place_count(const struct pmixfab *fab, const uint32_t *hosts, uint32_t n)
{
    struct place_values values = {{0}};
    OWNED(free) bool *used = must_have(plane_at(fab).n_switches);
    const char *name;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first, devices;
        for (uint32_t j = 0; j < i; j++) {
            const uint16_t cost = place_cost(fab, hosts[i], hosts[j]);
            values.of[PMIXFAB_PLACE_SUM] += cost;
            if (cost > values.of[PMIXFAB_PLACE_MAX])
                values.of[PMIXFAB_PLACE_MAX] = cost;
        }
        assert_int_equal(pmixfab_host(fab, hosts[i], &name, &first, &devices), 0);
        for (uint32_t d = first; d < first + devices; d++) {
            const uint32_t sw = device_at(fab, d).switch_index;
            if (sw != UINT32_MAX && !used[sw]) {
                used[sw] = true;
                values.of[PMIXFAB_PLACE_SWITCHES]++;
            }
        }
    }
    return values;
}

#endif
