"""The subnet manager: one that dies is noticed by light sweeps, so is one that takes over."""
import unittest

import lab

SMALL = "fattree2:4,2,4"


class Manager(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric(SMALL))
        self.addCleanup(self.sim.quit)
        self.manager = lab.OpenSM(self.sim)
        self.addCleanup(lambda: self.manager.stop())
        self.daemon = lab.Fabricd(self.sim, config={"changes": {"light_sweep": None}})  # the default
        self.addCleanup(self.daemon.stop)
        self.wait(lambda manager: manager["answers"])

    def managers(self):
        return self.daemon.status()["managers"]

    def wait(self, good, timeout=10):
        """The manager as `status` has it, once it is so."""
        return lab.wait_for(lambda: [m for m in self.managers() if good(m)], timeout, "the subnet manager")[0]

    def test_one_that_dies_and_another_that_takes_over(self):
        """As the probe finds them; what comes of it: test/sim/test_manager.py."""
        first = self.wait(lambda manager: manager["answers"])
        self.assertRegex(first["manager"], rf"^{self.sim.hosts[0]} \S+\[1\] \(LID {first['lid']}\)$")
        self.manager.stop()
        self.wait(lambda manager: not manager["answers"])
        self.manager = lab.OpenSM(self.sim, host=self.sim.hosts[1], arguments=["-p", "9"])
        after = self.wait(lambda manager: manager["another"] and manager["answers"])
        self.assertNotEqual(after["guid"], first["guid"])
        self.assertEqual(after["priority"], 9)
        self.assertIn(self.sim.hosts[1], after["manager"])


if __name__ == "__main__":
    unittest.main()
