"""The subnet manager: one that dies is told within a few light sweeps, so is one that takes over."""
import re
import time
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

    def kinds(self):
        return {finding["kind"] for finding in self.daemon.control("check")["findings"]}

    def metric(self, name):
        return re.search(rf"^{name}(?:\{{.*\}})? (\S+)$", self.daemon.ctl("metrics").stdout, re.MULTILINE).group(1)

    def test_one_that_dies_and_is_started_again(self):
        before = self.wait(lambda manager: manager["answers"])
        self.assertRegex(before["manager"], rf"^{self.sim.hosts[0]} \S+\[1\] \(LID {before['lid']}\)$")
        self.assertRegex(self.daemon.ctl("status").stdout, rf"(?m)^manager +{self.sim.hosts[0]} ")
        self.assertEqual(self.metric("fabricd_subnet_manager_up"), "1")
        start = time.monotonic()
        self.manager.stop()
        self.wait(lambda manager: not manager["answers"])
        self.assertLess(time.monotonic() - start, 5 * lab.SLOW)
        self.assertRegex(self.daemon.ctl("status").stdout, r"(?m)^NO MANAGER +since \S+: no subnet manager answers; "
                         rf"the last one is {self.sim.hosts[0]} ")
        self.assertRegex(self.daemon.log(), rf"error: subnet manager: {self.sim.hosts[0]} .* does not answer")
        self.assertEqual(self.metric("fabricd_subnet_manager_up"), "0")
        self.assertEqual(self.kinds(), {"manager-gone"})
        self.manager = lab.OpenSM(self.sim)
        after = self.wait(lambda manager: manager["answers"])
        self.assertFalse(after["another"])
        self.assertEqual(after["guid"], before["guid"])
        self.assertIn("answers again", self.daemon.log())
        self.assertEqual(self.kinds(), set())

    def test_another_one_takes_over_and_the_first_comes_back(self):
        first = self.wait(lambda manager: manager["answers"])
        self.manager.stop()
        self.manager = lab.OpenSM(self.sim, host=self.sim.hosts[1], arguments=["-p", "9"])
        after = self.wait(lambda manager: manager["another"] and manager["answers"])
        self.assertNotEqual(after["guid"], first["guid"])
        self.assertEqual(after["priority"], 9)
        self.assertIn(self.sim.hosts[1], after["manager"])
        self.assertRegex(self.daemon.log(), rf"warning: subnet manager: {self.sim.hosts[1]} .* took over from {self.sim.hosts[0]} ")
        self.assertIn("it took over at", self.daemon.ctl("status").stdout)
        self.assertEqual(self.metric("fabricd_subnet_manager_takeovers_total"), "1")
        self.assertEqual(self.kinds(), {"manager-changed"})
        self.manager.stop()
        self.manager = lab.OpenSM(self.sim)
        self.wait(lambda manager: manager["answers"] and manager["guid"] == first["guid"] and not manager["another"])
        self.assertEqual(self.kinds(), set())


if __name__ == "__main__":
    unittest.main()
