/* Whose deliveries are believed, and how often: the resolver is a stand-in that can fail. */
#include <unistd.h>

#include "fabricd/base/rate.h"
#include "test/unit/ingest_lab.h"

/* ---- who is believed ---- */

static void answer_name(struct ingest_check *check)
{
    struct credential_addresses all;
    check->began = lab.now;
    check->error = lab_resolve(check->delivery.host, AF_INET, &all);
    check->addresses.n = all.n;
    for (uint32_t i = 0; i < all.n; i++)
        check->addresses.at[i] = all.at[i].v4.sin_addr;
}

static int check_all(struct ingest_check *check, const char *own, struct fab_err *err)
{
    int rc;
    *check = (struct ingest_check){.maker = lab_maker(), .bytes = lab_bytes(), .size = (size_t)lab.size};
    while (ingest_check_next(check, own, &lab.names, lab.now, &rc, err)) {
        if (check->ask == INGEST_IS_OURS)
            check->is_ours = lab_is_ours(check->maker.origin);
        else
            answer_name(check);
    }
    return rc;
}

static void open_as(int code, const char *part)
{
    struct ingest_check check;
    struct fab_err err = {""};
    int rc = check_all(&check, "head", &err);
    OWNED(free) void *bytes = check.bytes;
    must_fail(rc, code, &err, part);
    assert_null(strchr(err.text, '\n'));
    if (rc == PMIXFAB_OK) {
        assert_int_equal(check.maker.uid, lab.uid);
        assert_true((const char *)check.delivery.body > (const char *)bytes);
    }
}

/* Of which user it is has been checked by the channel. */
LAB_TEST(test_users)
{
    open_as(PMIXFAB_OK, "");
    lab.uid = 77;
    open_as(PMIXFAB_OK, "");
}

LAB_TEST(test_hosts)
{
    lab.address = "10.0.0.8";
    open_as(PMIXFAB_ERR_PERM, "node7: uid 0 on 10.0.0.7 may not report for this host, which is 10.0.0.8");
    lab.address = NULL;
    open_as(PMIXFAB_ERR_PERM, "node7: the scheduler's host cannot resolve this name");
    lab.now += 2000;
    lab.address = "10.0.0.8";
    lab.ours = "10.0.0.7"; /* somebody here, but of another host */
    open_as(PMIXFAB_ERR_PERM, "may not report for this host");
    lab.ours = NULL;
    lab.origin = "127.0.1.1";
    open_as(PMIXFAB_ERR_PERM, "--origin");
    lab.origin = "0.0.0.0";
    open_as(PMIXFAB_ERR_PERM, "--origin");
}

static void deliver_for(const char *host, int code, const char *part)
{
    const void *bytes = lab.bytes;
    const int size = lab.size;
    OWNED(free) void *own = lab_delivery(host);
    lab.bytes = own;
    open_as(code, part);
    lab.bytes = bytes;
    lab.size = size;
}

/* That nobody answers says nothing of the name: it is not refused for good. */
LAB_TEST(test_no_name_server)
{
    static const int errors[] = {EAI_AGAIN, EAI_SYSTEM, EAI_MEMORY, EAI_FAIL};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        lab.resolver = errors[i];
        open_as(PMIXFAB_ERR_BUSY, "node7: the scheduler's host cannot resolve this name now");
        ingest_names_clear(&lab.names);
    }
    lab.resolver = 0;
    open_as(PMIXFAB_OK, "");
    lab.resolver = EAI_AGAIN;
    lab.takes = 3000;
    lab.now += 40000; /* the answer is not believed any more, but there is no other one */
    open_as(PMIXFAB_OK, "");
    lab.resolved = 0;
    open_as(PMIXFAB_OK, "");
    deliver_for("node8", PMIXFAB_ERR_BUSY, "cannot resolve this name now");
    assert_int_equal(lab.resolved, 0); /* it was away a moment ago */
    lab.now += 3000;
    open_as(PMIXFAB_OK, "");
    lab.now += 12000;
    deliver_for("node8", PMIXFAB_ERR_BUSY, "cannot resolve this name now");
    assert_int_equal(lab.resolved, 2);
    lab.now += 12000;
    lab.resolver = 0;
    lab.takes = 0;
    lab.address = "10.0.0.9"; /* it is back, and says that the host has moved */
    open_as(PMIXFAB_ERR_PERM, "which is 10.0.0.9");
    lab.resolver = EAI_AGAIN;
    open_as(PMIXFAB_ERR_BUSY, "cannot resolve this name now"); /* what it said last is no right */
    lab.resolver = EAI_NONAME;
    lab.now += 4000000;
    open_as(PMIXFAB_ERR_PERM, "cannot resolve this name");
}

