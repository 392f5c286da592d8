/* Planes in a run directory: which is opened, what is skipped, what an error is called. */
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"

/* A run directory of the test's own, one fabric whose snapshots go there, and what the library logged. */
struct fixture {
    char dir[64];
    struct world world;
    char log[8192];
};

static void keep_line(enum pmixfab_level level, const char *line, void *cbdata)
{
    struct fixture *fixture = cbdata;
    size_t used = strlen(fixture->log);
    snprintf(fixture->log + used, sizeof(fixture->log) - used, "%d %s\n", (int)level, line);
}

static int setup(void **state)
{
    struct fixture *fixture = must_have(sizeof(*fixture));
    strcpy(fixture->dir, "/tmp/pmixfab-rundir-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    world_open(&fixture->world, "fattree2:2,1,2");
    pmixfab_set_log(keep_line, fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    OWNED(free) struct fixture *fixture = *state;
    pmixfab_set_log(NULL, NULL);
    world_destroy(&fixture->world);
    return remove_folder(fixture->dir);
}

static void put_bytes(const struct fixture *fixture, const char *file, const void *bytes, size_t size)
{
    write_file(printed("%s/%s", fixture->dir, file), bytes, size);
}

static void put_plane(const struct fixture *fixture, const char *name, uint32_t index, uint32_t is_default,
                      uint64_t generation)
{
    struct fab_snapshot_meta meta = fixture->world.layers[0].meta;
    size_t size;
    meta.name = name;
    meta.index = index;
    meta.is_default = is_default;
    meta.generation = generation;
    OWNED(free) void *bytes = layer_bytes(&fixture->world.layers[0], &meta, NULL, &size);
    put_bytes(fixture, printed("%s.snap", name), bytes, size);
}

static void opens_as(const struct fixture *fixture, const char *plane, const char *expected)
{
    OWNED(pmixfab_close) struct pmixfab *fab = NULL;
    assert_int_equal(pmixfab_open_rundir(fixture->dir, plane, &fab), 0);
    struct pmixfab_plane out = plane_at(fab);
    assert_string_equal(out.name, expected);
    walk_everything(fab);
}

static void refuses(const struct fixture *fixture, const char *plane, int code)
{
    struct pmixfab *fab = (struct pmixfab *)fixture;
    assert_int_equal(pmixfab_open_rundir(fixture->dir, plane, &fab), code);
    assert_null(fab);
}

static void lists(const struct fixture *fixture, const char *expected)
{
    char **names, text[256] = "";
    size_t n;
    assert_int_equal(pmixfab_list_rundir(fixture->dir, &names, &n), 0);
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? " " : "", names[i]);
    assert_string_equal(text, expected);
    pmixfab_list_free(names, n);
}

TEST_IN(test_planes, struct fixture *fixture, setup, teardown)
{
    put_plane(fixture, "ib2", 2, 0, 9);
    put_plane(fixture, "ib0", 0, 0, 9);
    put_plane(fixture, "rail-1.a_b", 5, 1, 3);
    put_plane(fixture, "ib1", 1, 0, 9);
    lists(fixture, "rail-1.a_b ib0 ib1 ib2");
    opens_as(fixture, NULL, "rail-1.a_b");
    opens_as(fixture, "ib2", "ib2");
    put_plane(fixture, "ib1", 1, 1, 10); /* the default moved, the old file is not gone yet */
    opens_as(fixture, NULL, "ib1");
    lists(fixture, "ib1 rail-1.a_b ib0 ib2");
    assert_string_equal(fixture->log, "");
    refuses(fixture, "ib3", PMIXFAB_ERR_NOTFOUND);
    assert_non_null(strstr(fixture->log, "ib3.snap"));
}

TEST_IN(test_names_that_are_none, struct fixture *fixture, setup, teardown)
{
    static const char *const names[] = {"",        ".",   "..",  "../x", "a/b", "/etc/passwd",
                                        ".hidden", "a b", "a\n", "\xff"};
    put_plane(fixture, "ib0", 0, 1, 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        refuses(fixture, names[i], PMIXFAB_ERR_INVAL);
}

TEST_IN(test_skips_what_is_none, struct fixture *fixture, setup, teardown)
{
    const struct layer *layer = &fixture->world.layers[0];

    put_plane(fixture, "ib0", 0, 1, 1);
    put_bytes(fixture, "text.snap", "hello, world\n", 13);
    put_bytes(fixture, "empty.snap", "", 0);
    put_bytes(fixture, "short.snap", layer->bytes, layer->size / 2);
    put_bytes(fixture, "copy.snap", layer->bytes, layer->size); /* holds ib0 */
    put_bytes(fixture, ".ib0.snap.tmp", "half", 4);
    put_bytes(fixture, ".snap", "x", 1);
    put_bytes(fixture, "fabricd.uri", "x", 1);
    assert_int_equal(mkdir(printed("%s/dir.snap", fixture->dir), 0700), 0);
    assert_int_equal(mkfifo(printed("%s/fifo.snap", fixture->dir), 0600), 0);
    assert_int_equal(symlink("loop.snap", printed("%s/loop.snap", fixture->dir)), 0);
    assert_int_equal(symlink(printed("%s/nowhere", fixture->dir), printed("%s/gone.snap", fixture->dir)), 0);

    lists(fixture, "ib0");
    opens_as(fixture, NULL, "ib0");
    static const char *const skipped[] = {"text.snap", "empty.snap", "short.snap", "copy.snap",
                                          "dir.snap",  "fifo.snap",  "loop.snap"};
    for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++)
        if (strstr(fixture->log, skipped[i]) == NULL)
            fail_msg("%s is not named in: %s", skipped[i], fixture->log);
    assert_null(strstr(fixture->log, "gone.snap"));
    assert_null(strstr(fixture->log, ".tmp"));

    refuses(fixture, "text", PMIXFAB_ERR_FOREIGN);
    refuses(fixture, "empty", PMIXFAB_ERR_TRUNCATED);
    refuses(fixture, "short", PMIXFAB_ERR_TRUNCATED);
    refuses(fixture, "copy", PMIXFAB_ERR_CONFLICT);
    refuses(fixture, "dir", PMIXFAB_ERR_FOREIGN);
    refuses(fixture, "fifo", PMIXFAB_ERR_FOREIGN);
    refuses(fixture, "loop", PMIXFAB_ERR_IO);
    refuses(fixture, "gone", PMIXFAB_ERR_NOTFOUND);
}

TEST_IN(test_no_default, struct fixture *fixture, setup, teardown)
{
    const struct layer *layer = &fixture->world.layers[0];
    char **names = NULL;
    size_t n = 5;

    refuses(fixture, NULL, PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_list_rundir(fixture->dir, &names, &n), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(n, 5);
    put_plane(fixture, "ib1", 1, 0, 1);
    refuses(fixture, NULL, PMIXFAB_ERR_NOTFOUND);
    lists(fixture, "ib1");
    /* the default's file is damaged: that is the reason to give */
    OWNED(free) char *bytes = must_have(layer->size);
    memcpy(bytes, layer->bytes, layer->size);
    bytes[layer->size / 2] ^= 1;
    put_bytes(fixture, "ib0.snap", bytes, layer->size);
    refuses(fixture, NULL, PMIXFAB_ERR_CORRUPT);
    refuses(fixture, "ib0", PMIXFAB_ERR_CORRUPT);
    assert_non_null(strstr(fixture->log, "ib0.snap: snapshot damaged"));
}

TEST_IN(test_no_directory, struct fixture *fixture, setup, teardown)
{
    struct pmixfab *fab;
    char path[256], **names;
    size_t n;

    snprintf(path, sizeof(path), "%s/none", fixture->dir);
    assert_int_equal(pmixfab_open_rundir(path, NULL, &fab), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_open_rundir(path, "ib0", &fab), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_list_rundir(path, &names, &n), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_open_file(path, &fab), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_open_file(fixture->dir, &fab), PMIXFAB_ERR_FOREIGN);
    assert_non_null(strstr(fixture->log, "not a regular file"));
    if (geteuid() != 0) {
        assert_int_equal(chmod(fixture->dir, 0), 0);
        assert_int_equal(pmixfab_open_rundir(fixture->dir, NULL, &fab), PMIXFAB_ERR_PERM);
        assert_int_equal(chmod(fixture->dir, 0700), 0);
    }
}
