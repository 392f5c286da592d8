"""`fabricctl export`: the command itself. When a file is written, what is kept, what its exit status and standard
error tell; and the shape of what a tree of switches says. test_export_slurm.py has Slurm read it."""
import os
import re
import shutil
import subprocess
import unittest

import lab
import test_fabricctl


class Case(test_fabricctl.Case):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(self.rundir, "out")

    def fabric(self, spec):
        test_fabricctl.snapshot(spec, self.rundir)

    def read(self, path=None):
        with open(path or self.out, encoding="utf-8") as file:
            return file.read()

    def said(self, text):
        """Lines that are no comments."""
        return [line for line in text.splitlines() if not line.startswith("#")]


class Writing(Case):
    def test_standard_output_or_a_file(self):
        text = self.ctl("export", "slurm-tree")
        self.ctl("export", "slurm-tree", "-o", self.out)
        self.assertEqual(self.read(), text)
        self.assertEqual(self.ctl("export", "slurm-tree", "-o", "-"), text)
        self.assertEqual(self.leftovers(), ["ib0.snap", "out", "out.names"])

    def test_the_previous_file_is_kept(self):
        lab.replace_file(self.out, "# by hand\n")
        os.chmod(self.out, 0o640)
        self.ctl("export", "slurm-tree", "-o", self.out)
        self.assertEqual(self.read(self.out + ".old"), "# by hand\n")
        self.assertEqual(os.stat(self.out).st_mode & 0o777, 0o640)
        first = self.read()
        self.fabric("fattree2:5,2,4")
        self.ctl("export", "slurm-tree", "-o", self.out)
        self.assertEqual(self.read(self.out + ".old"), first)
        self.assertEqual(self.leftovers(), ["ib0.snap", "out", "out.names", "out.old"])

    def test_if_changed(self):
        args = ("export", "slurm-tree", "-o", self.out, "--if-changed")
        self.ctl(*args)
        before = lab.stamp(self.out)
        self.ctl(*args, status=3)
        self.assertEqual((lab.stamp(self.out), self.complaint), (before, ""))
        said = self.said(self.read())
        self.assertIn("SwitchName=leaf2 Nodes=node[0005-0008]", said)
        said.remove("SwitchName=leaf2 Nodes=node[0005-0008]")
        lab.replace_file(self.out, "\n".join(["# Ours", "", *reversed(said), " SwitchName=leaf2 \t Nodes=node0006,node0005,"
                                              "node[0008,0007] # the same"]))
        mine = self.read()
        self.ctl(*args, status=3)
        self.assertEqual(self.read(), mine)
        for other in (mine.replace("0008,", ""), mine.replace("SwitchName=leaf2", "SwitchName=leaf9"), "", "\0", "a[b\n"):
            lab.replace_file(self.out, other)
            self.ctl(*args)
            self.assertEqual(self.said(self.read())[1], "SwitchName=leaf2 Nodes=node[0005-0008]")
            self.assertEqual(self.read(self.out + ".old"), other)

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

    def test_if_changed_of_a_pipe(self):
        """It says nothing yet, so it is written, and nobody waits for what it says."""
        os.mkfifo(self.out)
        reader = subprocess.Popen(["cat", self.out], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, reader)
        self.ctl("export", "slurm-tree", "-o", self.out, "--if-changed")
        self.assertEqual(reader.communicate(timeout=lab.HUNG)[0], self.ctl("export", "slurm-tree"))

    def test_what_cannot_be_written(self):
        for path in (os.path.join(self.rundir, "nosuch", "out"), self.rundir, "/proc/out"):
            self.ctl("export", "slurm-tree", "-o", path, status=1)
            self.assertIn(path, self.complaint)
        self.ctl("export", "slurm-tree", "-o", "/dev/full", status=1)
        self.assertIn("No space left", self.complaint)
        self.assertEqual(self.leftovers(), ["ib0.snap"])

    def test_usage(self):
        self.ctl("export", status=2)
        self.ctl("export", "nosuch", status=2)
        self.assertIn("no such format: nosuch: there are slurm-tree", self.complaint)
        self.ctl("export", "slurm-tree", "--if-changed", status=2)
        self.ctl("export", "slurm-tree", "--if-changed", "-o", "-", status=2)
        self.ctl("export", "slurm-tree", "--plane", "nosuch", "-o", self.out, status=1)
        self.assertEqual(self.leftovers(), ["ib0.snap"])

    def test_strict_refuses_what_is_lost(self):
        self.fabric("dragonfly:2,4,2")
        lab.replace_file(self.out, "before\n")
        self.ctl("export", "slurm-tree", "--strict", "-o", self.out, status=1, lines=2)
        self.assertRegex(self.complaint, "lost: plane ib0: its kind is dragonfly: .*\n.*not written: slurm-tree")
        self.assertEqual(self.read(), "before\n")
        self.ctl("export", "slurm-tree", "-o", self.out)
        self.assertIn("its kind is dragonfly", self.complaint)
        self.assertIn("SwitchName=ib0-group0 Switches=r0-[0-3]", self.said(self.read()))
        self.fabric("fattree3:4")
        self.ctl("export", "slurm-tree", "--strict", "-o", self.out)
        self.assertEqual(self.complaint, "")


class Tree(Case):
    def tree(self, *args):
        """{switch: (its switches or nodes as written)}"""
        found = {}
        for line in self.said(self.ctl("export", "slurm-tree", *args)):
            name, below = re.fullmatch(r"SwitchName=(\S+) (?:Nodes|Switches)=(\S+)", line).groups()
            self.assertNotIn(name, found)
            found[name] = below
        return found

    def test_levels(self):
        self.assertEqual(self.tree(), {"leaf1": "node[0001-0004]", "leaf2": "node[0005-0008]", "leaf3": "node[0009-0012]",
                                       "leaf4": "node[0013-0016]", "ib0": "leaf[1-4]"})
        self.fabric("fattree3:4")
        tree = self.tree()
        self.assertEqual(tree["ib0"], "ib0-pod[0-3]")
        self.assertEqual(tree["ib0-pod2"], "leaf2-[0-1]")
        self.fabric("torus:3,3,3:2")
        self.assertEqual(len(self.tree()), 28)
        self.fabric("rails:3,4,6,2")
        self.assertEqual(self.tree(), {"ib0-unit1": "node[0001-0006]", "ib0-unit2": "node[0007-0012]",
                                       "ib0-unit3": "node[0013-0018]", "ib0": "ib0-unit[1-3]"})

    def test_several_planes(self):
        """Hosts that are in both stand where the plane with the lower index has them."""
        test_fabricctl.snapshot("fattree2:2,1,10", self.rundir, "ib1", "2", "3")
        tree = self.tree()
        self.assertIn("plane ib1: 16 hosts written as another plane has them", self.complaint)
        self.assertIn("two switches are called leaf2", self.complaint)
        self.assertEqual((tree["ib0"], tree["leaf4"]), ("leaf[1-4]", "node[0013-0016]"))
        self.assertEqual([below for name, below in tree.items() if name.startswith("leaf2-s")], ["node[0017-0020]"])
        self.assertEqual(self.tree("--plane", "ib1"), {"leaf1": "node[0001-0010]", "leaf2": "node[0011-0020]",
                                                       "ib1": "leaf[1-2]"})

    def test_names_stand_beside(self):
        text = self.ctl("export", "slurm-tree")
        self.assertIn("\n# leaf1 0x0000000000200000 leaf1\n", text)
