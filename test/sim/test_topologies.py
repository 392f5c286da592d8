"""Several topologies over the same hosts in one file: each is a plane with its own name, and the file says which is the default."""
import os
import unittest

import sim
import yaml
from sim import lab

NET = {"top": (["s1", "s2"], None), "s1": ([], "n[1-8]"), "s2": ([], "n[9-16]")}


def tree(name, switches, default=False):
    return {"topology": name, "cluster_default": default,
            "tree": {"switches": [dict({"switch": switch}, **({"children": ",".join(below)} if below else {"nodes": nodes}))
                                  for switch, (below, nodes) in switches.items()]}}


def blocks(name, lists, default=False):
    return {"topology": name, "cluster_default": default,
            "block": {"block_sizes": [2], "blocks": [{"block": f"b{n}", "nodes": nodes} for n, nodes in enumerate(lists, 1)]}}


class Case(unittest.TestCase):
    def start(self, probe, value):
        self.path = os.path.join(lab.tmpdir(), "topologies")
        self.write(value)
        self.site = sim.Site("fattree2:2,1,2", {"fabricd": {"probe": f"{probe}:{self.path}"}})
        self.addCleanup(self.site.free)

    def write(self, value):
        lab.replace_file(self.path, value if isinstance(value, str) else yaml.safe_dump(value))

    def planes(self):
        return {plane["name"]: plane["hosts"] for plane in self.site.ctl_json("planes")}

    def default(self):
        (name,) = (plane["name"] for plane in self.site.ctl_json("planes") if plane["default"])
        return name

    def findings(self):
        return {finding["kind"] for finding in self.site.control("check")["findings"]}


class Slurm(Case):
    def test_names_and_default(self):
        self.start("slurm", [tree("net.work", NET), blocks("gpu parts", ["n[1-2]", "n[3-4]"], True), {"topology": "all", "flat": True},
                             {"topology": "rings", "ring": {"rings": [{"ring": "r1", "nodes": "n[1-4]"}]}}])
        self.assertEqual(self.planes(), {"net.work": 16, "gpu_parts": 4})
        self.assertEqual(self.default(), "gpu_parts")
        self.assertEqual(self.findings(), set())
        self.assertEqual(self.site.ctl_json("rails"), [])
        for name in ("all", "rings"):
            self.assertIn(f'topology "{name}" has neither a tree nor blocks: left out', self.site.journal())

    def test_the_same_hosts_in_both(self):
        """They are no rails, and switches may have equal names."""
        self.start("slurm", [tree("a", NET), tree("b", NET)])
        self.assertEqual((self.planes(), self.default()), ({"a": 16, "b": 16}, "a"))
        self.assertEqual((self.site.ctl_json("rails"), self.findings()), ([], set()))

    def test_exports(self):
        written = [tree("net", NET), blocks("gpu", ["n[1-2]", "n[3-4]"], True)]
        self.start("slurm", written)
        exported = yaml.safe_load(self.site.ctl("export", "slurm-yaml").stdout)
        self.assertEqual([(one["topology"], one["cluster_default"]) for one in exported], [("net", False), ("gpu", True)])
        self.assertEqual([switch["nodes"] for switch in exported[1]["tree"]["switches"] if "nodes" in switch], ["n[1-2]", "n[3-4]"])
        one = self.site.ctl("export", "topograph")
        self.assertIn("lost: plane gpu: 4 hosts written in the place that they have in another plane: n[1-4]", one.stderr)
        self.assertEqual(self.site.ctl("export", "topograph", "--strict").returncode, 1)
        only = yaml.safe_load(self.site.ctl("export", "topograph", "--plane", "gpu", "--strict").stdout)
        self.assertEqual({block["switch"]: block["nodes"] for block in only["blocks"]}, {"b1": ["n[1-2]"], "b2": ["n[3-4]"]})

    def test_the_file_says_another_default(self):
        """Also where nothing else in it changes."""
        def both(first):
            return [tree("net", NET, first), blocks("gpu", ["n[1-2]", "n[3-4]"], not first)]
        self.start("slurm", both(True))
        self.assertEqual(self.default(), "net")
        self.write(both(False))
        self.site.refresh()
        self.assertEqual(self.default(), "gpu")
        generation = self.site.status()["generation"]
        self.site.kill9()
        self.site.start()
        self.site.refresh()
        self.assertEqual((self.default(), self.planes(), self.site.status()["generation"]), ("gpu", {"net": 16, "gpu": 4}, generation))

    def test_one_topology_is_called_as_ever(self):
        self.start("slurm", [tree("net", NET, True), {"topology": "all", "flat": True}])
        self.assertEqual(self.planes(), {"ib0": 16})

    def test_one_that_is_in_pieces(self):
        self.start("slurm", [tree("net", {"s1": ([], "n[1-8]"), "s2": ([], "n[9-12]")}), blocks("gpu", ["n[1-2]"])])
        self.assertEqual(self.planes(), {"net": 8, "net.2": 4, "gpu": 2})

    def test_a_name_twice(self):
        for names in (("a", "a"), ("a b", "a_b")):
            self.start("slurm", [tree(name, NET) for name in names])
            self.assertIn("a second topology of this name", self.site.journal())

    def test_trees_and_blocks_in_one_topology_conf(self):
        self.start("slurm", "SwitchName=net Switches=s[1-2]\nSwitchName=s1 Nodes=n[1-8]\nSwitchName=s2 Nodes=n[9-16]\n"
                            "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\n")
        self.assertEqual((self.planes(), self.findings()), ({"net": 16, "blocks": 4}, set()))


