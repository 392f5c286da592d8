/* test_walk.c - a month of a site; ./dev sim walks for as long as one likes. */
#include "test/sim/sim.h"
#include "test/sim/walk.h"
#include "test/unit/test.h"

TEST(a_month)
{
    const struct walk_counts counts = walk(20261126, 30 * SIM_DAY);
    assert_in_range(counts.generations, 50, 10000);
    assert_in_range(counts.restarts, 1, 1000);
}
