"""The operator's commands with a real subnet, and which of them another user may give. test/sim/test_operator.py has the rest."""
import os
import unittest

import lab


class Operator(unittest.TestCase):
    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric("fattree2:4,2,3"))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.daemon = lab.Fabricd(self.sim, config={"fabricd": {"interval": 0, "deadline": 5}, "changes": {"light_sweep": 0}})
        self.addCleanup(self.daemon.stop)
        self.daemon.wait_ready()

    def test_verify(self):
        self.assertEqual(self.daemon.ctl("verify").stdout, "generation 1 is what a sweep sees now\n")
        port = self.sim.cable("leaf1", "spine2")
        self.sim.unlink("leaf1", port)
        done = self.daemon.ctl("verify")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(f"leaf1[{port}] - spine2[1]", done.stdout)
        self.assertEqual(self.daemon.status()["generation"], 1)
        self.assertEqual(len(self.daemon.ctl_json("refresh", "--switch", "leaf1")["changes"]), 1)
        self.sim.quit()
        done = self.daemon.ctl("verify")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertRegex(done.stderr, r"\A(fabricctl: sweeping for \d s; the last [^\n]+\n)*fabricctl: verify: [^\n]+\n\Z")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_another_user(self):
        self.assertEqual(self.daemon.ctl("check", user="nobody").stdout, "generation 1: nothing looks wrong\n")
        for command in (["verify"], ["expect", "node0001", "--replace"], ["backup", os.path.join(lab.tmpdir(), "backup.db")]):
            done = self.daemon.ctl(*command, user="nobody")
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertRegex(done.stderr, rf"\Afabricctl: {command[0]}: uid \d+ may not do that[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main()
