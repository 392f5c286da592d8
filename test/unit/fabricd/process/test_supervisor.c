/* A child that stays: when the next one may start. The test gives the time. */
#include "test/unit/test.h"

#include "fabricd/process/supervisor.h"

static struct supervisor fresh(void)
{
    return (struct supervisor){.again = {.first = 50, .most = 300, .at_once = 2}, .good_ms = 10000};
}

/* One that starts at that time, and is lost after so many milliseconds. */
static int64_t live(struct supervisor *s, int64_t at, int64_t lived)
{
    supervisor_began(s, at);
    return supervisor_lost(s, "it ended", true, at + lived, 7);
}

TEST(those_that_are_lost_early_have_growing_pauses)
{
    static const int64_t pauses[] = {0, 0, 50, 100, 200, 300, 300};
    struct supervisor s = fresh();
    int64_t now = 1000;
    assert_int_equal(supervisor_wait(&s, now), 0);
    for (unsigned i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_int_equal(live(&s, now, 10000), pauses[i]);
        now += 10000;
        assert_int_equal(supervisor_wait(&s, now), pauses[i]);
        if (pauses[i] > 0)
            assert_int_equal(supervisor_wait(&s, now + pauses[i] - 1), 1);
        assert_int_equal(supervisor_wait(&s, now + pauses[i]), 0);
        assert_int_equal(supervisor_wait(&s, now + pauses[i] + 5), 0);
        assert_int_equal(s.replaced, i + 1);
        now += pauses[i];
    }
}

TEST(a_good_one_ends_the_pauses)
{
    struct supervisor s = fresh();
    for (int64_t i = 0; i < 5; i++)
        live(&s, i * 1000, 1);
    assert_int_equal(live(&s, 10000, 10001), 0);
    assert_int_equal(s.again.failed, 0);
    assert_int_equal(live(&s, 30000, 1), 0);
    assert_int_equal(live(&s, 30001, 1), 0);
    assert_int_equal(live(&s, 30002, 1), 50); /* the third early one again */
}

TEST(one_that_has_not_served_is_no_good_one)
{
    struct supervisor s = fresh();
    for (int64_t i = 0; i < 2; i++) {
        supervisor_began(&s, i * 100000);
        assert_int_equal(supervisor_lost(&s, "it hangs", false, i * 100000 + 90000, 7), 0);
    }
    supervisor_began(&s, 200000);
    assert_int_equal(supervisor_lost(&s, "it hangs", false, 290000, 7), 50);
    supervisor_began(&s, 300000);
    supervisor_good(&s); /* it shows so itself */
    assert_int_equal(supervisor_lost(&s, "it hangs", false, 300001, 7), 0);
}

TEST(what_operators_read)
{
    struct supervisor s = fresh();
    char long_one[1000];
    assert_string_equal(s.why, "");
    supervisor_began(&s, 5);
    supervisor_lost(&s, "killed by\n\x1b[31m signal 9", true, 6, 1700000000000000);
    assert_null(strpbrk(s.why, "\n\x1b"));
    assert_non_null(strstr(s.why, "signal 9"));
    assert_int_equal(s.last, 1700000000000000);
    assert_int_equal(s.replaced, 1);
    memset(long_one, 'x', sizeof(long_one));
    long_one[sizeof(long_one) - 1] = '\0';
    supervisor_lost(&s, long_one, true, 7, 1700000000000001);
    assert_int_equal(strlen(s.why), sizeof(s.why) - 1);
    assert_int_equal(s.last, 1700000000000001);
    assert_int_equal(s.replaced, 2);
}
