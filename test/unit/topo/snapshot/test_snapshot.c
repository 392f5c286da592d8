/* The bytes of a snapshot: made the same each time, and believed only when nothing is wrong with them. */
#include "test/fabrics/details.h"
#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"
#include "topo/plane/compile.h"

static uint64_t content_of(const struct world *world, const struct fab_snapshot_meta *meta)
{
    size_t size;
    OWNED(free) void *bytes = layer_bytes(&world->layers[0], meta, NULL, &size);
    return fab_snapshot_content(bytes);
}

/* The check on a copy that ends where memory ends, so that a sanitizer sees a step too far. */
static int check_copy(const void *bytes, size_t size, struct fab_err *err)
{
    OWNED(free) void *copy = must_have(size > 0 ? size : 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    int rc = fab_snapshot_check(copy, size, err);
    return rc;
}

TEST(test_built_is_good_and_repeatable)
{
    for (size_t f = 0; f < WORLD_FABRICS; f++) {
        WORLD(one, world_fabrics[f]);
        WORLD(two, world_fabrics[f]);
        assert_int_equal(one.planes.n, two.planes.n);
        assert_true(one.planes.n >= 1);
        for (uint32_t p = 0; p < one.planes.n; p++) {
            struct fab_err err = {""};
            must(fab_snapshot_check(one.layers[p].bytes, one.layers[p].size, &err), &err);
            assert_int_equal(one.layers[p].size, two.layers[p].size);
            assert_memory_equal(one.layers[p].bytes, two.layers[p].bytes, one.layers[p].size);
        }
    }
}

TEST(test_content_hash)
{
    SCOPED(world) other;
    WORLD(world, "fattree2:3,2,2");
    struct fab_snapshot_meta meta = world.layers[0].meta;
    uint64_t content = fab_snapshot_content(world.layers[0].bytes);

    meta.generation++;
    meta.published++;
    assert_true(content_of(&world, &meta) == content);
    for (unsigned which = 0; which < 5; which++) {
        meta = world.layers[0].meta;
        meta.index += which == 0;
        meta.is_default = which == 1 ? !meta.is_default : meta.is_default;
        meta.name = which == 2 ? "ib9" : meta.name;
        meta.vendor = which == 3 ? NULL : meta.vendor;
        meta.identifier = which == 4 ? "other" : meta.identifier;
        assert_true(content_of(&world, &meta) != content);
    }

    /* a LID is not served, a rate is */
    memset(&other, 0, sizeof(other));
    assert_int_equal(fabric_parse("fattree2:3,2,2", &other.inv), 0);
    for (uint32_t p = 0; p < other.inv.n_ports; p++)
        other.inv.ports[p].lid++;
    world_compute(&other);
    assert_true(fab_snapshot_content(other.layers[0].bytes) == content);
    world_destroy(&other);
    memset(&other, 0, sizeof(other));
    assert_int_equal(fabric_parse("fattree2:3,2,2", &other.inv), 0);
    assert_int_equal(fabric_set_rate(&other.inv, "leaf1", 3, 4, FAB_EDR), 0);
    world_compute(&other);
    assert_true(fab_snapshot_content(other.layers[0].bytes) != content);
}

TEST(test_stamp)
{
    WORLD(world, "fattree2:3,2,2");
    struct layer *layer = &world.layers[0];
    uint64_t content = fab_snapshot_content(layer->bytes);
    OWNED(pmixfab_close) struct pmixfab *fab;

    fab_snapshot_stamp(layer->bytes, 4711, -5);
    assert_true(fab_snapshot_content(layer->bytes) == content);
    assert_int_equal(fab_snapshot_borrow(layer->bytes, layer->size, &fab, NULL), 0);
    struct pmixfab_plane plane = plane_at(fab);
    assert_int_equal(plane.generation, 4711);
    assert_int_equal(plane.published, -5);
    /* stamping is what building with these values would have been */
    struct fab_snapshot_meta meta = layer->meta;
    size_t size;
    meta.generation = 4711;
    meta.published = -5;
    OWNED(free) void *bytes = layer_bytes(layer, &meta, NULL, &size);
    assert_int_equal(size, layer->size);
    assert_memory_equal(bytes, layer->bytes, size);
}

TEST(test_build_refuses)
{
    WORLD(world, "fattree2:2,1,1");
    const struct layer *l = &world.layers[0];
    void *bytes = &bytes;
    size_t size;
    static const char *const names[] = {NULL,
                                        "",
                                        ".",
                                        "..",
                                        ".hidden",
                                        "../x",
                                        "a/b",
                                        "a b",
                                        "pl\xc3\xa4ne",
                                        "a\n",
                                        "0123456789012345678901234567890123456789012345678901234567890123"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct fab_snapshot_meta meta = l->meta;
        meta.name = names[i];
        assert_int_equal(
            fab_snapshot_build(l->plane, &l->costs, &l->geometry, &l->groups, NULL, &meta, &bytes, &size),
            PMIXFAB_ERR_INVAL);
        assert_null(bytes);
    }
    struct fab_costs foreign = l->costs;
    foreign.view.n_devices++;
    for (unsigned without = 0; without <= 7;
         without++) /* each of its arguments; the last: costs of another plane */
        assert_int_equal(fab_snapshot_build(without == 0 ? NULL : l->plane,
                                            without == 1   ? NULL
                                            : without == 7 ? &foreign
                                                           : &l->costs,
                                            without == 2 ? NULL : &l->geometry,
                                            without == 3 ? NULL : &l->groups, NULL,
                                            without == 4 ? NULL : &l->meta, without == 5 ? NULL : &bytes,
                                            without == 6 ? NULL : &size),
                         PMIXFAB_ERR_INVAL);
}

/* What a flipped bit in byte `at` of a snapshot of version 4 is called. */
static int name_of_flip(size_t at, unsigned bit, uint64_t size)
{
    if (at < 12)
        return PMIXFAB_ERR_FOREIGN;
    if (at < 16)
        return at == 12 && bit == 2 ? PMIXFAB_ERR_OLDER : PMIXFAB_ERR_NEWER;
    if (at < 24)
        return size >> (8 * (at - 16) + bit) & 1 ? PMIXFAB_ERR_CORRUPT : PMIXFAB_ERR_TRUNCATED;
    return PMIXFAB_ERR_CORRUPT;
}

/* The layer's snapshot, with what hosts say of its devices. */
static void tell_facts(const struct world *world, uint64_t seed)
{
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    assert_int_equal(fabric_details(&world->inv, seed, &details), 0);
    layer_tell(&world->layers[0], &details);
}

static void flip_bits(const char *fabric, size_t step)
{
    WORLD(world, fabric);
    tell_facts(&world, 1);
    unsigned char *bytes = world.layers[0].bytes;
    size_t size = world.layers[0].size;

    for (size_t at = 0; at < size; at += at < SNAP_BODY ? 1 : step)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct fab_err err = {""};
            bytes[at] ^= (unsigned char)(1u << bit);
            int rc = fab_snapshot_check(bytes, size, &err);
            if (rc != name_of_flip(at, bit, size))
                fail_msg("bit %u of byte %zu: %d %s", bit, at, rc, err.text);
            assert_true(strlen(err.text) > 10);
            bytes[at] ^= (unsigned char)(1u << bit);
        }
    assert_int_equal(fab_snapshot_check(bytes, size, NULL), 0);
}

