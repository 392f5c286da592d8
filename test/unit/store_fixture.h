/* store_fixture.h - what the tests of the store share: a folder, odd inventories, short calls. */
#ifndef FAB_TEST_STORE_FIXTURE_H
#define FAB_TEST_STORE_FIXTURE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/store/store_priv.h"
#include "test/unit/generated.h"

#define PATH_SIZE 512

/* ---- a folder of its own, gone when the test ends ---- */

struct folder {
    char dir[100];
    char db[128];
};

static inline int folder_setup(void **state)
{
    struct folder *folder = must_have(sizeof *folder);
    const char *place = getenv("TMPDIR"); /* ./dev test: in memory, or most of the time would be the disk's */
    snprintf(folder->dir, sizeof folder->dir, "%s/fabstore.XXXXXX", place != NULL ? place : "/tmp");
    if (mkdtemp(folder->dir) == NULL) {
        free(folder);
        return -1;
    }
    snprintf(folder->db, sizeof folder->db, "%s/fabric.db", folder->dir);
    *state = folder;
    return 0;
}

static inline int folder_teardown(void **state)
{
    OWNED(free) struct folder *folder = *state;
    return remove_folder(folder->dir);
}

/* ---- short calls; what goes wrong is printed ---- */

/* An error is one line, and says which store it is about. */
static inline void check_line(const struct fab_err *err, const char *part)
{
    if (strstr(err->text, part) == NULL)
        print_error("\"%s\" is not in \"%s\"\n", part, err->text);
    assert_non_null(strstr(err->text, part));
    assert_null(strchr(err->text, '\n'));
}

static inline struct store *open_store(const char *path)
{
    struct store *store = NULL;
    must_do(store_open(path, &store, fresh_err()));
    assert_non_null(store);
    return store;
}

OWNER(store_close, struct store)

/* As after a restart of fabricd. */
static inline void open_again(struct store **store, const char *path)
{
    store_close(*store);
    *store = open_store(path);
}

static inline int publish_inventory(struct store *store, uint64_t generation,
                                    const struct fab_inventory *before, const struct fab_inventory *after,
                                    struct fab_err *err)
{
    const struct store_publication publication = {
        .generation = generation, .published = (int64_t)generation * 1000, .before = before, .after = after};
    return store_publish(store, &publication, err);
}

static inline void must_publish(struct store *store, uint64_t generation, const struct fab_inventory *before,
                                const struct fab_inventory *after)
{
    must_do(publish_inventory(store, generation, before, after, fresh_err()));
}

static inline void must_hold(struct store *store, uint64_t generation, const struct fab_inventory *inv)
{
    SCOPED(fab_inventory) loaded;
    struct fab_err err = {{0}};
    uint64_t newest;
    int64_t published;
    must(store_load_inventory(store, &loaded, &err), &err);
    assert_true(fab_inventory_equal(&loaded, inv));
    assert_int_equal(loaded.n_dangling, inv->n_dangling);
    assert_int_equal(store_generation(store, &newest, &published, &err), PMIXFAB_OK);
    assert_int_equal(newest, generation);
    assert_int_equal(published, (int64_t)generation * 1000);
}

static inline struct fab_inventory empty_inventory(void)
{
    struct fab_inventory inv = {0};
    assert_int_equal(fab_inventory_finish(&inv, NULL), PMIXFAB_OK);
    return inv;
}

/* ---- inventories with everything in them that can be ---- */

static const char *const odd_names[] = {
    "",
    "node0001",
    "O'Brien \"the\" switch",
    "'); DROP TABLE node; --",
    "Z\xc3\xbcrich \xe2\x86\x92 \xf0\x9f\x94\x8c",
    "tab\there\nnew line\rreturn\x01\x1b[31m\x7f",
    "%s%n ?1 :name @x $y",
    "\xff\xfe not UTF-8 \xc3",
    "100%_sure",
    "1234567890123456",
    "-0",
    "1e400",
};

static inline uint32_t odd_string(struct fab_inventory *inv, uint64_t *random)
{
    uint64_t pick = fabric_random_next(random) >> 8;
    size_t n = sizeof odd_names / sizeof odd_names[0];
    if (pick % 3 != 0) {
        const char *name = odd_names[pick / 3 % n];
        return fab_inventory_string(inv, name, strlen(name));
    }
    char bytes[80];
    size_t len = pick / 3 % sizeof bytes;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(1 + (fabric_random_next(random) >> 20) % 255);
    return fab_inventory_string(inv, bytes, len);
}

/* A random inventory of about `size` nodes. Those with the same seed are alike; each `variant` but 0 differs
 * from the others here and there: things missing, changed, cabled otherwise. */
struct odd {
    struct fab_inventory *inv;
    uint64_t facts, changes;
    unsigned variant;
    uint32_t slots[4096]; /* the ports that could be, alike in all variants: in the inventory, or FAB_NONE */
    uint32_t n_slots;
};

/* One in n, and never in variant 0. Draws always. */
static inline bool odd_change(struct odd *odd, unsigned n)
{
    return (fabric_random_next(&odd->changes) >> 16) % n == 0 && odd->variant != 0;
}

static inline uint64_t odd_next(struct odd *odd)
{
    return fabric_random_next(&odd->facts) >> 3;
}

