"""`fabricctl export` in formats that fabricd or a parser of its kind reads: what can be imported again says the same when it is exported
again. test/integration/test_export.py has other programs read them."""
import csv
import glob
import io
import json
import os
import re
import unittest
import xml.etree.ElementTree as ElementTree

import ctl_case
import fabric_text
import sim
from sim import lab
from test_fabricctl import read_npy

TREES = ("fattree2:4,2,4", "fattree3:4", "rails:2,4,8,4:0", "fattree2:1,1,3", "random:12,40,20:3")
LEVELS = ("fattree3:4", "dragonfly:2,4,2")  # with pods or groups between leaves and the root
OTHERS = ("dragonfly:2,4,2", "torus:3,3,3:1")
REAL = glob.glob(os.path.join(lab.ROOT, "..", "*", "data", "ibnetdiscover", "multirail-542.txt"))
# What hardware may be called, on a tree with a router and an aggregation node.
STRANGE = os.path.join(lab.ROOT, "test", "data", "site_mixed.txt")


class Case(ctl_case.Case):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(lab.tmpdir(), "out")

    def fabric(self, spec):
        self.site.snapshot(spec)

    def begin(self, spec):
        """A run directory anew, with this fabric."""
        super().setUp()
        self.fabric(spec)

    def import_from(self, probe, text=None, **config):
        """From now on the run directory is of the fabric that this probe reads (or of this capture)."""
        config["fabricd"] = {"probe": probe} if text is None else {}
        self.site = sim.Recorded(text or "", config) if text is not None else sim.Site("fattree2:2,1,1", config)
        self.addCleanup(self.site.free)
        self.site.stop()
        self.rundir = self.site.rundir

    def read(self):
        with open(self.out, encoding="utf-8") as file:
            return file.read()

    @staticmethod
    def said(text):
        """Lines that are no comments."""
        return [line for line in text.splitlines() if not line.startswith("#")]

    def export(self, name, *more):
        text = self.ctl("export", name, *more)
        lab.replace_file(self.out, text)
        return text


class RoundTrips(Case):
    def comes_back(self, name, probe):
        """Export, import, export: the same text, but for the comments that have GUIDs, which names do not. What was a
        dragonfly is the tree that the format says: its groups are pods then."""
        first = self.export(name)
        self.import_from(f"{probe}:{self.out}")
        self.assertEqual(self.said(self.export(name)), [line.replace("-group", "-pod") for line in self.said(first)])

    def test_slurm(self):
        for spec in (*TREES, *OTHERS):
            for name in ("slurm-tree", "slurm-block", "slurm-yaml"):
                if name == "slurm-block" and spec in LEVELS:
                    continue  # the import has all blocks below one switch
                with self.subTest(spec, format=name):
                    self.begin(spec)
                    self.comes_back(name, "slurm")

    def test_topograph(self):
        for spec in (*TREES, *OTHERS):
            for name in ("topograph", "topograph-graph"):
                with self.subTest(spec, format=name):
                    self.begin(spec)
                    self.comes_back(name, "topograph")

    def test_ibnetdiscover(self):
        for spec in (*TREES, *OTHERS):
            with self.subTest(spec):
                self.begin(spec)
                before = self.value("devices"), self.value("links"), self.value("switches")
                self.comes_back("ibnetdiscover", "file")
                for was, now in zip(before, (self.value("devices"), self.value("links"), self.value("switches"))):
                    for row in (*was, *now):
                        for key in ("facts", "firmware", "pci", "driver", "vendor", "mtu", "numa", "seen", "state", "unit", "rail",
                                    "lid", "width", "physical", "system_guid", "id"):
                            row.pop(key, None)
                    self.assertEqual(now, was)

    def test_strange_hardware(self):
        """Routers, aggregation nodes, names of every kind: a recorded site comes back as it was."""
        self.import_from(f"file:{STRANGE}")
        kinds = sorted({link["b_kind"] for link in self.value("links")} | {link["a_kind"] for link in self.value("links")})
        cables = len(self.value("links"))
        self.comes_back("ibnetdiscover", "file")
        self.assertEqual(len(self.value("links")), cables)
        self.assertEqual(sorted({link["b_kind"] for link in self.value("links")} |
                                {link["a_kind"] for link in self.value("links")}), kinds)
        self.assertIn("aggregation node", kinds)

    def test_real_site(self):
        if not REAL:
            self.skipTest("the recorded site is not here")
        for name, probe in (("ibnetdiscover", "file"), ("topograph", "topograph"), ("slurm-tree", "slurm")):
            with self.subTest(name):
                self.import_from(f"file:{REAL[0]}")
                self.comes_back(name, probe)

    def test_real_units(self):
        """Each scalable unit of the recorded site is one switch for topograph."""
        if not REAL:
            self.skipTest("the recorded site is not here")
        self.import_from(f"file:{REAL[0]}")
        at = {instance["id"]: instance["network_layers"][0] for instance in json.loads(self.export("topograph-graph"))["instances"]}
        with open(os.path.join(os.path.dirname(REAL[0]), "README.md"), encoding="utf-8") as file:
            units = re.findall(r"^    (\S+)\[(\S+)\]$", file.read(), re.MULTILINE)
        self.assertEqual(len(units), 3)
        switches = []
        for prefix, numbers in units:
            width, hosts = len(re.split("[-,]", numbers)[0]), []
            for part in numbers.split(","):
                first, _, last = part.partition("-")
                hosts += [f"{prefix}{n:0{width}}" for n in range(int(first), int(last or first) + 1)]
            switches.append({at[host] for host in hosts})
        self.assertEqual([len(names) for names in switches], [1, 1, 1])
        self.assertEqual(len(set.union(*switches)), 3)

    def test_missing_and_slow_cables_are_seen(self):
        whole = sim.fabric("fattree2:4,2,4", "capture")
        self.import_from(None, fabric_text.slower(whole, "spine1"))
        text = self.export("dot")
        self.assertEqual((text.count("#e08e0b"), text.count("dashed, color=")), (4, 0))
        self.site.start()
        self.site.show(fabric_text.without(whole, "leaf2"))
        self.site.refresh()
        self.site.stop()
        text = self.export("dot")
        self.assertEqual((text.count("#e08e0b"), text.count("dashed, color=")), (0, 2))
        self.assertIn('[label="leaf2", style="rounded,dashed"]', text)

    def test_graphml(self):
        for spec in ("fattree2:4,2,4", "fattree2:3,2,2"):
            self.fabric(spec)
            root = ElementTree.fromstring(self.export("graphml"))
            space = "{http://graphml.graphdrawing.org/xmlns}"
            keys = {key.get("id"): key.get("attr.name") for key in root.iter(space + "key")}
            nodes = {node.get("id"): {keys[data.get("key")]: data.text for data in node} for node in root.iter(space + "node")}
            edges = [(edge.get("source"), edge.get("target"), {keys[data.get("key")]: data.text for data in edge})
                     for edge in root.iter(space + "edge")]
            self.assertEqual(sorted(node["name"] for node in nodes.values() if node["kind"] == "switch"),
                             sorted(switch["name"] for switch in self.value("switches")))
            self.assertEqual({node["host"] for node in nodes.values() if node["kind"] == "device"},
                             {device["host"] for device in self.value("devices")})
            self.assertEqual([(int(e["a_port"]), int(e["b_port"]), int(e["mbps"]), int(e["cost"]), e["missing"]) for _, _, e in edges],
                             [(link["a_port"], link["b_port"], link["rate_gbps"] * 1000, link["cost"], "false")
                              for link in self.value("links")])
            self.assertLessEqual({end for edge in edges for end in edge[:2]}, set(nodes))
        self.import_from(f"file:{STRANGE}")
        ElementTree.fromstring(self.export("graphml"))

    def test_names_that_xml_marks(self):
        self.import_from(None, sim.fabric("fattree2:2,1,2", "capture").replace('"leaf1"', '"<a&b> \\ "c""'))
        name = '<a&b> \\ "c"'
        self.assertIn(name, [switch["name"] for switch in self.value("switches")])
        root = ElementTree.fromstring(self.export("graphml"))
        self.assertIn(name, [data.text for data in root.iter("{http://graphml.graphdrawing.org/xmlns}data")])
        self.comes_back("ibnetdiscover", "file")
        self.assertIn(name, [switch["name"] for switch in self.value("switches")])