TEST(test_every_bit_flip)
{
    flip_bits("fattree2:2,1,2", 1);
    flip_bits("fattree3:8", 487);
}

TEST(test_every_truncation)
{
    WORLD(world, "fattree2:2,2,2");
    const struct layer *layer = &world.layers[0];
    for (size_t size = 0; size < layer->size; size++)
        must_refuse(check_copy(layer->bytes, size, fresh_err()), PMIXFAB_ERR_TRUNCATED, "cut off");
    OWNED(free) char *longer = must_have(layer->size + 8);
    memcpy(longer, layer->bytes, layer->size);
    must_refuse(fab_snapshot_check(longer, layer->size + 8, fresh_err()), PMIXFAB_ERR_CORRUPT,
                "after its end");
}

TEST(test_foreign_and_versions)
{
    WORLD(world, "fattree2:2,2,2");
    const struct layer *layer = &world.layers[0];
    struct snap_head *head = layer->bytes;
    struct fab_err err;
    char text[4096];

    memset(text, 'x', sizeof(text));
    for (size_t size = 1; size < sizeof(text); size += 13)
        assert_int_equal(check_copy(text, size, &err), PMIXFAB_ERR_FOREIGN);
    static const struct {
        uint32_t version, order;
        int code;
        const char *says;
    } heads[] = {{SNAP_OLDEST - 1, SNAP_ORDER, PMIXFAB_ERR_OLDER, "format 0"},
                 {SNAP_VERSION + 1, SNAP_ORDER, PMIXFAB_ERR_NEWER, "update libpmixfab"},
                 {SNAP_VERSION, __builtin_bswap32(SNAP_ORDER), PMIXFAB_ERR_FOREIGN, "byte order"}};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        head->version = heads[i].version;
        head->order = heads[i].order;
        fab_snapshot_seal(head);
        must_fail(fab_snapshot_check(head, layer->size, &err), heads[i].code, &err, heads[i].says);
    }
    assert_int_equal(fab_snapshot_check(NULL, 64, &err), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_snapshot_check((char *)layer->bytes + 4, layer->size - 4, &err), PMIXFAB_ERR_INVAL);
}

