/* test_sim.c - the simulation itself. */
#include "test/sim/sim.h"
#include "test/unit/test.h"

TEST(a_host_goes_and_comes_back)
{
    struct sim *s = sim_new(1, "fattree2:3,2,2");
    assert_int_equal(sim_start(s), 0);
    assert_int_equal(sim_generation(s), 1);
    const unsigned port = sim_cable(s, "leaf1", "node0002");
    assert_true(sim_pull(s, "leaf1", port));
    assert_true(sim_sweep(s));
    assert_int_equal(sim_generation(s), 2);
    assert_true(sim_plug(s, "leaf1", port));
    assert_true(sim_sweep(s));
    assert_int_equal(sim_generation(s), 3);
    assert_non_null(strstr(sim_journal(s), "host-back node0002"));
    sim_free(s);
}
