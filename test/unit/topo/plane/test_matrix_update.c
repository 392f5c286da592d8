/* Rows and matrices of any compact form, held against the cost of each pair; and a matrix that is changed in
 * place, held against the one from nothing. */
#include "test/unit/snapshot_world.h"
#include "topo/snapshot/cost_matrix.h"
#include "topo/snapshot/reader.h"

#define N 180u
#define E 40u

/* A compact form with room for the largest one. */
struct form {
    uint32_t n, e, edge[N], host[N];
    uint16_t access[N], dist[E * E];
    struct fab_locality places[N];
    bool located;
};

static uint32_t roll(uint64_t *dice, uint32_t sides)
{
    return (uint32_t)(fabric_random_next(dice) % sides);
}

/* Small and the largest ones, which saturate, and "no path". */
static uint16_t any_cost(uint64_t *dice)
{
    uint16_t any = (uint16_t)fabric_random_next(dice);
    return roll(dice, 2) ? any % 50 : roll(dice, 3) ? 65535 - any % 40 : any;
}

/* Few numbers, so that devices share what they have; often nothing is known. */
static struct fab_locality any_place(uint64_t *dice)
{
    if (roll(dice, 4) == 0)
        return (struct fab_locality){0};
    return (struct fab_locality){(uint16_t)roll(dice, 5), (uint16_t)roll(dice, 3), (uint16_t)roll(dice, 3),
                                 (uint16_t)roll(dice, 2)};
}

static void name_hosts(struct form *f, uint64_t *dice)
{
    uint32_t name = roll(dice, 100);
    for (uint32_t i = 0; i < f->n; i++) {
        name += roll(dice, 3) != 0;
        f->host[i] = name;
    }
}

/* Forms that the computation would not make: rows in any order, rows of no device, cells without a path.
 * Every fourth has its rows in the devices' order, and every second one access cost a row, as computed ones
 * have. */
static void make(struct form *f, uint32_t n, uint64_t *dice)
{
    const bool ordered = roll(dice, 4) == 0, one_access = roll(dice, 2) == 0;
    uint16_t access_of[E];
    f->n = n;
    f->e = 1 + roll(dice, ordered && n < E ? n : E);
    f->located = roll(dice, 2);
    for (uint32_t e = 0; e < f->e; e++)
        access_of[e] = any_cost(dice);
    for (uint32_t i = 0; i < n; i++) {
        f->edge[i] = ordered ? i * f->e / n : roll(dice, f->e);
        f->access[i] = one_access ? access_of[f->edge[i]] : any_cost(dice);
        f->places[i] = any_place(dice);
    }
    name_hosts(f, dice);
    for (uint32_t i = 0; i < f->e * f->e; i++)
        f->dist[i] = any_cost(dice);
}

/* Rows of dist change their places, as they do when a device is the first one of another edge. */
static void renumber(struct form *f, uint64_t *dice)
{
    static struct form old;
    uint32_t to[E] = {0};
    old = *f;
    for (uint32_t e = 0; e < f->e; e++)
        to[e] = e;
    for (uint32_t e = f->e - 1; e > 0; e--) {
        uint32_t other = roll(dice, e + 1), swap = to[e];
        to[e] = to[other];
        to[other] = swap;
    }
    for (uint32_t a = 0; a < f->e; a++)
        for (uint32_t b = 0; b < f->e; b++)
            f->dist[to[a] * f->e + to[b]] = old.dist[a * f->e + b];
    for (uint32_t i = 0; i < f->n; i++)
        f->edge[i] = to[f->edge[i]];
}

/* One edge more, or the last one less, with dist in its new stride. */
static void resize(struct form *f, uint64_t *dice)
{
    static struct form old;
    old = *f;
    f->e = f->e < E && (f->e == 1 || roll(dice, 2)) ? f->e + 1 : f->e - 1;
    for (uint32_t a = 0; a < f->e; a++)
        for (uint32_t b = 0; b < f->e; b++)
            f->dist[a * f->e + b] = a < old.e && b < old.e ? old.dist[a * old.e + b] : any_cost(dice);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->edge[i] >= f->e)
            f->edge[i] = roll(dice, f->e);
}

