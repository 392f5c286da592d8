/* What is published of a fabric that changes, built from what was published before: the costs are those of a
 * build from nothing, and what did not change keeps plane, name and coordinates. */
#include "fabricd/engine/publisher.h"
#include "test/unit/edits.h"
#include "test/unit/own_config.h"
#include "topo/snapshot/reader.h"

/* What the store knows after some generations: the planes of the last one, and those retired before. */
struct known {
    struct store_plane planes[64];
    uint32_t n;
};

static void known_free(struct known *known)
{
    for (uint32_t i = 0; i < known->n; i++)
        free(known->planes[i].snapshot);
    known->n = 0;
}

/* Takes the snapshots over. */
static void remember(struct known *known, struct built *built)
{
    for (uint32_t k = 0; k < known->n; k++)
        known->planes[k].retired = true;
    for (uint32_t i = 0; i < built->n; i++) {
        struct built_plane *plane = &built->planes[i];
        uint32_t k = 0;
        while (k < known->n && known->planes[k].index != plane->index)
            k++;
        assert_int_equal(k == known->n, plane->is_new);
        assert_true(k < 64);
        if (k == known->n)
            known->n++;
        else
            free(known->planes[k].snapshot);
        known->planes[k] =
            (struct store_plane){.index = plane->index, .snapshot = plane->bytes, .size = plane->size};
        strcpy(known->planes[k].name, plane->name);
        plane->bytes = NULL;
    }
    built_destroy(built);
}

static void build(const struct fab_inventory *inv, const struct known *known, struct built *out)
{
    const struct fab_joined joined = {.inv = *inv}; /* borrowed, and nothing is said of its ports */
    must_do(compute_planes(&joined, &config, known->planes, known->n, out, fresh_err()));
}

static struct pmixfab *open_built(const void *bytes, size_t size)
{
    struct pmixfab *fab;
    must_do(fab_snapshot_borrow(bytes, size, &fab, fresh_err()));
    return fab;
}

static void assert_same_costs(const char *what, const struct pmixfab *a, const struct pmixfab *b)
{
    const struct fab_cost_view *x = &a->costs, *y = &b->costs;
    assert_int_equal(x->n_devices, y->n_devices);
    assert_int_equal(x->n_edges, y->n_edges);
    if (memcmp(x->edge, y->edge, x->n_devices * sizeof(*x->edge)) != 0 ||
        memcmp(x->access, y->access, x->n_devices * sizeof(*x->access)) != 0 ||
        memcmp(x->dist, y->dist, (size_t)x->n_edges * x->n_edges * sizeof(*x->dist)) != 0)
        fail_msg("%s: other costs than from nothing", what);
}

/* The physical coordinates of what is on its switch and port stay, whatever becomes of the plane. */
static unsigned assert_stays(const char *what, const struct pmixfab *before, const struct pmixfab *after)
{
    unsigned kept = 0;
    for (uint32_t i = 0; i < after->meta->n_devices; i++)
        for (uint32_t j = 0; j < before->meta->n_devices; j++) {
            const struct snap_device *is = &after->devices[i], *was = &before->devices[j];
            if (is->port_guid != was->port_guid || is->sw == FAB_NONE || was->sw == FAB_NONE ||
                is->switch_port != was->switch_port ||
                after->switches[is->sw].guid != before->switches[was->sw].guid)
                continue;
            kept++;
            if (memcmp(after->physical + 3 * (size_t)i, before->physical + 3 * (size_t)j,
                       3 * sizeof(uint32_t)) != 0)
                fail_msg("%s: device %u stands elsewhere", what, i);
        }
    return kept;
}

static unsigned check(const char *what, const struct known *known, const struct built *settled,
                      const struct built *plain)
{
    unsigned kept = 0;
    assert_int_equal(settled->n, plain->n);
    for (uint32_t i = 0; i < settled->n; i++) {
        OWNED(pmixfab_close)
        struct pmixfab *a = open_built(settled->planes[i].bytes, settled->planes[i].size);
        OWNED(pmixfab_close) struct pmixfab *b = open_built(plain->planes[i].bytes, plain->planes[i].size);
        assert_same_costs(what, a, b);
        for (uint32_t k = 0; k < known->n; k++) {
            if (known->planes[k].index != settled->planes[i].index || settled->planes[i].is_new)
                continue;
            OWNED(pmixfab_close)
            struct pmixfab *was = open_built(known->planes[k].snapshot, known->planes[k].size);
            kept += assert_stays(what, was, a);
        }
    }
    return kept;
}

TEST(chains_of_edits)
{
    static const char *const fabrics[] = {"fattree2:8,4,2",    "fattree3:6", "dragonfly:2,3,1",
                                          "torus:4,4:1",       "mesh:4,4:2", "torus:3,3,3:1",
                                          "random:30,60,20:11"};
    const struct known nothing = {.n = 0};
    unsigned kept = 0;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        struct edits_source source = {1 + f, 1};
        struct known known = {.n = 0};
        SCOPED(fab_inventory) inv = generated(fabrics[f]);
        for (unsigned step = 0; step < 40 && inv.n_nodes > 4 && known.n < 56; step++) {
            struct built settled, plain;
            const char *what = printed("%s, step %u", fabrics[f], step);
            build(&inv, &known, &settled);
            build(&inv, &nothing, &plain);
            kept += check(what, &known, &settled, &plain);
            built_destroy(&plain);
            remember(&known, &settled);
            edits_random(&inv, &source, (1u << EDITS_KINDS) - 1, 3);
        }
        known_free(&known);
    }
    assert_true(kept > 2000);
}

/* The same fabric again is the same to the byte. */
TEST(nothing_changed)
{
    struct known known = {.n = 0};
    struct built first, second;
    SCOPED(fab_inventory) inv = generated("fattree3:6");
    build(&inv, &known, &first);
    size_t size = first.planes[0].size;
    remember(&known, &first);
    build(&inv, &known, &second);
    assert_int_equal(second.planes[0].size, size);
    assert_memory_equal(second.planes[0].bytes, known.planes[0].snapshot, size);
    built_destroy(&second);
    known_free(&known);
}

/* A known plane whose snapshot cannot be read: computed from nothing. */
TEST(unreadable)
{
    struct known known = {.n = 0}, nothing = {.n = 0};
    SCOPED(built) second, plain;
    struct built first;
    SCOPED(fab_inventory) inv = generated("torus:4,4:1");
    build(&inv, &known, &first);
    remember(&known, &first);
    ((char *)known.planes[0].snapshot)[200] ^= 1;
    build(&inv, &known, &second);
    build(&inv, &nothing, &plain);
    OWNED(pmixfab_close) struct pmixfab *a = open_built(second.planes[0].bytes, second.planes[0].size);
    OWNED(pmixfab_close) struct pmixfab *b = open_built(plain.planes[0].bytes, plain.planes[0].size);
    assert_same_costs("unreadable", a, b);
    assert_memory_equal(a->logical, b->logical,
                        (size_t)b->meta->n_devices * b->meta->dims * sizeof(uint32_t));
    known_free(&known);
}

TEST_GROUP(own_config_setup, own_config_teardown)
