"""Exports for Slurm, read by a newer slurmctld than Debian's: the one that is installed in the folder that FABRICD_SLURM
names (25.05 or later, outside of this project). `scontrol show topology` has the blocks and switches of slurm-block,
slurm-yaml and slurm-tree."""
import os
import re
import unittest

import yaml

import test_export_slurm
import test_fabricctl
from test_export_slurm import Slurm, spelled

PREFIX = os.environ.get("FABRICD_SLURM")


class Newer:
    prefix = PREFIX

    @classmethod
    def setUpClass(cls):
        if not PREFIX:
            raise unittest.SkipTest("FABRICD_SLURM names no folder that a newer Slurm is installed in")
        super().setUpClass()


class Trees(Newer, test_export_slurm.Generated):
    pass


class Captured(Newer, test_export_slurm.Captured):
    pass


class Topologies(Newer, test_export_slurm.Case):
    """topology.yaml: a tree for each plane."""

    def read_by_slurm(self, text):
        """{topology: what Slurm says of it}; and that this is what stands there. The default comes without a name, too."""
        said = {entry["topology"]: {switch["switch"]: (sorted(spelled(switch.get("nodes", ""))),
                                                       sorted(spelled(switch.get("children", ""))))
                                    for switch in entry["tree"]["switches"]} for entry in yaml.safe_load(text)}
        nodes = sorted({node for switches in said.values() for below, _ in switches.values() for node in below})
        slurm = Slurm(self.cluster, text, nodes, "topology/flat", self.prefix, "topology.yaml")
        try:
            answer, log = {name: slurm.topology(name) for name in said}, slurm.log()
            default = slurm.topology()
        finally:
            slurm.stop()
        for name, switches in answer.items():
            self.assertEqual({switch: (sorted(below) if not up else [], up) for switch, (_, below, up) in switches.items()},
                             said[name], name)
        self.assertEqual([default], [answer[entry["topology"]] for entry in yaml.safe_load(text) if entry["cluster_default"]])
        self.assertNotRegex(log, r"(?i)invalid hostname|multiple leaf")
        return answer

    def test_one_plane(self):
        for spec, switches in (("fattree2:4,2,4", 5), ("fattree3:6", 18 + 6 + 1), ("rails:5,4,6,2", 6), ("dragonfly:2,4,2", 46),
                               ("torus:3,3,3:2", 28), ("fattree2:250,4,20", 251)):
            with self.subTest(spec):
                test_fabricctl.snapshot(spec, self.rundir)
                (tree,) = self.read_by_slurm(self.ctl("export", "slurm-yaml")).values()
                self.assertEqual(len(tree), switches)

    def test_two_planes(self):
        test_fabricctl.snapshot("fattree3:4", self.rundir)
        test_fabricctl.snapshot("fattree2:2,1,10", self.rundir, "ib1", "2", "3")
        answer = self.read_by_slurm(self.ctl("export", "slurm-yaml"))
        self.assertEqual({name: sum(len(nodes) for level, nodes, _ in tree.values() if level == 0)
                          for name, tree in answer.items()}, {"ib0": 16, "ib1": 20})


class Blocks(Newer, test_export_slurm.Case):
    def read_by_slurm(self, text):
        """{block: its nodes} and {the nodes of a larger block: its size}; and that this is what stands there."""
        said = {name: sorted(spelled(nodes)) for name, nodes in re.findall(r"(?m)^BlockName=(\S+) Nodes=(\S+)$", text)}
        slurm = Slurm(self.cluster, text, sorted(node for nodes in said.values() for node in nodes), "topology/block", self.prefix)
        try:
            answer, log = slurm.ask("show", "topology").stdout, slurm.log()
        finally:
            slurm.stop()
        found = re.findall(r"(?m)^(BlockName|AggregatedBlock)=(\S+) BlockIndex=\d+ Nodes=(\S+) BlockSize=(\d+)$", answer)
        blocks = {name: sorted(spelled(nodes)) for kind, name, nodes, _ in found if kind == "BlockName"}
        self.assertEqual(len(found), len(answer.splitlines()))
        self.assertEqual(blocks, said)
        self.assertEqual({int(size) for kind, _, _, size in found if kind == "BlockName"},
                         {int(re.search(r"(?m)^BlockSizes=(\d+)", text).group(1))})
        self.assertNotRegex(log, r"(?i)lack access|invalid hostname")
        return blocks, {tuple(sorted(spelled(nodes))): int(size) for kind, _, nodes, size in found if kind != "BlockName"}

    def of(self, spec, *args):
        test_fabricctl.snapshot(spec, self.rundir)
        return self.read_by_slurm(self.ctl("export", "slurm-block", *args))

    def test_generated(self):
        for spec, leaves, base in (("fattree2:4,2,4", 4, 4), ("rails:5,4,6,2", 5, 6), ("dragonfly:2,4,2", 36, 2),
                                   ("fattree2:250,4,20", 250, 20)):
            with self.subTest(spec):
                blocks, _ = self.of(spec)
                self.assertEqual((len(blocks), {len(nodes) for nodes in blocks.values()}), (leaves, {base}))

    def test_pods_are_larger_blocks(self):
        _, larger = self.of("fattree3:8")
        self.assertLessEqual({tuple(f"node{16 * pod + n:04}" for n in range(1, 17)): 16 for pod in range(8)}.items(), larger.items())


if __name__ == "__main__":
    unittest.main()