/* ---- a lying writer: one value is impossible, both hashes are right ---- */

struct lie {
    const char *about;
    enum snap_section section; /* SNAP_SECTIONS: the meta */
    size_t offset, width;
    uint64_t value;
};

#define META(field)                 SNAP_SECTIONS, offsetof(struct snap_meta, field)
#define FIRST(section, type, field) section, offsetof(struct type, field)

static const struct lie lies[] = {
    {"counts", META(n_devices), 4, 5},
    {"counts", META(n_devices), 4, UINT32_MAX},
    {"counts", META(n_edges), 4, UINT32_MAX},
    {"counts", META(n_groups), 4, UINT32_MAX},
    {"counts", META(string_bytes), 4, 0},
    {"dimensions", META(dims), 4, 5},
    {"dimensions", META(physical_dims), 4, UINT32_MAX},
    {"description", META(name), 4, UINT32_MAX},
    {"description", META(name), 4, 0},
    {"description", META(vendor), 4, 1u << 20},
    {"description", META(identifier), 4, 1u << 20},
    {"description", META(kind), 4, 1u << 20},
    {"description", META(is_default), 4, 2},
    {"description", META(n_unnamed), 4, 5},
    {"counts", META(n_strays), 4, 1},
    {"description", META(n_missing), 4, 1u << 20},
    {"logical", META(shape), 4, 0},
    {"logical", META(shape[3]), 4, 1},
    {"physical", META(physical_shape), 4, 0},
    {"device", FIRST(SNAP_DEVICES, snap_device, name), 4, 1u << 20},
    {"device", FIRST(SNAP_DEVICES, snap_device, sw), 4, 3},
    {"device", FIRST(SNAP_DEVICES, snap_device, sw), 4, FAB_NONE},
    {"device", FIRST(SNAP_DEVICES, snap_device, state), 1, 3},
    {"device", FIRST(SNAP_DEVICES, snap_device, seen), 1, 0},
    {"device", FIRST(SNAP_DEVICES, snap_device, seen), 1, 4},
    {"host", FIRST(SNAP_HOSTS, snap_host, name), 4, 1u << 20},
    {"host", FIRST(SNAP_HOSTS, snap_host, first), 4, 1},
    {"host", SNAP_HOSTS, sizeof(struct snap_host) + offsetof(struct snap_host, first), 4, 0},
    {"host", SNAP_HOSTS, sizeof(struct snap_host) + offsetof(struct snap_host, first), 4, 2},
    {"host", SNAP_HOSTS, sizeof(struct snap_host) + offsetof(struct snap_host, first), 4, UINT32_MAX},
    {"order of hosts", SNAP_HOSTS, sizeof(struct snap_host) + offsetof(struct snap_host, name), 4, 0},
    {"host", SNAP_HOST, 0, 4, 1},
    {"host", SNAP_HOST, 0, 4, UINT32_MAX},
    {"switch", FIRST(SNAP_SWITCHES, snap_switch, name), 4, 1u << 20},
    {"switch", FIRST(SNAP_SWITCHES, snap_switch, n_hosts), 4, 5},
    {"switch", FIRST(SNAP_SWITCHES, snap_switch, missing), 2, 1}, /* meta says that none is */
    {"switch", FIRST(SNAP_SWITCHES, snap_switch, missing), 2, 2},
    {"switch", META(n_missing), 4, 1},
    {"switch", FIRST(SNAP_SWITCHES, snap_switch, guid), 8, UINT64_MAX},
    {"link", FIRST(SNAP_LINKS, snap_link, a), 4, SNAP_END_DEVICE | 4},
    {"link", FIRST(SNAP_LINKS, snap_link, a), 4, SNAP_END_SWITCH | 3},
    {"link", FIRST(SNAP_LINKS, snap_link, b), 4, SNAP_END_OTHER},
    {"link", FIRST(SNAP_LINKS, snap_link, b), 4, SNAP_END_KIND},
    {"costs", SNAP_EDGE, 0, 4, 2},
    {"costs", SNAP_EDGE, 12, 4, UINT32_MAX},
    {"costs", SNAP_DIST, 0, 2, 1},
    {"costs", SNAP_DIST, 6, 2, 1},
    {"group", SNAP_GROUP_START, 0, 4, 1},
    {"group", SNAP_GROUP_START, 4, 4, UINT32_MAX},
    {"group", SNAP_GROUP_START, 8, 4, 3},
    {"group", SNAP_GROUP_MEMBER, 0, 4, 4},
    {"group", SNAP_GROUP_MEMBER, 0, 4, 1},
    {"name of a group", SNAP_GROUP_NAME, 4, 4, 1u << 20},
    {"rail", FIRST(SNAP_RAILS, snap_rail, unit), 4, 0},
    {"order of GUIDs", SNAP_BY_NODE, 0, 4, 4},
    {"order of GUIDs", SNAP_BY_NODE, 0, 4, 1},
    {"order of GUIDs", SNAP_BY_PORT, 12, 4, UINT32_MAX},
    {"order of GUIDs", SNAP_BY_PORT, 12, 4, 0},
    {"description", SNAP_STRINGS, 0, 1, 'x'},
};

