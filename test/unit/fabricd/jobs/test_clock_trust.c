/* What a clock that is set may be believed. */

#include "fabricd/jobs/history_trim.h"
#include "test/unit/test.h"

#define HOUR 3600000000LL
#define DAY  (24 * HOUR)
#define NOW  (20000 * DAY) /* since 1970 */

TEST(test_goes_on)
{
    struct clock_trust trust = {0};
    for (int64_t t = 0; t < 1000 * DAY;
         t += 7 * HOUR) /* a second a day wrong, which is set right bit by bit */
        assert_true(clock_trusted(&trust, NOW + t + t / 86400, t, NOW + t - DAY));
}

TEST(test_jumps)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct clock_trust trust = {0};
        int64_t jump = sign * 500 * DAY;
        assert_true(clock_trusted(&trust, NOW, HOUR, NOW));
        assert_false(clock_trusted(&trust, NOW + jump, HOUR, NOW + jump));
        assert_false(clock_trusted(&trust, NOW + jump + DAY - 1, HOUR + DAY - 1, NOW + jump));
        assert_true(clock_trusted(&trust, NOW + jump + DAY, HOUR + DAY, NOW + jump));
        assert_false(clock_trusted(&trust, NOW + 2 * DAY, HOUR + 2 * DAY, NOW)); /* and set right */
        assert_true(clock_trusted(&trust, NOW + 3 * DAY, HOUR + 3 * DAY, NOW));
    }
}

TEST(test_behind_what_it_said)
{
    struct clock_trust trust = {0};
    assert_true(clock_trusted(&trust, NOW, 0, NOW + HOUR));
    assert_false(clock_trusted(&trust, NOW, 0, NOW + HOUR + 1));
    assert_true(clock_trusted(&trust, NOW + HOUR, HOUR, NOW + HOUR + 1));
}
