"""What a real fabric says that cannot be, and what programs are told over PMIx of odd names. test/sim/test_bad_input.py has the rest."""
import os
import unittest

import lab

SPEC = "fattree2:2,2,2"  # 8 nodes: 2 leaves, 2 spines, 4 hosts


class Told(unittest.TestCase):
    def test_names_that_show_as_others(self):
        """No program is told what turns the direction of writing or has no width."""
        text = lab.fabric(SPEC, "capture").replace('"node0001"', '"no\u202e1000ed HCA-1"').replace('"leaf1"', '"le\u2066af\ufeff1"')
        path = os.path.join(lab.tmpdir(), "fabric.txt")
        lab.replace_file(path, text)
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{path}"}, "names": {"pattern": "^(.*) (HCA-1)$"}})
        self.addCleanup(daemon.stop)
        told = daemon.tool("register").stdout
        self.assertIn("no?1000ed", told)
        self.assertNotRegex(told, "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Live(unittest.TestCase):
    def test_one_guid_twice(self):
        """A discovery takes two nodes of one GUID for one, with ports that lead nowhere: nothing of what is served changes."""
        lab.require("ibsim", "opensm")
        sim = lab.Ibsim(lab.fabric(SPEC))
        self.addCleanup(sim.quit)
        sim.sweep()
        daemon = lab.Fabricd(sim)
        self.addCleanup(daemon.stop)
        served = [daemon.ctl_json(what) for what in ("matrix", "devices", "links")]
        for node, guid, other in (("spine2", 0x200003, 0x200002), ("node0003", 0x100004, 0x100000)):
            sim.guid(node, other)
            done = daemon.ctl("refresh")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertRegex(done.stderr, "the sweep is partial: (1 port leads|2 ports lead) nowhere.*still serving generation 1 ")
            self.assertTrue(daemon.status()["stale"])
            self.assertEqual([daemon.ctl_json(what) for what in ("matrix", "devices", "links")], served)
            sim.guid(node, guid)
            self.assertFalse(daemon.refresh()["changed"])
            self.assertFalse(daemon.status()["stale"])
            self.assertEqual(daemon.status()["generation"], 1)


if __name__ == "__main__":
    unittest.main()
