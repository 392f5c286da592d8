"""What a node says of a scheduler that is stale, stands still, or is cut off."""
import os
import time
import unittest

import lab
import test_node


class Case(test_node.Case):
    def setUp(self):
        super().setUp()
        self.one = self.node(serve=True)
        self.equal(self.one)

    def marked(self):
        """As who reads the run directory is told."""
        return os.path.exists(os.path.join(self.one.rundir, "stale"))

    def test_sweeps_fail(self):
        """The scheduler is there, and says that what it serves may be old: so does the node, to all who ask."""
        generation = self.scheduler.status()["generation"]
        lab.replace_file(self.capture, "this is no capture\n")
        self.assertFalse(self.scheduler.control("refresh", timeout=60)["ok"])
        status = self.one.wait_status(lambda status: status["stale"], "to hear it")
        self.assertTrue(status["connected"])
        self.assertEqual(status["stale_reason"], "the scheduler's sweeps fail")
        self.assertTrue(self.is_stale(self.one))
        self.assertTrue(self.marked())
        self.one.kill9()
        self.one.start(wait=False)
        self.one.wait_status(lambda status: status["stale"] and "sweeps" in status["stale_reason"], "to hear it again")
        lab.replace_file(self.capture, self.whole)
        self.scheduler.refresh()
        self.one.wait_status(lambda status: not status["stale"], "to hear of the end")
        self.assertFalse(self.is_stale(self.one))
        self.assertFalse(self.marked())
        self.assertEqual(self.scheduler.status()["generation"], generation)

    def test_stopped(self):
        """Its connection stays and nothing comes: noticed within the time of a watch and some seconds."""
        self.addCleanup(self.scheduler.thaw)
        self.scheduler.freeze()
        status = self.one.wait_status(lambda status: status["stale"], "to notice")
        self.assertRegex(status["stale_reason"], "^the scheduler (cannot be reached|does not answer in time)$")
        self.scheduler.thaw()
        self.one.wait_status(lambda status: not status["stale"], "to come back")

    def test_a_cable_that_is_cut(self):
        """No reset comes: the node notices, serves, and follows when the cable is there again."""
        center = self.hosts["scheduler"]
        registered = self.tool(self.one, "register")
        center.do("ip", "link", "set", "eth0", "down")
        self.addCleanup(center.do, "ip", "link", "set", "eth0", "up")
        start = time.monotonic()
        self.assertEqual(test_node.facts(self.tool(self.one, "register")), test_node.facts(registered))
        self.assertLess(time.monotonic() - start, 5 * lab.SLOW)
        status = self.one.wait_status(lambda status: status["stale"], "to notice")
        self.assertTrue(self.is_stale(self.one))
        self.assertTrue(self.marked())
        self.assertRegex(status["stale_reason"], "^the scheduler (cannot be reached|does not answer in time)$")
        self.record("node0001", "20.40.2000")
        self.one.look()
        center.do("ip", "link", "set", "eth0", "up")
        self.wait_published("20.40.2000")
        self.equal(self.one)


if __name__ == "__main__":
    unittest.main()
