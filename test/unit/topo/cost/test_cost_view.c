/* Rows and matrices of any compact form, held against the cost of each pair. */

#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"
#include "topo/cost/cost.h"
#include "topo/cost/engine.h"

/* A cost of any size, small ones, the largest ones and "no path" more often than chance would give. */
static uint16_t any_cost(uint64_t *dice)
{
    unsigned form = (unsigned)(fabric_random_next(dice) % 8);
    uint16_t any = (uint16_t)fabric_random_next(dice);
    return form < 3 ? any : form < 5 ? any % 100 : form < 7 ? 65535 - any % 4 : 65535;
}

/* Few numbers, so that devices share what they have; often nothing is known. */
static struct fab_locality any_place(uint64_t *dice)
{
    struct fab_locality place = {0};
    if (fabric_random_next(dice) % 4 == 0)
        return place;
    place.card = (uint16_t)(fabric_random_next(dice) % 6);
    place.sw = (uint16_t)(fabric_random_next(dice) % 4);
    place.numa = (uint16_t)(fabric_random_next(dice) % 4);
    place.package = (uint16_t)(fabric_random_next(dice) % 3);
    return place;
}

/* What two devices of one host cost, said another way than in cost.h: the first line of a table that fits. */
static uint16_t plain_inside(const struct fab_locality *places, uint32_t a, uint32_t b)
{
    if (places == NULL)
        return 5;
    const struct fab_locality *x = &places[a], *y = &places[b];
    bool numa = x->numa != 0 && y->numa != 0;
    const struct {
        bool fits;
        uint16_t cost;
    } table[] = {{x->card == y->card && x->card != 0, 1},
                 {x->sw == y->sw && x->sw != 0, 2},
                 {numa && x->numa == y->numa, 4},
                 {numa && x->package == y->package && x->package != 0, 6},
                 {numa, 9},
                 {true, 5}};
    size_t i = 0;
    while (!table[i].fits)
        i++;
    return table[i].cost;
}

/* Compact forms that the computation would not make: rows in any order, rows of no device, cells without a
 * path. Every fourth has its rows in the devices' order and one access cost a row, as computed ones often
 * have. */
TEST(test_any_view)
{
    enum { N = 150, E = 100 };
    static uint32_t edge[N], host[N];
    static uint16_t access[N], access_of[E], dist[E * E], cells[N * N], row[N];
    static struct fab_locality places[N];
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t dice = seed;
        bool ordered = seed % 4 == 0;
        uint32_t n = 1 + (uint32_t)(fabric_random_next(&dice) % N), name = 7;
        uint32_t e = 1 + (uint32_t)(fabric_random_next(&dice) % (ordered && n < E ? n : E));
        for (uint32_t i = 0; i < e; i++)
            access_of[i] = any_cost(&dice);
        for (uint32_t i = 0; i < n; i++) {
            edge[i] = ordered ? i * e / n : (uint32_t)(fabric_random_next(&dice) % e);
            access[i] = seed % 2 == 0 ? access_of[edge[i]] : any_cost(&dice);
            name += fabric_random_next(&dice) % 3 != 0;
            host[i] = name;
        }
        for (uint32_t i = 0; i < e * e; i++)
            dist[i] = any_cost(&dice);
        for (uint32_t i = 0; i < n; i++)
            places[i] = any_place(&dice);
        const struct fab_cost_view v = {n, e, edge, access, host, dist, seed % 5 < 2 ? NULL : places};
        fab_cost_limit_isa((enum fab_isa)(seed % 3));
        assert_int_equal(fab_cost_matrix(&v, cells, 2), PMIXFAB_OK);
        for (uint32_t i = 0; i < n; i++) {
            fab_cost_row(&v, i, row);
            for (uint32_t j = 0; j < n; j++) {
                assert_int_equal(row[j], fab_cost_of(&v, i, j));
                assert_int_equal(cells[i * n + j], fab_cost_of(&v, i, j));
                if (i != j && host[i] == host[j])
                    assert_int_equal(row[j], plain_inside(v.places, i, j));
            }
        }
    }
    fab_cost_limit_isa(FAB_ISA_AVX512);
}

TEST(test_bad_arguments)
{
    SCOPED(fab_costs) costs;
    struct fab_plane empty = {0};
    uint16_t cell;
    assert_int_equal(fab_costs_compute(NULL, 1, &costs), PMIXFAB_ERR_INVAL);
    assert_null(costs.dist);
    assert_int_equal(fab_costs_compute(&empty, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_costs_compute(&empty, 1000000, &costs), PMIXFAB_OK);
    assert_int_equal(fab_cost_matrix(&costs.view, NULL, 1), PMIXFAB_OK);
    fab_costs_destroy(&costs);
    assert_int_equal(fab_cost_matrix(NULL, &cell, 1), PMIXFAB_ERR_INVAL);
    fab_costs_destroy(NULL);
}