class Topograph(Case):
    def test_roots_over_the_same_hosts(self):
        self.start("topograph", {"switches": {"core": {"switches": ["leaf1", "leaf2"]}, "nvl": {"switches": ["d1", "d2"]}},
                                 "blocks": [{"switch": "leaf1", "nodes": ["n[1-8]"]}, {"switch": "leaf2", "nodes": ["n[9-16]"]},
                                            {"switch": "d1", "nodes": ["n[1-2]"], "labels": {"accelerator": "nvl-1"}},
                                            {"switch": "d2", "nodes": ["n[3-4]"]}]})
        self.assertEqual((self.planes(), self.findings(), self.site.ctl_json("rails")), ({"core": 16, "nvl": 4}, set(), []))
        self.assertIn("labels of 1 blocks or instances (accelerators, zones) are left out", self.site.journal())

    def test_the_order_of_the_file_says_nothing(self):
        """The GUIDs that are made of names, and so the places of devices, stay."""
        roots = {"core": {"switches": ["leaf1"]}, "nvl": {"switches": ["d1"]}}
        blocks_of = [{"switch": "leaf1", "nodes": ["n[1-8]"]}, {"switch": "d1", "nodes": ["n[1-2]"]}]
        self.start("topograph", {"switches": roots, "blocks": blocks_of})
        self.assertEqual(self.planes(), {"core": 8, "nvl": 2})
        before = self.site.ctl_json("devices")
        with open(self.path, "w", encoding="utf-8") as file:
            yaml.safe_dump({"switches": dict(reversed(roots.items())), "blocks": blocks_of[::-1]}, file, sort_keys=False)
        self.assertFalse(self.site.refresh()["changed"])
        self.assertEqual(self.site.ctl_json("devices"), before)

    def test_roots_over_other_hosts(self):
        """are parts of one fabric"""
        self.start("topograph", {"switches": {"a": {}, "b": {}}, "blocks": [{"switch": "a", "nodes": ["n[1-8]"]},
                                                                            {"switch": "b", "nodes": ["m[1-4]"]}]})
        self.assertEqual(self.planes(), {"ib0": 8, "ib1": 4})


if __name__ == "__main__":
    lab.main()