LAB_TEST(test_names_are_remembered)
{
    for (int i = 0; i < 29; i++, lab.now += 1000)
        open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 1);
    lab.now += 1000;
    open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 2);
    lab.address = lab.origin = "10.0.0.8"; /* one that has moved is asked for at once */
    open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 3);
    lab.origin = "10.0.0.7"; /* and where it was, it is not any more */
    open_as(PMIXFAB_ERR_PERM, "which is 10.0.0.8");
    lab.address = NULL;
    lab.resolved = 0;
    for (int i = 0; i < 10; i++)
        deliver_for("nowhere", PMIXFAB_ERR_PERM, "cannot resolve this name");
    assert_int_equal(lab.resolved, 1);
    lab.now += 2000;
    lab.address = "10.0.0.7"; /* it was put into DNS */
    deliver_for("nowhere", PMIXFAB_OK, "");
    char host[32]; /* memory is bounded */
    for (int i = 0; i < 40000; i++) {
        snprintf(host, sizeof(host), "many%d", i);
        deliver_for(host, PMIXFAB_OK, "");
    }
}

/* One who names what nobody knows takes a fifth of the thread's time at most; others are not held up. */
LAB_TEST(test_names_that_take_long)
{
    lab.address = NULL;
    lab.takes = 3000;
    const int64_t start = lab.now;
    int64_t free_at = 0;
    for (int i = 0; i < 1000; i++, lab.now += 50) {
        const char *host = printed("nowhere%d", i);
        const bool waits = i > 0 && lab.now < free_at;
        deliver_for(host, waits ? PMIXFAB_ERR_BUSY : PMIXFAB_ERR_PERM,
                    waits ? "could not resolve, which took long" : "cannot resolve this name");
        if (!waits)
            free_at = lab.now + 4 * lab.takes;
    }
    assert_true((int64_t)lab.resolved * lab.takes <= (lab.now - start) / 5 + lab.takes);
    lab.origin = "10.0.0.8"; /* another one */
    lab.address = "10.0.0.8";
    lab.takes = 0;
    open_as(PMIXFAB_OK, "");
}

/* Names of a zone whose server fails, or that nobody has, cost those who have one nothing. */
LAB_TEST(test_names_that_are_made_up)
{
    open_as(PMIXFAB_OK, "");
    lab.resolver = EAI_AGAIN;
    lab.takes = 20;
    deliver_for("no1.broken", PMIXFAB_ERR_BUSY, "cannot resolve this name now");
    lab.resolver = 0;
    deliver_for("node8", PMIXFAB_OK, ""); /* at once, and not known before */
    lab.address = NULL;
    lab.takes = 0;
    for (int i = 0; i < 20000; i++)
        deliver_for(printed("nowhere%d", i), PMIXFAB_ERR_PERM, "cannot resolve this name");
    lab.resolved = 0;
    open_as(PMIXFAB_OK, "");
    assert_int_equal(lab.resolved, 0);
}

LAB_TEST(test_this_host)
{
    char name[256] = "";
    static const char *const names[] = {"head", "head.cluster", NULL};
    gethostname(name, sizeof(name) - 1);
    lab.address = NULL; /* needs no resolver */
    for (int i = 0; i < 3; i++) {
        void *bytes = lab_delivery(names[i] == NULL ? name : names[i]);
        lab.bytes = bytes;
        lab.origin = lab.ours = "127.0.0.1";
        open_as(PMIXFAB_OK, "");
        lab.origin = lab.ours = "10.0.0.1";
        open_as(PMIXFAB_OK, "");
        lab.origin = "10.0.0.2";
        open_as(PMIXFAB_ERR_PERM, "cannot resolve");
        free(bytes);
    }
    void *bytes = lab_delivery("header");
    lab.bytes = bytes;
    lab.origin = "10.0.0.1";
    open_as(PMIXFAB_ERR_PERM, "cannot resolve");
    free(bytes);
}

