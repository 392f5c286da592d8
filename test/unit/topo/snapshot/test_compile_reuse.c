/* Snapshots built from the one before, held against those from nothing, over chains of random edits. */
#include "test/fabrics/details.h"
#include "test/unit/edits.h"
#include "test/unit/snapshot_world.h"
#include "topo/base/string_table.h"
#include "topo/snapshot/reader.h"

/* A fabric and what is said of its devices. */
struct site {
    struct fab_inventory inv;
    struct fab_details details;
    bool told;
};

static void *build(const struct site *site, const struct pmixfab *before, size_t *size)
{
    SCOPED(layer) layer;
    const struct fab_snapshot_meta meta = {
        .name = "ib0", .vendor = "Mellanox", .generation = 1, .before = before};
    SCOPED(fab_planes) planes = planes_of(&site->inv);
    assert_true(planes.n > 0);
    layer_make(&layer, &planes.planes[0], &meta, site->told ? &site->details : NULL);
    void *bytes = layer.bytes;
    *size = layer.size;
    layer.bytes = NULL;
    return bytes;
}

static struct pmixfab *open_checked(const void *bytes, size_t size)
{
    struct pmixfab *fab;
    must_do(fab_snapshot_borrow(bytes, size, &fab, fresh_err()));
    return fab;
}

/* ---- the same, but for the places of strings ------------------------------------------------------- */

static void same_text(const struct pmixfab *a, uint32_t *at, const struct pmixfab *b, uint32_t *bt)
{
    assert_string_equal(fab_reader_string(a, *at), fab_reader_string(b, *bt));
    *at = *bt = 0;
}

#define TEXTS_OF(which, type, field)                                                                         \
    case which:                                                                                              \
        for (size_t i = 0; i < n; i++)                                                                       \
            same_text(a, &((type *)x)[i].field, b, &((type *)y)[i].field);                                   \
        break

static void same_section(const struct pmixfab *a, const struct pmixfab *b, enum snap_section which)
{
    const struct snap_entry *p = &snap_table(a->head)[which], *q = &snap_table(b->head)[which];
    size_t n = p->count, size = n * p->element;
    assert_int_equal(p->offset, q->offset);
    assert_int_equal(p->count, q->count);
    char *x = must_have(2 * size + 1), *y = x + size;
    memcpy(x, snap_section(a->head, which), size);
    memcpy(y, snap_section(b->head, which), size);
    switch (which) {
        TEXTS_OF(SNAP_DEVICES, struct snap_device, name);
        TEXTS_OF(SNAP_HOSTS, struct snap_host, name);
        TEXTS_OF(SNAP_SWITCHES, struct snap_switch, name);
        TEXTS_OF(SNAP_FACTS, struct snap_fact, text);
    case SNAP_GROUP_NAME:
        for (size_t i = 0; i < n; i++)
            same_text(a, (uint32_t *)x + i, b, (uint32_t *)y + i);
        break;
    default:
        break;
    }
    assert_memory_equal(x, y, size);
    free(x);
}

static void same(const struct pmixfab *a, const struct pmixfab *b)
{
    struct snap_meta x = *a->meta, y = *b->meta;
    same_text(a, &x.name, b, &y.name);
    same_text(a, &x.vendor, b, &y.vendor);
    same_text(a, &x.identifier, b, &y.identifier);
    same_text(a, &x.kind, b, &y.kind);
    x.string_bytes = y.string_bytes = 0;
    assert_memory_equal(&x, &y, sizeof(x));
    for (unsigned s = 0; s < SNAP_SECTIONS; s++)
        if (s != SNAP_STRINGS)
            same_section(a, b, (enum snap_section)s);
}

