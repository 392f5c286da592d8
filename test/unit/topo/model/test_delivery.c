/* What a host hands to the scheduler: the whole, or what changed. */

#include "test/unit/report_random.h"
#include "test/unit/wire_lies.h"
#include "topo/model/delivery.h"

/* base NULL: the whole. */
static struct message pack(const struct fab_report *base, const struct fab_report *report)
{
    struct fab_delivery delivery = {.digest = fab_report_digest(report),
                                    .base = base == NULL ? 0 : fab_report_digest(base)};
    struct message m;
    void *bytes;
    OWNED(free) void *body = NULL;
    memcpy(delivery.host, report->host, sizeof(delivery.host));
    assert_int_equal(base == NULL ? fab_report_encode(report, &body, &delivery.size)
                                  : fab_report_delta(base, report, &body, &delivery.size),
                     0);
    delivery.body = body;
    assert_int_equal(fab_delivery_encode(&delivery, &bytes, &m.size), 0);
    assert_true(m.size <= FAB_DELIVERY_MAX);
    m.bytes = bytes;
    return m;
}

#define FAILED (32 + 8 + 8) /* where the sources stand that failed: any of them may */

/* Decoded and opened. */
static int take(const void *bytes, size_t size, const struct fab_report *held, struct fab_report *out,
                struct fab_err *err)
{
    struct fab_delivery delivery;
    SCOPED(message) exact = message_copy(bytes, size);
    fab_report_init(out);
    int rc = fab_delivery_decode(exact.bytes, size, &delivery, err);
    if (rc == 0)
        rc = fab_delivery_open(&delivery, held, out, err);
    else
        assert_true(delivery.body == NULL && delivery.host[0] == '\0');
    return rc;
}

static void refused(const uint8_t *bytes, size_t size, int code, const void *held)
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
    SCOPED(fab_report) now, held;
    struct fab_report later, out;

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
            refused(m.bytes, m.size, PMIXFAB_ERR_CONFLICT, NULL);
            if (!fab_report_equal(&now, &later))
                refused(m.bytes, m.size, PMIXFAB_ERR_CONFLICT, &later);
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
}

TEST(test_every_change_and_every_cut)
{
    uint64_t random = 22;
    SCOPED(fab_report) before, after;

    report_random(&before, &random, "node017", 2, 1);
    report_random_later(&after, &before, &random, 20);
    for (int whole = 0; whole < 2; whole++) {
        SCOPED(message) m = pack(whole ? NULL : &before, &after);
        /* sealed: the digest and the body's own sum are still in the way */
        refuses_flips(&m, 32, FAILED, refused, &before);
        refuses_cuts(&m, refused, &before);
    }
}

/* What is announced is what comes. */
TEST(test_lies)
{
    uint64_t random = 23;
    SCOPED(fab_report) report, other;
    struct fab_report out;
    struct fab_err err = {{0}};
    struct fab_delivery d = {.host = "node018"};
    OWNED(free) void *body;

    report_random(&report, &random, "node017", 2, 1);
    report_random(&other, &random, "node017", 2, 1);
    assert_int_equal(fab_report_encode(&report, &body, &d.size), 0);
    d.body = body;
    d.digest = fab_report_digest(&report);
    must_fail(fab_delivery_open(&d, NULL, &out, &err), PMIXFAB_ERR_CONFLICT, &err,
              "node018 delivers the report of node017");
    memcpy(d.host, "node017", 8);
    assert_int_equal(fab_delivery_open(&d, NULL, &out, &err), 0);
    assert_true(fab_report_equal(&report, &out));
    fab_report_destroy(&out);
    d.digest = fab_report_digest(&other);
    assert_int_equal(fab_delivery_open(&d, NULL, &out, &err), PMIXFAB_ERR_CONFLICT);
    assert_null(out.items);
    d.base = fab_report_digest(&other); /* a whole one that is said to be a change */
    assert_int_equal(fab_delivery_open(&d, &other, &out, &err), PMIXFAB_ERR_FOREIGN);
}

#define VERBS "verbs: name mlx5_0, firmware "
#define UCX   "ucx: name mlx5_0, firmware "

/* What was said of a source that the sender knows nothing of stands; only of that source. */
TEST(test_sources_that_are_unknown)
{
    const uint32_t ucx = 1u << FAB_FROM_UCX, verbs = 1u << FAB_FROM_VERBS;
    SCOPED(fab_report) held = report_said("node017", VERBS "1.0\n" UCX "2.0");
    SCOPED(fab_report) sent = report_said("node017", VERBS "1.1");
    SCOPED(fab_report) expected = report_said("node017", VERBS "1.1\n" UCX "2.0");
    struct fab_report out;
    struct fab_err err = {{0}};
    struct fab_delivery d = {.host = "node017", .failed = ucx | verbs, .unknown = ucx}, back;
    void *body, *bytes;
    size_t size;

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
    must_fail(fab_delivery_open(&back, &held, &out, &err), PMIXFAB_ERR_CORRUPT, &err, "verbs");
    assert_null(out.items);
    free(bytes);

    static const uint32_t bad[][2] = {{0, 2}, {2, 6}, {1, 0}, {1u << FAB_SOURCES, 0}, {1u << 31, 0}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        d.failed = bad[i][0];
        d.unknown = bad[i][1];
        assert_int_equal(fab_delivery_encode(&d, &bytes, &size), PMIXFAB_ERR_INVAL);
    }
    free(body);
}

TEST(test_what_is_not_sent)
{
    static uint8_t body[FAB_REPORT_MAX_SIZE + 1];
    struct fab_delivery good = {.host = "node017", .digest = 1, .body = body, .size = 1}, d;
    OWNED(free) void *bytes;
    size_t size;

    for (unsigned bad = 0; bad < 4; bad++) {
        d = good;
        d.host[0] = bad == 0 ? '\0' : d.host[0];
        d.digest = bad == 1 ? 0 : d.digest;
        d.size = bad == 2 ? 0 : bad == 3 ? sizeof(body) : d.size;
        assert_int_equal(fab_delivery_encode(&d, &bytes, &size),
                         bad == 3 ? PMIXFAB_ERR_RANGE : PMIXFAB_ERR_INVAL);
    }
    assert_null(bytes);
    memset(d.host, 'n', FAB_HOST_MAX); /* the largest that there can be */
    d.size = FAB_REPORT_MAX_SIZE;
    assert_int_equal(fab_delivery_encode(&d, &bytes, &size), 0);
    assert_true(size <= FAB_DELIVERY_MAX);
    assert_int_equal(fab_delivery_decode(bytes, size, &good, NULL), 0);
    assert_string_equal(good.host, d.host);
    assert_int_equal(good.size, d.size);
}
