/* Costs and matrices from those before, held against those from nothing, over chains of random edits. */
#include "test/unit/edits.h"
#include "topo/cost/cost_update.h"
#include "topo/snapshot/snapshot.h"

#define FABRICS (sizeof(fabrics) / sizeof(fabrics[0]))
static const char *const fabrics[] = {
    "fattree2:4,2,3",  "fattree2:8,4,2", "fattree3:4",       "fattree3:6",        "dragonfly:2,3,1",
    "dragonfly:1,4,2", "torus:3,4:2",    "torus:4,4,4:1",    "mesh:4,4:2",        "mesh:2,3,4:1",
    "mesh:12,2:1",     "torus:9,3:1",    "random:12,40,9:7", "random:60,70,20:3", "random:30,100,40:11",
};

/* A fabric as it was published: its planes and their snapshots. */
struct published {
    struct fab_inventory inv;
    struct fab_planes planes;
    struct pmixfab *fab[4]; /* of the largest planes */
    void *bytes[4];
    uint32_t n;
};

static struct counts {
    unsigned updates, searched_none, searched_some, borrowed;
    unsigned matrices, in_place, little; /* matrices; of the same size; of which not half was written */
} counts;

/* Takes the inventory over. */
static void publish(struct published *p, const struct fab_inventory *inv, enum fab_cost_model model)
{
    struct fab_err err = {{0}};
    memset(p, 0, sizeof(*p));
    p->inv = *inv;
    if (fab_planes_build(&p->inv, model, &p->planes, &err) != 0)
        fail_msg("%s", err.text);
    p->n = p->planes.n < 4 ? p->planes.n : 4;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct fab_plane *plane = &p->planes.planes[i];
        struct fab_costs costs;
        struct fab_geometry geometry;
        struct fab_groups groups;
        size_t size;
        const struct fab_snapshot_meta meta = {.name = "p"};
        assert_int_equal(fab_costs_compute(plane, 1, &costs), 0);
        assert_int_equal(fab_geometry_compute(plane, &geometry), 0);
        assert_int_equal(fab_groups_compute(plane, &geometry, FAB_GROUP_LEAF, &groups), 0);
        assert_int_equal(
            fab_snapshot_build(plane, &costs, &geometry, &groups, NULL, &meta, &p->bytes[i], &size), 0);
        assert_int_equal(fab_snapshot_borrow(p->bytes[i], size, &p->fab[i], &err), 0);
        fab_groups_destroy(&groups);
        fab_geometry_destroy(&geometry);
        fab_costs_destroy(&costs);
    }
}

static void unpublish(struct published *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        pmixfab_close(p->fab[i]);
        free(p->bytes[i]);
    }
    fab_planes_destroy(&p->planes);
    fab_inventory_destroy(&p->inv);
}

static void compare(const char *what, const struct fab_plane *plane, const struct pmixfab *before)
{
    struct fab_costs want, got;
    assert_int_equal(fab_costs_compute(plane, 1, &want), 0);
    assert_int_equal(fab_costs_update(plane, before, 1, &got), 0);
    const struct fab_cost_view *w = &want.view, *g = &got.view;
    assert_int_equal(g->n_devices, w->n_devices);
    assert_int_equal(g->n_edges, w->n_edges);
    if (memcmp(g->edge, w->edge, w->n_devices * sizeof(*w->edge)) != 0 ||
        memcmp(g->host, w->host, w->n_devices * sizeof(*w->host)) != 0 ||
        memcmp(g->access, w->access, w->n_devices * sizeof(*w->access)) != 0)
        fail_msg("%s: devices differ", what);
    for (size_t i = 0, n = w->n_edges; i < n * n; i++)
        if (g->dist[i] != w->dist[i])
            fail_msg("%s: %zu,%zu of %zu is %u, should be %u", what, i / n, i % n, n, g->dist[i], w->dist[i]);
    counts.updates++;
    counts.searched_none += got.n_searched == 0;
    counts.searched_some += got.n_searched > 0 && got.n_searched < want.n_searched;
    counts.borrowed += got.dist == NULL;
    fab_costs_destroy(&want);
    fab_costs_destroy(&got);
}