/* plain: of the same, from nothing, so it has nothing that is not used. */
static void tidy(const struct pmixfab *again, const struct pmixfab *plain)
{
    size_t used = plain->meta->string_bytes, idle = used / 8 > 4096 ? used / 8 : 4096;
    assert_in_range(again->meta->string_bytes, used, used + idle);
    for (uint32_t i = 1; i < again->meta->string_bytes; i += (uint32_t)strlen(again->strings + i) + 1)
        for (uint32_t k = 1; k < i; k += (uint32_t)strlen(again->strings + k) + 1)
            if (strcmp(again->strings + i, again->strings + k) == 0)
                fail_msg("\"%s\" stands twice", again->strings + i);
}

/* ---- chains of edits --------------------------------------------------------------------------------- */

/* A few facts say something else: what nobody has said, or what others say. */
static void say_otherwise(struct site *site, struct edits_source *source)
{
    struct fab_details *details = &site->details;
    uint32_t n = details->first[details->n_ports];
    for (unsigned i = edits_roll(source, 12); n > 0 && i > 0; i--) {
        struct fab_detail *fact = &details->facts[edits_roll(source, n)];
        char text[64];
        int len = snprintf(text, sizeof(text), "firmware %u%s", source->next++,
                           edits_roll(source, 2) == 0 ? "" : ", with a longer text");
        if (edits_roll(source, 3) == 0) {
            fact->text = details->facts[edits_roll(source, n)].text;
            continue;
        }
        details->pool = realloc(details->pool, details->pool_size + sizeof(text));
        assert_non_null(details->pool);
        memcpy(details->pool + details->pool_size, text, (size_t)len + 1);
        fact->text = details->pool_size;
        details->pool_size += (uint32_t)len + 1;
    }
}

static void edit(struct site *site, struct edits_source *source)
{
    unsigned what = edits_roll(source, 8);
    if (what == 0)
        edits_random(&site->inv, source, (1u << EDITS_KINDS) - 1, 3);
    if (what <= 1) {
        fabric_details_destroy(&site->details);
        assert_int_equal(fabric_details(&site->inv, edits_roll(source, 3), &site->details), 0);
    }
    site->told = what == 2 ? !site->told : site->told;
    say_otherwise(site, source);
}

/* One step of a chain; what it leaves takes the place of *last. */
static void step(const struct site *site, void **last, size_t *last_size, unsigned *tidied)
{
    size_t size, plain_size, twice_size;
    OWNED(pmixfab_close) struct pmixfab *before = *last == NULL ? NULL : open_checked(*last, *last_size);
    void *bytes = build(site, before, &size), *plain_bytes = build(site, NULL, &plain_size);
    OWNED(pmixfab_close)
    struct pmixfab *again = open_checked(bytes, size), *plain = open_checked(plain_bytes, plain_size);
    same(again, plain);
    tidy(again, plain);
    *tidied += before != NULL && before->meta->string_bytes > again->meta->string_bytes;
    OWNED(free) void *twice = build(site, again, &twice_size);
    assert_int_equal(twice_size, size);
    assert_memory_equal(twice, bytes, size);
    free(plain_bytes);
    free(*last);
    *last = bytes;
    *last_size = size;
}

TEST(chains)
{
    static const char *const fabrics[] = {"fattree2:4,2,3", "fattree3:4", "dragonfly:2,3,1", "torus:3,4:2",
                                          "random:12,40,20:7"};
    unsigned tidied = 0;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        struct edits_source source = {1 + f, 1};
        struct site site = {.told = true};
        OWNED(free) void *last = NULL;
        size_t size = 0;
        assert_int_equal(fabric_parse(fabrics[f], &site.inv), 0);
        assert_int_equal(fabric_details(&site.inv, 0, &site.details), 0);
        for (unsigned i = 0; i < 150 && site.inv.n_nodes > 4; i++) {
            step(&site, &last, &size, &tidied);
            edit(&site, &source);
        }
        fabric_details_destroy(&site.details);
        fab_inventory_destroy(&site.inv);
    }
    assert_true(tidied > 3);
}

/* ---- the strings themselves ---------------------------------------------------------------------------- */
