/* test_crash.c - wherever the daemon ends, the next one goes on. */
#include "test/sim/sim.h"
#include "test/unit/test.h"

static void swap_and_report(struct sim *s)
{
    sim_pull(s, "leaf1", sim_cable(s, "leaf1", "node0002"));
    sim_sweep(s);
    sim_deliver(s, "node0003", "20.1");
    sim_advance(s, SIM_SECOND);
    sim_replace(s, "node0004", 0x990000);
    sim_sweep(s);
    sim_plug(s, "leaf1", 0);
    sim_sweep(s);
}

static const struct sim_story story = {.fabric = "fattree2:3,2,2", .play = swap_and_report};

TEST(a_killed_process_loses_nothing)
{
    assert_in_range(sim_crash_everywhere(1, &story, false), 100, 10000);
}

TEST(a_power_failure_loses_nothing_that_was_announced)
{
    assert_in_range(sim_crash_everywhere(1, &story, true), 100, 10000);
}
