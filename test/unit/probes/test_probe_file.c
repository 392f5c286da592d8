/* Recorded fabrics and what they must give, caches, and the probe that reads both. */
#include "test/unit/probe_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "probes/registry.h"
#include "test/fabrics/dump.h"
#include "test/fabrics/fabrics.h"
#include "topo/model/names.h"

OWNER(fab_names_free, struct fab_names)

static void name_all(struct fab_inventory *inv)
{
    OWNED(fab_names_free) struct fab_names *names;
    assert_int_equal(fab_names_new(NULL, &names, NULL), PMIXFAB_OK);
    assert_int_equal(fab_names_apply(names, inv, NULL), PMIXFAB_OK);
}

/* ---- recorded files and what they must give ---- */

static void compare_dump(const char *spec_file, const char *expect_file)
{
    char spec[512], *text = NULL;
    size_t len = 0;
    SCOPED(fab_inventory) inv = {0};
    struct fab_err err = {{0}};
    struct probe_config config = {0};
    struct blob expect = load(expect_file);
    snprintf(spec, sizeof(spec), "file:%s", spec_file);
    const struct probe *probe = probe_find(spec, &config.arg);
    assert_non_null(probe);
    if (probe->run(&config, NULL, &inv, &err) != PMIXFAB_OK)
        fail_msg("%s", err.text);
    name_all(&inv);
    FILE *out = open_memstream(&text, &len);
    fabric_dump(&inv, out);
    fclose(out);
    assert_string_equal(text, expect.data);
    free(text);
    free(expect.data);
}

TEST(test_recorded)
{
    compare_dump(TEST_DATA "/site_mixed.txt", TEST_DATA "/site_mixed.expect");
    compare_dump(TEST_DATA "/site_grouped.txt", TEST_DATA "/site_grouped.expect");
    compare_dump(TEST_DATA "/ibsim_small.txt", TEST_DATA "/ibsim_small.expect");
    compare_dump(TEST_DATA "/ibsim_small.cache", TEST_DATA "/ibsim_small.expect");
}

TEST(test_blanks_in_a_cache)
{
    struct blob whole = load(TEST_DATA "/ibsim_small.cache");
    SCOPED(fab_inventory) inv = {0};
    bool found = false;
    char *at = memmem(whole.data, whole.len, "node0004", 8);
    assert_non_null(at);
    memcpy(at, " node4\t\n", 8);
    must_do(cache_parse("f.cache", whole.data, whole.len, NULL, &inv, fresh_err()));
    name_all(&inv);
    for (uint32_t i = 0; i < inv.n_nodes; i++)
        found = found || (strcmp(fab_str(&inv, inv.nodes[i].desc), "node4") == 0 &&
                          strcmp(fab_str(&inv, inv.nodes[i].host), "node4") == 0 && !inv.nodes[i].unnamed);
    assert_true(found);
    free(whole.data);
}

/* ---- caches ---- */

static int parse_cache(const char *bytes, size_t len, struct fab_err *err, uint32_t *nodes)
{
    SCOPED(fab_inventory) inv = {0};
    OWNED(free) char *copy = must_have(len > 0 ? len : 1);
    memcpy(copy, bytes, len);
    err->text[0] = '\0';
    int rc = cache_parse("c.cache", copy, len, NULL, &inv, err);
    assert_true(rc == PMIXFAB_OK ? inv.finished : strncmp(err->text, "c.cache", 7) == 0);
    *nodes = inv.n_nodes;
    return rc;
}

TEST(test_cache_cut)
{
    struct blob whole = load(TEST_DATA "/ibsim_small.cache");
    uint32_t nodes;
    assert_true(cache_is(whole.data, whole.len));
    must_do(parse_cache(whole.data, whole.len, fresh_err(), &nodes));
    assert_int_equal(nodes, 11);
    for (size_t len = 4; len < whole.len; len++)
        assert_int_equal(parse_cache(whole.data, len, fresh_err(), &nodes), PMIXFAB_ERR_TRUNCATED);
    assert_int_equal(parse_cache(whole.data, whole.len + 1, fresh_err(), &nodes), PMIXFAB_ERR_CORRUPT);
    free(whole.data);
}

