/* What a host hands to the scheduler: the whole, or what changed. */

#include "test/unit/report_random.h"
#include "test/unit/test.h"
#include "test/unit/wire_seal.h"
#include "topo/report/delivery.h"

struct message {
    void *bytes;
    size_t size;
};

/* base NULL: the whole. free(bytes) */
static struct message pack(const struct fab_report *base, const struct fab_report *report)
{
    struct fab_delivery delivery = {.digest = fab_report_digest(report)};
    struct message m;
    void *body;

    memcpy(delivery.host, report->host, sizeof(delivery.host));
    if (base == NULL) {
        assert_int_equal(fab_report_encode(report, &body, &delivery.size), 0);
    } else {
        delivery.base = fab_report_digest(base);
        assert_int_equal(fab_report_delta(base, report, &body, &delivery.size), 0);
    }
    delivery.body = body;
    assert_int_equal(fab_delivery_encode(&delivery, &m.bytes, &m.size), 0);
    assert_true(m.size <= FAB_DELIVERY_MAX);
    free(body);
    return m;
}

#define FAILED (32 + 8 + 8) /* where the sources stand that failed: any of them may */

/* Decoded and opened. */
static int take(const void *bytes, size_t size, const struct fab_report *held, struct fab_report *out,
                struct fab_err *err)
{
    struct fab_delivery delivery;
    uint8_t *exact = malloc(size > 0 ? size : 1);
    memcpy(exact, bytes, size);
    fab_report_init(out);
    int rc = fab_delivery_decode(exact, size, &delivery, err);
    if (rc == 0)
        rc = fab_delivery_open(&delivery, held, out, err);
    else
        assert_true(delivery.body == NULL && delivery.host[0] == '\0');
    free(exact);
    return rc;
}

static void assert_refused(const void *bytes, size_t size, const struct fab_report *held, int code)
{
    struct fab_report out;
    struct fab_err err = {{0}};
    int rc = take(bytes, size, held, &out, &err);
    assert_true(rc < 0);
    if (code != 0)
        assert_int_equal(rc, code);
    assert_true(err.text[0] != '\0');
    assert_true(out.items == NULL && !out.finished);
}

/* A host whose report changes, and a scheduler that has what came last. */
TEST(test_a_host_over_time)
{
    uint64_t random = 21;
    struct fab_report now, held, later, out;

    report_random(&now, &random, "node017", 4, 2);
    struct message m = pack(NULL, &now);
    assert_int_equal(take(m.bytes, m.size, NULL, &held, NULL), 0);
    assert_true(fab_report_equal(&now, &held));
    free(m.bytes);
    for (unsigned round = 0; round < 500; round++) {
        report_random_later(&later, &now, &random, 5);
        bool whole = round % 10 == 0;
        m = pack(whole ? NULL : &now, &later);
        assert_int_equal(take(m.bytes, m.size, &held, &out, NULL), 0);
        assert_true(fab_report_equal(&later, &out));
        if (!whole) {
            assert_refused(m.bytes, m.size, NULL, PMIXFAB_ERR_CONFLICT);
            if (!fab_report_equal(&now, &later))
                assert_refused(m.bytes, m.size, &later, PMIXFAB_ERR_CONFLICT);
        }
        free(m.bytes);
        fab_report_destroy(&held);
        fab_report_destroy(&now);
        held = out;
        now = later;
        if (round % 50 == 49) { /* nothing is left of it after a while: another one */
            fab_report_destroy(&now);
            fab_report_destroy(&held);
            report_random(&now, &random, "node017", 4, 2);
            assert_int_equal(fab_report_copy(&held, &now), 0);
        }
    }
    fab_report_destroy(&held);
    fab_report_destroy(&now);
}

TEST(test_every_change_and_every_cut)
{
    uint64_t random = 22;
    struct fab_report before, after;

    report_random(&before, &random, "node017", 2, 1);
    report_random_later(&after, &before, &random, 20);
    for (int whole = 0; whole < 2; whole++) {
        struct message m = pack(whole ? NULL : &before, &after);
        uint8_t *bytes = m.bytes;
        for (size_t i = 0; i < m.size; i++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                bytes[i] ^= (uint8_t)(1u << bit);
                assert_refused(bytes, m.size, &before, 0);
                if (i >= 32 &&
                    (i < FAILED ||
                     i >= FAILED + 2)) { /* sealed: the digest and the body's own sum are still in the way */
                    uint8_t sum[8];
                    memcpy(sum, bytes + 24, 8);
                    wire_seal(bytes, m.size);
                    assert_refused(bytes, m.size, &before, 0);
                    memcpy(bytes + 24, sum, 8);
                }
                bytes[i] ^= (uint8_t)(1u << bit);
            }
        }
        for (size_t size = 0; size < m.size; size++)
            assert_refused(bytes, size, &before, PMIXFAB_ERR_TRUNCATED);
        free(bytes);
    }
    fab_report_destroy(&before);
    fab_report_destroy(&after);
}