static void change(struct form *f, uint64_t *dice)
{
    uint32_t i = roll(dice, f->n), k = roll(dice, f->e);
    switch (roll(dice, 10)) {
    case 0:
        f->access[i] = any_cost(dice);
        break;
    case 1:
        f->edge[i] = k;
        break;
    case 2:
        f->places[i] = any_place(dice);
        break;
    case 3:
        f->located = !f->located;
        break;
    case 4:
        for (uint32_t j = i; j < f->n; j++) /* behind it is another host, or it joins the one before */
            f->host[j]++;
        break;
    case 5:
        name_hosts(f, dice);
        break;
    case 6:
        renumber(f, dice);
        break;
    case 7:
        resize(f, dice);
        break;
    case 8:
        for (uint32_t e = 0; e < f->e; e++)
            f->dist[k * f->e + e] = f->dist[e * f->e + k] = any_cost(dice);
        break;
    default: /* one direction only: what a snapshot should not say, but may */
        f->dist[roll(dice, f->e * f->e)] = any_cost(dice);
        break;
    }
}

static struct fab_cost_view view_of(const struct form *f)
{
    return (struct fab_cost_view){
        f->n, f->e, f->edge, f->access, f->host, f->dist, f->located ? f->places : NULL};
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

/* Matrix and rows against the pairs. */
static void check_pairs(const struct fab_cost_view *v, const uint16_t *cells)
{
    static uint16_t row[N];
    const uint32_t n = v->n_devices;
    for (uint32_t i = 0; i < n; i++) {
        fab_cost_row(v, i, row);
        assert_memory_equal(row, cells + (size_t)i * n, n * sizeof(*row));
        for (uint32_t j = 0; j < n; j++) {
            assert_int_equal(row[j], fab_cost_of(v, i, j));
            if (i != j && v->host[i] == v->host[j])
                assert_int_equal(row[j], plain_inside(v->places, i, j));
        }
    }
}

TEST(test_any_views)
{
    static struct form was, now;
    static uint16_t cells[N * N + 1], want[N * N];
    unsigned little = 0, all = 0, updates = 0;
    for (uint64_t seed = 1; seed <= 2400; seed++) {
        uint64_t dice = seed * 77, written = 0;
        fab_cost_limit_isa((enum fab_isa)(seed % 3));
        make(&was, 1 + roll(&dice, N), &dice);
        now = was;
        if (seed % 50 == 0) /* nothing in common but the size */
            make(&now, was.n, &dice);
        for (uint32_t n = roll(&dice, 4); n > 0; n--)
            change(&now, &dice);
        const struct fab_cost_view a = view_of(&was), b = view_of(&now);
        size_t size = (size_t)now.n * now.n;
        assert_int_equal(fab_cost_matrix(&a, cells, 1), 0);
        assert_int_equal(fab_cost_matrix(&b, want, 2), 0);
        if (seed % 8 == 0)
            check_pairs(&b, want);
        cells[size] = 0xbeef;
        assert_int_equal(fab_cost_matrix_update(&a, &b, cells, 1, &written), 0);
        assert_int_equal(cells[size], 0xbeef);
        for (size_t i = 0; i < size; i++)
            if (cells[i] != want[i])
                fail_msg("seed %llu: cell %zu,%zu of %u is %u, should be %u", (unsigned long long)seed,
                         i / now.n, i % now.n, now.n, cells[i], want[i]);
        updates++;
        little += 4 * written < size;
        all += written == size;
    }
    fab_cost_limit_isa(FAB_ISA_AVX512);
    assert_true(little > updates / 4);
    assert_true(all > updates / 16);
}

/* What is written of 1280 devices, where the first of them changes in some way. */
static uint64_t written_of(const struct fab_cost_view *was, const struct fab_cost_view *now, uint16_t *cells,
                           uint16_t *want)
{
    uint64_t written = UINT64_MAX;
    assert_int_equal(fab_cost_matrix(was, cells, 1), 0);
    assert_int_equal(fab_cost_matrix(now, want, 1), 0);
    assert_int_equal(fab_cost_matrix_update(was, now, cells, 1, &written), 0);
    assert_memory_equal(cells, want, sizeof(*cells) * now->n_devices * now->n_devices);
    return written;
}

/* Only what differs is written: not a cell for nothing, row and column of a device, the pairs of an edge. */
TEST(test_little_is_written)
{
    WORLD(world, "fattree2:32,4,40");
    const struct fab_cost_view was = world.layers[0].costs.view;
    uint32_t n = was.n_devices, e = was.n_edges;
    size_t size = (size_t)n * n * sizeof(uint16_t);
    OWNED(free) uint16_t *cells = malloc(size), *want = malloc(size);
    OWNED(free) uint16_t *access = malloc(n * sizeof(*access));
    OWNED(free) uint16_t *dist = malloc(sizeof(*dist) * e * e);
    OWNED(free) struct fab_locality *places = calloc(n, sizeof(*places));
    assert_true(cells != NULL && want != NULL && access != NULL && dist != NULL && places != NULL);
    struct fab_cost_view now = was;
    assert_int_equal(n, 1280);
    assert_int_equal(written_of(&was, &now, cells, want), 0);
    memcpy(access, was.access, n * sizeof(*access));
    access[0] += 7;
    now.access = access;
    assert_int_equal(written_of(&was, &now, cells, want), 2 * n);
    now = was;
    memcpy(dist, was.dist, sizeof(*dist) * e * e);
    dist[1] = dist[e] = FAB_COST_NO_PATH;
    now.dist = dist;
    assert_int_equal(written_of(&was, &now, cells, want), 2 * 40 * 40);
    for (uint32_t i = 0; i < e * e; i++) /* everything */
        dist[i] = was.dist[i] == 0 ? 0 : was.dist[i] + 1;
    assert_int_equal(written_of(&was, &now, cells, want), (uint64_t)n * n);
    now = was;
    now.places = places; /* nobody shares a host: places say nothing */
    assert_int_equal(written_of(&was, &now, cells, want), 0);
}

/* The public call: other sizes in new memory, the same one in place, none at all. */
TEST(test_sizes)
{
    static const char *const chain[] = {"fattree2:4,2,3", "random:1,5,0:3", "torus:3,4:2", "fattree2:4,3,6",
                                        "fattree2:4,2,6", "torus:3,4:2",    "torus:4,3:2"};
    struct world worlds[2];
    struct pmixfab *fab[2];
    uint16_t *cells = NULL, *want = NULL;
    world_open(&worlds[0], chain[0]);
    fab[0] = layer_open(&worlds[0].layers[0]);
    assert_int_equal(pmixfab_matrix_alloc(fab[0], 1, &cells), 0);
    for (size_t i = 1; i < sizeof(chain) / sizeof(chain[0]); i++) {
        world_open(&worlds[1], chain[i]);
        fab[1] = layer_open(&worlds[1].layers[0]);
        const uint16_t *place = cells;
        uint32_t n = fab[1]->meta->n_devices;
        assert_int_equal(pmixfab_matrix_update(fab[0], fab[1], 2, &cells), 0);
        if (n == fab[0]->meta->n_devices)
            assert_ptr_equal(cells, place);
        assert_int_equal(pmixfab_matrix_alloc(fab[1], 1, &want), 0);
        assert_memory_equal(cells, want, sizeof(*cells) * n * n);
        pmixfab_matrix_free(want, n);
        pmixfab_close(fab[0]);
        world_destroy(&worlds[0]);
        worlds[0] = worlds[1];
        fab[0] = fab[1];
    }
    pmixfab_matrix_free(cells, fab[0]->meta->n_devices);
    pmixfab_close(fab[0]);
    world_destroy(&worlds[0]);
}

TEST(test_refuses)
{
    uint16_t cell = 7, *cells = &cell, *none = NULL;
    WORLD(world, "fattree2:2,1,2");
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    const struct fab_cost_view *v = &world.layers[0].costs.view;
    struct fab_cost_view empty = {0}, less = *v;
    less.n_devices--;
    assert_int_equal(pmixfab_matrix_update(NULL, fab, 1, &cells), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_matrix_update(fab, NULL, 1, &cells), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_matrix_update(fab, fab, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_matrix_update(fab, fab, 1, &none), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_cost_matrix_update(NULL, v, cells, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_cost_matrix_update(v, NULL, cells, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_cost_matrix_update(v, v, NULL, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_cost_matrix_update(&less, v, cells, 1, NULL), PMIXFAB_ERR_INVAL);
    uint64_t written = 7;
    assert_int_equal(fab_cost_matrix_update(&empty, &empty, NULL, 1, &written), PMIXFAB_OK);
    assert_int_equal(written, 0);
    assert_int_equal(cell, 7);
    assert_ptr_equal(cells, &cell);
    SCOPED(fab_costs) costs;
    const struct fab_plane none_at_all = {0};
    assert_int_equal(fab_costs_compute(NULL, 1, &costs), PMIXFAB_ERR_INVAL);
    assert_null(costs.dist);
    assert_int_equal(fab_costs_compute(&none_at_all, 1, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_costs_compute(&none_at_all, 1000000, &costs), PMIXFAB_OK);
    assert_int_equal(fab_cost_matrix(&costs.view, NULL, 1), PMIXFAB_OK);
    assert_int_equal(fab_cost_matrix(NULL, &cell, 1), PMIXFAB_ERR_INVAL);
    fab_costs_destroy(NULL);
}