TEST(test_cache_head)
{
    static const struct {
        size_t at;
        char byte;
        int code;
    } cases[] = {
        {0, 0, PMIXFAB_ERR_FOREIGN},  {4, 0, PMIXFAB_ERR_OLDER},         {4, 2, PMIXFAB_ERR_NEWER},
        {8, 0, PMIXFAB_ERR_CORRUPT},  {11, 0x7f, PMIXFAB_ERR_TRUNCATED}, {15, 0x7f, PMIXFAB_ERR_TRUNCATED},
        {12, 0, PMIXFAB_ERR_CORRUPT},
    };
    struct blob whole = load(TEST_DATA "/ibsim_small.cache");
    struct fab_err err;
    uint32_t nodes;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char was = whole.data[cases[i].at];
        whole.data[cases[i].at] = cases[i].byte;
        if (parse_cache(whole.data, whole.len, &err, &nodes) != cases[i].code)
            fail_msg("case %zu: %s", i, err.text);
        whole.data[cases[i].at] = was;
    }
    free(whole.data);
}

/* Every byte changed, one after the other. What ties the fabric together (GUIDs, keys, numbers) is said
 * twice, so a cache that is still believed has the same nodes and cables. */
TEST(test_cache_flips)
{
    struct blob whole = load(TEST_DATA "/ibsim_small.cache");
    SCOPED(fab_inventory) all = {0};
    uint64_t random = 7;
    assert_int_equal(cache_parse("c", whole.data, whole.len, NULL, &all, NULL), PMIXFAB_OK);
    for (size_t at = 0; at < whole.len; at++) {
        SCOPED(fab_inventory) inv = {0};
        struct fab_err err = {{0}};
        char was = whole.data[at];
        whole.data[at] = (char)(was ^ (1 << fabric_random_next(&random) % 8));
        if (cache_parse("c.cache", whole.data, whole.len, NULL, &inv, &err) == PMIXFAB_OK) {
            assert_int_equal(inv.n_nodes, all.n_nodes);
            assert_int_equal(inv.n_ports, all.n_ports);
            for (uint32_t p = 0; p < inv.n_ports; p++)
                assert_true(inv.ports[p].peer == all.ports[p].peer ||
                            (inv.ports[p].peer == FAB_NONE && inv.n_dangling > 0));
        } else {
            assert_int_equal(strncmp(err.text, "c.cache", 7), 0);
        }
        whole.data[at] = was;
    }
    free(whole.data);
}

/* ---- the probe ---- */

static int run_file(const char *arg, struct fab_inventory *inv, struct fab_err *err)
{
    struct probe_config config = {0};
    const struct probe *probe = probe_find("file", NULL);
    assert_non_null(probe);
    config.arg = arg;
    fab_inventory_init(inv);
    err->text[0] = '\0';
    int rc = probe->check(&config, err);
    return rc != PMIXFAB_OK ? rc : probe->run(&config, NULL, inv, err);
}

TEST(test_probe)
{
    static const struct {
        const char *arg;
        int code;
    } cases[] = {
        {NULL, PMIXFAB_ERR_INVAL},
        {"", PMIXFAB_ERR_INVAL},
        {",prefix=0xfe80000000000001", PMIXFAB_ERR_INVAL},
        {TEST_DATA "/ibsim_small.txt,prefix=", PMIXFAB_ERR_SYNTAX},
        {TEST_DATA "/ibsim_small.txt,prefix=0", PMIXFAB_ERR_SYNTAX},
        {TEST_DATA "/ibsim_small.txt,prefix=-1", PMIXFAB_ERR_SYNTAX},
        {TEST_DATA "/ibsim_small.txt,prefix=0xfe80zz", PMIXFAB_ERR_SYNTAX},
        {TEST_DATA "/ibsim_small.txt,prefix=0x10000000000000000", PMIXFAB_ERR_SYNTAX},
        {TEST_DATA "/is/not/there", PMIXFAB_ERR_NOTFOUND},
        {TEST_DATA, PMIXFAB_ERR_IO},
        {"/dev/null", PMIXFAB_ERR_TRUNCATED},
        {TEST_DATA "/ibsim_small.txt", PMIXFAB_OK},
        {TEST_DATA "/ibsim_small.txt,prefix=0xfec0000000000001", PMIXFAB_OK},
        {TEST_DATA "/ibsim_small.cache,prefix=fec0000000000001", PMIXFAB_OK},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) inv;
        struct fab_err err;
        int rc = run_file(cases[i].arg, &inv, &err);
        if (rc != cases[i].code)
            fail_msg("case %zu gave %d \"%s\"", i, rc, err.text);
        assert_true(rc == PMIXFAB_OK || err.text[0] != '\0');
        if (rc == PMIXFAB_OK && cases[i].arg != NULL && strstr(cases[i].arg, "prefix") != NULL)
            assert_true(inv.subnets[0].prefix == 0xfec0000000000001ull);
    }
}

