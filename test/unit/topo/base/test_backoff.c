/* Pauses between attempts. */
#include "test/unit/test.h"
#include "topo/base/backoff.h"

TEST(each_pause_is_twice_as_long_up_to_the_bound)
{
    struct backoff again = {.first = 50, .most = 300};
    static const int64_t pauses[] = {50, 100, 200, 300, 300, 300};
    assert_int_equal(backoff_pause(&again), 0);
    for (unsigned i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_int_equal(backoff_next(&again), pauses[i]);
        assert_int_equal(backoff_pause(&again), pauses[i]);
    }
    backoff_reset(&again);
    assert_int_equal(backoff_next(&again), 50);
}

TEST(the_first_attempts_have_no_pause)
{
    struct backoff again = {.first = 50, .most = 300, .at_once = 3};
    static const int64_t pauses[] = {0, 0, 0, 50, 100};
    for (unsigned i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
        assert_int_equal(backoff_next(&again), pauses[i]);
}

TEST(a_pause_does_not_overflow)
{
    struct backoff again = {.first = 1, .most = INT64_MAX / 2};
    for (unsigned i = 0; i < 1000; i++) {
        const int64_t pause = backoff_next(&again);
        assert_true(pause > 0 && pause <= again.most);
    }
    again.failed = 0xffffffffu - 1;
    assert_int_equal(backoff_next(&again), again.most);
    again = (struct backoff){.first = 400, .most = 300};
    assert_int_equal(backoff_next(&again), 300);
}
