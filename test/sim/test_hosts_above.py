"""Trees with a few hosts above their leaves: the kind stays, no other coordinate moves, and switches are compared with equals."""
import unittest

import sim


class Case(unittest.TestCase):
    def coordinates(self, devices):
        return {(d["host"], d["name"]): (d["logical"], d["physical"]) for d in devices if d["host"] not in self.moved}

    def try_with(self, fabric, **to):
        """These hosts are moved to these switches; the findings."""
        self.moved = set(to)
        site = sim.Site(fabric, {"changes": {"flap_count": 0}}, room=36)
        try:
            kind, before = site.ctl_json("planes")[0]["kind"], self.coordinates(site.ctl_json("devices"))
            levels = {s["name"]: s["level"] for s in site.ctl_json("switches")}
            for i, (host, switch) in enumerate(to.items()):
                site.move(host, 1, switch, 36 - i)
            site.refresh()
            for what in (site, site.afresh()):  # with its past, and from nothing
                self.assertEqual([p["kind"] for p in what.ctl_json("planes")], [kind])
                devices = what.ctl_json("devices")
                self.assertEqual(self.coordinates(devices), before)
                self.assertEqual(len({tuple(d["logical"]) for d in devices}), len(devices))
                self.assertEqual(len({tuple(d["physical"]) for d in devices}), len(devices))
                self.assertEqual({s["name"]: s["level"] for s in what.ctl_json("switches")}, levels)
            return [(f["kind"], f["where"]) for f in site.check()[1]]
        finally:
            site.free()

    def test_two_levels(self):
        for to in (["spine2"], ["spine1", "spine1", "spine3"], ["spine1", "spine2", "spine3"], ["spine2"] * 6):
            with self.subTest(to):
                hosts = [f"node{1 + 5 * (i % 6) + i // 6:04}" for i in range(len(to))]
                self.assertEqual(self.try_with("fattree2:6,3,5", **dict(zip(hosts, to))), [])

    def test_three_levels(self):
        for to in (["core1"], ["core1", "core2", "core3", "core4"], ["mid2-1"], ["mid0-0", "mid3-1", "core2"], ["core3"] * 3):
            with self.subTest(to):
                hosts = [f"node{1 + 16 * i:04}" for i in range(len(to))]
                self.assertEqual(self.try_with("fattree3:8", **dict(zip(hosts, to))), [])

    def test_rails(self):
        site = sim.Site("rails:2,2,6,2", {"changes": {"flap_count": 0}}, room=36)
        self.addCleanup(site.free)
        self.assertEqual(site.ctl_json("planes")[0]["kind"], "fat-tree-2")
        site.move("node0001", 1, "spine1", 30)
        site.refresh()
        self.assertEqual(site.ctl_json("planes")[0]["kind"], "fat-tree-2")

    def test_what_is_no_tree(self):
        """A chain of switches that all have hosts; a mesh."""
        for fabric in ("mesh:3,1:2", "mesh:5,1:3", "mesh:3,3:2"):
            site = sim.Site(fabric, room=36)
            self.assertIn(site.ctl_json("planes")[0]["kind"], ("other", "mesh-2d"))
            site.free()

    def test_a_lack_is_found(self):
        """Of a leaf, and of a middle switch with a host."""
        self.assertEqual(self.try_with("fattree3:8", node0001="mid2-1", node0017="core1"), [])
        site = sim.Site("fattree3:8", {"changes": {"flap_count": 0}}, room=36, start=False)
        self.addCleanup(site.free)
        site.move("node0001", 1, "mid2-1", 36)
        for a, b in (("mid2-1", "core5"), ("leaf1-1", "mid1-2")):
            site.pull(a, site.cable(a, b))
        site.start()
        self.assertEqual({f["where"] for f in site.check()[1] if f["kind"] == "few-uplinks"}, {"mid2-1", "leaf1-1"})


if __name__ == "__main__":
    unittest.main()
