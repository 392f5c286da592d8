/* The file that says what is about to change. */
#include "topo/snapshot/pending.h"

#include <fcntl.h>
#include <unistd.h>

#include "test/unit/test.h"

static int read_text(const char *text, size_t size, struct fab_pending *out)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, size), (ssize_t)size);
    close(ends[1]);
    int rc = fab_pending_read(ends[0], out);
    close(ends[0]);
    return rc;
}

TEST(test_there_and_back)
{
    struct fab_pending_plane planes[] = {{7, "ib0"}, {4000000000u, "eth.1_a-b"}};
    const struct fab_pending pending = {.generation = UINT64_MAX, .n = 2, .planes = planes};
    struct fab_pending back;
    OWNED(free) char *text = fab_pending_text(&pending);
    assert_string_equal(text, "generation 18446744073709551615\nplane 7 ib0\nplane 4000000000 eth.1_a-b\n");
    assert_int_equal(read_text(text, strlen(text), &back), PMIXFAB_OK);
    assert_int_equal(back.generation, pending.generation);
    assert_int_equal(back.n, 2);
    assert_memory_equal(back.planes, planes, sizeof(planes));
    fab_pending_clear(&back);
    assert_null(back.planes);
    assert_int_equal(read_text("generation 1\n", 13, &back), PMIXFAB_OK);
    assert_int_equal(back.n, 0);
}

/* Cut anywhere it is another good one or none, and nothing is read behind its end. */
TEST(test_refused)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "generation 0\n",
                                      "generation -\n",
                                      "generation 4x\n",
                                      "plane 0 ib0\n",
                                      "generation 4\nplane 0\n",
                                      "generation 4\nplane x ib0\n",
                                      "generation 4\nplane 0 ../ib0\n",
                                      "generation 4\nplane 0 ib0 ib1\n",
                                      "generation 4\nib0\n"};
    struct fab_pending out;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_text(bad[i], strlen(bad[i]), &out), PMIXFAB_ERR_CORRUPT);
        assert_null(out.planes);
        assert_int_equal(out.generation, 0);
    }
    assert_int_equal(read_text("generation 4\0plane", 18, &out), PMIXFAB_ERR_CORRUPT);
    assert_int_equal(fab_pending_read(-1, &out), PMIXFAB_ERR_IO);
}

TEST(test_too_many)
{
    struct fab_pending pending = {.generation = 4};
    OWNED(free) struct fab_pending_plane *planes = must_have((FAB_PENDING_PLANES + 1) * sizeof(*planes));
    const char *path = printed("/tmp/pmixfab-pending-%d", (int)getpid());
    pending.planes = planes;
    for (uint32_t i = 0; i <= FAB_PENDING_PLANES; i++)
        planes[i] = (struct fab_pending_plane){.index = i, .name = "ib0"};
    for (pending.n = FAB_PENDING_PLANES; pending.n <= FAB_PENDING_PLANES + 1; pending.n++) {
        struct fab_pending out;
        OWNED(free) char *text = fab_pending_text(&pending);
        write_file(path, text, strlen(text));
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(fab_pending_read(fd, &out),
                         pending.n == FAB_PENDING_PLANES ? PMIXFAB_OK : PMIXFAB_ERR_CORRUPT);
        close(fd);
        fab_pending_clear(&out);
    }
    assert_int_equal(unlink(path), 0);
}
