/* A report as bytes: there and back, and nothing else gets in. */

#include "test/unit/report_random.h"
#include "test/unit/wire_lies.h"
#include "topo/model/report.h"

/* Where things stand in the bytes of a report of "node001". */
enum { AT_VERSION = 8, AT_ZERO = 12, AT_TOTAL = 16, AT_NAME = 32, AT_ITEMS = 40, AT_ITEM = 44, AT_FACT = 46 };

static struct message encode(const struct fab_report *report)
{
    void *bytes = NULL;
    size_t size = 0;
    assert_int_equal(fab_report_encode(report, &bytes, &size), 0);
    assert_true(bytes != NULL && size <= FAB_REPORT_MAX_SIZE);
    return (struct message){bytes, size};
}

static struct message encode_small(void)
{
    uint64_t random = 3;
    SCOPED(fab_report) report;
    report_random(&report, &random, "node001", 2, 1);
    struct message m = encode(&report);
    return m;
}

static int decode(const uint8_t *bytes, size_t size, struct fab_report *report, struct fab_err *err)
{
    SCOPED(message) exact = message_copy(bytes, size);
    return fab_report_decode(exact.bytes, size, report, err);
}

static void refused(const uint8_t *bytes, size_t size, int code, const void *cbdata)
{
    struct fab_report report;
    struct fab_err err = {{0}};
    int rc = decode(bytes, size, &report, &err);
    (void)cbdata;
    assert_true(rc < 0);
    if (code != 0)
        assert_int_equal(rc, code);
    assert_true(err.text[0] != '\0');
    assert_true(report.n_items == 0 && report.items == NULL && report.pool == NULL);
    assert_true(!report.finished && report.host[0] == '\0');
}

TEST(test_there_and_back)
{
    uint64_t random = 99;
    for (unsigned round = 0; round < 500; round++) {
        SCOPED(fab_report) a, b;
        report_random(&a, &random, "node001.cluster", report_random_below(&random, 5),
                      report_random_below(&random, 4));
        SCOPED(message) m = encode(&a);
        assert_int_equal(decode(m.bytes, m.size, &b, NULL), 0);
        assert_true(fab_report_equal(&a, &b));
        assert_int_equal(fab_report_digest(&a), fab_report_digest(&b));
        assert_true(fab_report_digest(&a) == XXH3_64bits(m.bytes, m.size));
        SCOPED(message) again = encode(&b);
        assert_int_equal(again.size, m.size);
        assert_memory_equal(again.bytes, m.bytes, m.size);
    }
}

TEST(test_the_bytes_are_these)
{
    static const uint8_t body[] = {7, 'n', 'o', 'd', 'e', '0', '0', '1', 1,  0, 0, 0,   1,   2,  1,
                                   0, 6,   'm', 'l', 'x', '5', '_', '0', 30, 1, 3, '1', '8', '8'};
    SCOPED(fab_report) report = report_said("node001", "verbs: ~bandwidth 188, name mlx5_0");
    SCOPED(message) m = encode(&report);
    assert_int_equal(m.size, 32 + sizeof(body));
    assert_memory_equal(m.bytes, "fabhost\n\1\0\0\0\0\0\0\0", 16);
    assert_memory_equal(m.bytes + 32, body, sizeof(body));
    uint8_t sum[8];
    memcpy(sum, m.bytes + 24, 8);
    wire_seal(m.bytes, m.size);
    assert_memory_equal(m.bytes + 24, sum, 8);
}

TEST(test_unfinished_is_not_sent)
{
    struct fab_report report;
    void *bytes = &report;
    size_t size = 1;
    fab_report_init(&report);
    assert_int_equal(fab_report_host(&report, "node001", NULL), 0);
    assert_int_equal(fab_report_encode(&report, &bytes, &size), PMIXFAB_ERR_INVAL);
    assert_null(bytes);
    assert_int_equal(size, 0);
    assert_int_equal(fab_report_digest(&report), 0);
}

TEST(test_every_change_and_every_cut)
{
    SCOPED(message) m = encode_small();
    for (size_t i = 0; i < m.size; i++) {
        uint8_t was = m.bytes[i];
        for (unsigned value = 0; value < 256; value += i % 16 == 0 ? 1 : 37) {
            m.bytes[i] = (uint8_t)value;
            if (value != was)
                refused(m.bytes, m.size, 0, NULL);
        }
        m.bytes[i] = was;
    }
    refuses_cuts(&m, refused, NULL);
}

