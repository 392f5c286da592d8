/* What leads from one report to the next: applied it gives the same as sending the whole. */

#include "test/unit/report_random.h"
#include "test/unit/wire_lies.h"
#include "topo/model/report.h"

enum { AT_BASE = 32, AT_RESULT = 40, AT_GONE = 48, AT_FIRST_GONE = 52 };

static struct message delta_of(const struct fab_report *before, const struct fab_report *after)
{
    void *bytes = NULL;
    size_t size = 0;
    assert_int_equal(fab_report_delta(before, after, &bytes, &size), 0);
    return (struct message){bytes, size};
}

static int apply(const struct fab_report *before, const uint8_t *bytes, size_t size, struct fab_report *after,
                 struct fab_err *err)
{
    SCOPED(message) exact = message_copy(bytes, size);
    return fab_report_apply(before, exact.bytes, size, after, err);
}

/* before: the report that they change. */
static void refused(const uint8_t *bytes, size_t size, int code, const void *before)
{
    struct fab_report after;
    struct fab_err err = {{0}};
    int rc = apply(before, bytes, size, &after, &err);
    assert_true(rc < 0);
    if (code != 0)
        assert_int_equal(rc, code);
    assert_true(err.text[0] != '\0');
    assert_true(after.items == NULL && after.pool == NULL && !after.finished && after.host[0] == '\0');
}

TEST(test_as_the_whole)
{
    uint64_t random = 5;
    unsigned changed = 0;

    for (unsigned round = 0; round < 600; round++) {
        SCOPED(fab_report) before, after, made;
        report_random(&before, &random, "node001", report_random_below(&random, 5),
                      report_random_below(&random, 4));
        report_random_later(&after, &before, &random, report_random_below(&random, 30));
        SCOPED(message) m = delta_of(&before, &after);
        assert_int_equal(apply(&before, m.bytes, m.size, &made, NULL), 0);
        assert_true(fab_report_equal(&after, &made));
        if (!fab_report_equal(&before, &after)) {
            changed++;
            refused(m.bytes, m.size, PMIXFAB_ERR_CONFLICT, &after);
        }
    }
    assert_in_range(changed, 200, 599);
}

/* One changed fact of a large host is a few hundred bytes. */
TEST(test_small_change_is_small)
{
    uint64_t random = 6;
    SCOPED(fab_report) before, after = {0};
    OWNED(free) void *whole;
    size_t size;

    report_random(&before, &random, "node001", 8, 8);
    assert_int_equal(fab_report_merge(&after, &before), 0);
    assert_int_equal(fab_report_host(&after, "node001", NULL), 0);
    report_say(&after, "ethernet: interface eth99");
    assert_int_equal(fab_report_finish(&after, NULL), 0);
    SCOPED(message) m = delta_of(&before, &after);
    assert_int_equal(m.size, 32 + 8 + 8 + 4 + 4 + 2 + 3 + 5);
    assert_int_equal(fab_report_encode(&after, &whole, &size), 0);
    assert_true(m.size * 20 < size);
    message_destroy(&m);
    m = delta_of(&before, &before);
    assert_int_equal(m.size, 56);
}

TEST(test_every_change_and_every_cut)
{
    uint64_t random = 8;
    SCOPED(fab_report) before, after;

    report_random(&before, &random, "node001", 2, 1);
    report_random_later(&after, &before, &random, 30);
    SCOPED(message) m = delta_of(&before, &after);
    assert_true(m.size > 100);
    refuses_flips(&m, AT_BASE, SIZE_MAX, refused, &before); /* sealed lies lead to no other report either */
    refuses_cuts(&m, refused, &before);
}

TEST(test_lies)
{
    uint64_t random = 9;
    SCOPED(fab_report) before, after;
    static const struct lie lies[] = {
        {0, 1, 'F', PMIXFAB_ERR_FOREIGN},
        {8, 4, 2, PMIXFAB_ERR_NEWER},
        {AT_BASE, 8, 0, PMIXFAB_ERR_CONFLICT},
        {AT_RESULT, 8, 0, PMIXFAB_ERR_CORRUPT},
        {AT_GONE, 4, 0, PMIXFAB_ERR_CORRUPT},
        {AT_GONE, 4, UINT32_MAX, PMIXFAB_ERR_CORRUPT},
        {AT_FIRST_GONE, 2, 4096, PMIXFAB_ERR_CORRUPT},
        {AT_FIRST_GONE + 2, 2, 0, PMIXFAB_ERR_CORRUPT}, /* not ascending */
    };

    report_random(&before, &random, "node001", 2, 1);
    after = report_said("node001", "%s", "");
    SCOPED(message) m = delta_of(&before, &after); /* all gone */
    refuses_lies(&m, lies, sizeof(lies) / sizeof(lies[0]), refused, &before);
}

TEST(test_what_cannot_be)
{
    uint64_t random = 10;
    struct fab_report a, b, unfinished = {0}, out;
    OWNED(free) void *bytes;
    size_t size;

    report_random(&a, &random, "node001", 2, 1);
    report_random(&b, &random, "node002", 2, 1);
    assert_int_equal(fab_report_host(&unfinished, "node001", NULL), 0);
    assert_int_equal(fab_report_delta(&a, &b, &bytes, &size), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_delta(&a, &unfinished, &bytes, &size), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_delta(&unfinished, &a, &bytes, &size), PMIXFAB_ERR_INVAL);
    assert_null(bytes);
    assert_int_equal(fab_report_encode(&a, &bytes, &size), 0);
    assert_int_equal(fab_report_apply(&unfinished, bytes, size, &out, NULL), PMIXFAB_ERR_INVAL);
    assert_int_equal(fab_report_apply(&a, bytes, size, &out, NULL), PMIXFAB_ERR_FOREIGN); /* a whole one */
    fab_report_destroy(&a);
    fab_report_destroy(&b);
}

/* The whole is never beyond the limit, what leads to it may be. */
TEST(test_too_long)
{
    struct fab_report reports[2];
    void *bytes;
    size_t size;

    for (int r = 0; r < 2; r++) {
        fab_report_init(&reports[r]);
        assert_int_equal(fab_report_host(&reports[r], "node001", NULL), 0);
        for (int i = 0; i < 4000; i++)
            report_say(&reports[r], "verbs: name %c%058d", 'a' + r, i);
        assert_int_equal(fab_report_finish(&reports[r], NULL), 0);
    }
    assert_int_equal(fab_report_delta(&reports[0], &reports[1], &bytes, &size), PMIXFAB_ERR_RANGE);
    assert_null(bytes);
    fab_report_destroy(&reports[0]);
    fab_report_destroy(&reports[1]);
}
