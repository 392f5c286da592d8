"""fabricctl where: what a recorded machine of two sockets with two HCAs each is told of by its probe, and which of them
each rank is to use then. (Other ranks and other machines are in test/sim/test_where.py.)
"""
import json
import os
import unittest

import hwloc_machines
import lab
import whole_machines as whole

KEYS = ["rank", "cpus", "host", "plane", "index", "id", "device", "port", "distance", "equal", "why"]


class Machine(unittest.TestCase):
    shape = {}

    @classmethod
    def setUpClass(cls):
        lab.require("ibsim", "opensm")
        if not lab.probe_built("hwloc"):
            raise unittest.SkipTest("the probe hwloc is not built")
        folder = lab.tmpdir()
        path = os.path.join(folder, "machine.xml")
        lab.replace_file(path, hwloc_machines.two_sockets(**cls.shape))
        cls.machine = whole.Machine("node1", 1, path)
        cls.sim = lab.Ibsim(whole.netfile([cls.machine], ["node2"]))
        cls.addClassCleanup(cls.sim.quit)
        cls.sim.sweep()
        cls.daemon = lab.Fabricd(cls.sim, {"fabricd": {"host": "node1", "probe": ["ibnetdisc", "hwloc:" + path]}})
        cls.addClassCleanup(cls.daemon.stop)

    def where(self, *args, status=0):
        done = self.daemon.ctl("--format", "json", "where", *args)
        self.assertEqual(done.returncode, status, done.stderr)
        rows = json.loads(done.stdout)
        for row in rows:
            self.assertEqual(list(row), KEYS)
        return rows

    def chosen(self, *args):
        return [int(row["device"].removeprefix("mlx5_")) for row in self.where(*args)]


class Where(Machine):
    def test_twelve_ranks(self):
        pairs = [f"{2 * n}-{2 * n + 1},{2 * n + 24}-{2 * n + 25}" for n in range(12)]
        rows = self.where("node1:12", *pairs)
        self.assertEqual([row["device"] for row in rows], [f"mlx5_{n}" for n in (0, 1) * 3 + (2, 3) * 3])
        devices = {device["name"]: device for device in self.daemon.ctl_json("devices", "node1")}
        for number, row in enumerate(rows):
            device = devices[row["device"]]
            self.assertEqual((row["rank"], row["cpus"], row["host"], row["plane"]), (number, pairs[number], "node1", "ib0"))
            self.assertEqual((row["index"], row["id"], row["port"]), (device["index"], device["id"], device["port"]))
            self.assertEqual((row["distance"], row["equal"]), (4, 2))
            self.assertEqual(row["why"], "attached to its processors, in turn with 1 more")


if __name__ == "__main__":
    unittest.main()