/* A writer that lies and seals its lies. */
TEST(test_lies)
{
    SCOPED(message) m = encode_small();
    OWNED(free) uint8_t *copy = malloc(m.size);
    struct fab_report report;
    static const struct lie lies[] = {
        {0, 1, 'F', PMIXFAB_ERR_FOREIGN},
        {AT_VERSION, 4, 2, PMIXFAB_ERR_NEWER},
        {AT_VERSION, 4, 0, PMIXFAB_ERR_OLDER},
        {AT_ZERO, 4, 1, PMIXFAB_ERR_CORRUPT},
        {AT_NAME, 1, 0, PMIXFAB_ERR_SYNTAX},
        {AT_NAME, 1, 255, PMIXFAB_ERR_CORRUPT},
        {AT_NAME + 1, 1, '/', PMIXFAB_ERR_SYNTAX},
        {AT_NAME + 1, 1, 0, PMIXFAB_ERR_CORRUPT},
        {AT_ITEMS, 4, 0, PMIXFAB_ERR_CORRUPT},
        {AT_ITEMS, 4, 1, PMIXFAB_ERR_CORRUPT},
        {AT_ITEMS, 4, UINT32_MAX, PMIXFAB_ERR_CORRUPT},
        {AT_ITEM, 1, FAB_FROM_SUBNET, PMIXFAB_ERR_CORRUPT},
        {AT_ITEM, 1, FAB_SOURCES, PMIXFAB_ERR_CORRUPT},
        {AT_ITEM + 1, 1, 0, PMIXFAB_ERR_CORRUPT},
        {AT_ITEM + 1, 1, 255, 0},
        {AT_FACT, 1, 0, PMIXFAB_ERR_CORRUPT},
        {AT_FACT, 1, FAB_FACTS, PMIXFAB_ERR_CORRUPT},
        {AT_FACT, 1, FAB_FACT_PORT, 0},
        {AT_FACT + 1, 1, 2, PMIXFAB_ERR_CORRUPT},
        {AT_FACT + 2, 1, 0, PMIXFAB_ERR_CORRUPT},
        {AT_FACT + 3, 1, 0, PMIXFAB_ERR_CORRUPT},
        {AT_FACT + 3, 1, '\n', PMIXFAB_ERR_SYNTAX},
        {AT_FACT + 3, 1, 0xff, PMIXFAB_ERR_SYNTAX},
    };
    refuses_lies(&m, lies, sizeof(lies) / sizeof(lies[0]), refused, NULL);
    memcpy(copy, m.bytes, m.size);
    wire_seal(copy, m.size); /* the seal is the true one */
    assert_int_equal(decode(copy, m.size, &report, NULL), 0);
    fab_report_destroy(&report);
    wire_put(copy + AT_TOTAL, FAB_REPORT_MAX_SIZE + 1, 8);
    refused(copy, m.size, PMIXFAB_ERR_CORRUPT, NULL);
    assert_int_equal(fab_report_decode(NULL, 0, &report, NULL), PMIXFAB_ERR_TRUNCATED);
}

/* Whatever is let in is a finished report, and one that can be sent on. */
TEST(test_random_lies)
{
    SCOPED(message) m = encode_small();
    OWNED(free) uint8_t *copy = malloc(m.size);
    uint64_t random = 17;
    unsigned let_in = 0;

    for (unsigned round = 0; round < 20000; round++) {
        struct fab_report report, back;
        memcpy(copy, m.bytes, m.size);
        for (uint32_t n = 1 + report_random_below(&random, 3); n > 0; n--)
            copy[32 + report_random_below(&random, (uint32_t)m.size - 32)] =
                (uint8_t)(report_random_below(&random, 2) == 0 ? '1' : fabric_random_next(&random) >> 20);
        wire_seal(copy, m.size);
        if (decode(copy, m.size, &report, NULL) != 0)
            continue;
        let_in++;
        SCOPED(message) again = encode(&report);
        assert_int_equal(decode(again.bytes, again.size, &back, NULL), 0);
        assert_true(fab_report_equal(&report, &back));
        fab_report_destroy(&back);
        fab_report_destroy(&report);
    }
    assert_in_range(let_in, 100, 19000);
}

/* What is not in order is put in order. */
TEST(test_other_writers_order)
{
    uint8_t bytes[] = "0123456789abcdef0123456789abcdef"
                      "\7node001\3\0\0\0"
                      "\2\1\1\0\1b"
                      "\1\2\2\0\1\061\1\0\1a"
                      "\2\2\1\0\1b\1\1\1b";
    size_t size = sizeof(bytes) - 1;
    SCOPED(fab_report) report;

    memcpy(bytes, "fabhost\n\1\0\0\0\0\0\0\0", 16);
    wire_seal(bytes, size);
    assert_int_equal(decode(bytes, size, &report, NULL), 0);
    assert_int_equal(report.n_items, 2);
    assert_int_equal(report.n_facts, 3);
    assert_string_equal(fab_report_text(&report, 0, FAB_FACT_NAME), "a");
}
