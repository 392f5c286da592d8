/* What hosts say of their devices: written into snapshots, and read again through the public calls. */
#include "test/fabrics/details.h"
#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"
#include "topo/base/string_table.h"
#include "topo/plane/compile.h"

/* Fact by fact against what the snapshot was made of. */
static void compare_facts(const struct pmixfab *fab, const struct layer *layer,
                          const struct fab_details *details)
{
    for (uint32_t i = 0; i < layer->plane->n_devices; i++) {
        uint32_t port = layer->plane->devices[i].port, n = 0;
        struct pmixfab_device device;
        struct pmixfab_fact fact;

        assert_int_equal(pmixfab_device(fab, i, &device), 0);
        assert_int_equal(device.seen, details->seen[port]);
        for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++, n++) {
            const struct fab_detail *detail = &details->facts[f];
            assert_int_equal(pmixfab_fact(fab, i, n, &fact), 0);
            assert_string_equal(fact.kind, fab_fact_name((enum fab_fact)detail->kind));
            assert_string_equal(fact.text, details->pool + detail->text);
            assert_int_equal(fact.sources, detail->sources);
            assert_int_equal(fact.chosen, (detail->flags & FAB_DETAIL_CHOSEN) != 0);
            assert_int_equal(fact.conflict, (detail->flags & FAB_DETAIL_CONFLICT) != 0);
            assert_int_equal(fact.estimate, (detail->flags & FAB_DETAIL_ESTIMATE) != 0);
        }
        assert_int_equal(pmixfab_fact(fab, i, n, &fact), PMIXFAB_ERR_NOTFOUND);
    }
}