#define FACT(i, field) SNAP_FACTS, (i) * sizeof(struct snap_fact) + offsetof(struct snap_fact, field)

static const struct lie lies_about_facts[] = {
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

/* The layer's snapshot, copied to `bytes`, with this byte changed and the hashes right. */
static void must_be_corrupt(const struct layer *layer, char *bytes, size_t at, char value)
{
    memcpy(bytes, layer->bytes, layer->size);
    bytes[at] = value;
    fab_snapshot_seal(bytes);
    assert_int_equal(fab_snapshot_check(bytes, layer->size, NULL), PMIXFAB_ERR_CORRUPT);
}

static void must_be_found(const struct layer *layer, const struct lie *lie, char *bytes)
{
    size_t start = lie->section == SNAP_SECTIONS ? sizeof(struct snap_head)
                                                 : snap_table(layer->bytes)[lie->section].offset;
    struct fab_err err = {""};
    memcpy(bytes, layer->bytes, layer->size);
    assert_memory_not_equal(bytes + start + lie->offset, &lie->value, lie->width);
    memcpy(bytes + start + lie->offset, &lie->value, lie->width);
    fab_snapshot_seal(bytes);
    int rc = fab_snapshot_check(bytes, layer->size, &err);
    if (rc != PMIXFAB_ERR_CORRUPT || strstr(err.text, lie->about) == NULL)
        fail_msg("a lie about %s: %d %s", lie->about, rc, err.text);
}

TEST(test_lies_are_found)
{
    WORLD(world, "fattree2:2,1,2"); /* 4 devices, 4 hosts, 3 switches, 2 edges, 2 groups */
    const struct layer *layer = &world.layers[0];
    OWNED(free) char *bytes = must_have(layer->size);

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
        must_be_found(layer, &lies[i], bytes);
    /* the last string without its end; a section elsewhere; something between sections */
    must_be_corrupt(layer, bytes, layer->size - 1, 'x');
    for (size_t at = SNAP_TABLE; at < SNAP_BODY; at++)
        must_be_corrupt(layer, bytes, at, ((char *)layer->bytes)[at] ^ 4);
    /* 4 devices of 40 bytes leave a gap of 32 */
    must_be_corrupt(layer, bytes, snap_table(layer->bytes)[SNAP_HOSTS].offset - 1, 1);
}

TEST(test_lies_about_facts)
{
    WORLD(world, "fattree2:2,1,2"); /* 4 devices */
    tell_facts(&world, 0);
    const struct layer *layer = &world.layers[0];
    OWNED(free) char *bytes = must_have(layer->size);
    struct fab_err err;
    for (size_t i = 0; i < sizeof(lies_about_facts) / sizeof(lies_about_facts[0]); i++)
        must_be_found(layer, &lies_about_facts[i], bytes);
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

/* Devices in the wrong rail: of 12 devices on 7 switches, the first and the second are. */
TEST(test_lies_about_rails)
{
    static const struct lie strays[] = {
        {"rail", FIRST(SNAP_STRAYS, snap_stray, device), 4, 12},
        {"rail", FIRST(SNAP_STRAYS, snap_stray, device), 4, 1},
        {"rail", FIRST(SNAP_STRAYS, snap_stray, sw), 4, 7},
        {"rail", FIRST(SNAP_STRAYS, snap_stray, unit), 4, UINT32_MAX},
        {"rail", FIRST(SNAP_RAILS, snap_rail, rail), 4, UINT32_MAX},
        {"place", META(n_strays), 4, 1},
    };
    SCOPED(fab_inventory) inv = generated("rails:2,3,2,1");
    SCOPED(fab_planes) planes = planes_of(&inv);
    struct fab_stray wrong[2] = {{0, 1, 0}, {1, FAB_NONE, 0}}, *right;
    struct layer layer;
    layer_compute(&layer, &planes.planes[0], "p", 1);
    struct fab_units *units = &layer.geometry.units;
    right = units->strays;
    units->strays = wrong;
    units->n_strays = 2;
    layer_tell(&layer, NULL);
    assert_int_equal(fab_snapshot_check(layer.bytes, layer.size, NULL), 0);
    OWNED(free) char *bytes = must_have(layer.size);
    for (size_t i = 0; i < sizeof(strays) / sizeof(strays[0]); i++)
        must_be_found(&layer, &strays[i], bytes);
    units->strays = right;
    units->n_strays = 0;
    layer_destroy(&layer);
}

/* A head that claims a size which the section table cannot fit into. */
TEST(test_tiny)
{
    _Alignas(64) char bytes[SNAP_BODY] = {0};
    struct snap_head *head = (struct snap_head *)bytes;
    memcpy(head->magic, SNAP_MAGIC, SNAP_MAGIC_SIZE);
    head->order = SNAP_ORDER;
    head->version = SNAP_VERSION;
    for (size_t size = sizeof(*head); size <= sizeof(bytes); size++) {
        head->size = size;
        fab_snapshot_seal(head);
        assert_int_equal(fab_snapshot_check(bytes, size, NULL), PMIXFAB_ERR_CORRUPT);
    }
    head->size = 0; /* a size below the head's own */
    head->checksum = fab_snapshot_checksum(head);
    assert_int_equal(fab_snapshot_check(bytes, sizeof(bytes), NULL), PMIXFAB_ERR_CORRUPT);
}

/* Random damage with right hashes: refused, or safe to read. Returns how often it is read. */
static unsigned damage(const void *bytes, size_t size, uint64_t *seed)
{
    OWNED(free) char *copy = must_have(size);
    unsigned believed = 0;
    for (int round = 0; round < 12000; round++) {
        OWNED(pmixfab_close) struct pmixfab *fab = NULL;
        memcpy(copy, bytes, size);
        for (unsigned n = 1 + fabric_random_next(seed) % 3; n > 0; n--) {
            size_t at =
                sizeof(struct snap_head) + fabric_random_next(seed) % (size - sizeof(struct snap_head));
            copy[at] = (char)fabric_random_next(seed);
        }
        fab_snapshot_seal(copy);
        if (fab_snapshot_borrow(copy, size, &fab, NULL) == 0) {
            walk_everything(fab);
            believed++;
        }
    }
    return believed;
}

/* Of today, with facts, and of version 1. */
TEST(test_random_lies_are_safe)
{
    static const char *const few[] = {"fattree2:2,1,2", "random:6,12,6:5", "torus:2,2:2"};
    uint64_t seed = 20240611;
    unsigned believed = 0; /* else the walk was not tried */
    size_t size;
    for (size_t f = 0; f < sizeof(few) / sizeof(few[0]); f++) {
        WORLD(world, few[f]);
        believed += damage(world.layers[0].bytes, world.layers[0].size, &seed);
        tell_facts(&world, 1);
        believed += damage(world.layers[0].bytes, world.layers[0].size, &seed);
    }
    assert_true(believed > 100);
    OWNED(free) char *old = read_file(TEST_DATA "/snapshot_v1.snap", &size);
    assert_true(damage(old, size, &seed) > 10);
}

/* A newer writer's kinds and sources: its kinds come last and are passed over. */
TEST(test_newer_kinds)
{
    struct pmixfab_fact fact;
    WORLD(world, "fattree2:2,1,2");
    struct layer *layer = &world.layers[0];
    tell_facts(&world, 0);
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