/* ---- the light sweep ---- */

static bool notices(const struct probe *probe, struct probe_monitor *watch)
{
    SCOPED_BY(dirty_switches_free) struct dirty_switches noticed = {0};
    assert_int_equal(probe->monitor_poll(watch, &noticed, fresh_err()), PMIXFAB_OK);
    const bool any = noticed.all || noticed.n > 0;
    return any;
}

static struct probe_monitor *watch_file(const struct probe *probe, const char *path)
{
    const struct probe_config config = {.arg = path};
    struct probe_monitor *watch = NULL;
    assert_int_equal(probe->monitor_open(&config, NULL, &watch, fresh_err()), PMIXFAB_OK);
    return watch;
}

/* A file is noticed when it is written, goes, and comes back; what is read from a pipe never is: the sweeps
 * themselves are what happens to it. */
TEST(test_noticed)
{
    const struct probe *probe = probe_find("file", NULL);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char dir[] = "/tmp/probe_file.XXXXXX", file[64], pipe[64], byte = 0;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/fabric.txt", dir);
    snprintf(pipe, sizeof(pipe), "%s/fabric.fifo", dir);

    write_file(file, "one", strlen("one"));
    struct probe_monitor *watch = watch_file(probe, file);
    notices(probe, watch); /* just written: it is, unless this machine was very slow between */
    assert_false(notices(probe, watch));
    assert_int_equal(utimensat(AT_FDCWD, file, old, 0), 0);
    assert_true(notices(probe, watch));
    assert_false(notices(probe, watch));
    assert_int_equal(unlink(file), 0);
    assert_true(notices(probe, watch));
    assert_false(notices(probe, watch));
    write_file(file, "two", strlen("two"));
    assert_true(notices(probe, watch));
    assert_false(notices(probe, watch));
    probe->monitor_close(watch);

    assert_int_equal(mkfifo(pipe, 0600), 0);
    watch = watch_file(probe, pipe);
    assert_false(notices(probe, watch));
    const int both = open(pipe, O_RDWR | O_CLOEXEC);
    assert_int_equal(write(both, "x", 1), 1);
    assert_int_equal(read(both, &byte, 1), 1);
    close(both);
    assert_false(notices(probe, watch));
    probe->monitor_close(watch);
    unlink(pipe);
    unlink(file);
    assert_int_equal(rmdir(dir), 0);
}

TEST(test_registry)
{
    const char *arg = "x";
    unsigned n = 0;
    for (; probe_registry[n]->name != NULL; n++) {
        char text[256] = "";
        const struct probe *p = probe_registry[n];
        assert_ptr_equal(probe_find(p->name, &arg), p);
        assert_null(arg);
        assert_true(p->summary != NULL && p->check != NULL);
        if (p->module) /* its functions are in a shared object of its own */
            continue;
        assert_true(p->run != NULL && p->available != NULL);
        (void)p->available(text, sizeof(text));
        assert_true(text[0] != '\0');
    }
    assert_true(n >= 1);
    assert_non_null(probe_find("file:a:b", &arg));
    assert_string_equal(arg, "a:b");
    assert_non_null(probe_find("file:", &arg));
    assert_string_equal(arg, "");
    assert_null(probe_find("fil", &arg));
    assert_null(probe_find("files", &arg));
    assert_null(probe_find("", NULL));
    assert_null(probe_find(NULL, &arg));
}