/* What is announced is what comes. */
TEST(test_lies)
{
    uint64_t random = 23;
    struct fab_report report, other, out;
    struct fab_err err = {{0}};
    struct fab_delivery d = {.host = "node018"};
    void *body;

    report_random(&report, &random, "node017", 2, 1);
    report_random(&other, &random, "node017", 2, 1);
    assert_int_equal(fab_report_encode(&report, &body, &d.size), 0);
    d.body = body;
    d.digest = fab_report_digest(&report);
    assert_int_equal(fab_delivery_open(&d, NULL, &out, &err), PMIXFAB_ERR_CONFLICT);
    assert_non_null(strstr(err.text, "node018 delivers a report of node017"));
    memcpy(d.host, "node017", 8);
    assert_int_equal(fab_delivery_open(&d, NULL, &out, &err), 0);
    assert_true(fab_report_equal(&report, &out));
    fab_report_destroy(&out);
    d.digest = fab_report_digest(&other);
    assert_int_equal(fab_delivery_open(&d, NULL, &out, &err), PMIXFAB_ERR_CONFLICT);
    assert_null(out.items);
    d.base = fab_report_digest(&other); /* a whole one that is said to be a change */
    assert_int_equal(fab_delivery_open(&d, &other, &out, &err), PMIXFAB_ERR_FOREIGN);
    free(body);
    fab_report_destroy(&report);
    fab_report_destroy(&other);
}

static void add_source(struct fab_report *report, enum fab_source source, const char *firmware)
{
    uint32_t item;
    assert_int_equal(fab_report_item(report, source, &item), 0);
    assert_int_equal(fab_report_fact(report, item, FAB_FACT_NAME, "mlx5_0"), 0);
    assert_int_equal(fab_report_fact(report, item, FAB_FACT_FIRMWARE, firmware), 0);
}

static void two_sources(struct fab_report *report, const char *verbs, const char *ucx)
{
    fab_report_init(report);
    assert_int_equal(fab_report_host(report, "node017", NULL), 0);
    if (verbs != NULL)
        add_source(report, FAB_FROM_VERBS, verbs);
    if (ucx != NULL)
        add_source(report, FAB_FROM_UCX, ucx);
    assert_int_equal(fab_report_finish(report, NULL), 0);
}

/* What was said of a source that the sender knows nothing of stands; only of that source. */
TEST(test_sources_that_are_unknown)
{
    const uint32_t ucx = 1u << FAB_FROM_UCX, verbs = 1u << FAB_FROM_VERBS;
    struct fab_report held, sent, expected, out;
    struct fab_err err = {{0}};
    struct fab_delivery d = {.host = "node017", .failed = ucx | verbs, .unknown = ucx}, back;
    void *body, *bytes;
    size_t size;

    two_sources(&held, "1.0", "2.0");
    two_sources(&sent, "1.1", NULL);
    two_sources(&expected, "1.1", "2.0");
    assert_int_equal(fab_report_encode(&sent, &body, &d.size), 0);
    d.body = body;
    d.digest = fab_report_digest(&sent);
    assert_int_equal(fab_delivery_encode(&d, &bytes, &size), 0);
    assert_int_equal(fab_delivery_decode(bytes, size, &back, NULL), 0);
    assert_int_equal(back.failed, d.failed);
    assert_int_equal(back.unknown, d.unknown);
    assert_int_equal(fab_delivery_open(&back, &held, &out, &err), 0);
    assert_true(fab_report_equal(&out, &expected));
    fab_report_destroy(&out);
    assert_int_equal(fab_delivery_open(&back, NULL, &out, &err), 0); /* nobody has ever said it */
    assert_true(fab_report_equal(&out, &sent));
    fab_report_destroy(&out);
    back.unknown = verbs; /* of which it says something all the same */
    assert_int_equal(fab_delivery_open(&back, &held, &out, &err), PMIXFAB_ERR_CORRUPT);
    assert_non_null(strstr(err.text, "verbs"));
    assert_null(out.items);
    free(bytes);

    static const uint32_t bad[][2] = {{0, 2}, {2, 6}, {1, 0}, {1u << FAB_SOURCES, 0}, {1u << 31, 0}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        d.failed = bad[i][0];
        d.unknown = bad[i][1];
        assert_int_equal(fab_delivery_encode(&d, &bytes, &size), PMIXFAB_ERR_INVAL);
    }
    free(body);
    fab_report_destroy(&held);
    fab_report_destroy(&sent);
    fab_report_destroy(&expected);
}

TEST(test_what_is_not_sent)
{
    static uint8_t body[FAB_REPORT_MAX_SIZE + 1];
    struct fab_delivery good = {.host = "node017", .digest = 1, .body = body, .size = 1}, d;
    void *bytes;
    size_t size;

    d = good;
    d.host[0] = '\0';
    assert_int_equal(fab_delivery_encode(&d, &bytes, &size), PMIXFAB_ERR_INVAL);
    d = good;
    d.digest = 0;
    assert_int_equal(fab_delivery_encode(&d, &bytes, &size), PMIXFAB_ERR_INVAL);
    d = good;
    d.size = 0;
    assert_int_equal(fab_delivery_encode(&d, &bytes, &size), PMIXFAB_ERR_INVAL);
    d = good;
    d.size = sizeof(body);
    assert_int_equal(fab_delivery_encode(&d, &bytes, &size), PMIXFAB_ERR_RANGE);
    assert_null(bytes);
    memset(d.host, 'n', FAB_HOST_MAX); /* the largest that there can be */
    d.size = FAB_REPORT_MAX_SIZE;
    assert_int_equal(fab_delivery_encode(&d, &bytes, &size), 0);
    assert_true(size <= FAB_DELIVERY_MAX);
    assert_int_equal(fab_delivery_decode(bytes, size, &good, NULL), 0);
    assert_string_equal(good.host, d.host);
    assert_int_equal(good.size, d.size);
    free(bytes);
}