static inline void odd_ports(struct odd *odd, uint32_t node, uint8_t num_ports, uint8_t kind)
{
    static const uint8_t widths[] = {0, 1, 2, 4, 8, 12};
    for (unsigned num = 1; num <= num_ports; num++) {
        struct fab_port port = {
            .guid = kind == FAB_SWITCH ? 0 : odd_next(odd) << 3 | num % 8,
            .node = node,
            .peer = FAB_NONE,
            .line = num,
            .lid = (uint16_t)odd_next(odd),
            .num = (uint8_t)num,
            .lmc = (uint8_t)(odd_next(odd) % 8),
            .state = (uint8_t)(odd_next(odd) % 5),
            .width = widths[odd_next(odd) % 6],
            .speed = (uint8_t)(odd_next(odd) % 10),
            .subnet = (uint8_t)(odd_next(odd) % odd->inv->n_subnets),
        };
        bool seen = odd_next(odd) % 8 < 5 || num == 254;
        if (odd_change(odd, 30))
            port.speed = (uint8_t)((port.speed + 1) % 10);
        if (odd_change(odd, 30))
            port.lid++;
        if (odd_change(odd, 30))
            port.missing = 1;
        if (odd_change(odd, 40))
            seen = !seen;
        uint32_t index = FAB_NONE;
        if (seen && node != FAB_NONE)
            assert_int_equal(fab_inventory_add_port(odd->inv, &port, &index), PMIXFAB_OK);
        assert_true(odd->n_slots < sizeof odd->slots / sizeof odd->slots[0]);
        odd->slots[odd->n_slots++] = index;
    }
}

static inline void odd_node(struct odd *odd, unsigned i)
{
    struct fab_inventory *inv = odd->inv;
    uint64_t edge[] = {1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    struct fab_node node = {
        .guid = i < 4 ? edge[i] : (odd_next(odd) << 8 | (i & 0xff)) ^ (uint64_t)i << 63,
        .system_guid = odd_next(odd) << 3,
        .vendor_id = (uint32_t)odd_next(odd),
        .device_id = (uint32_t)odd_next(odd),
        .line = i,
        .lid = (uint16_t)odd_next(odd),
        .chassis = (uint16_t)odd_next(odd),
        .slot_type = (uint8_t)(odd_next(odd) % 4),
        .slot = (uint8_t)odd_next(odd),
        .chip = (uint8_t)odd_next(odd),
        .kind = (uint8_t)(1 + odd_next(odd) % 4),
        .lmc = (uint8_t)(odd_next(odd) % 8),
        .enhanced = (uint8_t)(odd_next(odd) % 2),
        .unnamed = (uint8_t)(odd_next(odd) % 2),
    };
    node.num_ports = i % 16 == 5 ? 254 : (uint8_t)(1 + odd_next(odd) % 6);
    node.desc = odd_string(inv, &odd->facts);
    node.host = odd_string(inv, &odd->facts);
    node.name = odd_string(inv, &odd->facts);
    if (odd_change(odd, 10))
        node.name = odd_string(inv, &odd->changes);
    if (odd_change(odd, 20))
        node.chassis++;
    if (odd_change(odd, 20))
        node.kind = (uint8_t)(1 + node.kind % 4);
    uint32_t index = FAB_NONE; /* missing: its ports are drawn all the same */
    if (!odd_change(odd, 12))
        assert_int_equal(fab_inventory_add_node(inv, &node, &index), PMIXFAB_OK);
    odd_ports(odd, index, node.num_ports, node.kind);
}

static inline struct fab_inventory odd_inventory(unsigned size, uint64_t seed, unsigned variant)
{
    struct fab_inventory odd_one, *inv = &odd_one;
    struct odd odd = {.inv = inv,
                      .facts = seed * 0x9e3779b97f4a7c15ull + 1,
                      .changes = (seed + 77) * 31 + variant * 1009 + 5,
                      .variant = variant};
    fab_inventory_init(inv);
    for (int i = 0; i < 8; i++) { /* small seeds start alike */
        odd_next(&odd);
        fabric_random_next(&odd.changes);
    }
    inv->n_subnets = (uint32_t)(1 + odd_next(&odd) % FAB_MAX_SUBNETS);
    for (uint32_t i = 0; i < FAB_MAX_SUBNETS; i++)
        inv->subnets[i].prefix = odd_next(&odd) << 3;
    if (odd_change(&odd, 2))
        inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
    if (odd_change(&odd, 2) && inv->n_subnets < FAB_MAX_SUBNETS)
        inv->n_subnets++;
    uint32_t subnets = inv->n_subnets;
    inv->n_subnets = 1 + subnets / 3; /* so that all variants draw port subnets alike */
    for (unsigned i = 0; i < size; i++)
        odd_node(&odd, i);
    inv->n_subnets = subnets;
    for (unsigned tries = 0; tries < odd.n_slots; tries++) {
        uint32_t a = odd.slots[odd_next(&odd) % odd.n_slots], b = odd.slots[odd_next(&odd) % odd.n_slots];
        bool missing = odd_change(&odd, 30) || a == FAB_NONE || b == FAB_NONE;
        if (!missing && inv->ports[a].node != inv->ports[b].node)
            fab_inventory_link(inv, a, b); /* refused where one of them is taken */
    }
    must_do(fab_inventory_finish(inv, fresh_err()));
    return odd_one;
}

#endif
