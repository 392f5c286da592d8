"""Hosts and switches that are called as a reader of an export calls something else; and what --help says of the formats."""
import re
import unittest

import sim
from export_names import of_blocks, of_flux, of_model, of_slurm, of_yaml
from test_export_interface import capture


class Words(unittest.TestCase):
    def start(self, *hosts, leaf="leaf1"):
        ports = {leaf: [(host, "mlx5_0") for host in hosts], "leaf2": [(f"n{n}", "mlx5_0") for n in range(1, 4)]}
        self.site = sim.Recorded(capture(ports, [(name, "spine1") for name in ports]))
        self.addCleanup(self.site.free)

    def export(self, *args, status=0):
        done = self.site.ctl("export", *args)
        self.assertEqual(done.returncode, status, done.stderr)
        self.said = done.stderr
        return done.stdout

    def test_slurm(self):
        for word in ("ALL", "all", "Default"):
            self.start(word, "m1")
            for name, read in (("slurm-tree", of_slurm), ("slurm-block", of_blocks), ("slurm-yaml", of_yaml)):
                self.assertEqual(set(read(self.export(name))), {"m1", "n1", "n2", "n3"})
                self.assertIn(f"lost: plane ib0: 1 host with a name that is a reserved word there, left out: {word}", self.said)
                self.assertNotIn("leaf1", self.export(name, "--strict", status=1))
            self.assertEqual(self.export("hostlist").split(), ["m1,n[1-3]"])
            self.assertIn(f"host {word}: its name is a reserved word there", self.said)

    def test_alone_at_its_leaf(self):
        self.start("ALL")
        self.assertEqual(set(of_slurm(self.export("slurm-tree")).values()), {("leaf2",)})

    def test_others_have_it(self):
        self.start("ALL", "m1")
        for name, read in (("flux-jgf", of_flux), ("topograph", of_model)):
            self.assertIn("ALL", read(self.export(name)))
            self.assertNotIn("is a reserved word", self.said)

    def test_names_that_only_contain_it(self):
        self.start("ALL1", "all-x", "xDEFAULT")
        self.assertEqual(set(of_slurm(self.export("slurm-tree", "--strict"))), {"ALL1", "all-x", "xDEFAULT", "n1", "n2", "n3"})

    def test_a_switch(self):
        self.start("m1", leaf="All")
        self.assertRegex(self.export("slurm-tree"), r"(?m)^SwitchName=s[0-9a-f]+ Nodes=m1$")

    def test_rankfile(self):
        self.start("ALL", "m1")
        self.assertEqual(set(re.findall("=([^ ]*) slot", self.export("rankfile"))), {"ALL", "m1", "n1", "n2", "n3"})


class Help(unittest.TestCase):
    def test_each_format_has_a_line(self):
        site = sim.Site("fattree2:2,1,1")
        self.addCleanup(site.free)
        formats = site.ctl("export", "none").stderr.partition("there are ")[2].strip().split(", ")
        shown = site.ctl("export", "--help").stdout.partition("Formats:\n")[2].partition("\n\n")[0].splitlines()
        self.assertEqual([line.split()[0] for line in shown], formats)
        self.assertTrue(all(len(line.split()) > 1 for line in shown), shown)


if __name__ == "__main__":
    sim.lab.main()
