/* Snapshots with facts and something wrong with them: refused, or passed over where a newer writer may be
 * right. */
#include "test/fabrics/details.h"
#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"

#define FACT(i, field) SNAP_FACTS, (i) * sizeof(struct snap_fact) + offsetof(struct snap_fact, field)
#define META(field)    SNAP_SECTIONS, offsetof(struct snap_meta, field)

static const struct {
    const char *about;
    enum snap_section section; /* SNAP_SECTIONS: the meta */
    size_t offset, width;
    uint32_t value;
} lies[] = {
    {"counts", META(n_facts), 4, 0},
    {"counts", META(n_facts), 4, UINT32_MAX},
    {"counts", META(n_places), 4, 0},
    {"counts", META(n_places), 4, UINT32_MAX},
    {"counts", META(n_strays), 4, 1},
    {"fact", SNAP_FACT_AT, 0, 4, 1},
    {"fact", SNAP_FACT_AT, 4, 4, UINT32_MAX},
    {"fact", SNAP_FACT_AT, 8, 4, 0},
    {"fact", SNAP_FACT_AT, 16, 4, 1},
    {"fact", FACT(0, text), 4, 0},
    {"fact", FACT(0, text), 4, UINT32_MAX},
    {"fact", FACT(0, text), 4, 1u << 20},
    {"fact", FACT(1, sources), 2, 0},
    {"fact", FACT(0, kind), 1, 0},
    {"fact", FACT(2, flags), 1, 32},
    {"fact", FACT(2, flags), 1, 0x81},
    {"order of facts", FACT(0, kind), 1, FAB_FACT_SOFTWARE},
    {"order of facts", FACT(1, kind), 1, 255},
    {"order of facts", FACT(2, kind), 1, FAB_FACT_NAME},
};

TEST(test_lies_are_found)
{
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    WORLD(world, "fattree2:2,1,2"); /* 4 devices */
    struct layer *layer = &world.layers[0];
    assert_int_equal(fabric_details(&world.inv, 0, &details), 0);
    layer_tell(layer, &details);
    OWNED(free) char *bytes = malloc(layer->size);
    struct fab_err err;
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        size_t start = lies[i].section == SNAP_SECTIONS ? sizeof(struct snap_head)
                                                        : snap_table(layer->bytes)[lies[i].section].offset;
        memcpy(bytes, layer->bytes, layer->size);
        assert_memory_not_equal(bytes + start + lies[i].offset, &lies[i].value, lies[i].width);
        memcpy(bytes + start + lies[i].offset, &lies[i].value, lies[i].width);
        fab_snapshot_seal(bytes);
        int rc = fab_snapshot_check(bytes, layer->size, &err);
        if (rc != PMIXFAB_ERR_CORRUPT || strstr(err.text, lies[i].about) == NULL)
            fail_msg("lie %zu about %s: %d %s", i, lies[i].about, rc, err.text);
    }
    /* places of three of the four devices: the layout is right, and what follows the third is a gap */
    memcpy(bytes, layer->bytes, layer->size);
    struct snap_entry entry = snap_table(bytes)[SNAP_PLACES];
    entry.count = 3;
    memcpy(bytes + SNAP_TABLE + SNAP_PLACES * sizeof(entry), &entry, sizeof(entry));
    memset(bytes + entry.offset + 3 * sizeof(struct fab_locality), 0, sizeof(struct fab_locality));
    ((struct snap_meta *)(bytes + sizeof(struct snap_head)))->n_places = 3;
    fab_snapshot_seal(bytes);
    must_fail(fab_snapshot_check(bytes, layer->size, &err), PMIXFAB_ERR_CORRUPT, &err, "description");
    /* a contradicted fact before the chosen one */
    struct snap_fact *facts = (struct snap_fact *)(bytes + snap_table(layer->bytes)[SNAP_FACTS].offset);
    memcpy(bytes, layer->bytes, layer->size);
    uint32_t both = 0;
    while (facts[both].kind != facts[both + 1].kind)
        both++;
    facts[both].flags &= (uint8_t)~FAB_DETAIL_CHOSEN;
    facts[both + 1].flags |= FAB_DETAIL_CHOSEN;
    fab_snapshot_seal(bytes);
    assert_int_equal(fab_snapshot_check(bytes, layer->size, NULL), PMIXFAB_ERR_CORRUPT);
}

TEST(test_bit_flips)
{
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    WORLD(world, "fattree2:2,1,2");
    struct layer *layer = &world.layers[0];
    assert_int_equal(fabric_details(&world.inv, 1, &details), 0);
    layer_tell(layer, &details);
    unsigned char *bytes = layer->bytes;
    for (size_t at = sizeof(struct snap_head); at < layer->size; at++) {
        bytes[at] ^= (unsigned char)(1u << at % 8);
        assert_int_equal(fab_snapshot_check(bytes, layer->size, NULL), PMIXFAB_ERR_CORRUPT);
        bytes[at] ^= (unsigned char)(1u << at % 8);
    }
    /* with hashes made right: refused, or safe to read */
    OWNED(free) unsigned char *copy = malloc(layer->size);
    uint64_t dice = 99;
    unsigned believed = 0;
    assert_non_null(copy);
    for (int round = 0; round < 20000; round++) {
        OWNED(pmixfab_close) struct pmixfab *fab = NULL;
        memcpy(copy, bytes, layer->size);
        size_t from = round % 2 == 0 ? sizeof(struct snap_head) : snap_table(bytes)[SNAP_PLACES].offset;
        copy[from + fabric_random_next(&dice) % (layer->size - from)] =
            (unsigned char)fabric_random_next(&dice);
        fab_snapshot_seal(copy);
        if (fab_snapshot_borrow(copy, layer->size, &fab, NULL) == 0) {
            walk_everything(fab);
            believed++;
        }
    }
    assert_true(believed > 100);
}

/* A newer writer's kinds and sources: its kinds come last and are passed over. */
TEST(test_newer_kinds)
{
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    struct pmixfab_fact fact;
    WORLD(world, "fattree2:2,1,2");
    struct layer *layer = &world.layers[0];
    assert_int_equal(fabric_details(&world.inv, 0, &details), 0);
    layer_tell(layer, &details);
    char *bytes = layer->bytes;
    const uint32_t *at = snap_section(bytes, SNAP_FACT_AT);
    struct snap_fact *facts = (struct snap_fact *)(bytes + snap_table(bytes)[SNAP_FACTS].offset);
    uint32_t n = at[1];
    facts[n - 1].kind = FAB_FACTS;
    facts[n - 2].sources = 1u << 15;
    fab_snapshot_seal(bytes);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(layer);
    assert_int_equal(pmixfab_fact(fab, 0, n - 1, &fact), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_fact(fab, 0, n - 2, &fact), 0);
    assert_int_equal(fact.sources, 1u << 15);
    assert_null(pmixfab_fact_text(fab, 0, "latency"));
    assert_non_null(pmixfab_fact_text(fab, 1, "latency"));
    walk_everything(fab);
}