/* The matrix of one snapshot becomes that of another, which is held against the one from nothing. */
static void compare_matrices(const char *what, const struct pmixfab *before, const struct pmixfab *after)
{
    uint32_t n = after->meta->n_devices;
    bool same_size = n == before->meta->n_devices;
    uint16_t *cells = NULL, *want = NULL;
    uint64_t written = 0;
    assert_int_equal(pmixfab_matrix_alloc(before, 1, &cells), 0);
    assert_int_equal(pmixfab_matrix_alloc(after, 1, &want), 0);
    const uint16_t *place = cells;
    if (same_size)
        assert_int_equal(fab_cost_matrix_update(&before->costs, &after->costs, cells, 1, &written), 0);
    else
        assert_int_equal(pmixfab_matrix_update(before, after, 1, &cells), 0);
    assert_true(!same_size || cells == place);
    for (size_t i = 0; i < (size_t)n * n; i++)
        if (cells[i] != want[i])
            fail_msg("%s: cell %zu,%zu of %u is %u, should be %u", what, i / n, i % n, n, cells[i], want[i]);
    counts.matrices++;
    counts.in_place += same_size;
    counts.little += same_size && 2 * written < (uint64_t)n * n;
    pmixfab_matrix_free(cells, n);
    pmixfab_matrix_free(want, n);
}

/* A chain of states of one fabric, each held against the one before; it starts anew when it has become small.
 */
static void run_chain(const char *fabric, uint64_t seed, unsigned steps, unsigned most,
                      enum fab_cost_model model)
{
    struct edits_source source = {seed, 1};
    struct published before, after;
    struct fab_inventory inv;
    uint32_t nodes = 0;
    before.n = 0;
    before.planes.n = 0;
    for (unsigned step = 0; step < steps; step++) {
        char what[128];
        snprintf(what, sizeof(what), "%s, seed %llu, step %u", fabric, (unsigned long long)seed, step);
        if (before.planes.n == 0 || before.inv.n_nodes < nodes / 2) {
            if (before.planes.n > 0)
                unpublish(&before);
            assert_int_equal(fabric_parse(fabric, &inv), 0);
            nodes = inv.n_nodes;
            publish(&before, &inv, model);
        }
        assert_int_equal(fab_inventory_copy(&inv, &before.inv), 0);
        edits_random(&inv, &source, (1u << EDITS_KINDS) - 1, most);
        publish(&after, &inv, model);
        for (uint32_t i = 0; i < after.n; i++)
            for (uint32_t k = 0; k < before.n; k++) {
                compare(what, &after.planes.planes[i], before.fab[k]);
                compare_matrices(what, before.fab[k], after.fab[i]);
            }
        unpublish(&before);
        before = after;
    }
    unpublish(&before);
}

TEST(random_edits)
{
    counts = (struct counts){0};
    fab_costs_update_always(true);
    for (size_t f = 0; f < FABRICS; f++) {
        run_chain(fabrics[f], 1 + f, 500, 1, FAB_COST_RATE);
        run_chain(fabrics[f], 1001 + f, 300, 8, FAB_COST_RATE);
        run_chain(fabrics[f], 2001 + f, 100, 3, FAB_COST_HOPS);
    }
    fab_costs_update_always(false);
    print_message("%u updates: %u without a search, %u with some, %u as before\n", counts.updates,
                  counts.searched_none, counts.searched_some, counts.borrowed);
    assert_true(counts.updates > 10000);
    assert_true(counts.searched_none > counts.updates / 8);
    assert_true(counts.searched_some > counts.updates / 64);
    print_message("%u matrices: %u in place, %u with little written\n", counts.matrices, counts.in_place,
                  counts.little);
    assert_true(counts.in_place > counts.matrices / 4);
    assert_true(counts.little > counts.matrices / 8);
}

TEST(random_edits_within_limits)
{
    counts = (struct counts){0};
    for (size_t f = 0; f < FABRICS; f++)
        run_chain(fabrics[f], 3001 + f, 40, 3, FAB_COST_RATE);
    assert_true(counts.searched_none > 0);
}

/* From the costs of quite another fabric, of a plane without switches, of nothing. */
TEST(strangers)
{
    static const char *const others[] = {"fattree3:4", "random:1,5,0:3", "torus:3,4:2"};
    fab_costs_update_always(true);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            struct published a, b;
            struct fab_inventory inv;
            assert_int_equal(fabric_parse(others[i], &inv), 0);
            publish(&a, &inv, FAB_COST_RATE);
            assert_int_equal(fabric_parse(others[k], &inv), 0);
            publish(&b, &inv, i == 0 ? FAB_COST_HOPS : FAB_COST_RATE);
            compare(others[i], &a.planes.planes[0], b.fab[0]);
            compare(others[i], &a.planes.planes[0], NULL);
            unpublish(&a);
            unpublish(&b);
        }
    fab_costs_update_always(false);
}

TEST(refuses)
{
    struct fab_costs costs;
    assert_int_equal(fab_costs_update(NULL, NULL, 1, &costs), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_costs_update(NULL, NULL, 1, NULL), PMIXFAB_ERR_INVAL);
}
