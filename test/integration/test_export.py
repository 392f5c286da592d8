"""`fabricctl export` with real files, users, programs that read it, and a discovered fabric; and exports that fabricd keeps right, as real
processes. test/sim has the rest (test_export_*.py, test_kept_exports.py), test_slurm_topology.py has them in the service."""
import os
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

import lab
import test_fabricctl
import test_hooks
from test_configuration import FORMATS, GEOMETRY

EXPORTS = [name for name in FORMATS.split(", ") if name not in GEOMETRY]
# What hardware may be called, on a tree with a router and an aggregation node.
STRANGE = os.path.join(lab.ROOT, "test", "data", "site_mixed.txt")


class Case(test_fabricctl.Case):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(self.rundir, "out")

    def fabric(self, spec):
        test_fabricctl.snapshot(spec, self.rundir)

    def read(self, path=None):
        with open(path or self.out, encoding="utf-8") as file:
            return file.read()


class Writing(Case):
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_the_previous_file_is_somebody_elses(self):
        """The kernel gives such a file no second name (fs.protected_hardlinks): the one before is a copy then."""
        lab.replace_file(self.out, lab.fabric(test_fabricctl.FABRIC, "capture"))
        daemon = lab.Fabricd(config={"fabricd": {"probe": f"file:{self.out}"}})
        self.addCleanup(daemon.stop)
        folder = lab.tmpdir()
        os.chmod(folder, 0o755)
        mine = os.path.join(folder, "exports")
        os.mkdir(mine)
        shutil.chown(mine, "nobody")
        file = os.path.join(mine, "out")
        lab.replace_file(file, "# by root\n")
        os.chmod(file, 0o644)
        done = daemon.ctl("export", "slurm-tree", "-o", file, user="nobody")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.read(file), daemon.ctl("export", "slurm-tree").stdout)
        self.assertEqual((self.read(file + ".old"), os.stat(file + ".old").st_mode & 0o777), ("# by root\n", 0o644))
        self.assertEqual(sorted(os.listdir(mine)), ["out", "out.names", "out.old"])

    def test_other_places(self):
        """A pipe says nothing yet, so it is written, and nobody waits for what it says; and places that cannot be written."""
        for path in (os.path.join(self.rundir, "nosuch", "out"), self.rundir, "/proc/out"):
            self.ctl("export", "slurm-tree", "-o", path, status=1)
            self.assertIn(path, self.complaint)
        self.ctl("export", "slurm-tree", "-o", "/dev/full", status=1)
        self.assertIn("No space left", self.complaint)
        self.assertEqual(self.leftovers(), ["ib0.snap"])
        os.mkfifo(self.out)
        reader = subprocess.Popen(["cat", self.out], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, reader)
        self.ctl("export", "slurm-tree", "-o", self.out, "--if-changed")
        self.assertEqual(reader.communicate(timeout=lab.HUNG)[0], self.ctl("export", "slurm-tree"))


class OtherReaders(Case):
    """Each is read by a program that other people wrote."""

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
        if lab.run(["dot", "-Kneato", "-Tsvg", "/dev/null"]).returncode != 0:
            self.skipTest("this graphviz has no layout neato (a package of its own: libgvplugin-neato-layout8)")
        for spec in ("fattree3:4", "rails:2,4,8,4:0", "random:12,40,20:3", "dragonfly:2,4,2", "fattree2:16,4,4"):
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


class Discovered(unittest.TestCase):
    """Exports of all formats stay as they are: from whichever host the fabric is discovered, and whatever its ports count."""

    def setUp(self):
        lab.require("ibsim", "opensm")
        self.sim = lab.Ibsim(lab.fabric("fattree3:4"))
        self.addCleanup(self.sim.quit)
        self.sim.sweep()
        self.folder = lab.tmpdir()
        self.daemon = lab.Fabricd(self.sim)
        self.addCleanup(self.daemon.stop)

    def write(self, name, *more):
        done = self.daemon.ctl("export", name, "-o", os.path.join(self.folder, name), *more)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode

    def unchanged(self):
        """They say the same, and nobody has touched them."""
        files = {entry.name: lab.stamp(entry.path) for entry in os.scandir(self.folder)}
        self.assertEqual([name for name in EXPORTS if self.write(name, "--if-changed") != 3], [])
        self.assertEqual({entry.name: lab.stamp(entry.path) for entry in os.scandir(self.folder)}, files)

    def test_a_discovered_fabric(self):
        for name in EXPORTS:
            self.assertEqual(self.write(name), 0)
        for host in self.sim.hosts if lab.ALL else self.sim.hosts[-1:]:  # it is discovered from there
            self.daemon.stop()
            with open(self.daemon.conf, encoding="utf-8") as file:
                text = file.read()
            lab.replace_file(self.daemon.conf, re.sub(r"(?m)^SIM_HOST = .*$", f"SIM_HOST = {host}", text))
            self.daemon.start()
            self.unchanged()
        (leaf, port), *_ = [(link["a"], link["a_port"]) for link in self.daemon.ctl_json("links") if link["a_kind"] == "switch"]
        for count in (7, 70):
            self.sim.command(f'PerformanceSet "{leaf}"[{port}] PortCounters.SymbolErrorCounter={count}')
            self.assertEqual(self.daemon.ctl("counters", leaf).returncode, 0)
        self.assertIn("counters-grow", self.daemon.ctl("check").stdout)
        self.daemon.refresh()
        self.unchanged()


class Kept(unittest.TestCase):
    """fabricctl writes the file, the site's command is told of it, and one that hangs is ended with all that it started."""

    def setUp(self):
        self.dir = lab.tmpdir()
        self.capture = os.path.join(self.dir, "capture")
        self.text = lab.fabric("fattree2:4,2,4", "capture")
        lab.replace_file(self.capture, self.text)
        self.folder = os.path.join(self.dir, "exports")
        self.file, self.told = os.path.join(self.folder, "topology.conf"), os.path.join(self.dir, "told")

    def start(self, body, deadline=60):
        command = test_hooks.script(self.dir, "command", body)
        self.daemon = lab.Fabricd(config={
            "fabricd": {"probe": f"file:{self.capture}"}, "exports": {"folder": self.folder, "pace": 1, "deadline": deadline},
            "exports.files": {"topology.conf": "slurm-tree --plane ib0"}, "exports.commands": {"topology.conf": command}})
        self.addCleanup(self.daemon.stop)

    def wait_export(self, **wanted):
        self.daemon.until("idle")
        (seen,) = self.daemon.status()["exports"]
        self.assertEqual({key: seen[key] for key in wanted}, wanted)

    def test_each_generation_and_the_command_after_a_real_change(self):
        self.start(f'echo $FABRICD_GENERATION $(grep -o "other[0-9]*" {self.file}) >>{self.told}\n')
        self.wait_export(generation=1)
        lab.replace_file(self.capture, self.text.replace('"node0001', '"other0001'))
        self.wait_export(generation=self.daemon.refresh()["generation"])
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.daemon.ctl("export", "slurm-tree", "--plane", "ib0").stdout)
        with open(self.told, encoding="utf-8") as file:
            self.assertEqual(file.read(), "1\n2 other0001\n")

    def test_a_command_that_hangs_is_ended_with_all_it_started(self):
        self.start(f"sleep 300 & echo $! >{self.told}; wait", deadline=1)
        self.wait_export(why=f"command of export topology.conf: timed out after 1 s: killed")
        with open(self.told, encoding="utf-8") as file:
            self.assertTrue(lab.Held(int(file.read())).ended())


if __name__ == "__main__":
    unittest.main()