class Everything(Case):
    def test_json_is_the_lists(self):
        for start in (lambda: self.fabric("rails:2,4,8,4:0"), lambda: self.import_from(f"file:{STRANGE}")):
            start()
            value = json.loads(self.export("json"))
            self.assertEqual((value.pop("format"), value.pop("version")), ("fabricd", 1))
            facts = [device.pop("facts") for device in value["devices"]]
            for command, rows in value.items():
                self.assertEqual(rows, self.value(command), command)
            self.assertEqual(sorted(value), ["devices", "groups", "links", "planes", "rails", "switches"])
            first = self.value("devices", value["devices"][0]["host"])[0]
            self.assertEqual(first["facts"], facts[0])

    def test_matrices_are_those_of_matrix(self):
        self.export("csv")
        self.ctl("export", "npy", "-o", self.out)
        self.ctl("matrix", "-o", self.out + ".npy")
        with open(self.out, "rb") as mine, open(self.out + ".npy", "rb") as theirs:
            self.assertEqual(mine.read(), theirs.read())
        self.ctl("export", "npy", "-o", self.out, "--if-changed", status=3)
        rows = list(csv.reader(io.StringIO(self.ctl("export", "csv"))))
        self.assertEqual(rows, list(csv.reader(io.StringIO(self.ctl("--format", "csv", "matrix")))))
        _, matrix = read_npy(self.out)
        self.assertEqual([[int(cell) for cell in row[1:]] for row in rows[1:]], [list(row) for row in matrix])

    def test_if_changed_by_meaning(self):
        for name in ("topograph", "topograph-graph", "json"):
            text = self.export(name)
            lab.replace_file(self.out, json.dumps(json.loads(text), sort_keys=True) if text.startswith("{") else "# mine\n" + text)
            self.ctl("export", name, "-o", self.out, "--if-changed", status=3)
            lab.replace_file(self.out, text.replace("leaf1", "leaf9"))
            self.ctl("export", name, "-o", self.out, "--if-changed")
            self.assertEqual(self.read(), text)

    def test_names_that_do_not_come_back_are_told(self):
        names = os.path.join(lab.tmpdir(), "map")
        lab.replace_file(names, f'0x0000000000200000 "{"x" * 70}"\n0x0000000000100000 "a 1"\n')
        self.import_from(None, sim.fabric("fattree2:2,1,2", "capture"), names={"map": names})
        self.ctl("export", "ibnetdiscover", "--strict", status=1, lines=3)
        self.assertRegex(self.complaint, r'lost: "x{70}" is longer than the 64 bytes')
        self.assertIn('lost: a reader does not take "a 1" for the name of a host', self.complaint)


if __name__ == "__main__":
    unittest.main()
