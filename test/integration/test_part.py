"""Sweeps of a part of the fabric: of one switch, while hosts are missing, with several probes; and their processes."""
import time
import unittest

import lab

SMALL = "fattree2:4,2,4"


class Case(unittest.TestCase):
    def simulate(self, spec=SMALL):
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(spec))
        self.addCleanup(sim.quit)
        sim.sweep()
        return sim


class Stops(Case):
    """The simulator has places for ten clients, and one that is killed keeps its place."""

    def test_no_place_is_left_taken(self):
        sim = self.simulate()
        daemon = lab.Fabricd(sim, config={"changes": {"look": 1}}, start=False)
        self.addCleanup(daemon.stop)
        took = []
        for turn in range(14):
            daemon.start(wait=turn % 2 == 0)  # else it is stopped while it sweeps, or looks for the first time
            if turn % 2 == 0:
                lab.wait_for(lambda: daemon.status()["looks"] > 0, 20, "a look")
            else:
                daemon.wait_up()
                if turn % 4 == 1:
                    lab.wait_for(lambda: daemon.status()["sweeping"] or daemon.status()["last_sweep"], what="a sweep")
            start = time.monotonic()
            self.assertEqual(daemon.stop(), 0)
            took.append(time.monotonic() - start)
        daemon.start()
        lab.wait_for(lambda: daemon.status()["looks"] > 0, 20, "a look")
        self.assertEqual(daemon.errors(), [])
        self.assertLess(sorted(took)[len(took) // 2], .5 * lab.SLOW, took)


if __name__ == "__main__":
    unittest.main()
