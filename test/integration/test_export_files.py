"""`fabricctl export` in formats that other programs read: each is read by such a program. test/sim/test_export_files.py has what fabricd
reads itself."""
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import lab
import test_export

TREES = ("fattree2:4,2,4", "fattree3:4", "rails:2,4,8,4:0", "fattree2:1,1,3", "random:12,40,20:3")
OTHERS = ("dragonfly:2,4,2", "torus:3,3,3:1")
# What hardware may be called, on a tree with a router and an aggregation node.
STRANGE = os.path.join(lab.ROOT, "test", "data", "site_mixed.txt")


class Case(test_export.Case):
    def import_from(self, probe):
        """From now on the run directory is of the fabric that this probe reads."""
        self.rundir = os.path.join(lab.tmpdir(), "run")
        os.mkdir(self.rundir)
        self.out = os.path.join(self.rundir, "out")
        done = lab.run([lab.program("fabricd"), "--once", "--rundir", self.rundir, "--store", self.rundir + ".db",
                        "--probe", probe])
        self.assertEqual(done.returncode, 0, done.stderr)

    def export(self, name, *more):
        text = self.ctl("export", name, *more)
        lab.replace_file(self.out, text)
        return text


class OtherReaders(Case):
    def test_scripts_of_infiniband_diags(self):
        """ibnetdiscover's own readers list what there is, and find no two things of one name."""
        lab.require("ibhosts", "ibswitches", "ibidsverify")
        self.export("ibnetdiscover")
        hosts = lab.run(["ibhosts", self.out]).stdout
        switches = lab.run(["ibswitches", self.out]).stdout
        devices = self.value("devices")
        self.assertEqual(sorted(re.findall(r'^Ca\s*: (0x\w+) ports 1 "(\S+) ', hosts, re.MULTILINE)),
                         sorted((device["node_guid"], device["host"]) for device in devices))
        self.assertEqual(sorted(re.findall(r'^Switch\s*: (0x\w+) ports \d+ "(\S+)"', switches, re.MULTILINE)),
                         sorted((switch["id"], switch["name"]) for switch in self.value("switches")))

    def test_simulator(self):
        """ibsim takes the text as a subnet, and ibnetdisc finds there what it says."""
        lab.require("ibsim", "opensm")
        for spec in ("fattree2:4,2,4", "dragonfly:2,4,2"):
            with self.subTest(spec):
                self.fabric(spec)
                links = self.value("links")
                sim = lab.Ibsim(self.export("ibnetdiscover"))
                sim.sweep()
                found = sim.run([lab.program("probe_dump"), "ibnetdisc"]).stdout
                cables = {frozenset(((link["a_guid"], link["a_port"]), (link["b_guid"], link["b_port"]))) for link in links}
                seen, here = set(), None
                for line in found.splitlines():
                    node = re.match(r"(?:switch|hca) (0x\w+) ", line)
                    port = re.match(r"  \[(\d+)\] .* 4xHDR -> (0x\w+)\[(\d+)\]", line)
                    here = node.group(1) if node else here
                    if port:
                        seen.add(frozenset(((here, int(port.group(1))), (port.group(2), int(port.group(3))))))
                self.assertEqual(seen, cables)
                sim.quit()

    def test_pictures(self):
        """Graphviz has nothing to say against the text, and draws each switch and all hosts."""
        lab.require("dot")
        for spec in (*TREES, *OTHERS, "fattree2:16,4,4"):
            with self.subTest(spec):
                self.fabric(spec)
                self.draw()
        self.import_from(f"file:{STRANGE}")
        self.draw()
        path = os.path.join(lab.tmpdir(), "names.txt")
        lab.replace_file(path, lab.fabric("fattree2:2,1,2", "capture").replace('"leaf1"', '"<a&b> \\ "c""'))
        self.import_from(f"file:{path}")
        self.draw()

    def draw(self):
        done = subprocess.run(["dot", "-Tsvg"], input=self.export("dot"), capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        texts = [text.text.replace("\xa0", " ") for text in ElementTree.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}text")]
        plane = self.value("planes")[0]
        for switch in self.value("switches"):
            if switch["plane"] == plane["name"]:
                self.assertIn(" ".join(switch["name"].split()), [" ".join(text.split()) for text in texts])
        several = [int(n) for text in texts for n in re.findall(r"^(\d+) hosts$", text)]
        boxes = len(re.findall(r"^  h\d+ \[", self.read(), re.MULTILINE))
        self.assertEqual(sum(several) + boxes - len(several), plane["hosts"])


if __name__ == "__main__":
    import unittest
    unittest.main()
