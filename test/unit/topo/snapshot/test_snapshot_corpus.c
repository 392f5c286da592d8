/* The fuzzer's corpus of snapshots is what its file names say. With FAB_WRITE_CORPUS=DIR it is written anew
 * there, which a change of the format needs. valid-v1-*, -v2-* and -v3-* were written by the last programs
 * that wrote versions 1 to 3. */
#include <dirent.h>

#include "test/fabrics/details.h"
#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"

#define CORPUS TEST_DATA "/../fuzz/corpus/snapshot"

static void write_input(const char *dir, const char *name, const void *bytes, size_t size)
{
    write_file(printed("%s/%s", dir, name), bytes, size);
}

static void write_valid(const char *dir, const char *name, const struct world *world)
{
    write_input(dir, name, world->layers[0].bytes, world->layers[0].size);
}

static void write_broken(const char *dir)
{
    WORLD(world, "fattree2:2,1,2");
    char *bytes = world.layers[0].bytes;
    size_t size = world.layers[0].size;
    struct snap_head *head = world.layers[0].bytes;

    write_input(dir, "truncated-empty", bytes, 0);
    write_input(dir, "truncated-head", bytes, 40);
    write_input(dir, "truncated-table", bytes, 300);
    write_input(dir, "truncated-end", bytes, size - 1);
    write_input(dir, "foreign-text", "Switch 36 \"S-0002\"\n", 19);
    bytes[size / 2] ^= 1;
    write_input(dir, "corrupt-bit", bytes, size);
    bytes[size / 2] ^= 1;
    head->version = SNAP_VERSION + 1;
    fab_snapshot_seal(bytes);
    write_input(dir, "newer", bytes, size);
    head->version = 0;
    fab_snapshot_seal(bytes);
    write_input(dir, "older", bytes, size);
    head->version = SNAP_VERSION;
    head->order = __builtin_bswap32(SNAP_ORDER);
    fab_snapshot_seal(bytes);
    write_input(dir, "foreign-order", bytes, size);
    head->order = SNAP_ORDER;
    uint32_t far = UINT32_MAX;
    memcpy(bytes + snap_table(bytes)[SNAP_EDGE].offset, &far, sizeof(far));
    fab_snapshot_seal(bytes);
    write_input(dir, "corrupt-edge", bytes, size);
    memcpy(bytes + sizeof(*head) + offsetof(struct snap_meta, n_edges), &far, sizeof(far));
    fab_snapshot_seal(bytes);
    write_input(dir, "corrupt-counts", bytes, size);
}

static void write_facts(const char *dir)
{
    struct fab_details details;

    WORLD(world, "random:3,9,2:3");
    struct layer *layer = &world.layers[0];
    for (uint64_t seed = 0; seed <= 1; seed++) {
        assert_int_equal(fabric_details(&world.inv, seed, &details), 0);
        layer_tell(layer, &details);
        write_valid(dir, seed == 0 ? "valid-facts" : "valid-facts-some", &world);
        fabric_details_destroy(&details);
    }
    char *bytes = layer->bytes;
    uint32_t far = UINT32_MAX;
    memcpy(bytes + snap_table(bytes)[SNAP_FACT_AT].offset + sizeof(far), &far, sizeof(far));
    fab_snapshot_seal(bytes);
    write_input(dir, "corrupt-fact-at", bytes, layer->size);
}

static void write_corpus(const char *dir)
{
    static const char *const valid[][2] = {
        {"valid-fattree2", "fattree2:2,1,2"}, {"valid-dragonfly", "dragonfly:1,2,1"},
        {"valid-torus", "torus:3,3:1"},       {"valid-mesh", "mesh:2,2:2"},
        {"valid-random", "random:5,9,4:3"},   {"valid-rails", "rails:2,3,2,1"},
    };
    SCOPED(world) world;

    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
        world_open(&world, valid[i][1]);
        write_valid(dir, valid[i][0], &world);
        world_destroy(&world);
    }
    memset(&world, 0, sizeof(world));
    assert_int_equal(fabric_parse("fattree2:2,1,2", &world.inv), 0);
    world.inv.nodes[fabric_find(&world.inv, "leaf2")].missing = 1;
    world_compute(&world);
    write_valid(dir, "valid-missing", &world);
    world_destroy(&world);
    world_odd(&world);
    write_valid(dir, "valid-odd", &world);
    world_destroy(&world);
    world_empty(&world);
    write_valid(dir, "valid-empty", &world);
    write_facts(dir);
    write_broken(dir);
}

static int expected_of(const char *name)
{
    static const struct {
        const char *prefix;
        int rc;
    } names[] = {{"valid", 0},
                 {"truncated", PMIXFAB_ERR_TRUNCATED},
                 {"foreign", PMIXFAB_ERR_FOREIGN},
                 {"older", PMIXFAB_ERR_OLDER},
                 {"newer", PMIXFAB_ERR_NEWER},
                 {"corrupt", PMIXFAB_ERR_CORRUPT}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(name, names[i].prefix, strlen(names[i].prefix)) == 0)
            return names[i].rc;
    return 1; /* found by the fuzzer: whatever it is, it must be safe */
}

TEST(test_corpus)
{
    const char *to = getenv("FAB_WRITE_CORPUS");
    if (to != NULL)
        write_corpus(to);
    DIR *dir = opendir(CORPUS);
    unsigned n = 0;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct pmixfab *fab = NULL;
        if (entry->d_name[0] == '.')
            continue;
        const char *path = printed(CORPUS "/%s", entry->d_name);
        int rc = pmixfab_open_file(path, &fab), expected = expected_of(entry->d_name);
        if (expected != 1 && rc != expected)
            fail_msg("%s: %d %s: see FAB_WRITE_CORPUS above", path, rc, pmixfab_strerror(rc));
        if (rc == 0)
            walk_everything(fab);
        pmixfab_close(fab);
        n++;
    }
    closedir(dir);
    assert_true(n >= 26);
}