/* The believed text of each kind against a plain search through all facts. */
static void compare_texts(const struct pmixfab *fab, const struct layer *layer,
                          const struct fab_details *details)
{
    for (uint32_t i = 0; i < layer->plane->n_devices; i++)
        for (unsigned kind = 1; kind < FAB_FACTS; kind++) {
            uint32_t port = layer->plane->devices[i].port;
            const char *expected = NULL;
            for (uint32_t f = details->first[port + 1]; f-- > details->first[port];)
                if (details->facts[f].kind == kind && (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
                    expected = details->pool + details->facts[f].text;
            const char *text = pmixfab_fact_text(fab, i, fab_fact_name((enum fab_fact)kind));
            assert_true((text == NULL) == (expected == NULL));
            if (text != NULL)
                assert_string_equal(text, expected);
        }
}

/* Costs inside hosts follow the places; all others are as without. */
static void compare_costs(const struct pmixfab *fab, const struct layer *layer,
                          const struct fab_details *details)
{
    const struct fab_plane *plane = layer->plane;
    struct fab_cost_view view = layer->costs.view;
    uint32_t n = plane->n_devices;
    OWNED(free) struct fab_locality *places = calloc(n + 1u, sizeof(*places));
    OWNED(free)
    uint16_t *row = calloc(n + 1u, sizeof(*row)), *cells = calloc((size_t)n * n + 1, sizeof(*cells));

    assert_true(places != NULL && row != NULL && cells != NULL);
    for (uint32_t i = 0; i < n; i++)
        places[i] = details->places[plane->devices[i].port];
    view.places = places;
    assert_int_equal(pmixfab_matrix(fab, cells, (size_t)n * n, 1), 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(pmixfab_row(fab, i, row, n), 0);
        for (uint32_t k = 0; k < n; k++) {
            uint16_t cost;
            assert_int_equal(pmixfab_cost(fab, i, k, &cost), 0);
            assert_int_equal(cost, fab_cost_of(&view, i, k));
            assert_int_equal(row[k], cost);
            assert_int_equal(cells[(size_t)i * n + k], cost);
        }
    }
}

TEST(test_facts_are_read_again)
{
    for (size_t f = 0; f < WORLD_FABRICS; f++) {
        WORLD(world, world_fabrics[f]);
        for (uint64_t seed = 0; seed < 4; seed++) {
            SCOPED_BY(fabric_details_destroy) struct fab_details details;
            assert_int_equal(fabric_details(&world.inv, seed, &details), 0);
            for (uint32_t p = 0; p < world.planes.n; p++) {
                layer_tell(&world.layers[p], &details);
                OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[p]);
                compare_facts(fab, &world.layers[p], &details);
                compare_texts(fab, &world.layers[p], &details);
                compare_costs(fab, &world.layers[p], &details);
                walk_everything(fab);
            }
        }
    }
}

/* Eight HCAs in one host: every sort of nearness at its price. */
TEST(test_places)
{
    static const struct fab_locality places[] = {{1, 1, 1, 1}, {1, 1, 1, 1}, {2, 1, 1, 1}, {3, 0, 1, 1},
                                                 {4, 0, 2, 1}, {5, 0, 3, 2}, {6, 0, 0, 0}, {0, 0, 0, 0}};
    static const uint16_t first_row[] = {0, 1, 2, 4, 6, 9, 5, 5};
    enum { N = sizeof(places) / sizeof(places[0]) };
    SCOPED(world) world = {0};
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    uint16_t row[N];

    fab_inventory_init(&world.inv);
    uint32_t leaf = world_node(&world, FAB_SWITCH, 0x9000, "", "leaf");
    for (unsigned i = 0; i < N; i++) {
        const char *name = printed("m%u", i);
        world_cable(&world, world_node(&world, FAB_HCA, 0x10000 * (i + 1), "host", name), 1, leaf, i + 1);
        world.inv.nodes[leaf].num_ports = N;
    }
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    world_compute(&world);
    struct layer *layer = &world.layers[0];
    assert_int_equal(layer->plane->n_devices, N);
    assert_int_equal(fabric_details(&world.inv, 0, &details), 0);
    for (uint32_t i = 0; i < N; i++)
        details.places[layer->plane->devices[i].port] = places[i];
    layer_tell(layer, &details);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    assert_int_equal(pmixfab_row(fab, 0, row, N), 0);
    assert_memory_equal(row, first_row, sizeof(row));
    pmixfab_close(fab);
    /* nothing known of any: no section, and the one price */
    size_t with = layer->size;
    memset(details.places, 0, details.n_ports * sizeof(*details.places));
    layer_tell(layer, &details);
    assert_true(layer->size < with);
    fab = layer_open(layer);
    assert_int_equal(pmixfab_row(fab, 0, row, N), 0);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(row[i], i == 0 ? 0 : 5);
}

/* Without details, and with details that know nothing. */
TEST(test_no_facts)
{
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    struct pmixfab_fact fact = {.kind = "untouched"};
    struct pmixfab_device device;
    WORLD(world, "fattree2:2,1,2");
    struct layer *layer = &world.layers[0];
    uint64_t content = fab_snapshot_content(layer->bytes);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    assert_int_equal(pmixfab_fact(fab, 0, 0, &fact), PMIXFAB_ERR_NOTFOUND);
    assert_null(pmixfab_fact_text(fab, 0, "name"));
    assert_int_equal(pmixfab_device(fab, 0, &device), 0);
    assert_int_equal(device.seen, PMIXFAB_SEEN_SUBNET);
    /* what cannot be asked */
    assert_int_equal(pmixfab_fact(fab, 4, 0, &fact), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_fact(NULL, 0, 0, &fact), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_fact(fab, 0, 0, NULL), PMIXFAB_ERR_INVAL);
    assert_string_equal(fact.kind, "untouched");
    assert_null(pmixfab_fact_text(NULL, 0, "name"));
    assert_null(pmixfab_fact_text(fab, 4, "name"));
    assert_null(pmixfab_fact_text(fab, 0, NULL));
    for (uint32_t i = 0; i < FAB_SOURCES; i++)
        assert_int_equal(fab_source_parse(pmixfab_source_name(i)), i);
    assert_null(pmixfab_source_name(FAB_SOURCES));

    assert_int_equal(fabric_details(&world.inv, 0, &details), 0);
    memset(details.first, 0, (details.n_ports + 1) * sizeof(*details.first));
    memset(details.places, 0, details.n_ports * sizeof(*details.places));
    memset(details.seen, FAB_SEEN_SUBNET, details.n_ports);
    layer_tell(layer, &details);
    assert_true(fab_snapshot_content(layer->bytes) == content);
}

TEST(test_build_refuses)
{
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    WORLD(world, "fattree2:2,1,2");
    const struct layer *l = &world.layers[0];
    void *bytes = &world;
    size_t size = 1;
    assert_int_equal(fabric_details(&world.inv, 0, &details), 0);
    details.n_ports--;
    assert_int_equal(
        fab_snapshot_build(l->plane, &l->costs, &l->geometry, &l->groups, &details, &l->meta, &bytes, &size),
        PMIXFAB_ERR_INVAL);
    assert_null(bytes);
    details.n_ports++;
    details.seen[l->plane->devices[1].port] = 0;
    assert_int_equal(
        fab_snapshot_build(l->plane, &l->costs, &l->geometry, &l->groups, &details, &l->meta, &bytes, &size),
        PMIXFAB_ERR_INVAL);
    assert_null(bytes);
}
