"""Costs, groups and coordinates as a plain search in Python finds them in the text of a recorded fabric."""
import re
import unittest

import plain_search
import sim
from sim import fabric_text


class Case(unittest.TestCase):
    def serve(self, text):
        """It is served with the costs and groups that the search finds; the search's fabric, coordinates by host."""
        site = sim.Recorded(text)
        self.addCleanup(site.free)
        fabric = plain_search.Fabric(text)
        costs = [fabric.costs(host) for host in fabric.order]
        self.assertGreater(len({cost for row in costs for cost in row}), 2)
        self.assertEqual([device["host"] for device in site.ctl_json("devices")], fabric.order)
        self.assertEqual(site.ctl_json("matrix")["costs"], costs)
        self.assertEqual(";".join(f"{group['group']}:{','.join(group['hosts'])}" for group in site.ctl_json("groups")),
                         fabric.groups())
        self.plane, = site.ctl_json("planes")
        places = {one["host"]: tuple(one["logical"]) for one in site.ctl_json("coords")}
        self.assertEqual(len(set(places.values())), len(places))
        return fabric, places

    def test_a_tree_with_slow_and_pulled_cables(self):
        """A leaf at half the rate, and one that has lost a cable; a leaf's number is its place among the leaves."""
        text = fabric_text.slower(sim.fabric("fattree2:4,2,3", "capture"), "leaf2")
        fabric, places = self.serve(fabric_text.without_cables(text, "leaf3", "spine1"))
        self.assertEqual(self.plane["kind"], "fat-tree-2")
        leaves = sorted({fabric.edge(host)[0] for host in fabric.order}, key=lambda leaf: fabric.names[leaf])
        self.assertEqual(places, {host: (0, leaves.index(leaf), port - 1)
                                  for host in fabric.order for leaf, port in [fabric.edge(host)]})

    def test_a_dragonfly(self):
        """The generator has called the routers "rGROUP-ROUTER"; fabricd looks at cables only."""
        fabric, places = self.serve(sim.fabric("dragonfly:2,4,2", "capture"))
        self.assertEqual(self.plane["kind"], "dragonfly")
        for host, place in places.items():
            router, port = fabric.edge(host)
            self.assertEqual(place, (*map(int, re.findall(r"\d+", fabric.names[router])), port - 1))

    def test_a_torus(self):
        """Who is cabled to whom is one step away in one dimension, and nobody else is."""
        fabric, places = self.serve(sim.fabric("torus:5,3:1", "capture"))
        self.assertEqual((self.plane["kind"], self.plane["shape"]), ("torus-2d", [5, 3]))
        at = {fabric.edge(host)[0]: place for host, place in places.items()}
        self.assertEqual(at[min(at)], (0, 0))  # the lowest GUID is the origin
        for switch, place in at.items():
            steps = {tuple((place[i] + step * (i == dimension)) % size for i, size in enumerate((5, 3)))
                     for dimension in (0, 1) for step in (1, -1)}
            self.assertEqual({at[other] for other, _, _ in fabric.ports[switch].values() if fabric.is_switch(other)}, steps)

    def test_other_shapes(self):
        for spec, slow in (("fattree3:4", "leaf0-1"), ("mesh:4,3:2", "s1-1"), ("torus:3,3,3:1", "s0-0-0"), ("fattree2:3,2,2,2", "spine1")):
            with self.subTest(spec):
                text = sim.fabric(spec, "capture")
                slower = fabric_text.slower(text, slow)
                self.assertNotEqual(slower, text)
                self.serve(slower)


if __name__ == "__main__":
    unittest.main()
