"""Random changes of a running subnet, fabricd killed in between: what happened is in the history, all and once. (For longer, and
with hands of two halves, in test/sim/test_random_changes.py.)"""
import unittest

import afresh
import failures
import lab
import operator_hands


class Random(operator_hands.Run, unittest.TestCase):
    changes_wanted, kills_wanted = (500, 10) if lab.ALL else (40, 2)

    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(operator_hands.FABRIC))
        self.addCleanup(self.sim.quit)
        seed = failures.seed("the hands", 5)
        operator = operator_hands.Operator(self.sim, self.sim.text, seed)
        self.manager = lab.OpenSM(self.sim)
        self.addCleanup(self.manager.stop)
        daemon = lab.Fabricd(self.sim, {"changes": {"flap_count": 0, "debounce": 0}})
        self.addCleanup(daemon.stop)
        self.begin(daemon, operator, seed)

    def settle(self):
        for end in self.operator.wait:
            self.sim.wait_active(*end)
        self.operator.wait.clear()

    def kill(self):
        """Between two sweeps, and start it again: ibsim ends when a client vanishes while it connects. (After each
        step of a publication: test/sim/test_crash.c.)"""
        self.daemon.kill9()
        self.daemon.start()

    def as_afresh(self):
        lab.wait_for(self.all_active, 30, "ports to become active")
        newcomer = afresh.newcomer(self.sim)
        self.assertEqual(afresh.costs(self.daemon), afresh.costs(newcomer))
        self.assertEqual(afresh.cables(self.daemon, newcomer), afresh.cables(newcomer))

    def all_active(self):
        self.daemon.refresh()
        return self.daemon.status()["inactive"] == 0

    def test_the_history_is_complete(self):
        self.check_history()


if __name__ == "__main__":
    unittest.main()
