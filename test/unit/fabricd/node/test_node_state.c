/* The report that a node keeps over a restart: what is read is what was written, or nothing at all. */

#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/node/node_state.h"
#include "test/unit/report_random.h"
#include "test/unit/test.h"
#include "test/unit/wire_seal.h"

static char dir[] = "/tmp/fabricd-keep-XXXXXX";
static char path[sizeof(dir) + 32];

FIXTURE(make_dir)
{
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/%s", dir, NODE_STATE_FILE);
    return 0;
}

FIXTURE(remove_dir)
{
    unlink(path);
    return rmdir(dir); /* nothing else is left there */
}

static void random_keep(struct node_state *keep, uint64_t seed)
{
    memset(keep, 0, sizeof(*keep));
    report_random(&keep->report, &seed, "node017", 3, 2);
    keep->failed = 6;
    keep->unknown = 4;
    keep->announced = (struct state_announced){fab_report_digest(&keep->report), UINT64_MAX - seed, 2, 0};
}

static size_t read_bytes(uint8_t *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, room, file);
    fclose(file);
    return n;
}

/* It is as if there were none, and somebody hears why. */
static void assert_left_out(const char *host, const char *why)
{
    struct node_state out;
    struct fab_err err = {""};
    assert_true(node_state_read(dir, host, &out, &err) < 0);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, why));
    assert_true(!out.report.finished && out.report.n_items == 0);
    assert_true(out.announced.digest == 0 && out.announced.acked == 0 && out.failed == 0 && out.unknown == 0);
}

TEST(test_as_it_was)
{
    struct node_state keep, out;
    struct fab_err err = {""};
    assert_int_equal(node_state_read(dir, "node017", &out, &err), PMIXFAB_OK);
    assert_false(out.report.finished); /* there is none yet */
    assert_string_equal(err.text, "");
    for (uint64_t seed = 1; seed < 50; seed++) {
        random_keep(&keep, seed);
        assert_int_equal(node_state_write(dir, &keep, &err), PMIXFAB_OK);
        assert_int_equal(node_state_read(dir, "node017", &out, &err), PMIXFAB_OK);
        assert_true(fab_report_equal(&keep.report, &out.report));
        assert_int_equal(out.failed, keep.failed);
        assert_int_equal(out.unknown, keep.unknown);
        assert_memory_equal(&out.announced, &keep.announced, sizeof(out.announced));
        fab_report_destroy(&out.report);
        fab_report_destroy(&keep.report);
    }
    assert_left_out("node018", "it belongs to host node017");
}

TEST(test_damaged)
{
    static uint8_t good[1 << 16], bytes[1 << 16];
    struct node_state keep;
    random_keep(&keep, 7);
    assert_int_equal(node_state_write(dir, &keep, NULL), PMIXFAB_OK);
    const size_t n = read_bytes(good, sizeof(good));
    assert_true(n > 32 && n < sizeof(good));
    for (size_t i = 0; i < n; i += i < 64 ? 1 : 7) {
        memcpy(bytes, good, n);
        bytes[i] ^= (uint8_t)(1u << (i % 8));
        write_file(path, bytes, n);
        assert_left_out("node017", "");
    }
    for (size_t size = 0; size < n; size += size < 40 ? 1 : 37) {
        write_file(path, good, size);
        assert_left_out("node017", "");
    }
    memcpy(bytes, good, n);
    bytes[n] = 0;
    write_file(path, bytes, n + 1);
    assert_left_out("node017", "too many");
    for (size_t i = 32 + 24; i < n;
         i += 15) { /* sealed again: the report's own checksum is still in the way */
        memcpy(bytes, good, n);
        bytes[i] ^= 0x10;
        wire_seal(bytes, n);
        write_file(path, bytes, n);
        assert_left_out("node017", "");
    }
    fab_report_destroy(&keep.report);
}

TEST(test_no_file)
{
    struct node_state keep;
    struct fab_err err = {""};
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_left_out("node017", "not a file");
    random_keep(&keep, 8);
    must_fail(node_state_write(dir, &keep, &err), PMIXFAB_ERR_IO, &err, path);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_left_out("node017", "");
    assert_int_equal(node_state_write(dir, &keep, &err), PMIXFAB_OK); /* in its place, not through it */
    assert_int_equal(node_state_write("/nowhere/at/all", &keep, &err), PMIXFAB_ERR_IO);
    fab_report_destroy(&keep.report);
}

TEST_GROUP(make_dir, remove_dir)