static void no_delivery(void)
{
    struct ingest_check check;
    struct fab_err err = {""};
    assert_true(check_all(&check, "head", &err) < 0);
    OWNED(free) void *bytes = check.bytes;
    assert_non_null(strstr(err.text, "the credential of uid 0 on 10.0.0.7 contains no delivery: "));
}

LAB_TEST(test_payloads)
{
    char *bytes = *state;
    int whole = lab.size;
    for (lab.size = 0; lab.size < whole; lab.size++)
        no_delivery();
    for (int i = 0; i < whole; i++) {
        bytes[i] ^= 0x40;
        no_delivery();
        bytes[i] ^= 0x40;
    }
    open_as(PMIXFAB_OK, "");
    lab.bytes = "an order of another program";
    lab.size = 27;
    no_delivery();
    lab.bytes = NULL;
    lab.size = 0;
    no_delivery();
}

/* ---- how often ---- */

static bool host_may(struct buckets *hosts, const char *host, int64_t now)
{
    return buckets_take(hosts, host, strlen(host), now);
}

LAB_TEST(test_buckets)
{
    struct buckets hosts = {.burst = INGEST_BURST, .refill_ms = INGEST_REFILL_MS};
    int64_t now = 1000000;
    char host[32];
    for (int i = 0; i < INGEST_BURST; i++)
        assert_true(host_may(&hosts, "node1", now));
    assert_false(host_may(&hosts, "node1", now));
    assert_true(host_may(&hosts, "node2", now)); /* another host's is its own */
    assert_false(host_may(&hosts, "node1", now + INGEST_REFILL_MS - 1));
    assert_true(host_may(&hosts, "node1", now + INGEST_REFILL_MS));
    assert_false(host_may(&hosts, "node1", now + INGEST_REFILL_MS));
    now += 1000 * INGEST_REFILL_MS; /* never more than the burst */
    for (int i = 0; i < INGEST_BURST; i++)
        assert_true(host_may(&hosts, "node1", now));
    assert_false(host_may(&hosts, "node1", now));
    /* Forgetting those that are full again forgets nobody else. */
    for (int i = 0; i < 20000; i++) {
        snprintf(host, sizeof(host), "many%d", i);
        assert_true(host_may(&hosts, host, now + i / 4));
    }
    assert_false(host_may(&hosts, "node1", now + 10));
    /* A plain model of it: tokens that grow. */
    double tokens = INGEST_BURST;
    int64_t last = now;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        now += (int64_t)(random % 1700);
        tokens += (double)(now - last) / INGEST_REFILL_MS;
        tokens = tokens > INGEST_BURST ? INGEST_BURST : tokens;
        last = now;
        bool expected = tokens > 1 - 1e-6;
        assert_int_equal(host_may(&hosts, "model", now), expected);
        tokens -= expected;
    }
    buckets_forget_full(&hosts, INT64_MAX);
    for (int i = 0; i < INGEST_BURST; i++)
        assert_true(host_may(&hosts, "node1", 0));
    buckets_forget_full(&hosts, INT64_MAX);
}

LAB_TEST(test_lines)
{
    struct log_limit lines = {NULL};
    unsigned unsaid = 9, said = 0;
    assert_true(log_limit_may_at(&lines, "a", 1000, &unsaid));
    assert_int_equal(unsaid, 0);
    assert_false(log_limit_may_at(&lines, "a", 1000, &unsaid));
    assert_false(log_limit_may_at(&lines, "a", 60999, &unsaid));
    assert_true(log_limit_may_at(&lines, "b", 60999, &unsaid));
    assert_true(log_limit_may_at(&lines, "a", 61000, &unsaid));
    assert_int_equal(unsaid, 2);
    assert_false(log_limit_may_at(&lines, "a", 61001, &unsaid));
    for (int i = 0; i < 100000; i++) { /* who varies his lines does not fill the log, nor the memory */
        said += log_limit_may_at(&lines, printed("line %d", i), 61002, &unsaid);
    }
    assert_true(said > 100 && said < 2000);
    assert_true(log_limit_may_at(&lines, "later", 130000, &unsaid));
    log_limit_clear(&lines);
}
